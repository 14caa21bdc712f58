/* SPDX-License-Identifier: Apache-2.0 */
/* The helper program of a feed, and the programs of its workers, in Python (leat/_helper.py). */
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
    bool forks;          /* Workers will be forked from this process. */
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
    if (!m->functions) {
        m->functions = PyMem_Calloc((size_t)leat_helper_feed_count(helper), sizeof *m->functions);
        if (!m->functions)
            return leat_error_set_text(err, LEAT_ENOMEM, "no memory for the functions of a feed");
    }
    const void *data = leat_helper_data(helper, 0, &bytes);
    set_leat_forks(false); /* unpickling may start programs */
    Py_XDECREF(m->described);
    m->described = NULL;
    m->described = PyObject_CallFunction(m->factory, "y#", data, (Py_ssize_t)bytes);
    int count = leat_helper_feed_count(helper);
    if (m->described && fill_all(sequences, m->functions, m->described, count) == 0) {
        set_leat_forks(m->forks);
        return LEAT_OK;
    }
    return report(err);
}

static PyObject *finish(maker *m, leat_status status, const leat_error *err) {
    set_leat_forks(false);
    Py_XDECREF(m->described);
    PyMem_Free(m->functions);
    if (status != LEAT_OK) return raise_error(err);
    Py_RETURN_NONE;
}

/* run_helper(descriptor, factory): the factory receives the bytes that the feed was opened with. */
PyObject *run_helper(PyObject *module, PyObject *args) {
    (void)module;
    int descriptor = 0;
    maker m = {.forks = true};
    leat_helper *helper = NULL;
    leat_error err = {0};
    if (!PyArg_ParseTuple(args, "iO", &descriptor, &m.factory)) return NULL;
    if (leat_helper_open(&helper, descriptor, &err) != LEAT_OK) return raise_error(&err);
    leat_status status = leat_helper_serve(helper, make_sequences, &m, &err);
    PyObject *result = finish(&m, status, &err);
    leat_helper_close(&helper);
    return result;
}

/* run_supervisor(descriptor, (word, ...)): the words of the command that starts a worker, at least one. */
PyObject *run_supervisor(PyObject *module, PyObject *args) {
    (void)module;
    enum { MOST_WORDS = 64 };
    const char *words[MOST_WORDS + 1] = {NULL};
    int descriptor = 0;
    PyObject *command = NULL, *bytes[MOST_WORDS] = {NULL}; /* `command` is borrowed */
    leat_helper *helper = NULL;
    leat_error err = {0};
    if (!PyArg_ParseTuple(args, "iO!", &descriptor, &PyTuple_Type, &command)) return NULL;
    Py_ssize_t count = PyTuple_Size(command);
    if (count > MOST_WORDS)
        PyErr_Format(PyExc_ValueError, "the workers' command has more than %d words", MOST_WORDS);
    for (Py_ssize_t i = 0; i < count && !PyErr_Occurred(); ++i) {
        bytes[i] = PyUnicode_EncodeFSDefault(PyTuple_GetItem(command, i));
        words[i] = bytes[i] ? PyBytes_AsString(bytes[i]) : NULL;
    }
    leat_status status = PyErr_Occurred() ? LEAT_EUSER : leat_helper_open(&helper, descriptor, &err);
    if (status == LEAT_OK) status = leat_helper_supervise(helper, words, &err);
    leat_helper_close(&helper);
    for (Py_ssize_t i = 0; i < count && i < MOST_WORDS; ++i) Py_XDECREF(bytes[i]);
    if (status != LEAT_OK) return raise_error(&err);
    Py_RETURN_NONE;
}

/* run_worker(word, factory): as run_helper, for one worker. */
PyObject *run_worker(PyObject *module, PyObject *args) {
    (void)module;
    const char *word = NULL;
    maker m = {.forks = false};
    leat_error err = {0};
    if (!PyArg_ParseTuple(args, "sO", &word, &m.factory)) return NULL;
    leat_status status = leat_helper_work(word, make_sequences, &m, &err);
    return finish(&m, status, &err);
}
