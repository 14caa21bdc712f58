/* SPDX-License-Identifier: Apache-2.0 */
/* The type leat._trainer.Data: a sequence of batches made from arrays, from a SPEC, or by functions of Python. */
#include "trainer.h"

PyObject *data_type;

static PyObject *data_alloc(void) {
    return allocate_object(data_type);
}

data_set *data_of(PyObject *object) {
    if ((PyObject *)Py_TYPE(object) != data_type) {
        PyErr_SetString(PyExc_TypeError, "expected data of leat._trainer");
        return NULL;
    }
    data_set *d = (data_set *)object;
    if (d->sequence.size) return d;
    leat_error err = {0};
    leat_error_set_text(&err, LEAT_EINVAL, "the data is closed");
    raise_error(&err);
    return NULL;
}

static void release_kept(data_set *d) {
    for (int i = 0; d->kept && i < KEPT_BATCHES * d->sequence.spec.tensor_count; ++i)
        array_close(&d->kept[i]);
    PyMem_Free(d->kept);
    d->kept = NULL;
}

static void close_data(data_set *d) {
    release_kept(d);
    ahead_free(d->ahead);
    d->ahead = NULL;
    Py_BEGIN_ALLOW_THREADS leat_sequence_destroy(&d->sequence);
    Py_END_ALLOW_THREADS array_set_close(&d->arrays);
    Py_CLEAR(d->next);
    Py_CLEAR(d->length);
}

static void data_dealloc(PyObject *self) {
    close_data((data_set *)self);
    free_object(self);
}

static PyObject *data_close(PyObject *self, PyObject *nothing) {
    (void)nothing;
    data_set *d = (data_set *)self;
    if (d->users > 0) {
        leat_error err = {0};
        leat_error_set_text(&err, LEAT_EBUSY,
                            "the data is in use: close the feed, or end the fit, that reads from it");
        return raise_error(&err);
    }
    close_data(d);
    Py_RETURN_NONE;
}

/* ---- arrays and SPECs ---- */

PyObject *arrays_data(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *inputs, *targets, *weights;
    long long batch_size = 0;
    leat_error err = {0};
    if (!PyArg_ParseTuple(args, "OOOL", &inputs, &targets, &weights, &batch_size)) return NULL;
    data_set *d = (data_set *)data_alloc();
    if (!d) return NULL;
    leat_source_options options = leat_source_options_default();
    options.batch_size = batch_size;
    if (array_set_open(&d->arrays, inputs, targets, weights) != 0) goto failed;
    if (leat_arrays_open(&d->sequence, sizeof d->sequence, &d->arrays.arrays, &options, &err) == LEAT_OK)
        return (PyObject *)d;
    raise_error(&err);
failed:
    Py_DECREF((PyObject *)d);
    return NULL;
}

PyObject *source_data(PyObject *module, PyObject *args) {
    (void)module;
    const char *spec = NULL;
    long long batch_size = 0;
    int read_statistics = 0;
    double validation_split = 0;
    leat_error err = {0};
    leat_status status = LEAT_OK;
    if (!PyArg_ParseTuple(args, "sLpd", &spec, &batch_size, &read_statistics, &validation_split)) return NULL;
    data_set *d = (data_set *)data_alloc();
    if (!d) return NULL;
    leat_source_options options = leat_source_options_default();
    options.batch_size = batch_size;
    options.read_statistics = read_statistics != 0;
    options.validation_split = validation_split;
    Py_BEGIN_ALLOW_THREADS status = leat_source_open(&d->sequence, sizeof d->sequence, spec, &options, &err);
    Py_END_ALLOW_THREADS if (status == LEAT_OK) return (PyObject *)d;
    Py_DECREF((PyObject *)d);
    return raise_error(&err);
}

/* split(share): two new Data; this one is closed. */
static PyObject *data_split(PyObject *self, PyObject *args) {
    double share = 0;
    leat_error err = {0};
    data_set *whole = data_of(self);
    if (!whole || !PyArg_ParseTuple(args, "d", &share)) return NULL;
    if (whole->users > 0) return data_close(self, NULL);
    data_set *first = (data_set *)data_alloc(), *last = (data_set *)data_alloc();
    if (first && last &&
        leat_sequence_split(&whole->sequence, share, &first->sequence, &last->sequence,
                            sizeof first->sequence, &err) == LEAT_OK)
        return Py_BuildValue("NN", first, last);
    Py_XDECREF((PyObject *)first);
    Py_XDECREF((PyObject *)last);
    return err.code ? raise_error(&err) : NULL;
}

