/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNormalization and GroupNormalization: gamma (x - mean) / sqrt(variance + epsilon) + beta, with the moments of
 * each sample over some axes, or over groups of channels.  UnitNormalization: x / |x|.
 * Source: current Keras; Ba et al. 2016; Wu and He 2018. */
#include "base/error.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

typedef struct config {
    leati_ints axis; /* negative: from the end */
    int64_t groups;
    double epsilon;
    bool center, scale, rms_scaling;
    leati_weight_config beta, gamma;
} config;

#define AXIS_FIELD(preset_)                                                                                  \
    { .key = "axis", .kind = LEATI_FIELD_NUMBERS, .offset = offsetof(config, axis), .preset = preset_ }
#define AFFINE_FIELDS                                                                                        \
    LEATI_FIELD(config, epsilon, LEATI_FIELD_FLOAT, "0.001"),                                                \
        LEATI_FIELD(config, center, LEATI_FIELD_BOOL, "true"),                                               \
        LEATI_FIELD(config, scale, LEATI_FIELD_BOOL, "true"),                                                \
        LEATI_WEIGHT_FIELDS(config, beta, "beta", "\"zeros\""),                                              \
        LEATI_WEIGHT_FIELDS(config, gamma, "gamma", "\"ones\"")
static const leati_field layer_fields[] = {AXIS_FIELD("-1"),
                                           AFFINE_FIELDS,
                                           LEATI_FIELD(config, rms_scaling, LEATI_FIELD_BOOL, "false"),
                                           {.key = NULL}};
static const leati_field group_fields[] = {LEATI_INT_FIELD(config, groups, -1, "32"),
                                           AXIS_FIELD("-1"),
                                           AFFINE_FIELDS,
                                           {.key = NULL}};
static const leati_field unit_fields[] = {AXIS_FIELD("-1"), {.key = NULL}};

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    uint32_t axes;
    LEATI_TRY(leati_axes_find(&c->axis, &inputs[0], 1, &axes, err));
    return leati_infer_same(layer, input_count, inputs, outputs, output_count, err);
}

static leat_status add_affine(leati_layer *layer, int rank, const int64_t *dims, leat_error *err) {
    const config *c = layer->config;
    if (c->scale || c->rms_scaling)
        LEATI_TRY(leati_weight_config_add(layer, "gamma", &c->gamma, rank, dims, err));
    if (!c->center || c->rms_scaling) return LEAT_OK;
    return leati_weight_config_add(layer, "beta", &c->beta, rank, dims, err);
}

static leat_status build_layer(leati_layer *layer, int input_count, const leati_shape *inputs,
                               leat_error *err) {
    const config *c = layer->config;
    uint32_t axes;
    int64_t dims[LEAT_MAX_RANK];
    int rank = 0;
    (void)input_count;
    LEATI_TRY(leati_axes_find(&c->axis, &inputs[0], 1, &axes, err));
    for (int i = 0; i < inputs[0].rank; ++i)
        if (axes >> i & 1u) dims[rank++] = inputs[0].dims[i];
    return add_affine(layer, rank, dims, err);
}

/* Returns the mean over axes, which become axes of length 1. */
static leati_value mean_over(leati_graph *g, leati_value x, uint32_t axes) {
    return axes ? leati_reduce_of(g, LEATI_REDUCE_MEAN, x, axes, true) : x;
}

/* Returns (x - mean) / sqrt(variance + epsilon); with rms_scaling, x / sqrt(variance + epsilon). */
static leati_value standardised(leati_graph *g, leati_value x, uint32_t axes, const config *c) {
    leati_eltwise power = {.function = LEATI_FN_POW, .a = -0.5f};
    leati_value centred = leati_sub(g, x, mean_over(g, x, axes));
    leati_value variance = mean_over(g, leati_function_of(g, centred, LEATI_FN_SQUARE), axes);
    leati_value inverse = leati_eltwise_of(g, leati_linear(g, variance, 1, (float)c->epsilon), power);
    return leati_mul(g, c->rms_scaling ? x : centred, inverse);
}

/* Returns gamma x + beta; gamma and beta are reshaped to dims. */
static leati_value affine(const leati_layer *layer, const leati_lowering *lowering, leati_value x, int rank,
                          const int64_t *dims) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    int next = 0;
    if (c->scale || c->rms_scaling)
        x = leati_mul(g, x, leati_reshape(g, leati_layer_weight(layer, lowering, next++), rank, dims));
    if (c->center && !c->rms_scaling)
        x = leati_add(g, x, leati_reshape(g, leati_layer_weight(layer, lowering, next), rank, dims));
    return x;
}

/* Normalizes by one op: gamma and beta apply to the innermost `channels` elements, which form `groups` groups. */
static leati_value normalised(const leati_layer *layer, const leati_lowering *lowering, leati_value x,
                              int samples, int64_t channels, int64_t groups) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    leati_attrs attrs = {.group_norm = {samples, (float)c->epsilon, channels, groups}};
    leati_value inputs[] = {x, LEATI_NONE, LEATI_NONE};
    int next = 0;
    if (c->scale) inputs[1] = leati_reshape(g, leati_layer_weight(layer, lowering, next++), 1, &channels);
    if (c->center) inputs[2] = leati_reshape(g, leati_layer_weight(layer, lowering, next), 1, &channels);
    return leati_graph_node(g, LEATI_OP_GROUP_NORM, &attrs, 3, inputs, NULL);
}

