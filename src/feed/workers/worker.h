/* SPDX-License-Identifier: Apache-2.0 */
/* The work of every kind of worker: it claims tickets of all feeds of its pool, makes batches and publishes them. */
#ifndef LEATI_FEED_WORKERS_WORKER_H
#define LEATI_FEED_WORKERS_WORKER_H

#include "feed/ring/make.h"

/* The data that all workers of a pool have in common.  A worker process has its own copy. */
typedef struct leati_pool_work {
    leati_worker_table table;
    leati_service *const *services;
    int count; /* number of services; the most urgent service is the first */
} leati_pool_work;

typedef struct leati_worker {
    leati_pool_work *work;
    leati_maker *makers; /* one for each service */
    int maker_count;
    int number;
    int64_t looked_ns;   /* when the process looked at its memory */
    uint32_t generation; /* of the worker table when this worker was started */
} leati_worker;

/* Returns true if workers of this generation must exit: they were retired, or all feeds have ended. */
bool leati_pool_work_is_over(const leati_pool_work *work, uint32_t generation);

/* Ends all feeds that have not ended yet with this error.  Any thread or process may call it. */
void leati_pool_work_fail(const leati_pool_work *work, const leat_error *failure);

/* Allocates the memory of a worker.  Errors: LEAT_ENOMEM; then nothing is left to free. */
leat_status leati_worker_init(leati_worker *worker, leati_pool_work *work, int number, leat_error *err);
void leati_worker_fini(leati_worker *worker);

/* Calls worker_init, makes batches until the worker must exit, and calls worker_fini.  Returns the error of
 * worker_init. */
leat_status leati_worker_run(leati_worker *worker, leat_error *err);

/* leati_worker_begin calls worker_init of all sequences that have it, and leati_worker_end their worker_fini.  An error
 * names the worker. */
leat_status leati_worker_begin(const leati_worker *worker, leat_error *err);
void leati_worker_end(const leati_worker *worker);

#endif
