/* SPDX-License-Identifier: Apache-2.0 */
/* Flatten: (N, ...) -> (N, product), with the channels last.  Source: keras.layers.Flatten; like current Keras, it
 * also takes inputs of rank 1 and 2. */
#include "base/error.h"
#include "nn/layers/spatial.h"
#include "nn/layers/types.h"

typedef struct config {
    int32_t data_format;
} config;

static const leati_field fields[] = {LEATI_DATA_FORMAT_FIELD(config), {.key = NULL}};

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    int64_t count;
    (void)layer, (void)input_count, (void)output_count;
    if (inputs[0].rank < 1) return leati_shape_unexpected(&inputs[0], "an input of rank 1 or more", err);
    LEATI_TRY(leati_shape_product(&inputs[0], 1, &count, err));
    if (count < 0)
        return leati_shape_unexpected(&inputs[0], "an input whose dimensions are all known, except the batch",
                                      err);
    outputs[0] = (leati_shape){.rank = 2, .dims = {inputs[0].dims[0], count}};
    return LEAT_OK;
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_value x = leati_image_value(lowering->graph, inputs[0], c->data_format);
    const leati_desc *desc = leati_graph_desc(lowering->graph, x);
    const leati_desc sample =
        leati_desc_make(desc->dtype, desc->rank > 0 ? desc->rank - 1 : 0, desc->shape + 1);
    int64_t n = desc->shape[0];
    (void)input_count;
    outputs[0] = leati_reshape(lowering->graph, x, 2, (int64_t[]){n, leati_desc_count(&sample)});
}

LEATI_LAYER_TYPE(flatten, "Flatten", "flatten", config, fields, LEATI_ONE_INPUT, .infer = infer,
                 .lower = lower);
