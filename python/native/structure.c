/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes the structure of common batches, and builds batches from it: nested dict, list and tuple of arrays, numbers
 * and text.  It is several times as fast as a pickle; what it does not know is pickled by leat._pack.
 *
 * The structure is part 0 of a batch: a type, and what the type needs, for each value in depth-first order.  Arrays
 * take the other parts in their order.  Both sides run on the same machine. */
#include "native.h"

#include <string.h>

enum { MOST_DEPTH = 32, MOST_RANK = 32, MOST_FORMAT = 3, MOST_SEARCHED = 64 };

/* The types of values. */
enum {
    IS_NONE = 'N',
    IS_FALSE = '0',
    IS_TRUE = '1',
    IS_INTEGER = 'i',
    IS_FLOAT = 'f',
    IS_TEXT = 's',
    IS_BYTES = 'b',
    IS_TUPLE = 't',
    IS_LIST = 'l',
    IS_DICT = 'd',
    IS_ARRAY = 'a',
    IS_TENSOR = 'x'
};

/* Set once by set_array_types. */
static PyObject *array_type, *tensor_type; /* numpy.ndarray; torch.Tensor, or NULL */
static PyObject *data_types;               /* {format: numpy.dtype} */
static PyObject *short_types[128];         /* of formats with one letter: borrowed from data_types */
static PyObject *make_tensor;              /* torch.from_numpy, or NULL */

/* ---- encoding ---- */

typedef struct writer {
    unsigned char *bytes;
    size_t used, room;
    PyObject *parts; /* list: the structure's place, and the arrays */
} writer;

static int write_bytes(writer *w, const void *bytes, size_t count) {
    if (w->room - w->used < count) {
        size_t room = 2 * w->room + count + 256;
        unsigned char *grown = PyMem_Realloc(w->bytes, room);
        if (!grown) return PyErr_NoMemory(), -1;
        w->bytes = grown;
        w->room = room;
    }
    if (count) memcpy(w->bytes + w->used, bytes, count);
    w->used += count;
    return 0;
}

static int write_type(writer *w, char type) {
    return write_bytes(w, &type, 1);
}

static int write_count(writer *w, char type, Py_ssize_t count) {
    int64_t number = count;
    return write_type(w, type) != 0 ? -1 : write_bytes(w, &number, sizeof number);
}

static int write_text(writer *w, char type, const char *bytes, Py_ssize_t count) {
    return write_count(w, type, count) != 0 ? -1 : write_bytes(w, bytes, (size_t)count);
}

/* The functions below return 0, -1 with an exception set, or 1 for a value that they do not know. */

static bool is_plain_format(const char *format) {
    if (!format || strlen(format) >= MOST_FORMAT) return false;
    if (format[0] > 0 && !format[1]) return short_types[(int)format[0]] != NULL;
    PyObject *known = PyDict_GetItemString(data_types, format);
    return known != NULL;
}

/* Returns the number of the part that the array has; the same array may be in a batch several times. */
static int64_t find_part(const writer *w, const PyObject *array) {
    Py_ssize_t count = PyList_Size(w->parts);
    for (Py_ssize_t i = 1; i < count && i < MOST_SEARCHED; ++i)
        if (PyList_GetItem(w->parts, i) == array) return i;
    return count;
}

