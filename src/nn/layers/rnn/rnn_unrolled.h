/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a recurrence as ops, one step after the other: for cells that the RNN op does not have.  Products by the
 * input are made for all steps at once, those by the state once a step for the whole batch. */
#ifndef LEATI_NN_LAYERS_RNN_RNN_UNROLLED_H
#define LEATI_NN_LAYERS_RNN_RNN_UNROLLED_H

#include "nn/layers/rnn/lstm_gru_common.h"

/* Adds one step's ops: `after` from `x`, what the step has of the input, and `before`.  after[0] is the output. */
typedef void (*leati_step)(const void *cell, leati_graph *g, leati_value x, const leati_value *before,
                           leati_value *after);

/* All steps of x (N, T, ...); call->initial are values.  Fills what the call makes. */
void leati_steps_run(leati_graph *g, leati_scan_call *call, leati_value x, int state_count, leati_step step,
                     const void *cell);

/* An LSTM's step: z (N, ..., 4 U) is the sum of the gates' products, before (h, c).  Activations of the candidate and
 * the output, and of the gates. */
void leati_steps_lstm(leati_graph *g, leati_value z, const leati_activation *activation,
                      const leati_activation *gate, const leati_value *before, leati_value *after);

/* The axis `last` of size (gates U): `count` gates of it, from one on. */
leati_value leati_steps_gates(leati_graph *g, leati_value z, int64_t gates, int64_t from, int64_t count);

/* The cells of the RNN op, with its arguments. */
void leati_steps_of_cell(const leati_recurrent *c, const leati_lowering *lowering, const leati_value *args,
                         leati_scan_call *call);

#endif
