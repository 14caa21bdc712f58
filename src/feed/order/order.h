/* SPDX-License-Identifier: Apache-2.0 */
/* The order of the batches of a pass and of the samples of a batch, as functions of (seed, pass), for one rank of
 * several.
 *
 * LEAT_SHUFFLE_WINDOW cuts a pass into runs of `window` neighbours and permutes each run.  The borders of the runs are
 * drawn for each pass, so that samples on different sides of a border are mixed in other passes.
 *
 * LEAT_SHUFFLE_BLOCKS permutes the blocks of `block` neighbours, takes `window` of them at a time as a group, and
 * permutes the samples of each group.  The last block, if it is shorter, belongs to a group that is drawn for each
 * pass. */
#ifndef LEATI_FEED_ORDER_ORDER_H
#define LEATI_FEED_ORDER_ORDER_H

#include "base/shared.h"
#include "base/shuffle.h"
#include "leat/feed.h"

/* The part of the order that is the same for all passes: what is permuted, and how. */
typedef struct leati_order_rule {
    leat_shuffle shuffle; /* never LEAT_SHUFFLE_AUTO */
    bool by_samples; /* samples are permuted, and the batches come in order; otherwise batches are permuted */
    uint64_t window, block;
    uint64_t seed;
} leati_order_rule;

/* Sets the rule from the options for this sequence.  Errors: LEAT_EINVAL, LEAT_ENOTSUP. */
leat_status leati_order_rule_init(leati_order_rule *rule, const leat_feed_options *options,
                                  const leat_sequence *sequence, leat_error *err);

/* The permutation of `length` batches or samples in one pass. */
typedef struct leati_permutation {
    leat_shuffle shuffle;
    uint64_t key, length, window, offset;
    uint64_t run, run_start; /* number and first position of the run or group that `whole` permutes */
    leati_shuffle whole;
    /* Of blocks: samples of a block, number of blocks that are not shorter, the group that has the shorter one. */
    uint64_t block, full, odd_group;
    leati_shuffle blocks; /* the permutation of the full blocks */
} leati_permutation;

LEATI_SHARED void leati_permutation_init(leati_permutation *permutation, const leati_order_rule *rule,
                                         int64_t pass, int64_t length);
/* Returns the permuted position (< length) of `position` (< length). */
LEATI_SHARED int64_t leati_permutation_at(leati_permutation *permutation, int64_t position);

/* Like leati_permutation_at(), but for `count` positions from `first` on. */
void leati_permutation_range(leati_permutation *permutation, int64_t first, int64_t count, int64_t *out);

/* Returns the number, in the data, of the sample at `place` of a batch.  `samples` is the number of samples of the pass
 * if they are shuffled. */
int64_t leati_order_sample(const leati_order_rule *rule, int64_t pass, int64_t samples, int64_t batch_size,
                           int64_t batch, int64_t place);

/* The batches of one rank in one pass. */
typedef struct leati_order {
    int rank, world;
    leat_remainder remainder;
    int64_t total;  /* number of batches of the pass, of all ranks together */
    int64_t length; /* number of batches of this rank */
    leati_permutation batches;
} leati_order;

/* Starts a pass of `total` batches (>= 1, or LEAT_LENGTH_INFINITE). */
void leati_order_start(leati_order *order, const leati_order_rule *rule, int64_t pass, int64_t total);

/* Returns the index of this rank's batch number `ordinal` (< order->length). */
int64_t leati_order_index(leati_order *order, int64_t ordinal);

#endif
