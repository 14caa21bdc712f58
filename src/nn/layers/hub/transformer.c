/* SPDX-License-Identifier: Apache-2.0 */
/* TransformerEncoder: x + attention(x), then x + dense(dense(x)), with a LayerNormalization of each sum, or of what
 * enters attention and dense (normalize_first).  TransformerDecoder: the attention sees the steps before only, and an
 * attention to an encoder's sequence may follow it.
 * Source: keras_hub.layers.TransformerEncoder, TransformerDecoder; Vaswani et al. 2017. */
#include <string.h>

#include "base/error.h"
#include "json/json.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/hub/block.h"
#include "nn/layers/types.h"

typedef struct config {
    int64_t intermediate_dim, num_heads;
    double dropout, layer_norm_epsilon;
    leati_activation activation;
    leati_initializer *kernel_initializer, *bias_initializer;
    leati_regularizer kernel_regularizer, bias_regularizer;
    bool normalize_first;
    /* Arguments of the call: which tensors there are. */
    bool padding_mask, attention_mask;
    bool encoder_sequence, decoder_padding_mask, decoder_attention_mask, encoder_padding_mask,
        encoder_attention_mask, use_causal_mask;
    leati_ints decoder_sequence_shape, encoder_sequence_shape; /* Keras needs them; leat only keeps them */
    leati_block block;
} config;

#define ARGUMENT_FIELD(member)                                                                               \
    {                                                                                                        \
        .key = #member, .kind = LEATI_FIELD_BOOL, .offset = offsetof(config, member), .preset = "false",     \
        .later = true                                                                                        \
    }
#define COMMON_FIELDS                                                                                        \
    LEATI_INT_FIELD(config, intermediate_dim, 1, NULL), LEATI_INT_FIELD(config, num_heads, 1, NULL),         \
        LEATI_FIELD(config, dropout, LEATI_FIELD_FLOAT, "0"),                                                \
        LEATI_FIELD(config, activation, LEATI_FIELD_ACTIVATION, "\"relu\""),                                 \
        LEATI_FIELD(config, layer_norm_epsilon, LEATI_FIELD_FLOAT, "1e-05"),                                 \
        LEATI_FIELD(config, kernel_initializer, LEATI_FIELD_INITIALIZER, "\"glorot_uniform\""),              \
        LEATI_FIELD(config, bias_initializer, LEATI_FIELD_INITIALIZER, "\"zeros\""),                         \
        LEATI_FIELD(config, normalize_first, LEATI_FIELD_BOOL, "false")
#define LATER_REGULARIZER_FIELD(member)                                                                      \
    {                                                                                                        \
        .key = #member, .kind = LEATI_FIELD_REGULARIZER, .offset = offsetof(config, member),                 \
        .preset = "null", .later = true                                                                      \
    }

static const leati_field encoder_fields[] = {COMMON_FIELDS,
                                             LATER_REGULARIZER_FIELD(kernel_regularizer),
                                             LATER_REGULARIZER_FIELD(bias_regularizer),
                                             ARGUMENT_FIELD(padding_mask),
                                             ARGUMENT_FIELD(attention_mask),
                                             {.key = NULL}};
static const leati_field decoder_fields[] = {COMMON_FIELDS,
                                             LEATI_FIELD(config, decoder_sequence_shape, LEATI_FIELD_LIST,
                                                         "null"),
                                             LEATI_FIELD(config, encoder_sequence_shape, LEATI_FIELD_LIST,
                                                         "null"),
                                             ARGUMENT_FIELD(encoder_sequence),
                                             ARGUMENT_FIELD(decoder_padding_mask),
                                             ARGUMENT_FIELD(decoder_attention_mask),
                                             ARGUMENT_FIELD(encoder_padding_mask),
                                             ARGUMENT_FIELD(encoder_attention_mask),
                                             {.key = "use_causal_mask",
                                              .kind = LEATI_FIELD_BOOL,
                                              .offset = offsetof(config, use_causal_mask),
                                              .preset = "true",
                                              .later = true},
                                             {.key = NULL}};

