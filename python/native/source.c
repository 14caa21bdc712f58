/* SPDX-License-Identifier: Apache-2.0 */
/* A leat_sequence whose functions are Python's. */
#include "native.h"

#include <pthread.h>
#include <string.h>

/* ---- exceptions ---- */

/* Writes the exception that is set into *err, and clears it. */
static leat_status take_exception(const char *where, leat_error *err) {
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *text = value ? PyObject_Str(value) : NULL,
             *name = type ? PyObject_GetAttrString(type, "__name__") : NULL;
    PyObject *line = PyUnicode_FromFormat("%s: %S: %S", where, name ? name : Py_None, text ? text : Py_None);
    PyObject *bytes = line ? PyUnicode_AsUTF8String(line) : NULL;
    leat_status status = leat_error_set_text(err, LEAT_EUSER, bytes ? PyBytes_AsString(bytes) : where);
    PyErr_Clear();
    Py_XDECREF(bytes);
    Py_XDECREF(line);
    Py_XDECREF(name);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return status;
}

/* ---- writing a batch ---- */

static uint64_t align(uint64_t bytes) {
    return (bytes + SLOT_ALIGNMENT - 1) / SLOT_ALIGNMENT * SLOT_ALIGNMENT;
}

/* The parts of one batch, while they are copied. */
typedef struct parcel {
    uint64_t kind;
    int count;
    Py_buffer *views;
} parcel;

static void parcel_clear(parcel *p) {
    for (int i = 0; i < p->count; ++i) PyBuffer_Release(&p->views[i]);
    PyMem_Free(p->views);
    *p = (parcel){0};
}

/* Collects the buffers of what `make` has returned: (kind, [part, ...]). */
static int parcel_collect(parcel *p, PyObject *made) {
    PyObject *parts = NULL; /* borrowed */
    unsigned long long kind = 0;
    if (!PyArg_ParseTuple(made, "KO", &kind, &parts)) return -1;
    Py_ssize_t count = PyList_Size(parts);
    if (count < 0) return -1;
    if (count > SLOT_MAX_PARTS) {
        PyErr_Format(PyExc_ValueError, "a batch has %zd arrays, the most is %d", count, SLOT_MAX_PARTS);
        return -1;
    }
    p->kind = kind;
    p->views = PyMem_Calloc((size_t)count + 1, sizeof *p->views);
    if (!p->views) {
        PyErr_NoMemory();
        return -1;
    }
    for (; p->count < (int)count; ++p->count) {
        PyObject *part = PyList_GetItem(parts, p->count);
        if (!part || PyObject_GetBuffer(part, &p->views[p->count], PyBUF_SIMPLE) != 0) return -1;
    }
    return 0;
}

/* The batch that this thread is making, and the bytes that it has in its slot already. */
static _Thread_local struct {
    leat_batch *batch;
    uint64_t bytes; /* 0: none */
} being_made;

static uint64_t head_bytes(const parcel *p) {
    uint64_t bytes = align(sizeof(slot_header) + (uint64_t)p->count * sizeof(slot_part));
    return p->count > 0 ? bytes + align((uint64_t)p->views[0].len) : bytes;
}

static bool is_in_slot(const Py_buffer *view, const unsigned char *memory) {
    uintptr_t at = (uintptr_t)view->buf, begin = (uintptr_t)memory;
    return view->len > 0 && at >= begin && at < begin + being_made.bytes;
}

/* Lays the parts out: those that are in the slot already stay where they are.  Part 0 is the first one. */
static void parcel_lay_out(const parcel *p, const unsigned char *memory, slot_part *out) {
    uint64_t head = head_bytes(p), end = being_made.bytes > head ? align(being_made.bytes) : head;
    for (int i = 0; i < p->count; ++i) {
        const Py_buffer *view = &p->views[i];
        uint64_t bytes = (uint64_t)view->len, offset = (uint64_t)((uintptr_t)view->buf - (uintptr_t)memory);
        if (i == 0)
            out[i] = (slot_part){head - align(bytes), bytes};
        else if (is_in_slot(view, memory) && offset >= head)
            out[i] = (slot_part){offset, bytes};
        else {
            out[i] = (slot_part){end, bytes};
            end += align(bytes);
        }
    }
}

static uint64_t end_of(const parcel *p, const slot_part *parts) {
    uint64_t end = head_bytes(p);
    for (int i = 0; i < p->count; ++i) {
        uint64_t part_end = align(parts[i].offset + parts[i].bytes);
        if (part_end > end) end = part_end;
    }
    return end;
}

/* The arrays first: an array in the slot that lies where the header will be is copied away before. */
static void parcel_copy(const parcel *p, const slot_part *parts, unsigned char *memory) {
    slot_header *header = (void *)memory;
    for (int i = p->count - 1; i >= 0; --i) {
        unsigned char *to = memory + parts[i].offset;
        if (parts[i].bytes && to != p->views[i].buf) memmove(to, p->views[i].buf, parts[i].bytes);
    }
    header->kind = p->kind;
    header->count = (uint64_t)p->count;
    for (int i = 0; i < p->count; ++i) header->parts[i] = parts[i];
}

