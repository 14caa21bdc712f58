/* SPDX-License-Identifier: Apache-2.0 */
/* The communicator over MPI.  One thread of its own makes all calls of MPI, so that requests advance while the caller
 * computes, and any level of MPI's thread support will do.  Room: dist. */
#include <errno.h>
#include <limits.h>
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
#include "base/os/signals.h"
#include "dist/dist.h"
#include "dist/launcher.h"
#include "dist/mpi/calls.h"
#include "dist/mpi/watch.h"
#include "tensor/bfloat16.h"

/* The largest piece of a request, in bytes: MPI counts in int, and between pieces the thread watches the ranks. */
enum { PIECE = 1 << 28, TAG = 1 };
/* Sums are cut into pieces of so many bytes, of which several are under way: pieces stay in the cache, and the next
 * ones hide the latency of a network. */
enum { SUM_PIECE = 1 << 19, SUM_WINDOW = 16 };
/* The largest piece of a sum in bfloat16, in floats. */
enum { HALF_PIECE = 1 << 22 };

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
    leati_watch watch;   /* used by the thread */
    uint16_t *halves;    /* of the thread: for sums in bfloat16; NULL: none yet */
    size_t half_count;   /* elements of `halves` */
    _Atomic int waiting; /* number of threads of the program that wait for a request */
    pthread_t thread;
    pthread_mutex_t lock; /* guards the members below, and `done` of requests */
    pthread_cond_t changed;
    stage stage;
    int abort_code; /* 0: no abort was asked for */
    leati_dist_request *first, *last;
    leat_status status; /* the first failure, which all further requests return */
    leat_error failure;
} mpi_dist;

/* ---- The thread ---- */

static leat_status fail_mpi(mpi_dist *d, int code, const char *call, leat_error *err) {
    char text[512];
    d->mpi.calls->explain(&d->mpi, code, text, sizeof text);
    return leati_fail(err, LEAT_EIO, "%s: %s: %s", d->mpi.calls->title, call, text);
}

/* Waits for a request of MPI, which makes progress only while it is tested.  While the program waits as well, its core
 * is free, so the thread tests without a pause, but yields, since the ranks may be more than the cores.  Otherwise, and
 * if a rank is late, the thread sleeps for short times, since the program computes on its core. */
static leat_status await(mpi_dist *d, leati_mpi_request *request, const char *call, leat_error *err) {
    enum { yields = 200, pause_ns = 50000 };
    const int64_t eager_until_ns = leati_now_ns() + 100000000;
    const struct timespec pause = {.tv_nsec = pause_ns};
    for (int turn = 0;; ++turn) {
        bool done = false;
        int code = d->mpi.calls->test(&d->mpi, request, &done);
        if (code) return fail_mpi(d, code, call, err);
        if (done) return LEAT_OK;
        const bool is_awaited = atomic_load_explicit(&d->waiting, memory_order_relaxed) > 0;
        if (turn < yields || (is_awaited && leati_now_ns() < eager_until_ns))
            (void)sched_yield();
        else
            (void)nanosleep(&pause, NULL);
        LEATI_TRY(leati_watch_look(&d->watch, err));
    }
}

static int begin_piece(mpi_dist *d, const leati_dist_request *request, size_t offset, int bytes,
                       leati_mpi_request *out) {
    const leati_mpi_calls *calls = d->mpi.calls;
    char *data = request->data ? (char *)request->data + offset : NULL;
    switch (request->op) {
    case LEATI_DIST_ALL_REDUCE:
        return calls->all_reduce(&d->mpi, (float *)(void *)data, bytes / (int)sizeof(float), out);
    case LEATI_DIST_ALL_GATHER: return calls->all_gather(&d->mpi, request->mine, bytes, request->data, out);
    case LEATI_DIST_BROADCAST: return calls->broadcast(&d->mpi, data, bytes, request->peer, out);
    case LEATI_DIST_SEND: return calls->send(&d->mpi, data, bytes, request->peer, TAG, out);
    case LEATI_DIST_RECEIVE: return calls->receive(&d->mpi, data, bytes, request->peer, TAG, out);
    case LEATI_DIST_ALL_REDUCE_BF16:
    case LEATI_DIST_BARRIER: break;
    }
    return calls->barrier(&d->mpi, out);
}

