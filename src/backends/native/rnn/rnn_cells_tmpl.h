/* SPDX-License-Identifier: Apache-2.0 */
/* The differences between the recurrent cells: a part of rnn_tmpl.h.  A cell's forward function makes h and c of a
 * step from those of the step before, with the products that it needs.  Its backward function makes the gradients
 * with respect to the gates' sums in z, and leaves in b->h the gradient that flows to h of the step before without
 * a product.  It returns true where the products are to be added to that gradient, false where they replace it. */
#ifndef LEATI_BACKENDS_NATIVE_RNN_RNN_CELLS_TMPL_H
#define LEATI_BACKENDS_NATIVE_RNN_RNN_CELLS_TMPL_H

/* Activations that have inlined code: Keras's defaults, and those of older Keras. */
typedef enum { KIND_ANY, KIND_SIGMOID, KIND_HARD_SIGMOID, KINDS } functions_kind;

typedef void (*cell_forward)(const rnn_block *b, int64_t step, const strip *at, const operand *x,
                             const operand *h);
typedef bool (*cell_backward)(const rnn_block *b, int64_t step);

typedef struct rnn_cell {
    cell_forward forward[2][KINDS]; /* run one after the other over all strips; the second may be NULL */
    cell_backward backward[KINDS];
    gate_range h_gates[2], v_gates; /* gates whose product takes h, or takes r (.) h'; to 0: none */
    /* The backward function computes h_before, where all steps count and there is a step before. */
    bool computes_h_before;
} rnn_cell;

static vf apply(const leati_eltwise *f, vf x) {
    return f_apply(f, x);
}

static vf slope(const leati_eltwise *f, vf y) {
    return f_slope_from_dst(f, y);
}

/* 1 / (1 + e^-x) within 1.1e-7, computed as (1 + tanh(x / 2)) / 2 with the polynomials of v_tanh, in half of the
 * time of v_sigmoid, which needs an exponential.  Beyond 18 the result is 0 or 1. */
LEATI_INLINE vf gate_sigmoid(vf x) {
    x = v_max(v_min(x, v_all(18.04f)), v_all(-18.04f));
    vf z = x * x;
    vf p = z * (1.3319054303906341e-8f / 256) + 2.058346763078589e-5f / 64;
    vf q = z * (7.762012046441669e-7f / 64) + 3.283091355115175e-4f / 16;
    p = p * z + 3.4940335899591446e-3f / 16;
    q = q * z + 2.5871070101857185e-2f / 4;
    p = p * z + 0.13379716873168945f / 4;
    q = q * z + 0.4671303331851959f;
    p = p * z + 1.0f;
    q = q * z + 4.0f;
    return x * p / q + 0.5f;
}

LEATI_INLINE vf activate(functions_kind kind, const leati_eltwise *f, vf x) {
    return kind != KIND_ANY ? v_tanh(x) : apply(f, x);
}
LEATI_INLINE vf activate_gate(functions_kind kind, const leati_eltwise *f, vf x) {
    if (kind == KIND_HARD_SIGMOID) return v_max(v_min(f->a * x + f->b, v_all(1)), v_all(0));
    return kind == KIND_SIGMOID ? gate_sigmoid(x) : apply(f, x);
}
LEATI_INLINE vf activation_slope(functions_kind kind, const leati_eltwise *f, vf y) {
    return kind != KIND_ANY ? 1.0f - y * y : slope(f, y);
}
LEATI_INLINE vf gate_slope(functions_kind kind, const leati_eltwise *f, vf y) {
    if (kind == KIND_HARD_SIGMOID)
        return v_select((vi)(y > v_all(0)) & (vi)(y < v_all(1)), v_all(f->a), v_all(0));
    return kind == KIND_SIGMOID ? y * (1.0f - y) : slope(f, y);
}

