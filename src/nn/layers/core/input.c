/* SPDX-License-Identifier: Apache-2.0 */
/* InputLayer: an input of a model.  Source: keras.layers.InputLayer. */
#include "base/error.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"
#include "tensor/number.h"

typedef struct config {
    bool sparse;
} config;

static const leati_field fields[] = {LEATI_FIELD(config, sparse, LEATI_FIELD_BOOL, "false"), {.key = NULL}};

static leat_status check(leati_layer *layer, leat_error *err) {
    const config *c = layer->config;
    if (c->sparse) return leati_fail(err, LEAT_ENOTSUP, "sparse: expected false, received true");
    if (!layer->has_batch_input_shape)
        return leati_fail(err, LEAT_EINVAL, "the key 'batch_input_shape' is missing");
    layer->trainable = false; /* as in Keras, whose InputLayer does not write the key */
    return LEAT_OK;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    (void)input_count, (void)inputs, (void)output_count, (void)err;
    outputs[0] = layer->batch_input_shape;
    return LEAT_OK;
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    bool fits = layer->dtype != LEAT_F32 || leati_graph_desc(lowering->graph, inputs[0])->dtype == LEAT_F32;
    (void)input_count;
    outputs[0] = fits ? inputs[0] : leati_cast(lowering->graph, inputs[0], LEAT_F32, 1.0f);
    if (leati_dtype_is_integer(layer->dtype)) leati_graph_set_exact(lowering->graph, outputs[0]);
}

LEATI_LAYER_TYPE(input, "InputLayer", "input", config, fields, .check = check, .masking = LEATI_MASK_PASSED,
                 .steps = LEATI_STEPS_BY_NUMBER, .infer = infer, .lower = lower);
