/* SPDX-License-Identifier: Apache-2.0 */
/* SpectralNormalization: a layer whose kernel is divided by its largest singular value.  As in Keras, each call in
 * training writes the quotient and a singular vector to the weights, even if the layer is frozen, and no gradient flows
 * through the division.
 * Source: keras.layers.SpectralNormalization of current Keras; Miyato et al. 2018 (arXiv 1802.05957). */
#include <stdio.h>

#include "base/error.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"
#include "nn/layers/wrapping.h"

#define MOST_ITERATIONS 1000 /* each adds ops to the graph */

typedef struct config {
    leati_layer *layer;
    int64_t power_iterations;
    leati_initializer *vector; /* created by check */
} config;

static const leati_field fields[] = {LEATI_FIELD(config, layer, LEATI_FIELD_LAYER, NULL),
                                     LEATI_INT_FIELD(config, power_iterations, 1, "1"),
                                     {.key = NULL}};

/* The layers whose first weight is the attribute `kernel` in Keras. */
static bool has_kernel(const leati_layer_type *type) {
    static const leati_layer_type *const types[] = {
        &leati_layer_conv1d,
        &leati_layer_conv1d_transpose,
        &leati_layer_conv2d,
        &leati_layer_conv2d_transpose,
        &leati_layer_conv3d,
        &leati_layer_conv3d_transpose,
        &leati_layer_dense,
        &leati_layer_depthwise_conv1d,
        &leati_layer_depthwise_conv2d,
        &leati_layer_einsum_dense,
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; ++i)
        if (types[i] == type) return true;
    return false;
}

static leat_status read_initializer(config *c, leat_error *err) {
    json_t *value = json_pack("{s:s, s:{s:f, s:f}}", "class_name", "TruncatedNormal", "config", "mean", 0.0,
                              "stddev", 0.02);
    leat_status status = value ? leati_initializer_read(&c->vector, value, err)
                               : leati_fail(err, LEAT_ENOMEM, "no memory for an initializer");
    json_decref(value);
    return status;
}

static leat_status check(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    if (!c->layer) return leati_fail(err, LEAT_EINVAL, "layer: expected a layer, received null");
    if (!has_kernel(c->layer->type))
        return leati_fail(
            err, LEAT_ENOTSUP,
            "layer: expected Dense, EinsumDense, or a convolution that has one kernel, received "
            "%s",
            c->layer->type->class_name);
    if (c->power_iterations > MOST_ITERATIONS)
        return leati_fail(err, LEAT_ENOTSUP, "power_iterations: expected at most %d, received %lld",
                          MOST_ITERATIONS, (long long)c->power_iterations);
    leati_layer_adopt(layer, c->layer);
    leati_layer_set_trainable(layer, layer->trainable);
    return read_initializer(c, err);
}

static void fini(void *layer_config) {
    config *c = layer_config;
    leati_initializer_destroy(&c->vector);
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    leat_status status = leati_layer_infer(c->layer, input_count, inputs, outputs, output_count, err);
    return leati_prefix(status, err, "layer");
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const config *c = layer->config;
    const leati_layer *owner = layer;
    while (owner->outer) owner = owner->outer;
    const int32_t kernel = owner->weight_count;
    LEATI_TRY(leati_layer_build_inner(layer, c->layer, NULL, input_count, inputs, err));
    const leati_desc *desc = &owner->weights[kernel].desc;
    leati_weight_spec spec = {.name = "vector_u",
                              .rank = 2,
                              .dims = {1, desc->shape[desc->rank - 1]},
                              .initializer = c->vector,
                              .fixed = true};
    return leati_layer_add_weight(layer, &spec, err);
}

/* In Keras, the layer has the kernel, too, so that the vector is its second variable. */
static void weight_path(const leati_layer *layer, int index, char *out, size_t bytes) {
    const config *c = layer->config;
    if (index < c->layer->weight_count)
        leati_layer_inner_weight_path(c->layer, "layer", index, out, bytes);
    else
        snprintf(out, bytes, "vars/1");
}

/* Returns x / |x|, or 0 for 0. */
static leati_value unit(leati_graph *g, leati_value x) {
    const leati_eltwise power = {.function = LEATI_FN_POW, .a = -0.5f};
    leati_value square = leati_reduce_all(g, LEATI_REDUCE_SUM, leati_function_of(g, x, LEATI_FN_SQUARE));
    leati_value inverse = leati_eltwise_of(g, square, power);
    return leati_mul(g, x, leati_binary_of(g, LEATI_MIN, inverse, leati_scalar(g, 1e7f)));
}

/* Writes kernel / sigma to the kernel and the new vector to vector_u; a kernel of zeros changes nothing. */
static void normalise(const leati_layer *layer, const leati_lowering *lowering) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    leati_value kernel = leati_layer_weight(c->layer, lowering, 0);
    leati_value before = leati_layer_weight(layer, lowering, c->layer->weight_count);
    const leati_desc desc = *leati_graph_desc(g, kernel);
    if (desc.rank < 1) return; /* a graph that has failed has no shapes */
    const int64_t columns = desc.shape[desc.rank - 1], rows = leati_desc_count(&desc) / columns;
    leati_value matrix = leati_reshape(g, kernel, 2, (int64_t[]){rows, columns});
    leati_value u = before, v = LEATI_NONE;
    for (int64_t i = 0; i < c->power_iterations; ++i) {
        v = unit(g, leati_matmul(g, u, false, matrix, true, LEATI_NONE));
        u = unit(g, leati_matmul(g, v, false, matrix, false, LEATI_NONE));
    }
    leati_value product = leati_matmul(g, v, false, matrix, false, LEATI_NONE);
    leati_value sigma = leati_reduce_all(g, LEATI_REDUCE_SUM, leati_mul(g, product, u));
    leati_value largest = leati_reduce_all(g, LEATI_REDUCE_MAX, leati_function_of(g, kernel, LEATI_FN_ABS));
    leati_value zeros = leati_binary_of(g, LEATI_EQUAL, largest, leati_scalar(g, 0));
    leati_value after =
        leati_add(g, leati_mul(g, u, leati_linear(g, zeros, -1, 1)), leati_mul(g, before, zeros));
    leati_value quotient = leati_div(g, kernel, leati_add(g, sigma, zeros));
    leati_graph_store(g, kernel, quotient);
    leati_graph_store(g, before, after);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_inner_call call = {.input_count = 1,
                             .output_count = 1,
                             .inputs = {inputs[0]},
                             .masks = {LEATI_NONE}};
    (void)input_count;
    if (leati_lowering_in_training(lowering)) {
        bool mixed = leati_graph_store_bf16(lowering->graph, false);
        normalise(layer, lowering);
        leati_graph_store_bf16(lowering->graph, mixed);
    }
    leati_layer_lower_inner(c->layer, lowering, &call);
    outputs[0] = call.outputs[0];
    leati_lowering_add_activity(lowering, leati_layer_activity(c->layer), 1, outputs);
}

LEATI_LAYER_TYPE(spectral_normalization, "SpectralNormalization", "spectral_normalization", config, fields,
                 LEATI_ONE_INPUT, .shares_trainable = true, .check = check, .fini = fini, .infer = infer,
                 .build = build, .weight_path = weight_path, .lower = lower);
