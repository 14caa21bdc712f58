/* SPDX-License-Identifier: Apache-2.0 */
/* Activation: a function of each element, or softmax over the last axis.  Source: keras.layers.Activation. */
#include "nn/layers/rows.h"
#include "nn/layers/types.h"

typedef struct config {
    leati_activation activation;
} config;

static const leati_field fields[] = {LEATI_ROW(config, activation, LEATI_FIELD_ACTIVATION, NULL),
                                     {.key = NULL}};

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    if (leati_activation_is_of_rows(&c->activation) && inputs[0].rank < 2)
        return leati_shape_unexpected(&inputs[0], "an input of rank 2 or more for softmax", err);
    return leati_infer_same(layer, input_count, inputs, outputs, output_count, err);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    (void)input_count;
    outputs[0] = leati_activation_lower(&c->activation, lowering->graph, inputs[0]);
}

const leati_layer_type leati_layer_activation = {.class_name = "Activation",
                                                 .name_prefix = "activation",
                                                 .config_bytes = sizeof(config),
                                                 .fields = fields,
                                                 .min_inputs = 1,
                                                 .max_inputs = 1,
                                                 .masking = LEATI_MASK_PASSED,
                                                 .infer = infer,
                                                 .lower = lower};
