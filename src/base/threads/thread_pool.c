/* SPDX-License-Identifier: Apache-2.0 */
/* The thread pool.  Room: base.
 *
 * A job is a range of at most JOB_TASKS tasks.  Threads claim its tasks one at a time, by a compare-and-swap of one
 * word (the ticket) that holds the job's number and the range of tasks that are left.  The caller claims the first
 * task that is left, pool threads the last one: so in successive jobs a thread tends to get the same part of the
 * data, which its cache may still hold.  The members that describe a job change only while no task is left: so a
 * thread whose claim succeeds has read the members of the job that it claimed from. */
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

/* IDLE_NS: how long a pool thread spins between two jobs, since small ops without tasks for it come between large
 * ones.  WAIT_NS: how long the caller spins at the end of a job until the other threads finish.  After that they
 * sleep. */
enum { IDLE_NS = 2 * LEATI_WAKE_UP_NS, WAIT_NS = 2 * LEATI_WAKE_UP_NS, PAUSES = 32, LINE = 64 };
enum { MOVE_NS = 1000000 }; /* shortest time between two moves of a thread to another core */
enum { TASK_BITS = 20 };
#define JOB_TASKS ((INT64_C(1) << TASK_BITS) - 1) /* the most tasks of a job */

typedef struct pool_thread {
    leati_thread_pool *pool;
    pthread_t thread;
    int member;
    int64_t moved_ns;
    struct pool_thread *next;
} pool_thread;

struct leati_thread_pool {
    /* Written by the caller. */
    alignas(LINE) _Atomic uint64_t
        ticket; /* from the high bits: job number, first task that is left, end of the tasks that are left */
    _Atomic(leati_thread_pool_work) work;
    void *_Atomic context;
    _Atomic int64_t begin;  /* the number of the job's first task among all tasks */
    atomic_int threads;     /* number of threads that may take part */
    atomic_int caller_core; /* the core that the caller runs on */
    /* Written by pool threads. */
    alignas(LINE) leati_futex finished; /* number of tasks of this job that pool threads have done */
    atomic_bool awaited;                /* the caller sleeps until `finished` changes */
    /* Used to sleep between jobs. */
    alignas(LINE) leati_futex wake_futex;
    atomic_bool asleep; /* a pool thread sleeps, or is about to */
    atomic_bool closing;
    pool_thread *pool_threads;
    int size;            /* number of threads, including the caller */
    int limit;           /* largest number of threads that may take part */
    uint32_t fork_depth; /* fork depth of the process in which the pool threads were started */
};

static uint32_t job_of(uint64_t ticket) {
    return (uint32_t)(ticket >> 2 * TASK_BITS);
}

static uint32_t first_task(uint64_t ticket) {
    return (uint32_t)(ticket >> TASK_BITS & JOB_TASKS);
}

static uint32_t end_task(uint64_t ticket) {
    return (uint32_t)(ticket & JOB_TASKS);
}

/* Does tasks until none is left to claim; returns how many it did.  *job receives the number of the last job seen. */
static uint32_t work(leati_thread_pool *pool, int member, uint32_t *job) {
    uint32_t done = 0;
    uint64_t ticket = atomic_load_explicit(&pool->ticket, memory_order_acquire);
    for (;;) {
        *job = job_of(ticket);
        uint32_t first = first_task(ticket), end = end_task(ticket);
        if (first == end) return done;
        leati_thread_pool_work function = atomic_load_explicit(&pool->work, memory_order_relaxed);
        void *context = atomic_load_explicit(&pool->context, memory_order_relaxed);
        int64_t begin = atomic_load_explicit(&pool->begin, memory_order_relaxed);
        if (member >= atomic_load_explicit(&pool->threads, memory_order_relaxed)) return done;
        uint64_t claimed = member == 0 ? ticket + (UINT64_C(1) << TASK_BITS) : ticket - 1;
        if (!atomic_compare_exchange_weak_explicit(&pool->ticket, &ticket, claimed, memory_order_acq_rel,
                                                   memory_order_acquire))
            continue;
        function(context, begin + (member == 0 ? first : end - 1), member);
        ++done;
        if (member > 0) {
            atomic_fetch_add(&pool->finished, 1);
            if (atomic_load(&pool->awaited)) leati_futex_wake(&pool->finished, 1, false);
        }
        ticket = atomic_load_explicit(&pool->ticket, memory_order_acquire);
    }
}

