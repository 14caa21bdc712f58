/* SPDX-License-Identifier: Apache-2.0 */
/* What SimpleRNN, GRU and LSTM share: their configuration, shapes, weights, dropout, masks, states and lowering.  A file
 * of theirs says which keys they have and which cell they are. */
#ifndef LEATI_NN_LAYERS_RECURRENT_H
#define LEATI_NN_LAYERS_RECURRENT_H

#include "nn/layers/rows.h"

typedef struct leati_recurrent {
    leati_cell cell; /* set by check */
    int64_t units;
    leati_activation activation, recurrent_activation;
    bool use_bias, unit_forget_bias, reset_after;
    leati_part kernel, recurrent, bias;
    leati_regularizer activity_regularizer;
    double dropout, recurrent_dropout;
    int64_t implementation; /* how dropout draws: 1 per gate, 2 one mask for all */
    bool return_sequences, return_state, go_backwards, stateful, unroll;
    leati_initializer forget_bias, recurrent_identity; /* made by build */
} leati_recurrent;

/* The keys of a cell, and those of a layer around it. */
#define LEATI_CELL_ROWS                                                                                      \
    LEATI_INT_ROW(leati_recurrent, units, 1, NULL),                                                          \
        LEATI_ROW(leati_recurrent, activation, LEATI_FIELD_ACTIVATION, "\"tanh\""),                          \
        LEATI_ROW(leati_recurrent, use_bias, LEATI_FIELD_BOOL, "true"),                                      \
        LEATI_PART_ROWS(leati_recurrent, kernel, "kernel", "\"glorot_uniform\""),                            \
        LEATI_PART_ROWS(leati_recurrent, recurrent, "recurrent", "\"orthogonal\""),                          \
        LEATI_PART_ROWS(leati_recurrent, bias, "bias", "\"zeros\""),                                         \
        LEATI_ROW(leati_recurrent, dropout, LEATI_FIELD_FLOAT, "0.0"),                                       \
        LEATI_ROW(leati_recurrent, recurrent_dropout, LEATI_FIELD_FLOAT, "0.0")
#define LEATI_GATED_CELL_ROWS                                                                                \
    LEATI_ROW(leati_recurrent, recurrent_activation, LEATI_FIELD_ACTIVATION, "\"sigmoid\""),                 \
        LEATI_INT_ROW(leati_recurrent, implementation, 0, "2")
#define LEATI_RECURRENT_ROWS                                                                                 \
    LEATI_ROW(leati_recurrent, return_sequences, LEATI_FIELD_BOOL, "false"),                                 \
        LEATI_ROW(leati_recurrent, return_state, LEATI_FIELD_BOOL, "false"),                                 \
        LEATI_ROW(leati_recurrent, go_backwards, LEATI_FIELD_BOOL, "false"),                                 \
        LEATI_ROW(leati_recurrent, stateful, LEATI_FIELD_BOOL, "false"),                                     \
        LEATI_ROW(leati_recurrent, unroll, LEATI_FIELD_BOOL, "false"),                                       \
        LEATI_ROW(leati_recurrent, activity_regularizer, LEATI_FIELD_REGULARIZER, "null")

/* For check: what no row says, of a configuration of that cell. */
leat_status leati_recurrent_check(leati_layer *layer, leati_cell cell, leat_error *err);

/* How many states the layer has: 1, or 2 of an LSTM. */
int leati_recurrent_states(const leati_recurrent *config);

leat_status leati_recurrent_infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                                  leati_shape *outputs, int *output_count, leat_error *err);
leat_status leati_recurrent_build(leati_layer *layer, int input_count, const leati_shape *inputs,
                                  leat_error *err);
void leati_recurrent_place(const leati_layer *layer, int index, char *out, size_t bytes);
void leati_recurrent_lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                           const leati_value *inputs, leati_value *outputs);

/* The rest of a layer's row. */
#define LEATI_RECURRENT_TYPE                                                                                 \
    .config_bytes = sizeof(leati_recurrent), .fields = fields, .min_inputs = 1, .max_inputs = 3,             \
    .masking = LEATI_MASK_OWN, .check = check, .infer = leati_recurrent_infer,                               \
    .build = leati_recurrent_build, .place = leati_recurrent_place, .lower = leati_recurrent_lower

/* A cell's row, for RNN around it: no layer by itself, it takes no inputs. */
#define LEATI_CELL_TYPE                                                                                      \
    .config_bytes = sizeof(leati_recurrent), .fields = cell_fields, .check = check,                          \
    .build = leati_recurrent_build
bool leati_recurrent_is_cell(const leati_layer_type *type);

#endif
