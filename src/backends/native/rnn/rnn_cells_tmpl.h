/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between recurrent cells: part of rnn_body.h.  A cell's forward makes h and c of a step from those before
 * it, with the products that it needs; its backward makes the gates' gradients in z, and leaves in h what flows to the
 * step before past the products (then it returns true: the products are added to that). */
#ifndef LEATI_BACKENDS_NATIVE_RNN_RNN_CELLS_TMPL_H
#define LEATI_BACKENDS_NATIVE_RNN_RNN_CELLS_TMPL_H

/* Which code is in line: Keras's own activations, and those of older Keras. */
typedef enum { KIND_ANY, KIND_SIGMOID, KIND_HARD_SIGMOID, KINDS } functions_kind;

typedef void (*cell_forward)(const rnn_block *b, int64_t step, strip at, const operand *x, const operand *h);
typedef bool (*cell_backward)(const rnn_block *b, int64_t step);

typedef struct rnn_cell {
    cell_forward forward[2][KINDS]; /* one after the other over all strips; the second may be NULL */
    cell_backward backward[KINDS];
    span by_h[2], by_v; /* the gates whose product takes h, or r (.) h'; ended by to 0 */
    bool makes_h;       /* the backward function, where all steps count and there is one before */
} rnn_cell;

static vf apply(const leati_eltwise *f, vf x) {
    return f_apply(f, x);
}

static vf slope(const leati_eltwise *f, vf y) {
    return f_slope_from_dst(f, y);
}

/* 1 / (1 + e^-x) within 1.1e-7, as (1 + tanh(x / 2)) / 2 by v_tanh's fractions: half of what v_sigmoid's exponential takes.
 * Beyond 18 it is 0 or 1. */
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

LEATI_INLINE vf act(functions_kind kind, const leati_eltwise *f, vf x) {
    return kind != KIND_ANY ? v_tanh(x) : apply(f, x);
}
LEATI_INLINE vf gate_act(functions_kind kind, const leati_eltwise *f, vf x) {
    if (kind == KIND_HARD_SIGMOID) return v_max(v_min(f->a * x + f->b, v_all(1)), v_all(0));
    return kind == KIND_SIGMOID ? gate_sigmoid(x) : apply(f, x);
}
LEATI_INLINE vf act_slope(functions_kind kind, const leati_eltwise *f, vf y) {
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

/* LEATI_LANES units of one row, at a step. */
typedef struct place {
    int64_t step, r, u, row; /* row: r * padded + u */
    int64_t left, width;     /* units from u on; of a part of what is kept */
    float *z, *kept;         /* slot 0, and the first part, or NULL */
    int64_t slot;            /* from one slot to the next */
    int64_t gathered;        /* backward: from `row` to where it lies among the gathered rows */
    bool past;               /* keep: past the caches */
} place;

typedef void (*place_function)(const rnn_block *b, const place *at, functions_kind kind);

/* A row's part of what is kept, 0 where it has no unit. */
LEATI_INLINE vf kept_part(const place *at, int64_t part) {
    return v_load_part(at->kept + part * at->width, at->left);
}
LEATI_INLINE void keep(const place *at, int64_t part, vf x) {
    float *to = at->kept + part * at->width;
    if (at->past)
        v_store_past(to, x);
    else
        v_store_part(to, x, at->left);
}

/* What is kept of the step before the one before, to the second cache. */
LEATI_INLINE void fetch_ahead(const rnn_block *b, const place *at) {
    if (at->step < 2) return;
    const float *kept = at->kept - 2 * b->shape->batch * b->shape->kept;
    for (int64_t i = 0; i < b->parts; i++) __builtin_prefetch(kept + i * at->width, 0, 2);
}

/* A step that does not count: the state stays. */
LEATI_INLINE void forward_idle(const rnn_block *b, const place *at, functions_kind kind) {
    (void)kind;
    v_store(b->h_next + at->row, v_load(b->h + at->row));
    for (int64_t i = 0; at->kept && i < b->parts; i++) {
        bool is_c = b->shape->cell == LEATI_CELL_LSTM && i == 4;
        keep(at, i, is_c ? v_load(b->c + at->row) : (vf){0});
    }
}

LEATI_INLINE void leave(const rnn_block *b, const place *at, functions_kind kind) {
    (void)b, (void)at, (void)kind;
}

/* Every place of a strip: mix, or idle where the step does not count. */
LEATI_INLINE void forward_places(const rnn_block *b, int64_t step, strip s, functions_kind kind,
                                 place_function mix, place_function idle) {
    place at = {.step = step, .slot = b->z_rows * LEATI_PANEL, .past = b->past};
    float *z = b->z;
    for (int64_t from = s.from; from < s.to; from += LEATI_PANEL, z += b->slots * at.slot) {
        float *kept = b->job->workspace ? kept_at(b, step, s.first, from) : NULL;
        at.width = kept_width(b, from);
        for (int64_t i = 0; i < s.rows; i++)
            for (int64_t v = 0; v < LEATI_PANEL; v += LEATI_LANES) {
                at.r = s.first + i;
                at.u = from + v;
                at.row = at.r * b->padded + at.u;
                at.left = b->units - at.u;
                at.z = z + i * LEATI_PANEL + v;
                at.kept = kept ? kept + i * b->parts * at.width + v : NULL;
                if (counts(b, step, at.r))
                    mix(b, &at, kind);
                else
                    idle(b, &at, kind);
            }
    }
}

/* The gradient by h, with what comes from outside. */
LEATI_INLINE vf gradient_by_h(const rnn_block *b, const place *at) {
    const float *outside = b->job->diff_sequence;
    vf by_h = v_load(b->h + at->row);
    if (!outside) return by_h;
    int64_t row = (b->job->first + at->r) * b->shape->steps + at->step;
    return by_h + v_load_part(outside + row * b->units + at->u, at->left);
}

/* The gradients of a step that does not count: none by the gates, the others go on. */
LEATI_INLINE void backward_idle(const rnn_block *b, const place *at) {
    for (int64_t slot = 0; slot < b->slots; slot++) v_store(at->z + slot * at->slot, (vf){0});
    v_store(b->v + at->gathered + at->row, (vf){0});
    if (at->step >= b->first[at->r]) v_store(b->h + at->row, gradient_by_h(b, at));
}

LEATI_INLINE void backward_places(const rnn_block *b, int64_t step, functions_kind kind, place_function unmix,
                                  place_function idle) {
    place at = {.step = step, .slot = slot_size(b), .gathered = b->at * b->padded};
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
                if (counts(b, step, at.r))
                    unmix(b, &at, kind);
                else
                    idle(b, &at, kind);
            }
    }
}

