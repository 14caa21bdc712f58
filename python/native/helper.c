/* SPDX-License-Identifier: Apache-2.0 */
/* The helper program of a feed, in Python: python -m leat._helper DESCRIPTOR. */
#include "native.h"

#include "leat/helper.h"

/* Makes the sequence of the feed's helper from what the factory returns: (make, samples, by_samples, generator). */
static int fill(leat_sequence *sequence, source *functions, PyObject *described) {
    PyObject *make = NULL, *samples = NULL; /* borrowed */
    int by_samples = 0, generator = 0;
    if (!PyArg_ParseTuple(described, "OOpp", &make, &samples, &by_samples, &generator)) return -1;
    *functions = (source){.make = make, .samples = samples, .length = samples, .workers = SOURCE_PROCESSES};
    return source_sequence(sequence, functions, by_samples, generator, 1, 4096);
}

/* Makes the sequences: of one feed from a tuple, of feeds that are opened together from a list of tuples. */
static int fill_all(leat_sequence *sequences, source *functions, PyObject *described, int count) {
    if (!PyList_Check(described)) return count == 1 ? fill(sequences, functions, described) : -1;
    for (int i = 0; i < count; ++i) {
        PyObject *one = PyList_GetItem(described, i);
        if (!one || fill(&sequences[i], &functions[i], one) != 0) return -1;
        if (i > 0) sequences[i].worker_init = NULL; /* It is called once for each worker process. */
    }
    return 0;
}

typedef struct maker {
    PyObject *factory;   /* makes (make, samples, by_samples, generator) of bytes, or a list of such tuples */
    PyObject *described; /* what the factory has returned */
    source *functions;   /* of each feed */
} maker;

/* Writes the exception that is set into *err; it stays set, for the caller of run_helper. */
static leat_status report(leat_error *err) {
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *text = value ? PyObject_Str(value) : NULL, *utf8 = text ? PyUnicode_AsUTF8String(text) : NULL;
    leat_status status =
        leat_error_set_text(err, LEAT_EUSER, utf8 ? PyBytes_AsString(utf8) : "the data cannot be made");
    Py_XDECREF(text);
    Py_XDECREF(utf8);
    PyErr_Restore(type, value, trace);
    return status;
}

/* A leat_helper_make. */
static leat_status make_sequences(void *user, const leat_helper *helper, leat_sequence *sequences,
                                  leat_error *err) {
    maker *m = user;
    size_t bytes = 0;
    const void *data = leat_helper_data(helper, 0, &bytes);
    set_leat_forks(false); /* unpickling may start programs */
    Py_XDECREF(m->described);
    m->described = NULL;
    m->described = PyObject_CallFunction(m->factory, "y#", data, (Py_ssize_t)bytes);
    int count = leat_helper_feed_count(helper);
    if (m->described && fill_all(sequences, m->functions, m->described, count) == 0) {
        set_leat_forks(true);
        return LEAT_OK;
    }
    return report(err);
}

static PyObject *serve(leat_helper *helper, PyObject *factory) {
    leat_error err = {0};
    maker m = {.factory = factory};
    m.functions = PyMem_Calloc((size_t)leat_helper_feed_count(helper), sizeof *m.functions);
    if (!m.functions) return PyErr_NoMemory();
    leat_status status = leat_helper_serve(helper, make_sequences, &m, &err);
    set_leat_forks(false);
    Py_XDECREF(m.described);
    PyMem_Free(m.functions);
    if (status != LEAT_OK) return raise_error(&err);
    Py_RETURN_NONE;
}

/* run_helper(descriptor, factory): the factory receives the bytes that the feed was opened with. */
PyObject *run_helper(PyObject *module, PyObject *args) {
    (void)module;
    int descriptor = 0;
    PyObject *factory = NULL;
    leat_helper *helper = NULL;
    leat_error err = {0};
    if (!PyArg_ParseTuple(args, "iO", &descriptor, &factory)) return NULL;
    if (leat_helper_open(&helper, descriptor, &err) != LEAT_OK) return raise_error(&err);
    PyObject *result = serve(helper, factory);
    leat_helper_close(&helper);
    return result;
}
