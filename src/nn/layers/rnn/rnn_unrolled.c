/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the steps of a recurrence as ops.  Formulas: backends/ref/rnn.c.  Room: nn. */
#include "nn/layers/rnn/rnn_unrolled.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "engine/op_semantics/geometry.h"

/* ---- Time ---- */

leati_value leati_steps_swap(leati_graph *g, leati_value x) {
    const leati_desc desc = *leati_graph_desc(g, x);
    int32_t perm[LEAT_MAX_RANK] = {1, 0};
    int64_t dims[LEAT_MAX_RANK] = {0};
    if (desc.rank < 2) return LEATI_INVALID;
    for (int32_t i = 2; i < desc.rank; ++i) perm[i] = i;
    for (int32_t i = 0; i < desc.rank; ++i) dims[i] = desc.shape[perm[i]];
    if (dims[0] == 1 || dims[1] == 1) return leati_reshape(g, x, desc.rank, dims);
    return leati_transpose(g, x, perm);
}

static leati_value without_time(leati_graph *g, leati_value x) {
    const leati_desc desc = *leati_graph_desc(g, x);
    if (desc.rank < 3) return LEATI_INVALID;
    return leati_reshape(g, x, desc.rank - 1, desc.shape + 1);
}

static leati_value with_time(leati_graph *g, leati_value x) {
    const leati_desc desc = *leati_graph_desc(g, x);
    int64_t dims[LEAT_MAX_RANK + 1] = {1};
    if (desc.rank < 1 || desc.rank == LEAT_MAX_RANK) return LEATI_INVALID;
    memcpy(dims + 1, desc.shape, (size_t)desc.rank * sizeof dims[0]);
    return leati_reshape(g, x, desc.rank + 1, dims);
}

/* Splits a sequence into its steps, at most 64 parts at a time: the gradients of so many slices are joined by one
 * CONCAT (engine/graph/join_slices.c), while those of more are each padded to the length of the sequence.  Since time
 * is the first axis, a plan copies neither the slices nor the joined parts (engine/plan/alias.c). */
static void split(leati_graph *g, leati_value x, int64_t count, leati_value *out) {
    if (count == 1) {
        out[0] = without_time(g, x);
        return;
    }
    const int64_t parts = count < LEATI_MAX_CONCAT ? count : LEATI_MAX_CONCAT;
    for (int64_t i = 0; i < parts; ++i) {
        const int64_t from = count * i / parts, to = count * (i + 1) / parts;
        split(g, leati_slice_axis(g, x, 0, from, to - from), to - from, out + from);
    }
}

/* Joins steps to a sequence; overwrites the list. */
static leati_value join(leati_graph *g, leati_value *steps, int64_t count) {
    while (count > 1) {
        int64_t joined = 0;
        for (int64_t i = 0; i < count; i += LEATI_MAX_CONCAT) {
            int group = count - i < LEATI_MAX_CONCAT ? (int)(count - i) : LEATI_MAX_CONCAT;
            steps[joined++] = group == 1 ? steps[i] : leati_concat(g, group, steps + i, 0);
        }
        count = joined;
    }
    return steps[0];
}

/* ---- Masks ---- */

/* Returns m counted + (1 - m) other (LEATI_NONE: 0), with a mask m (N) of ones and zeros and values (N, ...). */
static leati_value choose(leati_graph *g, leati_value mask, leati_value counted, leati_value other) {
    int64_t dims[LEAT_MAX_RANK];
    const int rank = leati_graph_desc(g, counted)->rank;
    dims[0] = leati_graph_desc(g, counted)->shape[0];
    for (int i = 1; i < rank; ++i) dims[i] = 1;
    leati_value m = leati_reshape(g, mask, rank, dims);
    leati_value kept = leati_mul(g, m, counted);
    return other == LEATI_NONE ? kept
                               : leati_add(g, kept, leati_mul(g, leati_linear(g, m, -1.0f, 1.0f), other));
}