static functions_kind kind_of(const leati_rnn_shape *s) {
    leati_function gate = s->cell == LEATI_CELL_SIMPLE ? LEATI_FN_SIGMOID : s->recurrent_activation.function;
    if (s->activation.function != LEATI_FN_TANH) return KIND_ANY;
    return gate == LEATI_FN_SIGMOID        ? KIND_SIGMOID
           : gate == LEATI_FN_HARD_SIGMOID ? KIND_HARD_SIGMOID
                                           : KIND_ANY;
}

/* One vector of LEATI_LANES units of one row, at one step. */
typedef struct position {
    int64_t step, r, u, row; /* row: r * padded + u */
    int64_t left, width;     /* left: units from u on; width: of a part of the workspace */
    float *z, *kept;         /* slot 0; the first part in the workspace, or NULL */
    int64_t slot;            /* floats from one slot to the next */
    int64_t gathered;        /* backward: from `row` to its place among the gathered rows */
    bool bypass_cache;       /* write the workspace with non-temporal stores */
} position;

typedef void (*position_function)(const rnn_block *b, const position *at, functions_kind kind);

/* Load and store a part of the workspace at a position; lanes without a unit are 0. */
LEATI_INLINE vf kept_part(const position *at, int64_t part) {
    return v_load_part(at->kept + part * at->width, at->left);
}
LEATI_INLINE void store_kept(const position *at, int64_t part, vf x) {
    float *to = at->kept + part * at->width;
    if (at->bypass_cache)
        v_store_past(to, x);
    else
        v_store_part(to, x, at->left);
}

/* Prefetches into the L2 cache what the workspace keeps of the step before the previous one. */
LEATI_INLINE void prefetch_kept(const rnn_block *b, const position *at) {
    if (at->step < 2) return;
    const float *kept = at->kept - 2 * b->shape->batch * b->shape->kept;
    for (int64_t i = 0; i < b->parts; i++) __builtin_prefetch(kept + i * at->width, 0, 2);
}

/* A masked step: the state stays as it is. */
LEATI_INLINE void forward_idle(const rnn_block *b, const position *at, functions_kind kind) {
    (void)kind;
    v_store(b->h_next + at->row, v_load(b->h + at->row));
    for (int64_t i = 0; at->kept && i < b->parts; i++) {
        bool is_c = b->shape->cell == LEATI_CELL_LSTM && i == 4;
        store_kept(at, i, is_c ? v_load(b->c + at->row) : (vf){0});
    }
}

LEATI_INLINE void do_nothing(const rnn_block *b, const position *at, functions_kind kind) {
    (void)b, (void)at, (void)kind;
}

/* Calls `mix` for every position of a strip, or `idle` where the step does not count. */
LEATI_INLINE void forward_positions(const rnn_block *b, int64_t step, const strip *s, functions_kind kind,
                                    position_function mix, position_function idle) {
    position at = {.step = step, .slot = b->z_slot, .bypass_cache = b->bypass_cache};
    float *z = b->x_products ? b->z + s->from / LEATI_PANEL * b->slots * at.slot : b->z;
    for (int64_t from = s->from; from < s->to; from += LEATI_PANEL, z += b->slots * at.slot) {
        float *kept = b->job->workspace ? kept_at(b, step, s->first, from) : NULL;
        at.width = kept_width(b, from);
        for (int64_t i = 0; i < s->rows; i++)
            for (int64_t v = 0; v < LEATI_PANEL; v += LEATI_LANES) {
                at.r = s->first + i;
                at.u = from + v;
                at.row = at.r * b->padded + at.u;
                at.left = b->units - at.u;
                at.z = z + i * b->z_row + v;
                at.kept = kept ? kept + i * b->parts * at.width + v : NULL;
                if (step_counts(b, step, at.r))
                    mix(b, &at, kind);
                else
                    idle(b, &at, kind);
            }
    }
}

/* Returns the gradient with respect to h of this step: what flows back from the next step, plus the gradient of the
 * op's sequence. */
