/* SPDX-License-Identifier: Apache-2.0 */
/* RepeatVector: (N, F) -> (N, n, F).  Source: keras.layers.RepeatVector. */
#include "base/error.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

typedef struct config {
    int64_t n;
} config;

static const leati_field fields[] = {LEATI_INT_FIELD(config, n, 1, NULL), {.key = NULL}};

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    (void)input_count, (void)output_count;
    if (inputs[0].rank != 2) return leati_shape_unexpected(&inputs[0], "vectors (batch, features)", err);
    outputs[0] = (leati_shape){.rank = 3, .dims = {inputs[0].dims[0], c->n, inputs[0].dims[1]}};
    return LEAT_OK;
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    const leati_desc *desc = leati_graph_desc(lowering->graph, inputs[0]);
    int64_t batch = desc->shape[0], features = desc->shape[1];
    (void)input_count;
    leati_value x = leati_reshape(lowering->graph, inputs[0], 3, (int64_t[]){batch, 1, features});
    outputs[0] = leati_broadcast(lowering->graph, x, 3, (int64_t[]){batch, c->n, features});
}

LEATI_LAYER_TYPE(repeat_vector, "RepeatVector", "repeat_vector", config, fields, LEATI_ONE_INPUT,
                 .infer = infer, .lower = lower);
