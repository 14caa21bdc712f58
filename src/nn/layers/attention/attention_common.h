/* SPDX-License-Identifier: Apache-2.0 */
/* What layers of attention share: which pairs of steps count, and the weights that scores become. */
#ifndef LEATI_NN_LAYERS_ATTENTION_ATTENTION_COMMON_H
#define LEATI_NN_LAYERS_ATTENTION_ATTENTION_COMMON_H

#include "nn/layers/common_fields.h"

/* Pairs (query step, key step) that count: 1, others 0, as (1, T, S).  A window of w keeps those less than w steps apart
 * (0: all), causal those of which the query is not the earlier.  LEATI_NONE where all count. */
leati_value leati_attending_steps(leati_graph *g, int64_t queries, int64_t keys, bool causal, int64_t window);

/* The product of two masks that can be broadcast, either of which may be LEATI_NONE. */
leati_value leati_attending_both(leati_graph *g, leati_value a, leati_value b);

/* A mask (N, T) as (N, T, 1) or (N, 1, T); LEATI_NONE stays. */
leati_value leati_attending_of_queries(leati_graph *g, leati_value mask);
leati_value leati_attending_of_keys(leati_graph *g, leati_value mask);

/* scores where the mask is 1, -1e9 elsewhere; a mask of lower rank (N, T, S) gets axes of 1 behind the batch. */
leati_value leati_attending_masked(leati_graph *g, leati_value scores, leati_value mask);

/* While training: a share of the weights is 0. */
leati_value leati_attending_dropped(const leati_lowering *lowering, leati_value weights, double rate,
                                    int64_t seed);

#endif
