/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks: Python's objects as C's hooks, and a hook that looks at Python's signals. */
#include "hooks.h"

#include <string.h>
#include <time.h>

enum { SIGNAL_PERIOD_NS = 20000000 };

#define HOOK_NAME(name)  #name,
#define HOOK_INDEX(name) HOOK_##name,
static const char *const hook_names[] = {LEAT_HOOK_LIST(HOOK_NAME)};
enum { LEAT_HOOK_LIST(HOOK_INDEX) HOOK_COUNT };

/* A Python callback: what leat_callback.user points to. */
typedef struct hooks {
    call *call;
    PyObject *set_params;
    PyObject *functions[HOOK_COUNT]; /* NULL: no such hook */
} hooks;

/* ---- exceptions ---- */

leat_status call_failed(call *c, const char *where, leat_error *err) {
    if (c->error_type)
        PyErr_Clear(); /* The first exception is the cause. */
    else
        PyErr_Fetch(&c->error_type, &c->error, &c->error_trace);
    return leat_error_set(err, LEAT_EUSER, "%s raised an exception", where);
}

PyObject *call_exception(call *c, leat_status status, const leat_error *err) {
    if (c->error_type)
        PyErr_Restore(c->error_type, c->error, c->error_trace);
    else if (status != LEAT_OK)
        raise_error(err);
    else
        Py_RETURN_NONE;
    PyObject *type = NULL, *error = NULL, *trace = NULL;
    c->error_type = c->error = c->error_trace = NULL;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    if (error && trace) PyException_SetTraceback(error, trace);
    Py_XDECREF(type);
    Py_XDECREF(trace);
    return error;
}

/* ---- logs ---- */

