/* SPDX-License-Identifier: Apache-2.0 */
/* TokenAndPositionEmbedding: the sum of a ReversibleEmbedding of indices (..., T) and of a PositionEmbedding of their
 * steps.  Source: keras_hub.layers.TokenAndPositionEmbedding. */
#include "base/error.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/hub/block.h"
#include "nn/layers/hub/positions.h"
#include "nn/layers/types.h"

typedef struct config {
    int64_t vocabulary_size, sequence_length, embedding_dim, start_index;
    leati_initializer *embeddings_initializer;
    bool tie_weights, mask_zero, positions;
    leati_block block;
} config;

static const leati_field fields[] = {LEATI_INT_FIELD(config, vocabulary_size, 1, NULL),
                                     LEATI_INT_FIELD(config, sequence_length, 1, NULL),
                                     LEATI_INT_FIELD(config, embedding_dim, 1, NULL),
                                     LEATI_FIELD(config, embeddings_initializer, LEATI_FIELD_INITIALIZER,
                                                 "\"uniform\""),
                                     LEATI_FIELD(config, tie_weights, LEATI_FIELD_BOOL, "true"),
                                     LEATI_FIELD(config, mask_zero, LEATI_FIELD_BOOL, "false"),
                                     LEATI_POSITIONS_FIELDS(config, true),
                                     {.key = NULL}};
static const char token[] = "token_embedding", position[] = "position_embedding";

static leat_status check(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    json_t *initializer = NULL;
    LEATI_TRY(leati_initializer_write(c->embeddings_initializer, &initializer, err));
    json_t *tokens =
        json_pack("{s:I, s:I, s:O, s:b, s:b}", "input_dim", (json_int_t)c->vocabulary_size, "output_dim",
                  (json_int_t)c->embedding_dim, "embeddings_initializer", initializer, "tie_weights",
                  (int)c->tie_weights, "mask_zero", (int)c->mask_zero);
    json_t *steps =
        json_pack("{s:I, s:O, s:I, s:b}", "sequence_length", (json_int_t)c->sequence_length, "initializer",
                  initializer, "start_index", (json_int_t)c->start_index, "positions", (int)c->positions);
    json_decref(initializer);
    leat_status status =
        leati_block_add(layer, &c->block, &leati_layer_reversible_embedding, token, token, tokens, err);
    if (status == LEAT_OK)
        return leati_block_add(layer, &c->block, &leati_layer_position_embedding, position, position, steps,
                               err);
    json_decref(steps);
    return status;
}

static void fini(void *layer_config) {
    leati_block_fini(&((config *)layer_config)->block);
}

/* Returns the shapes of the inputs of the inner PositionEmbedding. */
static leat_status step_inputs(const config *c, int input_count, const leati_shape *inputs, leati_shape *out,
                               leat_error *err) {
    int count = 0;
    leati_shape tokens[LEATI_LAYER_MAX_OUTPUTS];
    LEATI_TRY(leati_layer_infer(leati_block_find(&c->block, token), 1, inputs, tokens, &count, err));
    out[0] = tokens[0];
    if (input_count == 2) out[1] = inputs[1];
    return LEAT_OK;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    leati_shape both[2];
    LEATI_TRY(step_inputs(c, input_count, inputs, both, err));
    return leati_layer_infer(leati_block_find(&c->block, position), input_count, both, outputs, output_count,
                             err);
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const config *c = layer->config;
    leati_shape both[2];
    LEATI_TRY(step_inputs(c, input_count, inputs, both, err));
    LEATI_TRY(leati_block_build(layer, &c->block, token, &inputs[0], err));
    return leati_block_build(layer, &c->block, position, &both[0], err);
}

static void weight_path(const leati_layer *layer, int index, char *out, size_t bytes) {
    leati_block_weight_path(&((const config *)layer->config)->block, index, out, bytes);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_inner_call tokens = {.input_count = 1, .output_count = 1, .inputs = {inputs[0]}};
    tokens.masks[0] = LEATI_NONE;
    leati_layer_lower_inner(leati_block_find(&c->block, token), lowering, &tokens);
    leati_inner_call steps = {.input_count = input_count,
                              .output_count = 1,
                              .inputs = {tokens.outputs[0], input_count == 2 ? inputs[1] : LEATI_NONE},
                              .masks = {LEATI_NONE, LEATI_NONE}};
    leati_layer_lower_inner(leati_block_find(&c->block, position), lowering, &steps);
    outputs[0] = leati_add(lowering->graph, tokens.outputs[0], steps.outputs[0]);
    leati_value mask = tokens.output_masks[0];
    lowering->output_masks[0] = mask == LEATI_NONE ? lowering->input_masks[0] : mask;
}

LEATI_LAYER_TYPE(token_and_position_embedding, "keras_hub>TokenAndPositionEmbedding",
                 "token_and_position_embedding", config, fields,
                 .module = "keras_hub.src.layers.modeling.token_and_position_embedding", .min_inputs = 1,
                 .max_inputs = 2, .arguments = leati_positions_arguments,
                 .call_options = leati_positions_options, .indices = true, .masking = LEATI_MASK_COMPUTED,
                 .check = check, .fini = fini, .infer = infer, .build = build, .weight_path = weight_path,
                 .lower = lower);
