/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of fork(), registered when the library is loaded.  Layer: base.
 *
 * A child has one thread, a copy of the one that forked.  Three things would go wrong in it: a lock that another thread held
 * stays locked, an OpenMP runtime waits for threads that are gone, and leat's objects believe in threads and worker processes
 * that they do not have. */
#define _GNU_SOURCE /* RTLD_DEFAULT, the kind of a read-write lock */
#include "base/fork.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* These are global because a fork is: it copies the whole process.  `gate` is held for reading by every thread inside
 * leati_fork_hold, and for writing during a fork.  A fork that waits goes first, or two readers could keep it waiting for ever;
 * a thread that holds the gate does not lock it again. */
static pthread_rwlock_t gate = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static _Atomic uint32_t depth;
static _Atomic pid_t process; /* for which `depth` is right */

static _Thread_local int holding; /* leati_fork_hold calls of this thread */
static _Thread_local int forking; /* leat_before_fork calls of this thread */
static _Thread_local bool due;    /* this thread is about to fork: `depth` is too small in its child */

uint32_t leati_fork_depth(void) {
    return atomic_load_explicit(&depth, memory_order_relaxed);
}

void leati_fork_hold(void) {
    if (holding++ == 0) pthread_rwlock_rdlock(&gate);
}

void leati_fork_release(void) {
    if (--holding == 0) pthread_rwlock_unlock(&gate);
}

/* Inside a parallel region the runtime refuses, and a child needs no threads for the regions nested in that one. */
static void end_openmp_threads(void) {
    enum { omp_pause_hard = 2 };
    int (*pause_all)(int) = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "omp_pause_resource_all");
    memcpy(&pause_all, &symbol, sizeof symbol); /* POSIX's way to a function */
    if (pause_all) pause_all(omp_pause_hard);
}

/* A signal handler may fork while its thread holds the gate; to wait would be to wait for itself. */
void leat_before_fork(void) {
    if (forking++ > 0) return;
    end_openmp_threads();
    due = true;
    if (holding == 0) pthread_rwlock_wrlock(&gate);
}

void leat_after_fork_parent(void) {
    if (forking == 0 || --forking > 0) return;
    due = false;
    if (holding == 0) pthread_rwlock_unlock(&gate);
}

/* The gate's readers and its writer are threads of the parent, so the child's gate is made anew. */
void leat_after_fork_child(void) {
    if (!due && atomic_load(&process) == getpid()) return;
    due = false;
    forking = 0;
    atomic_store(&process, getpid());
    atomic_fetch_add(&depth, 1);
    pthread_rwlock_t open = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
    memcpy(&gate, &open, sizeof gate);
    if (holding > 0) pthread_rwlock_rdlock(&gate);
}

__attribute__((constructor)) static void watch_forks(void) {
    atomic_store(&process, getpid());
    pthread_atfork(leat_before_fork, leat_after_fork_parent, leat_after_fork_child);
}
