/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and joins the worker threads of a pool. */
#ifndef LEATI_FEED_WORKERS_THREADS_H
#define LEATI_FEED_WORKERS_THREADS_H

#include <pthread.h>

#include "feed/workers/worker.h"

typedef struct leati_thread {
    pthread_t id;
    leati_worker worker;
    struct leati_threads *all;
} leati_thread;

/* The worker threads of a pool.  The last holder, which may be the owner or a thread that outlives it, calls
 * release. */
typedef struct leati_threads {
    leati_thread *threads;
    int made;            /* number of threads that were started */
    int count;           /* number of threads that are not joined yet */
    _Atomic int holders; /* number of running threads, plus 1 for the owner */
    void (*release)(void *owner);
    void *owner;
} leati_threads;

/* Starts work->table.count threads.  Errors: LEAT_EIO, LEAT_ENOMEM; then no thread runs. */
leat_status leati_threads_start(leati_threads *threads, leati_pool_work *work, leat_error *err);

/* Waits for the threads, which have been told to exit, for at most patience_ns (< 0: without a limit).  Returns the
 * number of threads that still run; each exits after its batch. */
int leati_threads_join(leati_threads *threads, int64_t patience_ns);

/* Ends the use by one holder.  Returns true for the last holder, which must free what the threads used. */
bool leati_threads_let_go(leati_threads *threads);

/* Frees the table; no thread may run. */
void leati_threads_fini(leati_threads *threads);

/* Sets the name of the calling thread or process that ps and top show. */
void leati_name_worker(int number);

#endif