LEATI_INLINE vf h_gradient(const rnn_block *b, const position *at) {
    const float *outside = b->job->diff_sequence;
    vf gradient = v_load(b->h + at->row);
    if (!outside) return gradient;
    int64_t row = (b->job->first + at->r) * b->shape->steps + at->step;
    return gradient + v_load_part(outside + row * b->units + at->u, at->left);
}

/* The gradients of a masked step: 0 with respect to the gates; those with respect to h and c pass on unchanged. */
LEATI_INLINE void backward_idle(const rnn_block *b, const position *at) {
    for (int64_t slot = 0; slot < b->slots; slot++) v_store(at->z + slot * at->slot, (vf){0});
    v_store(b->v + at->gathered + at->row, (vf){0});
    if (at->step >= b->first[at->r]) v_store(b->h + at->row, h_gradient(b, at));
}

LEATI_INLINE void backward_positions(const rnn_block *b, int64_t step, functions_kind kind,
                                     position_function gradients, position_function idle) {
    position at = {.step = step, .slot = slot_size(b), .gathered = b->at * b->padded};
    for (int64_t from = 0; from < b->units; from += LEATI_PANEL) {
        float *kept = kept_at(b, step, 0, from);
        at.width = kept_width(b, from);
        for (at.r = 0; at.r < b->rows; at.r++, kept += b->parts * at.width)
            for (int64_t v = 0; v < LEATI_PANEL; v += LEATI_LANES) {
                at.u = from + v;
                at.row = at.r * b->padded + at.u;
                at.left = b->units - at.u;
                at.z = z_at(b, at.r, at.u);
                at.kept = kept + v;
                if (step_counts(b, step, at.r))
                    gradients(b, &at, kind);
                else
                    idle(b, &at, kind);
            }
    }
}

LEATI_INLINE void masked_gradients(const rnn_block *b, const position *at, functions_kind kind) {
    (void)kind;
    backward_idle(b, at);
}

/* ---- LSTM ---- */

/* Computes c, and stores the activated output gate o over its sum in z. */
LEATI_INLINE void lstm_gates(const rnn_block *b, const position *at, functions_kind kind) {
    const leati_eltwise *g = &b->shape->activation, *f = &b->shape->recurrent_activation;
    float *z = at->z;
    vf i = activate_gate(kind, f, v_load(z)), forget = activate_gate(kind, f, v_load(z + at->slot));
    vf candidate = activate(kind, g, v_load(z + 2 * at->slot)),
       o = activate_gate(kind, f, v_load(z + 3 * at->slot));
    vf c = forget * v_load(b->c + at->row) + i * candidate;
    v_store(b->c + at->row, c);
    v_store(z + 3 * at->slot, o);
    if (!at->kept) return;
    store_kept(at, 0, i);
    store_kept(at, 1, forget);
    store_kept(at, 2, candidate);
    store_kept(at, 3, o);
    store_kept(at, 4, c);
}

/* Computes h = o (.) g(c), in a separate loop: g(c) has to wait for c, and the processor could compute little else
 * meanwhile. */
LEATI_INLINE void lstm_output(const rnn_block *b, const position *at, functions_kind kind) {
    vf activated_c = activate(kind, &b->shape->activation, v_load(b->c + at->row));
    v_store(b->h_next + at->row, v_load(at->z + 3 * at->slot) * activated_c);
}

LEATI_INLINE void lstm_forward(const rnn_block *b, int64_t step, const strip *at, const operand *x,
                               const operand *h, functions_kind kind) {
    product(b, step, at, (gate_range){0, 4, 0}, x, h);
    forward_positions(b, step, at, kind, lstm_gates, forward_idle);
    forward_positions(b, step, at, kind, lstm_output, do_nothing);
}

/* True for a single step of a single sample whose weights lie in lines. */
static bool is_lone_step(const leati_rnn_job *job) {
    return job->packed.lines && job->shape->cell == LEATI_CELL_LSTM && job->shape->steps == 1 &&
           !job->steps && !job->workspace && job->h0 && job->c0;
}