LEATI_INLINE void no_gates(const rnn_block *b, const place *at, functions_kind kind) {
    (void)kind;
    backward_idle(b, at);
}

/* ---- LSTM ---- */

/* c, and o in place of its z. */
LEATI_INLINE void lstm_mix(const rnn_block *b, const place *at, functions_kind kind) {
    const leati_eltwise *g = &b->shape->activation, *f = &b->shape->recurrent_activation;
    float *z = at->z;
    vf i = gate_act(kind, f, v_load(z)), forget = gate_act(kind, f, v_load(z + at->slot));
    vf candidate = act(kind, g, v_load(z + 2 * at->slot)), o = gate_act(kind, f, v_load(z + 3 * at->slot));
    vf c = forget * v_load(b->c + at->row) + i * candidate;
    v_store(b->c + at->row, c);
    v_store(z + 3 * at->slot, o);
    if (!at->kept) return;
    keep(at, 0, i);
    keep(at, 1, forget);
    keep(at, 2, candidate);
    keep(at, 3, o);
    keep(at, 4, c);
}

/* h, in a pass of its own: g(c) waits for c so long that little else of the strip would fit beside it. */
LEATI_INLINE void lstm_out(const rnn_block *b, const place *at, functions_kind kind) {
    vf squashed = act(kind, &b->shape->activation, v_load(b->c + at->row));
    v_store(b->h_next + at->row, v_load(at->z + 3 * at->slot) * squashed);
}

LEATI_INLINE void lstm_forward(const rnn_block *b, int64_t step, strip at, const operand *x, const operand *h,
                               functions_kind kind) {
    product(b, step, at, (span){0, 4, 0}, x, h);
    forward_places(b, step, at, kind, lstm_mix, forward_idle);
    forward_places(b, step, at, kind, lstm_out, leave);
}

/* g(c) of the step before is kept for its own turn, and with o comes to the h before. */
LEATI_INLINE void lstm_unmix(const rnn_block *b, const place *at, functions_kind kind) {
    const leati_rnn_job *job = b->job;
    const leati_eltwise *g = &b->shape->activation, *f = &b->shape->recurrent_activation;
    const float *kept_before = at->step > 0 ? at->kept - b->shape->batch * b->shape->kept : NULL;
    const float *c0 = job->c0 ? job->c0 + (job->first + at->r) * b->units + at->u : NULL;
    const float *before = kept_before ? kept_before + 4 * at->width : c0;
    bool have = !job->steps && at->step < b->shape->steps - 1, make = !job->steps && at->step > 0;
    fetch_ahead(b, at);
    vf i = kept_part(at, 0), forget = kept_part(at, 1), candidate = kept_part(at, 2), o = kept_part(at, 3);
    vf squashed = have ? v_load(b->squashed + at->row) : act(kind, g, kept_part(at, 4));
    vf dh = gradient_by_h(b, at), c_before = before ? v_load_part(before, at->left) : (vf){0};
    vf dc = v_load(b->c + at->row) + dh * o * act_slope(kind, g, squashed);
    v_store(at->z, dc * candidate * gate_slope(kind, f, i));
    v_store(at->z + at->slot, dc * c_before * gate_slope(kind, f, forget));
    v_store(at->z + 2 * at->slot, dc * i * act_slope(kind, g, candidate));
    v_store(at->z + 3 * at->slot, dh * squashed * gate_slope(kind, f, o));
    v_store(b->c + at->row, dc * forget);
    if (job->steps) v_store(b->h + at->row, (vf){0});
    if (!make) return;
    squashed = act(kind, g, c_before);
    v_store(b->squashed + at->row, squashed);
    v_store(b->h_before + at->gathered + at->row,
            squashed * v_load_part(kept_before + 3 * at->width, at->left));
}

