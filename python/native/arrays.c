/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of Python as tensors, and memory of leat as buffers of Python. */
#include "trainer.h"

#include <stdlib.h>
#include <string.h>

PyObject *memory_type;

typedef struct memory {
    PyObject ob_base;
    leat_tensor tensor;
    PyObject *owner;
    void (*release)(void *context);
    void *context;
    Py_ssize_t shape[LEAT_MAX_RANK], strides[LEAT_MAX_RANK];
} memory;

void free_object(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

PyObject *allocate_object(PyObject *type) {
    allocfunc make = (allocfunc)PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc);
    return make((PyTypeObject *)type, 0);
}

static const char *format_of(leat_dtype dtype) {
    static const char *const formats[] = {"f", "d", "i", "q", "B", "?", "b", "h", "H", "I", "Q", "e"};
    return formats[dtype];
}

PyObject *memory_new(const leat_tensor *tensor, PyObject *owner, void (*release)(void *context),
                     void *context) {
    PyObject *made = allocate_object(memory_type);
    if (!made) {
        if (release) release(context);
        return NULL;
    }
    memory *m = (memory *)made;
    m->tensor = *tensor;
    m->release = release;
    m->context = context;
    Py_XINCREF(owner);
    m->owner = owner;
    Py_ssize_t stride = (Py_ssize_t)leat_dtype_bytes(tensor->dtype);
    for (int i = tensor->rank - 1; i >= 0; --i) {
        m->shape[i] = (Py_ssize_t)tensor->shape[i];
        m->strides[i] = stride;
        stride *= m->shape[i];
    }
    return made;
}

PyObject *memory_copy(const leat_tensor *tensor) {
    size_t bytes = leat_tensor_bytes(tensor);
    leat_tensor copy = *tensor;
    copy.data = malloc(bytes ? bytes : 1);
    if (!copy.data) return PyErr_NoMemory();
    if (bytes) memcpy(copy.data, tensor->data, bytes);
    return memory_new(&copy, NULL, free, copy.data);
}

static void memory_dealloc(PyObject *self) {
    memory *m = (memory *)self;
    if (m->release) m->release(m->context);
    Py_XDECREF(m->owner);
    free_object(self);
}

static int memory_buffer(PyObject *self, Py_buffer *view, int flags) {
    memory *m = (memory *)self;
    size_t bytes = leat_tensor_bytes(&m->tensor);
    if (PyBuffer_FillInfo(view, self, m->tensor.data, (Py_ssize_t)bytes, 0, flags) != 0) return -1;
    view->itemsize = (Py_ssize_t)leat_dtype_bytes(m->tensor.dtype);
    view->ndim = m->tensor.rank;
    view->format = (flags & PyBUF_FORMAT) ? (char *)(uintptr_t)format_of(m->tensor.dtype) : NULL;
    view->shape = (flags & PyBUF_ND) == PyBUF_ND ? m->shape : NULL;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? m->strides : NULL;
    return 0;
}

static PyType_Slot memory_slots[] = {{Py_tp_dealloc, (void *)memory_dealloc},
                                     {Py_bf_getbuffer, (void *)memory_buffer},
                                     {0}};
PyType_Spec memory_spec = {"leat._trainer.Memory", sizeof(memory), 0, Py_TPFLAGS_DEFAULT, memory_slots};

PyObject *shape_tuple(const leat_tensor *tensor) {
    PyObject *tuple = PyTuple_New(tensor->rank);
    for (int i = 0; tuple && i < tensor->rank; ++i) {
        PyObject *number = Py_None;
        if (tensor->shape[i] < 0)
            Py_INCREF(number);
        else
            number = PyLong_FromLongLong(tensor->shape[i]);
        PyTuple_SetItem(tuple, i, number);
    }
    return tuple;
}

/* ---- Python's arrays ---- */

