/* SPDX-License-Identifier: Apache-2.0 */
/* FNetEncoder: a LayerNormalization of x + the real part of the two-dimensional Fourier transform of x (N, T, D), then
 * of that + two Dense layers of it.  The transform is a product with matrices of cosines and sines.
 * Source: keras_hub.layers.FNetEncoder; Lee-Thorp et al. 2021 (arXiv 2105.03824). */
#include <math.h>

#include "base/error.h"
#include "base/memory.h"
#include "json/json.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/core/einsum.h"
#include "nn/layers/hub/block.h"
#include "nn/layers/types.h"

typedef struct config {
    int64_t intermediate_dim;
    double dropout, layer_norm_epsilon;
    leati_activation activation;
    leati_initializer *kernel_initializer, *bias_initializer;
    leati_block block;
} config;

static const leati_field fields[] = {LEATI_INT_FIELD(config, intermediate_dim, 1, NULL),
                                     LEATI_FIELD(config, dropout, LEATI_FIELD_FLOAT, "0"),
                                     LEATI_FIELD(config, activation, LEATI_FIELD_ACTIVATION, "\"relu\""),
                                     LEATI_FIELD(config, layer_norm_epsilon, LEATI_FIELD_FLOAT, "1e-05"),
                                     LEATI_FIELD(config, kernel_initializer, LEATI_FIELD_INITIALIZER,
                                                 "\"glorot_uniform\""),
                                     LEATI_FIELD(config, bias_initializer, LEATI_FIELD_INITIALIZER,
                                                 "\"zeros\""),
                                     {.key = NULL}};

static const char mixing_norm[] = "mixing_layer_norm", intermediate[] = "intermediate_dense",
                  output[] = "output_dense", output_norm[] = "output_layer_norm",
                  output_dropout[] = "output_dropout";

static leat_status check(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    const leati_block_weights weights = {c->kernel_initializer, c->bias_initializer, NULL, NULL};
    leati_block *block = &c->block;
    if (!(c->dropout >= 0 && c->dropout < 1))
        return leati_fail(err, LEAT_EINVAL, "dropout: expected a number from 0 to below 1, received %g",
                          c->dropout);
    LEATI_TRY(
        leati_block_add_norm(layer, block, mixing_norm, "_mixing_layer_norm", c->layer_norm_epsilon, err));
    LEATI_TRY(
        leati_block_add_norm(layer, block, output_norm, "_output_layer_norm", c->layer_norm_epsilon, err));
    LEATI_TRY(leati_block_add_dense(layer, block, intermediate, "_intermediate_dense", c->intermediate_dim,
                                    &c->activation, &weights, err));
    LEATI_TRY(leati_block_add_dense(layer, block, output, "_output_dense", 1, NULL, &weights, err));
    return leati_block_add_dropout(layer, block, output_dropout, c->dropout, err);
}

static void fini(void *layer_config) {
    leati_block_fini(&((config *)layer_config)->block);
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    (void)layer, (void)input_count, (void)output_count;
    if (inputs[0].rank != 3)
        return leati_shape_unexpected(&inputs[0], "a sequence (N, steps, features)", err);
    outputs[0] = inputs[0];
    return LEAT_OK;
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const config *c = layer->config;
    leati_shape between = inputs[0];
    (void)input_count;
    between.dims[2] = c->intermediate_dim;
    leati_block_set_size(leati_block_find(&c->block, output), "units", inputs[0].dims[2]);
    LEATI_TRY(leati_block_build(layer, &c->block, mixing_norm, &inputs[0], err));
    LEATI_TRY(leati_block_build(layer, &c->block, output_norm, &inputs[0], err));
    LEATI_TRY(leati_block_build(layer, &c->block, intermediate, &inputs[0], err));
    return leati_block_build(layer, &c->block, output, &between, err);
}

static void weight_path(const leati_layer *layer, int index, char *out, size_t bytes) {
    leati_block_weight_path(&((const config *)layer->config)->block, index, out, bytes);
}

/* Returns the matrix (count, count) of the cosines or sines of 2 pi i j / count. */
static leati_value waves(leati_graph *g, int64_t count, double (*wave)(double)) {
    const double pi = 3.14159265358979323846;
    const leati_desc desc = leati_desc_make(LEAT_F32, 2, (int64_t[]){count, count});
    float *values = leati_calloc((size_t)leati_desc_count(&desc) + 1, sizeof *values);
    if (!values) return leati_graph_fail(g, LEAT_ENOMEM, "no memory for the matrix of a Fourier transform");
    for (int64_t i = 0; i < count; ++i)
        for (int64_t j = 0; j < count; ++j)
            values[i * count + j] = (float)wave(2 * pi * (double)(i * j % count) / (double)count);
    leati_value out = leati_graph_constant(g, &desc, values);
    leati_free(values);
    return out;
}

/* Returns A x B for x (N, T, D): A (T, T) and B (D, D) have the waves of a function. */
static leati_value between_waves(leati_graph *g, leati_value x, double (*wave)(double)) {
    leati_desc desc = *leati_graph_desc(g, x);
    const int64_t steps = desc.shape[1], features = desc.shape[2], rows = desc.shape[0] * steps;
    leati_value flat = leati_reshape(g, x, 2, (int64_t[]){rows, features});
    leati_value y = leati_matmul(g, flat, false, waves(g, features, wave), false, LEATI_NONE);
    y = leati_reshape(g, y, 3, desc.shape);
    return leati_einsum(g, "st,ntd->nsd", waves(g, steps, wave), y);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const leati_block *block = &((const config *)layer->config)->block;
    leati_graph *g = lowering->graph;
    (void)input_count;
    outputs[0] = LEATI_INVALID;
    if (leati_graph_desc(g, inputs[0])->rank != 3) return; /* a graph that has failed has no shapes */
    bool before = leati_graph_store_bf16(g, false);        /* as in Keras, the transform is in float32 */
    leati_value mixed = leati_sub(g, between_waves(g, inputs[0], cos), between_waves(g, inputs[0], sin));
    leati_graph_store_bf16(g, before);
    mixed = leati_block_call(block, mixing_norm, lowering, leati_add(g, inputs[0], mixed));
    leati_value y = leati_block_call(block, intermediate, lowering, mixed);
    y = leati_block_call(block, output_dropout, lowering, leati_block_call(block, output, lowering, y));
    outputs[0] = leati_block_call(block, output_norm, lowering, leati_add(g, mixed, y));
}

static const char *const arguments[] = {"inputs", NULL};

LEATI_LAYER_TYPE(f_net_encoder, "keras_hub>FNetEncoder", "f_net_encoder", config, fields, LEATI_ONE_INPUT,
                 .module = "keras_hub.src.layers.modeling.f_net_encoder", .arguments = arguments,
                 .check = check, .fini = fini, .infer = infer, .build = build, .weight_path = weight_path,
                 .lower = lower);
