/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM_CELL and LSTM_CELL_BWD, for the code that is compiled once per instruction set: the activations of rnn_tmpl.h,
 * over rows of 4 U sums and U states.  The range counts rows. */
#ifndef LEATI_BACKENDS_NATIVE_RNN_CELL_TMPL_H
#define LEATI_BACKENDS_NATIVE_RNN_CELL_TMPL_H

#include "backends/native/elementwise/jobs.h"
#include "backends/native/rnn/rnn_tmpl.h"

/* Stores a vector where the row has `left` more elements; the tensor may be absent. */
LEATI_INLINE void cell_store(float *to, int64_t at, vf x, int64_t left) {
    if (to) v_store_part(to + at, x, left);
}
LEATI_INLINE vf cell_load(const float *from, int64_t at, int64_t left) {
    return from ? v_load_part(from + at, left) : (vf){0};
}

LEATI_INLINE void cell_rows(const leati_range_job *job, int64_t first, int64_t last, functions_kind kind) {
    const leati_eltwise *g = &job->attrs->rnn.activation, *f = &job->attrs->rnn.recurrent_activation;
    const int64_t units = job->cell.units;
    for (int64_t row = first; row < last; ++row)
        for (int64_t u = 0; u < units; u += LEATI_LANES) {
            const int64_t left = units - u, at = row * units + u, sums = row * 4 * units + u;
            const float *z = job->in[0] + sums;
            vf i = activate_gate(kind, f, v_load_part(z, left)),
               forget = activate_gate(kind, f, v_load_part(z + units, left)),
               candidate = activate(kind, g, v_load_part(z + 2 * units, left)),
               o = activate_gate(kind, f, v_load_part(z + 3 * units, left));
            vf c = forget * cell_load(job->in[1], at, left) + i * candidate;
            cell_store(job->out[LEATI_LSTM_H], at, o * activate(kind, g, c), left);
            cell_store(job->out[LEATI_LSTM_C], at, c, left);
            if (!job->attrs->rnn.training) continue;
            float *gates = job->out[LEATI_LSTM_GATES];
            cell_store(gates, sums, i, left);
            cell_store(gates, sums + units, forget, left);
            cell_store(gates, sums + 2 * units, candidate, left);
            cell_store(gates, sums + 3 * units, o, left);
        }
}

LEATI_INLINE void cell_gradients(const leati_range_job *job, int64_t first, int64_t last,
                                 functions_kind kind) {
    const leati_eltwise *g = &job->attrs->rnn.activation, *f = &job->attrs->rnn.recurrent_activation;
    const int64_t units = job->cell.units;
    for (int64_t row = first; row < last; ++row)
        for (int64_t u = 0; u < units; u += LEATI_LANES) {
            const int64_t left = units - u, at = row * units + u, sums = row * 4 * units + u;
            const float *gates = job->in[0] + sums;
            vf i = v_load_part(gates, left), forget = v_load_part(gates + units, left),
               candidate = v_load_part(gates + 2 * units, left), o = v_load_part(gates + 3 * units, left);
            vf activated = activate(kind, g, cell_load(job->in[2], at, left));
            vf dh = cell_load(job->in[3], at, left), before = cell_load(job->in[1], at, left);
            vf dc = cell_load(job->in[4], at, left) + dh * o * activation_slope(kind, g, activated);
            cell_store(job->out[0], sums, dc * candidate * gate_slope(kind, f, i), left);
            cell_store(job->out[0], sums + units, dc * before * gate_slope(kind, f, forget), left);
            cell_store(job->out[0], sums + 2 * units, dc * i * activation_slope(kind, g, candidate), left);
            cell_store(job->out[0], sums + 3 * units, dh * activated * gate_slope(kind, f, o), left);
            cell_store(job->out[1], at, dc * forget, left);
        }
}

static functions_kind kind_of_cell(const leati_attrs *attrs) {
    const leati_rnn_shape shape = {.cell = LEATI_CELL_LSTM,
                                   .activation = attrs->rnn.activation,
                                   .recurrent_activation = attrs->rnn.recurrent_activation};
    return kind_of(&shape);
}

static void lstm_cell(const leati_range_job *job, int64_t first, int64_t last) {
    switch (kind_of_cell(job->attrs)) {
    case KIND_SIGMOID: cell_rows(job, first, last, KIND_SIGMOID); break;
    case KIND_HARD_SIGMOID: cell_rows(job, first, last, KIND_HARD_SIGMOID); break;
    default: cell_rows(job, first, last, KIND_ANY);
    }
}

static void lstm_cell_bwd(const leati_range_job *job, int64_t first, int64_t last) {
    switch (kind_of_cell(job->attrs)) {
    case KIND_SIGMOID: cell_gradients(job, first, last, KIND_SIGMOID); break;
    case KIND_HARD_SIGMOID: cell_gradients(job, first, last, KIND_HARD_SIGMOID); break;
    default: cell_gradients(job, first, last, KIND_ANY);
    }
}

#endif