/* Computes the cells of a panel that begins at unit `from`, whose sums are z. */
LEATI_INLINE void lone_cells(const leati_rnn_job *job, const float *z, int64_t from, functions_kind kind) {
    const leati_eltwise *g = &job->shape->activation, *f = &job->shape->recurrent_activation;
    vf c[2], o[2];
    for (int v = 0; v < 2; v++, z += LEATI_LANES) {
        const int64_t u = from + v * LEATI_LANES;
        vf i = activate_gate(kind, f, v_load(z)), forget = activate_gate(kind, f, v_load(z + LEATI_PANEL)),
           candidate = activate(kind, g, v_load(z + 2 * LEATI_PANEL));
        o[v] = activate_gate(kind, f, v_load(z + 3 * LEATI_PANEL));
        c[v] = forget * v_load_part(job->c0 + u, job->shape->units - u) + i * candidate;
    }
    for (int v = 0; v < 2; v++) {
        const int64_t u = from + v * LEATI_LANES, left = job->shape->units - u;
        vf h = o[v] * activate(kind, g, c[v]);
        if (job->c_last) v_store_part(job->c_last + u, c[v], left);
        if (job->h_last) v_store_part(job->h_last + u, h, left);
        if (job->sequence) v_store_part(job->sequence + u, h, left);
    }
}

/* Computes one step without the copies of x and of the states that a block has.  The cells of a panel do not wait for
 * the products of the next. */
LEATI_INLINE void lstm_lone_step(const leati_rnn_job *job, functions_kind kind) {
    const int64_t panels = round_up(job->shape->units) / LEATI_PANEL, panel_floats = 4 * LEATI_PANEL;
    const leati_rnn_packed *packed = &job->packed;
    line_product in = {.x = job->x,
                       .features = job->shape->features,
                       .h = job->h0,
                       .units = job->shape->units};
    float *z = job->scratch;
    for (int64_t i = 0; i < panels; i++) {
        const int64_t panel = job->run_number % 2 == 1 ? panels - 1 - i : i;
        const float *bias = packed->bias + panel * panel_floats;
        const row_sums sums = {bias, bias + 3 * LEATI_PANEL, LEATI_PANEL, z, z + 3 * LEATI_PANEL};
        in.kernel = packed->weights + panel * in.features * panel_floats;
        in.lines = lines_of(job, panel);
        lines_times_row(&in, &sums, 1, 4);
        lone_cells(job, z, panel * LEATI_PANEL, kind);
    }
}

static void lone_step(const leati_rnn_job *job) {
    switch (kind_of(job->shape)) {
    case KIND_SIGMOID: lstm_lone_step(job, KIND_SIGMOID); break;
    case KIND_HARD_SIGMOID: lstm_lone_step(job, KIND_HARD_SIGMOID); break;
    default: lstm_lone_step(job, KIND_ANY);
    }
}

/* Makes the gradients with respect to the gates.  g(c) of the step before is computed here as well: it gives that
 * step's h, and is kept for the next call. */
