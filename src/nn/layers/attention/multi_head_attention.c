/* SPDX-License-Identifier: Apache-2.0 */
/* MultiHeadAttention: projections of query, value and key, softmax(query key' / sqrt(key_dim)) value for each head,
 * and a projection of all heads together.  GroupQueryAttention: several query heads share a key head and a value
 * head.  Inputs: query, value, optionally key, optionally a mask (N, T, S) of the pairs that count.
 * Source: keras.layers.MultiHeadAttention, GroupQueryAttention; Vaswani et al. 2017; Ainslie et al. 2023. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "nn/layers/core/einsum.h"
#include "nn/layers/attention/attention_common.h"
#include "nn/layers/types.h"

typedef struct config {
    int64_t num_heads, key_dim, value_dim; /* value_dim INT64_MIN: key_dim */
    int64_t num_key_value_heads;           /* GroupQueryAttention */
    double dropout;
    bool use_bias, use_gate;
    leati_ints output_shape;   /* empty: the query's last axis */
    leati_ints attention_axes; /* empty: all axes except the first and the last */
    int64_t sliding_window, seed;
    leati_weight_config kernel, bias;
    leati_regularizer activity_regularizer; /* applied to the output of each projection */
    bool use_causal_mask, return_attention_scores, attention_mask; /* arguments of the call */
    bool as_keras3; /* the inputs lose their masks for the layers that follow */
} config;

#define CALL_FIELD(member)                                                                                   \
    {                                                                                                        \
        .key = #member, .kind = LEATI_FIELD_BOOL, .offset = offsetof(config, member), .preset = "false",     \
        .later = true                                                                                        \
    }
#define OPTIONAL_SIZE_FIELD(member)                                                                          \
    {                                                                                                        \
        .key = #member, .kind = LEATI_FIELD_OPTIONAL_INT, .offset = offsetof(config, member),                \
        .preset = "null", .minimum = 1, .limited = true                                                      \
    }
#define COMMON_FIELDS                                                                                        \
    LEATI_FIELD(config, dropout, LEATI_FIELD_FLOAT, "0.0"),                                                  \
        LEATI_FIELD(config, use_bias, LEATI_FIELD_BOOL, "true"),                                             \
        LEATI_FIELD(config, use_gate, LEATI_FIELD_BOOL, "false"), OPTIONAL_SIZE_FIELD(sliding_window),       \
        LEATI_WEIGHT_FIELDS(config, kernel, "kernel", "\"glorot_uniform\""),                                 \
        LEATI_WEIGHT_FIELDS(config, bias, "bias", "\"zeros\""),                                              \
        LEATI_FIELD(config, activity_regularizer, LEATI_FIELD_REGULARIZER, "null"),                          \
        LEATI_FIELD(config, seed, LEATI_FIELD_OPTIONAL_INT, "null"), CALL_FIELD(use_causal_mask),            \
        CALL_FIELD(return_attention_scores), CALL_FIELD(attention_mask)

static const leati_field fields[] = {LEATI_INT_FIELD(config, num_heads, 1, NULL),
                                     LEATI_INT_FIELD(config, key_dim, 1, NULL),
                                     OPTIONAL_SIZE_FIELD(value_dim),
                                     LEATI_SIZES_FIELD(config, output_shape),
                                     LEATI_FIELD(config, attention_axes, LEATI_FIELD_LIST, "null"),
                                     COMMON_FIELDS,
                                     LEATI_AS_KERAS3_FIELD(config),
                                     {.key = NULL}};
static const leati_field group_fields[] = {{.key = "head_dim",
                                            .kind = LEATI_FIELD_INT,
                                            .offset = offsetof(config, key_dim),
                                            .minimum = 1,
                                            .limited = true},
                                           {.key = "num_query_heads",
                                            .kind = LEATI_FIELD_INT,
                                            .offset = offsetof(config, num_heads),
                                            .minimum = 1,
                                            .limited = true},
                                           LEATI_INT_FIELD(config, num_key_value_heads, 1, NULL),
                                           COMMON_FIELDS,
                                           {.key = NULL}};

static bool is_grouped(const leati_layer *layer) {
    return layer->type == &leati_layer_group_query_attention;
}