/* windows(length, stride, sampling_rate, start, end, target, starts, reverse, squeeze): new Data, which takes over the
 * arrays; this one is closed. */
static PyObject *data_windows(PyObject *self, PyObject *args) {
    long long numbers[7];
    int reverse = 0, squeeze = 0;
    leat_error err = {0};
    data_set *whole = data_of(self);
    if (!whole || !PyArg_ParseTuple(args, "LLLLLLLpp", &numbers[0], &numbers[1], &numbers[2], &numbers[3],
                                    &numbers[4], &numbers[5], &numbers[6], &reverse, &squeeze))
        return NULL;
    data_set *made = (data_set *)data_alloc();
    if (!made) return NULL;
    leat_window_options options = leat_window_options_default();
    options.length = numbers[0];
    options.stride = numbers[1];
    options.sampling_rate = numbers[2];
    options.start = numbers[3];
    options.end = numbers[4];
    options.target = numbers[5];
    options.starts = numbers[6];
    options.reverse = reverse != 0;
    options.squeeze = squeeze != 0;
    if (leat_sequence_windows(&whole->sequence, &options, &made->sequence, sizeof made->sequence, &err) ==
        LEAT_OK) {
        made->arrays = whole->arrays;
        whole->arrays = (array_set){0};
        return (PyObject *)made;
    }
    Py_DECREF((PyObject *)made);
    return raise_error(&err);
}

/* ---- batches that Python makes ---- */

int take_arrays(const data_set *d, PyObject *made, array_view *views, leat_batch *batch, leat_error *err) {
    Py_ssize_t count = PyList_Size(made);
    if (count < 0) return -1;
    if (count != batch->tensor_count)
        return leat_error_set(err, LEAT_ESHAPE, "a batch has %d arrays, the first one had %d", (int)count,
                              (int)batch->tensor_count),
               1;
    for (int i = 0; i < batch->tensor_count; ++i) {
        array_close(&views[i]);
        PyObject *array = PyList_GetItem(made, i);
        if (!array || array_open(&views[i], array) != 0) return -1;
        const leat_tensor *t = &views[i].tensor;
        if (t->dtype != d->sequence.spec.tensors[i].dtype || t->rank < 1 || !views[i].contiguous)
            return leat_error_set(err, LEAT_EDTYPE,
                                  "array %d of a batch has another type than in the first one", i),
                   1;
        batch->size = i == 0 ? t->shape[0] : batch->size;
        batch->tensors[i] = *t;
    }
    return 0;
}

/* Makes a batch on the thread of the call.  The feed reads the arrays until the next batch, or the one after it, is
 * made. */
static leat_status make_batch(data_set *d, int64_t index, leat_batch *batch, leat_error *err) {
    array_view *views = d->kept + (ptrdiff_t)d->kept_turn * batch->tensor_count;
    d->kept_turn = (d->kept_turn + 1) % KEPT_BATCHES;
    PyGILState_STATE state = PyGILState_Ensure();
    leat_status status = LEAT_OK;
    PyObject *made = PyObject_CallFunction(d->next, "L", (long long)index);
    int failed = 0;
    if (!made)
        failed = -1;
    else if (made != Py_None)
        failed = take_arrays(d, made, views, batch, err);
    else if (d->sequence.next)
        batch->size = 0; /* the end of a generator */
    else
        status = leat_error_set_text(err, LEAT_ESKIPPED, "the pass has no further batch");
    Py_XDECREF(made);
    if (failed > 0) status = (leat_status)err->code;
    if (failed < 0) status = call_failed(d->call, "the data", err);
    PyGILState_Release(state);
    return status;
}

static leat_status take_batch(data_set *d, int64_t index, leat_batch *batch, leat_error *err) {
    return d->ahead ? ahead_take(d, index, batch, err) : make_batch(d, index, batch, err);
}

