/* SPDX-License-Identifier: Apache-2.0 */
/* ReversibleEmbedding: a row of weights for each integer, and in a reversed call the product with the transposed
 * weights, (..., output_dim) -> (..., input_dim).  A reversed call has its input twice, so that shapes and ops follow
 * from the inputs; in files it has the argument `reverse`.
 * Source: keras.layers.ReversibleEmbedding; Press and Wolf 2016 (arXiv 1608.05859). */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/core/embedding.h"
#include "nn/layers/types.h"

typedef struct config {
    int64_t input_dim, output_dim;
    leati_weight_config embeddings;
    leati_regularizer activity_regularizer;
    bool mask_zero, tie_weights;
    char reverse_dtype[LEATI_FIELD_TEXT_BYTES];
    double logit_soft_cap; /* NAN: none */
} config;

static const leati_field fields[] = {LEATI_INT_FIELD(config, input_dim, 1, NULL),
                                     LEATI_INT_FIELD(config, output_dim, 1, NULL),
                                     LEATI_WEIGHT_FIELDS(config, embeddings, "embeddings", "\"uniform\""),
                                     LEATI_FIELD(config, activity_regularizer, LEATI_FIELD_REGULARIZER,
                                                 "null"),
                                     LEATI_FIELD(config, mask_zero, LEATI_FIELD_BOOL, "false"),
                                     LEATI_FIELD(config, tie_weights, LEATI_FIELD_BOOL, "true"),
                                     LEATI_FIELD(config, reverse_dtype, LEATI_FIELD_TEXT, "null"),
                                     LEATI_FIELD(config, logit_soft_cap, LEATI_FIELD_OPTIONAL_FLOAT, "null"),
                                     {.key = NULL}};

static leat_status check(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    c->activity_regularizer.per_sample = true; /* as in current Keras */
    if (c->reverse_dtype[0] && strcmp(c->reverse_dtype, "float32") != 0)
        return leati_fail(err, LEAT_ENOTSUP, "reverse_dtype: expected null or \"float32\", received \"%s\"",
                          c->reverse_dtype);
    if (!isnan(c->logit_soft_cap) && !(c->logit_soft_cap > 0))
        return leati_fail(err, LEAT_EINVAL, "logit_soft_cap: expected null or a number above 0, received %g",
                          c->logit_soft_cap);
    return LEAT_OK;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    const leati_shape *x = &inputs[0];
    (void)output_count;
    outputs[0] = *x;
    if (input_count == 2) {
        int64_t last = x->rank > 1 ? x->dims[x->rank - 1] : 0;
        if (last != -1 && last != c->output_dim)
            return leati_shape_unexpected(x, "a reversed call on a last axis of output_dim", err);
        outputs[0].dims[x->rank - 1] = c->input_dim;
        return LEAT_OK;
    }
    if (x->rank < 1 || x->rank >= LEAT_MAX_RANK)
        return leati_shape_unexpected(x, "an input of rank 1 to 7", err);
    outputs[0].dims[outputs[0].rank++] = c->output_dim;
    return LEAT_OK;
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const config *c = layer->config;
    (void)input_count, (void)inputs;
    LEATI_TRY(leati_weight_config_add(layer, "embeddings", &c->embeddings, 2,
                                      (int64_t[]){c->input_dim, c->output_dim}, err));
    leati_weight_spec spec = {.name = "reverse_embeddings",
                              .rank = 2,
                              .dims = {c->output_dim, c->input_dim},
                              .initializer = c->embeddings.initializer};
    return c->tie_weights ? LEAT_OK : leati_layer_add_weight(layer, &spec, err);
}

/* Returns tanh(x / cap) cap. */
static leati_value soft_capped(leati_graph *g, leati_value x, float cap) {
    leati_value divided = leati_div(g, x, leati_scalar(g, cap));
    return leati_linear(g, leati_function_of(g, divided, LEATI_FN_TANH), cap, 0);
}

static leati_value reversed(const leati_layer *layer, const leati_lowering *lowering, leati_value x) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    leati_desc desc = *leati_graph_desc(g, x);
    if (desc.rank < 2) return LEATI_INVALID; /* a graph that has failed has no shapes */
    const int64_t depth = desc.shape[desc.rank - 1];
    const bool before = leati_graph_store_bf16(g, false), mixed = before && !c->reverse_dtype[0];
    leati_graph_store_bf16(g, mixed);
    leati_value kernel = leati_layer_weight(layer, lowering, c->tie_weights ? 0 : 1);
    int64_t rows = depth > 0 ? leati_desc_count(&desc) / depth : 0;
    leati_value flat = leati_reshape(g, x, 2, (int64_t[]){rows, depth});
    leati_value y = leati_matmul(g, flat, false, kernel, c->tie_weights, LEATI_NONE);
    desc.shape[desc.rank - 1] = c->input_dim;
    y = leati_reshape(g, y, desc.rank, desc.shape);
    if (!isnan(c->logit_soft_cap)) y = soft_capped(g, y, (float)c->logit_soft_cap);
    leati_graph_store_bf16(g, before);
    return y;
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    if (input_count == 2) {
        outputs[0] = reversed(layer, lowering, inputs[0]);
    } else {
        outputs[0] = leati_gather(lowering->graph, leati_layer_weight(layer, lowering, 0), inputs[0]);
        if (c->mask_zero) lowering->output_masks[0] = leati_embedding_mask(lowering->graph, inputs[0]);
    }
    leati_lowering_add_activity(lowering, &c->activity_regularizer, 1, outputs);
}

static const char *const arguments[] = {"inputs", NULL}, *const call_options[] = {"reverse", NULL};

LEATI_LAYER_TYPE(reversible_embedding, "ReversibleEmbedding", "reversible_embedding", config, fields,
                 .min_inputs = 1, .max_inputs = 2, .arguments = arguments, .call_options = call_options,
                 .masking = LEATI_MASK_COMPUTED, .indices = true, .check = check, .infer = infer,
                 .build = build, .lower = lower);
