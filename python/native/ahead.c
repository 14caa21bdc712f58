/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of Python data that a second thread takes while the step computes.  The thread of the call receives them from
 * a ring without the interpreter's lock, for which it would otherwise wait up to a switch interval per step. */
#include "trainer.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

enum { SIGNAL_PERIOD_MS = 50 };

/* A place of the ring.  size: the samples of the batch; 0: the end of the pass. */
typedef struct place {
    int64_t size;
    array_view *views;
} place;

struct ahead {
    pthread_mutex_t lock; /* guards all members below; never held while Python runs */
    pthread_cond_t changed;
    /* `depth` batches that are ready, `depth` that were given up, and KEPT_BATCHES that the feed may still read */
    place *places;
    array_view *views;
    int depth, count, tensors;
    int64_t made, taken; /* batches; place number: batch % count */
    int64_t asked;       /* the number of the pass that the call wants, from 1 */
    bool begun;          /* The call has asked for a batch. */
    bool stopped;
    bool failed; /* by `error` or, if that is NULL, by `why` */
    leat_error why;
    PyObject *error_type, *error, *error_trace;
};

/* ---- making and freeing ---- */

static int start(pthread_mutex_t *lock, pthread_cond_t *changed) {
    pthread_condattr_t attributes;
    if (pthread_mutex_init(lock, NULL) != 0) return -1;
    int failed = pthread_condattr_init(&attributes);
    if (failed == 0) {
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        failed = pthread_cond_init(changed, &attributes);
        pthread_condattr_destroy(&attributes);
    }
    if (failed) pthread_mutex_destroy(lock);
    return failed ? -1 : 0;
}

void ahead_free(ahead *a) {
    if (!a) return;
    for (int i = 0; i < a->count * a->tensors; ++i) array_close(&a->views[i]);
    Py_XDECREF(a->error_type);
    Py_XDECREF(a->error);
    Py_XDECREF(a->error_trace);
    pthread_cond_destroy(&a->changed);
    pthread_mutex_destroy(&a->lock);
    PyMem_Free(a->places);
    PyMem_Free(a->views);
    PyMem_Free(a);
}

ahead *ahead_new(int depth, int tensors) {
    ahead *a = PyMem_Calloc(1, sizeof *a);
    int count = 2 * depth + KEPT_BATCHES;
    if (a && start(&a->lock, &a->changed) != 0) {
        PyMem_Free(a);
        a = NULL;
    }
    if (!a) return PyErr_NoMemory(), NULL;
    a->places = PyMem_Calloc((size_t)count, sizeof *a->places);
    a->views = PyMem_Calloc((size_t)count * (size_t)tensors + 1, sizeof *a->views);
    if (!a->places || !a->views) {
        ahead_free(a);
        return PyErr_NoMemory(), NULL;
    }
    a->depth = depth;
    a->count = count;
    a->tensors = tensors;
    a->asked = 1;
    for (int i = 0; i < count; ++i) a->places[i].views = a->views + (ptrdiff_t)i * tensors;
    return a;
}

/* ---- the thread that takes ---- */

/* Waits for a free place, or for a later pass if this one has ended.  Returns false when the thread has to end. */
static bool await_place(ahead *a, int64_t pass, bool pass_ended) {
    bool goes_on = false;
    Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&a->lock);
    while (!a->stopped && a->asked == pass && (pass_ended || a->made - a->taken >= a->depth))
        pthread_cond_wait(&a->changed, &a->lock);
    goes_on = !a->stopped;
    pthread_mutex_unlock(&a->lock);
    Py_END_ALLOW_THREADS return goes_on;
}

