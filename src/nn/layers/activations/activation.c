/* SPDX-License-Identifier: Apache-2.0 */
/* Activation: an activation function of each element or of the last axis.  Source: keras.layers.Activation. */
#include <stdio.h>

#include "base/error.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

typedef struct config {
    leati_activation activation;
} config;

static const leati_field fields[] = {{.key = "activation",
                                      .kind = LEATI_FIELD_ACTIVATION,
                                      .offset = offsetof(config, activation),
                                      .reshapes = true},
                                     {.key = NULL}};

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    const char *name =
        c->activation.object ? c->activation.object->part->name : leati_activation_name(c->activation.kind);
    int64_t *last = &outputs[0].dims[inputs[0].rank - 1];
    char expected[64];
    if (leati_activation_reads_last_axis(&c->activation) && inputs[0].rank < 2) {
        snprintf(expected, sizeof expected, "an input of rank 2 or more for %s", name);
        return leati_shape_unexpected(&inputs[0], expected, err);
    }
    LEATI_TRY(leati_infer_same(layer, input_count, inputs, outputs, output_count, err));
    if (!leati_activation_halves(&c->activation) || *last < 0) return LEAT_OK;
    if (*last % 2 != 0) return leati_shape_unexpected(&inputs[0], "an even last axis for glu", err);
    *last /= 2;
    return LEAT_OK;
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    (void)input_count;
    outputs[0] = leati_activation_lower(&c->activation, lowering->graph, inputs[0]);
}

LEATI_LAYER_TYPE(activation, "Activation", "activation", config, fields, LEATI_ONE_INPUT,
                 .masking = LEATI_MASK_PASSED, .steps = LEATI_STEPS_BY_NUMBER, .infer = infer,
                 .lower = lower);
