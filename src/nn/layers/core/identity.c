/* SPDX-License-Identifier: Apache-2.0 */
/* Identity: the output is the input.  Source: keras.layers.Identity. */
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

static const leati_field fields[] = {{.key = NULL}};

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    (void)layer, (void)lowering, (void)input_count;
    outputs[0] = inputs[0];
}

LEATI_LAYER_TYPE(identity, "Identity", "identity", leati_no_config, fields, LEATI_ONE_INPUT,
                 .masking = LEATI_MASK_PASSED, .steps = LEATI_STEPS_BY_NUMBER, .infer = leati_infer_same,
                 .lower = lower);