/* Tells the call about a failure: the exception that is set, or *why. */
static void give_failure(ahead *a, const leat_error *why) {
    PyObject *type = NULL, *error = NULL, *trace = NULL;
    if (!why->code) PyErr_Fetch(&type, &error, &trace);
    pthread_mutex_lock(&a->lock);
    a->error_type = type;
    a->error = error;
    a->error_trace = trace;
    a->why = *why;
    a->failed = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

/* Offers a batch to the call, unless it has asked for a later pass meanwhile. */
static void give(ahead *a, int64_t pass, int64_t size) {
    pthread_mutex_lock(&a->lock);
    if (a->asked == pass) {
        a->places[a->made % a->count].size = size;
        ++a->made;
        pthread_cond_broadcast(&a->changed);
    }
    pthread_mutex_unlock(&a->lock);
}

/* Makes one batch in the next place.  Returns its samples, 0 at the end of the pass, and -1 after a failure. */
static int64_t make(data_set *d, int64_t index, leat_error *err) {
    ahead *a = d->ahead;
    int64_t size = -1;
    PyObject *made = PyObject_CallFunction(d->next, "L", (long long)index);
    if (made == Py_None)
        size = 0;
    else if (made) {
        leat_batch batch = {.tensor_count = a->tensors};
        if (take_arrays(d, made, a->places[a->made % a->count].views, &batch, err) == 0) size = batch.size;
        if (size == 0) {
            leat_error_set_text(err, LEAT_ESHAPE, "a batch of the data has no samples");
            size = -1;
        }
    }
    Py_XDECREF(made);
    return size;
}

PyObject *data_run_ahead(PyObject *self, PyObject *nothing) {
    (void)nothing;
    data_set *d = data_of(self);
    if (!d || !d->ahead) return NULL;
    ahead *a = d->ahead;
    leat_error err = {0};
    bool ended = false;
    for (int64_t pass = 1, index = 0; await_place(a, pass, ended); ++index) {
        int64_t asked = 0, size = 0;
        pthread_mutex_lock(&a->lock);
        asked = a->asked;
        pthread_mutex_unlock(&a->lock);
        if (asked != pass) index = 0;
        pass = asked;
        size = make(d, d->sequence.next ? -1 : index, &err);
        if (size < 0) {
            give_failure(a, &err);
            break;
        }
        ended = size == 0;
        give(a, pass, size);
    }
    Py_RETURN_NONE;
}

PyObject *data_stop_ahead(PyObject *self, PyObject *nothing) {
    (void)nothing;
    ahead *a = ((data_set *)self)->ahead;
    if (a) {
        pthread_mutex_lock(&a->lock);
        a->stopped = true;
        pthread_cond_broadcast(&a->changed);
        pthread_mutex_unlock(&a->lock);
    }
    Py_RETURN_NONE;
}

/* ---- the thread of the call ---- */

/* Looks at Python's signals, and at requests to stop, while the call waits. */
static leat_status look(data_set *d, leat_error *err) {
    leat_status status = LEAT_OK;
    PyGILState_STATE state = PyGILState_Ensure();
    if (PyErr_CheckSignals() != 0)
        status = call_failed(d->call, "a signal handler", err);
    else if (d->call->model->stopping)
        status =
            leat_error_set_text(err, LEAT_ESTOPPED, "stop_training was set while training waited for data");
    PyGILState_Release(state);
    return status;
}

/* Waits until a batch is ready, with the lock held. */
static leat_status await_batch(data_set *d, leat_error *err) {
    ahead *a = d->ahead;
    leat_status status = LEAT_OK;
    while (status == LEAT_OK && a->taken == a->made && !a->failed && !a->stopped) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += SIGNAL_PERIOD_MS * 1000000L;
        if (until.tv_nsec >= 1000000000L) {
            until.tv_nsec -= 1000000000L;
            ++until.tv_sec;
        }
        if (pthread_cond_timedwait(&a->changed, &a->lock, &until) != ETIMEDOUT) continue;
        pthread_mutex_unlock(&a->lock);
        status = look(d, err);
        pthread_mutex_lock(&a->lock);
    }
    return status;
}

/* Raises the failure of the other thread in this call. */
static leat_status take_failure(data_set *d, leat_error *err) {
    ahead *a = d->ahead;
    if (!a->error_type) {
        *err = a->why;
        if (!err->code) return leat_error_set_text(err, LEAT_ESTOPPED, "the data was closed");
        return (leat_status)err->code;
    }
    PyGILState_STATE state = PyGILState_Ensure();
    PyErr_Restore(a->error_type, a->error, a->error_trace);
    a->error_type = a->error = a->error_trace = NULL;
    leat_status status = call_failed(d->call, "the data", err);
    PyGILState_Release(state);
    return status;
}

leat_status ahead_take(data_set *d, int64_t index, leat_batch *batch, leat_error *err) {
    ahead *a = d->ahead;
    pthread_mutex_lock(&a->lock);
    if (index == 0 && a->begun) { /* The next pass begins; what is left of this one is given up. */
        ++a->asked;
        a->taken = a->made;
        pthread_cond_broadcast(&a->changed);
    }
    a->begun = true;
    leat_status status = await_batch(d, err);
    const place *from = NULL;
    if (status == LEAT_OK && a->taken < a->made) {
        from = &a->places[a->taken % a->count];
        if (from->size) ++a->taken; /* The end of a pass stays. */
        pthread_cond_broadcast(&a->changed);
    }
    pthread_mutex_unlock(&a->lock);
    if (status != LEAT_OK) return status;
    if (!from) return take_failure(d, err);
    batch->size = from->size;
    for (int i = 0; from->size && i < batch->tensor_count; ++i) batch->tensors[i] = from->views[i].tensor;
    if (from->size || d->sequence.next) return LEAT_OK;
    return leat_error_set_text(err, LEAT_ESKIPPED, "the pass has no further batch");
}