/* ---- The inner layers ---- */

/* The names of the layers of one attention, and their groups in files. */
typedef struct attention_names {
    const char *attention, *attention_group, *norm, *norm_group, *dropout;
} attention_names;
static const attention_names encoder_self = {"self_attention_layer", "_self_attention_layer",
                                             "self_attention_layer_norm", "_self_attention_layer_norm",
                                             "self_attention_dropout"};
static const attention_names decoder_self = {"self_attention", "_self_attention_layer",
                                             "self_attention_layer_norm", "_self_attention_layer_norm",
                                             "self_attention_dropout"};
static const attention_names decoder_cross = {"cross_attention", "_cross_attention_layer",
                                              "cross_attention_layer_norm", "_cross_attention_layer_norm",
                                              "cross_attention_dropout"};
static const char intermediate[] = "feedforward_intermediate_dense", output[] = "feedforward_output_dense",
                  feedforward_norm[] = "feedforward_layer_norm",
                  feedforward_dropout[] = "feedforward_dropout";

static leati_block_weights weights_of(const config *c) {
    return (leati_block_weights){c->kernel_initializer, c->bias_initializer, &c->kernel_regularizer,
                                 &c->bias_regularizer};
}

static leat_status add_attention(leati_layer *layer, const attention_names *names, bool causal, bool pairs,
                                 leat_error *err) {
    config *c = layer->config;
    const leati_block_weights weights = weights_of(c);
    /* The size of a head is set when the input is known. */
    json_t *inner = json_pack("{s:I, s:i, s:o, s:b, s:b, s:b}", "num_heads", (json_int_t)c->num_heads,
                              "key_dim", 1, "dropout", leati_json_real(c->dropout), "use_causal_mask",
                              (int)causal, "attention_mask", (int)pairs, "as_keras3", 1);
    LEATI_TRY(leati_block_add_weighted(layer, &c->block, &leati_layer_multi_head_attention, names->attention,
                                       names->attention_group, inner, &weights, err));
    LEATI_TRY(
        leati_block_add_norm(layer, &c->block, names->norm, names->norm_group, c->layer_norm_epsilon, err));
    return leati_block_add_dropout(layer, &c->block, names->dropout, c->dropout, err);
}

/* Adds both Dense layers; the units of the second one are set when the input is known. */
static leat_status add_dense_layers(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    const leati_block_weights weights = weights_of(c);
    LEATI_TRY(leati_block_add_dense(layer, &c->block, intermediate, "_feedforward_intermediate_dense",
                                    c->intermediate_dim, &c->activation, &weights, err));
    LEATI_TRY(
        leati_block_add_dense(layer, &c->block, output, "_feedforward_output_dense", 1, NULL, &weights, err));
    return leati_block_add_dropout(layer, &c->block, feedforward_dropout, c->dropout, err);
}

static leat_status add_feedforward_norm(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    return leati_block_add_norm(layer, &c->block, feedforward_norm, "_feedforward_layer_norm",
                                c->layer_norm_epsilon, err);
}

static leat_status check_numbers(const config *c, leat_error *err) {
    if (!(c->dropout >= 0 && c->dropout < 1))
        return leati_fail(err, LEAT_EINVAL, "dropout: expected a number from 0 to below 1, received %g",
                          c->dropout);
    return LEAT_OK;
}

static leat_status check_encoder(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    LEATI_TRY(check_numbers(c, err));
    LEATI_TRY(add_attention(layer, &encoder_self, false, c->attention_mask, err));
    LEATI_TRY(add_feedforward_norm(layer, err));
    return add_dense_layers(layer, err);
}

