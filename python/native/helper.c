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

static PyObject *serve(leat_helper *helper, PyObject *factory) {
    size_t bytes = 0;
    const void *data = leat_helper_data(helper, 0, &bytes);
    leat_error err = {0};
    leat_sequence sequence;
    source functions = {0};
    PyObject *described = PyObject_CallFunction(factory, "y#", data, (Py_ssize_t)bytes);
    if (!described || fill(&sequence, &functions, described) != 0) {
        PyObject *type = NULL, *value = NULL, *trace = NULL;
        PyErr_Fetch(&type, &value, &trace);
        PyErr_NormalizeException(&type, &value, &trace);
        PyObject *text = value ? PyObject_Str(value) : NULL,
                 *utf8 = text ? PyUnicode_AsUTF8String(text) : NULL;
        leat_error_set_text(&err, LEAT_EUSER, utf8 ? PyBytes_AsString(utf8) : "the data cannot be made");
        leat_helper_fail(helper, &err);
        Py_XDECREF(text);
        Py_XDECREF(utf8);
        PyErr_Restore(type, value, trace);
        Py_XDECREF(described);
        return NULL;
    }
    leat_status status = leat_helper_run(helper, &sequence, 1, &err);
    Py_DECREF(described);
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
