/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks are claimed one by one from a word that holds a round's number and which tasks of it are left: the caller takes the
 * first, helpers the last, so that who wrote something is likely to read it in a later round.  What the round is about
 * changes only while none is left, so that a claim that succeeds has read the right thing.  Layer: engine. */
#define _GNU_SOURCE /* PR_SET_NAME, sched_getcpu */
#include "base/threads/thread_pool.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/os/clock.h"
#include "base/os/denormals.h"
#include "base/os/fork.h"
#include "base/os/futex.h"
#include "base/os/signals.h"
#include "base/threads/spin.h"

/* A helper's spin between two rounds bridges the small ops between large ones; the caller's at the end of a round, the
 * difference between two parts.  Then a core is left to who needs it. */
enum { REST_NS = 2 * LEATI_WAKE_UP_NS, WAIT_NS = 2 * LEATI_WAKE_UP_NS, PAUSES = 32, LINE = 64 };
enum { MOVE_NS = 1000000 }; /* no helper moves more often */
enum { TASK_BITS = 20 };
#define ROUND_TASKS ((INT64_C(1) << TASK_BITS) - 1) /* at most */

typedef struct helper {
    leati_thread_pool *pool;
    pthread_t thread;
    int member;
    int64_t moved_ns;
    struct helper *next;
} helper;

struct leati_thread_pool {
    /* Written by the caller. */
    alignas(LINE) _Atomic uint64_t
        ticket; /* the round, then the first task that nobody has claimed, then the one behind the last */
    _Atomic(leati_thread_pool_work) work;
    void *_Atomic of;
    _Atomic int64_t begin; /* the number of the round's first task */
    atomic_int threads;    /* that may take part */
    atomic_int core;       /* the caller's */
    /* Written by helpers. */
    alignas(LINE) leati_futex finished; /* tasks of this round, by helpers */
    atomic_bool awaited;                /* the caller sleeps on it */
    /* For going to sleep. */
    alignas(LINE) leati_futex wake_futex;
    atomic_bool asleep; /* a helper is, or is about to be */
    atomic_bool closing;
    helper *helpers;
    int size;            /* with the caller */
    int most;            /* that may take part */
    uint32_t fork_depth; /* of the process in which the helpers were started */
};

static uint32_t round_of(uint64_t ticket) {
    return (uint32_t)(ticket >> 2 * TASK_BITS);
}

static uint32_t first_of(uint64_t ticket) {
    return (uint32_t)(ticket >> TASK_BITS & ROUND_TASKS);
}

static uint32_t end_of(uint64_t ticket) {
    return (uint32_t)(ticket & ROUND_TASKS);
}

/* Does tasks until none is left to claim; returns how many. */
static uint32_t work(leati_thread_pool *pool, int member, uint32_t *round) {
    uint32_t done = 0;
    uint64_t ticket = atomic_load_explicit(&pool->ticket, memory_order_acquire);
    for (;;) {
        *round = round_of(ticket);
        uint32_t first = first_of(ticket), end = end_of(ticket);
        if (first == end) return done;
        leati_thread_pool_work does = atomic_load_explicit(&pool->work, memory_order_relaxed);
        void *of = atomic_load_explicit(&pool->of, memory_order_relaxed);
        int64_t begin = atomic_load_explicit(&pool->begin, memory_order_relaxed);
        if (member >= atomic_load_explicit(&pool->threads, memory_order_relaxed)) return done;
        uint64_t claimed = member == 0 ? ticket + (UINT64_C(1) << TASK_BITS) : ticket - 1;
        if (!atomic_compare_exchange_weak_explicit(&pool->ticket, &ticket, claimed, memory_order_acq_rel,
                                                   memory_order_acquire))
            continue;
        does(of, begin + (member == 0 ? first : end - 1), member);
        ++done;
        if (member > 0) {
            atomic_fetch_add(&pool->finished, 1);
            if (atomic_load(&pool->awaited)) leati_futex_wake(&pool->finished, 1, false);
        }
        ticket = atomic_load_explicit(&pool->ticket, memory_order_acquire);
    }
}

/* ---- Helpers ---- */

/* Off the caller's core, where a helper can only be in its way.  The scheduler may leave two threads that spin between
 * rounds of microseconds on one core for as long as they live, with another core idle. */
