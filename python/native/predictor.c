/* SPDX-License-Identifier: Apache-2.0 */
/* The type leat._trainer.Predictor.  A call with the array of the call before does not look up the array's memory. */
#include "trainer.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

PyObject *predictor_type;

/* Calls that take longer run without the interpreter's lock (`release` < 0): giving the lock away and taking it back
 * costs 0.03 us, but up to 5 ms, the switch interval, if another thread of Python wants to run. */
enum { LONG_RUN_NS = 20000, MEASURED_RUNS = 16 };

/* The array of an input or output that was passed last. */
typedef struct binding {
    PyObject *array; /* NULL: none */
    Py_buffer buffer;
} binding;

typedef struct predictor {
    PyObject ob_base;
    leat_predictor *predictor;
    int input_count, output_count;
    leat_tensor *inputs,
        *outputs; /* `data` of an input is memory of the predictor, that of an output is `results` */
    const void **sources;
    void **targets;
    binding *bound;       /* inputs, then outputs */
    PyObject **results;   /* arrays with the predictions of the last call without `out` */
    PyObject **copiers;   /* their methods `copy` */
    PyObject *asarray;    /* numpy.asarray */
    PyObject *array_type; /* numpy.ndarray */
    int release;          /* 1: the interpreter's lock is released, 0: it is not, -1: in long runs */
    int measured;
    int64_t shortest_ns; /* of the measured runs */
    atomic_bool busy;    /* a thread is in a call */
    bool closed, lent;
} predictor;

/* ---- bindings ---- */

static void unbind(binding *b) {
    if (!b->array) return;
    PyBuffer_Release(&b->buffer);
    Py_CLEAR(b->array);
}

static int fail(leat_status code, const char *message) {
    leat_error err = {0};
    leat_error_set_text(&err, code, message);
    raise_error(&err);
    return -1;
}

static void print_shape(char *out, size_t size, const leat_tensor *t, int first) {
    size_t used = 0;
    out[0] = '\0';
    for (int i = first; i < t->rank && used + 24 < size; ++i)
        used += (size_t)PyOS_snprintf(out + used, size - used, i > first ? ", %lld" : "%lld",
                                      (long long)t->shape[i]);
}

static int fail_shape(const char *what, int index, const leat_tensor *expected, const leat_tensor *received) {
    leat_error err = {0};
    char wanted[128], got[128];
    print_shape(wanted, sizeof wanted, expected, 0);
    print_shape(got, sizeof got, received, 0);
    leat_error_set(&err, received->dtype == expected->dtype ? LEAT_ESHAPE : LEAT_EDTYPE,
                   "%s %d of the predictor: expected (%s) %s, received (%s) %s%s", what, index, wanted,
                   leat_dtype_name(expected->dtype), got, leat_dtype_name(received->dtype),
                   what[0] == 'o' ? "; `out` has to be contiguous and writable" : "");
    raise_error(&err);
    return -1;
}

/* Returns true if the shapes agree, or the array lacks a batch dimension of 1. */
static bool shape_fits(const leat_tensor *expected, const leat_tensor *received) {
    int skipped = expected->rank - received->rank;
    if (skipped != 0 && (skipped != 1 || expected->shape[0] != 1)) return false;
    for (int i = 0; i < received->rank; ++i)
        if (expected->shape[i + skipped] != received->shape[i]) return false;
    return true;
}

/* Copies an array of another type, or with strides, into the predictor's memory. */
static int convert_input(predictor *p, int index, const array_view *view) {
    leat_error err = {0};
    leat_tensor received = view->tensor, *expected = &p->inputs[index];
    if (!shape_fits(expected, &received)) {
        received.dtype = expected->dtype;
        return fail_shape("input", index, expected, &received);
    }
    leat_tensor target = leat_tensor_view(expected->dtype, received.rank, received.shape, expected->data);
    p->sources[index] = NULL;
    if (leat_tensor_copy(&target, &received, view->strides, &err) == LEAT_OK) return 0;
    raise_error(&err);
    return -1;
}

/* Binds an array whose memory is used as it is, until another one takes its place.  Returns the memory. */
static void *bind(binding *b, PyObject *array, const array_view *view) {
    unbind(b);
    Py_INCREF(array);
    b->array = array;
    b->buffer = view->buffer;
    return b->buffer.buf;
}