static leat_status check(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    if (!(c->dropout >= 0 && c->dropout < 1))
        return leati_fail(err, LEAT_EINVAL, "dropout: expected a number from 0 to below 1, received %g",
                          c->dropout);
    if (is_grouped(layer)) {
        c->output_shape.count = c->attention_axes.count = -1;
        c->value_dim = INT64_MIN;
        if (c->num_heads % c->num_key_value_heads != 0)
            return leati_fail(
                err, LEAT_EINVAL,
                "num_query_heads: expected a multiple of num_key_value_heads %lld, received %lld",
                (long long)c->num_key_value_heads, (long long)c->num_heads);
    } else {
        c->num_key_value_heads = c->num_heads;
    }
    c->activity_regularizer.per_sample = true; /* as in current Keras */
    if (c->value_dim == INT64_MIN) c->value_dim = c->key_dim;
    for (int i = 0; i < c->output_shape.count; ++i)
        if (c->output_shape.values[i] < 1)
            return leati_fail(err, LEAT_EINVAL, "output_shape: expected integers above 0, received null");
    return LEAT_OK;
}

/* ---- Shapes ---- */

static bool agree(int64_t a, int64_t b) {
    return a < 0 || b < 0 || a == b;
}

/* Returns the axes of steps as bits.  Errors: LEAT_EINVAL an axis is the batch, the last axis, or out of range. */
static leat_status step_axes(const config *c, int rank, uint32_t *out, leat_error *err) {
    *out = (UINT32_C(1) << (rank - 1)) - 2;
    if (c->attention_axes.count < 1) return LEAT_OK;
    *out = 0;
    for (int i = 0; i < c->attention_axes.count; ++i) {
        int64_t axis = c->attention_axes.values[i];
        if (axis < 0) axis += rank;
        if (axis < 1 || axis >= rank - 1)
            return leati_fail(err, LEAT_EINVAL,
                              "attention_axes: expected axes between the first and the last of %d", rank);
        *out |= UINT32_C(1) << axis;
    }
    return LEAT_OK;
}

static const leati_shape *key_of(int input_count, const leati_shape *inputs) {
    return input_count > 2 ? &inputs[2] : &inputs[1];
}

static leat_status check_inputs(const config *c, int input_count, const leati_shape *inputs, uint32_t axes,
                                leat_error *err) {
    const leati_shape *q = &inputs[0], *v = &inputs[1], *k = key_of(input_count, inputs);
    bool masked = c->use_causal_mask || c->attention_mask || c->sliding_window != INT64_MIN;
    if (c->attention_mask != (input_count == 4))
        return leati_fail(err, LEAT_EINVAL, "attention_mask: expected %s fourth input, received %d inputs",
                          c->attention_mask ? "a" : "no", input_count);
    if (masked && q->rank != 3)
        return leati_shape_unexpected(q,
                                      "a query (N, steps, features), because the mask is over pairs of steps",
                                      err);
    if (v->rank != q->rank || k->rank != q->rank)
        return leati_shape_unexpected(v->rank != q->rank ? v : k, "the same number of axes as the query",
                                      err);
    for (int i = 0; i < q->rank - 1; ++i) {
        if (!agree(v->dims[i], k->dims[i]))
            return leati_shape_unexpected(k, "a key with the value's steps", err);
        if (!(axes >> i & 1u) && !agree(q->dims[i], v->dims[i]))
            return leati_shape_unexpected(v, "a value with the query's batch size and axes", err);
    }
    return LEAT_OK;
}

/* Infers (N, axes that are not steps, heads, the query's steps, the key's steps). */
static leat_status scores_shape(const config *c, const leati_shape *q, const leati_shape *k, uint32_t axes,
                                leati_shape *out, leat_error *err) {
    *out = (leati_shape){0};
    int steps = 0;
    for (int i = 0; i < q->rank - 1; ++i) steps += (int)(axes >> i & 1u);
    if (q->rank + 1 + steps > LEAT_MAX_RANK)
        return leati_shape_unexpected(q, "fewer axes, so that the scores have at most 8 axes", err);
    for (int i = 0; i < q->rank - 1; ++i)
        if (!(axes >> i & 1u)) out->dims[out->rank++] = q->dims[i];
    out->dims[out->rank++] = c->num_heads;
    for (int i = 0; i < q->rank - 1; ++i)
        if (axes >> i & 1u) out->dims[out->rank++] = q->dims[i];
    for (int i = 0; i < k->rank - 1; ++i)
        if (axes >> i & 1u) out->dims[out->rank++] = k->dims[i];
    return LEAT_OK;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    const leati_shape *q = &inputs[0];
    uint32_t axes;
    if (q->rank < 3 || q->rank + 1 > LEAT_MAX_RANK || (is_grouped(layer) && q->rank != 3))
        return leati_shape_unexpected(q, "a query (N, steps, features)", err);
    LEATI_TRY(step_axes(c, q->rank, &axes, err));
    LEATI_TRY(check_inputs(c, input_count, inputs, axes, err));
    LEATI_TRY(scores_shape(c, q, key_of(input_count, inputs), axes, &outputs[1], err));
    outputs[0] = *q;
    if (c->output_shape.count > 0) {
        --outputs[0].rank;
        if (outputs[0].rank + c->output_shape.count > LEAT_MAX_RANK)
            return leati_fail(err, LEAT_ENOTSUP, "output_shape: expected a result of at most 8 axes");
        for (int i = 0; i < c->output_shape.count; ++i)
            outputs[0].dims[outputs[0].rank++] = c->output_shape.values[i];
    }
    *output_count = c->return_attention_scores ? 2 : 1;
    return LEAT_OK;
}

