/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads. */
#ifndef LEATI_FEED_WORKERS_THREADS_H
#define LEATI_FEED_WORKERS_THREADS_H

#include <pthread.h>

#include "feed/workers/worker.h"

typedef struct leati_thread {
    pthread_t id;
    leati_worker worker;
    struct leati_threads *all;
} leati_thread;

/* The threads of a pool.  Whoever lets go last, the owner or a thread that outlived it, calls release. */
typedef struct leati_threads {
    leati_thread *threads;
    int made;            /* that were started */
    int count;           /* of them, not yet joined */
    _Atomic int holders; /* the threads that run, and the owner */
    void (*release)(void *owner);
    void *owner;
} leati_threads;

/* Starts works->table.count threads.  Errors: LEAT_EIO, LEAT_ENOMEM; none runs then. */
leat_status leati_threads_start(leati_threads *threads, leati_works *works, leat_error *err);

/* Waits for the threads, which have been told to leave: for ever (patience_ns < 0), or at most so long.  Returns how many
 * are left behind: those go when their batch is made. */
int leati_threads_join(leati_threads *threads, int64_t patience_ns);

/* The owner lets go.  True: it was the last, and is to free what the threads used. */
bool leati_threads_let_go(leati_threads *threads);

/* Frees the table of threads that are gone. */
void leati_threads_fini(leati_threads *threads);

/* Gives the calling thread, or process, the name that ps and top show. */
void leati_name_worker(int number);

#endif