/* Finds the data type of a buffer's format: one native number. */
static bool find_dtype(const char *format, Py_ssize_t itemsize, leat_dtype *out) {
    static const struct {
        const char *letters;
        int itemsize;
        leat_dtype dtype;
    } known[] = {{"f", 4, LEAT_F32}, {"d", 8, LEAT_F64}, {"e", 2, LEAT_F16},   {"?", 1, LEAT_BOOL},
                 {"b", 1, LEAT_I8},  {"h", 2, LEAT_I16}, {"ilq", 4, LEAT_I32}, {"ilq", 8, LEAT_I64},
                 {"B", 1, LEAT_U8},  {"H", 2, LEAT_U16}, {"ILQ", 4, LEAT_U32}, {"ILQ", 8, LEAT_U64}};
    if (!format) format = "B";
    if (*format == '@' || *format == '=' || *format == '<') ++format;
    if (format[0] == '\0' || format[1] != '\0') return false;
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
        if (!strchr(known[i].letters, format[0]) || known[i].itemsize != itemsize) continue;
        *out = known[i].dtype;
        return true;
    }
    return false;
}

int array_open(array_view *out, PyObject *array) {
    leat_error err = {0};
    *out = (array_view){0};
    if (PyObject_GetBuffer(array, &out->buffer, PyBUF_RECORDS_RO) != 0) return -1;
    const Py_buffer *b = &out->buffer;
    leat_dtype dtype = LEAT_F32;
    if (b->ndim > LEAT_MAX_RANK)
        leat_error_set(&err, LEAT_ESHAPE, "an array has %d dimensions, leat's limit is %d", b->ndim,
                       LEAT_MAX_RANK);
    else if (!find_dtype(b->format, b->itemsize, &dtype))
        leat_error_set(
            &err, LEAT_EDTYPE,
            "an array has elements of the format '%s' of %d bytes: expected numbers, such as float32",
            b->format ? b->format : "", (int)b->itemsize);
    if (err.code) {
        raise_error(&err);
        array_close(out);
        return -1;
    }
    out->tensor = (leat_tensor){.dtype = dtype, .rank = b->ndim, .data = b->buf};
    out->contiguous = PyBuffer_IsContiguous(b, 'C');
    for (int i = 0; i < b->ndim; ++i) {
        out->tensor.shape[i] = b->shape[i];
        out->strides[i] = b->strides[i];
    }
    return 0;
}

void array_close(array_view *view) {
    if (view->buffer.obj) PyBuffer_Release(&view->buffer);
    *view = (array_view){0};
}

static int add_arrays(array_set *set, PyObject *list, int *count) {
    Py_ssize_t length = list == Py_None ? 0 : PyList_Size(list);
    if (length < 0) return -1;
    for (Py_ssize_t i = 0; i < length; ++i, ++set->count, ++*count) {
        PyObject *array = NULL; /* borrowed */
        const char *name = NULL;
        PyObject *pair = PyList_GetItem(list, i);
        array_view *view = &set->views[set->count];
        if (!pair || !PyArg_ParseTuple(pair, "zO", &name, &array) || array_open(view, array) != 0) return -1;
        set->items[set->count] = (leat_array){.name = name,
                                              .tensor = view->tensor,
                                              .strides = view->contiguous ? NULL : view->strides};
    }
    return 0;
}

int array_set_open(array_set *out, PyObject *inputs, PyObject *targets, PyObject *weights) {
    PyObject *const lists[3] = {inputs, targets, weights};
    size_t total = 1;
    *out = (array_set){0};
    for (int i = 0; i < 3; ++i)
        if (lists[i] != Py_None) total += (size_t)PyList_Size(lists[i]);
    if (PyErr_Occurred()) return -1;
    out->views = PyMem_Calloc(total, sizeof *out->views);
    out->items = PyMem_Calloc(total, sizeof *out->items);
    leat_arrays *a = &out->arrays;
    if (!out->views || !out->items) {
        array_set_close(out);
        return PyErr_NoMemory(), -1;
    }
    if (add_arrays(out, inputs, &a->input_count) != 0 || add_arrays(out, targets, &a->target_count) != 0 ||
        add_arrays(out, weights, &a->sample_weight_count) != 0) {
        array_set_close(out);
        return -1;
    }
    a->inputs = out->items;
    a->targets = a->inputs + a->input_count;
    a->sample_weights = a->targets + a->target_count;
    return 0;
}

void array_set_close(array_set *set) {
    for (int i = 0; set->views && i < set->count; ++i) array_close(&set->views[i]);
    PyMem_Free(set->views);
    PyMem_Free(set->items);
    *set = (array_set){0};
}
