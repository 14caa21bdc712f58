/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent cells over a block of samples, for the code that is compiled once per instruction set.  A block goes through
 * all steps by itself: its state and one step's gates stay in the second cache, and threads never wait for each other.
 * Formulas: backends/ref/rnn.c; what differs from cell to cell: rnn_cells_body.h.  Gates of a step lie in panels:
 * (slots, padded units / panel, rows, panel). */
#ifndef LEATI_BACKENDS_NATIVE_RNN_BODY_H
#define LEATI_BACKENDS_NATIVE_RNN_BODY_H

#include "backends/native/function_body.h"
#include "backends/native/isa.h"
#include "backends/native/tile.h"

typedef struct rnn_block {
    const leati_rnn_job *job;
    const leati_rnn_shape *shape;
    int64_t rows, units, features, padded, panels; /* padded units; panels of one gate */
    float *z;                                      /* gates of a step, or their gradients, in panels */
    float *h, *c;    /* (rows, padded); backward: gradients that flow to the step before */
    float *v;        /* (rows, padded): r (.) h' of a GRU */
    int32_t *first;  /* (rows): the first step of processing that counts */
    float *h_before; /* (rows, padded), backward */
    float *x_out;    /* (rows, padded features), backward */
    float *masked_x; /* (gates, rows, features), with x_mask */
    float *masked_h; /* (gates, rows, padded), with h_mask */
    float *part;     /* (rows, max of padded units and features), backward */
} rnn_block;

/* Gates from to to - 1 of the weights, which lie in z from `slot` on. */
typedef struct span {
    int64_t from, to, slot;
} span;

/* The left operand of a product, (rows, depth); by_gate: floats from one gate's to the next, 0 where they share it. */
typedef struct operand {
    const float *a;
    int64_t by_row, depth, by_gate;
} operand;

LEATI_INLINE int64_t round_up(int64_t n) {
    return (n + LEATI_PANEL - 1) / LEATI_PANEL * LEATI_PANEL;
}

static float *carve(float **from, int64_t count) {
    float *taken = *from;
    *from += (count + 15) / 16 * 16;
    return taken;
}

/* Lays out the scratch; returns its floats. */
static int64_t lay_out(rnn_block *b, const leati_rnn_shape *shape, int64_t rows, bool backward,
                       float *scratch) {
    float *at = scratch;
    int64_t features = round_up(shape->features);
    b->shape = shape;
    b->rows = rows;
    b->units = shape->units;
    b->features = shape->features;
    b->padded = round_up(shape->units);
    b->panels = b->padded / LEATI_PANEL;
    b->z = carve(&at, leati_rnn_slots(shape) * rows * b->padded);
    b->h = carve(&at, rows * b->padded);
    b->c = carve(&at, rows * b->padded);
    b->v = carve(&at, rows * b->padded);
    b->first = (int32_t *)(void *)carve(&at, rows);
    b->masked_x = carve(&at, shape->gates * rows * b->features);
    b->masked_h = carve(&at, shape->gates * rows * b->padded);
    if (backward) {
        b->h_before = carve(&at, rows * b->padded);
        b->x_out = carve(&at, rows * features);
        b->part = carve(&at, rows * (features > b->padded ? features : b->padded));
    }
    return at - scratch;
}

static int64_t rnn_scratch(const leati_rnn_shape *shape, int64_t rows, bool backward) {
    static float origin[1];
    rnn_block b = {0};
    return lay_out(&b, shape, rows, backward, origin);
}

/* ---- Packing ---- */

/* A slot's bias: where the products by x and by h share one, the sum of both rows. */
static float bias_at(const leati_rnn_shape *shape, const float *bias, int64_t slot, int64_t u) {
    int64_t units = shape->units;
    if (!bias || u >= units) return 0;
    if (shape->biases == 1) return bias[slot * units + u];
    const float *second = bias + shape->gates * units;
    if (slot == 3) return second[2 * units + u];
    return bias[slot * units + u] + (slot < 2 ? second[slot * units + u] : 0);
}

static void rnn_pack(const leati_rnn_shape *shape, const float *kernel, const float *recurrent,
                     const float *bias, float *weights, float *packed_bias) {
    int64_t units = shape->units, features = shape->features, depth = features + units;
    int64_t width = shape->gates * units, padded = round_up(units);
    for (int64_t gate = 0; gate < shape->gates; gate++)
        for (int64_t u = 0; u < padded; u += LEATI_PANEL)
            for (int64_t row = 0; row < depth; row++, weights += LEATI_PANEL) {
                const float *from =
                    row < features ? kernel + row * width : recurrent + (row - features) * width;
                for (int64_t j = 0; j < LEATI_PANEL; j++)
                    weights[j] = u + j < units ? from[gate * units + u + j] : 0;
            }
    for (int64_t i = 0; i < leati_rnn_slots(shape) * padded; i++)
        packed_bias[i] = bias_at(shape, bias, i / padded, i % padded);
}