static leat_status check_decoder(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    LEATI_TRY(check_numbers(c, err));
    if (!c->encoder_sequence && (c->encoder_padding_mask || c->encoder_attention_mask))
        return leati_fail(err, LEAT_EINVAL, "a mask of the encoder's steps: expected an encoder_sequence");
    LEATI_TRY(add_attention(layer, &decoder_self, c->use_causal_mask, c->decoder_attention_mask, err));
    if (c->encoder_sequence)
        LEATI_TRY(add_attention(layer, &decoder_cross, false, c->encoder_attention_mask, err));
    LEATI_TRY(add_dense_layers(layer, err));
    return add_feedforward_norm(layer, err);
}

static void fini(void *layer_config) {
    leati_block_fini(&((config *)layer_config)->block);
}

/* ---- Inputs ---- */

/* The places of the inputs of a call; -1: there is none. */
typedef struct places {
    int padding, pairs, encoder, encoder_padding, encoder_pairs, count;
} places;

static places places_of(const config *c) {
    places p = {.count = 1};
    p.encoder = c->encoder_sequence ? p.count++ : -1;
    p.padding = c->padding_mask || c->decoder_padding_mask ? p.count++ : -1;
    p.pairs = c->attention_mask || c->decoder_attention_mask ? p.count++ : -1;
    p.encoder_padding = c->encoder_padding_mask ? p.count++ : -1;
    p.encoder_pairs = c->encoder_attention_mask ? p.count++ : -1;
    return p;
}

static leat_status check_rank(const leati_shape *inputs, int place, int rank, const char *expected,
                              leat_error *err) {
    if (place < 0 || inputs[place].rank == rank) return LEAT_OK;
    return leati_shape_unexpected(&inputs[place], expected, err);
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    const places p = places_of(c);
    (void)output_count;
    static const char padding[] = "a padding mask (N, steps)",
                      pairs[] = "an attention mask (N, steps, steps)";
    if (input_count != p.count)
        return leati_fail(err, LEAT_EINVAL, "expected %d input%s, received %d", p.count,
                          p.count == 1 ? "" : "s, as many as the keys of masks and sequences say",
                          input_count);
    LEATI_TRY(check_rank(inputs, 0, 3, "a sequence (N, steps, features)", err));
    LEATI_TRY(check_rank(inputs, p.encoder, 3, "an encoder's sequence (N, steps, features)", err));
    LEATI_TRY(check_rank(inputs, p.padding, 2, padding, err));
    LEATI_TRY(check_rank(inputs, p.encoder_padding, 2, padding, err));
    LEATI_TRY(check_rank(inputs, p.pairs, 3, pairs, err));
    LEATI_TRY(check_rank(inputs, p.encoder_pairs, 3, pairs, err));
    if (inputs[0].dims[2] != -1 && inputs[0].dims[2] < c->num_heads)
        return leati_shape_unexpected(&inputs[0], "at least as many features as num_heads", err);
    outputs[0] = inputs[0];
    return LEAT_OK;
}

/* ---- Weights ---- */

static leat_status build_attention(leati_layer *layer, const attention_names *names, const leati_shape *query,
                                   const leati_shape *value, leat_error *err) {
    const config *c = layer->config;
    leati_layer *attention = leati_block_find(&c->block, names->attention);
    const leati_shape inputs[] = {*query, *value};
    leati_block_set_size(attention, "key_dim", query->dims[2] / c->num_heads);
    leati_block_set_size(attention, "value_dim", query->dims[2] / c->num_heads);
    leat_status status = leati_layer_build_inner(layer, attention, names->attention, 2, inputs, err);
    LEATI_TRY(leati_prefix(status, err, "%s", names->attention));
    return leati_block_build(layer, &c->block, names->norm, query, err);
}

static leat_status build_dense_layers(leati_layer *layer, const leati_shape *input, leat_error *err) {
    const config *c = layer->config;
    leati_shape between = *input;
    between.dims[2] = c->intermediate_dim;
    leati_block_set_size(leati_block_find(&c->block, output), "units", input->dims[2]);
    LEATI_TRY(leati_block_build(layer, &c->block, intermediate, input, err));
    return leati_block_build(layer, &c->block, output, &between, err);
}

