/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of a model that compute: fit, evaluate, predict, and the calls for one batch.  They run without the
 * interpreter's lock.  hooks.c has the callbacks. */
#include "hooks.h"

#include <string.h>

/* ---- lists of class weights ---- */

typedef struct class_weights {
    leat_output_class_weight *outputs;
    leat_class_weight *weights;
    int count;
} class_weights;

static void class_weights_clear(class_weights *w) {
    PyMem_Free(w->outputs);
    PyMem_Free(w->weights);
    *w = (class_weights){0};
}

/* Reads [(output, [(class, weight), ...]), ...] or None. */
static int class_weights_read(class_weights *w, PyObject *list) {
    *w = (class_weights){0};
    if (list == Py_None) return 0;
    Py_ssize_t outputs = PyList_Size(list), total = 0;
    for (Py_ssize_t i = 0; i < outputs; ++i) {
        const char *name = NULL;
        PyObject *pairs = NULL;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "sO!", &name, &PyList_Type, &pairs)) return -1;
        total += PyList_Size(pairs);
    }
    if (outputs < 0) return -1;
    w->outputs = PyMem_Calloc((size_t)outputs + 1, sizeof *w->outputs);
    w->weights = PyMem_Calloc((size_t)total + 1, sizeof *w->weights);
    if (!w->outputs || !w->weights) return PyErr_NoMemory(), -1;
    leat_class_weight *at = w->weights;
    for (; w->count < (int)outputs; ++w->count) {
        PyObject *pairs = NULL;
        leat_output_class_weight *output = &w->outputs[w->count];
        if (!PyArg_ParseTuple(PyList_GetItem(list, w->count), "sO", &output->output, &pairs)) return -1;
        output->weights = at;
        output->count = (int)PyList_Size(pairs);
        for (int k = 0; k < output->count; ++k, ++at) {
            long long index = 0;
            if (!PyArg_ParseTuple(PyList_GetItem(pairs, k), "Ld", &index, &at->weight)) return -1;
            at->class_index = index;
        }
    }
    return 0;
}

/* ---- ranks ---- */

/* Opens the communicator that (address of the MPI_Comm, library, timeout in ms) describes; None: no communicator. */
static int open_ranks(PyObject *comm, leat_dist **out) {
    unsigned long long address = 0;
    long long timeout = 0;
    leat_error err = {0};
    leat_status status = LEAT_OK;
    leat_dist_options options = leat_dist_options_default();
    *out = NULL;
    if (comm == Py_None) return 0;
    if (!PyArg_ParseTuple(comm, "KsL", &address, &options.library, &timeout)) return -1;
    options.kind = LEAT_DIST_MPI;
    options.communicator = (const void *)(uintptr_t)address;
    options.timeout_ms = timeout;
    Py_BEGIN_ALLOW_THREADS status = leat_dist_open(out, &options, &err);
    Py_END_ALLOW_THREADS if (status == LEAT_OK) return 0;
    raise_error(&err);
    return -1;
}

static void close_ranks(leat_dist **dist) {
    Py_BEGIN_ALLOW_THREADS leat_dist_close(dist);
    Py_END_ALLOW_THREADS
}

/* ---- fit ---- */

/* The arguments of fit: those that are Python objects, and C's options. */
typedef struct fit_arguments {
    PyObject *data, *validation, *callbacks, *class_weight, *checkpoints, *validation_epochs, *comm;
    leat_fit_options options;
    leat_checkpoint_options checkpoint;
    class_weights weights;
    int64_t *epochs;
} fit_arguments;

static int read_epochs(fit_arguments *a) {
    if (a->validation_epochs == Py_None) return 0;
    Py_ssize_t count = PyList_Size(a->validation_epochs);
    if (count < 0) return -1;
    a->epochs = PyMem_Calloc((size_t)count + 1, sizeof *a->epochs);
    if (!a->epochs) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < count; ++i)
        a->epochs[i] = PyLong_AsLongLong(PyList_GetItem(a->validation_epochs, i));
    a->options.validation_epochs = a->epochs;
    a->options.validation_epoch_count = (int)count;
    return PyErr_Occurred() ? -1 : 0;
}

/* Reads (folder, every_steps, every_ms, every_epochs, resume, keep) or None. */
static int read_checkpoints(fit_arguments *a) {
    long long steps = 0, ms = 0, epochs = 0;
    int resume = 0;
    if (a->checkpoints == Py_None) return 0;
    a->checkpoint = leat_checkpoint_options_default();
    if (!PyArg_ParseTuple(a->checkpoints, "sLLLpi", &a->checkpoint.folder, &steps, &ms, &epochs, &resume,
                          &a->checkpoint.keep))
        return -1;
    a->checkpoint.every_steps = steps;
    a->checkpoint.every_ms = ms;
    a->checkpoint.every_epochs = epochs;
    a->checkpoint.resume = resume;
    a->options.checkpoints = &a->checkpoint;
    return 0;
}

