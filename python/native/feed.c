/* SPDX-License-Identifier: Apache-2.0 */
/* The type leat._native.Feed: one leat_feed, its Python functions, and the bytes that its helper program receives. */
#include "native.h"
#if defined(LEAT_TRAINER)
#include "trainer.h"
#endif

#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { MOST_COUNTED = 32 }; /* With longer queues, counting the ready batches takes longer than it saves. */

typedef struct feed {
    PyObject ob_base;
    leat_feed *feed;   /* NULL: closed */
    source *functions; /* threads that are still making a batch after closing keep it */
    PyObject *data;    /* bytes for the helper program */
    PyObject *source;  /* the data of a native source, or NULL */
    PyObject *unpack;  /* makes a batch of (kind, parts); NULL: take() is not used */
    leat_trace *trace; /* NULL: none */
    char **command;    /* NULL at the end; NULL: none */
    bool holds_lock;   /* processes are forked while passes end: the interpreter's lock is held then */
    atomic_bool busy;  /* a thread is in a call, or closes the feed: no other thread may write `feed` */
    int queue;         /* max_queue_size */
    long long copied;  /* batches that were copied, because too many others were alive */
    int64_t begun_ns;  /* when the first batch was asked for, by the monotonic clock; 0: not yet */
    int64_t taken_ns;  /* when the last batch was taken */
} feed;

/* ---- opening and closing ---- */

static void free_command(feed *self) {
    for (char **word = self->command; word && *word; ++word) PyMem_Free(*word);
    PyMem_Free(self->command);
    self->command = NULL;
}

/* Copies a sequence of str, or None. */
static int read_command(feed *self, PyObject *words) {
    if (words == Py_None) return 0;
    Py_ssize_t count = PySequence_Size(words);
    if (count < 0) return -1;
    self->command = PyMem_Calloc((size_t)count + 1, sizeof *self->command);
    if (!self->command) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject *word = PySequence_GetItem(words, i), *bytes = word ? PyUnicode_EncodeFSDefault(word) : NULL;
        Py_XDECREF(word);
        if (!bytes) return -1;
        const char *text = PyBytes_AsString(bytes);
        size_t size = text ? strlen(text) + 1 : 0;
        self->command[i] = text ? PyMem_Malloc(size) : NULL;
        if (self->command[i]) memcpy(self->command[i], text, size);
        Py_DECREF(bytes);
        if (!self->command[i]) return PyErr_NoMemory(), -1;
    }
    return 0;
}

static void take_function(PyObject **out, PyObject *function) {
    if (function == Py_None) return;
    Py_INCREF(function);
    *out = function;
}

static char *const names[] = {"make",       "length",     "samples", "end_pass", "command",     "data",
                              "workers",    "kind",       "queue",   "kept",     "most_bytes",  "batch_size",
                              "by_samples", "generator",  "shuffle", "window",   "seed",        "rank",
                              "world",      "remainder",  "limit",   "passes",   "deadline_ms", "max_deaths",
                              "skip",       "max_memory", "trace",   "at_pass",  "at_batch",    "native",
                              NULL};

typedef struct arguments {
    PyObject *make, *length, *samples, *end_pass, *command, *data, *native;
    int by_samples, generator, kind, shuffle, remainder, skip;
    long long most_bytes, batch_size;
    const char *trace; /* a path, or NULL */
    leat_feed_options options;
    leat_feed_position at;
} arguments;