static int bind_input(predictor *p, int index, PyObject *array) {
    array_view view;
    if (!array) return -1;
    const leat_tensor *expected = &p->inputs[index];
    PyObject *made = NULL;
    if (array_open(&view, array) != 0) {
        if (PyObject_CheckBuffer(array)) return -1;
        PyErr_Clear();
        made = PyObject_CallFunctionObjArgs(p->asarray, array, NULL);
        int failed = made ? array_open(&view, made) : -1;
        Py_XDECREF(made); /* The buffer keeps it. */
        if (failed) return -1;
    }
    if (!view.contiguous || view.tensor.dtype != expected->dtype || !shape_fits(expected, &view.tensor) ||
        made || (PyObject *)Py_TYPE(array) != p->array_type) {
        int failed = convert_input(p, index, &view);
        array_close(&view);
        return failed;
    }
    p->sources[index] = bind(&p->bound[index], array, &view);
    return 0;
}

static int bind_output(predictor *p, int index, PyObject *array) {
    array_view view;
    const leat_tensor *expected = &p->outputs[index];
    if (array_open(&view, array) != 0) return -1;
    if (!view.contiguous || view.tensor.dtype != expected->dtype || !shape_fits(expected, &view.tensor) ||
        view.buffer.readonly) {
        fail_shape("output", index, expected, &view.tensor);
        array_close(&view);
        return -1;
    }
    p->targets[index] = bind(&p->bound[p->input_count + index], array, &view);
    return 0;
}

static int set_input(predictor *p, int index, PyObject *array) {
    if (p->bound[index].array != array) return bind_input(p, index, array);
    p->sources[index] = p->bound[index].buffer.buf;
    return 0;
}

static int set_output(predictor *p, int index, PyObject *array) {
    binding *b = &p->bound[p->input_count + index];
    if (b->array != array) return bind_output(p, index, array);
    p->targets[index] = b->buffer.buf;
    return 0;
}

/* The inputs are the arguments, or one list of them; without arguments the predictor's own memory is read. */
static int set_inputs(predictor *p, PyObject *const *args, Py_ssize_t count) {
    if (count == p->input_count) {
        for (int i = 0; i < p->input_count; ++i)
            if (set_input(p, i, args[i]) != 0) return -1;
        return 0;
    }
    for (int i = 0; i < p->input_count; ++i) p->sources[i] = NULL;
    if (count == 0) return 0;
    if (count != 1 || (!PyList_Check(args[0]) && !PyTuple_Check(args[0])) ||
        PySequence_Size(args[0]) != p->input_count) {
        leat_error err = {0};
        leat_error_set(&err, LEAT_EINVAL,
                       "the predictor has %d inputs: pass one array for each of them, or none",
                       p->input_count);
        raise_error(&err);
        return -1;
    }
    int failed = 0;
    for (int i = 0; !failed && i < p->input_count; ++i) {
        PyObject *array = PySequence_GetItem(args[0], i);
        failed = array ? set_input(p, i, array) : -1;
        Py_XDECREF(array);
    }
    return failed;
}

static int set_outputs(predictor *p, PyObject *out) {
    if (!out) {
        for (int i = 0; i < p->output_count; ++i) p->targets[i] = p->outputs[i].data;
        return 0;
    }
    if (p->output_count == 1 && !PyList_Check(out) && !PyTuple_Check(out)) return set_output(p, 0, out);
    if (PySequence_Size(out) != p->output_count) {
        PyErr_Clear();
        return fail(LEAT_EINVAL, "`out` has to be an array for each output of the predictor");
    }
    int failed = 0;
    for (int i = 0; !failed && i < p->output_count; ++i) {
        PyObject *array = PySequence_GetItem(out, i);
        failed = array ? set_output(p, i, array) : -1;
        Py_XDECREF(array);
    }
    return failed;
}

/* ---- running ---- */

static int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static leat_status run(predictor *p, leat_error *err) {
    leat_status status = LEAT_OK;
    bool release = p->release < 0 ? p->shortest_ns > LONG_RUN_NS : p->release;
    int64_t began = 0;
    bool measures = p->release < 0 && p->measured < MEASURED_RUNS;
    if (measures) began = now_ns();
    if (release) {
        Py_BEGIN_ALLOW_THREADS status = leat_predictor_run(p->predictor, p->sources, p->targets, err);
        Py_END_ALLOW_THREADS
    } else
        status = leat_predictor_run(p->predictor, p->sources, p->targets, err);
    if (measures) {
        int64_t taken = now_ns() - began;
        if (p->measured++ == 0 || taken < p->shortest_ns) p->shortest_ns = taken;
    }
    return status;
}

