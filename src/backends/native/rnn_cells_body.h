/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between recurrent cells: part of rnn_body.h.  A cell's forward makes h and c of a step from those before
 * it, with the products that it needs; its backward makes the gates' gradients in z, and leaves in h what flows to the
 * step before past the products (then it returns true: the products are added to that). */
#ifndef LEATI_BACKENDS_NATIVE_RNN_CELLS_BODY_H
#define LEATI_BACKENDS_NATIVE_RNN_CELLS_BODY_H

typedef void (*cell_forward)(const rnn_block *b, int64_t step, const operand *x, const operand *h);
typedef bool (*cell_backward)(const rnn_block *b, int64_t step);

typedef struct rnn_cell {
    cell_forward forward[2]; /* [1]: for Keras's own activations, whose code is in line */
    cell_backward backward[2];
    span by_h[2]; /* the gates whose product takes h; ended by to 0 */
} rnn_cell;

static vf apply(const leati_eltwise *f, vf x) {
    return f_apply(f, x);
}

static vf slope(const leati_eltwise *f, vf y) {
    return f_slope_from_dst(f, y);
}

LEATI_INLINE vf act(bool usual, const leati_eltwise *f, vf x) {
    return usual ? v_tanh(x) : apply(f, x);
}
LEATI_INLINE vf gate_act(bool usual, const leati_eltwise *f, vf x) {
    return usual ? v_sigmoid(x) : apply(f, x);
}
LEATI_INLINE vf act_slope(bool usual, const leati_eltwise *f, vf y) {
    return usual ? 1.0f - y * y : slope(f, y);
}
LEATI_INLINE vf gate_slope(bool usual, const leati_eltwise *f, vf y) {
    return usual ? y * (1.0f - y) : slope(f, y);
}

static bool usual_functions(const leati_rnn_shape *s) {
    return s->activation.function == LEATI_FN_TANH &&
           (s->cell == LEATI_CELL_SIMPLE || s->recurrent_activation.function == LEATI_FN_SIGMOID);
}

/* A step that does not count: the state stays, the output is that of the step before. */
static void forward_idle(const rnn_block *b, int64_t step, int64_t r) {
    float *sequence = step_row(b, b->job->sequence, step, r), *kept = kept_row(b, step, r);
    size_t bytes = (size_t)b->units * sizeof(float);
    if (sequence && step < b->first[r])
        memset(sequence, 0, bytes);
    else if (sequence)
        memcpy(sequence, b->h + r * b->padded, bytes);
    if (!kept) return;
    memset(kept, 0, (size_t)b->shape->kept * sizeof(float));
    if (b->shape->cell == LEATI_CELL_LSTM) memcpy(kept + 4 * b->units, b->c + r * b->padded, bytes);
}

/* The gradients of such a step: none by the gates, the others go on. */
static void backward_idle(const rnn_block *b, int64_t step, int64_t r) {
    const float *outside =
        b->job->diff_sequence && step >= b->first[r]
            ? b->job->diff_sequence + ((b->job->first + r) * b->shape->steps + step) * b->units
            : NULL;
    for (int64_t u = 0; u < b->padded; u += LEATI_LANES) {
        float *z = z_at(b, r, u), *by_h = b->h + r * b->padded + u;
        for (int64_t slot = 0; slot < leati_rnn_slots(b->shape); slot++)
            v_store(z + slot * slot_size(b), (vf){0});
        v_store(b->v + r * b->padded + u, (vf){0});
        if (outside) v_store(by_h, v_load(by_h) + v_load_part(outside + u, b->units - u));
    }
}

/* The gradient by h of a step that counts, with what comes from outside. */
LEATI_INLINE vf gradient_by_h(const rnn_block *b, int64_t step, int64_t r, int64_t u) {
    const float *outside = b->job->diff_sequence;
    vf by_h = v_load(b->h + r * b->padded + u);
    if (!outside) return by_h;
    int64_t row = (b->job->first + r) * b->shape->steps + step;
    return by_h + v_load_part(outside + row * b->units + u, b->units - u);
}

/* ---- LSTM ---- */

