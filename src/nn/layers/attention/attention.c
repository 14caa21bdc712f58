/* SPDX-License-Identifier: Apache-2.0 */
/* Attention and AdditiveAttention: softmax(scores) value.  A score of a query step (N, T, F) and a key step (N, S, F)
 * is their inner product, or for AdditiveAttention the sum of tanh(query + key), weighted feature by feature.
 * Inputs: query, value and optionally key.
 * Source: keras.layers.Attention, AdditiveAttention; Luong et al. 2015; Bahdanau et al. 2014. */
#include "base/error.h"
#include "nn/layers/attention/attention_common.h"
#include "nn/layers/types.h"

enum { DOT, CONCAT };
static const char *const score_modes[] = {"dot", "concat", NULL};

typedef struct config {
    bool use_scale;
    int32_t score_mode;
    double dropout;
    int64_t seed;
    bool use_causal_mask, return_attention_scores; /* arguments of the call */
    leati_initializer *scale_initializer;          /* of AdditiveAttention; Keras has no key for it */
} config;

#define CALL_FIELD(member)                                                                                   \
    {                                                                                                        \
        .key = #member, .kind = LEATI_FIELD_BOOL, .offset = offsetof(config, member), .preset = "false",     \
        .later = true                                                                                        \
    }
#define COMMON_FIELDS                                                                                        \
    LEATI_FIELD(config, dropout, LEATI_FIELD_FLOAT, "0.0"),                                                  \
        LEATI_FIELD(config, seed, LEATI_FIELD_OPTIONAL_INT, "null"), CALL_FIELD(use_causal_mask),            \
        CALL_FIELD(return_attention_scores)
static const leati_field fields[] = {LEATI_FIELD(config, use_scale, LEATI_FIELD_BOOL, "false"),
                                     LEATI_CHOICE_FIELD(config, score_mode, score_modes, "\"dot\""),
                                     COMMON_FIELDS,
                                     {.key = NULL}};
static const leati_field additive_fields[] = {LEATI_FIELD(config, use_scale, LEATI_FIELD_BOOL, "true"),
                                              COMMON_FIELDS,
                                              {.key = "scale_initializer",
                                               .kind = LEATI_FIELD_INITIALIZER,
                                               .offset = offsetof(config, scale_initializer),
                                               .preset = "\"glorot_uniform\"",
                                               .hidden = true},
                                              {.key = NULL}};

static bool is_additive(const leati_layer *layer) {
    return layer->type == &leati_layer_additive_attention;
}

static leat_status check(leati_layer *layer, leat_error *err) {
    const config *c = layer->config;
    if (c->dropout >= 0 && c->dropout < 1) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "dropout: expected a number from 0 to below 1, received %g",
                      c->dropout);
}

static bool agree(int64_t a, int64_t b) {
    return a < 0 || b < 0 || a == b;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    const leati_shape *q = &inputs[0], *v = &inputs[1], *k = &inputs[input_count - 1];
    for (int i = 0; i < input_count; ++i)
        if (inputs[i].rank != 3)
            return leati_shape_unexpected(&inputs[i], "inputs (N, steps, features)", err);
    if (!agree(q->dims[2], k->dims[2]))
        return leati_shape_unexpected(k, "a key with the query's features", err);
    if (!agree(v->dims[1], k->dims[1])) return leati_shape_unexpected(k, "a key with the value's steps", err);
    outputs[0] = *q;
    outputs[0].dims[2] = v->dims[2];
    outputs[1] = *q;
    outputs[1].dims[2] = k->dims[1];
    *output_count = c->return_attention_scores ? 2 : 1;
    return LEAT_OK;
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const config *c = layer->config;
    leati_weight_spec spec = {.name = "scale", .initializer = &leati_ones};
    (void)input_count;
    if (is_additive(layer)) {
        spec.initializer = c->scale_initializer;
        spec.rank = 1;
        spec.dims[0] = inputs[0].dims[2];
    }
    if (c->use_scale) LEATI_TRY(leati_layer_add_weight(layer, &spec, err));
    spec.name = "concat_score_weight";
    return c->score_mode == CONCAT ? leati_layer_add_weight(layer, &spec, err) : LEAT_OK;
}