static int fit_read(fit_arguments *a, PyObject *args) {
    long long epochs = 1, first = 0, steps = 0, validation_steps = 0, freq = 1, window = 0, deadline = 0;
    unsigned long long seed = 0;
    int processes = 0, shuffle = 0, skip = 0, finite = 0, shards = 0;
    leat_fit_options *o = &a->options;
    *a = (fit_arguments){.options = leat_fit_options_default()};
    if (!PyArg_ParseTuple(args, "OOOOOOLLLiLLiiipiiLKpiLpOp", &a->data, &a->validation, &a->callbacks,
                          &a->class_weight, &a->checkpoints, &a->validation_epochs, &epochs, &first, &steps,
                          &o->verbose, &validation_steps, &freq, &o->max_queue_size, &o->workers,
                          &o->validation_workers, &processes, &o->threads, &shuffle, &window, &seed, &skip,
                          &o->faults.retries, &deadline, &finite, &a->comm, &shards))
        return -1;
    o->epochs = epochs;
    o->initial_epoch = first;
    o->steps_per_epoch = steps;
    o->validation_steps = validation_steps;
    o->validation_freq = freq;
    o->use_multiprocessing = processes;
    o->shuffle = (leat_shuffle)shuffle;
    o->shuffle_window = window;
    o->seed = seed;
    o->faults.bad_batch = skip ? LEAT_BAD_BATCH_SKIP : LEAT_BAD_BATCH_FAIL;
    o->faults.deadline_ms = deadline;
    o->faults.check_finite = finite;
    o->shard_optimizer = shards;
    if (class_weights_read(&a->weights, a->class_weight) != 0) return -1;
    o->output_class_weights = a->weights.outputs;
    o->output_class_weight_count = a->weights.count;
    return read_epochs(a) != 0 ? -1 : read_checkpoints(a);
}

static void fit_clear(fit_arguments *a) {
    class_weights_clear(&a->weights);
    PyMem_Free(a->epochs);
}

static PyObject *series_list(const leat_history *history, const char *name, PyObject **epochs) {
    int count = 0, epoch_count = 0;
    const double *values = leat_history_values(history, name, &count);
    const int64_t *numbers = leat_history_epochs(history, name, &epoch_count);
    PyObject *list = PyList_New(count);
    *epochs = PyList_New(epoch_count);
    for (int i = 0; list && i < count; ++i) PyList_SetItem(list, i, PyFloat_FromDouble(values[i]));
    for (int i = 0; *epochs && i < epoch_count; ++i)
        PyList_SetItem(*epochs, i, PyLong_FromLongLong(numbers[i]));
    return list;
}

/* Returns (series, verdict, json, stop reason): series is [(name, values, epochs), ...]. */
static PyObject *history_tuple(const leat_history *history, const call *c) {
    PyObject *series = PyList_New(0);
    for (int i = 0; series && i < leat_history_count(history); ++i) {
        const char *name = leat_history_name(history, i);
        PyObject *epochs = NULL, *values = series_list(history, name, &epochs);
        PyObject *item = Py_BuildValue("sNN", name, values, epochs);
        if (!item || PyList_Append(series, item) != 0) Py_CLEAR(series);
        Py_XDECREF(item);
    }
    leat_verdict verdict = {0};
    char *json = NULL;
    leat_error err = {0};
    if (history) leat_history_verdict_into(history, &verdict, sizeof verdict);
    if (history && leat_history_json(history, &json, &err) != LEAT_OK) json = NULL;
    PyObject *made =
        Py_BuildValue("Nszz", series, verdict.text, json, c->stop_reason[0] ? c->stop_reason : NULL);
    leat_string_free(json);
    return made;
}

/* Begins to use the data of a call.  Data that Python makes is made between the steps, on this thread. */
static int use_data(data_set *d, call *c) {
    leat_error err = {0};
    if (d->next && d->call) {
        leat_error_set_text(&err, LEAT_EBUSY, "the data is in use by another call");
        raise_error(&err);
        return -1;
    }
    if (d->next) d->call = c;
    ++d->users;
    return 0;
}

static void leave_data(data_set *d) {
    if (d->next) d->call = NULL;
    --d->users;
}

