/* SPDX-License-Identifier: Apache-2.0 */
/* Masking: a step whose features all equal mask_value becomes 0 and does not count in the layers that follow.
 * Source: keras.layers.Masking. */
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

typedef struct config {
    double mask_value;
} config;

static const leati_field fields[] = {LEATI_FIELD(config, mask_value, LEATI_FIELD_FLOAT, "0.0"),
                                     {.key = NULL}};

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    if (inputs[0].rank < 2) return leati_shape_unexpected(&inputs[0], "steps with features", err);
    return leati_infer_same(layer, input_count, inputs, outputs, output_count, err);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    (void)input_count;
    leati_value equal = leati_binary_of(g, LEATI_EQUAL, inputs[0], leati_scalar(g, (float)c->mask_value));
    leati_value mask = leati_linear(g, leati_reduce_last(g, LEATI_REDUCE_MIN, equal, false), -1.0f, 1.0f);
    outputs[0] = leati_mul(g, inputs[0], leati_expand_last(g, mask));
    lowering->output_masks[0] = mask;
}

LEATI_LAYER_TYPE(masking, "Masking", "masking", config, fields, LEATI_ONE_INPUT,
                 .masking = LEATI_MASK_COMPUTED, .steps = LEATI_STEPS_APART, .infer = infer, .lower = lower);