static void lower_layer(const leati_layer *layer, leati_lowering *lowering, int input_count,
                        const leati_value *inputs, leati_value *outputs) {
    const leati_desc desc = *leati_graph_desc(lowering->graph, inputs[0]);
    uint32_t axes = leati_axes_of(&((const config *)layer->config)->axis, desc.rank);
    int64_t dims[LEAT_MAX_RANK];
    (void)input_count;
    for (int i = 0; i < desc.rank; ++i) dims[i] = axes >> i & 1u ? desc.shape[i] : 1;
    int samples = 0;
    while (samples < desc.rank && !(axes >> samples & 1u)) ++samples;
    bool innermost = axes >> samples == (UINT32_C(1) << (desc.rank - samples)) - 1;
    if (innermost && leati_desc_count(&desc) > 0 && !((const config *)layer->config)->rms_scaling) {
        int64_t channels = 1;
        for (int i = samples; i < desc.rank; ++i) channels *= desc.shape[i];
        outputs[0] = normalised(layer, lowering, inputs[0], samples, channels, 1);
        return;
    }
    leati_value x = standardised(lowering->graph, inputs[0], axes, layer->config);
    outputs[0] = affine(layer, lowering, x, desc.rank, dims);
}

/* ---- Groups ---- */

static leat_status check_group(leati_layer *layer, leat_error *err) {
    const config *c = layer->config;
    if (c->axis.count != 1) return leati_fail(err, LEAT_EINVAL, "axis: expected one number");
    if (c->groups == 0) return leati_fail(err, LEAT_EINVAL, "groups: expected at least 1, or -1, received 0");
    return LEAT_OK;
}

static int channel_axis(const config *c, int rank) {
    return (int)(c->axis.values[0] < 0 ? c->axis.values[0] + rank : c->axis.values[0]);
}

static leat_status build_group(leati_layer *layer, int input_count, const leati_shape *inputs,
                               leat_error *err) {
    const config *c = layer->config;
    int64_t channels = inputs[0].dims[channel_axis(c, inputs[0].rank)];
    (void)input_count;
    if (channels < 1 || inputs[0].rank >= LEAT_MAX_RANK || (c->groups > 0 && channels % c->groups != 0))
        return leati_shape_unexpected(&inputs[0], "an input whose axis is known, and a multiple of groups",
                                      err);
    return add_affine(layer, 1, &channels, err);
}

static void lower_group(const leati_layer *layer, leati_lowering *lowering, int input_count,
                        const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    const leati_desc desc = *leati_graph_desc(g, inputs[0]);
    int axis = channel_axis(c, desc.rank), rank = desc.rank + 1;
    int64_t split[LEAT_MAX_RANK + 1] = {0}, dims[LEAT_MAX_RANK + 1];
    (void)input_count;
    outputs[0] = inputs[0];
    if (axis < 1 || axis >= desc.rank) return; /* a graph that has failed has no shapes */
    int64_t groups = c->groups < 0 ? desc.shape[axis] : c->groups;
    if (axis == desc.rank - 1 && leati_desc_count(&desc) > 0) {
        outputs[0] = normalised(layer, lowering, inputs[0], 1, desc.shape[axis], groups);
        return;
    }
    for (int i = 0; i < desc.rank; ++i) split[i <= axis ? i : i + 1] = desc.shape[i];
    split[axis] = groups;
    split[axis + 1] = desc.shape[axis] / groups;
    for (int i = 0; i < rank; ++i) dims[i] = i == axis || i == axis + 1 ? split[i] : 1;
    uint32_t axes = ((UINT32_C(1) << rank) - 1) & ~(UINT32_C(1) | UINT32_C(1) << axis);
    leati_value x = standardised(g, leati_reshape(g, inputs[0], rank, split), axes, c);
    outputs[0] = leati_reshape(g, affine(layer, lowering, x, rank, dims), desc.rank, desc.shape);
}

/* ---- Units ---- */

/* Computes x min(1 / sqrt(sum x^2), 1e12). */
static void lower_unit(const leati_layer *layer, leati_lowering *lowering, int input_count,
                       const leati_value *inputs, leati_value *outputs) {
    leati_graph *g = lowering->graph;
    leati_eltwise power = {.function = LEATI_FN_POW, .a = -0.5f};
    uint32_t axes =
        leati_axes_of(&((const config *)layer->config)->axis, leati_graph_desc(g, inputs[0])->rank);
    (void)input_count;
    leati_value square = leati_function_of(g, inputs[0], LEATI_FN_SQUARE);
    leati_value inverse =
        leati_eltwise_of(g, leati_reduce_of(g, LEATI_REDUCE_SUM, square, axes, true), power);
    inverse = leati_binary_of(g, LEATI_MIN, inverse, leati_scalar(g, 1e12f));
    outputs[0] = leati_mul(g, inputs[0], inverse);
}

/* Members of leati_layer_type that all types of this file have in common. */
#define COMMON_MEMBERS LEATI_ONE_INPUT, .masking = LEATI_MASK_PASSED, .infer = infer

LEATI_LAYER_TYPE(layer_normalization, "LayerNormalization", "layer_normalization", config, layer_fields,
                 .steps = LEATI_STEPS_BY_AXIS, .build = build_layer, .lower = lower_layer, COMMON_MEMBERS);
LEATI_LAYER_TYPE(group_normalization, "GroupNormalization", "group_normalization", config, group_fields,
                 .check = check_group, .build = build_group, .lower = lower_group, COMMON_MEMBERS);
LEATI_LAYER_TYPE(unit_normalization, "UnitNormalization", "unit_normalization", config, unit_fields,
                 .lower = lower_unit, COMMON_MEMBERS);