static int parse(arguments *a, PyObject *args, PyObject *named) {
    long long window = 0, limit = 0, passes = 0, deadline = 0, memory = 0, pass = 0, batch = 0;
    unsigned long long seed = 0;
    leat_feed_options *o = &a->options;
    leat_feed_options_init(o, sizeof *o);
    if (!PyArg_ParseTupleAndKeywords(
            args, named, "OOOOOOiiiiLLppiLKiiiLLLipLzLL|O", (char **)(uintptr_t)names, &a->make, &a->length,
            &a->samples, &a->end_pass, &a->command, &a->data, &o->workers, &a->kind, &o->max_queue_size,
            &o->kept_batches, &a->most_bytes, &a->batch_size, &a->by_samples, &a->generator, &a->shuffle,
            &window, &seed, &o->rank, &o->world, &a->remainder, &limit, &passes, &deadline,
            &o->faults.max_deaths, &a->skip, &memory, &a->trace, &pass, &batch, &a->native))
        return -1;
    o->shuffle = (leat_shuffle)a->shuffle;
    o->remainder = (leat_remainder)a->remainder;
    o->shuffle_window = window;
    o->seed = seed;
    o->limit = limit;
    o->passes = passes;
    o->faults.deadline_ms = deadline;
    o->faults.bad_batch = a->skip ? LEAT_BAD_BATCH_SKIP : LEAT_BAD_BATCH_FAIL;
    o->elastic = !a->native;
    o->max_worker_memory = memory > 0 ? (size_t)memory : 0;
    o->use_multiprocessing = a->kind == SOURCE_PROCESSES;
    a->at = (leat_feed_position){.pass = pass, .ordinal = batch};
    return 0;
}

#if defined(LEAT_TRAINER)
/* Opens the feed of a native source: its workers run no Python. */
static int open_native(feed *self, const arguments *a) {
    leat_error err = {0};
    leat_status status = LEAT_OK;
    data_set *d = data_of(a->native);
    if (!d) return -1;
    Py_BEGIN_ALLOW_THREADS status = leat_feed_open_at(&self->feed, &d->sequence, &a->options, &a->at, &err);
    Py_END_ALLOW_THREADS if (status != LEAT_OK) return raise_error(&err), -1;
    ++d->users;
    Py_INCREF(a->native);
    self->source = a->native;
    return 0;
}

static void leave_source(feed *self) {
    if (self->source) --((data_set *)self->source)->users;
    Py_CLEAR(self->source);
}
#else
static int open_native(feed *self, const arguments *a) {
    (void)self, (void)a;
    PyErr_SetString(PyExc_TypeError, "leat._trainer has the feeds of native sources");
    return -1;
}

static void leave_source(feed *self) {
    (void)self;
}

static PyObject *view_tensors(PyObject *from, leat_feed *opened, const leat_batch *batch, bool *copied) {
    (void)from, (void)opened, (void)batch, (void)copied;
    return NULL;
}
#endif

/* Begins to record, if the feed has a path of a trace. */
static int open_trace(feed *self, arguments *a) {
    leat_error err = {0};
    if (a->trace && leat_trace_open(&self->trace, a->trace, &err) != LEAT_OK) {
        raise_error(&err);
        return -1;
    }
    a->options.trace = self->trace;
    return 0;
}

/* Sets up what a feed needs before it is opened. */
static int prepare_feed(feed *self, arguments *a, leat_sequence *sequence) {
    self->functions = PyMem_Calloc(1, sizeof *self->functions);
    if (!self->functions) return PyErr_NoMemory(), -1;
    self->queue = a->options.max_queue_size;
    take_function(&self->functions->make, a->make);
    take_function(&self->functions->length, a->length);
    take_function(&self->functions->samples, a->samples);
    take_function(&self->functions->end_pass, a->end_pass);
    self->functions->workers = a->options.workers > 0 ? (unsigned)a->kind : SOURCE_INLINE;
    if (read_command(self, a->command) != 0) return -1;
    Py_INCREF(a->data);
    self->data = a->data;
    if (source_sequence(sequence, self->functions, a->by_samples, a->generator, a->batch_size,
                        a->most_bytes) != 0)
        return -1;
    char *bytes = NULL;
    Py_ssize_t count = 0;
    if (self->data != Py_None && PyBytes_AsStringAndSize(self->data, &bytes, &count) != 0) return -1;
    a->options.helper_command = (const char *const *)self->command;
    a->options.helper_data = bytes;
    a->options.helper_data_bytes = (size_t)count;
    self->holds_lock = a->kind == SOURCE_PROCESSES && self->functions->end_pass;
    return 0;
}

