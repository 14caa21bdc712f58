/* SPDX-License-Identifier: Apache-2.0 */
/* The communicator over MPI.  One thread of its own makes all calls of MPI, so that requests advance while the caller
 * computes, and any level of MPI's thread support will do.  Room: dist. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/os/clock.h"
#include "base/os/futex.h"
#include "base/os/signals.h"
#include "dist/dist.h"
#include "dist/launcher.h"
#include "dist/mpi/calls.h"
#include "dist/mpi/pipeline.h"
#include "dist/mpi/watch.h"
#include "dist/siblings.h"

/* Connecting the ranks may take this many times the timeout of an answer: MPI starts slowly on many hosts. */
enum { START_TIMEOUTS = 6 };

typedef enum stage { STARTING, READY, CLOSING, FINALIZING, ENDED } stage;

typedef struct mpi_dist {
    leat_dist base;
    leati_mpi mpi;
    bool owns_mpi; /* this communicator has initialized MPI */
    int64_t timeout_ms;
    /* Described before MPI is initialized, which may bind the thread that does it to a core. */
    leati_dist_peer me;
    leati_siblings siblings; /* used by the thread that opens the communicator; then it does not change */
    bool is_crowded;         /* more ranks may run on the cores of this one than there are cores */
    pthread_t thread;
    /* Held by the thread that calls MPI; guards the three members below. */
    pthread_mutex_t turn;
    unsigned moves; /* turns in which something has begun or ended: the clock is not read in each of them */
    leati_watch watch;
    leati_pipeline pipeline;
    _Atomic int waiting; /* threads of the program that wait for a request, and make calls of MPI meanwhile */
    _Atomic int pending; /* requests that are not done */
    _Atomic bool has_started; /* there are requests in the list below */
    _Atomic bool is_broken;   /* status is not LEAT_OK */
    pthread_mutex_t lock;     /* guards the members below; is held for short times only */
    pthread_cond_t changed;
    stage stage;
    int abort_code;                     /* 0: no abort was asked for */
    leati_dist_request *started, *last; /* a list of the requests that the pipeline does not have yet */
    leat_status status;                 /* the first failure, which all further requests return */
    leat_error failure;
} mpi_dist;

/* ---- Calls of MPI, by the thread or by a thread that waits ---- */

static leat_status fail_mpi(mpi_dist *d, int code, const char *call, leat_error *err) {
    char text[512];
    d->mpi.calls->explain(&d->mpi, code, text, sizeof text);
    return leati_fail(err, LEAT_EIO, "%s: %s: %s", d->mpi.calls->title, call, text);
}