LEATI_INLINE void lstm_gradients(const rnn_block *b, const position *at, functions_kind kind) {
    const leati_rnn_job *job = b->job;
    const leati_eltwise *g = &b->shape->activation, *f = &b->shape->recurrent_activation;
    const float *kept_of_step_before = at->step > 0 ? at->kept - b->shape->batch * b->shape->kept : NULL;
    const float *c0 = job->c0 ? job->c0 + (job->first + at->r) * b->units + at->u : NULL;
    const float *before = kept_of_step_before ? kept_of_step_before + 4 * at->width : c0;
    bool has_activated_c = !job->steps && at->step < b->shape->steps - 1,
         computes_h_before = !job->steps && at->step > 0;
    prefetch_kept(b, at);
    vf i = kept_part(at, 0), forget = kept_part(at, 1), candidate = kept_part(at, 2), o = kept_part(at, 3);
    vf activated_c = has_activated_c ? v_load(b->activated_c + at->row) : activate(kind, g, kept_part(at, 4));
    vf dh = h_gradient(b, at), c_before = before ? v_load_part(before, at->left) : (vf){0};
    vf dc = v_load(b->c + at->row) + dh * o * activation_slope(kind, g, activated_c);
    v_store(at->z, dc * candidate * gate_slope(kind, f, i));
    v_store(at->z + at->slot, dc * c_before * gate_slope(kind, f, forget));
    v_store(at->z + 2 * at->slot, dc * i * activation_slope(kind, g, candidate));
    v_store(at->z + 3 * at->slot, dh * activated_c * gate_slope(kind, f, o));
    v_store(b->c + at->row, dc * forget);
    if (job->steps) v_store(b->h + at->row, (vf){0});
    if (!computes_h_before) return;
    activated_c = activate(kind, g, c_before);
    v_store(b->activated_c + at->row, activated_c);
    v_store(b->h_before + at->gathered + at->row,
            activated_c * v_load_part(kept_of_step_before + 3 * at->width, at->left));
}

LEATI_INLINE bool lstm_backward(const rnn_block *b, int64_t step, functions_kind kind) {
    backward_positions(b, step, kind, lstm_gradients, masked_gradients);
    return b->job->steps != NULL;
}

/* ---- GRU ---- */

/* Returns the factors of h in z (.) h: the dropout mask, where that applies to it. */
LEATI_INLINE vf h_carry_factor(const rnn_block *b, const position *at) {
    return b->shape->carry_masked ? h_factor(b, 0, at->r, at->u) : v_all(1);
}

/* Computes h of a step from the activated gates. */
LEATI_INLINE void gru_h(const rnn_block *b, const position *at, vf update, vf candidate) {
    vf carried = v_load(b->h + at->row) * h_carry_factor(b, at);
    v_store(b->h_next + at->row, update * carried + (1.0f - update) * candidate);
    if (at->kept) store_kept(at, 2, candidate);
}

LEATI_INLINE void gru_store_gates(const position *at, vf update, vf reset) {
    if (!at->kept) return;
    store_kept(at, 0, update);
    store_kept(at, 1, reset);
}

/* Activates the update and reset gates, and computes r (.) h'. */
LEATI_INLINE void gru_gates(const rnn_block *b, const position *at, functions_kind kind) {
    const leati_eltwise *f = &b->shape->recurrent_activation;
    vf update = activate_gate(kind, f, v_load(at->z)),
       reset = activate_gate(kind, f, v_load(at->z + at->slot));
    v_store(b->update + at->row, update);
    v_store(b->v + at->row, reset * v_load(b->h + at->row) * h_factor(b, 2, at->r, at->u));
    gru_store_gates(at, update, reset);
}

LEATI_INLINE void gru_reset(const rnn_block *b, int64_t step, const strip *at, const operand *x,
                            const operand *h, functions_kind kind) {
    product(b, step, at, (gate_range){0, 2, 0}, x, h);
    forward_positions(b, step, at, kind, gru_gates, gru_gates);
}

LEATI_INLINE void gru_output(const rnn_block *b, const position *at, functions_kind kind) {
    vf candidate = activate(kind, &b->shape->activation, v_load(at->z + 2 * at->slot));
    gru_h(b, at, v_load(b->update + at->row), candidate);
}

LEATI_INLINE void gru_forward(const rnn_block *b, int64_t step, const strip *at, const operand *x,
                              const operand *h, functions_kind kind) {
    operand v = {b->v, b->padded, b->units, 0};
    (void)h;
    product(b, step, at, (gate_range){2, 3, 2}, x, &v);
    forward_positions(b, step, at, kind, gru_output, forward_idle);
}