/* Adds up the block of this rank, whose values of all ranks are in `theirs`, and rounds the sums. */
static void add_block(const uint16_t *theirs, size_t block, int size, uint16_t *out) {
    for (size_t i = 0; i < block; ++i) {
        float sum = 0;
        for (int rank = 0; rank < size; ++rank)
            sum += leati_bfloat16_to_float(theirs[(size_t)rank * block + i]);
        out[i] = leati_bfloat16_of_float(sum);
    }
}

/* Each rank adds up one block of the values, and all ranks gather the blocks. */
static leat_status reduce_halves_piece(mpi_dist *d, float *values, size_t count, leat_error *err) {
    const leati_mpi_calls *calls = d->mpi.calls;
    const size_t ranks = (size_t)d->base.size, block = (count + ranks - 1) / ranks;
    const int bytes = (int)(block * sizeof(uint16_t));
    uint16_t *mine = d->halves, *theirs = mine + ranks * block, *sums = theirs + ranks * block;
    leati_mpi_request request = {0};
    for (size_t i = 0; i < count; ++i) mine[i] = leati_bfloat16_of_float(values[i]);
    memset(mine + count, 0, (ranks * block - count) * sizeof *mine);
    int code = calls->all_to_all(&d->mpi, mine, bytes, theirs, &request);
    if (code) return fail_mpi(d, code, "MPI_Ialltoall", err);
    LEATI_TRY(await(d, &request, "MPI_Ialltoall", err));
    add_block(theirs, block, d->base.size, sums);
    request = (leati_mpi_request){0};
    code = calls->all_gather(&d->mpi, sums, bytes, mine, &request);
    if (code) return fail_mpi(d, code, "MPI_Iallgather", err);
    LEATI_TRY(await(d, &request, "MPI_Iallgather", err));
    for (size_t i = 0; i < count; ++i) values[i] = leati_bfloat16_to_float(mine[i]);
    return LEAT_OK;
}

static leat_status reduce_halves(mpi_dist *d, float *values, size_t count, leat_error *err) {
    const size_t most = count < HALF_PIECE ? count : HALF_PIECE, ranks = (size_t)d->base.size,
                 halves = (2 * ranks + 1) * ((most + ranks - 1) / ranks);
    if (halves > d->half_count) {
        leati_free(d->halves);
        d->half_count = 0;
        d->halves = leati_calloc(halves, sizeof *d->halves);
        if (!d->halves) return leati_fail_memory(err, halves * sizeof *d->halves, "sums in bfloat16");
        d->half_count = halves;
    }
    for (size_t at = 0; at < count; at += HALF_PIECE)
        LEATI_TRY(
            reduce_halves_piece(d, values + at, count - at < HALF_PIECE ? count - at : HALF_PIECE, err));
    return LEAT_OK;
}

/* Adds up floats of all ranks. */
static leat_status reduce(mpi_dist *d, const leati_dist_request *request, leat_error *err) {
    const size_t count =
        request->bytes / SUM_PIECE + (request->bytes % SUM_PIECE != 0 || request->bytes == 0);
    leati_mpi_request pieces[SUM_WINDOW];
    for (size_t begun = 0, done = 0; done < count; ++done) {
        for (; begun < count && begun < done + SUM_WINDOW; ++begun) {
            const size_t offset = begun * SUM_PIECE, rest = request->bytes - offset;
            leati_mpi_request *piece = &pieces[begun % SUM_WINDOW];
            *piece = (leati_mpi_request){0};
            int code = begin_piece(d, request, offset, (int)(rest < SUM_PIECE ? rest : SUM_PIECE), piece);
            if (code) return fail_mpi(d, code, "MPI_Iallreduce", err);
        }
        LEATI_TRY(await(d, &pieces[done % SUM_WINDOW], "MPI_Iallreduce", err));
    }
    return LEAT_OK;
}