static leati_value mask_at(leati_graph *g, leati_value masks, int64_t step) {
    const leati_desc desc = *leati_graph_desc(g, masks);
    return leati_reshape(g, leati_slice_axis(g, masks, 1, step, 1), 1, desc.shape);
}

/* ---- All steps ---- */

static void run_steps(leati_graph *g, leati_scan_call *call, leati_value *x, int64_t count, int state_count,
                      leati_step step, const void *cell) {
    leati_value states[LEATI_MAX_STATES], after[LEATI_MAX_STATES], output = LEATI_NONE;
    memcpy(states, call->initial, sizeof states);
    for (int64_t i = 0; i < count; ++i) {
        int64_t at = call->go_backwards ? count - 1 - i : i;
        step(cell, g, x[at], states, after);
        leati_value mask = call->mask == LEATI_NONE ? LEATI_NONE : mask_at(g, call->mask, at);
        output = mask == LEATI_NONE ? after[0] : choose(g, mask, after[0], output);
        for (int j = 0; j < state_count; ++j)
            states[j] = mask == LEATI_NONE ? after[j] : choose(g, mask, after[j], states[j]);
        x[count + i] = with_time(g, output);
    }
    call->last = output;
    memcpy(call->states, states, (size_t)state_count * sizeof states[0]);
    call->sequence = leati_steps_swap(g, join(g, x + count, count));
}

void leati_steps_run(leati_graph *g, leati_scan_call *call, leati_value x, int state_count, leati_step step,
                     const void *cell) {
    const leati_desc *desc = leati_graph_desc(g, x);
    int64_t count = desc->rank > 2 ? desc->shape[0] : 0;
    if (count < 1) {
        leati_graph_fail(g, LEAT_ESHAPE, "expected at least one step");
        return;
    }
    leati_value *steps = leati_calloc((size_t)count, 2 * sizeof *steps);
    if (!steps) {
        leati_graph_fail(g, LEAT_ENOMEM, "no memory for %lld steps", (long long)count);
        return;
    }
    split(g, x, count, steps);
    run_steps(g, call, steps, count, state_count, step, cell);
    leati_free(steps);
}

/* ---- LSTM ---- */

leati_value leati_steps_gates(leati_graph *g, leati_value z, int64_t gates, int64_t from, int64_t count) {
    const leati_desc desc = *leati_graph_desc(g, z);
    if (desc.rank < 1 || count == gates) return z;
    int64_t units = desc.shape[desc.rank - 1] / gates;
    return leati_slice_axis(g, z, desc.rank - 1, from * units, count * units);
}

/* Adds the step as one op, if the plan and the activations allow it. */
static bool add_cell(const leati_lowering *lowering, leati_value z, const leati_activation *activation,
                     const leati_activation *gate, leati_value c_before, leati_value *after) {
    leati_attrs attrs = {.rnn = {.training = lowering->mode == LEATI_TRAIN}};
    leati_value inputs[] = {z, c_before}, outputs[LEATI_MAX_OUTPUTS];
    if (!lowering->on_host || !leati_activation_eltwise(activation, &attrs.rnn.activation) ||
        !leati_activation_eltwise(gate, &attrs.rnn.recurrent_activation) ||
        !leati_slope_known_from_dst(&attrs.rnn.activation) ||
        !leati_slope_known_from_dst(&attrs.rnn.recurrent_activation))
        return false;
    for (int i = 0; i < LEATI_MAX_OUTPUTS; ++i) outputs[i] = LEATI_INVALID;
    leati_graph_node(lowering->graph, LEATI_OP_LSTM_CELL, &attrs, 2, inputs, outputs);
    after[0] = outputs[LEATI_LSTM_H];
    after[1] = outputs[LEATI_LSTM_C];
    return true;
}