static leat_status check_features(const leati_shape *shape, leat_error *err) {
    return shape->dims[2] > 0 ? LEAT_OK : leati_shape_unexpected(shape, "known features", err);
}

static leat_status build_encoder(leati_layer *layer, int input_count, const leati_shape *inputs,
                                 leat_error *err) {
    const config *c = layer->config;
    (void)input_count;
    LEATI_TRY(check_features(&inputs[0], err));
    LEATI_TRY(build_attention(layer, &encoder_self, &inputs[0], &inputs[0], err));
    LEATI_TRY(leati_block_build(layer, &c->block, feedforward_norm, &inputs[0], err));
    return build_dense_layers(layer, &inputs[0], err);
}

static leat_status build_decoder(leati_layer *layer, int input_count, const leati_shape *inputs,
                                 leat_error *err) {
    const config *c = layer->config;
    const places p = places_of(c);
    (void)input_count;
    LEATI_TRY(check_features(&inputs[0], err));
    LEATI_TRY(build_attention(layer, &decoder_self, &inputs[0], &inputs[0], err));
    if (p.encoder > 0) {
        LEATI_TRY(check_features(&inputs[p.encoder], err));
        LEATI_TRY(build_attention(layer, &decoder_cross, &inputs[0], &inputs[p.encoder], err));
    }
    LEATI_TRY(build_dense_layers(layer, &inputs[0], err));
    return leati_block_build(layer, &c->block, feedforward_norm, &inputs[0], err);
}

static void weight_path(const leati_layer *layer, int index, char *out, size_t bytes) {
    leati_block_weight_path(&((const config *)layer->config)->block, index, out, bytes);
}

/* ---- Ops ---- */

/* One attention: x asks, `value` (LEATI_NONE: x itself) answers.  The masks are LEATI_NONE where there is none. */
typedef struct attending {
    const attention_names *names;
    leati_value value, query_mask, value_mask, pairs;
} attending;

static leati_value call_of(const config *c, leati_lowering *lowering, const char *name, leati_value x) {
    return leati_block_call(&c->block, name, lowering, x);
}

static leati_value attend(const config *c, leati_lowering *lowering, leati_value x, const attending *a) {
    const leati_layer *attention = leati_block_find(&c->block, a->names->attention);
    const leati_value residual = x;
    if (c->normalize_first) x = call_of(c, lowering, a->names->norm, x);
    const leati_value value = a->value == LEATI_NONE ? x : a->value;
    leati_inner_call call = {.input_count = a->pairs == LEATI_NONE ? 2 : 4,
                             .output_count = 1,
                             .inputs = {x, value, value, a->pairs},
                             .masks = {a->query_mask, a->value_mask, LEATI_NONE, LEATI_NONE}};
    leati_layer_lower_inner(attention, lowering, &call);
    x = call_of(c, lowering, a->names->dropout, call.outputs[0]);
    x = leati_add(lowering->graph, x, residual);
    return c->normalize_first ? x : call_of(c, lowering, a->names->norm, x);
}

static leati_value feed_forward(const config *c, leati_lowering *lowering, leati_value x) {
    const leati_value residual = x;
    if (c->normalize_first) x = call_of(c, lowering, feedforward_norm, x);
    x = call_of(c, lowering, intermediate, x);
    x = call_of(c, lowering, output, x);
    x = leati_add(lowering->graph, call_of(c, lowering, feedforward_dropout, x), residual);
    return c->normalize_first ? x : call_of(c, lowering, feedforward_norm, x);
}

