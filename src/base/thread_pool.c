/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks are claimed one by one from a word that holds a round's number and which tasks of it are left: the caller takes the
 * first, helpers the last, so that who wrote something is likely to read it in a later round.  What the round is about
 * changes only while none is left, so that a claim that succeeds has read the right thing.  Layer: engine. */
#define _GNU_SOURCE /* PR_SET_NAME, sched_getcpu */
#include "base/thread_pool.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/denormals.h"
#include "base/error.h"
#include "base/fork.h"
#include "base/futex.h"
#include "base/memory.h"
#include "base/signals.h"
#include "base/spin.h"

/* A helper's spin between two rounds bridges the small ops between large ones; the caller's at the end of a round, the
 * difference between two parts.  Then a core is left to who needs it. */
enum { REST_NS = 2 * LEATI_WAKE_UP_NS, WAIT_NS = 2 * LEATI_WAKE_UP_NS, PAUSES = 32, LINE = 64 };
enum { MOVE_NS = 1000000 }; /* no helper moves more often */
enum { TASK_BITS = 20 };
#define ROUND_TASKS ((INT64_C(1) << TASK_BITS) - 1) /* at most */

typedef struct helper {
    leati_team *team;
    pthread_t thread;
    int member;
    int64_t moved_ns;
    struct helper *next;
} helper;