static void report(mpi_dist *d, leat_status status, const leat_error *why) {
    pthread_mutex_lock(&d->lock);
    if (d->status == LEAT_OK && status != LEAT_OK) {
        d->status = status;
        d->failure = *why;
        atomic_store(&d->is_broken, true);
    }
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

/* Passes the requests that were started on to the pipeline. */
static void take_started(mpi_dist *d) {
    if (!atomic_load_explicit(&d->has_started, memory_order_acquire)) return;
    pthread_mutex_lock(&d->lock);
    leati_dist_request *request = d->started;
    d->started = d->last = NULL;
    atomic_store_explicit(&d->has_started, false, memory_order_relaxed);
    pthread_mutex_unlock(&d->lock);
    while (request) {
        leati_dist_request *next = request->next;
        leati_pipeline_append(&d->pipeline, request);
        request = next;
    }
}

/* After a failure: nobody waits any longer. */
static void give_up(mpi_dist *d, leat_status status, const leat_error *why) {
    report(d, status, why); /* from now on, requests fail when they are started */
    take_started(d);
    leati_pipeline_drop(&d->pipeline);
    atomic_store(&d->pending, 0);
}

/* Advances the requests and watches the ranks, unless another thread does that.  Returns true if a piece of a request
 * has begun or ended. */
static bool advance(mpi_dist *d) {
    leat_error why = {0};
    bool moved = false;
    int finished = 0;
    if (atomic_load_explicit(&d->is_broken, memory_order_relaxed) || pthread_mutex_trylock(&d->turn) != 0)
        return false;
    take_started(d);
    leat_status status = leati_pipeline_advance(&d->pipeline, &moved, &finished, &why);
    if (finished > 0) atomic_fetch_sub(&d->pending, finished);
    if (status == LEAT_OK && (!moved || ++d->moves % 64 == 0)) status = leati_watch_look(&d->watch, &why);
    if (status != LEAT_OK) give_up(d, status, &why);
    pthread_mutex_unlock(&d->turn);
    return moved;
}

/* How long a thread has waited in vain: its turns, and when it began. */
typedef struct patience {
    int turns;
    int64_t until_ns; /* then it becomes lazy */
} patience;

/* Requests advance only while MPI is called.  A thread of the program that waits has a core, so it calls without a
 * pause; after a moment it yields, since other ranks or threads may need the core; and it sleeps between calls if
 * another rank is late.  The thread of the communicator takes a core from the program's computing: it sleeps sooner. */
static void rest(const mpi_dist *d, patience *p, bool is_waiting) {
    enum { spins = 50, yields = 200, pause_ns = 50000, eager_ns = 100000000 };
    const struct timespec pause = {.tv_nsec = pause_ns};
    const int turn = p->turns++;
    if (turn == spins) p->until_ns = leati_now_ns() + eager_ns;
    if (is_waiting && turn < spins && !d->is_crowded)
        leati_spin_pause();
    else if (is_waiting ? turn <= spins || leati_now_ns() < p->until_ns : turn < yields)
        (void)sched_yield();
    else
        (void)nanosleep(&pause, NULL);
}

/* ---- The thread ---- */

/* Initializes MPI unless the program has done so. */
static leat_status initialize(mpi_dist *d, leat_error *err) {
    const leati_mpi_calls *calls = d->mpi.calls;
    bool yes = false;
    int level = 0, code = calls->initialized(&d->mpi, &yes, &level);
    if (code == 0 && yes && level < LEATI_MPI_MULTIPLE)
        return leati_fail(
            err, LEAT_ENOTSUP,
            "the program has initialized MPI without MPI_THREAD_MULTIPLE, which leat's own thread "
            "needs: call MPI_Init_thread with it, or let leat initialize MPI");
    if (code == 0 && !yes && d->mpi.parent)
        return leati_fail(err, LEAT_EINVAL,
                          "communicator: expected a communicator of an MPI that the program has "
                          "initialized, by MPI_Init_thread with MPI_THREAD_MULTIPLE");
    d->owns_mpi = !yes;
    if (code == 0 && !yes) code = calls->init(&d->mpi, &level);
    if (code == 0 && level < LEATI_MPI_SERIALIZED)
        return leati_fail(
            err, LEAT_ENOTSUP,
            "%s: expected MPI_THREAD_SERIALIZED (%d) or a higher level, received %d: this MPI was built "
            "without support for threads",
            calls->title, LEATI_MPI_SERIALIZED, level);
    if (code == 0) code = calls->connect(&d->mpi, &d->base.rank, &d->base.size);
    if (code) return fail_mpi(d, code, "MPI_Init_thread", err);
    return d->mpi.parent ? LEAT_OK : leati_launcher_check_ranks(d->base.size, calls->title, err);
}

/* Tells the ranks of each other, and compares their versions. */
static leat_status meet(mpi_dist *d, leat_error *err) {
    const size_t count = (size_t)d->base.size;
    d->base.peers = leati_calloc(count, sizeof *d->base.peers);
    if (!d->base.peers) return leati_fail_memory(err, count * sizeof *d->base.peers, "the ranks");
    leati_dist_request all = {.op = LEATI_DIST_ALL_GATHER,
                              .data = d->base.peers,
                              .bytes = sizeof d->me,
                              .mine = &d->me};
    leati_pipeline_init(&d->pipeline, &d->mpi, d->base.rank, d->base.size);
    leati_pipeline_append(&d->pipeline, &all);
    for (patience p = {0}; !atomic_load(&all.done); rest(d, &p, false)) {
        bool moved = false;
        int finished = 0;
        LEATI_TRY(leati_pipeline_advance(&d->pipeline, &moved, &finished, err));
    }
    for (int i = 1; i < d->base.size; ++i) {
        const leati_dist_peer *a = &d->base.peers[0], *b = &d->base.peers[i];
        if (strcmp(a->version, b->version) == 0) continue;
        return leati_fail(
            err, LEAT_ENOTSUP,
            "rank 0 (host %s) runs leat %s, rank %d (host %s) runs leat %s: install one version on "
            "all hosts",
            a->host, a->version, i, b->host, b->version);
    }
    const int rank = d->base.rank;
    d->is_crowded = leat_dist_sharers(&d->base, rank) > leat_dist_cores(&d->base, rank);
    leati_watch_begin(&d->watch, &d->mpi, &d->base, &d->siblings, d->timeout_ms);
    return LEAT_OK;
}

/* Waits for a change of the communicator, but at most for so many ms; the lock is held. */
static void await_change(mpi_dist *d, int64_t ms) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const int64_t ns = until.tv_nsec + ms * 1000000;
    until.tv_sec += (time_t)(ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    (void)pthread_cond_timedwait(&d->changed, &d->lock, &until);
}

static bool has_work(mpi_dist *d) {
    return atomic_load(&d->pending) > 0 && atomic_load(&d->waiting) == 0;
}

/* Waits until there are requests for which no thread of the program waits, but at most 50 ms, after which the ranks are
 * watched.  Returns true if the thread must do something else. */
static bool await_work(mpi_dist *d, int *abort_code) {
    pthread_mutex_lock(&d->lock);
    if (d->stage == READY && !d->abort_code && !has_work(d)) await_change(d, 50);
    const bool ends = d->stage == CLOSING && atomic_load(&d->pending) == 0;
    *abort_code = d->abort_code;
    pthread_mutex_unlock(&d->lock);
    return ends || *abort_code;
}

static void enter(mpi_dist *d, stage next) {
    pthread_mutex_lock(&d->lock);
    if (next != READY || d->stage == STARTING) d->stage = next;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

/* Returns when the communicator is closed or has aborted the run. */
static void serve(mpi_dist *d) {
    int abort_code = 0;
    for (patience p = {0}; !await_work(d, &abort_code);) {
        if (advance(d))
            p.turns = 0;
        else if (has_work(d))
            rest(d, &p, false);
    }
    leat_error why = {0};
    pthread_mutex_lock(&d->turn);
    if (abort_code) {
        (void)d->mpi.calls->abort(&d->mpi, abort_code);
    } else if (!atomic_load(&d->is_broken)) {
        leat_status status = leati_watch_end(&d->watch, &why);
        report(d, status, &why);
        enter(d, FINALIZING);
        if (status == LEAT_OK)
            (void)(d->owns_mpi ? d->mpi.calls->finalize(&d->mpi) : d->mpi.calls->disconnect(&d->mpi));
    }
    pthread_mutex_unlock(&d->turn);
}

static void *run_thread(void *user) {
    mpi_dist *d = user;
    (void)prctl(PR_SET_NAME, "leat-dist");
    leat_error why = {0};
    pthread_mutex_lock(&d->turn);
    leat_status status = initialize(d, &why);
    if (status == LEAT_OK) status = meet(d, &why);
    pthread_mutex_unlock(&d->turn);
    report(d, status, &why);
    enter(d, READY);
    if (status == LEAT_OK) serve(d);
    leati_watch_fini(&d->watch);
    enter(d, ENDED);
    return NULL;
}

/* ---- The functions of the communicator ---- */

static void start(leat_dist *dist, leati_dist_request *request) {
    mpi_dist *d = (mpi_dist *)dist;
    request->next = NULL;
    pthread_mutex_lock(&d->lock);
    atomic_store(&request->done, d->status != LEAT_OK);
    if (d->status == LEAT_OK) {
        if (d->last)
            d->last->next = request;
        else
            d->started = request;
        d->last = request;
        atomic_fetch_add(&d->pending, 1);
        atomic_store_explicit(&d->has_started, true, memory_order_release);
        if (!request->is_awaited) pthread_cond_broadcast(&d->changed);
    }
    pthread_mutex_unlock(&d->lock);
}

/* The waiting thread makes the calls of MPI itself: no other thread has to be woken, neither now nor at the end. */
static leat_status wait(leat_dist *dist, leati_dist_request *request, leat_error *err) {
    mpi_dist *d = (mpi_dist *)dist;
    leat_status status = LEAT_OK;
    atomic_fetch_add(&d->waiting, 1);
    for (patience p = {0}; !atomic_load_explicit(&request->done, memory_order_acquire) &&
                           !atomic_load_explicit(&d->is_broken, memory_order_relaxed);) {
        if (advance(d))
            p.turns = 0;
        else
            rest(d, &p, true);
    }
    const bool is_last = atomic_fetch_sub(&d->waiting, 1) == 1;
    if (!atomic_load(&d->is_broken) && !(is_last && atomic_load(&d->pending) > 0)) return LEAT_OK;
    pthread_mutex_lock(&d->lock);
    pthread_cond_broadcast(&d->changed); /* the thread goes on with the other requests */
    status = d->status;
    if (status != LEAT_OK && err) *err = d->failure;
    pthread_mutex_unlock(&d->lock);
    return status;
}

static bool is_broken(const leat_dist *dist) {
    return atomic_load(&((const mpi_dist *)dist)->is_broken);
}

/* Waits at most this long until the thread has ended; returns false if it has not. */
static bool await_end(mpi_dist *d, time_t seconds) {
    struct timespec until;
    int error = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += seconds;
    while (d->stage != ENDED && error == 0) error = pthread_cond_timedwait(&d->changed, &d->lock, &until);
    return d->stage == ENDED;
}

/* The thread may be inside a call of MPI that does not return, because a rank does not answer. */
static void abort_run(leat_dist *dist, int code) {
    mpi_dist *d = (mpi_dist *)dist;
    pthread_mutex_lock(&d->lock);
    d->abort_code = code ? code : 1;
    if (d->status == LEAT_OK) d->status = leati_fail(&d->failure, LEAT_EIO, "the run was aborted");
    atomic_store(&d->is_broken, true);
    pthread_cond_broadcast(&d->changed);
    (void)await_end(d, 2);
    pthread_mutex_unlock(&d->lock);
}

static void destroy(mpi_dist *d) {
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
    pthread_mutex_destroy(&d->turn);
    leati_pipeline_fini(&d->pipeline);
    leati_library_close(&d->mpi.library);
    leati_free(d->base.peers);
    leati_free(d);
}

/* The thread may hang inside MPI: after a failure, or in MPI_Finalize, where MPICH over UCX's TCP sometimes waits for
 * the answer of a rank that is there already and answers nobody.  Then the thread keeps the communicator until the
 * process ends. */
static void close_mpi(leat_dist *dist) {
    enum { patience_s = 3 };
    mpi_dist *d = (mpi_dist *)dist;
    pthread_mutex_lock(&d->lock);
    if (d->stage != ENDED) d->stage = CLOSING;
    pthread_cond_broadcast(&d->changed);
    while (d->status == LEAT_OK && d->stage == CLOSING) pthread_cond_wait(&d->changed, &d->lock);
    bool ended = await_end(d, patience_s);
    pthread_mutex_unlock(&d->lock);
    if (!ended) {
        (void)pthread_detach(d->thread);
        return;
    }
    (void)pthread_join(d->thread, NULL);
    destroy(d);
}

static const leati_dist_class class = {start, wait, is_broken, abort_run, close_mpi};

/* ---- Opening ---- */

/* Returns the ABI of a library: by the library's name, or by the launcher. */
static const char *choose_library(const leat_dist_options *options) {
    const char *name = options->library ? options->library : getenv("LEAT_MPI");
    if (name && *name) return name;
    return leati_launcher_is_mpich() ? leati_mpi_mpich.name : leati_mpi_open_mpi.name;
}

static leat_status load_library(leati_mpi *mpi, const leat_dist_options *options, leat_error *err) {
    const char *name = choose_library(options);
    void *object = NULL;
    const leati_mpi_calls *known = strcmp(name, leati_mpi_open_mpi.name) == 0 ? &leati_mpi_open_mpi
                                   : strcmp(name, leati_mpi_mpich.name) == 0  ? &leati_mpi_mpich
                                                                              : NULL;
    leat_status status = leati_library_open_system(&mpi->library, known ? known->file : name, err);
    if (status != LEAT_OK)
        return leati_prefix(status, err,
                            "MPI: expected Open MPI 4 or MPICH (LEAT_MPI=openmpi, mpich or a path)");
    mpi->calls = known;
    if (!known)
        mpi->calls = leati_library_function(mpi->library, "ompi_mpi_comm_world", &object, sizeof object,
                                            NULL) == LEAT_OK
                         ? &leati_mpi_open_mpi
                         : &leati_mpi_mpich;
    return mpi->calls->load(mpi, err);
}

static leat_status init_lock(mpi_dist *d, leat_error *err) {
    pthread_condattr_t attributes;
    if (pthread_mutex_init(&d->lock, NULL) != 0 || pthread_mutex_init(&d->turn, NULL) != 0 ||
        pthread_condattr_init(&attributes) != 0)
        return leati_fail(err, LEAT_ENOMEM, "no memory for a lock");
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    int error = pthread_cond_init(&d->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    return error ? leati_fail(err, LEAT_ENOMEM, "no memory for a condition variable") : LEAT_OK;
}

/* Waits until the thread has connected the ranks or has failed, which d->status says.  Errors: LEAT_EIO it has done
 * neither in time, or never will. */
static leat_status await_start(mpi_dist *d, leat_error *err) {
    const int64_t start = leati_now_ns(), limit_ms = START_TIMEOUTS * d->timeout_ms;
    const char *title = d->mpi.calls->title;
    while (d->stage == STARTING) {
        const pid_t stopped = leati_siblings_find_stopped(&d->siblings, d->timeout_ms * 1000000);
        if (stopped)
            return leati_fail(
                err, LEAT_EIO,
                "%s cannot connect the ranks: process %ld on host %s, another rank, has been stopped "
                "for %lld s",
                title, (long)stopped, d->me.host, (long long)(d->timeout_ms / 1000));
        if (leati_siblings_launcher_has_ended(&d->siblings))
            return leati_fail(err, LEAT_EIO, "%s cannot connect the ranks: the launcher has ended", title);
        if (leati_now_ns() - start >= limit_ms * 1000000)
            return leati_fail(err, LEAT_EIO,
                              "%s has not connected the ranks within %lld s: a rank was not started, is "
                              "stopped, or its host does "
                              "not answer; a longer timeout allows more time",
                              title, (long long)(limit_ms / 1000));
        await_change(d, 100);
    }
    return LEAT_OK;
}

/* *hangs: the thread is still inside MPI, and uses the communicator until the process ends. */
static leat_status start_thread(mpi_dist *d, bool *hangs, leat_error *err) {
    sigset_t before;
    leati_mask_all_but_faults(&before);
    int error = pthread_create(&d->thread, NULL, run_thread, d);
    leati_mask_restore(&before);
    if (error) return leati_fail_errno(err, LEAT_EIO, error, "cannot create the thread of MPI");
    pthread_mutex_lock(&d->lock);
    leat_status status = await_start(d, err);
    *hangs = status != LEAT_OK;
    if (!*hangs && d->status != LEAT_OK) {
        status = d->status;
        if (err) *err = d->failure;
    }
    pthread_mutex_unlock(&d->lock);
    if (*hangs)
        (void)pthread_detach(d->thread);
    else if (status != LEAT_OK)
        (void)pthread_join(d->thread, NULL);
    return status;
}

leat_status leati_dist_open_mpi(leat_dist **out, const leat_dist_options *options, leat_error *err) {
    mpi_dist *d = leati_calloc(1, sizeof *d);
    if (!d) return leati_fail_memory(err, sizeof *d, "a communicator");
    d->base = (leat_dist){.class = &class, .size = 1};
    d->timeout_ms = options->timeout_ms;
    d->mpi.parent = options->communicator;
    d->watch.pidfd = -1;
    leati_dist_describe(&d->me);
    leati_siblings_begin(&d->siblings);
    leat_status status = init_lock(d, err);
    if (status != LEAT_OK) {
        leati_free(d);
        return status;
    }
    bool hangs = false;
    status = load_library(&d->mpi, options, err);
    if (status == LEAT_OK) status = start_thread(d, &hangs, err);
    if (status == LEAT_OK)
        *out = &d->base;
    else if (!hangs)
        destroy(d);
    return status;
}