/* Runs fit with data in use.  The result is (status, error or None, history). */
static PyObject *run_fit(call *c, data_set *d, data_set *validation, fit_arguments *a) {
    leat_error err = {0};
    leat_history *history = NULL;
    leat_status status = LEAT_OK;
    hook_list hooks;
    if (hook_list_open(&hooks, c, a->callbacks) != 0) return NULL;
    a->options.callbacks = hooks.pointers;
    a->options.callback_count = hooks.count;
    if (validation) a->options.validation = &validation->sequence;
    Py_BEGIN_ALLOW_THREADS status =
        leat_model_fit_generator(c->model->model, &d->sequence, &a->options, &history, &err);
    Py_END_ALLOW_THREADS hook_list_close(&hooks);
    PyObject *told = history_tuple(history, c);
    leat_history_destroy(&history);
    if (!told) return NULL;
    PyObject *error = call_exception(c, status, &err);
    return error ? Py_BuildValue("NN", error, told) : (Py_DECREF(told), NULL);
}

/* fit(...): (exception or None, (series, verdict, json, stop reason)). */
PyObject *model_fit(PyObject *self, PyObject *args) {
    model *m = (model *)self;
    fit_arguments a;
    call c = {.model = m};
    PyObject *result = NULL;
    data_set *d = NULL, *validation = NULL;
    if (fit_read(&a, args) != 0 || !(d = data_of(a.data))) goto done;
    if (a.validation != Py_None && !(validation = data_of(a.validation))) goto done;
    if (model_begin(m) != 0) goto done;
    if (use_data(d, &c) == 0) {
        if (!validation || use_data(validation, &c) == 0) {
            if (open_ranks(a.comm, &a.options.dist) == 0) result = run_fit(&c, d, validation, &a);
            close_ranks(&a.options.dist);
            if (validation) leave_data(validation);
        }
        leave_data(d);
    }
    model_end(m);
done:
    fit_clear(&a);
    return result;
}

/* ---- evaluate and predict ---- */

static int evaluate_read(leat_evaluate_options *o, PyObject *args, PyObject **from, PyObject **callbacks,
                         PyObject **comm) {
    long long steps = 0;
    int processes = 0;
    unsigned long long seed = 0;
    *o = leat_evaluate_options_default();
    if (!PyArg_ParseTuple(args, "OOLiiipiKO", from, callbacks, &steps, &o->verbose, &o->max_queue_size,
                          &o->workers, &processes, &o->threads, &seed, comm))
        return -1;
    o->steps = steps;
    o->use_multiprocessing = processes;
    o->seed = seed;
    return 0;
}

typedef struct evaluation {
    leat_evaluate_options options;
    PyObject *from, *callbacks, *comm;
    leat_logs logs;
    leat_predictions *predictions;
    bool predict;
} evaluation;

static int run_evaluation(evaluation *e, call *c, data_set *d) {
    leat_error err = {0};
    leat_status status = LEAT_OK;
    hook_list hooks;
    if (hook_list_open(&hooks, c, e->callbacks) != 0) return -1;
    e->options.callbacks = hooks.pointers;
    e->options.callback_count = hooks.count;
    leat_model *made = c->model->model;
    Py_BEGIN_ALLOW_THREADS if (e->predict) status =
        leat_model_predict_generator(made, &d->sequence, &e->options, &e->predictions, &err);
    else status = leat_model_evaluate_generator(made, &d->sequence, &e->options, &e->logs, &err);
    Py_END_ALLOW_THREADS hook_list_close(&hooks);
    PyObject *error = call_exception(c, status, &err);
    if (error && error != Py_None) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return PyErr_Occurred() ? -1 : 0;
}

static int evaluate(evaluation *e, PyObject *self, PyObject *args) {
    model *m = (model *)self;
    call c = {.model = m};
    if (evaluate_read(&e->options, args, &e->from, &e->callbacks, &e->comm) != 0) return -1;
    data_set *d = data_of(e->from);
    if (!d || model_begin(m) != 0) return -1;
    int failed = use_data(d, &c);
    if (failed == 0) {
        failed = open_ranks(e->comm, &e->options.dist);
        if (failed == 0) failed = run_evaluation(e, &c, d);
        close_ranks(&e->options.dist);
        leave_data(d);
    }
    model_end(m);
    return failed;
}

PyObject *model_evaluate(PyObject *self, PyObject *args) {
    evaluation e = {.predict = false};
    return evaluate(&e, self, args) == 0 ? logs_dict(&e.logs) : NULL;
}

static void free_predictions(void *context) {
    leat_predictions *predictions = context;
    leat_predictions_destroy(&predictions);
}