struct leati_team {
    /* Written by the caller. */
    alignas(LINE) _Atomic uint64_t
        ticket; /* the round, then the first task that nobody has claimed, then the one behind the last */
    _Atomic(leati_team_work) work;
    void *_Atomic of;
    _Atomic int64_t begin; /* the number of the round's first task */
    atomic_int threads;    /* that may take part */
    atomic_int core;       /* the caller's */
    /* Written by helpers. */
    alignas(LINE) leati_futex finished; /* tasks of this round, by helpers */
    atomic_bool awaited;                /* the caller sleeps on it */
    /* For going to sleep. */
    alignas(LINE) leati_futex bell;
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
static uint32_t work(leati_team *team, int member, uint32_t *round) {
    uint32_t done = 0;
    uint64_t ticket = atomic_load_explicit(&team->ticket, memory_order_acquire);
    for (;;) {
        *round = round_of(ticket);
        uint32_t first = first_of(ticket), end = end_of(ticket);
        if (first == end) return done;
        leati_team_work does = atomic_load_explicit(&team->work, memory_order_relaxed);
        void *of = atomic_load_explicit(&team->of, memory_order_relaxed);
        int64_t begin = atomic_load_explicit(&team->begin, memory_order_relaxed);
        if (member >= atomic_load_explicit(&team->threads, memory_order_relaxed)) return done;
        uint64_t claimed = member == 0 ? ticket + (UINT64_C(1) << TASK_BITS) : ticket - 1;
        if (!atomic_compare_exchange_weak_explicit(&team->ticket, &ticket, claimed, memory_order_acq_rel,
                                                   memory_order_acquire))
            continue;
        does(of, begin + (member == 0 ? first : end - 1), member);
        ++done;
        if (member > 0) {
            atomic_fetch_add(&team->finished, 1);
            if (atomic_load(&team->awaited)) leati_futex_wake(&team->finished, 1, false);
        }
        ticket = atomic_load_explicit(&team->ticket, memory_order_acquire);
    }
}

/* ---- Helpers ---- */

/* Off the caller's core, where a helper can only be in its way.  The scheduler may leave two threads that spin between
 * rounds of microseconds on one core for as long as they live, with another core idle. */
static void make_way(leati_team *team, helper *self) {
    cpu_set_t all, others;
    int core = atomic_load_explicit(&team->core, memory_order_relaxed);
    if (sched_getcpu() != core || core < 0 || core >= CPU_SETSIZE) return;
    int64_t now = leati_now_ns();
    if (now < self->moved_ns + MOVE_NS || sched_getaffinity(0, sizeof all, &all) != 0) return;
    self->moved_ns = now;
    others = all;
    CPU_CLR((size_t)core, &others);
    if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return;
    sched_setaffinity(0, sizeof all, &all);
}

static bool is_called(leati_team *team, uint32_t round) {
    return round_of(atomic_load(&team->ticket)) != round || atomic_load(&team->closing);
}

static void rest(helper *self, uint32_t round, leati_spin *spin) {
    leati_team *team = self->team;
    int64_t began = leati_now_ns(), until = began + leati_spin_length(spin);
    do {
        make_way(team, self);
        for (int i = 0; i < PAUSES; i++) {
            if (is_called(team, round)) {
                leati_spin_learn(spin, 0);
                return;
            }
            leati_spin_pause();
        }
    } while (leati_now_ns() < until);
    uint32_t bell = atomic_load(&team->bell);
    atomic_store(&team->asleep, true);
    while (!is_called(team, round)) {
        leati_futex_wait(&team->bell, bell, -1, false);
        bell = atomic_load(&team->bell);
    }
    make_way(team, self);
    leati_spin_learn(spin, leati_now_ns() - began);
}

static void *help(void *argument) {
    helper *self = argument;
    leati_team *team = self->team;
    leati_spin spin = {.longest_ns = REST_NS};
    char name[16];
    snprintf(name, sizeof name, "leat-compute/%d", self->member);
    prctl(PR_SET_NAME, name);
    leati_flush_denormals(); /* as every caller does */
    while (!atomic_load(&team->closing)) {
        uint32_t round;
        work(team, self->member, &round);
        rest(self, round, &spin);
    }
    return NULL;
}

static void ring(leati_team *team) {
    atomic_fetch_add(&team->bell, 1);
    leati_futex_wake(&team->bell, team->size, false);
}

/* ---- Starting helpers ---- */

static leat_status start(leati_team *team, leat_error *err) {
    helper *self = leati_calloc(1, sizeof *self);
    if (!self) return leati_fail_memory(err, sizeof *self, "a thread");
    *self = (helper){.team = team, .member = team->size, .next = team->helpers};
    int failed = pthread_create(&self->thread, NULL, help, self);
    if (failed) {
        leati_free(self);
        return leati_fail_errno(err, LEAT_EIO, failed, "cannot start compute thread %d", team->size + 1);
    }
    team->helpers = self;
    ++team->size;
    return LEAT_OK;
}

/* All signals but faults are the caller's to handle. */
static leat_status start_until(leati_team *team, int threads, leat_error *err) {
    leat_status status = LEAT_OK;
    sigset_t before;
    leati_mask_all_but_faults(&before);
    while (status == LEAT_OK && team->size < threads) status = start(team, err);
    leati_mask_restore(&before);
    return status;
}

/* ---- Forks ---- */

static bool is_at_home(const leati_team *team) {
    return team->fork_depth == leati_fork_depth();
}

/* Forgets helpers that are threads of another process. */
static void forget_helpers(leati_team *team) {
    while (team->helpers) {
        helper *gone = team->helpers;
        team->helpers = gone->next;
        leati_free(gone);
    }
    team->size = 1;
}

/* In a forked child: starts as many helpers as the parent had, or as the system allows.  With fewer, the caller does more. */
static void move_in(leati_team *team) {
    int size = team->size;
    forget_helpers(team);
    team->fork_depth = leati_fork_depth();
    atomic_store(&team->ticket, 0);
    atomic_store(&team->awaited, false);
    atomic_store(&team->asleep, false);
    (void)start_until(team, size, NULL);
}

/* ---- The caller ---- */

static void await(leati_team *team, uint32_t finished) {
    int64_t until = leati_now_ns() + WAIT_NS;
    uint32_t now;
    do
        for (int i = 0; i < PAUSES; i++) {
            if (atomic_load_explicit(&team->finished, memory_order_acquire) == finished) return;
            leati_spin_pause();
        }
    while (leati_now_ns() < until);
    atomic_store(&team->awaited, true);
    while ((now = atomic_load(&team->finished)) != finished)
        leati_futex_wait(&team->finished, now, -1, false);
    atomic_store(&team->awaited, false);
}

static bool is_alone(const leati_team *team, int threads, int64_t tasks) {
    return !team || threads < 2 || tasks < 2 || team->size < 2;
}

static void share_round(leati_team *team, int threads, int64_t begin, uint32_t tasks, leati_team_work does,
                        void *of) {
    uint64_t ticket = atomic_load_explicit(&team->ticket, memory_order_relaxed);
    uint32_t round;
    atomic_store_explicit(&team->work, does, memory_order_relaxed);
    atomic_store_explicit(&team->of, of, memory_order_relaxed);
    atomic_store_explicit(&team->begin, begin, memory_order_relaxed);
    atomic_store_explicit(&team->threads, threads, memory_order_relaxed);
    atomic_store_explicit(&team->core, sched_getcpu(), memory_order_relaxed);
    atomic_store_explicit(&team->finished, 0, memory_order_relaxed);
    atomic_store(&team->ticket, (uint64_t)(round_of(ticket) + 1) << 2 * TASK_BITS | tasks);
    if (atomic_load(&team->asleep) && atomic_exchange(&team->asleep, false)) ring(team);
    uint32_t own = work(team, 0, &round);
    if (own < tasks) await(team, tasks - own);
}

void leati_team_share(leati_team *team, int threads, int64_t tasks, leati_team_work does, void *of) {
    if (team && !is_at_home(team)) move_in(team);
    if (team && threads > team->most) threads = team->most;
    if (is_alone(team, threads, tasks)) {
        for (int64_t i = 0; i < tasks; i++) does(of, i, 0);
        return;
    }
    for (int64_t left, begin = 0; (left = tasks - begin) > 0; begin += ROUND_TASKS)
        share_round(team, threads, begin, (uint32_t)(left < ROUND_TASKS ? left : ROUND_TASKS), does, of);
}

/* ---- Making ---- */

leat_status leati_team_create(leati_team **out, leat_error *err) {
    leati_team *team = leati_calloc_aligned(sizeof *team);
    *out = team;
    if (!team) return leati_fail_memory(err, sizeof *team, "a team of threads");
    team->size = 1;
    team->most = INT_MAX;
    team->core = -1;
    team->fork_depth = leati_fork_depth();
    return LEAT_OK;
}

void leati_team_limit(leati_team *team, int threads) {
    team->most = threads;
}

leat_status leati_team_reserve(leati_team *team, int threads, leat_error *err) {
    if (threads > LEATI_TEAM_MOST)
        return leati_fail(err, LEAT_EINVAL, "threads: expected at most %d, received %d", LEATI_TEAM_MOST,
                          threads);
    if (!is_at_home(team)) move_in(team);
    if (threads <= team->size) return LEAT_OK;
    return start_until(team, threads, err);
}

void leati_team_destroy(leati_team **team_pointer) {
    leati_team *team = *team_pointer;
    if (!team) return;
    if (!is_at_home(team)) forget_helpers(team);
    atomic_store(&team->closing, true);
    ring(team);
    while (team->helpers) {
        helper *gone = team->helpers;
        team->helpers = gone->next;
        pthread_join(gone->thread, NULL);
        leati_free(gone);
    }
    leati_free(team);
    *team_pointer = NULL;
}