static void rnn_pack_transposed(const leati_rnn_shape *shape, const float *from, int64_t rows, float *to) {
    int64_t units = shape->units, padded = round_up(units), width = shape->gates * units;
    for (int64_t first = 0; first < rows; first += LEATI_PANEL)
        for (int64_t k = 0; k < shape->gates * padded; k++, to += LEATI_PANEL)
            for (int64_t j = 0; j < LEATI_PANEL; j++)
                to[j] = first + j < rows && k % padded < units
                            ? from[(first + j) * width + k / padded * units + k % padded]
                            : 0;
}

/* Rows first_row, ... of packed weights into (rows, gates units). */
static void rnn_unpack(const leati_rnn_shape *shape, const float *packed, int64_t first_row, int64_t rows,
                       float *to) {
    int64_t units = shape->units, depth = shape->features + units, padded = round_up(units);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t gate = 0; gate < shape->gates; gate++)
            for (int64_t u = 0; u < units; u++) {
                int64_t panel = (gate * padded + u) / LEATI_PANEL;
                to[(row * shape->gates + gate) * units + u] =
                    packed[(panel * depth + first_row + row) * LEATI_PANEL + u % LEATI_PANEL];
            }
}

/* ---- Rows ---- */

/* (rows, units) of the block's samples, or zeros where `from` is NULL, to (rows, padded). */
static void load_rows(const rnn_block *b, const float *from, float *to) {
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t u = 0; u < b->padded; u += LEATI_LANES)
            v_store(to + r * b->padded + u,
                    from ? v_load_part(from + (b->job->first + r) * b->units + u, b->units - u) : (vf){0});
}

static void store_rows(const rnn_block *b, const float *from, float *to) {
    for (int64_t r = 0; to && r < b->rows; r++)
        memcpy(to + (b->job->first + r) * b->units, from + r * b->padded, (size_t)b->units * sizeof *to);
}

static void find_first_steps(const rnn_block *b) {
    const leati_rnn_job *job = b->job;
    for (int64_t r = 0; r < b->rows; r++)
        b->first[r] =
            job->steps
                ? (int32_t)leati_rnn_first_step(b->shape, job->steps + (job->first + r) * b->shape->steps)
                : 0;
}

/* Whether a step of processing counts for a row. */
LEATI_INLINE bool counts(const rnn_block *b, int64_t step, int64_t r) {
    const float *steps = b->job->steps;
    return !steps || steps[(b->job->first + r) * b->shape->steps + leati_rnn_input_step(b->shape, step)] != 0;
}

static const float *x_at(const rnn_block *b, int64_t step) {
    int64_t steps = b->shape->steps, t = leati_rnn_input_step(b->shape, step);
    return b->job->x + (b->job->first * steps + t) * b->features;
}

/* The row of a (N, T, U) tensor; NULL where that is. */
LEATI_INLINE float *step_row(const rnn_block *b, float *of, int64_t step, int64_t r) {
    return of ? of + ((b->job->first + r) * b->shape->steps + step) * b->units : NULL;
}

LEATI_INLINE float *kept_row(const rnn_block *b, int64_t step, int64_t r) {
    float *of = b->job->workspace;
    return of ? of + (step * b->shape->batch + b->job->first + r) * b->shape->kept : NULL;
}

/* A row of z, at unit u, in slot 0; the next slot's lies `slot_size` behind. */
LEATI_INLINE float *z_at(const rnn_block *b, int64_t r, int64_t u) {
    return b->z + (u / LEATI_PANEL * b->rows + r) * LEATI_PANEL + u % LEATI_PANEL;
}
LEATI_INLINE int64_t slot_size(const rnn_block *b) {
    return b->rows * b->padded;
}

/* A gate's row of factors on h; 1 without a mask. */
LEATI_INLINE vf h_factor(const rnn_block *b, int64_t gate, int64_t r, int64_t u) {
    const float *mask = b->job->h_mask;
    if (!mask) return v_all(1);
    return v_load_part(mask + (gate * b->shape->batch + b->job->first + r) * b->units + u, b->units - u);
}

/* ---- Products ---- */

