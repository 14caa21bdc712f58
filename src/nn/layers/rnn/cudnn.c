/* SPDX-License-Identifier: Apache-2.0 */
/* CuDNNLSTM and CuDNNGRU: an LSTM, and a GRU with reset_after, whose weights have cuDNN's layout: each gate's kernels
 * are (units, inputs), and each product has its own bias.  leat computes them like LSTM and GRU.
 * Source: keras.layers.CuDNNLSTM, keras.layers.CuDNNGRU. */
#include "base/error.h"
#include "nn/layers/rnn/lstm_gru_common.h"
#include "nn/layers/types.h"

#define CUDNN_FIELDS                                                                                         \
    LEATI_RECURRENCE_FIELDS(leati_recurrent), LEATI_INT_FIELD(leati_recurrent, units, 1, NULL),              \
        LEATI_WEIGHT_FIELDS(leati_recurrent, kernel, "kernel", "\"glorot_uniform\""),                        \
        LEATI_WEIGHT_FIELDS(leati_recurrent, recurrent, "recurrent", "\"orthogonal\""),                      \
        LEATI_WEIGHT_FIELDS(leati_recurrent, bias, "bias", "\"zeros\""),                                     \
        LEATI_RECURRENCE_FIELD(leati_recurrent, activity_regularizer, LEATI_FIELD_REGULARIZER, "null")

static const leati_field gru_fields[] = {CUDNN_FIELDS, {.key = NULL}};
static const leati_field lstm_fields[] = {
    CUDNN_FIELDS, LEATI_FIELD(leati_recurrent, unit_forget_bias, LEATI_FIELD_BOOL, "true"), {.key = NULL}};

static leat_status check_as(leati_layer *layer, leati_cell cell, leat_error *err) {
    leati_recurrent *c = layer->config;
    c->activation.kind = LEATI_ACTIVATION_TANH;
    c->recurrent_activation.kind = LEATI_ACTIVATION_SIGMOID;
    c->implementation = 1;
    c->use_bias = c->flat_biases = true;
    c->reset_after = cell == LEATI_CELL_GRU_RESET_AFTER;
    return leati_recurrent_check(layer, cell, err);
}

static leat_status check_lstm(leati_layer *layer, leat_error *err) {
    return check_as(layer, LEATI_CELL_LSTM, err);
}

static leat_status check_gru(leati_layer *layer, leat_error *err) {
    return check_as(layer, LEATI_CELL_GRU_RESET_AFTER, err);
}

/* Returns the kernel of LSTM or GRU: for each gate, reads the memory of (inputs, units) as (units, inputs) and
 * transposes it. */
static leati_value kernel_of(leati_graph *g, leati_value kernel, int64_t gates) {
    const leati_desc desc = *leati_graph_desc(g, kernel);
    leati_value parts[4];
    if (desc.rank != 2) return LEATI_INVALID;
    for (int64_t i = 0; i < gates; ++i) {
        leati_value part = leati_slice_axis(g, kernel, 1, i * (desc.shape[1] / gates), desc.shape[1] / gates);
        part = leati_reshape(g, part, 2, (int64_t[]){desc.shape[1] / gates, desc.shape[0]});
        parts[i] = leati_transpose(g, part, (const int32_t[]){1, 0});
    }
    return leati_concat(g, (int)gates, parts, 1);
}

/* Returns both biases for a GRU, as two rows; their sum for an LSTM. */
static leati_value bias_of(leati_graph *g, leati_value bias, const leati_recurrent *c, int64_t gates) {
    leati_value rows = leati_reshape(g, bias, 2, (int64_t[]){2, gates * c->units});
    return c->cell == LEATI_CELL_LSTM ? leati_reduce_of(g, LEATI_REDUCE_SUM, rows, 1u, false) : rows;
}

static void run(const leati_layer *layer, leati_lowering *lowering, leati_scan_call *call) {
    const leati_recurrent *c = layer->config;
    leati_graph *g = lowering->graph;
    const int64_t gates = c->cell == LEATI_CELL_LSTM ? 4 : 3;
    const leati_recurrent_values weights = {kernel_of(g, leati_layer_weight(layer, lowering, 0), gates),
                                            kernel_of(g, leati_layer_weight(layer, lowering, 1), gates),
                                            bias_of(g, leati_layer_weight(layer, lowering, 2), c, gates)};
    leati_recurrent_run(layer, lowering, &weights, call);
}

static const leati_scan scan = {leati_recurrent_shapes, run};

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    (void)input_count;
    LEATI_TRY(leati_recurrent_add_weights(layer, inputs[0].dims[2], err));
    return leati_recurrence_build(layer, &scan, inputs, err);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    leati_recurrence_lower(layer, &scan, lowering, input_count, inputs, outputs);
}

/* Members of leati_layer_type that all types of this file have in common. */
#define COMMON_MEMBERS                                                                                       \
    .min_inputs = 1, .max_inputs = 3, .infer = leati_recurrent_infer, .build = build, .lower = lower

LEATI_LAYER_TYPE(cudnn_lstm, "CuDNNLSTM", "cu_dnnlstm", leati_recurrent, lstm_fields, .check = check_lstm,
                 COMMON_MEMBERS);
LEATI_LAYER_TYPE(cudnn_gru, "CuDNNGRU", "cu_dnngru", leati_recurrent, gru_fields, .check = check_gru,
                 COMMON_MEMBERS);