static leat_status set_bytes(leat_batch *batch, uint64_t bytes, leat_error *err) {
    uint64_t each = (bytes + (uint64_t)batch->size - 1) / (uint64_t)batch->size;
    leat_status status = leat_batch_reserve(batch, each * (uint64_t)batch->size, err);
    if (status == LEAT_OK) batch->tensors[0].shape[1] = (int64_t)each;
    return status;
}

static leat_status write_parcel(const parcel *p, leat_batch *batch, leat_error *err) {
    unsigned char *memory = batch->tensors[0].data;
    slot_part *parts = PyMem_Calloc((size_t)p->count + 1, sizeof *parts);
    if (!parts) return leat_error_set_text(err, LEAT_ENOMEM, "no memory for the parts of a batch");
    parcel_lay_out(p, memory, parts);
    leat_status status = set_bytes(batch, end_of(p, parts), err);
    if (status == LEAT_OK) {
        Py_BEGIN_ALLOW_THREADS parcel_copy(p, parts, memory);
        Py_END_ALLOW_THREADS
    }
    PyMem_Free(parts);
    return status;
}

/* Writes what `make` has returned into the batch's slot; the last dimension of its tensor becomes as large as the parts
 * need. */
static leat_status write_parts(PyObject *made, leat_batch *batch, leat_error *err) {
    parcel p = {0};
    if (being_made.bytes && PyTuple_Check(made) && PyTuple_GetItem(made, 1) == Py_None) {
        ((slot_header *)batch->tensors[0].data)->kind = KIND_STRUCTURE;
        return set_bytes(batch, being_made.bytes, err);
    }
    leat_status status = LEAT_OK;
    if (parcel_collect(&p, made) != 0)
        status = take_exception("the batch cannot be written", err);
    else
        status = write_parcel(&p, batch, err);
    parcel_clear(&p);
    return status;
}

/* Lays the slot out for the parts, and writes the header and part 0. */
static PyObject *prepare_slot(const parcel *p, leat_batch *batch) {
    leat_error err = {0};
    unsigned char *memory = batch->tensors[0].data;
    slot_header *header = (void *)memory;
    slot_part *parts = PyMem_Calloc((size_t)p->count + 1, sizeof *parts);
    if (!parts) return PyErr_NoMemory();
    parcel_lay_out(p, memory, parts);
    uint64_t bytes = end_of(p, parts);
    if (set_bytes(batch, bytes, &err) != LEAT_OK) {
        PyMem_Free(parts);
        return raise_error(&err);
    }
    header->kind = KIND_STRUCTURE;
    header->count = (uint64_t)p->count;
    for (int i = 0; i < p->count; ++i) header->parts[i] = parts[i];
    memcpy(memory + parts[0].offset, p->views[0].buf, (size_t)parts[0].bytes);
    being_made.bytes = bytes;
    PyMem_Free(parts);
    return view_being_made(header);
}

PyObject *begin_in_place(PyObject *module, PyObject *parts) {
    (void)module;
    parcel p = {0};
    PyObject *made = NULL, *out = NULL;
    if (!being_made.batch) {
        PyErr_SetString(PyExc_RuntimeError, "this thread makes no batch");
        return NULL;
    }
    being_made.bytes = 0;
    made = Py_BuildValue("iO", (int)KIND_STRUCTURE, parts);
    if (made && parcel_collect(&p, made) == 0) out = prepare_slot(&p, being_made.batch);
    parcel_clear(&p);
    Py_XDECREF(made);
    return out;
}

/* ---- forks ---- */

/* True while forks of this thread are those of leat: the interpreter must be told of them, as it is of os.fork. */
static _Thread_local bool leat_forks;

void set_leat_forks(bool on) {
    leat_forks = on;
}

static void before_fork(void) {
    if (leat_forks) PyOS_BeforeFork();
}

static void after_fork_in_parent(void) {
    if (leat_forks) PyOS_AfterFork_Parent();
}

static void after_fork_in_child(void) {
    if (leat_forks) PyOS_AfterFork_Child();
}

int watch_forks(void) {
    return pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* ---- the functions of the sequence ---- */

static leat_status call_make(const source *s, PyObject *numbers, const leat_rng *rng, leat_batch *batch,
                             bool generator, leat_error *err) {
    if (!numbers) return take_exception("make", err);
    being_made.batch = batch;
    being_made.bytes = 0;
    PyObject *made = PyObject_CallFunction(s->make, "OKK", numbers, (unsigned long long)rng->key,
                                           (unsigned long long)rng->counter[1]);
    being_made.batch = NULL;
    Py_DECREF(numbers);
    if (!made) return take_exception("make", err);
    leat_status status = LEAT_OK;
    if (made != Py_None)
        status = write_parts(made, batch, err);
    else if (generator)
        batch->size = 0; /* its end */
    else
        status = leat_error_set_text(err, LEAT_ESKIPPED, "the batch was skipped");
    Py_DECREF(made);
    return status;
}

static leat_status get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    PyGILState_STATE state = PyGILState_Ensure();
    leat_status status = call_make(user, PyLong_FromLongLong(index), rng, batch, false, err);
    PyGILState_Release(state);
    return status;
}

