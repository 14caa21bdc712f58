/* SPDX-License-Identifier: Apache-2.0 */
/* The modules leat._native and, with LEAT_TRAINER, leat._trainer: their types and their functions. */
#include "native.h"
#if defined(LEAT_TRAINER)
#include "trainer.h"
#endif

#include "leat/rng.h"
#include "leat/version.h"

/* Set once, when the module is made: the module supports one interpreter. */
PyObject *slot_type, *part_type;
static PyObject *error_maker;

PyObject *raise_error(const leat_error *err) {
    if (PyErr_Occurred()) return NULL; /* A Python function of the data failed: its exception says more. */
    PyObject *made = error_maker ? PyObject_CallFunction(error_maker, "is", (int)err->code, err->message)
                                 : PyObject_CallFunction(PyExc_RuntimeError, "s", err->message);
    if (!made) return NULL;
    PyErr_SetObject((PyObject *)Py_TYPE(made), made);
    Py_DECREF(made);
    return NULL;
}

static PyObject *set_error_maker(PyObject *module, PyObject *maker) {
    (void)module;
    Py_INCREF(maker);
    Py_XDECREF(error_maker);
    error_maker = maker;
    Py_RETURN_NONE;
}

static PyObject *version(PyObject *module, PyObject *nothing) {
    (void)module, (void)nothing;
    return PyUnicode_FromString(leat_version());
}

/* random_key(seed, pass, index): the key and the stream of leat_rng_for. */
static PyObject *random_key(PyObject *module, PyObject *args) {
    (void)module;
    unsigned long long seed = 0, pass = 0, index = 0;
    if (!PyArg_ParseTuple(args, "KKK", &seed, &pass, &index)) return NULL;
    leat_rng rng = leat_rng_for(seed, pass, index);
    return Py_BuildValue("KK", (unsigned long long)rng.key, (unsigned long long)rng.counter[1]);
}

static PyMethodDef functions[] = {
    {"set_error_maker", set_error_maker, METH_O, "Sets the function (code, message) that makes exceptions."},
    {"version", version, METH_NOARGS, "Returns the version of the C library."},
    {"random_key", random_key, METH_VARARGS, "Returns the key and the stream of (seed, pass, index)."},
    {"open_together", open_together, METH_VARARGS, "Opens feeds that share their worker processes."},
    {"encode_structure", encode_structure, METH_O, "Returns the parts of a batch, or None."},
    {"make_immortal", make_immortal, METH_O, "Stops the counting of references to an object's parts."},
    {"begin_in_place", begin_in_place, METH_O, "Returns a batch in the slot, to be filled."},
    {"set_array_types", set_array_types, METH_VARARGS, "Sets the types of NumPy and torch."},
    {"run_helper", run_helper, METH_VARARGS, "Runs the helper program of a feed until the feed is closed."},
    {"run_supervisor", run_supervisor, METH_VARARGS,
     "Runs a helper program whose workers are programs, too."},
    {"run_worker", run_worker, METH_VARARGS, "Runs a worker that is a program until the feed is closed."},
    {0}};

#if defined(LEAT_TRAINER)
#define MODULE_NAME "leat._trainer"
#define MODULE_INIT PyInit__trainer
#else
#define MODULE_NAME "leat._native"
#define MODULE_INIT PyInit__native
#endif

#if !defined(LEAT_TRAINER)
static int trainer_add(PyObject *module) {
    (void)module;
    return 0;
}
#endif

static struct PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                        .m_name = MODULE_NAME,
                                        .m_doc = "leat, as C sees it.",
                                        .m_size = -1,
                                        .m_methods = functions};

int add_type(PyObject *module, const char *name, PyType_Spec *spec, PyObject **out) {
    PyObject *type = PyType_FromSpec(spec);
    if (!type) return -1;
    if (out) {
        Py_INCREF(type);
        *out = type;
    }
    if (PyModule_AddObject(module, name, type) == 0) return 0;
    Py_DECREF(type);
    return -1;
}

/* PyMODINIT_FUNC exports the function only from Python 3.9 on. */
__attribute__((visibility("default"))) PyMODINIT_FUNC MODULE_INIT(void);
PyMODINIT_FUNC MODULE_INIT(void) {
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    if (watch_forks() != 0) {
        Py_DECREF(module);
        return PyErr_NoMemory();
    }
#if defined(Py_GIL_DISABLED)
    PyUnstable_Module_SetGIL(module, Py_MOD_GIL_NOT_USED);
#endif
    if (add_type(module, "Feed", &feed_spec, NULL) == 0 &&
        add_type(module, "Slot", &slot_spec, &slot_type) == 0 &&
        add_type(module, "Part", &part_spec, &part_type) == 0 && trainer_add(module) == 0) {
        finish_part_type();
        return module;
    }
    Py_DECREF(module);
    return NULL;
}