static leat_status execute(mpi_dist *d, const leati_dist_request *request, leat_error *err) {
    static const char *const names[] = {"MPI_Iallreduce", "MPI_Ialltoall", "MPI_Iallgather", "MPI_Ibcast",
                                        "MPI_Isend",      "MPI_Irecv",     "MPI_Ibarrier"};
    if (request->op == LEATI_DIST_ALL_REDUCE_BF16)
        return reduce_halves(d, request->data, request->bytes / sizeof(float), err);
    if (request->op == LEATI_DIST_ALL_REDUCE) return reduce(d, request, err);
    bool is_whole = request->op == LEATI_DIST_ALL_GATHER || request->op == LEATI_DIST_BARRIER;
    if (request->op == LEATI_DIST_ALL_GATHER && request->bytes > INT_MAX)
        return leati_fail(err, LEAT_ENOTSUP, "at most %d bytes of each rank can be gathered", INT_MAX);
    size_t offset = 0;
    do {
        size_t rest = request->bytes - offset;
        int bytes = (int)(is_whole || rest < PIECE ? rest : PIECE);
        leati_mpi_request piece = {0};
        int code = begin_piece(d, request, offset, bytes, &piece);
        if (code) return fail_mpi(d, code, names[request->op], err);
        LEATI_TRY(await(d, &piece, names[request->op], err));
        offset += (size_t)bytes;
    } while (offset < request->bytes);
    return LEAT_OK;
}

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
    if (code == 0 && !yes) code = calls->init(&d->mpi);
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
    d->watch.size = 1; /* nobody is watched yet */
    LEATI_TRY(execute(d, &all, err));
    for (int i = 1; i < d->base.size; ++i) {
        const leati_dist_peer *a = &d->base.peers[0], *b = &d->base.peers[i];
        if (strcmp(a->version, b->version) == 0) continue;
        return leati_fail(
            err, LEAT_ENOTSUP,
            "rank 0 (host %s) runs leat %s, rank %d (host %s) runs leat %s: install one version on "
            "all hosts",
            a->host, a->version, i, b->host, b->version);
    }
    leati_watch_begin(&d->watch, &d->mpi, &d->base, d->timeout_ms);
    return LEAT_OK;
}

static void report(mpi_dist *d, leat_status status, const leat_error *why) {
    pthread_mutex_lock(&d->lock);
    if (d->status == LEAT_OK && status != LEAT_OK) {
        d->status = status;
        d->failure = *why;
    }
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

/* Returns the next request; NULL if there is none for 50 ms, or if the thread must do something else. */
static leati_dist_request *next_request(mpi_dist *d, bool *ends, int *abort_code) {
    struct timespec until;
    pthread_mutex_lock(&d->lock);
    if (!d->first && d->stage == READY && !d->abort_code) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += 50000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        (void)pthread_cond_timedwait(&d->changed, &d->lock, &until);
    }
    leati_dist_request *request = d->first;
    *ends = d->stage == CLOSING && !request;
    *abort_code = d->abort_code;
    pthread_mutex_unlock(&d->lock);
    return request;
}

