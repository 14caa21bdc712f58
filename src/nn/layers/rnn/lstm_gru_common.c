/* SPDX-License-Identifier: Apache-2.0 */
/* SimpleRNN, GRU and LSTM: the outputs are the last step or all steps, and the states if return_state is true.
 * Further inputs are the initial states.  A step that the mask excludes does not count (engine/op_semantics/op.h,
 * RNN); the outputs of all steps keep the mask.  `unroll` changes nothing.  Room: nn.
 * Source: keras.layers.recurrent. */
#include "nn/layers/rnn/lstm_gru_common.h"

#include <stdio.h>

#include <string.h>

#include "base/error.h"
#include "engine/op_semantics/function.h"
#include "engine/op_semantics/geometry.h"
#include "nn/layers/rnn/rnn_unrolled.h"

static int64_t gates_of(leati_cell cell) {
    return cell == LEATI_CELL_LSTM ? 4 : cell == LEATI_CELL_SIMPLE ? 1 : 3;
}

bool leati_recurrent_is_cell(const leati_layer_type *type) {
    return type->build == leati_recurrent_build && !type->lower;
}

/* True if the RNN op supports the activation: its backward pass computes the slope from the output of the
 * function. */
static bool in_op(const leati_activation *activation) {
    leati_eltwise f;
    return leati_activation_eltwise(activation, &f) && leati_slope_known_from_dst(&f);
}

leat_status leati_recurrent_check(leati_layer *layer, leati_cell cell, leat_error *err) {
    leati_recurrent *c = layer->config;
    c->cell = cell;
    c->recurrence.state_count = cell == LEATI_CELL_LSTM ? 2 : 1;
    c->unrolled = !in_op(&c->activation) || !in_op(&c->recurrent_activation);
    if (c->implementation > 2)
        return leati_fail(err, LEAT_EINVAL, "implementation: expected 1 or 2, received %lld",
                          (long long)c->implementation);
    if (c->implementation == 0) c->implementation = 1; /* as in Keras */
    c->dropout = leati_dropout_rate(c->dropout);
    c->recurrent_dropout = leati_dropout_rate(c->recurrent_dropout);
    return LEAT_OK;
}

leat_status leati_recurrent_shapes(const leati_layer *layer, const leati_shape *input, leati_shape *output,
                                   leati_shape *states, leat_error *err) {
    const leati_recurrent *c = layer->config;
    if (input->rank != 3) return leati_shape_unexpected(input, "a sequence (batch, steps, features)", err);
    *output = (leati_shape){.rank = 2, .dims = {input->dims[0], c->units}};
    for (int i = 0; i < c->recurrence.state_count; ++i) states[i] = *output;
    return LEAT_OK;
}

/* ---- Weights ---- */

/* Draws the bias with Keras's unit_forget_bias: the quarter of the forget gate is 1. */
static leat_status draw_bias(const void *layer_config, int rank, const int64_t *dims, leat_rng *rng,
                             float *out, leat_error *err) {
    const leati_recurrent *c = layer_config;
    (void)rank;
    return leati_forget_bias_draw(c->bias.initializer, c->units, dims[0], rng, out, err);
}

/* Like Keras, draws an identity for each gate, and ignores the gain of Identity. */
static leat_status draw_identity(const void *layer_config, int rank, const int64_t *dims, leat_rng *rng,
                                 float *out, leat_error *err) {
    (void)layer_config, (void)rank, (void)rng, (void)err;
    memset(out, 0, (size_t)(dims[0] * dims[1]) * sizeof *out);
    for (int64_t row = 0; row < dims[0]; ++row)
        for (int64_t column = row; column < dims[1]; column += dims[0]) out[row * dims[1] + column] = 1.0f;
    return LEAT_OK;
}

static const leati_initializer_type bias_type = {.class_name = "LSTM's bias",
                                                 .seed_offset = SIZE_MAX,
                                                 .draw = draw_bias};
static const leati_initializer_type identity_type = {.class_name = "an identity for each gate",
                                                     .seed_offset = SIZE_MAX,
                                                     .draw = draw_identity};

static bool is_identity(const leati_initializer *initializer) {
    return initializer && strcmp(initializer->type->class_name, "Identity") == 0;
}

static leat_status add_bias(leati_layer *layer, const leati_weight_config *bias, int64_t width,
                            leat_error *err) {
    const leati_recurrent *c = layer->config;
    bool two = c->cell == LEATI_CELL_GRU_RESET_AFTER;
    const int64_t dims[] = {2, width};
    if (!c->use_bias) return LEAT_OK;
    if (c->flat_biases) return leati_weight_config_add(layer, "bias", bias, 1, (int64_t[]){2 * width}, err);
    return leati_weight_config_add(layer, "bias", bias, two ? 2 : 1, two ? dims : &width, err);
}

leat_status leati_recurrent_add_weights(leati_layer *layer, int64_t features, leat_error *err) {
    leati_recurrent *c = layer->config;
    const int64_t gates = gates_of(c->cell), width = gates * c->units;
    leati_weight_config recurrent = c->recurrent, bias = c->bias;
    if (features < 1) return leati_fail(err, LEAT_ESHAPE, "expected a sequence whose features are known");
    if (c->units > INT32_MAX / gates)
        return leati_fail(err, LEAT_EINVAL, "units: expected at most %lld, received %lld",
                          (long long)(INT32_MAX / gates), (long long)c->units);
    c->recurrent_identity = (leati_initializer){.type = &identity_type, .config = c};
    c->forget_bias = (leati_initializer){.type = &bias_type, .config = c};
    if (gates > 1 && is_identity(recurrent.initializer)) recurrent.initializer = &c->recurrent_identity;
    if (c->unit_forget_bias && bias.initializer) bias.initializer = &c->forget_bias;
    LEATI_TRY(leati_weight_config_add(layer, "kernel", &c->kernel, 2, (int64_t[]){features, width}, err));
    LEATI_TRY(
        leati_weight_config_add(layer, "recurrent_kernel", &recurrent, 2, (int64_t[]){c->units, width}, err));
    return add_bias(layer, &bias, width, err);
}

