/* SPDX-License-Identifier: Apache-2.0 */
/* Code that all recurrent layers share, whatever their steps compute: shapes, initial states as further inputs,
 * states that are kept between batches, masks, and the outputs.  Each layer defines the shapes of a step and adds the
 * ops of all steps (leati_scan). */
#ifndef LEATI_NN_LAYERS_RNN_RNN_COMMON_H
#define LEATI_NN_LAYERS_RNN_RNN_COMMON_H

#include "nn/layers/common_fields.h"
#include "nn/layers/recurrence.h"

#define LEATI_MAX_STATES 32

#define LEATI_RECURRENCE_FIELD(config, member, kind_, preset_)                                               \
    {                                                                                                        \
        .key = #member, .kind = kind_,                                                                       \
        .offset = offsetof(config, recurrence) + offsetof(leati_recurrence, member), .preset = preset_       \
    }
#define LEATI_RECURRENCE_FIELDS(config)                                                                      \
    LEATI_RECURRENCE_FIELD(config, return_sequences, LEATI_FIELD_BOOL, "false"),                             \
        LEATI_RECURRENCE_FIELD(config, return_state, LEATI_FIELD_BOOL, "false"),                             \
        LEATI_RECURRENCE_FIELD(config, go_backwards, LEATI_FIELD_BOOL, "false"),                             \
        LEATI_RECURRENCE_FIELD(config, stateful, LEATI_FIELD_BOOL, "false"),                                 \
        {.key = "zero_output_for_mask",                                                                      \
         .kind = LEATI_FIELD_BOOL,                                                                           \
         .offset = offsetof(config, recurrence) + offsetof(leati_recurrence, zero_output_for_mask),          \
         .preset = "false",                                                                                  \
         .later = true},                                                                                     \
    {                                                                                                        \
        .key = "as_keras3", .kind = LEATI_FIELD_BOOL,                                                        \
        .offset = offsetof(config, recurrence) + offsetof(leati_recurrence, as_keras3), .preset = "false",   \
        .later = true                                                                                        \
    }

/* All steps of one call. */
typedef struct leati_scan_call {
    leati_value x, mask;                   /* (N, T, ...), (N, T) or LEATI_NONE */
    bool go_backwards;                     /* the last step is processed first */
    leati_value initial[LEATI_MAX_STATES]; /* LEATI_NONE, for all states: zeros */
    /* Results: the outputs in the order of processing, the last output (LEATI_NONE: to be sliced from the sequence),
     * the states. */
    leati_value sequence, last, states[LEATI_MAX_STATES];
} leati_scan_call;

typedef struct leati_scan {
    /* Infers the shapes of a step's output and of the states (recurrence.state_count), from the shape of the whole
     * input. */
    leat_status (*shapes)(const leati_layer *layer, const leati_shape *input, leati_shape *output,
                          leati_shape *states, leat_error *err);
    void (*run)(const leati_layer *layer, leati_lowering *lowering, leati_scan_call *call);
} leati_scan;

leat_status leati_recurrence_infer(const leati_layer *layer, const leati_scan *scan, int input_count,
                                   const leati_shape *inputs, leati_shape *outputs, int *output_count,
                                   leat_error *err);
/* For build, after the weights are declared: declares the states of a stateful layer. */
leat_status leati_recurrence_build(leati_layer *layer, const leati_scan *scan, const leati_shape *inputs,
                                   leat_error *err);
void leati_recurrence_lower(const leati_layer *layer, const leati_scan *scan, leati_lowering *lowering,
                            int input_count, const leati_value *inputs, leati_value *outputs);

/* Draws an LSTM's bias of `size` numbers with Keras's unit_forget_bias: the last forget gate's bias is 1, the others
 * are drawn. */
leat_status leati_forget_bias_draw(const leati_initializer *initializer, int64_t units, int64_t size,
                                   leat_rng *rng, float *out, leat_error *err);

/* Clips a dropout rate to [0, 1], like Keras's cells. */
double leati_dropout_rate(double rate);

#endif