static leat_status get_samples(void *user, const int64_t *numbers, int64_t count, leat_rng *rng,
                               leat_batch *batch, leat_error *err) {
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (Py_ssize_t i = 0; list && i < (Py_ssize_t)count; ++i) {
        PyObject *number = PyLong_FromLongLong(numbers[i]);
        if (!number || PyList_SetItem(list, i, number) != 0) {
            Py_DECREF(list);
            list = NULL;
        }
    }
    leat_status status = call_make(user, list, rng, batch, false, err);
    PyGILState_Release(state);
    return status;
}

/* For a feed whose samples are not shuffled: the batch has the samples in their order. */
static leat_status get_in_order(void *user, int64_t index, leat_rng *rng, leat_batch *batch,
                                leat_error *err) {
    const source *s = user;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *count = PyObject_CallFunction(s->samples, NULL);
    int64_t samples = count ? PyLong_AsLongLong(count) : -1, first = index * batch->size;
    Py_XDECREF(count);
    leat_status status = LEAT_OK;
    if (PyErr_Occurred())
        status = take_exception("samples", err);
    else {
        if (samples - first < batch->size) batch->size = samples - first;
        batch->tensors[0].shape[0] = batch->size;
        PyObject *list = PyList_New((Py_ssize_t)batch->size);
        for (Py_ssize_t i = 0; list && i < (Py_ssize_t)batch->size; ++i)
            PyList_SetItem(list, i, PyLong_FromLongLong(first + i));
        status = call_make(s, list, rng, batch, false, err);
    }
    PyGILState_Release(state);
    return status;
}

static leat_status next(void *user, leat_rng *rng, leat_batch *batch, leat_error *err) {
    PyGILState_STATE state = PyGILState_Ensure();
    leat_status status = call_make(user, PyLong_FromLong(0), rng, batch, true, err);
    PyGILState_Release(state);
    return status;
}

/* Calls a function without arguments that returns a number; -1 if it fails, and the exception stays set. */
static int64_t call_number(PyObject *function) {
    PyGILState_STATE state = PyGILState_Ensure();
    bool forks = leat_forks;
    leat_forks = false; /* The data may fork, too. */
    PyObject *made = PyObject_CallFunction(function, NULL);
    leat_forks = forks;
    int64_t number = made ? PyLong_AsLongLong(made) : -1;
    Py_XDECREF(made);
    PyGILState_Release(state);
    return number;
}

static int64_t length(void *user) {
    return call_number(((source *)user)->length);
}

static int64_t samples(void *user) {
    return call_number(((source *)user)->samples);
}

static leat_status end_pass(void *user, int64_t pass, leat_error *err) {
    PyGILState_STATE state = PyGILState_Ensure();
    bool forks = leat_forks;
    leat_forks = false;
    PyObject *made = PyObject_CallFunction(((source *)user)->end_pass, "L", (long long)pass);
    leat_forks = forks;
    /* The exception stays set: the caller, a method of the feed, raises it. */
    leat_status status = made ? LEAT_OK : leat_error_set_text(err, LEAT_EUSER, "on_epoch_end failed");
    Py_XDECREF(made);
    PyGILState_Release(state);
    return status;
}

/* ---- workers ---- */

/* A worker process was forked by a thread that holds the interpreter's lock.  A worker thread is attached once, so that
 * it keeps its thread state, and with it threading.local variables, from batch to batch. */
static leat_status begin_worker(void *user, int worker, leat_error *err) {
    const source *s = user;
    (void)err;
    (void)worker;
    if (s->workers == SOURCE_PROCESSES) leat_forks = false;
    if (s->workers != SOURCE_THREADS) return LEAT_OK;
    PyGILState_Ensure();
    PyEval_SaveThread();
    return LEAT_OK;
}

static void end_worker(void *user, int worker) {
    const source *s = user;
    (void)worker;
    if (s->workers != SOURCE_THREADS) return;
    PyEval_RestoreThread(PyGILState_GetThisThreadState());
    PyGILState_Release(PyGILState_UNLOCKED);
}

int source_sequence(leat_sequence *out, source *functions, bool by_samples, bool generator,
                    int64_t batch_size, int64_t most_bytes) {
    leat_error err = {0};
    leat_sequence_init(out, sizeof *out);
    out->user = functions;
    out->spec.batch_size = batch_size;
    if (generator)
        out->next = next;
    else {
        out->length = length;
        out->get = by_samples ? get_in_order : get;
    }
    if (by_samples) {
        out->samples = samples;
        out->get_samples = get_samples;
    }
    if (functions->end_pass) out->on_epoch_end = end_pass;
    out->worker_init = begin_worker;
    out->worker_fini = end_worker;
    int64_t each = most_bytes / batch_size;
    if (leat_batch_spec_add(&out->spec, LEAT_PART_INPUT, "batch", LEAT_U8, 1, &each, &err) == LEAT_OK)
        return 0;
    raise_error(&err);
    return -1;
}