void leati_recurrent_weight_path(const leati_layer *layer, int index, char *out, size_t bytes) {
    (void)layer;
    snprintf(out, bytes, "cell/vars/%d", index);
}

/* ---- Lowering ---- */

/* Returns dropout factors (gates, N, size), constant over time; LEATI_NONE without dropout. */
static leati_value dropout_mask(const leati_recurrent *c, leati_lowering *lowering, double rate, int64_t n,
                                int64_t size, uint64_t stream) {
    if (!leati_lowering_in_training(lowering) || !(rate > 0 && rate < 1)) return LEATI_NONE;
    const int64_t dims[] = {gates_of(c->cell), n, size};
    leati_value ones = leati_full(lowering->graph, 3, dims, 1.0f);
    uint32_t shared = c->implementation == 2 ? 1u : 0u; /* axis 0 (the gates) */
    return leati_dropout(lowering->graph, ones, (float)rate, shared, stream);
}

static leati_attrs attrs_of(const leati_recurrent *c, const leati_lowering *lowering, bool go_backwards) {
    leati_attrs attrs = {.rnn = {.cell = c->cell,
                                 .go_backwards = go_backwards,
                                 .carry_masked = c->implementation == 2,
                                 .training = lowering->mode == LEATI_TRAIN}};
    leati_activation_eltwise(&c->activation, &attrs.rnn.activation);
    leati_activation_eltwise(&c->recurrent_activation, &attrs.rnn.recurrent_activation);
    return attrs;
}

leati_recurrent_values leati_recurrent_layer_weights(const leati_layer *layer,
                                                     const leati_lowering *lowering) {
    const leati_recurrent *c = layer->config;
    return (leati_recurrent_values){leati_layer_weight(layer, lowering, 0),
                                    leati_layer_weight(layer, lowering, 1),
                                    c->use_bias ? leati_layer_weight(layer, lowering, 2) : LEATI_NONE};
}

void leati_recurrent_run(const leati_layer *layer, leati_lowering *lowering,
                         const leati_recurrent_values *weights, leati_scan_call *call) {
    const leati_recurrent *c = layer->config;
    const leati_desc desc = *leati_graph_desc(lowering->graph, call->x);
    leati_value args[LEATI_RNN_INPUTS], out[LEATI_MAX_OUTPUTS];
    leati_attrs attrs = attrs_of(c, lowering, call->go_backwards);
    int states = c->recurrence.state_count;
    for (int i = 0; i < LEATI_MAX_OUTPUTS; ++i) out[i] = LEATI_INVALID;
    for (int i = 0; i < LEATI_RNN_INPUTS; ++i) args[i] = LEATI_NONE;
    args[LEATI_RNN_X] = call->x;
    args[LEATI_RNN_KERNEL] = weights->kernel;
    args[LEATI_RNN_RECURRENT] = weights->recurrent;
    args[LEATI_RNN_BIAS] = weights->bias;
    for (int i = 0; i < states; ++i) args[LEATI_RNN_H0 + i] = call->initial[i];
    args[LEATI_RNN_X_MASK] =
        dropout_mask(c, lowering, c->dropout, desc.shape[0], desc.shape[2], lowering->stream);
    args[LEATI_RNN_H_MASK] =
        dropout_mask(c, lowering, c->recurrent_dropout, desc.shape[0], c->units, lowering->stream + 1);
    args[LEATI_RNN_STEPS] = call->mask;
    if (c->unrolled) {
        leati_steps_of_cell(c, lowering, args, call);
        return;
    }
    leati_graph_node(lowering->graph, LEATI_OP_RNN, &attrs, LEATI_RNN_INPUTS, args, out);
    call->sequence = out[LEATI_RNN_OUT_SEQUENCE];
    for (int i = 0; i < states; ++i) call->states[i] = out[LEATI_RNN_OUT_H_LAST + i];
    /* If no step counts, the last output is 0, but the last state is the initial state. */
    bool states_differ = call->mask != LEATI_NONE && call->initial[0] != LEATI_NONE;
    call->last = states_differ ? LEATI_NONE : out[LEATI_RNN_OUT_H_LAST];
}

/* ---- The layers ---- */

static void run(const leati_layer *layer, leati_lowering *lowering, leati_scan_call *call) {
    const leati_recurrent_values weights = leati_recurrent_layer_weights(layer, lowering);
    leati_recurrent_run(layer, lowering, &weights, call);
}

static const leati_scan scan = {leati_recurrent_shapes, run};

leat_status leati_recurrent_infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                                  leati_shape *outputs, int *output_count, leat_error *err) {
    return leati_recurrence_infer(layer, &scan, input_count, inputs, outputs, output_count, err);
}

leat_status leati_recurrent_build(leati_layer *layer, int input_count, const leati_shape *inputs,
                                  leat_error *err) {
    (void)input_count;
    LEATI_TRY(leati_recurrent_add_weights(layer, inputs[0].dims[2], err));
    return leati_recurrence_build(layer, &scan, inputs, err);
}

void leati_recurrent_lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                           const leati_value *inputs, leati_value *outputs) {
    leati_recurrence_lower(layer, &scan, lowering, input_count, inputs, outputs);
}