void leati_steps_lstm(const leati_lowering *lowering, leati_value z, const leati_activation *activation,
                      const leati_activation *gate, leati_value c_before, leati_value *after) {
    leati_graph *g = lowering->graph;
    leati_value f[4];
    if (add_cell(lowering, z, activation, gate, c_before, after)) return;
    for (int i = 0; i < 4; ++i)
        f[i] = leati_activation_lower(i == 2 ? activation : gate, g, leati_steps_gates(g, z, 4, i, 1));
    after[1] = leati_mul(g, f[0], f[2]);
    if (c_before != LEATI_NONE) after[1] = leati_add(g, leati_mul(g, f[1], c_before), after[1]);
    after[0] = leati_mul(g, f[3], leati_activation_lower(activation, g, after[1]));
}

/* ---- The cells of the RNN op ---- */

typedef struct cell {
    const leati_recurrent *config;
    const leati_lowering *lowering;
    int64_t gates;
    const leati_value *args;
    leati_value second_bias; /* GRU_RESET_AFTER: the bias of the product with the state */
} cell;

/* Multiplies v (..., width) by the columns of some gates; factors (gates, N, width) multiply v for each gate. */
static leati_value product(const cell *c, leati_graph *g, leati_value v, leati_value factors,
                           leati_value weights, int64_t from, int64_t count) {
    leati_value parts[4];
    if (factors == LEATI_NONE)
        return leati_matmul(g, v, false, leati_steps_gates(g, weights, c->gates, from, count), false,
                            LEATI_NONE);
    const leati_desc desc = *leati_graph_desc(g, factors);
    for (int64_t i = 0; i < count; ++i) {
        leati_value factor = leati_slice_axis(g, factors, 0, from + i, 1);
        factor = leati_reshape(g, factor, 2, desc.shape + 1);
        parts[i] = leati_matmul(g, leati_mul(g, v, factor), false,
                                leati_steps_gates(g, weights, c->gates, from + i, 1), false, LEATI_NONE);
    }
    return count == 1 ? parts[0] : leati_concat(g, (int)count, parts, 1);
}

static leati_value state_product(const cell *c, leati_graph *g, leati_value h, int64_t from, int64_t count) {
    return product(c, g, h, c->args[LEATI_RNN_H_MASK], c->args[LEATI_RNN_RECURRENT], from, count);
}

static leati_value factor_of(const cell *c, leati_graph *g, leati_value h, int64_t gate) {
    leati_value factors = c->args[LEATI_RNN_H_MASK];
    if (factors == LEATI_NONE) return h;
    const leati_desc desc = *leati_graph_desc(g, factors);
    leati_value factor = leati_slice_axis(g, factors, 0, gate, 1);
    return leati_mul(g, h, leati_reshape(g, factor, 2, desc.shape + 1));
}

static void step_lstm(const void *context, leati_graph *g, leati_value x, const leati_value *before,
                      leati_value *after) {
    const cell *c = context;
    leati_steps_lstm(c->lowering, leati_add(g, x, state_product(c, g, before[0], 0, 4)),
                     &c->config->activation, &c->config->recurrent_activation, before[1], after);
}

static void step_simple(const void *context, leati_graph *g, leati_value x, const leati_value *before,
                        leati_value *after) {
    const cell *c = context;
    leati_value z = leati_add(g, x, state_product(c, g, before[0], 0, 1));
    after[0] = leati_activation_lower(&c->config->activation, g, z);
}

/* Returns the product of the candidate with the state: of r (.) h', or with reset_after, r (.) (h' R + b1). */
static leati_value candidate(const cell *c, leati_graph *g, leati_value h, leati_value r,
                             leati_value h_product) {
    const leati_value *args = c->args;
    if (c->config->reset_after) return leati_mul(g, r, leati_steps_gates(g, h_product, 3, 2, 1));
    leati_value v = leati_mul(g, r, factor_of(c, g, h, 2));
    return product(c, g, v, LEATI_NONE, args[LEATI_RNN_RECURRENT], 2, 1);
}

