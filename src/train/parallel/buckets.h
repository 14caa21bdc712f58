/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up the gradients of all ranks in pieces (buckets) from the end of their slab, where the backward pass finishes
 * first, so that most of the sums are made while it computes the rest.  Room: train. */
#ifndef LEATI_TRAIN_PARALLEL_BUCKETS_H
#define LEATI_TRAIN_PARALLEL_BUCKETS_H

#include "dist/dist.h"

enum { LEATI_BUCKETS_MAX = 64 };

typedef struct leati_buckets {
    leat_dist *dist;    /* borrowed */
    float *values;      /* borrowed, from leati_buckets_begin to leati_buckets_finish */
    bool bf16;          /* the sums travel as bfloat16 */
    size_t count, size; /* floats of all values, and of a bucket; size 0: not measured yet */
    int started, total; /* buckets */
    int64_t busy_ns;    /* time of the sums that leati_buckets_finish has waited for, in all calls */
    leati_dist_request requests[LEATI_BUCKETS_MAX];
} leati_buckets;

/* Measures sums of several sizes, and chooses the smallest size of a bucket with nearly the best speed; `values` is
 * memory for the sums, whose values are lost.  All ranks choose the same size, and make this call together.
 * Errors: those of the communicator. */
leat_status leati_buckets_measure(leati_buckets *buckets, leat_dist *dist, float *values, size_t count,
                                  leat_error *err);

/* Begins the sum of `count` floats.  Every rank makes the same calls, but leati_buckets_ready as often as it likes. */
void leati_buckets_begin(leati_buckets *buckets, float *values, size_t count);
/* Starts the sums of the buckets whose values are final: those from value number `from` to the end. */
void leati_buckets_ready(leati_buckets *buckets, size_t from);
/* Waits for the sums of all buckets; leati_buckets_ready(buckets, 0) was called before.  Errors: those of the
 * communicator. */
leat_status leati_buckets_finish(leati_buckets *buckets, leat_error *err);

#endif