/* ---- Weights ---- */

typedef enum projection { QUERY, KEY, GATE, VALUE, OUTPUT, PROJECTIONS } projection;
static const char *const projection_names[] = {"query", "key", "gate", "value", "attention_output"};
static const char *const projection_groups[] = {"query_dense", "key_dense", "gate_dense", "value_dense",
                                                "output_dense"};

/* Returns the index of the first weight of a projection. */
static int first_weight(const config *c, projection projected) {
    int before = (int)projected - (projected > GATE && !c->use_gate ? 1 : 0);
    return before * (c->use_bias ? 2 : 1);
}

static void weight_path(const leati_layer *layer, int index, char *out, size_t bytes) {
    const config *c = layer->config;
    int projected = QUERY;
    for (int i = QUERY; i < PROJECTIONS; ++i)
        if ((i != GATE || c->use_gate) && first_weight(c, (projection)i) <= index) projected = i;
    const char *hidden = projected == GATE || is_grouped(layer) ? "_" : "";
    snprintf(out, bytes, "%s%s/vars/%d", hidden, projection_groups[projected],
             index - first_weight(c, (projection)projected));
}

static leat_status add(leati_layer *layer, projection projected, int rank, const int64_t *dims, int bias_from,
                       leat_error *err) {
    const config *c = layer->config;
    char name[LEAT_NAME_BYTES];
    snprintf(name, sizeof name, "%s/kernel", projection_names[projected]);
    LEATI_TRY(leati_weight_config_add(layer, name, &c->kernel, rank, dims, err));
    snprintf(name, sizeof name, "%s/bias", projection_names[projected]);
    return c->use_bias
               ? leati_weight_config_add(layer, name, &c->bias, rank - bias_from, dims + bias_from, err)
               : LEAT_OK;
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const config *c = layer->config;
    const leati_shape *q = &inputs[0], *v = &inputs[1], *k = key_of(input_count, inputs);
    int64_t in_q = q->dims[q->rank - 1], in_k = k->dims[k->rank - 1], in_v = v->dims[v->rank - 1];
    int64_t out[LEAT_MAX_RANK + 2] = {c->num_heads, c->value_dim, in_q};
    int rank = 3;
    if (c->output_shape.count > 0) {
        rank = 2 + c->output_shape.count;
        memcpy(out + 2, c->output_shape.values, (size_t)c->output_shape.count * sizeof out[0]);
    }
    if (rank > LEAT_MAX_RANK) return leati_fail(err, LEAT_ENOTSUP, "output_shape: expected at most 6 axes");
    LEATI_TRY(add(layer, QUERY, 3, (int64_t[]){in_q, c->num_heads, c->key_dim}, 1, err));
    LEATI_TRY(add(layer, KEY, 3, (int64_t[]){in_k, c->num_key_value_heads, c->key_dim}, 1, err));
    if (c->use_gate) LEATI_TRY(add(layer, GATE, 3, (int64_t[]){in_q, c->num_heads, c->value_dim}, 1, err));
    LEATI_TRY(add(layer, VALUE, 3, (int64_t[]){in_v, c->num_key_value_heads, c->value_dim}, 1, err));
    return add(layer, OUTPUT, rank, out, 2, err);
}

/* ---- Ops ---- */

/* Multiplies the last `inner` axes of x by the first `inner` axes of the kernel, as one matrix product, and adds the
 * bias. */
