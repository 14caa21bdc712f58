/* SPDX-License-Identifier: Apache-2.0 */
/* Code that SimpleRNN, GRU and LSTM share: configuration, shapes, weights, dropout, masks, states and lowering.  The
 * file of each layer has its keys and its cell. */
#ifndef LEATI_NN_LAYERS_RNN_LSTM_GRU_COMMON_H
#define LEATI_NN_LAYERS_RNN_LSTM_GRU_COMMON_H

#include "nn/layers/rnn/rnn_common.h"

typedef struct leati_recurrent {
    leati_recurrence recurrence; /* for a cell inside an RNN layer: zeroed except state_count */
    leati_cell cell;             /* set by check */
    bool unrolled;               /* set by check: the RNN op does not support these activations */
    bool flat_biases;            /* set by check: two biases, one after the other, as in cuDNN */
    int64_t units;
    leati_activation activation, recurrent_activation;
    bool use_bias, unit_forget_bias, reset_after;
    leati_weight_config kernel, recurrent, bias;
    double dropout, recurrent_dropout;
    int64_t implementation; /* number of dropout masks: 1: one for each gate; 2: one for all gates */
    leati_initializer forget_bias, recurrent_identity; /* initialized by build */
} leati_recurrent;

/* The fields of a cell, and those of a layer with a cell. */
#define LEATI_CELL_FIELDS                                                                                    \
    LEATI_INT_FIELD(leati_recurrent, units, 1, NULL),                                                        \
        LEATI_FIELD(leati_recurrent, activation, LEATI_FIELD_ACTIVATION, "\"tanh\""),                        \
        LEATI_FIELD(leati_recurrent, use_bias, LEATI_FIELD_BOOL, "true"),                                    \
        LEATI_WEIGHT_FIELDS(leati_recurrent, kernel, "kernel", "\"glorot_uniform\""),                        \
        LEATI_WEIGHT_FIELDS(leati_recurrent, recurrent, "recurrent", "\"orthogonal\""),                      \
        LEATI_WEIGHT_FIELDS(leati_recurrent, bias, "bias", "\"zeros\""),                                     \
        LEATI_FIELD(leati_recurrent, dropout, LEATI_FIELD_FLOAT, "0.0"),                                     \
        LEATI_FIELD(leati_recurrent, recurrent_dropout, LEATI_FIELD_FLOAT, "0.0")
#define LEATI_GATED_CELL_FIELDS                                                                              \
    LEATI_FIELD(leati_recurrent, recurrent_activation, LEATI_FIELD_ACTIVATION, "\"sigmoid\""),               \
        LEATI_INT_FIELD(leati_recurrent, implementation, 0, "2")
#define LEATI_RECURRENT_FIELDS                                                                               \
    LEATI_RECURRENCE_FIELDS(leati_recurrent),                                                                \
        LEATI_RECURRENCE_FIELD(leati_recurrent, unroll, LEATI_FIELD_BOOL, "false"),                          \
        LEATI_RECURRENCE_FIELD(leati_recurrent, activity_regularizer, LEATI_FIELD_REGULARIZER, "null")

/* For check: checks what no field can say, for a configuration of that cell. */
leat_status leati_recurrent_check(leati_layer *layer, leati_cell cell, leat_error *err);

/* For build: declares a cell's weights, for steps of `features` features. */
leat_status leati_recurrent_add_weights(leati_layer *layer, int64_t features, leat_error *err);

/* Weights for the steps of a cell: those of the layer, or others (bias LEATI_NONE: no bias). */
typedef struct leati_recurrent_values {
    leati_value kernel, recurrent, bias;
} leati_recurrent_values;
leati_recurrent_values leati_recurrent_layer_weights(const leati_layer *layer,
                                                     const leati_lowering *lowering);
void leati_recurrent_run(const leati_layer *layer, leati_lowering *lowering,
                         const leati_recurrent_values *weights, leati_scan_call *call);

/* The `shapes` of a leati_scan. */
leat_status leati_recurrent_shapes(const leati_layer *layer, const leati_shape *input, leati_shape *output,
                                   leati_shape *states, leat_error *err);

leat_status leati_recurrent_infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                                  leati_shape *outputs, int *output_count, leat_error *err);
leat_status leati_recurrent_build(leati_layer *layer, int input_count, const leati_shape *inputs,
                                  leat_error *err);
void leati_recurrent_weight_path(const leati_layer *layer, int index, char *out, size_t bytes);
void leati_recurrent_lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                           const leati_value *inputs, leati_value *outputs);

/* For LEATI_LAYER_TYPE: members that all recurrent layers with a cell have in common. */
#define LEATI_RECURRENT_MEMBERS                                                                              \
    .min_inputs = 1, .max_inputs = 3, .masking = LEATI_MASK_COMPUTED, .check = check,                        \
    .infer = leati_recurrent_infer, .build = leati_recurrent_build,                                          \
    .weight_path = leati_recurrent_weight_path, .lower = leati_recurrent_lower

/* For LEATI_LAYER_TYPE: members that all cells have in common.  A cell is inside an RNN layer and cannot be called by
 * itself. */
#define LEATI_CELL_MEMBERS .check = check, .build = leati_recurrent_build
bool leati_recurrent_is_cell(const leati_layer_type *type);

#endif