static void make_way(leati_thread_pool *pool, helper *self) {
    cpu_set_t all, others;
    int core = atomic_load_explicit(&pool->core, memory_order_relaxed);
    if (sched_getcpu() != core || core < 0 || core >= CPU_SETSIZE) return;
    int64_t now = leati_now_ns();
    if (now < self->moved_ns + MOVE_NS || sched_getaffinity(0, sizeof all, &all) != 0) return;
    self->moved_ns = now;
    others = all;
    CPU_CLR((size_t)core, &others);
    if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return;
    sched_setaffinity(0, sizeof all, &all);
}

static bool is_called(leati_thread_pool *pool, uint32_t round) {
    return round_of(atomic_load(&pool->ticket)) != round || atomic_load(&pool->closing);
}

static void rest(helper *self, uint32_t round, leati_spin *spin) {
    leati_thread_pool *pool = self->pool;
    int64_t began = leati_now_ns(), until = began + leati_spin_length(spin);
    do {
        make_way(pool, self);
        for (int i = 0; i < PAUSES; i++) {
            if (is_called(pool, round)) {
                leati_spin_learn(spin, 0);
                return;
            }
            leati_spin_pause();
        }
    } while (leati_now_ns() < until);
    uint32_t wake_futex = atomic_load(&pool->wake_futex);
    atomic_store(&pool->asleep, true);
    while (!is_called(pool, round)) {
        leati_futex_wait(&pool->wake_futex, wake_futex, -1, false);
        wake_futex = atomic_load(&pool->wake_futex);
    }
    make_way(pool, self);
    leati_spin_learn(spin, leati_now_ns() - began);
}

static void *help(void *argument) {
    helper *self = argument;
    leati_thread_pool *pool = self->pool;
    leati_spin spin = {.longest_ns = REST_NS};
    char name[16];
    snprintf(name, sizeof name, "leat-compute/%d", self->member);
    prctl(PR_SET_NAME, name);
    leati_flush_denormals(); /* as every caller does */
    while (!atomic_load(&pool->closing)) {
        uint32_t round;
        work(pool, self->member, &round);
        rest(self, round, &spin);
    }
    return NULL;
}

static void ring(leati_thread_pool *pool) {
    atomic_fetch_add(&pool->wake_futex, 1);
    leati_futex_wake(&pool->wake_futex, pool->size, false);
}

/* ---- Starting helpers ---- */

static leat_status start(leati_thread_pool *pool, leat_error *err) {
    helper *self = leati_calloc(1, sizeof *self);
    if (!self) return leati_fail_memory(err, sizeof *self, "a thread");
    *self = (helper){.pool = pool, .member = pool->size, .next = pool->helpers};
    int failed = pthread_create(&self->thread, NULL, help, self);
    if (failed) {
        leati_free(self);
        return leati_fail_errno(err, LEAT_EIO, failed, "cannot start compute thread %d", pool->size + 1);
    }
    pool->helpers = self;
    ++pool->size;
    return LEAT_OK;
}

/* All signals but faults are the caller's to handle. */
static leat_status start_until(leati_thread_pool *pool, int threads, leat_error *err) {
    leat_status status = LEAT_OK;
    sigset_t before;
    leati_mask_all_but_faults(&before);
    while (status == LEAT_OK && pool->size < threads) status = start(pool, err);
    leati_mask_restore(&before);
    return status;
}

/* ---- Forks ---- */

static bool is_at_home(const leati_thread_pool *pool) {
    return pool->fork_depth == leati_fork_depth();
}

/* Forgets helpers that are threads of another process. */
static void forget_helpers(leati_thread_pool *pool) {
    while (pool->helpers) {
        helper *gone = pool->helpers;
        pool->helpers = gone->next;
        leati_free(gone);
    }
    pool->size = 1;
}

/* In a forked child: starts as many helpers as the parent had, or as the system allows.  With fewer, the caller does more. */
static void move_in(leati_thread_pool *pool) {
    int size = pool->size;
    forget_helpers(pool);
    pool->fork_depth = leati_fork_depth();
    atomic_store(&pool->ticket, 0);
    atomic_store(&pool->awaited, false);
    atomic_store(&pool->asleep, false);
    (void)start_until(pool, size, NULL);
}

