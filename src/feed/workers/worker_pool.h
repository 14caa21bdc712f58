/* SPDX-License-Identifier: Apache-2.0 */
/* The worker pool of a group of feeds: starts, checks and stops its workers, which are threads or processes. */
#ifndef LEATI_FEED_WORKERS_WORKER_POOL_H
#define LEATI_FEED_WORKERS_WORKER_POOL_H

#include "feed/workers/helper.h"
#include "feed/workers/threads.h"

typedef struct leati_worker_pool {
    leati_pool_work *work;
    leati_threads threads;
    leati_helper helper;
} leati_worker_pool;

/* Starts the workers of the table's present generation.  Errors: LEAT_EIO, LEAT_ENOMEM; then nothing runs.  This
 * function and those below do nothing if the table has no workers. */
leat_status leati_worker_pool_start(leati_worker_pool *pool, leat_error *err);

/* Checks that dead workers can be replaced.  Errors: LEAT_EWORKER if the helper process is gone. */
leat_status leati_worker_pool_check(leati_worker_pool *pool, leat_error *err);

/* Makes the workers exit after the batches that they are making, and waits for them.  The wait for threads ends after
 * patience_ns if that is not negative.  Returns the number of threads that still run. */
int leati_worker_pool_stop(leati_worker_pool *pool, int64_t patience_ns);

/* Stops the workers and starts new ones, which see the data as it is now.  A helper program that can receive new data
 * is kept: then the function does not wait.  Errors: LEAT_EIO, LEAT_ENOMEM. */
leat_status leati_worker_pool_renew(leati_worker_pool *pool, leat_error *err);

/* Frees the memory of a pool that was stopped. */
void leati_worker_pool_fini(leati_worker_pool *pool);

#endif