LEATI_INLINE void lstm_cells(const rnn_block *b, int64_t step, bool usual) {
    const leati_eltwise *g = &b->shape->activation, *f = &b->shape->recurrent_activation;
    int64_t units = b->units, gate = slot_size(b);
    for (int64_t r = 0; r < b->rows; r++) {
        if (!counts(b, step, r)) {
            forward_idle(b, step, r);
            continue;
        }
        float *sequence = step_row(b, b->job->sequence, step, r), *kept = kept_row(b, step, r);
        for (int64_t u = 0; u < units; u += LEATI_LANES) {
            const float *z = z_at(b, r, u);
            vf i = gate_act(usual, f, v_load(z)), forget = gate_act(usual, f, v_load(z + gate));
            vf candidate = act(usual, g, v_load(z + 2 * gate)), o = gate_act(usual, f, v_load(z + 3 * gate));
            vf c = forget * v_load(b->c + r * b->padded + u) + i * candidate;
            vf h = o * act(usual, g, c);
            v_store(b->c + r * b->padded + u, c);
            v_store(b->h + r * b->padded + u, h);
            if (sequence) v_store_part(sequence + u, h, units - u);
            if (!kept) continue;
            v_store_part(kept + u, i, units - u);
            v_store_part(kept + units + u, forget, units - u);
            v_store_part(kept + 2 * units + u, candidate, units - u);
            v_store_part(kept + 3 * units + u, o, units - u);
            v_store_part(kept + 4 * units + u, c, units - u);
        }
    }
}

LEATI_INLINE bool lstm_backward(const rnn_block *b, int64_t step, bool usual) {
    const leati_rnn_job *job = b->job;
    const leati_eltwise *g = &b->shape->activation, *f = &b->shape->recurrent_activation;
    int64_t units = b->units, gate = slot_size(b);
    for (int64_t r = 0; r < b->rows; r++) {
        if (!counts(b, step, r)) {
            backward_idle(b, step, r);
            continue;
        }
        const float *kept = kept_row(b, step, r);
        const float *before = step > 0  ? kept - b->shape->batch * b->shape->kept + 4 * units
                              : job->c0 ? job->c0 + (job->first + r) * units
                                        : NULL;
        for (int64_t u = 0; u < b->padded; u += LEATI_LANES) {
            float *z = z_at(b, r, u), *by_c = b->c + r * b->padded + u;
            int64_t left = units - u;
            vf i = v_load_part(kept + u, left), forget = v_load_part(kept + units + u, left);
            vf candidate = v_load_part(kept + 2 * units + u, left),
               o = v_load_part(kept + 3 * units + u, left);
            vf squashed = act(usual, g, v_load_part(kept + 4 * units + u, left));
            vf dh = gradient_by_h(b, step, r, u), c_before = before ? v_load_part(before + u, left) : (vf){0};
            vf dc = v_load(by_c) + dh * o * act_slope(usual, g, squashed);
            v_store(z, dc * candidate * gate_slope(usual, f, i));
            v_store(z + gate, dc * c_before * gate_slope(usual, f, forget));
            v_store(z + 2 * gate, dc * i * act_slope(usual, g, candidate));
            v_store(z + 3 * gate, dh * squashed * gate_slope(usual, f, o));
            v_store(by_c, dc * forget);
            if (job->steps) v_store(b->h + r * b->padded + u, (vf){0});
        }
    }
    return job->steps != NULL;
}

LEATI_INLINE void lstm_forward(const rnn_block *b, int64_t step, const operand *x, const operand *h,
                               bool usual) {
    product(b, step, (span){0, 4, 0}, x, h);
    lstm_cells(b, step, usual);
}

/* ---- GRU ---- */

/* What of h the update gate keeps. */
LEATI_INLINE vf carry_factor(const rnn_block *b, int64_t r, int64_t u) {
    return b->shape->carry_masked ? h_factor(b, 0, r, u) : v_all(1);
}

/* h of a step; z and r are activated, candidate is not. */
LEATI_INLINE void gru_mix(const rnn_block *b, int64_t step, int64_t r, int64_t u, vf update, vf reset,
                          vf candidate) {
    int64_t units = b->units, left = units - u;
    float *sequence = step_row(b, b->job->sequence, step, r), *kept = kept_row(b, step, r);
    float *state = b->h + r * b->padded + u;
    vf h = update * (v_load(state) * carry_factor(b, r, u)) + (1.0f - update) * candidate;
    v_store(state, h);
    if (sequence) v_store_part(sequence + u, h, left);
    if (!kept) return;
    v_store_part(kept + u, update, left);
    v_store_part(kept + units + u, reset, left);
    v_store_part(kept + 2 * units + u, candidate, left);
}

/* Activates z and r in place and makes r (.) h'. */
LEATI_INLINE void gru_reset(const rnn_block *b, bool usual) {
    const leati_eltwise *f = &b->shape->recurrent_activation;
    int64_t gate = slot_size(b);
    for (int64_t r = 0; r < b->rows; r++) {
        for (int64_t u = 0; u < b->units; u += LEATI_LANES) {
            float *z = z_at(b, r, u);
            vf reset = gate_act(usual, f, v_load(z + gate));
            v_store(z, gate_act(usual, f, v_load(z)));
            v_store(z + gate, reset);
            v_store(b->v + r * b->padded + u,
                    reset * v_load(b->h + r * b->padded + u) * h_factor(b, 2, r, u));
        }
    }
}