LEATI_INLINE void gru_after_output(const rnn_block *b, const position *at, functions_kind kind) {
    const leati_eltwise *g = &b->shape->activation, *f = &b->shape->recurrent_activation;
    vf update = activate_gate(kind, f, v_load(at->z)),
       reset = activate_gate(kind, f, v_load(at->z + at->slot));
    vf inner = v_load(at->z + 3 * at->slot);
    if (at->kept) store_kept(at, 3, inner);
    gru_store_gates(at, update, reset);
    gru_h(b, at, update, activate(kind, g, v_load(at->z + 2 * at->slot) + reset * inner));
}

LEATI_INLINE void gru_after_forward(const rnn_block *b, int64_t step, const strip *at, const operand *x,
                                    const operand *h, functions_kind kind) {
    if (b->job->packed.lines) {
        lines_product(b, step, true, h);
    } else if (b->x_products) {
        row_product(b, step, at, (gate_range){0, 3, 0}, true, h);
    } else {
        product(b, step, at, (gate_range){0, 2, 0}, x, h);
        product(b, step, at, (gate_range){2, 3, 2}, x, NULL);
        product(b, step, at, (gate_range){2, 3, 3}, NULL, h);
    }
    forward_positions(b, step, at, kind, gru_after_output, forward_idle);
}

/* Makes the gradients with respect to the update gate and the candidate, and leaves in h what the update gate
 * passes on. Then, where the reset comes after the product, makes those with respect to the other sums; else
 * computes v = r (.) h'. */
LEATI_INLINE void gru_gate_gradients(const rnn_block *b, const position *at, functions_kind kind,
                                     bool after) {
    const leati_eltwise *g = &b->shape->activation, *f = &b->shape->recurrent_activation;
    vf update = kept_part(at, 0), reset = kept_part(at, 1), candidate = kept_part(at, 2);
    vf dh = h_gradient(b, at), h = v_load(b->h_before + at->gathered + at->row);
    prefetch_kept(b, at);
    vf candidate_gradient = dh * (1.0f - update) * activation_slope(kind, g, candidate),
       carry = h_carry_factor(b, at);
    v_store(at->z, dh * (h * carry - candidate) * gate_slope(kind, f, update));
    v_store(at->z + 2 * at->slot, candidate_gradient);
    v_store(b->h + at->row, dh * update * carry);
    if (after) {
        v_store(at->z + at->slot, candidate_gradient * kept_part(at, 3) * gate_slope(kind, f, reset));
        v_store(at->z + 3 * at->slot, candidate_gradient * reset);
    } else {
        v_store(b->v + at->gathered + at->row, reset * h * h_factor(b, 2, at->r, at->u));
    }
}

LEATI_INLINE void gru_gradients(const rnn_block *b, const position *at, functions_kind kind) {
    gru_gate_gradients(b, at, kind, false);
}
LEATI_INLINE void gru_after_gradients(const rnn_block *b, const position *at, functions_kind kind) {
    gru_gate_gradients(b, at, kind, true);
}

/* From the gradient with respect to r (.) h', which is in b->part: makes the gradient with respect to the reset
 * gate, and adds to h what flows through r (.) h'. */
LEATI_INLINE void gru_reset_gradients(const rnn_block *b, const position *at, functions_kind kind) {
    vf reset = kept_part(at, 1), v_gradient = v_load(b->part + at->row) * h_factor(b, 2, at->r, at->u);
    vf h = v_load(b->h_before + at->gathered + at->row);
    v_store(at->z + at->slot, v_gradient * h * gate_slope(kind, &b->shape->recurrent_activation, reset));
    v_store(b->h + at->row, v_load(b->h + at->row) + v_gradient * reset);
}

LEATI_INLINE bool gru_backward(const rnn_block *b, int64_t step, functions_kind kind) {
    backward_positions(b, step, kind, gru_gradients, masked_gradients);
    through_weights(b, (gate_range){2, 3, 2},
                    (target){b->job->packed.recurrent_transposed, NULL, b->units, b->part}, false);
    backward_positions(b, step, kind, gru_reset_gradients, do_nothing);
    return true;
}