LEATI_INLINE bool lstm_backward(const rnn_block *b, int64_t step, functions_kind kind) {
    backward_places(b, step, kind, lstm_unmix, no_gates);
    return b->job->steps != NULL;
}

/* ---- GRU ---- */

/* What of h the update gate keeps. */
LEATI_INLINE vf carry_factor(const rnn_block *b, const place *at) {
    return b->shape->carry_masked ? h_factor(b, 0, at->r, at->u) : v_all(1);
}

/* h of a step, of activated gates. */
LEATI_INLINE void gru_h(const rnn_block *b, const place *at, vf update, vf candidate) {
    vf carried = v_load(b->h + at->row) * carry_factor(b, at);
    v_store(b->h_next + at->row, update * carried + (1.0f - update) * candidate);
    if (at->kept) keep(at, 2, candidate);
}

LEATI_INLINE void gru_keep_gates(const place *at, vf update, vf reset) {
    if (!at->kept) return;
    keep(at, 0, update);
    keep(at, 1, reset);
}

/* Activates z and r and makes r (.) h'. */
LEATI_INLINE void gru_gates(const rnn_block *b, const place *at, functions_kind kind) {
    const leati_eltwise *f = &b->shape->recurrent_activation;
    vf update = gate_act(kind, f, v_load(at->z)), reset = gate_act(kind, f, v_load(at->z + at->slot));
    v_store(b->update + at->row, update);
    v_store(b->v + at->row, reset * v_load(b->h + at->row) * h_factor(b, 2, at->r, at->u));
    gru_keep_gates(at, update, reset);
}

LEATI_INLINE void gru_reset(const rnn_block *b, int64_t step, strip at, const operand *x, const operand *h,
                            functions_kind kind) {
    product(b, step, at, (span){0, 2, 0}, x, h);
    forward_places(b, step, at, kind, gru_gates, gru_gates);
}

LEATI_INLINE void gru_mix(const rnn_block *b, const place *at, functions_kind kind) {
    vf candidate = act(kind, &b->shape->activation, v_load(at->z + 2 * at->slot));
    gru_h(b, at, v_load(b->update + at->row), candidate);
}

LEATI_INLINE void gru_forward(const rnn_block *b, int64_t step, strip at, const operand *x, const operand *h,
                              functions_kind kind) {
    operand v = {b->v, b->padded, b->units, 0};
    (void)h;
    product(b, step, at, (span){2, 3, 2}, x, &v);
    forward_places(b, step, at, kind, gru_mix, forward_idle);
}

LEATI_INLINE void gru_after_mix(const rnn_block *b, const place *at, functions_kind kind) {
    const leati_eltwise *g = &b->shape->activation, *f = &b->shape->recurrent_activation;
    vf update = gate_act(kind, f, v_load(at->z)), reset = gate_act(kind, f, v_load(at->z + at->slot));
    vf inner = v_load(at->z + 3 * at->slot);
    if (at->kept) keep(at, 3, inner);
    gru_keep_gates(at, update, reset);
    gru_h(b, at, update, act(kind, g, v_load(at->z + 2 * at->slot) + reset * inner));
}

LEATI_INLINE void gru_after_forward(const rnn_block *b, int64_t step, strip at, const operand *x,
                                    const operand *h, functions_kind kind) {
    if (b->ahead) {
        row_product(b, step, (span){0, 3, 0}, true, h);
    } else {
        product(b, step, at, (span){0, 2, 0}, x, h);
        product(b, step, at, (span){2, 3, 2}, x, NULL);
        product(b, step, at, (span){2, 3, 3}, NULL, h);
    }
    forward_places(b, step, at, kind, gru_after_mix, forward_idle);
}

/* z of the update gate and the candidate, and h: what the update gate keeps.  Then, reset after the product: z of the
 * others; before it: v = r (.) h'. */