/* Returns tanh of the sum of each query step and each key step: (N, T, S, F). */
static leati_value sums(leati_graph *g, leati_value q, leati_value k, leati_value scale) {
    const leati_desc dq = *leati_graph_desc(g, q), dk = *leati_graph_desc(g, k);
    q = leati_reshape(g, q, 4, (int64_t[]){dq.shape[0], dq.shape[1], 1, dq.shape[2]});
    k = leati_reshape(g, k, 4, (int64_t[]){dk.shape[0], 1, dk.shape[1], dk.shape[2]});
    leati_value sum = leati_add(g, q, k);
    return leati_function_of(g, scale == LEATI_NONE ? sum : leati_mul(g, sum, scale), LEATI_FN_TANH);
}

static leati_value scores_of(const leati_layer *layer, const leati_lowering *lowering, leati_value q,
                             leati_value k) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    leati_value scale = c->use_scale ? leati_layer_weight(layer, lowering, 0) : LEATI_NONE;
    if (is_additive(layer)) {
        leati_value y = sums(g, q, k, LEATI_NONE);
        return leati_reduce_last(g, LEATI_REDUCE_SUM, scale == LEATI_NONE ? y : leati_mul(g, y, scale),
                                 false);
    }
    if (c->score_mode == CONCAT)
        return leati_mul(g, leati_reduce_last(g, LEATI_REDUCE_SUM, sums(g, q, k, scale), false),
                         leati_layer_weight(layer, lowering, c->use_scale));
    leati_value scores = leati_matmul(g, q, false, k, true, LEATI_NONE);
    return scale == LEATI_NONE ? scores : leati_mul(g, scores, scale);
}

/* Returns x (N, steps, F) as one head. */
static leati_value as_head(leati_graph *g, leati_value x) {
    const leati_desc desc = *leati_graph_desc(g, x);
    return leati_reshape(g, x, 4, (int64_t[]){desc.shape[0], desc.shape[1], 1, desc.shape[2]});
}

/* Returns Attention of inner products as one op, or LEATI_NONE. */
static leati_value attend_at_once(const leati_layer *layer, const leati_lowering *lowering, leati_value q,
                                  leati_value k, leati_value v, leati_value mask) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    const int64_t steps = leati_graph_desc(g, q)->shape[1], width = leati_graph_desc(g, v)->shape[2];
    if (!lowering->on_host || is_additive(layer) || c->score_mode == CONCAT || c->return_attention_scores)
        return LEATI_NONE;
    if (c->use_scale) q = leati_mul(g, q, leati_layer_weight(layer, lowering, 0));
    const leati_attending a = {as_head(g, q), as_head(g, k), as_head(g, v), mask, 1, c->dropout, c->seed};
    leati_value y = leati_attending_as_op(lowering, &a);
    return y == LEATI_NONE
               ? y
               : leati_reshape(g, y, 3, (int64_t[]){leati_graph_desc(g, q)->shape[0], steps, width});
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    leati_value q = inputs[0], v = inputs[1], k = inputs[input_count - 1];
    int64_t queries = leati_graph_desc(g, q)->shape[1], keys = leati_graph_desc(g, k)->shape[1];
    leati_value mask = leati_attending_both(g, leati_attending_of_keys(g, lowering->input_masks[1]),
                                            leati_attending_steps(g, queries, keys, c->use_causal_mask, 0));
    leati_value weights = LEATI_NONE, y = attend_at_once(layer, lowering, q, k, v, mask);
    if (y == LEATI_NONE) {
        leati_value scores = leati_attending_masked(g, scores_of(layer, lowering, q, k), mask);
        weights = leati_softmax_of(g, scores, -1);
        weights = leati_attending_dropped(lowering, weights, c->dropout, c->seed);
        y = leati_matmul(g, weights, false, v, false, LEATI_NONE);
    }
    if (lowering->input_masks[0] != LEATI_NONE)
        y = leati_mul(g, y, leati_attending_of_queries(g, lowering->input_masks[0]));
    outputs[0] = y;
    if (c->return_attention_scores) outputs[1] = weights;
    lowering->output_masks[0] = lowering->input_masks[0];
}

/* Members of leati_layer_type that all types of this file have in common. */
#define COMMON_MEMBERS                                                                                       \
    .min_inputs = 2, .max_inputs = 3, .masking = LEATI_MASK_COMPUTED, .check = check, .infer = infer,        \
    .build = build, .lower = lower

LEATI_LAYER_TYPE(attention, "Attention", "attention", config, fields, COMMON_MEMBERS);
LEATI_LAYER_TYPE(additive_attention, "AdditiveAttention", "additive_attention", config, additive_fields,
                 COMMON_MEMBERS);