/* An operand, through its mask of every gate where it has one. */
static operand masked_by_gate(const rnn_block *b, operand from, const float *mask, float *to,
                              int64_t to_width) {
    if (!mask) return from;
    operand masked = {to, to_width, from.depth, b->rows * to_width};
    for (int64_t gate = 0; gate < b->shape->gates; gate++)
        for (int64_t r = 0; r < b->rows; r++, to += to_width) {
            const float *factor = mask + (gate * b->shape->batch + b->job->first + r) * from.depth;
            for (int64_t j = 0; j < from.depth; j++) to[j] = from.a[r * from.by_row + j] * factor[j];
        }
    return masked;
}

static operand x_operand(const rnn_block *b, int64_t step) {
    operand x = {x_at(b, step), b->shape->steps * b->features, b->features, 0};
    return masked_by_gate(b, x, b->job->x_mask, b->masked_x, b->features);
}

static operand h_operand(const rnn_block *b, const float *h) {
    operand all = {h, b->padded, b->units, 0};
    return masked_by_gate(b, all, b->job->h_mask, b->masked_h, b->padded);
}

/* z = bias + x K + h R for a span of gates; x or h may be NULL. */
static void product(const rnn_block *b, int64_t step, span s, const operand *x, const operand *h) {
    int64_t depth = b->features + b->units;
    bool apart = (x && x->by_gate) || (h && h->by_gate);
    int64_t each = apart ? 1 : s.to - s.from;
    for (int64_t gate = s.from; gate < s.to; gate += each) {
        leati_stretch in[2];
        leati_tile t = {.stretches = in,
                        .b = b->job->packed.weights + gate * b->padded * depth,
                        .b_row = LEATI_PANEL,
                        .b_panel = depth * LEATI_PANEL,
                        .start = b->job->packed.bias + (s.slot + gate - s.from) * b->padded,
                        .c = b->z + (s.slot + gate - s.from) * slot_size(b),
                        .c_row = LEATI_PANEL,
                        .c_panel = b->rows * LEATI_PANEL,
                        .backwards = step % 2 == 1};
        if (x)
            in[t.count++] = (leati_stretch){x->a + gate * x->by_gate, x->by_row, 1, 0, x->depth, 1};
        else
            t.b += b->features * LEATI_PANEL;
        if (h) in[t.count++] = (leati_stretch){h->a + gate * h->by_gate, h->by_row, 1, 0, h->depth, 1};
        tile_all(t, b->rows, each * b->panels);
    }
}

/* The gradient by a span's weights, from row first_row on: the operand transposed times z, added to the block's. */
static void add_outer(const rnn_block *b, span s, const operand *v, int64_t first_row) {
    int64_t depth = b->features + b->units, each = v->by_gate ? 1 : s.to - s.from;
    for (int64_t gate = s.from; gate < s.to; gate += each) {
        leati_stretch in = {v->a + gate * v->by_gate, 1, v->by_row, 0, b->rows, 1};
        leati_tile t = {.stretches = &in,
                        .count = 1,
                        .b = b->z + (s.slot + gate - s.from) * slot_size(b),
                        .b_row = LEATI_PANEL,
                        .b_panel = b->rows * LEATI_PANEL,
                        .c = b->job->diff_weights + (gate * b->padded * depth + first_row * LEATI_PANEL),
                        .c_row = LEATI_PANEL,
                        .c_panel = depth * LEATI_PANEL,
                        .add = 1};
        tile_all(t, v->depth, each * b->panels);
    }
}

static void add_bias_gradient(const rnn_block *b) {
    int64_t depth = b->features + b->units;
    float *by_bias = b->job->diff_weights + b->shape->gates * b->padded * depth;
    for (int64_t p = 0; p < leati_rnn_slots(b->shape) * b->panels; p++)
        for (int64_t v = 0; v < LEATI_PANEL; v += LEATI_LANES) {
            vf sum = v_load(by_bias + p * LEATI_PANEL + v);
            for (int64_t r = 0; r < b->rows; r++) sum += v_load(b->z + (p * b->rows + r) * LEATI_PANEL + v);
            v_store(by_bias + p * LEATI_PANEL + v, sum);
        }
}

/* Transposed weights (padded width / panel, gates padded, panel) and where their product with z goes: (rows, padded
 * width). */
typedef struct target {
    const float *packed, *mask;
    int64_t width;
    float *to;
} target;