LEATI_INLINE void gru_forward(const rnn_block *b, int64_t step, const operand *x, const operand *h,
                              bool usual) {
    const leati_eltwise *g = &b->shape->activation;
    int64_t gate = slot_size(b);
    operand v = {b->v, b->padded, b->units, 0};
    product(b, step, (span){0, 2, 0}, x, h);
    gru_reset(b, usual);
    product(b, step, (span){2, 3, 2}, x, &v);
    for (int64_t r = 0; r < b->rows; r++) {
        if (!counts(b, step, r)) {
            forward_idle(b, step, r);
            continue;
        }
        for (int64_t u = 0; u < b->units; u += LEATI_LANES) {
            const float *z = z_at(b, r, u);
            gru_mix(b, step, r, u, v_load(z), v_load(z + gate), act(usual, g, v_load(z + 2 * gate)));
        }
    }
}

LEATI_INLINE void gru_after_forward(const rnn_block *b, int64_t step, const operand *x, const operand *h,
                                    bool usual) {
    const leati_eltwise *g = &b->shape->activation, *f = &b->shape->recurrent_activation;
    int64_t gate = slot_size(b), units = b->units;
    product(b, step, (span){0, 2, 0}, x, h);
    product(b, step, (span){2, 3, 2}, x, NULL);
    product(b, step, (span){2, 3, 3}, NULL, h);
    for (int64_t r = 0; r < b->rows; r++) {
        if (!counts(b, step, r)) {
            forward_idle(b, step, r);
            continue;
        }
        float *kept = kept_row(b, step, r);
        for (int64_t u = 0; u < units; u += LEATI_LANES) {
            const float *z = z_at(b, r, u);
            vf update = gate_act(usual, f, v_load(z)), reset = gate_act(usual, f, v_load(z + gate));
            vf inner = v_load(z + 3 * gate);
            if (kept) v_store_part(kept + 3 * units + u, inner, units - u);
            gru_mix(b, step, r, u, update, reset, act(usual, g, v_load(z + 2 * gate) + reset * inner));
        }
    }
}

/* z of the update gate and the candidate, and h: what the update gate keeps.  Then, reset after the product: z of the
 * others; before it: v = r (.) h'. */
LEATI_INLINE void gru_unmix(const rnn_block *b, int64_t step, bool usual, bool after) {
    const leati_eltwise *g = &b->shape->activation, *f = &b->shape->recurrent_activation;
    int64_t units = b->units, gate = slot_size(b);
    for (int64_t r = 0; r < b->rows; r++) {
        if (!counts(b, step, r)) {
            backward_idle(b, step, r);
            continue;
        }
        const float *kept = kept_row(b, step, r);
        for (int64_t u = 0; u < b->padded; u += LEATI_LANES) {
            float *z = z_at(b, r, u);
            int64_t left = units - u;
            vf update = v_load_part(kept + u, left), reset = v_load_part(kept + units + u, left);
            vf candidate = v_load_part(kept + 2 * units + u, left), carry = carry_factor(b, r, u);
            vf dh = gradient_by_h(b, step, r, u), h = v_load(b->h_before + r * b->padded + u);
            vf by_candidate = dh * (1.0f - update) * act_slope(usual, g, candidate);
            v_store(z, dh * (h * carry - candidate) * gate_slope(usual, f, update));
            v_store(z + 2 * gate, by_candidate);
            v_store(b->h + r * b->padded + u, dh * update * carry);
            if (after) {
                vf inner = v_load_part(kept + 3 * units + u, left);
                v_store(z + gate, by_candidate * inner * gate_slope(usual, f, reset));
                v_store(z + 3 * gate, by_candidate * reset);
            } else {
                v_store(b->v + r * b->padded + u, reset * h * h_factor(b, 2, r, u));
            }
        }
    }
}

/* From the gradient by r (.) h' in `part`: z of the reset gate, and what flows on to h. */
LEATI_INLINE void gru_unreset(const rnn_block *b, int64_t step, bool usual) {
    const leati_eltwise *f = &b->shape->recurrent_activation;
    int64_t units = b->units, gate = slot_size(b);
    for (int64_t r = 0; r < b->rows; r++) {
        if (!counts(b, step, r)) continue; /* part is 0 there */
        const float *kept = kept_row(b, step, r);
        for (int64_t u = 0; u < b->padded; u += LEATI_LANES) {
            float *by_h = b->h + r * b->padded + u;
            vf reset = v_load_part(kept + units + u, units - u);
            vf by_v = v_load(b->part + r * b->padded + u) * h_factor(b, 2, r, u);
            v_store(z_at(b, r, u) + gate,
                    by_v * v_load(b->h_before + r * b->padded + u) * gate_slope(usual, f, reset));
            v_store(by_h, v_load(by_h) + by_v * reset);
        }
    }
}