LEATI_INLINE bool gru_after_backward(const rnn_block *b, int64_t step, functions_kind kind) {
    backward_positions(b, step, kind, gru_after_gradients, masked_gradients);
    return true;
}

/* ---- SimpleRNN ---- */

LEATI_INLINE void simple_output(const rnn_block *b, const position *at, functions_kind kind) {
    vf h = activate(kind, &b->shape->activation, v_load(at->z));
    v_store(b->h_next + at->row, h);
    if (at->kept) store_kept(at, 0, h);
}

LEATI_INLINE void simple_forward(const rnn_block *b, int64_t step, const strip *at, const operand *x,
                                 const operand *h, functions_kind kind) {
    product(b, step, at, (gate_range){0, 1, 0}, x, h);
    forward_positions(b, step, at, kind, simple_output, forward_idle);
}

LEATI_INLINE void simple_gradients(const rnn_block *b, const position *at, functions_kind kind) {
    prefetch_kept(b, at);
    v_store(at->z, h_gradient(b, at) * activation_slope(kind, &b->shape->activation, kept_part(at, 0)));
    v_store(b->h + at->row, (vf){0});
}

LEATI_INLINE bool simple_backward(const rnn_block *b, int64_t step, functions_kind kind) {
    backward_positions(b, step, kind, simple_gradients, masked_gradients);
    return b->job->steps != NULL;
}

/* ---- The table ---- */

/* Instantiates a function for each kind of activations. */
#define FORWARD_KIND(name, kind)                                                                             \
    static void name##_##kind(const rnn_block *b, int64_t step, const strip *at, const operand *x,           \
                              const operand *h) {                                                            \
        name(b, step, at, x, h, kind);                                                                       \
    }
#define BACKWARD_KIND(name, kind)                                                                            \
    static bool name##_##kind(const rnn_block *b, int64_t step) {                                            \
        return name(b, step, kind);                                                                          \
    }
#define EACH_KIND(make, name) make(name, KIND_ANY) make(name, KIND_SIGMOID) make(name, KIND_HARD_SIGMOID)
EACH_KIND(FORWARD_KIND, lstm_forward)
EACH_KIND(FORWARD_KIND, gru_reset)
EACH_KIND(FORWARD_KIND, gru_forward)
EACH_KIND(FORWARD_KIND, gru_after_forward)
EACH_KIND(FORWARD_KIND, simple_forward)
EACH_KIND(BACKWARD_KIND, lstm_backward)
EACH_KIND(BACKWARD_KIND, gru_backward)
EACH_KIND(BACKWARD_KIND, gru_after_backward)
EACH_KIND(BACKWARD_KIND, simple_backward)
#undef EACH_KIND
#undef FORWARD_KIND
#undef BACKWARD_KIND

#define KINDS_OF(name)                                                                                       \
    { name##_KIND_ANY, name##_KIND_SIGMOID, name##_KIND_HARD_SIGMOID }
static const rnn_cell rnn_cells[LEATI_CELL_COUNT] = {
    [LEATI_CELL_LSTM] = {.forward = {KINDS_OF(lstm_forward)},
                         .backward = KINDS_OF(lstm_backward),
                         .h_gates = {{0, 4, 0}},
                         .computes_h_before = true},
    [LEATI_CELL_GRU] = {.forward = {KINDS_OF(gru_reset), KINDS_OF(gru_forward)},
                        .backward = KINDS_OF(gru_backward),
                        .h_gates = {{0, 2, 0}},
                        .v_gates = {2, 3, 2}},
    [LEATI_CELL_GRU_RESET_AFTER] = {.forward = {KINDS_OF(gru_after_forward)},
                                    .backward = KINDS_OF(gru_after_backward),
                                    .h_gates = {{0, 2, 0}, {2, 3, 3}}},
    [LEATI_CELL_SIMPLE] = {.forward = {KINDS_OF(simple_forward)},
                           .backward = KINDS_OF(simple_backward),
                           .h_gates = {{0, 1, 0}}},
};
#undef KINDS_OF

#endif