static leati_value project(const leati_layer *layer, leati_lowering *lowering, leati_value x,
                           projection projected, int inner) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    int at = first_weight(c, projected);
    leati_value kernel = leati_layer_weight(layer, lowering, at);
    leati_value bias = c->use_bias ? leati_layer_weight(layer, lowering, at + 1) : LEATI_NONE;
    const leati_desc in = *leati_graph_desc(g, x), of = *leati_graph_desc(g, kernel);
    int64_t rows = 1, depth = 1, columns = 1, dims[2 * LEAT_MAX_RANK] = {0};
    int rank = 0;
    for (int i = 0; i < in.rank - inner; ++i) rows *= dims[rank++] = in.shape[i];
    for (int i = 0; i < inner; ++i) depth *= of.shape[i];
    for (int i = inner; i < of.rank; ++i) columns *= dims[rank++] = of.shape[i];
    leati_value flat = leati_reshape(g, x, 2, (int64_t[]){rows, depth});
    kernel = leati_reshape(g, kernel, 2, (int64_t[]){depth, columns});
    if (bias != LEATI_NONE) bias = leati_reshape(g, bias, 1, &columns);
    leati_value y = leati_reshape(g, leati_matmul(g, flat, false, kernel, false, bias), rank, dims);
    if (projected == GATE) y = leati_function_of(g, y, LEATI_FN_SIGMOID);
    leati_lowering_add_activity(lowering, &c->activity_regularizer, 1, &y);
    return y;
}

/* Einsum equations.  An axis of the query, or of both query and key, is a lower-case letter; a step axis of the key
 * is a capital; 'r' counts the query heads that share a key head. */
typedef struct equations {
    char scores[32], values[32];
} equations;

static void append(char text[12], char name) {
    size_t length = strlen(text);
    text[length] = name;
    text[length + 1] = '\0';
}

static void make_equations(int rank, uint32_t axes, bool grouped, equations *out) {
    char q[12] = "", k[12] = "", shared[12] = "", query_steps[12] = "", key_steps[12] = "";
    for (int i = 0; i < rank - 1; ++i) {
        bool step = axes >> i & 1u;
        append(q, (char)('a' + i));
        append(k, (char)((step ? 'A' : 'a') + i));
        append(step ? query_steps : shared, (char)('a' + i));
        if (step) append(key_steps, (char)('A' + i));
    }
    snprintf(out->scores, sizeof out->scores, "%sn%sz,%snz->%sn%s%s%s", q, grouped ? "r" : "", k, shared,
             grouped ? "r" : "", query_steps, key_steps);
    snprintf(out->values, sizeof out->values, "%sn%s%s%s,%snz->%sn%sz", shared, grouped ? "r" : "",
             query_steps, key_steps, k, q, grouped ? "r" : "");
}

/* Softmax over all of the key's steps, which are the last axes. */
static leati_value softmax_of_steps(leati_graph *g, leati_value scores, int steps) {
    int rank = leati_graph_desc(g, scores)->rank;
    return leati_softmax_over(g, scores,
                              rank < steps ? 0 : (UINT32_C(1) << rank) - (UINT32_C(1) << (rank - steps)));
}

static leati_value mask_of(const config *c, const leati_lowering *lowering, int input_count,
                           const leati_value *inputs) {
    leati_graph *g = lowering->graph;
    const leati_desc *q = leati_graph_desc(g, inputs[0]), *v = leati_graph_desc(g, inputs[1]);
    int64_t window = c->sliding_window == INT64_MIN ? 0 : c->sliding_window;
    leati_value mask = leati_attending_steps(g, q->shape[1], v->shape[1], c->use_causal_mask, window);
    if (q->rank != 3) return mask;
    mask = leati_attending_both(g, mask, leati_attending_of_queries(g, lowering->input_masks[0]));
    mask = leati_attending_both(g, mask, leati_attending_of_keys(g, lowering->input_masks[1]));
    if (input_count > 2 && inputs[2] != inputs[1])
        mask = leati_attending_both(g, mask, leati_attending_of_keys(g, lowering->input_masks[2]));
    if (input_count < 4) return mask;
    leati_value pairs = inputs[3];
    if (leati_graph_desc(g, pairs)->dtype != LEAT_F32) pairs = leati_cast(g, pairs, LEAT_F32, 1);
    leati_value none = leati_binary_of(g, LEATI_EQUAL, pairs, leati_scalar(g, 0)); /* 0: does not count */
    return leati_attending_both(g, leati_linear(g, none, -1, 1), mask);
}

