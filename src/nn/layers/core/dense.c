/* SPDX-License-Identifier: Apache-2.0 */
/* Dense: dst (..., units) = activation(src (..., in) kernel (in, units) + bias (units)).
 * Source: keras.layers.Dense. */
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

typedef struct config {
    int64_t units;
    leati_weight_config kernel;
    leati_affine affine;
} config;

static const leati_field fields[] = {LEATI_INT_FIELD(config, units, 1, NULL),
                                     LEATI_WEIGHT_FIELDS(config, kernel, "kernel", "\"glorot_uniform\""),
                                     LEATI_AFFINE_FIELDS(config),
                                     {.key = NULL}};

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    (void)input_count, (void)output_count;
    if (inputs[0].rank < 2) return leati_shape_unexpected(&inputs[0], "an input of rank 2 or more", err);
    outputs[0] = inputs[0];
    outputs[0].dims[outputs[0].rank - 1] = c->units;
    return LEAT_OK;
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const config *c = layer->config;
    int64_t in = inputs[0].dims[inputs[0].rank - 1];
    leat_status status;
    (void)input_count;
    if (in < 1) return leati_shape_unexpected(&inputs[0], "an input whose last dimension is known", err);
    status = leati_weight_config_add(layer, "kernel", &c->kernel, 2, (int64_t[]){in, c->units}, err);
    return status == LEAT_OK ? leati_affine_add_bias(layer, &c->affine, c->units, err) : status;
}

/* Reshapes x to a matrix (all dimensions but the last become rows), and multiplies it by the kernel. */
static leati_value product(leati_graph *g, leati_value x, leati_value kernel, leati_value bias) {
    leati_desc desc = *leati_graph_desc(g, x);
    if (desc.rank <= 2) return leati_matmul(g, x, false, kernel, false, bias);
    int64_t in = desc.shape[desc.rank - 1], rows = in ? leati_desc_count(&desc) / in : 0;
    leati_value flat = leati_reshape(g, x, 2, (int64_t[]){rows, in});
    leati_value y = leati_matmul(g, flat, false, kernel, false, bias);
    desc.shape[desc.rank - 1] = leati_graph_desc(g, kernel)->shape[1];
    return leati_reshape(g, y, desc.rank, desc.shape);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    leati_value kernel = leati_layer_weight(layer, lowering, 0);
    leati_value y = product(g, inputs[0], kernel, leati_affine_bias(layer, &c->affine, lowering));
    (void)input_count;
    outputs[0] = leati_activation_lower(&c->affine.activation, g, y);
    leati_lowering_add_activity(lowering, &c->affine.activity_regularizer, 1, outputs);
}

LEATI_LAYER_TYPE(dense, "Dense", "dense", config, fields, LEATI_ONE_INPUT, .masking = LEATI_MASK_PASSED,
                 .steps = LEATI_STEPS_APART, .infer = infer, .build = build, .lower = lower);