static leat_status get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    (void)rng;
    return take_batch(user, index, batch, err);
}

static leat_status next(void *user, leat_rng *rng, leat_batch *batch, leat_error *err) {
    (void)rng;
    return take_batch(user, -1, batch, err);
}

static int64_t length(void *user) {
    data_set *d = user;
    leat_error err = {0};
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *made = PyObject_CallFunction(d->length, NULL);
    long long number = made ? PyLong_AsLongLong(made) : -1;
    Py_XDECREF(made);
    if (PyErr_Occurred()) {
        if (d->call) call_failed(d->call, "the length", &err);
        number = 0;
    }
    PyGILState_Release(state);
    return number;
}

/* Reads [(part, name, dtype, (size, ...)), ...]. */
static int read_spec(leat_batch_spec *spec, PyObject *list, leat_error *err) {
    Py_ssize_t count = PyList_Size(list);
    for (Py_ssize_t i = 0; i < count; ++i) {
        int part = 0;
        const char *name = NULL, *dtype_name = NULL;
        PyObject *sizes = NULL;
        PyObject *item = PyList_GetItem(list, i);
        leat_dtype dtype = LEAT_F32;
        int64_t shape[LEAT_MAX_RANK] = {0};
        if (!item || !PyArg_ParseTuple(item, "izsO!", &part, &name, &dtype_name, &PyTuple_Type, &sizes))
            return -1;
        Py_ssize_t rank = PyTuple_Size(sizes);
        for (Py_ssize_t k = 0; k < rank && k < LEAT_MAX_RANK; ++k)
            shape[k] = PyLong_AsLongLong(PyTuple_GetItem(sizes, k));
        if (PyErr_Occurred()) return -1;
        if (leat_dtype_parse(&dtype, dtype_name, err) != LEAT_OK ||
            leat_batch_spec_add(spec, (leat_batch_part)part, name, dtype, (int)rank, shape, err) != LEAT_OK)
            return 1;
    }
    return count < 0 ? -1 : 0;
}

/* python_data(next, length, spec, batch_size, depth): `depth` batches are taken ahead by the thread that calls
 * run_ahead(); 0: by the thread of the call. */
PyObject *python_data(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *next_function, *length_function, *spec;
    long long batch_size = 0;
    int depth = 0;
    leat_error err = {0};
    if (!PyArg_ParseTuple(args, "OOOLi", &next_function, &length_function, &spec, &batch_size, &depth))
        return NULL;
    data_set *d = (data_set *)data_alloc();
    if (!d) return NULL;
    leat_sequence_init(&d->sequence, sizeof d->sequence);
    d->sequence.user = d;
    d->sequence.spec.batch_size = batch_size;
    int failed = read_spec(&d->sequence.spec, spec, &err);
    if (failed == 0) {
        d->kept = PyMem_Calloc(KEPT_BATCHES * (size_t)d->sequence.spec.tensor_count, sizeof *d->kept);
        if (!d->kept) failed = (PyErr_NoMemory(), -1);
    }
    if (failed == 0 && depth > 0) {
        d->ahead = ahead_new(depth, d->sequence.spec.tensor_count);
        if (!d->ahead) failed = -1;
    }
    if (failed != 0) {
        Py_DECREF((PyObject *)d);
        return failed > 0 ? raise_error(&err) : NULL;
    }
    Py_INCREF(next_function);
    d->next = next_function;
    if (length_function == Py_None)
        d->sequence.next = next;
    else {
        Py_INCREF(length_function);
        d->length = length_function;
        d->sequence.length = length;
        d->sequence.get = get;
    }
    return (PyObject *)d;
}

/* ---- batches of a feed ---- */

/* What the arrays of a batch keep: the batch, and the data, since its memory may be that of a mapped file. */
typedef struct keeper {
    leat_kept *kept;
    data_set *source;
} keeper;

static void release_keeper(void *context) {
    keeper *k = context;
    leat_kept_release(&k->kept);
    --k->source->users;
    Py_DECREF(k->source);
    PyMem_Free(k);
}

