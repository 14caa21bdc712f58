/* SPDX-License-Identifier: Apache-2.0 */
/* MaskedLMHead: takes the steps at positions (N, P) of a sequence (N, T, D), and computes scores of all words for each:
 * a Dense layer, a LayerNormalization, a product with (D, vocabulary_size), a bias and an activation.
 * Source: keras_hub.layers.MaskedLMHead; Devlin et al. 2019. */
#include "base/error.h"
#include "base/memory.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/hub/block.h"
#include "nn/layers/types.h"

typedef struct config {
    int64_t vocabulary_size; /* INT64_MIN: null */
    json_t *token_embedding; /* must be null */
    leati_activation intermediate_activation, activation;
    double layer_norm_epsilon;
    leati_initializer *kernel_initializer, *bias_initializer;
    leati_block block;
} config;

static const leati_field fields[] = {
    {.key = "vocabulary_size",
     .kind = LEATI_FIELD_OPTIONAL_INT,
     .offset = offsetof(config, vocabulary_size),
     .preset = "null",
     .minimum = 1,
     .limited = true},
    LEATI_FIELD(config, token_embedding, LEATI_FIELD_JSON, "null"),
    LEATI_FIELD(config, intermediate_activation, LEATI_FIELD_ACTIVATION, "\"relu\""),
    LEATI_FIELD(config, activation, LEATI_FIELD_ACTIVATION, "\"linear\""),
    LEATI_FIELD(config, layer_norm_epsilon, LEATI_FIELD_FLOAT, "1e-05"),
    LEATI_FIELD(config, kernel_initializer, LEATI_FIELD_INITIALIZER, "\"glorot_uniform\""),
    LEATI_FIELD(config, bias_initializer, LEATI_FIELD_INITIALIZER, "\"zeros\""),
    {.key = NULL}};
static const char dense[] = "intermediate_dense", norm[] = "intermediate_layer_norm";
enum { KERNEL, BIAS }; /* the layer's own weights, which come first */

/* The numbers of rows are computed in float, which has all integers up to 2^24; one is added on the way. */
enum { MOST_ROWS = (1 << 24) - 1 };

static leat_status check(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    const leati_block_weights weights = {c->kernel_initializer, c->bias_initializer, NULL, NULL};
    if (c->token_embedding)
        return leati_fail(err, LEAT_ENOTSUP,
                          "token_embedding: expected null, received a layer, whose weights Keras's file has "
                          "only once; in Keras, give the head a vocabulary_size, and set its kernel to the "
                          "transposed weights of the embedding");
    if (c->vocabulary_size == INT64_MIN)
        return leati_fail(err, LEAT_EINVAL, "vocabulary_size: expected an integer, received null");
    LEATI_TRY(leati_block_add_dense(layer, &c->block, dense, "_intermediate_dense", 1,
                                    &c->intermediate_activation, &weights, err));
    return leati_block_add_norm(layer, &c->block, norm, "_intermediate_layer_norm", c->layer_norm_epsilon,
                                err);
}

static void fini(void *layer_config) {
    leati_block_fini(&((config *)layer_config)->block);
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    (void)input_count, (void)output_count;
    if (inputs[0].rank != 3)
        return leati_shape_unexpected(&inputs[0], "a sequence (N, steps, features)", err);
    if (inputs[1].rank != 2) return leati_shape_unexpected(&inputs[1], "positions (N, count)", err);
    outputs[0] = inputs[1];
    outputs[0].dims[outputs[0].rank++] = c->vocabulary_size;
    return LEAT_OK;
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const config *c = layer->config;
    const int64_t features = inputs[0].dims[2];
    const leati_shape taken = {.rank = 3, .dims = {inputs[0].dims[0], inputs[1].dims[1], features}};
    (void)input_count;
    const leati_weight_spec kernel = {.name = "output_kernel",
                                      .rank = 2,
                                      .dims = {features, c->vocabulary_size},
                                      .initializer = c->kernel_initializer};
    const leati_weight_spec bias = {.name = "output_bias",
                                    .rank = 1,
                                    .dims = {c->vocabulary_size},
                                    .initializer = c->bias_initializer};
    leati_block_set_size(leati_block_find(&c->block, dense), "units", features);
    LEATI_TRY(leati_layer_add_weight(layer, &kernel, err));
    LEATI_TRY(leati_layer_add_weight(layer, &bias, err));
    LEATI_TRY(leati_block_build(layer, &c->block, dense, &taken, err));
    return leati_block_build(layer, &c->block, norm, &taken, err);
}

