/* SPDX-License-Identifier: Apache-2.0 */
/* ActivityRegularization: the output is the input, which has a penalty.
 * Source: keras.layers.ActivityRegularization. */
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

typedef struct config {
    double l1, l2;
    bool as_keras3; /* the penalty is divided by the batch size */
} config;

static const leati_field fields[] = {LEATI_FIELD(config, l1, LEATI_FIELD_FLOAT, "0.0"),
                                     LEATI_FIELD(config, l2, LEATI_FIELD_FLOAT, "0.0"),
                                     LEATI_AS_KERAS3_FIELD(config),
                                     {.key = NULL}};

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_regularizer penalty = {.kind = LEATI_REGULARIZER_L1L2,
                                 .l1 = (float)c->l1,
                                 .l2 = (float)c->l2,
                                 .per_sample = c->as_keras3};
    (void)input_count;
    outputs[0] = inputs[0];
    leati_lowering_add_activity(lowering, &penalty, 1, outputs);
}

LEATI_LAYER_TYPE(activity_regularization, "ActivityRegularization", "activity_regularization", config, fields,
                 LEATI_ONE_INPUT, .masking = LEATI_MASK_PASSED, .steps = LEATI_STEPS_BY_NUMBER,
                 .infer = leati_infer_same, .lower = lower);
