/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of fork(), registered when the library is loaded.  Layer: base.
 *
 * A child has one thread, a copy of the one that forked.  Three things would go wrong in it: a lock that another thread held
 * stays locked, an OpenMP runtime waits for threads that are gone, and leat's objects believe in threads and worker processes
 * that they do not have. */
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

/* These are global because a fork is: it copies the whole process.  `gate` counts the threads inside leati_fork_hold; with
 * FORKING no further one enters.  A lock of the C library would not do: its owner is a thread of the parent, so that the child
 * could not unlock it. */
static leati_futex gate;
static _Atomic uint32_t depth;
static _Atomic pid_t process; /* for which `depth` is right */
static void (*_Atomic end_known_threads)(void);

/* Initial-exec variables are allocated with their thread, and not at their first use: that may be in a signal handler. */
#define OF_THREAD __attribute__((tls_model("initial-exec"))) static _Thread_local
OF_THREAD volatile int
    holding;           /* leati_fork_hold calls of this thread; a signal handler that forks reads it */
OF_THREAD int forking; /* leat_before_fork calls of this thread */
OF_THREAD bool due;    /* this thread is about to fork: `depth` is too small in its child */

uint32_t leati_fork_depth(void) {
    return atomic_load_explicit(&depth, memory_order_relaxed);
}

/* ---- The gate ---- */

/* Between its leat_before_fork and the fork a thread has the gate closed for others, and does not wait for itself.
 *
 * A signal handler that forks may interrupt these functions anywhere, and must not wait for the thread that it interrupts:
 * `holding` is not zero from before the thread is counted until after it is no longer counted. */
void leati_fork_hold(void) {
    if (holding++ > 0 || forking > 0) return;
    for (uint32_t seen = atomic_load(&gate);;) {
        if (!(seen & FORKING) && atomic_compare_exchange_weak(&gate, &seen, seen + 1)) return;
        if (seen & FORKING) leati_futex_wait(&gate, seen, -1, false);
        seen = atomic_load(&gate);
    }
}

/* In a child the gate may count nobody, see leat_after_fork_child. */
static void leave_gate(void) {
    uint32_t seen = atomic_load(&gate);
    while ((seen & ~FORKING) > 0 && !atomic_compare_exchange_weak(&gate, &seen, seen - 1)) continue;
    if (seen == (FORKING | 1)) leati_futex_wake(&gate, INT_MAX, false);
}

void leati_fork_release(void) {
    if (holding == 1 && forking == 0) leave_gate();
    --holding;
}

/* Waits for another thread that forks, keeps the others out, and waits for those that are inside. */
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
    atomic_store(&end_known_threads, end_threads);
}

/* Ends the threads of the runtime that leat computes with, and of another one that the program may have.  dlsym finds that
 * alone which the program, or what this library was loaded with, links.  Inside a parallel region a runtime refuses, and a child
 * needs no threads for the regions nested in that one. */
static void end_openmp_threads(void) {
    enum { omp_pause_hard = 2 };
    int (*pause_all)(int) = NULL;
    void (*end_threads)(void) = atomic_load(&end_known_threads);
    if (end_threads) end_threads();
    void *symbol = dlsym(RTLD_DEFAULT, "omp_pause_resource_all");
    memcpy(&pause_all, &symbol, sizeof symbol); /* POSIX's way to a function */
    if (pause_all) pause_all(omp_pause_hard);
}

/* A signal handler may fork while its thread holds the gate; to wait would be to wait for itself. */
void leat_before_fork(void) {
    if (forking++ > 0) return;
    end_openmp_threads();
    due = true;
    if (holding == 0) close_gate();
}

void leat_after_fork_parent(void) {
    if (forking == 0 || --forking > 0) return;
    due = false;
    if (holding == 0) open_gate();
}

/* The threads that the gate has counted are the parent's.  This one may have been counted, too, when a signal handler forked;
 * but it is the child's only thread, and whether it was interrupted before or after being counted nobody knows. */
void leat_after_fork_child(void) {
    if (!due && atomic_load(&process) == getpid()) return;
    due = false;
    forking = 0;
    atomic_store(&process, getpid());
    atomic_fetch_add(&depth, 1);
    atomic_store(&gate, 0);
}

__attribute__((constructor)) static void watch_forks(void) {
    atomic_store(&process, getpid());
    pthread_atfork(leat_before_fork, leat_after_fork_parent, leat_after_fork_child);
}