/* Returns the mask of a padding mask: 1 where it is not 0; LEATI_NONE if there is none. */
static leati_value padding_of(leati_graph *g, const leati_value *inputs, int place) {
    if (place < 0) return LEATI_NONE;
    leati_value number = leati_cast(g, inputs[place], LEAT_F32, 1);
    return leati_linear(g, leati_binary_of(g, LEATI_EQUAL, number, leati_scalar(g, 0)), -1, 1);
}

/* The mask of the input is also that of the query, because the inner layer sees it.  That layer takes it off the input,
 * so that later layers do not see it. */
static void lower_encoder(const leati_layer *layer, leati_lowering *lowering, int input_count,
                          const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    const places p = places_of(c);
    const leati_value own = lowering->input_masks[0];
    leati_value padding = padding_of(lowering->graph, inputs, p.padding);
    if (padding == LEATI_NONE || own == LEATI_NONE)
        padding = own == LEATI_NONE ? padding : own;
    else
        padding = leati_mul(lowering->graph, padding, own);
    attending a = {&encoder_self, LEATI_NONE, own, padding, p.pairs < 0 ? LEATI_NONE : inputs[p.pairs]};
    (void)input_count;
    outputs[0] = feed_forward(c, lowering, attend(c, lowering, inputs[0], &a));
    lowering->output_masks[0] = own;
    lowering->takes_masks = !c->normalize_first;
}

/* A padding mask takes the place of the mask that the sequence has. */
static void lower_decoder(const leati_layer *layer, leati_lowering *lowering, int input_count,
                          const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    const places p = places_of(c);
    leati_value padding = padding_of(g, inputs, p.padding);
    if (padding == LEATI_NONE) padding = lowering->input_masks[0];
    attending self = {&decoder_self, LEATI_NONE, LEATI_NONE, padding,
                      p.pairs < 0 ? LEATI_NONE : inputs[p.pairs]};
    (void)input_count;
    leati_value x = attend(c, lowering, inputs[0], &self);
    if (p.encoder > 0) {
        padding = padding_of(g, inputs, p.encoder_padding);
        if (padding == LEATI_NONE) padding = lowering->input_masks[p.encoder];
        attending cross = {&decoder_cross, inputs[p.encoder], LEATI_NONE, padding,
                           p.encoder_pairs < 0 ? LEATI_NONE : inputs[p.encoder_pairs]};
        x = attend(c, lowering, x, &cross);
    }
    outputs[0] = feed_forward(c, lowering, x);
    lowering->output_masks[0] = lowering->input_masks[0];
}

static const char *const encoder_arguments[] = {"inputs", "padding_mask", "attention_mask", NULL};
static const char *const decoder_arguments[] = {"decoder_sequence",
                                                "encoder_sequence",
                                                "decoder_padding_mask",
                                                "decoder_attention_mask",
                                                "encoder_padding_mask",
                                                "encoder_attention_mask",
                                                NULL},
                         *const decoder_options[] = {"use_causal_mask", NULL};

LEATI_LAYER_TYPE(transformer_encoder, "keras_hub>TransformerEncoder", "transformer_encoder", config,
                 encoder_fields, .module = "keras_hub.src.layers.modeling.transformer_encoder",
                 .min_inputs = 1, .max_inputs = 3, .arguments = encoder_arguments,
                 .masking = LEATI_MASK_COMPUTED, .check = check_encoder, .fini = fini, .infer = infer,
                 .build = build_encoder, .weight_path = weight_path, .lower = lower_encoder);
LEATI_LAYER_TYPE(transformer_decoder, "keras_hub>TransformerDecoder", "transformer_decoder", config,
                 decoder_fields, .module = "keras_hub.src.layers.modeling.transformer_decoder",
                 .min_inputs = 1, .max_inputs = 6, .arguments = decoder_arguments, .build_arguments = 2,
                 .call_options = decoder_options, .masking = LEATI_MASK_COMPUTED, .check = check_decoder,
                 .fini = fini, .infer = infer, .build = build_decoder, .weight_path = weight_path,
                 .lower = lower_decoder);
