/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of ATTENTION, for its shape rule and its kernels.  Room: engine. */
#ifndef LEATI_ENGINE_OP_SEMANTICS_ATTENTION_H
#define LEATI_ENGINE_OP_SEMANTICS_ATTENTION_H

#include "engine/op_semantics/op.h"

/* The inputs and outputs of ATTENTION.  ATTENTION_BWD has the inputs of ATTENTION in front. */
enum {
    LEATI_ATTENTION_Q,
    LEATI_ATTENTION_K,
    LEATI_ATTENTION_V,
    LEATI_ATTENTION_MASK,
    LEATI_ATTENTION_INPUTS
};
enum { LEATI_ATTENTION_Y, LEATI_ATTENTION_LOG_SUMS };
enum {
    LEATI_ATTENTION_BWD_Y = LEATI_ATTENTION_INPUTS,
    LEATI_ATTENTION_BWD_LOG_SUMS,
    LEATI_ATTENTION_BWD_DIFF_Y,
    LEATI_ATTENTION_BWD_INPUTS
};

/* The score of a pair of steps that does not count.  log S is less than half a unit in its last place, so that the
 * log_sum of a row in which no pair counts is this number: the backward pass knows such rows, whose weights are 1 / S,
 * by it. */
#define LEATI_ATTENTION_MASKED -1e9f

typedef struct leati_attention_sizes {
    int64_t batch, queries, keys, heads, key_heads; /* N, T, S, H, G */
    int64_t depth, width;                           /* D, V: of a head of q and k, and of v */
    /* Elements from the mask of a sample or of a query to that of the next one; 0: they share it. */
    int64_t mask_sample, mask_query;
} leati_attention_sizes;

/* in: the inputs of ATTENTION or of ATTENTION_BWD, of which the mask may be absent. */
static inline leati_attention_sizes leati_attention_sizes_of(const leati_desc *in) {
    const int64_t *q = in[LEATI_ATTENTION_Q].shape, *v = in[LEATI_ATTENTION_V].shape;
    const leati_desc *mask = &in[LEATI_ATTENTION_MASK];
    leati_attention_sizes s = {.batch = q[0],
                               .queries = q[1],
                               .keys = v[1],
                               .heads = q[2],
                               .key_heads = v[2],
                               .depth = q[3],
                               .width = v[3]};
    if (mask->rank < 0) return s;
    if (mask->shape[0] > 1) s.mask_sample = mask->shape[1] * mask->shape[2];
    if (mask->shape[1] > 1) s.mask_query = mask->shape[2];
    return s;
}

#endif