static PyObject *give_results(predictor *p, PyObject *out) {
    if (out) {
        Py_INCREF(out);
        return out;
    }
    if (p->output_count == 1) return PyObject_CallObject(p->copiers[0], NULL);
    PyObject *list = PyList_New(p->output_count);
    for (int i = 0; list && i < p->output_count; ++i) {
        PyObject *item = PyObject_CallObject(p->copiers[i], NULL);
        if (item)
            PyList_SetItem(list, i, item);
        else
            Py_CLEAR(list);
    }
    return list;
}

/* Begins a call; only the thread that it returns 0 to uses the predictor until end_use.  With the interpreter's lock no
 * atomic instruction is needed: the lock is not given away between the two accesses. */
static int begin_use(predictor *p) {
#if defined(Py_GIL_DISABLED)
    bool busy = atomic_exchange_explicit(&p->busy, true, memory_order_acquire);
#else
    bool busy = atomic_load_explicit(&p->busy, memory_order_relaxed);
    atomic_store_explicit(&p->busy, true, memory_order_relaxed);
#endif
    if (busy)
        return fail(LEAT_EBUSY,
                    "another thread is in a call of this predictor: create a predictor for each thread");
    if (!p->closed) return 0;
    atomic_store_explicit(&p->busy, false, memory_order_relaxed);
    return fail(LEAT_EINVAL, "the predictor is closed");
}

static void end_use(predictor *p) {
    atomic_store_explicit(&p->busy, false, memory_order_release);
}

static PyObject *predict(predictor *p, PyObject *const *args, Py_ssize_t count, PyObject *out) {
    leat_error err = {0};
    PyObject *results = NULL;
    if (out == Py_None) out = NULL;
    if (begin_use(p) != 0) return NULL;
    if (set_inputs(p, args, count) == 0 && set_outputs(p, out) == 0) {
        if (run(p, &err) == LEAT_OK)
            results = give_results(p, out);
        else
            raise_error(&err);
    }
    end_use(p); /* Reading an array and copying the results may let other threads run, too. */
    return results;
}

static PyObject *predictor_run(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    PyObject *out = NULL;
    if (names) {
        if (PyTuple_Size(names) != 1 ||
            PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "out") != 0) {
            PyErr_SetString(PyExc_TypeError, "the only argument with a name is `out`");
            return NULL;
        }
        out = args[count];
    }
    return predict((predictor *)self, args, count, out);
}

static PyObject *predictor_call(PyObject *self, PyObject *args, PyObject *named) {
    PyObject *items[LEAT_BATCH_MAX_TENSORS] = {NULL}, *out = NULL;
    Py_ssize_t count = PyTuple_Size(args);
    if (count < 0) return NULL;
    if (named) out = PyDict_GetItemString(named, "out");
    if (named && (!out || PyDict_Size(named) != 1)) {
        PyErr_SetString(PyExc_TypeError, "the only argument with a name is `out`");
        return NULL;
    }
    if (count > LEAT_BATCH_MAX_TENSORS) count = LEAT_BATCH_MAX_TENSORS;
    for (Py_ssize_t i = 0; i < count; ++i) items[i] = PyTuple_GetItem(args, i);
    return predict((predictor *)self, items, count, out);
}

/* ---- making and closing ---- */

static int count_sides(predictor *p) {
    while (leat_predictor_input(p->predictor, p->input_count).rank) ++p->input_count;
    while (leat_predictor_output(p->predictor, p->output_count).rank) ++p->output_count;
    size_t inputs = (size_t)p->input_count, outputs = (size_t)p->output_count;
    p->inputs = PyMem_Calloc(inputs + 1, sizeof *p->inputs);
    p->outputs = PyMem_Calloc(outputs + 1, sizeof *p->outputs);
    p->sources = PyMem_Calloc(inputs + 1, sizeof *p->sources);
    p->targets = PyMem_Calloc(outputs + 1, sizeof *p->targets);
    p->bound = PyMem_Calloc(inputs + outputs + 1, sizeof *p->bound);
    p->results = PyMem_Calloc(outputs + 1, sizeof *p->results);
    p->copiers = PyMem_Calloc(outputs + 1, sizeof *p->copiers);
    if (p->inputs && p->outputs && p->sources && p->targets && p->bound && p->results && p->copiers) return 0;
    return PyErr_NoMemory(), -1;
}

