/* SPDX-License-Identifier: Apache-2.0 */
/* The workers of a group of feeds, threads or processes: start them, miss them, send them home. */
#ifndef LEATI_FEED_WORKERS_WORKER_POOL_H
#define LEATI_FEED_WORKERS_WORKER_POOL_H

#include "feed/workers/helper.h"
#include "feed/workers/threads.h"

typedef struct leati_worker_pool {
    leati_works *works;
    leati_threads threads;
    leati_helper helper;
} leati_worker_pool;

/* Starts the workers of the table's present generation.  Errors: LEAT_EIO, LEAT_ENOMEM; nothing runs then.  Without
 *  workers there is nothing to do, here and below. */
leat_status leati_worker_pool_start(leati_worker_pool *pool, leat_error *err);

/* Whether all workers can still come back.  Errors: LEAT_EWORKER when the helper process is gone. */
leat_status leati_worker_pool_check(leati_worker_pool *pool, leat_error *err);

/* Sends the workers home after the batches in hand and waits until nothing of them is left; for threads, at most
 * patience_ns if that is not negative.  Returns how many threads are left behind. */
int leati_worker_pool_stop(leati_worker_pool *pool, int64_t patience_ns);

/* Frees what a dismissed pool holds. */
void leati_worker_pool_fini(leati_worker_pool *pool);

#endif
