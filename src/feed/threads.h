/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads. */
#ifndef LEATI_FEED_THREADS_H
#define LEATI_FEED_THREADS_H

#include <pthread.h>

#include "feed/worker.h"

typedef struct leati_thread {
    pthread_t id;
    leati_worker worker;
} leati_thread;

/* Starts `count` threads; *started of them run when it fails (LEAT_EIO). */
leat_status leati_threads_start(leati_thread *threads, int count, int *started, leat_error *err);

/* Waits for *started threads, which the ring has been told to send home, and sets *started to 0. */
void leati_threads_join(leati_thread *threads, int *started);

/* Gives the calling thread, or process, the name that ps and top show. */
void leati_name_worker(int number);

#endif
