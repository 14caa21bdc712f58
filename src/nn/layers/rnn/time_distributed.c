/* SPDX-License-Identifier: Apache-2.0 */
/* TimeDistributed: applies a layer to each step of a sequence, as to a larger batch.
 * Source: keras.layers.TimeDistributed. */
#include <string.h>

#include "base/error.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"
#include "nn/layers/wrapping.h"

typedef struct config {
    leati_layer *layer;
    /* The mask that the layer makes is lost, and its activity's penalty.  Each step is a call of its own, which matters
     * to BatchNormalization. */
    bool as_keras3;
} config;

static const leati_field fields[] = {LEATI_FIELD(config, layer, LEATI_FIELD_LAYER, NULL),
                                     LEATI_AS_KERAS3_FIELD(config),
                                     {.key = NULL}};

static leat_status check(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    if (!c->layer) return leati_fail(err, LEAT_EINVAL, "layer: expected a layer, received null");
    if (c->layer->type->max_inputs < 1 || leati_layer_is_input(c->layer))
        return leati_fail(err, LEAT_EINVAL, "layer: expected a layer that has an input, received %s",
                          c->layer->type->class_name);
    leati_layer_adopt(layer, c->layer);
    leati_layer_set_trainable(layer, layer->trainable);
    return LEAT_OK;
}

static struct leat_model *model_inside(const leati_layer *layer) {
    const config *c = layer->config;
    return leati_layer_model(c->layer);
}

/* Returns the shape of the layer's input, (batch * steps, ...), with the first dimension unknown. */
static leati_shape step_of(const leati_shape *shape) {
    leati_shape out = {.rank = shape->rank - 1};
    memcpy(out.dims, shape->dims + 1, (size_t)out.rank * sizeof out.dims[0]);
    out.dims[0] = -1;
    return out;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    leati_shape inner[LEATI_LAYER_MAX_OUTPUTS];
    int inner_count = 0;
    (void)input_count, (void)output_count;
    if (inputs[0].rank < 3)
        return leati_shape_unexpected(&inputs[0], "a sequence (batch, steps, ...) of rank 3 or more", err);
    leati_shape step = step_of(&inputs[0]);
    leat_status status = leati_layer_infer(c->layer, 1, &step, inner, &inner_count, err);
    LEATI_TRY(leati_prefix(status, err, "%s of each step", c->layer->type->class_name));
    if (inner_count != 1 || inner[0].rank < 1 || inner[0].rank == LEAT_MAX_RANK)
        return leati_fail(err, LEAT_ENOTSUP,
                          "layer: expected one output of at most %d axes, received %d outputs",
                          LEAT_MAX_RANK - 1, inner_count);
    outputs[0] = (leati_shape){.rank = inner[0].rank + 1, .dims = {inputs[0].dims[0], inputs[0].dims[1]}};
    memcpy(outputs[0].dims + 2, inner[0].dims + 1, (size_t)(inner[0].rank - 1) * sizeof inner[0].dims[0]);
    return LEAT_OK;
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const config *c = layer->config;
    leati_shape step = step_of(&inputs[0]);
    (void)input_count;
    return leati_layer_build_inner(layer, c->layer, NULL, 1, &step, err);
}

static void weight_path(const leati_layer *layer, int index, char *out, size_t bytes) {
    const config *c = layer->config;
    leati_layer_inner_weight_path(c->layer, "layer", index, out, bytes);
}

/* Reshape (N, T, ...) to (N T, ...), and back. */
static leati_value join_steps(leati_graph *g, leati_value x) {
    leati_desc desc = *leati_graph_desc(g, x);
    if (desc.rank < 2) return LEATI_INVALID;
    desc.shape[1] *= desc.shape[0];
    return leati_reshape(g, x, desc.rank - 1, desc.shape + 1);
}

static leati_value split_steps(leati_graph *g, leati_value x, int64_t batch, int64_t steps) {
    const leati_desc desc = *leati_graph_desc(g, x);
    int64_t dims[LEAT_MAX_RANK] = {batch, steps};
    if (desc.rank < 1 || desc.rank == LEAT_MAX_RANK) return LEATI_INVALID;
    memcpy(dims + 2, desc.shape + 1, (size_t)(desc.rank - 1) * sizeof dims[0]);
    return leati_reshape(g, x, desc.rank + 1, dims);
}

/* If the layer returns no mask, a step counts if anything in its mask counts. */
static leati_value mask_of_steps(leati_graph *g, leati_value mask) {
    if (mask == LEATI_NONE) return mask;
    int rank = leati_graph_desc(g, mask)->rank;
    return rank > 2 ? leati_reduce_of(g, LEATI_REDUCE_MAX, mask, (1u << rank) - 4u, false) : mask;
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    const leati_desc desc = *leati_graph_desc(g, inputs[0]);
    const int64_t batch = desc.shape[0], steps = desc.shape[1], apart = lowering->apart_rows;
    leati_value mask = lowering->input_masks[0];
    leati_inner_call call = {.input_count = 1, .output_count = 1, .inputs = {join_steps(g, inputs[0])}};
    (void)input_count;
    call.masks[0] = mask == LEATI_NONE ? LEATI_NONE : join_steps(g, mask);
    if (c->as_keras3) lowering->apart_rows = (apart > 1 ? apart : 1) * steps;
    leati_layer_lower_inner(c->layer, lowering, &call);
    lowering->apart_rows = apart;
    outputs[0] = split_steps(g, call.outputs[0], batch, steps);
    const bool has_own = call.output_masks[0] != LEATI_NONE && !c->as_keras3;
    lowering->output_masks[0] =
        has_own ? split_steps(g, call.output_masks[0], batch, steps) : mask_of_steps(g, mask);
    if (!c->as_keras3) leati_lowering_add_activity(lowering, leati_layer_activity(c->layer), 1, outputs);
}

LEATI_LAYER_TYPE(time_distributed, "TimeDistributed", "time_distributed", config, fields, LEATI_ONE_INPUT,
                 .masking = LEATI_MASK_COMPUTED, .shares_trainable = true, .model = model_inside,
                 .check = check, .steps = LEATI_STEPS_APART, .infer = infer, .build = build,
                 .weight_path = weight_path, .lower = lower);