/* ---- The caller ---- */

static void await(leati_thread_pool *pool, uint32_t finished) {
    int64_t until = leati_now_ns() + WAIT_NS;
    uint32_t now;
    do
        for (int i = 0; i < PAUSES; i++) {
            if (atomic_load_explicit(&pool->finished, memory_order_acquire) == finished) return;
            leati_spin_pause();
        }
    while (leati_now_ns() < until);
    atomic_store(&pool->awaited, true);
    while ((now = atomic_load(&pool->finished)) != finished)
        leati_futex_wait(&pool->finished, now, -1, false);
    atomic_store(&pool->awaited, false);
}

static bool is_alone(const leati_thread_pool *pool, int threads, int64_t tasks) {
    return !pool || threads < 2 || tasks < 2 || pool->size < 2;
}

static void share_round(leati_thread_pool *pool, int threads, int64_t begin, uint32_t tasks,
                        leati_thread_pool_work does, void *of) {
    uint64_t ticket = atomic_load_explicit(&pool->ticket, memory_order_relaxed);
    uint32_t round;
    atomic_store_explicit(&pool->work, does, memory_order_relaxed);
    atomic_store_explicit(&pool->of, of, memory_order_relaxed);
    atomic_store_explicit(&pool->begin, begin, memory_order_relaxed);
    atomic_store_explicit(&pool->threads, threads, memory_order_relaxed);
    atomic_store_explicit(&pool->core, sched_getcpu(), memory_order_relaxed);
    atomic_store_explicit(&pool->finished, 0, memory_order_relaxed);
    atomic_store(&pool->ticket, (uint64_t)(round_of(ticket) + 1) << 2 * TASK_BITS | tasks);
    if (atomic_load(&pool->asleep) && atomic_exchange(&pool->asleep, false)) ring(pool);
    uint32_t own = work(pool, 0, &round);
    if (own < tasks) await(pool, tasks - own);
}

void leati_thread_pool_share(leati_thread_pool *pool, int threads, int64_t tasks, leati_thread_pool_work does,
                             void *of) {
    if (pool && !is_at_home(pool)) move_in(pool);
    if (pool && threads > pool->most) threads = pool->most;
    if (is_alone(pool, threads, tasks)) {
        for (int64_t i = 0; i < tasks; i++) does(of, i, 0);
        return;
    }
    for (int64_t left, begin = 0; (left = tasks - begin) > 0; begin += ROUND_TASKS)
        share_round(pool, threads, begin, (uint32_t)(left < ROUND_TASKS ? left : ROUND_TASKS), does, of);
}

/* ---- Making ---- */

leat_status leati_thread_pool_create(leati_thread_pool **out, leat_error *err) {
    leati_thread_pool *pool = leati_calloc_aligned(sizeof *pool);
    *out = pool;
    if (!pool) return leati_fail_memory(err, sizeof *pool, "a pool of threads");
    pool->size = 1;
    pool->most = INT_MAX;
    pool->core = -1;
    pool->fork_depth = leati_fork_depth();
    return LEAT_OK;
}

void leati_thread_pool_limit(leati_thread_pool *pool, int threads) {
    pool->most = threads;
}

leat_status leati_thread_pool_reserve(leati_thread_pool *pool, int threads, leat_error *err) {
    if (threads > LEATI_THREAD_POOL_MAX)
        return leati_fail(err, LEAT_EINVAL, "threads: expected at most %d, received %d",
                          LEATI_THREAD_POOL_MAX, threads);
    if (!is_at_home(pool)) move_in(pool);
    if (threads <= pool->size) return LEAT_OK;
    return start_until(pool, threads, err);
}

void leati_thread_pool_destroy(leati_thread_pool **pool_pointer) {
    leati_thread_pool *pool = *pool_pointer;
    if (!pool) return;
    if (!is_at_home(pool)) forget_helpers(pool);
    atomic_store(&pool->closing, true);
    ring(pool);
    while (pool->helpers) {
        helper *gone = pool->helpers;
        pool->helpers = gone->next;
        pthread_join(gone->thread, NULL);
        leati_free(gone);
    }
    leati_free(pool);
    *pool_pointer = NULL;
}
