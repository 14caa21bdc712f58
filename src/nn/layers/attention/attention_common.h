/* SPDX-License-Identifier: Apache-2.0 */
/* Code that the attention layers share: masks over pairs of steps, the weights computed from the scores, and attention
 * as one op. */
#ifndef LEATI_NN_LAYERS_ATTENTION_ATTENTION_COMMON_H
#define LEATI_NN_LAYERS_ATTENTION_ATTENTION_COMMON_H

#include "nn/layers/common_fields.h"

/* Returns a mask over pairs (query step, key step), (1, T, S): 1 for a pair that counts, 0 for another pair.  A
 * window of w keeps the pairs that are less than w steps apart (0: all); `causal` keeps those whose key is not later
 * than the query.  LEATI_NONE: all pairs count. */
leati_value leati_attending_steps(leati_graph *g, int64_t queries, int64_t keys, bool causal, int64_t window);

/* Returns the product of two masks, broadcast; either mask may be LEATI_NONE. */
leati_value leati_attending_both(leati_graph *g, leati_value a, leati_value b);

/* Reshape a mask (N, T) to (N, T, 1) and to (N, 1, T); LEATI_NONE stays LEATI_NONE. */
leati_value leati_attending_of_queries(leati_graph *g, leati_value mask);
leati_value leati_attending_of_keys(leati_graph *g, leati_value mask);

/* Returns the scores where the mask is 1, and -1e9 where it is 0.  A mask of lower rank, (N, T, S),
 * gets axes of length 1 after the batch. */
leati_value leati_attending_masked(leati_graph *g, leati_value scores, leati_value mask);

/* In training, sets a share of the weights to 0, and scales the others. */
leati_value leati_attending_dropped(const leati_lowering *lowering, leati_value weights, double rate,
                                    int64_t seed);

/* Attention of several heads to what was projected. */
typedef struct leati_attending {
    leati_value q, k, v; /* (N, steps, heads, D), (N, steps, key heads, D), (N, steps, key heads, V) */
    leati_value mask;    /* (N or 1, T or 1, S or 1), or LEATI_NONE */
    double scale, rate;
    int64_t seed; /* of dropout; INT64_MIN: the stream of the call */
} leati_attending;

/* Returns dropout(softmax(scale q k')) v as one op, (N, T, heads, V), where T is the number of q's steps, which may be
 * on several axes.  Returns LEATI_NONE, without a node, if the plan may not have the op. */
leati_value leati_attending_as_op(const leati_lowering *lowering, const leati_attending *a);

#endif