/* ---- Pool threads ---- */

/* Moves the thread away from the caller's core, where it would only slow the caller down.  The scheduler may leave
 * two threads that spin between jobs of microseconds on the same core forever, even if another core is idle. */
static void leave_caller_core(leati_thread_pool *pool, pool_thread *self) {
    cpu_set_t all, others;
    int caller_core = atomic_load_explicit(&pool->caller_core, memory_order_relaxed);
    if (sched_getcpu() != caller_core || caller_core < 0 || caller_core >= CPU_SETSIZE) return;
    int64_t now = leati_now_ns();
    if (now < self->moved_ns + MOVE_NS || sched_getaffinity(0, sizeof all, &all) != 0) return;
    self->moved_ns = now;
    others = all;
    CPU_CLR((size_t)caller_core, &others);
    if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return;
    sched_setaffinity(0, sizeof all, &all);
}

static bool is_needed(leati_thread_pool *pool, uint32_t job) {
    return job_of(atomic_load(&pool->ticket)) != job || atomic_load(&pool->closing);
}

static void idle(pool_thread *self, uint32_t job, leati_spin *spin) {
    leati_thread_pool *pool = self->pool;
    int64_t began = leati_now_ns(), until = began + leati_spin_length(spin);
    do {
        leave_caller_core(pool, self);
        for (int i = 0; i < PAUSES; i++) {
            if (is_needed(pool, job)) {
                leati_spin_learn(spin, 0);
                return;
            }
            leati_spin_pause();
        }
    } while (leati_now_ns() < until);
    uint32_t wake_futex = atomic_load(&pool->wake_futex);
    atomic_store(&pool->asleep, true);
    while (!is_needed(pool, job)) {
        leati_futex_wait(&pool->wake_futex, wake_futex, -1, false);
        wake_futex = atomic_load(&pool->wake_futex);
    }
    leave_caller_core(pool, self);
    leati_spin_learn(spin, leati_now_ns() - began);
}

static void *run_pool_thread(void *argument) {
    pool_thread *self = argument;
    leati_thread_pool *pool = self->pool;
    leati_spin spin = {.longest_ns = IDLE_NS};
    char name[16];
    snprintf(name, sizeof name, "leat-compute/%d", self->member);
    prctl(PR_SET_NAME, name);
    leati_flush_denormals(); /* callers compute in the same mode */
    while (!atomic_load(&pool->closing)) {
        uint32_t job;
        work(pool, self->member, &job);
        idle(self, job, &spin);
    }
    return NULL;
}

static void wake_all(leati_thread_pool *pool) {
    atomic_fetch_add(&pool->wake_futex, 1);
    leati_futex_wake(&pool->wake_futex, pool->size, false);
}

/* ---- Starting threads ---- */

static leat_status start_thread(leati_thread_pool *pool, leat_error *err) {
    pool_thread *self = leati_calloc(1, sizeof *self);
    if (!self) return leati_fail_memory(err, sizeof *self, "a thread");
    *self = (pool_thread){.pool = pool, .member = pool->size, .next = pool->pool_threads};
    int failed = pthread_create(&self->thread, NULL, run_pool_thread, self);
    if (failed) {
        leati_free(self);
        return leati_fail_errno(err, LEAT_EIO, failed, "cannot start compute thread %d", pool->size + 1);
    }
    pool->pool_threads = self;
    ++pool->size;
    return LEAT_OK;
}

/* Starts threads until there are `threads`, including the caller.  They block all signals except faults. */
static leat_status start_threads(leati_thread_pool *pool, int threads, leat_error *err) {
    leat_status status = LEAT_OK;
    sigset_t before;
    leati_mask_all_but_faults(&before);
    while (status == LEAT_OK && pool->size < threads) status = start_thread(pool, err);
    leati_mask_restore(&before);
    return status;
}

/* ---- Forks ---- */

static bool is_of_this_process(const leati_thread_pool *pool) {
    return pool->fork_depth == leati_fork_depth();
}

/* Frees the records of pool threads that are threads of another process. */
static void free_threads(leati_thread_pool *pool) {
    while (pool->pool_threads) {
        pool_thread *first = pool->pool_threads;
        pool->pool_threads = first->next;
        leati_free(first);
    }
    pool->size = 1;
}

