/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of fork(), registered when the library is loaded.  Room: base.
 *
 * A child has one thread, a copy of the thread that forked.  Without the handlers, three things would go wrong in the
 * child: a lock that another thread held would stay locked, an OpenMP runtime would wait for threads that do not
 * exist, and leat's objects would use threads and worker processes that they do not have. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "base/os/fork.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/os/futex.h"

#define FORKING UINT32_C(0x80000000)

/* These variables are global since a fork copies the whole process.  `gate` counts the threads between
 * leati_fork_hold and leati_fork_release; while its bit FORKING is set, no other thread enters.  A mutex would not
 * do: its owner is a thread of the parent, so the child could not unlock it. */
static leati_futex gate;
static _Atomic uint32_t depth;
static _Atomic pid_t process; /* the process for which `depth` is correct */
static void (*_Atomic end_registered_threads)(void);

/* A variable of each thread.  With the initial-exec model it is allocated when its thread starts, not at its first
 * use, which may be in a signal handler. */
#define PER_THREAD __attribute__((tls_model("initial-exec"))) static _Thread_local
PER_THREAD volatile int
    holding;            /* number of nested leati_fork_hold calls; a signal handler that forks reads it */
PER_THREAD int forking; /* number of nested leat_before_fork calls */
PER_THREAD bool fork_pending; /* this thread is about to fork: its child must increment `depth` */

uint32_t leati_fork_depth(void) {
    return atomic_load_explicit(&depth, memory_order_relaxed);
}

/* ---- The gate ---- */

/* A thread between leat_before_fork and the fork has closed the gate itself, so it does not wait here.
 *
 * A signal handler that forks may interrupt these functions anywhere, and must not wait for the thread that it
 * interrupts.  So `holding` becomes nonzero before the gate counts the thread, and zero after the gate no longer
 * counts it. */
void leati_fork_hold(void) {
    if (holding++ > 0 || forking > 0) return;
    for (uint32_t seen = atomic_load(&gate);;) {
        if (!(seen & FORKING) && atomic_compare_exchange_weak(&gate, &seen, seen + 1)) return;
        if (seen & FORKING) leati_futex_wait(&gate, seen, -1, false);
        seen = atomic_load(&gate);
    }
}

/* Takes the thread out of the gate's count.  In a child the count may already be 0, see leat_after_fork_child. */
static void leave_gate(void) {
    uint32_t seen = atomic_load(&gate);
    while ((seen & ~FORKING) > 0 && !atomic_compare_exchange_weak(&gate, &seen, seen - 1)) continue;
    if (seen == (FORKING | 1)) leati_futex_wake(&gate, INT_MAX, false);
}

void leati_fork_release(void) {
    if (holding == 1 && forking == 0) leave_gate();
    --holding;
}

/* Waits until no other thread forks, closes the gate, and waits until no thread is inside. */
static void close_gate(void) {
    uint32_t seen;
    while ((seen = atomic_fetch_or(&gate, FORKING)) & FORKING) leati_futex_wait(&gate, seen, -1, false);
    while ((seen = atomic_load(&gate)) != FORKING) leati_futex_wait(&gate, seen, -1, false);
}

static void open_gate(void) {
    atomic_store(&gate, 0);
    leati_futex_wake(&gate, INT_MAX, false);
}

/* ---- Forks ---- */

void leati_fork_ends_threads(void (*end_threads)(void)) {
    atomic_store(&end_registered_threads, end_threads);
}

/* Ends the threads of the OpenMP runtime that leat computes with (end_registered_threads), and of a runtime that the
 * program links: dlsym finds only a runtime that the program, or the library that loaded leat, links.  Inside a
 * parallel region a runtime refuses; that is harmless, since a child needs no threads for the regions nested in that
 * region. */
static void end_openmp_threads(void) {
    enum { omp_pause_hard = 2 };
    int (*pause_all)(int) = NULL;
    void (*end_threads)(void) = atomic_load(&end_registered_threads);
    if (end_threads) end_threads();
    void *symbol = dlsym(RTLD_DEFAULT, "omp_pause_resource_all");
    memcpy(&pause_all, &symbol,
           sizeof symbol); /* ISO C does not convert object pointers to function pointers */
    if (pause_all) pause_all(omp_pause_hard);
}

/* Leaves the gate open if this thread is inside (holding > 0), which happens when a signal handler forks: closing the
 * gate would wait for this very thread. */
void leat_before_fork(void) {
    if (forking++ > 0) return;
    end_openmp_threads();
    fork_pending = true;
    if (holding == 0) close_gate();
}

void leat_after_fork_parent(void) {
    if (forking == 0 || --forking > 0) return;
    fork_pending = false;
    if (holding == 0) open_gate();
}

/* Sets the gate to 0, since the threads that it counted are the parent's.  If a signal handler forked, the gate may
 * or may not have counted this thread; as the child's only thread it does not need to be counted. */
void leat_after_fork_child(void) {
    if (!fork_pending && atomic_load(&process) == getpid()) return;
    fork_pending = false;
    forking = 0;
    atomic_store(&process, getpid());
    atomic_fetch_add(&depth, 1);
    atomic_store(&gate, 0);
}

__attribute__((constructor)) static void watch_forks(void) {
    atomic_store(&process, getpid());
    pthread_atfork(leat_before_fork, leat_after_fork_parent, leat_after_fork_child);
}
