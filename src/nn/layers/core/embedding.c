/* SPDX-License-Identifier: Apache-2.0 */
/* Embedding: a row of weights for each integer, (N, ...) -> (N, ..., output_dim); with mask_zero, a step with index 0
 * does not count.
 * Source: keras.layers.Embedding. */
#include "nn/layers/core/embedding.h"

#include "base/error.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

typedef struct config {
    int64_t input_dim, output_dim;
    leati_weight_config embeddings;
    leati_regularizer activity_regularizer;
    bool mask_zero;
    leati_ints input_length; /* lengths of all axes except the batch */
} config;

static const leati_field fields[] = {LEATI_INT_FIELD(config, input_dim, 1, NULL),
                                     LEATI_INT_FIELD(config, output_dim, 1, NULL),
                                     LEATI_WEIGHT_FIELDS(config, embeddings, "embeddings", "\"uniform\""),
                                     LEATI_FIELD(config, activity_regularizer, LEATI_FIELD_REGULARIZER,
                                                 "null"),
                                     LEATI_FIELD(config, mask_zero, LEATI_FIELD_BOOL, "false"),
                                     {.key = "input_length",
                                      .kind = LEATI_FIELD_NUMBERS,
                                      .offset = offsetof(config, input_length),
                                      .preset = "null",
                                      .minimum = 1,
                                      .limited = true},
                                     {.key = NULL}};

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    (void)input_count, (void)output_count;
    if (inputs[0].rank < 1 || inputs[0].rank >= LEAT_MAX_RANK)
        return leati_shape_unexpected(&inputs[0], "an input of rank 1 to 7", err);
    if (c->input_length.count >= 0 && c->input_length.count != inputs[0].rank - 1)
        return leati_shape_unexpected(&inputs[0], "an input with the axes of input_length", err);
    outputs[0] = inputs[0];
    for (int i = 0; i < c->input_length.count; ++i) {
        int64_t length = c->input_length.values[i], *dim = &outputs[0].dims[i + 1];
        if (*dim >= 0 && length >= 0 && *dim != length)
            return leati_shape_unexpected(&inputs[0], "an input as long as input_length", err);
        if (*dim < 0) *dim = length;
    }
    outputs[0].dims[outputs[0].rank++] = c->output_dim;
    return LEAT_OK;
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const config *c = layer->config;
    (void)input_count, (void)inputs;
    return leati_weight_config_add(layer, "embeddings", &c->embeddings, 2,
                                   (int64_t[]){c->input_dim, c->output_dim}, err);
}

leati_value leati_embedding_mask(leati_graph *g, leati_value indices) {
    leati_value number = leati_cast(g, indices, LEAT_F32, 1);
    return leati_linear(g, leati_binary_of(g, LEATI_EQUAL, number, leati_scalar(g, 0)), -1, 1);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    (void)input_count;
    outputs[0] = leati_gather(lowering->graph, leati_layer_weight(layer, lowering, 0), inputs[0]);
    if (c->mask_zero) lowering->output_masks[0] = leati_embedding_mask(lowering->graph, inputs[0]);
    leati_lowering_add_activity(lowering, &c->activity_regularizer, 1, outputs);
}

LEATI_LAYER_TYPE(embedding, "Embedding", "embedding", config, fields, LEATI_ONE_INPUT,
                 .masking = LEATI_MASK_COMPUTED, .indices = true, .steps = LEATI_STEPS_BY_NUMBER,
                 .infer = infer, .build = build, .lower = lower);