/* predict(...): [memory of each output]. */
PyObject *model_predict(PyObject *self, PyObject *args) {
    evaluation e = {.predict = true};
    if (evaluate(&e, self, args) != 0) return leat_predictions_destroy(&e.predictions), NULL;
    leat_tensor nothing = {.dtype = LEAT_U8, .rank = 0};
    PyObject *owner = memory_new(&nothing, NULL, free_predictions, e.predictions);
    if (!owner) return NULL;
    int count = leat_predictions_count(e.predictions);
    PyObject *list = PyList_New(count);
    for (int i = 0; list && i < count; ++i) {
        leat_tensor output = leat_predictions_get(e.predictions, i);
        PyObject *item = memory_new(&output, owner, NULL, NULL);
        if (item)
            PyList_SetItem(list, i, item);
        else
            Py_CLEAR(list);
    }
    Py_DECREF(owner);
    return list;
}

/* ---- one batch ---- */

static PyObject *on_batch(PyObject *self, PyObject *args, bool train) {
    model *m = (model *)self;
    PyObject *inputs, *targets, *weights, *classes, *result = NULL;
    int reset = 1;
    leat_error err = {0};
    leat_logs logs = {0};
    leat_status status = LEAT_OK;
    array_set set = {0};
    class_weights by_class = {0};
    leat_on_batch_options options = leat_on_batch_options_default();
    if (!PyArg_ParseTuple(args, "OOOOp", &inputs, &targets, &weights, &classes, &reset)) return NULL;
    options.reset_metrics = reset;
    if (class_weights_read(&by_class, classes) != 0 || array_set_open(&set, inputs, targets, weights) != 0)
        goto done;
    options.output_class_weights = by_class.outputs;
    options.output_class_weight_count = by_class.count;
    if (model_begin(m) != 0) goto done;
    Py_BEGIN_ALLOW_THREADS status =
        train ? leat_model_train_on_batch_using(m->model, &set.arrays, &options, &logs, &err)
              : leat_model_test_on_batch_using(m->model, &set.arrays, &options, &logs, &err);
    Py_END_ALLOW_THREADS model_end(m);
    result = status == LEAT_OK ? logs_dict(&logs) : raise_error(&err);
done:
    array_set_close(&set);
    class_weights_clear(&by_class);
    return result;
}

PyObject *model_train_on_batch(PyObject *self, PyObject *args) {
    return on_batch(self, args, true);
}

PyObject *model_test_on_batch(PyObject *self, PyObject *args) {
    return on_batch(self, args, false);
}

/* predict_on_batch(inputs): [memory of each output]. */
PyObject *model_predict_on_batch(PyObject *self, PyObject *args) {
    model *m = (model *)self;
    PyObject *inputs, *list = NULL;
    leat_error err = {0};
    leat_status status = LEAT_OK;
    array_set set = {0};
    if (!PyArg_ParseTuple(args, "O", &inputs) || array_set_open(&set, inputs, Py_None, Py_None) != 0)
        return NULL;
    if (model_begin(m) != 0) goto done;
    int count = leat_model_output_count(m->model);
    leat_tensor *outputs = PyMem_Calloc((size_t)count + 1, sizeof *outputs);
    if (!outputs) PyErr_NoMemory();
    if (outputs) {
        Py_BEGIN_ALLOW_THREADS status = leat_model_predict_on_batch(m->model, &set.arrays, outputs, &err);
        Py_END_ALLOW_THREADS list = status == LEAT_OK ? PyList_New(count) : raise_error(&err);
    }
    for (int i = 0; list && i < count; ++i) {
        PyObject *item = memory_copy(&outputs[i]);
        if (item)
            PyList_SetItem(list, i, item);
        else
            Py_CLEAR(list);
    }
    PyMem_Free(outputs);
    model_end(m);
done:
    array_set_close(&set);
    return list;
}

/* ---- other threads ---- */

PyObject *model_publish(PyObject *self, PyObject *nothing) {
    (void)nothing;
    model *m = (model *)self;
    leat_error err = {0};
    leat_status status = LEAT_OK;
    if (model_begin(m) != 0) return NULL;
    Py_BEGIN_ALLOW_THREADS status = leat_model_publish(m->model, &err);
    Py_END_ALLOW_THREADS model_end(m);
    if (status != LEAT_OK) return raise_error(&err);
    Py_RETURN_NONE;
}

/* stop(reason): inside a hook the training stops like by a callback; otherwise after the current batch. */
PyObject *model_stop(PyObject *self, PyObject *nothing) {
    (void)nothing;
    model *m = (model *)self;
    m->stopping = true;
    Py_BEGIN_CRITICAL_SECTION(self);
    if (m->training && m->owner == PyThread_get_thread_ident())
        leat_training_stop(m->training, "model.stop_training was set");
    else
        leat_model_stop_training(m->model);
    Py_END_CRITICAL_SECTION();
    Py_RETURN_NONE;
}
