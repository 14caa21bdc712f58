/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the objects of a data set immortal, in the helper program, before it forks workers.
 *
 * CPython counts references inside of each object.  So a worker that only reads an object writes to it, and receives a
 * copy of its page; a data set of many small objects is copied into each worker bit by bit.  From version 3.12 on,
 * CPython leaves the count of objects alone whose count is the largest 32-bit number. */
#include "native.h"

#include <string.h>

typedef struct walk {
    PyObject **stack; /* objects whose referents are not visited yet */
    size_t count, room;
    Py_ssize_t made;
    bool failed;
} walk;

static uint32_t count_of(const PyObject *object) {
    uint32_t count = 0;
    memcpy(&count, object, sizeof count); /* ob_refcnt, or its lower half, is the first member of PyObject */
    return count;
}

static void push(walk *w, PyObject *object) {
    if (w->count == w->room) {
        size_t room = w->room ? 2 * w->room : 1024;
        PyObject **grown = PyMem_Realloc(w->stack, room * sizeof *grown);
        if (!grown) {
            w->failed = true;
            return;
        }
        w->stack = grown;
        w->room = room;
    }
    w->stack[w->count++] = object;
}

/* Returns true for objects that belong to the program, not to the data. */
static bool is_code(PyObject *object) {
    return PyType_Check(object) || PyModule_Check(object) || PyCallable_Check(object);
}

/* A visitproc. */
static int visit(PyObject *object, void *user) {
    walk *w = user;
    const uint32_t immortal = UINT32_MAX;
    if (w->failed || (int32_t)count_of(object) < 0 || is_code(object)) return 0;
    memcpy(object, &immortal, sizeof immortal);
    ++w->made;
    push(w, object);
    return 0;
}

/* PyObject_IS_GC(), which the limited API lacks. */
static bool is_collected(PyObject *object) {
    PyTypeObject *type = Py_TYPE(object);
    if (!(PyType_GetFlags(type) & Py_TPFLAGS_HAVE_GC)) return false;
    inquiry is_gc = (inquiry)PyType_GetSlot(type, Py_tp_is_gc);
    return !is_gc || is_gc(object);
}

PyObject *make_immortal(PyObject *module, PyObject *root) {
    (void)module;
    walk w = {0};
    push(&w, root); /* a data set may be callable */
    while (w.count > 0) {
        PyObject *object = w.stack[--w.count];
        traverseproc traverse = (traverseproc)PyType_GetSlot(Py_TYPE(object), Py_tp_traverse);
        if (traverse && is_collected(object)) traverse(object, visit, &w);
    }
    PyMem_Free(w.stack);
    if (w.failed) return PyErr_NoMemory();
    return PyLong_FromSsize_t(w.made);
}