LEATI_INLINE void gru_unmix_gates(const rnn_block *b, const place *at, functions_kind kind, bool after) {
    const leati_eltwise *g = &b->shape->activation, *f = &b->shape->recurrent_activation;
    vf update = kept_part(at, 0), reset = kept_part(at, 1), candidate = kept_part(at, 2);
    vf dh = gradient_by_h(b, at), h = v_load(b->h_before + at->gathered + at->row);
    fetch_ahead(b, at);
    vf by_candidate = dh * (1.0f - update) * act_slope(kind, g, candidate), carry = carry_factor(b, at);
    v_store(at->z, dh * (h * carry - candidate) * gate_slope(kind, f, update));
    v_store(at->z + 2 * at->slot, by_candidate);
    v_store(b->h + at->row, dh * update * carry);
    if (after) {
        v_store(at->z + at->slot, by_candidate * kept_part(at, 3) * gate_slope(kind, f, reset));
        v_store(at->z + 3 * at->slot, by_candidate * reset);
    } else {
        v_store(b->v + at->gathered + at->row, reset * h * h_factor(b, 2, at->r, at->u));
    }
}

LEATI_INLINE void gru_unmix(const rnn_block *b, const place *at, functions_kind kind) {
    gru_unmix_gates(b, at, kind, false);
}
LEATI_INLINE void gru_after_unmix(const rnn_block *b, const place *at, functions_kind kind) {
    gru_unmix_gates(b, at, kind, true);
}

/* From the gradient by r (.) h' in `part`: z of the reset gate, and what flows on to h. */
LEATI_INLINE void gru_unreset(const rnn_block *b, const place *at, functions_kind kind) {
    vf reset = kept_part(at, 1), by_v = v_load(b->part + at->row) * h_factor(b, 2, at->r, at->u);
    vf h = v_load(b->h_before + at->gathered + at->row);
    v_store(at->z + at->slot, by_v * h * gate_slope(kind, &b->shape->recurrent_activation, reset));
    v_store(b->h + at->row, v_load(b->h + at->row) + by_v * reset);
}

LEATI_INLINE bool gru_backward(const rnn_block *b, int64_t step, functions_kind kind) {
    backward_places(b, step, kind, gru_unmix, no_gates);
    through_weights(b, (span){2, 3, 2}, (target){b->job->packed.by_h, NULL, b->units, b->part}, false);
    backward_places(b, step, kind, gru_unreset, leave);
    return true;
}

LEATI_INLINE bool gru_after_backward(const rnn_block *b, int64_t step, functions_kind kind) {
    backward_places(b, step, kind, gru_after_unmix, no_gates);
    return true;
}

/* ---- SimpleRNN ---- */

LEATI_INLINE void simple_mix(const rnn_block *b, const place *at, functions_kind kind) {
    vf h = act(kind, &b->shape->activation, v_load(at->z));
    v_store(b->h_next + at->row, h);
    if (at->kept) keep(at, 0, h);
}

LEATI_INLINE void simple_forward(const rnn_block *b, int64_t step, strip at, const operand *x,
                                 const operand *h, functions_kind kind) {
    product(b, step, at, (span){0, 1, 0}, x, h);
    forward_places(b, step, at, kind, simple_mix, forward_idle);
}

LEATI_INLINE void simple_unmix(const rnn_block *b, const place *at, functions_kind kind) {
    fetch_ahead(b, at);
    v_store(at->z, gradient_by_h(b, at) * act_slope(kind, &b->shape->activation, kept_part(at, 0)));
    v_store(b->h + at->row, (vf){0});
}

LEATI_INLINE bool simple_backward(const rnn_block *b, int64_t step, functions_kind kind) {
    backward_places(b, step, kind, simple_unmix, no_gates);
    return b->job->steps != NULL;
}

/* ---- The table ---- */

/* A function for each kind of activations. */
#define FORWARD_KIND(name, kind)                                                                             \
    static void name##_##kind(const rnn_block *b, int64_t step, strip at, const operand *x,                  \
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
                         .by_h = {{0, 4, 0}},
                         .makes_h = true},
    [LEATI_CELL_GRU] = {.forward = {KINDS_OF(gru_reset), KINDS_OF(gru_forward)},
                        .backward = KINDS_OF(gru_backward),
                        .by_h = {{0, 2, 0}},
                        .by_v = {2, 3, 2}},
    [LEATI_CELL_GRU_RESET_AFTER] = {.forward = {KINDS_OF(gru_after_forward)},
                                    .backward = KINDS_OF(gru_after_backward),
                                    .by_h = {{0, 2, 0}, {2, 3, 3}}},
    [LEATI_CELL_SIMPLE] = {.forward = {KINDS_OF(simple_forward)},
                           .backward = KINDS_OF(simple_backward),
                           .by_h = {{0, 1, 0}}},
};
#undef KINDS_OF

#endif