/* Returns the object that keeps the batch; NULL with or without an exception: it cannot be kept. */
static PyObject *keep_batch(PyObject *from, leat_feed *feed) {
    const leat_tensor nothing = {.dtype = LEAT_U8, .rank = 0};
    leat_kept *kept = NULL;
    if (leat_feed_keep(feed, &kept, NULL) != LEAT_OK) return NULL;
    keeper *k = PyMem_Calloc(1, sizeof *k);
    if (!k) {
        leat_kept_release(&kept);
        return PyErr_NoMemory();
    }
    *k = (keeper){kept, (data_set *)from};
    Py_INCREF(from);
    ++k->source->users;
    return memory_new(&nothing, NULL, release_keeper, k);
}

PyObject *view_tensors(PyObject *from, leat_feed *feed, const leat_batch *batch, bool *copied) {
    PyObject *owner = keep_batch(from, feed);
    if (!owner && PyErr_Occurred()) return NULL;
    *copied = !owner;
    PyObject *list = PyList_New(batch->tensor_count);
    for (int i = 0; list && i < batch->tensor_count; ++i) {
        const leat_tensor *tensor = &batch->tensors[i];
        PyObject *item = owner ? memory_new(tensor, owner, NULL, NULL) : memory_copy(tensor);
        if (item)
            PyList_SetItem(list, i, item);
        else
            Py_CLEAR(list);
    }
    Py_XDECREF(owner);
    return list ? Py_BuildValue("iN", -1, list) : NULL;
}

/* ---- what it says about itself ---- */

/* spec(): (batch_size, [(part, name, dtype, (size, ...)), ...]). */
static PyObject *data_spec_of(PyObject *self, PyObject *nothing) {
    (void)nothing;
    data_set *d = data_of(self);
    if (!d) return NULL;
    PyObject *list = PyList_New(d->sequence.spec.tensor_count);
    for (int i = 0; list && i < d->sequence.spec.tensor_count; ++i) {
        const leat_tensor_spec *t = &d->sequence.spec.tensors[i];
        leat_tensor shape = leat_tensor_view(t->dtype, t->rank, t->shape, NULL);
        PyObject *item =
            Py_BuildValue("issN", (int)t->part, t->name, leat_dtype_name(t->dtype), shape_tuple(&shape));
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, i, item);
    }
    return list ? Py_BuildValue("LN", (long long)d->sequence.spec.batch_size, list) : NULL;
}

/* length(): batches of a pass; None: it is not known. */
static PyObject *data_length(PyObject *self, PyObject *nothing) {
    (void)nothing;
    data_set *d = data_of(self);
    if (!d) return NULL;
    int64_t count = d->sequence.length ? d->sequence.length(d->sequence.user) : LEAT_LENGTH_INFINITE;
    if (count != LEAT_LENGTH_INFINITE) return PyLong_FromLongLong(count);
    Py_RETURN_NONE;
}

static PyObject *data_samples(PyObject *self, PyObject *nothing) {
    (void)nothing;
    data_set *d = data_of(self);
    if (!d) return NULL;
    if (d->sequence.samples) return PyLong_FromLongLong(d->sequence.samples(d->sequence.user));
    Py_RETURN_NONE;
}

static PyMethodDef data_methods[] = {
    {"close", data_close, METH_NOARGS, "Frees the data."},
    {"split", data_split, METH_VARARGS, "Splits off the last share of the samples; closes the data."},
    {"windows", data_windows, METH_VARARGS, "Makes windows of the samples; closes the data."},
    {"spec", data_spec_of, METH_NOARGS, "Returns (batch_size, [(part, name, dtype, shape), ...])."},
    {"length", data_length, METH_NOARGS, "Returns the number of batches of a pass, or None."},
    {"run_ahead", data_run_ahead, METH_NOARGS, "Takes batches until stop_ahead(); for a thread of its own."},
    {"stop_ahead", data_stop_ahead, METH_NOARGS, "Ends run_ahead()."},
    {"samples", data_samples, METH_NOARGS, "Returns the number of samples, or None."},
    {0}};

static PyType_Slot data_slots[] = {{Py_tp_dealloc, (void *)data_dealloc},
                                   {Py_tp_methods, (void *)data_methods},
                                   {0}};
PyType_Spec data_spec = {"leat._trainer.Data", sizeof(data_set), 0, Py_TPFLAGS_DEFAULT, data_slots};