/* Creates the arrays that calls without `out` write, and their methods `copy`. */
static int create_results(predictor *p) {
    for (int i = 0; i < p->input_count; ++i) p->inputs[i] = leat_predictor_input(p->predictor, i);
    for (int i = 0; i < p->output_count; ++i) {
        leat_tensor output = leat_predictor_output(p->predictor, i);
        size_t bytes = leat_tensor_bytes(&output);
        output.data = calloc(1, bytes ? bytes : 1);
        if (!output.data) return PyErr_NoMemory(), -1;
        PyObject *memory = memory_new(&output, NULL, free, output.data);
        p->outputs[i] = output;
        p->results[i] = memory ? PyObject_CallFunctionObjArgs(p->asarray, memory, NULL) : NULL;
        Py_XDECREF(memory);
        p->copiers[i] = p->results[i] ? PyObject_GetAttrString(p->results[i], "copy") : NULL;
        if (!p->copiers[i]) return -1;
    }
    return 0;
}

/* Reads [(dtype, shape), ...] or None. */
static int read_inputs(leat_tensor *out, int most, PyObject *list) {
    leat_error err = {0};
    Py_ssize_t count = PyList_Size(list);
    if (count < 0) return -1;
    for (Py_ssize_t i = 0; i < count && i < most; ++i) {
        const char *name = NULL;
        PyObject *sizes = NULL;
        int64_t shape[LEAT_MAX_RANK] = {0};
        leat_dtype dtype = LEAT_F32;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "sO!", &name, &PyTuple_Type, &sizes)) return -1;
        Py_ssize_t rank = PyTuple_Size(sizes);
        for (Py_ssize_t k = 0; k < rank && k < LEAT_MAX_RANK; ++k)
            shape[k] = PyLong_AsLongLong(PyTuple_GetItem(sizes, k));
        if (PyErr_Occurred()) return -1;
        if (leat_dtype_parse(&dtype, name, &err) != LEAT_OK ||
            leat_tensor_view_into(dtype, (int)rank, shape, NULL, &out[i], &err) != LEAT_OK) {
            raise_error(&err);
            return -1;
        }
    }
    return 0;
}

static int open_predictor(predictor *p, PyObject *args) {
    leat_error err = {0};
    leat_status status = LEAT_OK;
    model *m = NULL;
    PyObject *inputs = NULL;
    long long batch = 1;
    int streaming = 0;
    const char *format = NULL;
    leat_tensor shapes[LEAT_BATCH_MAX_TENSORS] = {0};
    leat_predictor_options o = leat_predictor_options_default();
    if (!PyArg_ParseTuple(args, "O!LipssOiOO", (PyTypeObject *)model_type, &m, &batch, &o.threads, &streaming,
                          &format, &o.device, &inputs, &p->release, &p->asarray, &p->array_type)) {
        p->asarray = p->array_type = NULL;
        return -1;
    }
    Py_INCREF(p->asarray);
    Py_INCREF(p->array_type);
    o.batch_size = batch;
    o.streaming = streaming;
    if (leat_weights_format_parse(&o.weights_format, format, &err) != LEAT_OK) {
        raise_error(&err);
        return -1;
    }
    if (inputs != Py_None) {
        if (read_inputs(shapes, LEAT_BATCH_MAX_TENSORS, inputs) != 0) return -1;
        o.inputs = shapes;
    }
    if (model_begin(m) != 0) return -1;
    Py_BEGIN_ALLOW_THREADS status = leat_predictor_create(&p->predictor, m->model, &o, &err);
    Py_END_ALLOW_THREADS model_end(m);
    if (status == LEAT_OK) return count_sides(p) != 0 ? -1 : create_results(p);
    raise_error(&err);
    return -1;
}

static PyObject *predictor_new(PyTypeObject *type, PyObject *args, PyObject *named) {
    (void)named;
    PyObject *self = allocate_object((PyObject *)type);
    if (self && open_predictor((predictor *)self, args) == 0) return self;
    Py_XDECREF(self);
    return NULL;
}

static void release_arrays(predictor *p) {
    for (int i = 0; p->bound && i < p->input_count + p->output_count; ++i) unbind(&p->bound[i]);
}

