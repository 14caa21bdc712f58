/* SPDX-License-Identifier: Apache-2.0 */
/* Identity: x.  Source: keras.layers.Identity. */
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

static const leati_field fields[] = {{.key = NULL}};

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    (void)layer, (void)lowering, (void)input_count;
    outputs[0] = inputs[0];
}

const leati_layer_type leati_layer_identity = {.class_name = "Identity",
                                               .name_prefix = "identity",
                                               .fields = fields,
                                               .min_inputs = 1,
                                               .max_inputs = 1,
                                               .masking = LEATI_MASK_PASSED,
                                               .steps = LEATI_STEPS_BY_NUMBER,
                                               .infer = leati_infer_same,
                                               .lower = lower};
