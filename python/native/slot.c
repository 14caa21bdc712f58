/* SPDX-License-Identifier: Apache-2.0 */
/* Slots and their parts: buffers that view the memory of a batch.  A slot goes back to the feed when its last part
 * dies. */
#include "native.h"

#include <stdlib.h>
#include <string.h>

typedef struct slot {
    PyObject ob_base;
    leat_kept *kept; /* NULL: the memory is a copy, or borrowed */
    bool borrowed;   /* the memory belongs to a batch that is being made */
    unsigned char *memory;
} slot;

typedef struct part {
    PyObject ob_base;
    PyObject *slot;
    unsigned char *memory;
    Py_ssize_t bytes;
} part;

static void slot_dealloc(PyObject *self) {
    slot *s = (slot *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (!s->kept && !s->borrowed) free(s->memory);
    leat_kept_release(&s->kept);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static void part_dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((part *)self)->slot);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static int part_buffer(PyObject *self, Py_buffer *view, int flags) {
    const part *p = (const part *)self;
    return PyBuffer_FillInfo(view, self, p->memory, p->bytes, 0, flags);
}

static Py_ssize_t part_length(PyObject *self) {
    return ((part *)self)->bytes;
}

static PyType_Slot slot_slots[] = {{Py_tp_dealloc, (void *)slot_dealloc}, {0}};
PyType_Spec slot_spec = {"leat._native.Slot", sizeof(slot), 0, Py_TPFLAGS_DEFAULT, slot_slots};

static PyType_Slot part_slots[] = {{Py_tp_dealloc, (void *)part_dealloc},
#if PY_VERSION_HEX >= 0x03090000
                                   {Py_bf_getbuffer, (void *)part_buffer},
#endif
                                   {Py_sq_length, (void *)part_length},
                                   {0}};
PyType_Spec part_spec = {"leat._native.Part", sizeof(part), 0, Py_TPFLAGS_DEFAULT, part_slots};

void finish_part_type(void) {
#if PY_VERSION_HEX < 0x03090000 /* PyType_FromSpec knows no buffers there. */
    ((PyTypeObject *)part_type)->tp_as_buffer->bf_getbuffer = part_buffer;
#endif
}

static PyObject *allocate(PyObject *type) {
    allocfunc make = (allocfunc)PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc);
    return make((PyTypeObject *)type, 0);
}

/* Takes the memory of the batch over: by keeping the batch, or by a copy if too many batches are kept. */
static int own_memory(slot *s, leat_feed *feed, const leat_batch *batch, bool *copied) {
    size_t bytes = leat_tensor_bytes(&batch->tensors[0]);
    *copied = leat_feed_keep(feed, &s->kept, NULL) != LEAT_OK;
    s->memory = batch->tensors[0].data;
    if (!*copied) return 0;
    unsigned char *memory =
        aligned_alloc(SLOT_ALIGNMENT, (bytes + SLOT_ALIGNMENT - 1) / SLOT_ALIGNMENT * SLOT_ALIGNMENT);
    if (!memory) {
        s->memory = NULL;
        PyErr_NoMemory();
        return -1;
    }
    memcpy(memory, s->memory, bytes);
    s->memory = memory;
    return 0;
}

PyObject *view_part(PyObject *owner, const slot_part *where) {
    PyObject *made = allocate(part_type);
    if (!made) return NULL;
    part *p = (part *)made;
    Py_INCREF(owner);
    p->slot = owner;
    p->memory = ((slot *)owner)->memory + where->offset;
    p->bytes = (Py_ssize_t)where->bytes;
    return made;
}

PyObject *view_batch(leat_feed *feed, const leat_batch *batch, bool *copied) {
    PyObject *owner = allocate(slot_type), *parts = NULL;
    if (!owner) return NULL;
    if (own_memory((slot *)owner, feed, batch, copied) != 0) goto failed;
    const slot_header *header = (const void *)((slot *)owner)->memory;
    if (header->kind == KIND_STRUCTURE) {
        parts = build_structure(owner, header);
        Py_DECREF(owner);
        return parts ? Py_BuildValue("iN", (int)KIND_STRUCTURE, parts) : NULL;
    }
    parts = PyList_New((Py_ssize_t)header->count);
    for (uint64_t i = 0; parts && i < header->count; ++i) {
        PyObject *made = view_part(owner, &header->parts[i]);
        if (!made || PyList_SetItem(parts, (Py_ssize_t)i, made) != 0) goto failed;
    }
    if (!parts) goto failed;
    unsigned long long kind = header->kind;
    Py_DECREF(owner);
    return Py_BuildValue("KN", kind, parts);
failed:
    Py_XDECREF(parts);
    Py_DECREF(owner);
    return NULL;
}

PyObject *view_being_made(const slot_header *header) {
    PyObject *owner = allocate(slot_type);
    if (!owner) return NULL;
    ((slot *)owner)->borrowed = true;
    ((slot *)owner)->memory = (unsigned char *)(uintptr_t)header;
    PyObject *batch = build_structure(owner, header);
    Py_DECREF(owner);
    return batch;
}