static void predictor_dealloc(PyObject *self) {
    predictor *p = (predictor *)self;
    release_arrays(p);
    leat_predictor_destroy(&p->predictor);
    for (int i = 0; p->copiers && i < p->output_count; ++i) {
        Py_XDECREF(p->copiers[i]);
        Py_XDECREF(p->results[i]);
    }
    void *const blocks[] = {p->inputs, p->outputs, p->sources, p->targets, p->bound, p->results, p->copiers};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; ++i) PyMem_Free(blocks[i]);
    Py_XDECREF(p->asarray);
    Py_XDECREF(p->array_type);
    free_object(self);
}

/* Frees the predictor; its memory later, if arrays of Python view it. */
static PyObject *predictor_close(PyObject *self, PyObject *nothing) {
    (void)nothing;
    predictor *p = (predictor *)self;
    if (p->closed) Py_RETURN_NONE;
    if (begin_use(p) != 0) return NULL;
    p->closed = true;
    release_arrays(p);
    if (!p->lent) leat_predictor_destroy(&p->predictor);
    end_use(p);
    Py_RETURN_NONE;
}

/* ---- weights, states, memory ---- */

static PyObject *predictor_sync(PyObject *self, PyObject *nothing) {
    (void)nothing;
    predictor *p = (predictor *)self;
    leat_error err = {0};
    if (begin_use(p) != 0) return NULL;
    uint64_t before = leat_predictor_version(p->predictor);
    leat_status status = leat_predictor_sync(p->predictor, &err);
    bool newer = leat_predictor_version(p->predictor) != before;
    end_use(p);
    return status == LEAT_OK ? PyBool_FromLong(newer) : raise_error(&err);
}

static PyObject *predictor_version(PyObject *self, PyObject *nothing) {
    (void)nothing;
    return PyLong_FromUnsignedLongLong(leat_predictor_version(((predictor *)self)->predictor));
}

static PyObject *predictor_device(PyObject *self, PyObject *nothing) {
    (void)nothing;
    predictor *p = (predictor *)self;
    if (begin_use(p) != 0) return NULL;
    PyObject *name = PyUnicode_FromString(leat_predictor_device(p->predictor));
    end_use(p);
    return name;
}

static PyObject *predictor_reset(PyObject *self, PyObject *args) {
    predictor *p = (predictor *)self;
    PyObject *sample = Py_None;
    long long number = 0, count = p->input_count ? p->inputs[0].shape[0] : 0;
    if (!PyArg_ParseTuple(args, "|O", &sample)) return NULL;
    if (sample != Py_None) number = PyLong_AsLongLong(sample);
    if (PyErr_Occurred()) return NULL;
    if (sample != Py_None && (number < 0 || number >= count)) {
        leat_error err = {0};
        leat_error_set(&err, LEAT_EINVAL,
                       "sample %lld is out of range: the predictor's batch has %lld samples", number, count);
        return raise_error(&err);
    }
    if (begin_use(p) != 0) return NULL;
    if (sample == Py_None)
        leat_predictor_reset(p->predictor);
    else
        leat_predictor_reset_sample(p->predictor, number);
    end_use(p);
    Py_RETURN_NONE;
}

static PyObject *predictor_save(PyObject *self, PyObject *nothing) {
    (void)nothing;
    predictor *p = (predictor *)self;
    if (begin_use(p) != 0) return NULL;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)leat_predictor_state_bytes(p->predictor));
    if (bytes) leat_predictor_save(p->predictor, PyBytes_AsString(bytes));
    end_use(p);
    return bytes;
}

static PyObject *predictor_restore(PyObject *self, PyObject *args) {
    predictor *p = (predictor *)self;
    Py_buffer state = {0};
    leat_error err = {0};
    if (!PyArg_ParseTuple(args, "y*", &state)) return NULL;
    if (begin_use(p) != 0) {
        PyBuffer_Release(&state);
        return NULL;
    }
    size_t expected = leat_predictor_state_bytes(p->predictor);
    if ((size_t)state.len == expected)
        leat_predictor_restore(p->predictor, state.buf);
    else
        leat_error_set(
            &err, LEAT_ESHAPE,
            "a saved state of this predictor has %zu bytes, received %zd: it is another predictor's",
            expected, state.len);
    end_use(p);
    PyBuffer_Release(&state);
    if (err.code) return raise_error(&err);
    Py_RETURN_NONE;
}

static PyObject *view_memory(predictor *p, const leat_tensor *tensor) {
    PyObject *memory = memory_new(tensor, (PyObject *)p, NULL, NULL);
    PyObject *array = memory ? PyObject_CallFunctionObjArgs(p->asarray, memory, NULL) : NULL;
    Py_XDECREF(memory);
    p->lent = true;
    return array;
}

