/* SPDX-License-Identifier: Apache-2.0 */
/* What every kind of worker does: claim, make, publish, for all feeds of its pool. */
#ifndef LEATI_FEED_WORKERS_WORKER_H
#define LEATI_FEED_WORKERS_WORKER_H

#include "feed/ring/make.h"

/* What the workers of a pool have in common.  A worker process has a copy of its own. */
typedef struct leati_works {
    leati_worker_table table;
    leati_service *const *services;
    int count; /* of services, the most urgent first */
} leati_works;

typedef struct leati_worker {
    leati_works *works;
    leati_maker *makers; /* one a service */
    int maker_count;
    int number;
    uint32_t generation; /* of the table, when this worker was started */
} leati_worker;

/* Whether workers of this generation are to leave: they were retired, or no feed wants a batch any more. */
bool leati_works_are_over(const leati_works *works, uint32_t generation);

/* Anybody: ends all feeds with this error, or those that have not ended. */
void leati_works_fail(const leati_works *works, const leat_error *failure);

/* Allocates what the worker needs.  Errors: LEAT_ENOMEM; nothing is left then. */
leat_status leati_worker_init(leati_worker *worker, leati_works *works, int number, leat_error *err);
void leati_worker_fini(leati_worker *worker);

/* Runs worker_init, then makes batches until it is to leave, then worker_fini.  Returns the error of worker_init. */
leat_status leati_worker_run(leati_worker *worker, leat_error *err);

/* worker_init with the context that its error carries, and worker_fini, of all services; fine where there is none. */
leat_status leati_worker_begin(const leati_worker *worker, leat_error *err);
void leati_worker_end(const leati_worker *worker);

#endif