LEATI_INLINE bool gru_backward(const rnn_block *b, int64_t step, bool usual) {
    const span last = {2, 3, 2};
    operand v = {b->v, b->padded, b->units, 0};
    gru_unmix(b, step, usual, false);
    add_outer(b, last, &v, b->features);
    through_weights(b, last, (target){b->job->packed.by_h, NULL, b->units, b->part}, false);
    gru_unreset(b, step, usual);
    return true;
}

LEATI_INLINE bool gru_after_backward(const rnn_block *b, int64_t step, bool usual) {
    gru_unmix(b, step, usual, true);
    return true;
}

/* ---- SimpleRNN ---- */

LEATI_INLINE void simple_cells(const rnn_block *b, int64_t step, bool usual) {
    int64_t units = b->units;
    for (int64_t r = 0; r < b->rows; r++) {
        if (!counts(b, step, r)) {
            forward_idle(b, step, r);
            continue;
        }
        float *sequence = step_row(b, b->job->sequence, step, r), *kept = kept_row(b, step, r);
        for (int64_t u = 0; u < units; u += LEATI_LANES) {
            vf h = act(usual, &b->shape->activation, v_load(z_at(b, r, u)));
            v_store(b->h + r * b->padded + u, h);
            if (sequence) v_store_part(sequence + u, h, units - u);
            if (kept) v_store_part(kept + u, h, units - u);
        }
    }
}

LEATI_INLINE bool simple_backward(const rnn_block *b, int64_t step, bool usual) {
    for (int64_t r = 0; r < b->rows; r++) {
        if (!counts(b, step, r)) {
            backward_idle(b, step, r);
            continue;
        }
        const float *kept = kept_row(b, step, r);
        for (int64_t u = 0; u < b->padded; u += LEATI_LANES) {
            vf h = v_load_part(kept + u, b->units - u);
            v_store(z_at(b, r, u), gradient_by_h(b, step, r, u) * act_slope(usual, &b->shape->activation, h));
            v_store(b->h + r * b->padded + u, (vf){0});
        }
    }
    return b->job->steps != NULL;
}

LEATI_INLINE void simple_forward(const rnn_block *b, int64_t step, const operand *x, const operand *h,
                                 bool usual) {
    product(b, step, (span){0, 1, 0}, x, h);
    simple_cells(b, step, usual);
}

/* ---- The table ---- */

/* A cell's functions, with the activations known to be the usual ones and not. */
#define CELL_FUNCTIONS(cell)                                                                                 \
    static void cell##_forward_usual(const rnn_block *b, int64_t step, const operand *x, const operand *h) { \
        cell##_forward(b, step, x, h, true);                                                                 \
    }                                                                                                        \
    static void cell##_forward_any(const rnn_block *b, int64_t step, const operand *x, const operand *h) {   \
        cell##_forward(b, step, x, h, false);                                                                \
    }                                                                                                        \
    static bool cell##_backward_usual(const rnn_block *b, int64_t step) {                                    \
        return cell##_backward(b, step, true);                                                               \
    }                                                                                                        \
    static bool cell##_backward_any(const rnn_block *b, int64_t step) {                                      \
        return cell##_backward(b, step, false);                                                              \
    }
CELL_FUNCTIONS(lstm)
CELL_FUNCTIONS(gru)
CELL_FUNCTIONS(gru_after)
CELL_FUNCTIONS(simple)
#undef CELL_FUNCTIONS

static const rnn_cell rnn_cells[LEATI_CELL_COUNT] = {
    [LEATI_CELL_LSTM] = {{lstm_forward_any, lstm_forward_usual},
                         {lstm_backward_any, lstm_backward_usual},
                         {{0, 4, 0}}},
    [LEATI_CELL_GRU] = {{gru_forward_any, gru_forward_usual},
                        {gru_backward_any, gru_backward_usual},
                        {{0, 2, 0}}},
    [LEATI_CELL_GRU_RESET_AFTER] = {{gru_after_forward_any, gru_after_forward_usual},
                                    {gru_after_backward_any, gru_after_backward_usual},
                                    {{0, 2, 0}, {2, 3, 3}}},
    [LEATI_CELL_SIMPLE] = {{simple_forward_any, simple_forward_usual},
                           {simple_backward_any, simple_backward_usual},
                           {{0, 1, 0}}},
};

#endif