static void step_gru(const void *context, leati_graph *g, leati_value x, const leati_value *before,
                     leati_value *after) {
    const cell *c = context;
    const leati_activation *gate = &c->config->recurrent_activation;
    bool all = c->config->reset_after;
    leati_value h = before[0], h_product = state_product(c, g, h, 0, all ? 3 : 2), zr[2];
    if (c->second_bias != LEATI_NONE) h_product = leati_add(g, h_product, c->second_bias);
    for (int i = 0; i < 2; ++i) {
        leati_value sum = leati_add(g, leati_steps_gates(g, x, 3, i, 1),
                                    leati_steps_gates(g, h_product, all ? 3 : 2, i, 1));
        zr[i] = leati_activation_lower(gate, g, sum);
    }
    leati_value sum = leati_add(g, leati_steps_gates(g, x, 3, 2, 1), candidate(c, g, h, zr[1], h_product));
    leati_value candidate_state = leati_activation_lower(&c->config->activation, g, sum);
    leati_value kept = c->config->implementation == 2 ? factor_of(c, g, h, 0) : h;
    after[0] = leati_add(g, leati_mul(g, zr[0], kept),
                         leati_mul(g, leati_linear(g, zr[0], -1.0f, 1.0f), candidate_state));
}

/* Multiplies x (N, T, F) by the kernel and adds the bias: (T, N, gates U). */
static leati_value input_product(const cell *c, leati_graph *g, leati_value bias) {
    const leati_desc desc = *leati_graph_desc(g, c->args[LEATI_RNN_X]);
    leati_value x = c->args[LEATI_RNN_X], factors = c->args[LEATI_RNN_X_MASK];
    if (desc.rank != 3) return LEATI_INVALID;
    int64_t rows = desc.shape[0] * desc.shape[1];
    if (factors != LEATI_NONE) { /* equal in all steps: (gates, T N, F) */
        const int64_t apart[] = {c->gates, 1, desc.shape[0], desc.shape[2]};
        const int64_t repeated[] = {c->gates, desc.shape[1], desc.shape[0], desc.shape[2]};
        factors = leati_broadcast(g, leati_reshape(g, factors, 4, apart), 4, repeated);
        factors = leati_reshape(g, factors, 3, (int64_t[]){c->gates, rows, desc.shape[2]});
    }
    leati_value flat = leati_reshape(g, leati_steps_swap(g, x), 2, (int64_t[]){rows, desc.shape[2]});
    leati_value z = product(c, g, flat, factors, c->args[LEATI_RNN_KERNEL], 0, c->gates);
    if (bias != LEATI_NONE) z = leati_add(g, z, bias);
    return leati_reshape(g, z, 3, (int64_t[]){desc.shape[1], desc.shape[0], c->gates * c->config->units});
}

void leati_steps_of_cell(const leati_recurrent *config, const leati_lowering *lowering,
                         const leati_value *args, leati_scan_call *call) {
    static const leati_step steps[] = {[LEATI_CELL_LSTM] = step_lstm,
                                       [LEATI_CELL_GRU] = step_gru,
                                       [LEATI_CELL_GRU_RESET_AFTER] = step_gru,
                                       [LEATI_CELL_SIMPLE] = step_simple};
    leati_graph *g = lowering->graph;
    cell c = {.config = config, .lowering = lowering, .gates = 3, .args = args, .second_bias = LEATI_NONE};
    leati_value bias = args[LEATI_RNN_BIAS];
    const int64_t state[] = {leati_graph_desc(g, call->x)->shape[0], config->units};
    if (config->cell == LEATI_CELL_LSTM) c.gates = 4;
    if (config->cell == LEATI_CELL_SIMPLE) c.gates = 1;
    if (config->cell == LEATI_CELL_GRU_RESET_AFTER && bias != LEATI_NONE) {
        const int64_t width = c.gates * config->units;
        c.second_bias = leati_reshape(g, leati_slice_axis(g, bias, 0, 1, 1), 1, &width);
        bias = leati_reshape(g, leati_slice_axis(g, bias, 0, 0, 1), 1, &width);
    }
    for (int i = 0; i < config->recurrence.state_count; ++i)
        if (call->initial[i] == LEATI_NONE) call->initial[i] = leati_full(g, 2, state, 0.0f);
    leati_steps_run(g, call, input_product(&c, g, bias), config->recurrence.state_count, steps[config->cell],
                    &c);
}
