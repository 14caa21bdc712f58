/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a recurrence as ops, one step after the other, for cells that the RNN op does not support.  The
 * products with the input are computed for all steps at once, those with the state once per step for the whole
 * batch. */
#ifndef LEATI_NN_LAYERS_RNN_RNN_UNROLLED_H
#define LEATI_NN_LAYERS_RNN_RNN_UNROLLED_H

#include "nn/layers/rnn/lstm_gru_common.h"

/* Adds the ops of one step: computes the states `after` from `before` and from x, the step's product with the input.
 * after[0] is the output. */
typedef void (*leati_step)(const void *cell, leati_graph *g, leati_value x, const leati_value *before,
                           leati_value *after);

/* Exchanges the first two axes: (N, T, ...) to (T, N, ...), and back. */
leati_value leati_steps_swap(leati_graph *g, leati_value x);

/* Adds all steps of x (T, N, ...), and fills the results of the call, of which the sequence is (N, T, ...).
 * call->initial must be values, not LEATI_NONE. */
void leati_steps_run(leati_graph *g, leati_scan_call *call, leati_value x, int state_count, leati_step step,
                     const void *cell);

/* Adds a step of an LSTM: z (N, ..., 4 U) is the sum of the gates' products; c_before may be LEATI_NONE, for 0.
 * `after` is (h, c).  `activation` is that of candidate and output, `gate` that of the gates. */
void leati_steps_lstm(const leati_lowering *lowering, leati_value z, const leati_activation *activation,
                      const leati_activation *gate, leati_value c_before, leati_value *after);

/* Returns `count` gates from gate `from` on; the last axis has (gates U) elements. */
leati_value leati_steps_gates(leati_graph *g, leati_value z, int64_t gates, int64_t from, int64_t count);

/* Adds the steps of a cell of the RNN op, from the arguments of that op. */
void leati_steps_of_cell(const leati_recurrent *c, const leati_lowering *lowering, const leati_value *args,
                         leati_scan_call *call);

#endif