static void finish_request(mpi_dist *d, leati_dist_request *request) {
    pthread_mutex_lock(&d->lock);
    d->first = request->next;
    if (!d->first) d->last = NULL;
    request->done = true;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

static void serve(mpi_dist *d) {
    leat_status status = LEAT_OK;
    leat_error why = {0};
    for (;;) {
        bool ends = false;
        int abort_code = 0;
        leati_dist_request *request = next_request(d, &ends, &abort_code);
        if (abort_code) (void)d->mpi.calls->abort(&d->mpi, abort_code);
        if (ends || abort_code) break;
        const int64_t start = leati_now_ns();
        if (status == LEAT_OK)
            status = request ? execute(d, request, &why) : leati_watch_look(&d->watch, &why);
        if (request) request->busy_ns = leati_now_ns() - start;
        if (status != LEAT_OK) report(d, status, &why);
        if (request) finish_request(d, request);
    }
    if (status == LEAT_OK) status = leati_watch_end(&d->watch, &why);
    report(d, status, &why);
    pthread_mutex_lock(&d->lock);
    d->stage = FINALIZING;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    if (status == LEAT_OK)
        (void)(d->owns_mpi ? d->mpi.calls->finalize(&d->mpi) : d->mpi.calls->disconnect(&d->mpi));
}

static void *run_thread(void *user) {
    mpi_dist *d = user;
    (void)prctl(PR_SET_NAME, "leat-dist");
    leat_error why = {0};
    leat_status status = initialize(d, &why);
    if (status == LEAT_OK) status = meet(d, &why);
    report(d, status, &why);
    pthread_mutex_lock(&d->lock);
    if (d->stage == STARTING) d->stage = READY;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    if (status == LEAT_OK) serve(d);
    leati_watch_fini(&d->watch);
    pthread_mutex_lock(&d->lock);
    d->stage = ENDED;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* ---- The functions of the communicator ---- */

static void start(leat_dist *dist, leati_dist_request *request) {
    mpi_dist *d = (mpi_dist *)dist;
    request->done = false;
    request->next = NULL;
    pthread_mutex_lock(&d->lock);
    if (d->last)
        d->last->next = request;
    else
        d->first = request;
    d->last = request;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

static leat_status wait(leat_dist *dist, leati_dist_request *request, leat_error *err) {
    mpi_dist *d = (mpi_dist *)dist;
    pthread_mutex_lock(&d->lock);
    atomic_fetch_add_explicit(&d->waiting, 1, memory_order_relaxed);
    while (!request->done && d->stage != ENDED) pthread_cond_wait(&d->changed, &d->lock);
    atomic_fetch_sub_explicit(&d->waiting, 1, memory_order_relaxed);
    leat_status status = d->status;
    if (status != LEAT_OK && err) *err = d->failure;
    pthread_mutex_unlock(&d->lock);
    return status;
}

static bool is_broken(const leat_dist *dist) {
    mpi_dist *d = (mpi_dist *)(uintptr_t)dist;
    pthread_mutex_lock(&d->lock);
    bool broken = d->status != LEAT_OK;
    pthread_mutex_unlock(&d->lock);
    return broken;
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
    pthread_cond_broadcast(&d->changed);
    (void)await_end(d, 2);
    pthread_mutex_unlock(&d->lock);
}

static void destroy(mpi_dist *d) {
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
    leati_library_close(&d->mpi.library);
    leati_free(d->base.peers);
    leati_free(d->halves);
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
    if (pthread_mutex_init(&d->lock, NULL) != 0 || pthread_condattr_init(&attributes) != 0)
        return leati_fail(err, LEAT_ENOMEM, "no memory for a lock");
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    int error = pthread_cond_init(&d->changed, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    return error ? leati_fail(err, LEAT_ENOMEM, "no memory for a condition variable") : LEAT_OK;
}

/* Waits until the thread has connected the ranks or has failed; returns false if it has done neither in time. */
static bool await_start(mpi_dist *d, int64_t limit_ms) {
    struct timespec until;
    int error = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += limit_ms / 1000 + 1;
    while (d->stage == STARTING && error == 0) error = pthread_cond_timedwait(&d->changed, &d->lock, &until);
    return d->stage != STARTING;
}

/* *hangs: the thread is still inside MPI, and uses the communicator until the process ends. */
static leat_status start_thread(mpi_dist *d, bool *hangs, leat_error *err) {
    sigset_t before;
    leati_mask_all_but_faults(&before);
    int error = pthread_create(&d->thread, NULL, run_thread, d);
    leati_mask_restore(&before);
    if (error) return leati_fail_errno(err, LEAT_EIO, error, "cannot create the thread of MPI");
    pthread_mutex_lock(&d->lock);
    const int64_t limit_ms = START_TIMEOUTS * d->timeout_ms;
    *hangs = !await_start(d, limit_ms);
    leat_status status = d->status;
    if (*hangs)
        status = leati_fail(
            err, LEAT_EIO,
            "%s has not connected the ranks within %lld s: a rank was not started, is stopped, or its "
            "host does not answer; a longer timeout allows more time",
            d->mpi.calls->title, (long long)(limit_ms / 1000));
    else if (status != LEAT_OK && err)
        *err = d->failure;
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
