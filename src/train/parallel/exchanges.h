/* SPDX-License-Identifier: Apache-2.0 */
/* The exchanges of synchronized normalizations with the other ranks, in a fixed order with the sums of gradients
 * (decision 0703).  Room: train. */
#ifndef LEATI_TRAIN_PARALLEL_EXCHANGES_H
#define LEATI_TRAIN_PARALLEL_EXCHANGES_H

#include "dist/dist.h"
#include "engine/exchange.h"
#include "engine/plan/plan.h"
#include "train/parallel/buckets.h"

typedef struct leati_exchanges {
    leati_exchange exchange; /* for the kernels */
    leat_dist *dist;         /* borrowed */
    leati_buckets *buckets;  /* borrowed */
    const leati_plan *plan;  /* borrowed */
    double *mine, *all;      /* (room) and (ranks, room) */
    int64_t room;
    int total, done;     /* exchanges of the present step */
    size_t final_from;   /* the gradients from this float on are final on this rank */
    size_t cleared_from; /* is_empty: the gradients from this float on were set to 0 */
} leati_exchanges;

/* Returns the number of exchanges of a run of the plan. */
int leati_exchanges_count(const leati_plan *plan);

/* Begins a step, after leati_buckets_begin.  is_empty: this rank has no samples; the step then runs on a sample of
 * another rank, and its gradients are set to 0.  Errors: LEAT_ENOMEM. */
leat_status leati_exchanges_begin(leati_exchanges *x, leat_dist *dist, leati_buckets *buckets,
                                  const leati_plan *plan, bool is_empty, leat_error *err);

/* For leati_slab_watch: starts sums of gradients.  While exchanges are to come, only sums of gradients that are final
 * on all ranks are started, directly behind an exchange, so that all ranks make their requests in the same order.
 * `user` is a leati_exchanges. */
void leati_exchanges_finished(void *user, size_t from_bytes);

/* Makes the exchanges that a failed run has not made, so that the other ranks do not wait for them. */
void leati_exchanges_complete(leati_exchanges *x);
void leati_exchanges_fini(leati_exchanges *x);

#endif