/* Reshapes the heads of x (..., heads, D) to (..., key heads, query heads per key head, D). */
static leati_value grouped(leati_graph *g, leati_value x, const config *c) {
    const leati_desc desc = *leati_graph_desc(g, x);
    if (desc.rank != 4) return x;
    return leati_reshape(g, x, 5,
                         (int64_t[]){desc.shape[0], desc.shape[1], c->num_key_value_heads,
                                     desc.shape[2] / c->num_key_value_heads, desc.shape[3]});
}

/* Attention as a chain of ops.  Returns y; *weights is what the layer may return. */
static leati_value attend(const leati_layer *layer, const leati_lowering *lowering, const leati_attending *a,
                          int rank, uint32_t axes, leati_value *weights) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    equations e;
    int steps = 0;
    for (int i = 0; i < rank; ++i) steps += (int)(axes >> i & 1u);
    make_equations(rank, axes, is_grouped(layer), &e);
    leati_value q = leati_linear(g, a->q, (float)a->scale, 0);
    if (is_grouped(layer)) q = grouped(g, q, c);
    leati_value scores = leati_attending_masked(g, leati_einsum(g, e.scores, q, a->k), a->mask);
    *weights = softmax_of_steps(g, scores, steps);
    return leati_einsum(g, e.values, leati_attending_dropped(lowering, *weights, a->rate, a->seed), a->v);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    const leati_desc in = *leati_graph_desc(g, inputs[0]);
    uint32_t axes = 0;
    leati_value weights = LEATI_NONE, y = LEATI_NONE;
    lowering->takes_masks = c->as_keras3;
    if (in.rank < 3 || in.rank + 1 > LEAT_MAX_RANK || step_axes(c, in.rank, &axes, NULL) != LEAT_OK) {
        outputs[0] = LEATI_INVALID;
        return;
    }
    leati_attending a = {.scale = 1 / sqrt((double)c->key_dim), .rate = c->dropout, .seed = c->seed};
    a.q = project(layer, lowering, inputs[0], QUERY, 1);
    a.k = project(layer, lowering, inputs[input_count > 2 ? 2 : 1], KEY, 1);
    leati_value gate = c->use_gate ? project(layer, lowering, inputs[0], GATE, 1) : LEATI_NONE;
    a.v = project(layer, lowering, inputs[1], VALUE, 1);
    a.mask = mask_of(c, lowering, input_count, inputs);
    const bool all = axes == (UINT32_C(1) << (in.rank - 1)) - 2; /* every axis between is one of steps */
    if (all && !c->return_attention_scores) y = leati_attending_as_op(lowering, &a);
    if (y == LEATI_NONE) y = attend(layer, lowering, &a, in.rank, axes, &weights);
    leati_desc heads = *leati_graph_desc(g, a.q);
    heads.shape[heads.rank - 1] = c->value_dim;
    y = leati_reshape(g, y, heads.rank, heads.shape);
    if (gate != LEATI_NONE) y = leati_mul(g, y, gate);
    outputs[0] = project(layer, lowering, y, OUTPUT, 2);
    if (c->return_attention_scores) {
        const leati_desc *w = leati_graph_desc(g, weights);
        outputs[1] = is_grouped(layer) && w->rank == 5
                         ? leati_reshape(g, weights, 4,
                                         (int64_t[]){w->shape[0], c->num_heads, w->shape[3], w->shape[4]})
                         : weights;
    }
    /* GroupQueryAttention applies the regularizer to its outputs as well. */
    if (is_grouped(layer))
        leati_lowering_add_activity(lowering, &c->activity_regularizer, c->return_attention_scores ? 2 : 1,
                                    outputs);
    lowering->output_masks[0] = lowering->input_masks[0];
}

/* Members of leati_layer_type that all types of this file have in common. */
#define COMMON_MEMBERS                                                                                       \
    .min_inputs = 2, .max_inputs = 4, .masking = LEATI_MASK_COMPUTED, .check = check, .infer = infer,        \
    .build = build, .weight_path = weight_path, .lower = lower

LEATI_LAYER_TYPE(multi_head_attention, "MultiHeadAttention", "multi_head_attention", config, fields,
                 COMMON_MEMBERS);
LEATI_LAYER_TYPE(group_query_attention, "GroupQueryAttention", "grouped_query_attention", config,
                 group_fields, COMMON_MEMBERS);