/* In a forked child: starts as many pool threads as the parent had, or fewer if the system refuses; then the caller
 * does more. */
static void restart_in_child(leati_thread_pool *pool) {
    int size = pool->size;
    free_threads(pool);
    pool->fork_depth = leati_fork_depth();
    atomic_store(&pool->ticket, 0);
    atomic_store(&pool->awaited, false);
    atomic_store(&pool->asleep, false);
    (void)start_threads(pool, size, NULL);
}

/* ---- The caller ---- */

static void wait_for_finished(leati_thread_pool *pool, uint32_t finished) {
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

static bool caller_works_alone(const leati_thread_pool *pool, int threads, int64_t tasks) {
    return !pool || threads < 2 || tasks < 2 || pool->size < 2;
}

static void share_job(leati_thread_pool *pool, int threads, int64_t begin, uint32_t tasks,
                      leati_thread_pool_work function, void *context) {
    uint64_t ticket = atomic_load_explicit(&pool->ticket, memory_order_relaxed);
    uint32_t job;
    atomic_store_explicit(&pool->work, function, memory_order_relaxed);
    atomic_store_explicit(&pool->context, context, memory_order_relaxed);
    atomic_store_explicit(&pool->begin, begin, memory_order_relaxed);
    atomic_store_explicit(&pool->threads, threads, memory_order_relaxed);
    atomic_store_explicit(&pool->caller_core, sched_getcpu(), memory_order_relaxed);
    atomic_store_explicit(&pool->finished, 0, memory_order_relaxed);
    atomic_store(&pool->ticket, (uint64_t)(job_of(ticket) + 1) << 2 * TASK_BITS | tasks);
    if (atomic_load(&pool->asleep) && atomic_exchange(&pool->asleep, false)) wake_all(pool);
    uint32_t done = work(pool, 0, &job);
    if (done < tasks) wait_for_finished(pool, tasks - done);
}

void leati_thread_pool_share(leati_thread_pool *pool, int threads, int64_t tasks,
                             leati_thread_pool_work function, void *context) {
    if (pool && !is_of_this_process(pool)) restart_in_child(pool);
    if (pool && threads > pool->limit) threads = pool->limit;
    if (caller_works_alone(pool, threads, tasks)) {
        for (int64_t i = 0; i < tasks; i++) function(context, i, 0);
        return;
    }
    for (int64_t rest, begin = 0; (rest = tasks - begin) > 0; begin += JOB_TASKS)
        share_job(pool, threads, begin, (uint32_t)(rest < JOB_TASKS ? rest : JOB_TASKS), function, context);
}

/* ---- Creating and destroying ---- */

leat_status leati_thread_pool_create(leati_thread_pool **out, leat_error *err) {
    leati_thread_pool *pool = leati_calloc_aligned(sizeof *pool);
    *out = pool;
    if (!pool) return leati_fail_memory(err, sizeof *pool, "a pool of threads");
    pool->size = 1;
    pool->limit = INT_MAX;
    pool->caller_core = -1;
    pool->fork_depth = leati_fork_depth();
    return LEAT_OK;
}

void leati_thread_pool_limit(leati_thread_pool *pool, int threads) {
    pool->limit = threads;
}

leat_status leati_thread_pool_reserve(leati_thread_pool *pool, int threads, leat_error *err) {
    if (threads > LEATI_THREAD_POOL_MAX)
        return leati_fail(err, LEAT_EINVAL, "threads: expected at most %d, received %d",
                          LEATI_THREAD_POOL_MAX, threads);
    if (!is_of_this_process(pool)) restart_in_child(pool);
    if (threads <= pool->size) return LEAT_OK;
    return start_threads(pool, threads, err);
}

void leati_thread_pool_destroy(leati_thread_pool **pool_pointer) {
    leati_thread_pool *pool = *pool_pointer;
    if (!pool) return;
    if (!is_of_this_process(pool)) free_threads(pool);
    atomic_store(&pool->closing, true);
    wake_all(pool);
    while (pool->pool_threads) {
        pool_thread *first = pool->pool_threads;
        pool->pool_threads = first->next;
        pthread_join(first->thread, NULL);
        leati_free(first);
    }
    leati_free(pool);
    *pool_pointer = NULL;
}
