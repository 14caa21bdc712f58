/* SPDX-License-Identifier: Apache-2.0 */
/* In which order a pass visits its batches, and a batch its samples: functions of (seed, pass), for one rank of several.
 *
 * A window permutes runs of `window` neighbours; where the runs begin is drawn anew for each pass, so that samples near a
 * border part, too. */
#ifndef LEATI_FEED_ORDER_ORDER_H
#define LEATI_FEED_ORDER_ORDER_H

#include "feed/order/shuffle.h"
#include "leat/feed.h"

/* What to permute, and how: the part that does not change. */
typedef struct leati_order_rule {
    leat_shuffle shuffle; /* never LEAT_SHUFFLE_AUTO */
    bool by_samples;      /* the permutation is one of samples; batches then come in their order */
    uint64_t window;
    uint64_t seed;
} leati_order_rule;

/* Resolves the options for this sequence.  Errors: LEAT_EINVAL, LEAT_ENOTSUP. */
leat_status leati_order_rule_init(leati_order_rule *rule, const leat_feed_options *options,
                                  const leat_sequence *sequence, leat_error *err);

/* One pass's permutation of `length` things. */
typedef struct leati_permutation {
    leat_shuffle shuffle;
    uint64_t key, length, window, offset;
    uint64_t run, run_start; /* which run of the window `whole` is for, and where it begins */
    leati_shuffle whole;
} leati_permutation;

void leati_permutation_init(leati_permutation *permutation, const leati_order_rule *rule, int64_t pass,
                            int64_t length);
/* Where position (< length) goes. */
int64_t leati_permutation_at(leati_permutation *permutation, int64_t position);

/* The same for `count` positions from `first` on. */
void leati_permutation_range(leati_permutation *permutation, int64_t first, int64_t count, int64_t *out);

/* The number in the data of the sample at this place of a batch of `batch_size`; samples: those of the pass where they are
 * shuffled, otherwise 0. */
int64_t leati_order_sample(const leati_order_rule *rule, int64_t pass, int64_t samples, int64_t batch_size,
                           int64_t batch, int64_t place);

/* The batches of one rank in one pass. */
typedef struct leati_order {
    int rank, world;
    leat_remainder remainder;
    int64_t total;  /* batches of the pass */
    int64_t length; /* of them, this rank's */
    leati_permutation batches;
} leati_order;

/* Starts a pass of `total` batches (>= 1, or LEAT_LENGTH_INFINITE). */
void leati_order_start(leati_order *order, const leati_order_rule *rule, int64_t pass, int64_t total);

/* The index of this rank's batch number `ordinal` (< order->length). */
int64_t leati_order_index(leati_order *order, int64_t ordinal);

#endif