/* to = z weights' for a span of gates, or added to what is there; gate by gate under a mask. */
static void through_weights(const rnn_block *b, span s, target w, bool add) {
    int64_t to_width = round_up(w.width), panels = to_width / LEATI_PANEL;
    leati_stretch z = {b->z + s.slot * slot_size(b), LEATI_PANEL, 1,
                       b->rows * LEATI_PANEL,        LEATI_PANEL, (s.to - s.from) * b->panels};
    leati_tile t = {.stretches = &z,
                    .count = 1,
                    .b = w.packed + s.from * b->padded * LEATI_PANEL,
                    .b_row = LEATI_PANEL,
                    .b_panel = b->shape->gates * b->padded * LEATI_PANEL,
                    .c = w.mask ? b->part : w.to,
                    .c_row = to_width,
                    .c_panel = LEATI_PANEL,
                    .add = add && !w.mask};
    if (!w.mask) {
        tile_all(t, b->rows, panels);
        return;
    }
    z.chunks = b->panels;
    if (!add) memset(w.to, 0, (size_t)(b->rows * to_width) * sizeof *w.to);
    for (int64_t gate = s.from; gate < s.to; gate++) {
        tile_all(t, b->rows, panels);
        for (int64_t r = 0; r < b->rows; r++) {
            const float *factor = w.mask + (gate * b->shape->batch + b->job->first + r) * w.width;
            for (int64_t j = 0; j < w.width; j++)
                w.to[r * to_width + j] += b->part[r * to_width + j] * factor[j];
        }
        z.a += slot_size(b);
        t.b += b->padded * LEATI_PANEL;
    }
}

#include "backends/native/rnn_cells_body.h"

/* ---- The block ---- */

static void rnn_forward(const leati_rnn_job *job) {
    rnn_block b = {.job = job};
    lay_out(&b, job->shape, job->rows, false, job->scratch);
    const rnn_cell *cell = &rnn_cells[job->shape->cell];
    cell_forward forward = cell->forward[usual_functions(job->shape)];
    find_first_steps(&b);
    load_rows(&b, job->h0, b.h);
    load_rows(&b, job->c0, b.c);
    for (int64_t step = 0; step < job->shape->steps; step++) {
        operand x = x_operand(&b, step), h = h_operand(&b, b.h);
        forward(&b, step, &x, &h);
    }
    store_rows(&b, b.h, job->h_last);
    store_rows(&b, b.c, job->c_last);
}

static void load_h_before(const rnn_block *b, int64_t step) {
    const leati_rnn_job *job = b->job;
    for (int64_t r = 0; r < b->rows; r++) {
        const float *from = step > b->first[r] ? step_row(b, job->sequence, step - 1, r)
                            : job->h0          ? job->h0 + (job->first + r) * b->units
                                               : NULL;
        for (int64_t u = 0; u < b->padded; u += LEATI_LANES)
            v_store(b->h_before + r * b->padded + u, from ? v_load_part(from + u, b->units - u) : (vf){0});
    }
}

static void backward_x(const rnn_block *b, int64_t step) {
    const leati_rnn_job *job = b->job;
    int64_t steps = b->shape->steps;
    span all = {0, b->shape->gates, 0};
    if (!job->diff_x) return;
    through_weights(b, all, (target){job->packed.by_x, job->x_mask, b->features, b->x_out}, false);
    float *to = job->diff_x + (x_at(b, step) - job->x);
    for (int64_t r = 0; r < b->rows; r++)
        memcpy(to + r * steps * b->features, b->x_out + r * round_up(b->features),
               (size_t)b->features * sizeof *to);
}

static void backward_step(const rnn_block *b, const rnn_cell *cell, cell_backward backward, int64_t step) {
    load_h_before(b, step);
    bool add = backward(b, step);
    operand x = x_operand(b, step), h = h_operand(b, b->h_before);
    target by_h = {b->job->packed.by_h, b->job->h_mask, b->units, b->h};
    add_outer(b, (span){0, b->shape->gates, 0}, &x, 0);
    for (int i = 0; i < 2 && cell->by_h[i].to > 0; i++) {
        add_outer(b, cell->by_h[i], &h, b->features);
        through_weights(b, cell->by_h[i], by_h, add || i > 0);
    }
    add_bias_gradient(b);
    backward_x(b, step);
}

static void rnn_backward(const leati_rnn_job *job) {
    rnn_block b = {.job = job};
    lay_out(&b, job->shape, job->rows, true, job->scratch);
    const rnn_cell *cell = &rnn_cells[job->shape->cell];
    cell_backward backward = cell->backward[usual_functions(job->shape)];
    find_first_steps(&b);
    load_rows(&b, job->diff_h_last, b.h);
    load_rows(&b, job->diff_c_last, b.c);
    for (int64_t step = job->shape->steps - 1; step >= 0; step--) backward_step(&b, cell, backward, step);
    store_rows(&b, b.h, job->diff_h0);
    store_rows(&b, b.c, job->diff_c0);
}

#endif