static int open_feed(feed *self, arguments *a) {
    leat_error err = {0};
    leat_sequence sequence;
    if (open_trace(self, a) != 0) return -1;
    if (a->native) return open_native(self, a);
    if (prepare_feed(self, a, &sequence) != 0) return -1;
    set_leat_forks(a->kind == SOURCE_PROCESSES);
    leat_status status = leat_feed_open_at(&self->feed, &sequence, &a->options, &a->at, &err);
    set_leat_forks(false);
    if (status == LEAT_OK) return 0;
    raise_error(&err);
    return -1;
}

static PyObject *feed_new(PyTypeObject *type, PyObject *args, PyObject *named) {
    arguments a = {0};
    if (parse(&a, args, named) != 0) return NULL;
    allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *self = make(type, 0);
    if (self && open_feed((feed *)self, &a) == 0) return self;
    Py_XDECREF(self);
    return NULL;
}

/* Several feeds, while they are opened together. */
typedef struct opening {
    arguments *all;
    leat_sequence *sequences;
    leat_feed_config *configs;
    leat_feed **feeds;
} opening;

static int open_all(opening *o, PyObject *made, PyObject *described, int count) {
    PyObject *nothing = PyTuple_New(0);
    bool ready = nothing != NULL;
    for (int i = 0; ready && i < count; ++i) {
        feed *self = (feed *)PyList_GetItem(made, i);
        ready = parse(&o->all[i], nothing, PyList_GetItem(described, i)) == 0 &&
                open_trace(self, &o->all[i]) == 0 && prepare_feed(self, &o->all[i], &o->sequences[i]) == 0;
        if (i > 0) o->sequences[i].worker_init = NULL; /* It is called once for each worker process. */
        o->configs[i] = (leat_feed_config){&o->sequences[i], &o->all[i].options, {0}};
    }
    Py_XDECREF(nothing);
    leat_error err = {0};
    if (!ready) return -1;
    set_leat_forks(o->all[0].kind == SOURCE_PROCESSES);
    leat_status status = leat_feed_open_together(o->feeds, o->configs, count, &err);
    set_leat_forks(false);
    if (status != LEAT_OK) {
        raise_error(&err);
        return -1;
    }
    for (int i = 0; i < count; ++i) ((feed *)PyList_GetItem(made, i))->feed = o->feeds[i];
    return 0;
}

/* open_together(type, [named arguments of a feed, ...]): the list of the feeds, which share worker processes. */
PyObject *open_together(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *type = NULL, *described = NULL; /* borrowed */
    if (!PyArg_ParseTuple(args, "OO", &type, &described)) return NULL;
    Py_ssize_t count = PyList_Size(described);
    if (count < 0) return NULL;
    allocfunc make = (allocfunc)PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc);
    PyObject *made = PyList_New(count);
    for (Py_ssize_t i = 0; made && i < count; ++i) {
        PyObject *one = make((PyTypeObject *)type, 0);
        if (!one || PyList_SetItem(made, i, one) != 0) Py_CLEAR(made);
    }
    if (!made) return NULL;
    size_t n = (size_t)count;
    opening o = {PyMem_Calloc(n, sizeof *o.all), PyMem_Calloc(n, sizeof *o.sequences),
                 PyMem_Calloc(n, sizeof *o.configs), PyMem_Calloc(n, sizeof *o.feeds)};
    if (!o.all || !o.sequences || !o.configs || !o.feeds) {
        PyErr_NoMemory();
        Py_CLEAR(made);
    } else if (open_all(&o, made, described, (int)count) != 0)
        Py_CLEAR(made);
    PyMem_Free(o.all);
    PyMem_Free(o.sequences);
    PyMem_Free(o.configs);
    PyMem_Free(o.feeds);
    return made;
}