static int write_array(writer *w, PyObject *array, char type) {
    Py_buffer view;
    if (PyObject_GetBuffer(array, &view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) {
        PyErr_Clear(); /* Arrays in another order, dates. */
        return 1;
    }
    char format[MOST_FORMAT + 1] = {0};
    int64_t part = find_part(w, array);
    int result = view.ndim <= MOST_RANK && is_plain_format(view.format) ? 0 : 1;
    if (result == 0) {
        memcpy(format, view.format, strlen(view.format));
        result = write_count(w, type, view.ndim);
        if (result == 0) result = write_bytes(w, &part, sizeof part);
        if (result == 0) result = write_bytes(w, format, sizeof format);
        for (int i = 0; result == 0 && i < view.ndim; ++i) {
            int64_t size = view.shape[i];
            result = write_bytes(w, &size, sizeof size);
        }
        if (result == 0 && part == PyList_Size(w->parts)) result = PyList_Append(w->parts, array);
    }
    PyBuffer_Release(&view);
    return result;
}

static int write_tensor(writer *w, PyObject *tensor) {
    PyObject *array = PyObject_CallMethod(tensor, "numpy", NULL);
    if (!array) {
        PyErr_Clear(); /* It is on a device, or has a type that NumPy lacks. */
        return 1;
    }
    int result = write_array(w, array, IS_TENSOR);
    Py_DECREF(array);
    return result;
}

static int write_integer(writer *w, PyObject *value) {
    int overflow = 0;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    int64_t written = number;
    if (overflow) return 1;
    return write_type(w, IS_INTEGER) != 0 ? -1 : write_bytes(w, &written, sizeof written);
}

static int write_string(writer *w, PyObject *value) {
    Py_ssize_t count = 0;
    const char *text = PyUnicode_AsUTF8AndSize(value, &count);
    if (text) return write_text(w, IS_TEXT, text, count);
    PyErr_Clear(); /* surrogates */
    return 1;
}

static int write_value(writer *w, PyObject *value, int depth);

static int write_items(writer *w, PyObject *sequence, char type, int depth) {
    Py_ssize_t count = PySequence_Size(sequence);
    int result = write_count(w, type, count);
    for (Py_ssize_t i = 0; result == 0 && i < count; ++i) {
        PyObject *item =
            type == IS_TUPLE ? PyTuple_GetItem(sequence, i) : PyList_GetItem(sequence, i); /* borrowed */
        result = item ? write_value(w, item, depth + 1) : -1;
    }
    return result;
}

static int write_dict(writer *w, PyObject *dict, int depth) {
    PyObject *key = NULL, *value = NULL; /* borrowed */
    Py_ssize_t at = 0;
    int result = write_count(w, IS_DICT, PyDict_Size(dict));
    while (result == 0 && PyDict_Next(dict, &at, &key, &value)) {
        result = Py_TYPE(key) == &PyUnicode_Type ? write_string(w, key) : 1;
        if (result == 0) result = write_value(w, value, depth + 1);
    }
    return result;
}

static int write_value(writer *w, PyObject *value, int depth) {
    PyTypeObject *type = Py_TYPE(value);
    if (depth > MOST_DEPTH) return 1;
    if ((PyObject *)type == array_type) return write_array(w, value, IS_ARRAY);
    if (type == &PyTuple_Type) return write_items(w, value, IS_TUPLE, depth);
    if (type == &PyList_Type) return write_items(w, value, IS_LIST, depth);
    if (type == &PyDict_Type) return write_dict(w, value, depth);
    if (type == &PyLong_Type) return write_integer(w, value);
    if (type == &PyUnicode_Type) return write_string(w, value);
    if (tensor_type && (PyObject *)type == tensor_type) return write_tensor(w, value);
    if (value == Py_None) return write_type(w, IS_NONE);
    if (value == Py_True || value == Py_False) return write_type(w, value == Py_True ? IS_TRUE : IS_FALSE);
    if (type == &PyFloat_Type) {
        double number = PyFloat_AsDouble(value);
        return write_type(w, IS_FLOAT) != 0 ? -1 : write_bytes(w, &number, sizeof number);
    }
    if (type == &PyBytes_Type) return write_text(w, IS_BYTES, PyBytes_AsString(value), PyBytes_Size(value));
    return 1;
}

PyObject *encode_structure(PyObject *module, PyObject *batch) {
    (void)module;
    writer w = {.parts = PyList_New(1)};
    PyObject *structure = NULL;
    if (!w.parts) return NULL;
    int result = array_type ? write_value(&w, batch, 0) : 1;
    if (result == 0) structure = PyBytes_FromStringAndSize((const char *)w.bytes, (Py_ssize_t)w.used);
    PyMem_Free(w.bytes);
    if (structure && PyList_SetItem(w.parts, 0, structure) == 0) return w.parts;
    Py_DECREF(w.parts);
    if (result != 1) return NULL;
    Py_RETURN_NONE;
}

/* ---- building ---- */

typedef struct reader {
    const unsigned char *bytes, *end;
    PyObject *owner; /* the slot */
    const slot_header *header;
} reader;

static const void *read_bytes(reader *r, size_t count) {
    if ((size_t)(r->end - r->bytes) < count) {
        PyErr_SetString(PyExc_ValueError, "the structure of a batch is damaged");
        return NULL;
    }
    const void *found = r->bytes;
    r->bytes += count;
    return found;
}

static int64_t read_number(reader *r) {
    int64_t number = -1;
    const void *bytes = read_bytes(r, sizeof number);
    if (bytes) memcpy(&number, bytes, sizeof number);
    return number;
}

static PyObject *read_shape(reader *r, int64_t rank) {
    PyObject *shape = PyTuple_New((Py_ssize_t)rank);
    for (int64_t i = 0; shape && i < rank; ++i) {
        PyObject *size = PyLong_FromLongLong(read_number(r));
        if (!size || PyTuple_SetItem(shape, (Py_ssize_t)i, size) != 0) {
            Py_DECREF(shape);
            shape = NULL;
        }
    }
    return shape;
}

static PyObject *read_array(reader *r) {
    int64_t rank = read_number(r), part = read_number(r);
    const char *format = read_bytes(r, MOST_FORMAT + 1);
    if (rank < 0 || !format) return NULL;
    if (!array_type) {
        PyErr_SetString(PyExc_RuntimeError, "the types of NumPy are not known");
        return NULL;
    }
    bool is_short = format[0] > 0 && !format[1];
    PyObject *data_type =
        is_short ? short_types[(int)format[0]] : PyDict_GetItemString(data_types, format); /* borrowed */
    if (!data_type || rank > MOST_RANK || part < 1 || (uint64_t)part >= r->header->count) {
        PyErr_SetString(PyExc_ValueError, "the structure of a batch is damaged");
        return NULL;
    }
    PyObject *shape = read_shape(r, rank),
             *memory = shape ? view_part(r->owner, &r->header->parts[part]) : NULL;
    PyObject *array =
        memory ? PyObject_CallFunctionObjArgs(array_type, shape, data_type, memory, NULL) : NULL;
    Py_XDECREF(memory);
    Py_XDECREF(shape);
    return array;
}

static PyObject *read_tensor(reader *r) {
    if (!make_tensor) { /* The caller has not imported torch. */
        PyObject *torch = PyImport_ImportModule("torch");
        make_tensor = torch ? PyObject_GetAttrString(torch, "from_numpy") : NULL;
        Py_XDECREF(torch);
    }
    PyObject *array = make_tensor ? read_array(r) : NULL;
    PyObject *tensor = array ? PyObject_CallFunctionObjArgs(make_tensor, array, NULL) : NULL;
    Py_XDECREF(array);
    return tensor;
}

static PyObject *read_value(reader *r);

static PyObject *read_items(reader *r, bool tuple) {
    int64_t count = read_number(r);
    if (count < 0) return NULL;
    PyObject *made = tuple ? PyTuple_New((Py_ssize_t)count) : PyList_New((Py_ssize_t)count);
    for (int64_t i = 0; made && i < count; ++i) {
        PyObject *item = read_value(r);
        int failed = !item;
        if (item)
            failed = tuple ? PyTuple_SetItem(made, (Py_ssize_t)i, item)
                           : PyList_SetItem(made, (Py_ssize_t)i, item);
        if (failed) {
            Py_DECREF(made);
            made = NULL;
        }
    }
    return made;
}

static PyObject *read_dict(reader *r) {
    int64_t count = read_number(r);
    PyObject *made = count < 0 ? NULL : PyDict_New();
    for (int64_t i = 0; made && i < count; ++i) {
        PyObject *key = read_value(r), *value = key ? read_value(r) : NULL;
        if (!value || PyDict_SetItem(made, key, value) != 0) {
            Py_DECREF(made);
            made = NULL;
        }
        Py_XDECREF(key);
        Py_XDECREF(value);
    }
    return made;
}

static PyObject *read_string(reader *r, bool text) {
    int64_t count = read_number(r);
    const char *bytes = count < 0 ? NULL : read_bytes(r, (size_t)count);
    if (!bytes) return NULL;
    return text ? PyUnicode_FromStringAndSize(bytes, (Py_ssize_t)count)
                : PyBytes_FromStringAndSize(bytes, (Py_ssize_t)count);
}

static PyObject *read_float(reader *r) {
    double number = 0;
    const void *bytes = read_bytes(r, sizeof number);
    if (!bytes) return NULL;
    memcpy(&number, bytes, sizeof number);
    return PyFloat_FromDouble(number);
}

static PyObject *new_constant(PyObject *value) {
    Py_INCREF(value);
    return value;
}

static PyObject *read_integer(reader *r) {
    int64_t number = 0;
    const void *bytes = read_bytes(r, sizeof number);
    if (!bytes) return NULL;
    memcpy(&number, bytes, sizeof number);
    return PyLong_FromLongLong(number);
}

static PyObject *read_value(reader *r) {
    const unsigned char *type = read_bytes(r, 1);
    if (!type) return NULL;
    switch (*type) {
    case IS_ARRAY: return read_array(r);
    case IS_TENSOR: return read_tensor(r);
    case IS_TUPLE: return read_items(r, true);
    case IS_LIST: return read_items(r, false);
    case IS_DICT: return read_dict(r);
    case IS_INTEGER: return read_integer(r);
    case IS_FLOAT: return read_float(r);
    case IS_TEXT: return read_string(r, true);
    case IS_BYTES: return read_string(r, false);
    case IS_TRUE: return new_constant(Py_True);
    case IS_FALSE: return new_constant(Py_False);
    case IS_NONE: return new_constant(Py_None);
    default: PyErr_SetString(PyExc_ValueError, "the structure of a batch is damaged"); return NULL;
    }
}

PyObject *build_structure(PyObject *owner, const slot_header *header) {
    const unsigned char *bytes = (const unsigned char *)header + header->parts[0].offset;
    reader r = {.bytes = bytes, .end = bytes + header->parts[0].bytes, .owner = owner, .header = header};
    return read_value(&r);
}

/* ---- types ---- */

static void replace(PyObject **kept, PyObject *value) {
    if (value == Py_None) return;
    Py_INCREF(value);
    Py_XDECREF(*kept);
    *kept = value;
}

PyObject *set_array_types(PyObject *module, PyObject *args) {
    PyObject *array = NULL, *types = NULL, *tensor = NULL, *from_array = NULL; /* borrowed */
    (void)module;
    if (!PyArg_ParseTuple(args, "OOOO", &array, &types, &tensor, &from_array)) return NULL;
    replace(&array_type, array);
    replace(&data_types, types);
    for (int letter = 1; types != Py_None && letter < 128; ++letter)
        short_types[letter] = PyDict_GetItemString(types, (const char[]){(char)letter, '\0'});
    replace(&tensor_type, tensor);
    replace(&make_tensor, from_array);
    Py_RETURN_NONE;
}
