/* SPDX-License-Identifier: Apache-2.0 */
/* Masks over pairs of steps, as numbers 1 and 0 that are multiplied, and attention as one op.  Room: nn. */
#include "nn/layers/attention/attention_common.h"

#include "base/memory.h"
#include "base/rng.h"

leati_value leati_attending_steps(leati_graph *g, int64_t queries, int64_t keys, bool causal,
                                  int64_t window) {
    const int64_t dims[] = {1, queries, keys};
    const leati_desc desc = leati_desc_make(LEAT_F32, 3, dims);
    if (!causal && window <= 0) return LEATI_NONE;
    float *pairs = leati_calloc((size_t)leati_desc_count(&desc) + 1, sizeof *pairs);
    if (!pairs) return leati_graph_fail(g, LEAT_ENOMEM, "no memory for a mask of steps");
    for (int64_t q = 0; q < queries; ++q)
        for (int64_t k = 0; k < keys; ++k) {
            int64_t apart = q > k ? q - k : k - q;
            pairs[q * keys + k] = (!causal || k <= q) && (window <= 0 || apart < window) ? 1.0f : 0.0f;
        }
    leati_value mask = leati_graph_constant(g, &desc, pairs);
    leati_free(pairs);
    return mask;
}

leati_value leati_attending_both(leati_graph *g, leati_value a, leati_value b) {
    if (a == LEATI_NONE || b == LEATI_NONE) return a == LEATI_NONE ? b : a;
    return leati_mul(g, a, b);
}

leati_value leati_attending_of_queries(leati_graph *g, leati_value mask) {
    return mask == LEATI_NONE ? mask : leati_expand_last(g, mask);
}

leati_value leati_attending_of_keys(leati_graph *g, leati_value mask) {
    if (mask == LEATI_NONE) return mask;
    const leati_desc desc = *leati_graph_desc(g, mask);
    return leati_reshape(g, mask, 3, (int64_t[]){desc.shape[0], 1, desc.rank > 1 ? desc.shape[1] : 1});
}

static leati_value widened(leati_graph *g, leati_value mask, int rank) {
    const leati_desc desc = *leati_graph_desc(g, mask);
    int64_t dims[LEAT_MAX_RANK];
    if (desc.rank < 1 || desc.rank >= rank) return mask;
    for (int i = 0; i < rank; ++i)
        dims[i] = i == 0 ? desc.shape[0] : i <= rank - desc.rank ? 1 : desc.shape[i - rank + desc.rank];
    return leati_reshape(g, mask, rank, dims);
}

leati_value leati_attending_masked(leati_graph *g, leati_value scores, leati_value mask) {
    if (mask == LEATI_NONE) return scores;
    mask = widened(g, mask, leati_graph_desc(g, scores)->rank);
    return leati_add(g, leati_mul(g, scores, mask), leati_linear(g, mask, 1e9f, -1e9f));
}

static uint64_t stream_of(const leati_lowering *lowering, int64_t seed) {
    return seed == INT64_MIN ? lowering->stream : leati_mix((uint64_t)seed, 0);
}

leati_value leati_attending_dropped(const leati_lowering *lowering, leati_value weights, double rate,
                                    int64_t seed) {
    if (!leati_lowering_in_training(lowering) || !(rate > 0)) return weights;
    return leati_dropout(lowering->graph, weights, (float)rate, 0, stream_of(lowering, seed));
}

/* Joins the axes of the steps of x (N, steps, heads, D). */
static leati_value with_joined_steps(leati_graph *g, leati_value x) {
    const leati_desc desc = *leati_graph_desc(g, x);
    if (desc.rank <= 4) return x;
    return leati_reshape(g, x, 4,
                         (int64_t[]){desc.shape[0], leati_shape_count(desc.rank - 3, desc.shape + 1),
                                     desc.shape[desc.rank - 2], desc.shape[desc.rank - 1]});
}

leati_value leati_attending_as_op(const leati_lowering *lowering, const leati_attending *a) {
    leati_graph *g = lowering->graph;
    const bool drops = leati_lowering_in_training(lowering) && a->rate > 0;
    const leati_attrs attrs = {.attention = {.scale = (float)a->scale,
                                             .rate = drops ? (float)a->rate : 0,
                                             .stream = stream_of(lowering, a->seed),
                                             .training = lowering->mode == LEATI_TRAIN}};
    const leati_desc k = *leati_graph_desc(g, a->k);
    if (!lowering->on_host || k.rank < 4 || leati_desc_count(&k) == 0) return LEATI_NONE;
    leati_value inputs[] = {with_joined_steps(g, a->q), with_joined_steps(g, a->k),
                            with_joined_steps(g, a->v), a->mask};
    if (a->mask != LEATI_NONE) {
        const leati_desc mask = *leati_graph_desc(g, a->mask);
        const int64_t dims[] = {mask.shape[0], mask.shape[1], k.shape[1]};
        if (mask.shape[2] != dims[2]) inputs[3] = leati_broadcast(g, a->mask, 3, dims);
    }
    leati_value outputs[LEATI_MAX_OUTPUTS];
    return leati_graph_node(g, LEATI_OP_ATTENTION, &attrs, 4, inputs, outputs);
}