static PyObject *predictor_state(PyObject *self, PyObject *args) {
    predictor *p = (predictor *)self;
    const char *layer = NULL;
    int index = 0;
    leat_error err = {0};
    leat_tensor state;
    PyObject *array = NULL;
    if (!PyArg_ParseTuple(args, "s|i", &layer, &index) || begin_use(p) != 0) return NULL;
    if (leat_predictor_state_into(p->predictor, layer, index, &state, &err) == LEAT_OK)
        array = view_memory(p, &state);
    end_use(p);
    return err.code ? raise_error(&err) : array;
}

static PyObject *predictor_inputs(PyObject *self, PyObject *nothing) {
    (void)nothing;
    predictor *p = (predictor *)self;
    if (begin_use(p) != 0) return NULL;
    PyObject *list = PyList_New(p->input_count);
    for (int i = 0; list && i < p->input_count; ++i) {
        PyObject *item = view_memory(p, &p->inputs[i]);
        if (item)
            PyList_SetItem(list, i, item);
        else
            Py_CLEAR(list);
    }
    end_use(p);
    return list;
}

/* shapes(): ([(dtype, shape), ...] of the inputs, of the outputs). */
static PyObject *predictor_shapes(PyObject *self, PyObject *nothing) {
    (void)nothing;
    predictor *p = (predictor *)self;
    PyObject *lists[2] = {PyList_New(0), PyList_New(0)};
    for (int side = 0; side < 2; ++side)
        for (int i = 0; lists[side] && i < (side ? p->output_count : p->input_count); ++i) {
            const leat_tensor *t = side ? &p->outputs[i] : &p->inputs[i];
            PyObject *item = Py_BuildValue("sN", leat_dtype_name(t->dtype), shape_tuple(t));
            if (!item || PyList_Append(lists[side], item) != 0) Py_CLEAR(lists[side]);
            Py_XDECREF(item);
        }
    return Py_BuildValue("NN", lists[0], lists[1]);
}

static PyObject *predictor_closed(PyObject *self, PyObject *nothing) {
    (void)nothing;
    return PyBool_FromLong(((predictor *)self)->closed);
}

static const char run_text[] =
    "run(*inputs, out=None)\n--\n\n"
    "Predicts: one array per input of the model, with the predictor's batch size.\n\n"
    "inputs: float32 arrays in C order are read in place; others are converted.  With a batch size of 1 the "
    "batch\n"
    "dimension may be left out.  Without inputs, the memory of `inputs` is read.\n"
    "out: a float32 array (a list of them for several outputs) that receives the prediction and is "
    "returned.\n"
    "Returns a new array (batch, ...), or a list of arrays if the model has several outputs.";

static PyMethodDef predictor_methods[] = {
    {"run", (PyCFunction)(void (*)(void))predictor_run, METH_FASTCALL | METH_KEYWORDS, run_text},
    {"close", predictor_close, METH_NOARGS, "Frees the predictor, once no array views its memory."},
    {"sync", predictor_sync, METH_NOARGS,
     "Takes the weights that Model.publish offered last.  Returns True if they are newer."},
    {"reset", predictor_reset, METH_VARARGS, "Sets the states of all samples, or of one sample, to zero."},
    {"save_state", predictor_save, METH_NOARGS, "Returns all states as bytes."},
    {"restore_state", predictor_restore, METH_VARARGS, "Restores the states that save_state returned."},
    {"state", predictor_state, METH_VARARGS, "Returns an array that views state `index` of a layer."},
    {"_version", predictor_version, METH_NOARGS, "Returns the number of the published weights in use."},
    {"_device", predictor_device, METH_NOARGS, "Returns where the predictor computes."},
    {"_inputs", predictor_inputs, METH_NOARGS, "Returns arrays that view the memory of the inputs."},
    {"_shapes", predictor_shapes, METH_NOARGS, "Returns the types and shapes of inputs and outputs."},
    {"_closed", predictor_closed, METH_NOARGS, "Returns True after close()."},
    {0}};

static PyType_Slot predictor_slots[] = {{Py_tp_new, (void *)predictor_new},
                                        {Py_tp_dealloc, (void *)predictor_dealloc},
                                        {Py_tp_call, (void *)predictor_call},
                                        {Py_tp_methods, (void *)predictor_methods},
                                        {0}};
PyType_Spec predictor_spec = {"leat._trainer.Predictor", sizeof(predictor), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, predictor_slots};