static int close_feed(feed *self) {
    leat_feed *closing = NULL;
    int left = 0;
    if (atomic_exchange(&self->busy, true)) {
        PyErr_SetString(PyExc_RuntimeError, "another thread waits for a batch of this feed");
        return -1;
    }
    Py_BEGIN_CRITICAL_SECTION(self);
    closing = self->feed;
    self->feed = NULL;
    Py_END_CRITICAL_SECTION();
    if (closing) {
        Py_BEGIN_ALLOW_THREADS left = leat_feed_close(&closing);
        Py_END_ALLOW_THREADS
    }
    if (left) {
        self->functions = NULL; /* Neither it nor its objects are freed. */
        self->source = NULL;
    }
    leave_source(self);
    leat_error err = {0};
    leat_status status = leat_trace_close(&self->trace, &err);
    self->busy = false;
    if (status == LEAT_OK) return 0;
    raise_error(&err);
    return -1;
}

static void free_functions(source *functions) {
    if (!functions) return;
    Py_XDECREF(functions->make);
    Py_XDECREF(functions->length);
    Py_XDECREF(functions->samples);
    Py_XDECREF(functions->end_pass);
    PyMem_Free(functions);
}

static void feed_dealloc(PyObject *object) {
    feed *self = (feed *)object;
    PyTypeObject *type = Py_TYPE(object);
    if (close_feed(self) != 0) PyErr_Clear();
    free_functions(self->functions);
    Py_XDECREF(self->data);
    Py_XDECREF(self->unpack);
    free_command(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static PyObject *feed_close(PyObject *self, PyObject *nothing) {
    (void)nothing;
    if (close_feed((feed *)self) != 0) return NULL;
    Py_RETURN_NONE;
}

static PyObject *feed_stop(PyObject *self, PyObject *nothing) {
    (void)nothing;
    Py_BEGIN_CRITICAL_SECTION(self);
    leat_feed_stop(((feed *)self)->feed);
    Py_END_CRITICAL_SECTION();
    Py_RETURN_NONE;
}

/* ---- batches ---- */

static int begin_call(feed *self) {
    bool refused = atomic_exchange(&self->busy, true);
    if (!refused && self->feed) return 0;
    PyErr_SetString(PyExc_RuntimeError,
                    refused ? "a feed serves one thread at a time, and another one waits for a batch"
                            : "the feed is closed");
    if (!refused) self->busy = false;
    return -1;
}

/* Waits until it is known if the pass has another batch; looks at Python's signals ten times a second.  Returns -1 with
 * an exception set.  For a batch that is ready it keeps the interpreter's lock, which another thread may hold for
 * milliseconds. */
static int await(feed *self, bool *more) {
    leat_error err = {0};
    leat_status status = LEAT_EBUSY;
    if (self->queue <= MOST_COUNTED && leat_feed_ready_count(self->feed) > 0)
        status = leat_feed_await_for(self->feed, 0, more, &err);
    while (status == LEAT_EBUSY) {
        Py_BEGIN_ALLOW_THREADS status = leat_feed_await_for(self->feed, 100, more, &err);
        Py_END_ALLOW_THREADS if (status == LEAT_EBUSY && PyErr_CheckSignals() != 0) return -1;
    }
    if (status == LEAT_OK && !PyErr_Occurred()) return 0;
    raise_error(&err);
    return -1;
}

static int end_pass(feed *self) {
    leat_error err = {0};
    leat_status status = LEAT_OK;
    if (self->holds_lock) {
        set_leat_forks(true);
        status = leat_feed_end_pass(self->feed, &err);
        set_leat_forks(false);
    } else {
        Py_BEGIN_ALLOW_THREADS status = leat_feed_end_pass(self->feed, &err);
        Py_END_ALLOW_THREADS
    }
    if (status == LEAT_OK && !PyErr_Occurred()) return 0;
    raise_error(&err);
    return -1;
}

static PyObject *take_next(feed *self) {
    leat_error err = {0};
    const leat_batch *batch = NULL;
    if (leat_feed_get(self->feed, &batch, &err) != LEAT_OK) return raise_error(&err);
    bool copied = false;
    PyObject *viewed = self->source ? view_tensors(self->source, self->feed, batch, &copied)
                                    : view_batch(self->feed, batch, &copied);
    leat_feed_release(self->feed);
    self->copied += copied;
    return viewed;
}

static int64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Returns (kind, parts) of the next batch; `end` if the pass has ended. */
static PyObject *get_or(feed *self, PyObject *end) {
    bool more = false;
    PyObject *result = NULL;
    if (begin_call(self) != 0) return NULL;
    if (!self->begun_ns) self->begun_ns = now_ns();
    if (await(self, &more) == 0) {
        if (more)
            result = take_next(self);
        else {
            Py_INCREF(end);
            result = end;
        }
    }
    self->taken_ns = now_ns();
    self->busy = false;
    return result;
}

/* get(): (kind, parts) of the next batch of the pass; None: the pass has ended. */
static PyObject *feed_get(PyObject *self, PyObject *nothing) {
    (void)nothing;
    return get_or((feed *)self, Py_None);
}

/* take(end): the next batch of the pass; `end` if the pass has ended. */
static PyObject *feed_take(PyObject *object, PyObject *end) {
    feed *self = (feed *)object;
    PyObject *taken = get_or(self, end);
    if (!taken || taken == end) return taken;
    PyObject *batch = PyTuple_GetItem(taken, 1);
    if (PyLong_AsLong(PyTuple_GetItem(taken, 0)) == KIND_STRUCTURE)
        Py_INCREF(batch);
    else
        batch = PyObject_CallObject(self->unpack, taken);
    Py_DECREF(taken);
    return batch;
}

/* set_unpack(function): makes take() a batch of what it receives as (kind, parts). */
static PyObject *feed_set_unpack(PyObject *object, PyObject *function) {
    feed *self = (feed *)object;
    PyObject *replaced = self->unpack;
    Py_INCREF(function);
    self->unpack = function;
    Py_XDECREF(replaced);
    Py_RETURN_NONE;
}

/* end_pass(): begins the next pass.  Returns False if the stream has ended. */
static PyObject *feed_end_pass(PyObject *object, PyObject *nothing) {
    (void)nothing;
    feed *self = (feed *)object;
    bool more = false;
    if (begin_call(self) != 0) return NULL;
    bool failed = end_pass(self) != 0 || await(self, &more) != 0;
    self->busy = false;
    return failed ? NULL : PyBool_FromLong(more);
}

/* seek(pass, batch): continues at another position. */
static PyObject *feed_seek(PyObject *object, PyObject *args) {
    feed *self = (feed *)object;
    long long pass = 0, batch = 0;
    leat_error err = {0};
    if (!PyArg_ParseTuple(args, "LL", &pass, &batch) || begin_call(self) != 0) return NULL;
    leat_feed_position at = {.pass = pass, .ordinal = batch};
    leat_status status = leat_feed_seek(self->feed, &at, &err);
    self->busy = false;
    if (status != LEAT_OK || PyErr_Occurred()) return raise_error(&err);
    Py_RETURN_NONE;
}

/* ---- figures ---- */

static PyObject *position_tuple(leat_feed_position at) {
    return Py_BuildValue("LLL", (long long)at.pass, (long long)at.ordinal, (long long)at.index);
}

static PyObject *feed_position(PyObject *self, PyObject *nothing) {
    (void)nothing;
    leat_feed_position at;
    Py_BEGIN_CRITICAL_SECTION(self);
    at = leat_feed_position_get(((feed *)self)->feed);
    Py_END_CRITICAL_SECTION();
    return position_tuple(at);
}

static PyObject *feed_next_position(PyObject *self, PyObject *nothing) {
    (void)nothing;
    leat_feed_position at;
    Py_BEGIN_CRITICAL_SECTION(self);
    at = leat_feed_next_position(((feed *)self)->feed);
    Py_END_CRITICAL_SECTION();
    return position_tuple(at);
}

static PyObject *feed_length(PyObject *self, PyObject *nothing) {
    (void)nothing;
    int64_t length = 0;
    Py_BEGIN_CRITICAL_SECTION(self);
    length = leat_feed_length(((feed *)self)->feed);
    Py_END_CRITICAL_SECTION();
    return PyLong_FromLongLong(length);
}

static PyObject *feed_stats(PyObject *self, PyObject *nothing) {
    (void)nothing;
    const feed *f = (feed *)self;
    leat_feed_stats s;
    int ready = 0;
    Py_BEGIN_CRITICAL_SECTION(self);
    leat_feed_stats_get_into(f->feed, &s, sizeof s);
    ready = leat_feed_ready_count(f->feed);
    Py_END_CRITICAL_SECTION();
    return Py_BuildValue("{sLsLsLsLs(LLLL)sLs(LLLL)sLsLsLsLsLsisisisLsLsLsL}", "batches",
                         (long long)s.batches, "bytes", (long long)s.bytes, "starved", (long long)s.starved,
                         "wait_ns", (long long)s.wait_ns, "wait", (long long)s.wait.p50,
                         (long long)s.wait.p90, (long long)s.wait.p99, (long long)s.wait.max, "get_ns",
                         (long long)s.get_ns, "get", (long long)s.get.p50, (long long)s.get.p90,
                         (long long)s.get.p99, (long long)s.get.max, "worker_deaths",
                         (long long)s.worker_deaths, "timeouts", (long long)s.timeouts, "retries",
                         (long long)s.retries, "skips", (long long)s.skips, "ring_bytes",
                         (long long)s.ring_bytes, "max_queue_size", s.max_queue_size, "workers", s.workers,
                         "ready", ready, "copied", f->copied, "replaced", (long long)s.replaced, "elapsed_ns",
                         (long long)(f->taken_ns - f->begun_ns), "samples_left_out",
                         (long long)s.samples_left_out);
}

/* set_data(bytes): what helper programs that start from now on receive; for end_pass. */
static PyObject *feed_set_data(PyObject *object, PyObject *data) {
    feed *self = (feed *)object;
    char *bytes = NULL;
    Py_ssize_t count = 0;
    leat_error err = {0};
    if (PyBytes_AsStringAndSize(data, &bytes, &count) != 0) return NULL;
    PyObject *replaced = data;
    leat_status status = LEAT_OK;
    Py_BEGIN_CRITICAL_SECTION(self);
    status = leat_feed_set_helper_data(self->feed, bytes, (size_t)count, &err);
    if (status == LEAT_OK) {
        Py_INCREF(data);
        replaced = self->data;
        self->data = data;
    }
    Py_END_CRITICAL_SECTION();
    if (status != LEAT_OK) return raise_error(&err);
    Py_XDECREF(replaced);
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"get", feed_get, METH_NOARGS, "Returns (kind, parts) of the next batch; None at the end of the pass."},
    {"take", feed_take, METH_O, "Returns the next batch; the argument at the end of the pass."},
    {"set_unpack", feed_set_unpack, METH_O, "Sets the function that makes a batch of (kind, parts)."},
    {"end_pass", feed_end_pass, METH_NOARGS, "Begins the next pass; False if the stream has ended."},
    {"seek", feed_seek, METH_VARARGS, "Continues at (pass, batch)."},
    {"close", feed_close, METH_NOARGS, "Stops the workers and frees the feed."},
    {"stop", feed_stop, METH_NOARGS, "Stops the stream, from any thread."},
    {"position", feed_position, METH_NOARGS, "Returns (pass, batch, index) of the batch taken last."},
    {"next_position", feed_next_position, METH_NOARGS,
     "Returns (pass, batch, index) after the batch taken last."},
    {"length", feed_length, METH_NOARGS, "Returns the number of batches of the pass."},
    {"stats", feed_stats, METH_NOARGS, "Returns the feed's measurements."},
    {"set_data", feed_set_data, METH_O, "Sets the bytes for helper programs."},
    {0}};

static PyType_Slot slots[] = {{Py_tp_new, (void *)feed_new},
                              {Py_tp_dealloc, (void *)feed_dealloc},
                              {Py_tp_methods, (void *)methods},
                              {0}};
PyType_Spec feed_spec = {"leat._native.Feed", sizeof(feed), 0, Py_TPFLAGS_DEFAULT, slots};