static void weight_path(const leati_layer *layer, int index, char *out, size_t bytes) {
    leati_block_weight_path(&((const config *)layer->config)->block, index, out, bytes);
}

/* Returns the number n T of the first row of each sample, (N, 1). */
static leati_value first_rows(leati_graph *g, int64_t batch, int64_t steps) {
    const leati_desc desc = leati_desc_make(LEAT_F32, 2, (int64_t[]){batch, 1});
    float *values = leati_calloc((size_t)batch + 1, sizeof *values);
    if (!values) return leati_graph_fail(g, LEAT_ENOMEM, "no memory for the rows of positions");
    for (int64_t n = 0; n < batch; ++n) values[n] = (float)(n * steps);
    leati_value out = leati_graph_constant(g, &desc, values);
    leati_free(values);
    return out;
}

/* Returns x[n, positions[n, p]] (N, P, D).  A position outside of its sample becomes the row -1, an error. */
static leati_value take(leati_graph *g, leati_value x, leati_value positions) {
    const leati_desc desc = *leati_graph_desc(g, x);
    const int64_t batch = desc.shape[0], steps = desc.shape[1];
    if (leati_mul_saturated(batch, steps) > MOST_ROWS)
        return leati_graph_fail(
            g, LEAT_ENOTSUP,
            "MaskedLMHead: a batch of %lld samples with %lld steps has more than %d steps in "
            "all: expected smaller batches",
            (long long)batch, (long long)steps, MOST_ROWS);
    leati_value table = leati_reshape(g, x, 2, (int64_t[]){batch * steps, desc.shape[2]});
    leati_value p = leati_cast(g, positions, LEAT_F32, 1);
    leati_value valid = leati_mul(g, leati_binary_of(g, LEATI_GREATER, p, leati_scalar(g, -1)),
                                  leati_binary_of(g, LEATI_GREATER, leati_scalar(g, (float)steps), p));
    leati_value row = leati_linear(g, leati_add(g, p, first_rows(g, batch, steps)), 1, 1);
    return leati_gather(g, table, leati_linear(g, leati_mul(g, row, valid), 1, -1));
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    (void)input_count;
    outputs[0] = LEATI_INVALID;
    if (leati_graph_desc(g, inputs[0])->rank != 3) return; /* a graph that has failed has no shapes */
    leati_value x = leati_block_call(&c->block, dense, lowering, take(g, inputs[0], inputs[1]));
    x = leati_block_call(&c->block, norm, lowering, x);
    leati_desc desc = *leati_graph_desc(g, x);
    if (desc.rank != 3) return;
    leati_value flat = leati_reshape(g, x, 2, (int64_t[]){desc.shape[0] * desc.shape[1], desc.shape[2]});
    leati_value y = leati_matmul(g, flat, false, leati_layer_weight(layer, lowering, KERNEL), false,
                                 leati_layer_weight(layer, lowering, BIAS));
    desc.shape[2] = c->vocabulary_size;
    outputs[0] = leati_activation_lower(&c->activation, g, leati_reshape(g, y, 3, desc.shape));
}

static const char *const arguments[] = {"inputs", "mask_positions", NULL};

LEATI_LAYER_TYPE(masked_lm_head, "keras_hub>MaskedLMHead", "masked_lm_head", config, fields,
                 .module = "keras_hub.src.layers.modeling.masked_lm_head", .min_inputs = 2, .max_inputs = 2,
                 .arguments = arguments, .build_arguments = 2, .check = check, .fini = fini, .infer = infer,
                 .build = build, .weight_path = weight_path, .lower = lower);