PyObject *logs_dict(const leat_logs *logs) {
    PyObject *dict = PyDict_New();
    for (int i = 0; dict && i < logs->count; ++i) {
        PyObject *value = PyFloat_FromDouble(logs->items[i].value);
        if (!value || PyDict_SetItemString(dict, logs->items[i].name, value) != 0) Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

/* Writes numbers that a hook has added or changed back to C's logs. */
static void take_logs(leat_logs *logs, PyObject *dict) {
    PyObject *key = NULL, *value = NULL; /* borrowed */
    PyObject *copy = PyDict_Copy(dict);  /* Another thread may change a dict that the hook has kept. */
    Py_ssize_t at = 0;
    while (copy && PyDict_Next(copy, &at, &key, &value)) {
        double number = PyFloat_AsDouble(value), before = 0;
        PyObject *bytes = PyErr_Occurred() ? NULL : PyUnicode_AsUTF8String(key);
        const char *name = bytes ? PyBytes_AsString(bytes) : NULL;
        PyErr_Clear(); /* A value that is no number is not recorded. */
        if (name && (!leat_logs_get(logs, name, &before) || before != number))
            leat_logs_set(logs, name, number);
        Py_XDECREF(bytes);
    }
    Py_XDECREF(copy);
    PyErr_Clear();
}

/* ---- a Python callback ---- */

static PyObject *params_dict(const leat_training_params *p) {
    PyObject *metrics = PyList_New(p->metric_count);
    for (int i = 0; metrics && i < p->metric_count; ++i)
        PyList_SetItem(metrics, i, PyUnicode_FromString(p->metrics[i]));
    return Py_BuildValue("{sLsLsLsLsisNsN}", "epochs", (long long)p->epochs, "steps", (long long)p->steps,
                         "samples", (long long)p->samples, "batch_size", (long long)p->batch_size, "verbose",
                         p->verbose, "do_validation", PyBool_FromLong(p->do_validation), "metrics", metrics);
}

static int begin_hooks(const hooks *h, const leat_training *training) {
    PyObject *params = params_dict(leat_training_params_get(training));
    PyObject *made = params ? PyObject_CallFunctionObjArgs(h->set_params, params, NULL) : NULL;
    Py_XDECREF(params);
    Py_XDECREF(made);
    return made ? 0 : -1;
}

static leat_status call_hook(void *user, int hook, leat_training *training, int64_t index, leat_logs *logs,
                             leat_error *err) {
    const hooks *h = user;
    leat_status status = LEAT_OK;
    PyGILState_STATE state = PyGILState_Ensure();
    leat_training *outer = h->call->model->training;
    h->call->model->training = training;
    bool begins = hook == HOOK_on_train_begin || hook == HOOK_on_test_begin || hook == HOOK_on_predict_begin;
    int failed = begins && h->set_params ? begin_hooks(h, training) : 0;
    PyObject *dict = failed || !h->functions[hook] ? NULL : logs_dict(logs), *made = NULL;
    if (dict) {
        made = PyObject_CallFunction(h->functions[hook], "LO", (long long)index, dict);
        if (made && hook == HOOK_on_epoch_end) take_logs(logs, dict);
    }
    if (failed || (h->functions[hook] && !made)) status = call_failed(h->call, hook_names[hook], err);
    Py_XDECREF(made);
    Py_XDECREF(dict);
    h->call->model->training = outer;
    PyGILState_Release(state);
    return status;
}

#define HOOK_FUNCTION(name)                                                                                  \
    static leat_status run_##name(void *user, leat_training *training, int64_t index, leat_logs *logs,       \
                                  leat_error *err) {                                                         \
        return call_hook(user, HOOK_##name, training, index, logs, err);                                     \
    }
LEAT_HOOK_LIST(HOOK_FUNCTION)

static void destroy_hooks(void *user) {
    hooks *h = user;
    Py_XDECREF(h->set_params);
    for (int i = 0; i < HOOK_COUNT; ++i) Py_XDECREF(h->functions[i]);
    PyMem_Free(h);
}

static PyObject *find_function(PyObject *functions, const char *name) {
    PyObject *found = PyDict_GetItemString(functions, name);
    Py_XINCREF(found);
    return found;
}

static int make_hooks(leat_callback *out, call *c, PyObject *functions) {
    hooks *h = PyMem_Calloc(1, sizeof *h);
    if (!h) return PyErr_NoMemory(), -1;
    *out = leat_callback_default();
    out->user = h;
    out->destroy = destroy_hooks;
    h->call = c;
    h->set_params = find_function(functions, "set_params");
    for (int i = 0; i < HOOK_COUNT; ++i) h->functions[i] = find_function(functions, hook_names[i]);
#define HOOK_SET(name)                                                                                       \
    if (h->functions[HOOK_##name]) out->name = run_##name;
    LEAT_HOOK_LIST(HOOK_SET)
    if (h->set_params) {
        out->on_train_begin = run_on_train_begin;
        out->on_test_begin = run_on_test_begin;
        out->on_predict_begin = run_on_predict_begin;
    }
    return 0;
}

/* ---- Python's signals ---- */

/* Looks at Python's signals a few times a second, so that Ctrl-C ends the call. */
static leat_status look_at_signals(void *user, leat_training *training, int64_t index, leat_logs *logs,
                                   leat_error *err) {
    call *c = user;
    struct timespec time;
    (void)training, (void)index, (void)logs;
    clock_gettime(CLOCK_MONOTONIC, &time);
    int64_t now = (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
    if (now - c->looked_ns < SIGNAL_PERIOD_NS) return LEAT_OK;
    c->looked_ns = now;
    PyGILState_STATE state = PyGILState_Ensure();
    leat_status status = PyErr_CheckSignals() == 0 ? LEAT_OK : call_failed(c, "a signal handler", err);
    PyGILState_Release(state);
    return status;
}

static leat_status note_stop(void *user, leat_training *training, int64_t index, leat_logs *logs,
                             leat_error *err) {
    call *c = user;
    const char *reason = leat_training_stop_reason(training);
    (void)index, (void)logs, (void)err;
    if (reason) {
        strncpy(c->stop_reason, reason, sizeof c->stop_reason - 1);
        c->stop_reason[sizeof c->stop_reason - 1] = '\0';
    }
    return LEAT_OK;
}

static leat_callback signal_callback(call *c) {
    leat_callback callback = leat_callback_default();
    callback.user = c;
    callback.on_train_batch_end = look_at_signals;
    callback.on_test_batch_end = look_at_signals;
    callback.on_predict_batch_end = look_at_signals;
    callback.on_train_end = note_stop;
    return callback;
}

/* ---- callbacks of the library that no text describes ---- */

enum { MAX_TEXTS = 64 };

/* Reads a list of texts, which the list owns.  The bytes objects that hold the texts go to *keep. */
static int read_texts(const char **out, int *count, PyObject *list, PyObject *keep) {
    Py_ssize_t length = PyList_Size(list);
    if (length > MAX_TEXTS) PyErr_Format(PyExc_ValueError, "at most %d headers or labels", (int)MAX_TEXTS);
    for (Py_ssize_t i = 0; !PyErr_Occurred() && i < length; ++i) {
        PyObject *bytes = PyUnicode_AsUTF8String(PyList_GetItem(list, i));
        if (bytes) out[(*count)++] = PyBytes_AsString(bytes);
        if (bytes) PyList_Append(keep, bytes);
        Py_XDECREF(bytes);
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* Creates the callback of ("RemoteMonitor", root, path, field, headers, send_as_json). */
static leat_status make_remote_monitor(leat_callback *out, PyObject *item, PyObject *keep, leat_error *err) {
    const char *name = NULL, *headers[MAX_TEXTS];
    PyObject *list = NULL;
    int as_json = 0;
    leat_remote_monitor_options o = leat_remote_monitor_options_default();
    if (!PyArg_ParseTuple(item, "ssssOp", &name, &o.root, &o.path, &o.field, &list, &as_json) ||
        read_texts(headers, &o.header_count, list, keep) != 0)
        return LEAT_EUSER;
    o.headers = headers;
    o.send_as_json = as_json;
    return leat_remote_monitor_create(out, sizeof *out, &o, err);
}

/* Creates the callback of ("OpenMetrics", path, labels, every_ms). */
static leat_status make_open_metrics(leat_callback *out, PyObject *item, PyObject *keep, leat_error *err) {
    const char *name = NULL, *labels[MAX_TEXTS];
    PyObject *list = NULL;
    long long every_ms = 0;
    leat_open_metrics_options o = leat_open_metrics_options_default();
    if (!PyArg_ParseTuple(item, "ssOL", &name, &o.path, &list, &every_ms) ||
        read_texts(labels, &o.label_count, list, keep) != 0)
        return LEAT_EUSER;
    o.labels = labels;
    o.every_ms = every_ms;
    return leat_open_metrics_create(out, sizeof *out, &o, err);
}

static int make_described(leat_callback *out, PyObject *item) {
    leat_error err = {0};
    PyObject *keep = PyList_New(0);
    if (!keep) return -1;
    leat_status status = PyTuple_Size(item) == 6 ? make_remote_monitor(out, item, keep, &err)
                                                 : make_open_metrics(out, item, keep, &err);
    Py_DECREF(keep);
    if (status == LEAT_OK) return 0;
    raise_error(&err);
    return -1;
}

/* ---- lists ---- */

static int add_callback(leat_callback *out, call *c, PyObject *item) {
    if (PyDict_Check(item)) return make_hooks(out, c, item);
    if (PyTuple_Check(item)) return make_described(out, item);
    leat_error err = {0};
    PyObject *bytes = PyUnicode_AsUTF8String(item);
    if (!bytes) return -1;
    leat_status status = leat_callback_from_text(out, sizeof *out, PyBytes_AsString(bytes), &err);
    Py_DECREF(bytes);
    if (status == LEAT_OK) return 0;
    raise_error(&err);
    return -1;
}

int hook_list_open(hook_list *out, call *c, PyObject *callbacks) {
    *out = (hook_list){0};
    Py_ssize_t count = PyList_Size(callbacks);
    if (count < 0) return -1;
    out->items = PyMem_Calloc((size_t)count + 1, sizeof *out->items);
    out->pointers = PyMem_Calloc((size_t)count + 1, sizeof *out->pointers);
    if (!out->items || !out->pointers) {
        hook_list_close(out);
        return PyErr_NoMemory(), -1;
    }
    out->items[0] = signal_callback(c);
    for (Py_ssize_t i = 0; i <= count; ++i) {
        if (i > 0 && add_callback(&out->items[i], c, PyList_GetItem(callbacks, i - 1)) != 0) {
            hook_list_close(out);
            return -1;
        }
        out->pointers[i] = &out->items[i];
        ++out->count;
    }
    return 0;
}

void hook_list_close(hook_list *list) {
    for (int i = 0; i < list->count; ++i) leat_callback_destroy(&list->items[i]);
    PyMem_Free(list->items);
    PyMem_Free(list->pointers);
    *list = (hook_list){0};
}
