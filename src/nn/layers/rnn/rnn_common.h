/* SPDX-License-Identifier: Apache-2.0 */
/* What all recurrent layers share, whatever their steps are made of: shapes, initial states as further inputs, states that
 * outlive a batch, masks, and which outputs there are.  A layer's own file says what a step's shapes are (leati_scan) and
 * adds the ops of all steps. */
#ifndef LEATI_NN_LAYERS_RNN_RNN_COMMON_H
#define LEATI_NN_LAYERS_RNN_RNN_COMMON_H

#include "nn/layers/common_fields.h"
#include "nn/layers/recurrence.h"

#define LEATI_MAX_STATES 32

#define LEATI_RECURRENCE_ROW(config, member, kind_, preset_)                                                 \
    {                                                                                                        \
        .key = #member, .kind = kind_,                                                                       \
        .offset = offsetof(config, recurrence) + offsetof(leati_recurrence, member), .preset = preset_       \
    }
#define LEATI_RECURRENCE_ROWS(config)                                                                        \
    LEATI_RECURRENCE_ROW(config, return_sequences, LEATI_FIELD_BOOL, "false"),                               \
        LEATI_RECURRENCE_ROW(config, return_state, LEATI_FIELD_BOOL, "false"),                               \
        LEATI_RECURRENCE_ROW(config, go_backwards, LEATI_FIELD_BOOL, "false"),                               \
        LEATI_RECURRENCE_ROW(config, stateful, LEATI_FIELD_BOOL, "false"), {                                 \
        .key = "zero_output_for_mask", .kind = LEATI_FIELD_BOOL,                                             \
        .offset = offsetof(config, recurrence) + offsetof(leati_recurrence, zero_output_for_mask),           \
        .preset = "false", .later = true                                                                     \
    }

/* The steps of one call. */
typedef struct leati_scan_call {
    leati_value x, mask;                   /* (N, T, ...), (N, T) or LEATI_NONE */
    bool go_backwards;                     /* the last step first */
    leati_value initial[LEATI_MAX_STATES]; /* LEATI_NONE, then all are: zeros */
    /* Made: outputs in the order of processing, the last of them (LEATI_NONE: to be cut out of the others), states. */
    leati_value sequence, last, states[LEATI_MAX_STATES];
} leati_scan_call;

typedef struct leati_scan {
    /* Shapes of a step's output and of the states (recurrence.state_count), from that of all steps' input. */
    leat_status (*shapes)(const leati_layer *layer, const leati_shape *input, leati_shape *output,
                          leati_shape *states, leat_error *err);
    void (*run)(const leati_layer *layer, leati_lowering *lowering, leati_scan_call *call);
} leati_scan;

leat_status leati_recurrence_infer(const leati_layer *layer, const leati_scan *scan, int input_count,
                                   const leati_shape *inputs, leati_shape *outputs, int *output_count,
                                   leat_error *err);
/* For build, when the weights are declared: the states of a stateful layer. */
leat_status leati_recurrence_build(leati_layer *layer, const leati_scan *scan, const leati_shape *inputs,
                                   leat_error *err);
void leati_recurrence_lower(const leati_layer *layer, const leati_scan *scan, leati_lowering *lowering,
                            int input_count, const leati_value *inputs, leati_value *outputs);

/* An LSTM's bias of `size` numbers as Keras's unit_forget_bias has it: the last forget gate's are 1, the others drawn. */
leat_status leati_forget_bias_draw(const leati_initializer *initializer, int64_t units, int64_t size,
                                   leat_rng *rng, float *out, leat_error *err);

/* A rate of dropout as Keras's cells take it: between 0 and 1. */
double leati_dropout_rate(double rate);

#endif
