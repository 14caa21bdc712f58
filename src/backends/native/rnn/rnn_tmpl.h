/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent cells over a block of samples, for the code that is compiled once per instruction set.  A block goes through
 * all steps by itself: what it needs stays in the second cache, and threads never wait for each other.  Forward, a strip
 * of a step's units and a few rows goes from the product to the state within the first cache.  Formulas:
 * backends/ref/rnn.c; what differs from cell to cell: rnn_cells_body.h. */
#ifndef LEATI_BACKENDS_NATIVE_RNN_RNN_TMPL_H
#define LEATI_BACKENDS_NATIVE_RNN_RNN_TMPL_H

#include "backends/native/simd/function_tmpl.h"
#include "backends/native/simd/isa.h"
#include "backends/native/matmul/product_tmpl.h"

#define AHEAD       LEATI_ROWS /* steps of a single row whose products by x are made together */
#define GATHER_ROWS 96         /* rows of gradients that meet the weights' gradients together */
#define FAR_BYTES   (32 << 20) /* of what training keeps: the caches lose it before the backward pass */

typedef struct rnn_block {
    const leati_rnn_job *job;
    const leati_rnn_shape *shape;
    int64_t rows, units, features, padded, panels; /* padded units; panels of one gate */
    int64_t slots, parts;                          /* sums of a step; what is kept of it, in units */
    bool past;                                     /* forward: that goes past the caches */
    float *
        z; /* gates of a strip (panels, slots, z_rows, panel), or gradients (slots, panels, gathered, panel) */
    int64_t z_rows; /* 1, and a strip is all panels of a single row; or LEATI_ROWS, and it is one panel */
    float *h, *c;   /* (rows, padded); backward: gradients that flow to the step before */
    float *h_next;  /* (rows, padded), forward */
    float *update;  /* (rows, padded), forward: the update gate of a GRU */
    float *ahead;   /* (panels, gates, AHEAD, panel), forward, a single row: x K + b of some steps; or NULL */
    float *v;       /* (rows or gathered, padded): r (.) h' of a GRU */
    int32_t *first; /* (rows): the first step of processing that counts */
    float *masked_x;      /* (gates, rows or gathered, features), with x_mask */
    float *masked_h;      /* (gates, rows or gathered, padded), with h_mask */
    int64_t gathered, at; /* backward: rows of some steps, and where those of this step begin */
    float *h_before;      /* (gathered, padded) */
    float *x_before;      /* (gathered, features) */
    float *squashed;      /* (rows, padded): g(c) of an LSTM */
    float *x_out;         /* (rows, padded features) */
    float *part;          /* (rows, max of padded units and features) */
} rnn_block;

/* Rows first, ... of the units from ... to to - 1, which are whole panels but for the last. */
typedef struct strip {
    int64_t from, to, first, rows;
} strip;

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

static int64_t gathered_steps(const leati_rnn_shape *shape, int64_t rows) {
    int64_t steps = rows < GATHER_ROWS ? GATHER_ROWS / rows : 1;
    return steps < shape->steps ? steps : shape->steps > 0 ? shape->steps : 1;
}

/* Lays out the scratch; returns its floats. */
static int64_t lay_out(rnn_block *b, const leati_rnn_job *job, bool backward) {
    const leati_rnn_shape *shape = job->shape;
    float *at = job->scratch;
    int64_t features = round_up(shape->features), rows = job->rows, slots = leati_rnn_slots(shape);
    *b = (rnn_block){.job = job, .shape = shape, .rows = rows, .units = shape->units, .gathered = rows};
    b->features = shape->features;
    b->padded = round_up(shape->units);
    b->slots = slots;
    b->parts = shape->kept / shape->units;
    b->panels = b->padded / LEATI_PANEL;
    if (backward) b->gathered *= gathered_steps(shape, rows);
    b->past = shape->batch * shape->steps * shape->kept >= FAR_BYTES / (int64_t)sizeof(float) &&
              b->units % LEATI_PANEL == 0 && (uintptr_t)job->workspace % sizeof(vf) == 0;
    b->z_rows = rows == 1 ? 1 : LEATI_ROWS;
    b->z = carve(&at, slots * (backward    ? b->gathered * b->padded
                               : rows == 1 ? b->padded
                                           : LEATI_ROWS * LEATI_PANEL));
    b->h = carve(&at, rows * b->padded);
    b->c = carve(&at, rows * b->padded);
    b->v = carve(&at, b->gathered * b->padded);
    b->first = (int32_t *)(void *)carve(&at, rows);
    if (job->x_mask) b->masked_x = carve(&at, shape->gates * b->gathered * b->features);
    if (job->h_mask) b->masked_h = carve(&at, shape->gates * b->gathered * b->padded);
    if (!backward) {
        b->h_next = carve(&at, rows * b->padded);
        b->update = carve(&at, rows * b->padded);
        if (rows == 1 && !job->x_mask && !job->h_mask)
            b->ahead = carve(&at, shape->gates * b->padded * AHEAD);
        return at - job->scratch;
    }
    b->h_before = carve(&at, b->gathered * b->padded);
    b->x_before = carve(&at, b->gathered * b->features);
    b->squashed = carve(&at, rows * b->padded);
    b->x_out = carve(&at, rows * features);
    b->part = carve(&at, rows * (features > b->padded ? features : b->padded));
    return at - job->scratch;
}

static int64_t rnn_scratch(const leati_rnn_shape *shape, int64_t rows, bool masked_x, bool masked_h,
                           bool backward) {
    static float origin[1];
    rnn_block b;
    leati_rnn_job job = {.shape = shape, .rows = rows, .scratch = origin};
    if (masked_x) job.x_mask = origin;
    if (masked_h) job.h_mask = origin;
    return lay_out(&b, &job, backward);
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

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static void rnn_pack(const leati_rnn_shape *shape, const float *kernel, const float *recurrent,
                     const float *bias, float *weights, float *packed_bias) {
    int64_t units = shape->units, features = shape->features, depth = features + units;
    int64_t width = shape->gates * units, padded = round_up(units);
    for (int64_t u = 0; u < padded; u += LEATI_PANEL) {
        size_t bytes = (size_t)least(LEATI_PANEL, units - u) * sizeof(float);
        for (int64_t row = 0; row < depth; row++) {
            const float *from = row < features ? kernel + row * width : recurrent + (row - features) * width;
            for (int64_t gate = 0; gate < shape->gates; gate++, weights += LEATI_PANEL) {
                memset(weights, 0, LEATI_PANEL * sizeof *weights);
                memcpy(weights, from + gate * units + u, bytes);
            }
        }
        for (int64_t slot = 0; slot < leati_rnn_slots(shape); slot++)
            for (int64_t j = 0; j < LEATI_PANEL; j++) *packed_bias++ = bias_at(shape, bias, slot, u + j);
    }
}

static void rnn_pack_transposed(const leati_rnn_shape *shape, const float *from, int64_t rows, float *to) {
    int64_t units = shape->units, padded = round_up(units),
            panel_floats = shape->gates * padded * LEATI_PANEL;
    memset(to, 0, (size_t)(round_up(rows) / LEATI_PANEL * panel_floats) * sizeof *to);
    for (int64_t gate = 0; gate < shape->gates; gate++)
        pack_transposed(from + gate * units, shape->gates * units, units, 0, rows,
                        to + gate * padded * LEATI_PANEL, panel_floats);
}

/* Rows first_row, ... of packed weights into (rows, gates units). */
static void rnn_unpack(const leati_rnn_shape *shape, const float *packed, int64_t first_row, int64_t rows,
                       float *to) {
    int64_t units = shape->units, depth = shape->features + units;
    for (int64_t u = 0; u < units; u += LEATI_PANEL) {
        size_t bytes = (size_t)least(LEATI_PANEL, units - u) * sizeof(float);
        const float *from = packed + (u * depth + first_row * LEATI_PANEL) * shape->gates;
        for (int64_t row = 0; row < rows * shape->gates; row++, from += LEATI_PANEL)
            memcpy(to + row * units + u, from, bytes);
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

/* What is kept of a step lies as (panels, samples, parts, panel), so that a strip's is in one piece; the last panel is as
 * wide as it has units. */
LEATI_INLINE int64_t kept_width(const rnn_block *b, int64_t panel_from) {
    int64_t left = b->units - panel_from;
    return left < LEATI_PANEL ? left : LEATI_PANEL;
}

/* A row's first part, of the panel from a unit on; the next part lies kept_width behind. */
LEATI_INLINE float *kept_at(const rnn_block *b, int64_t step, int64_t r, int64_t from) {
    int64_t n = b->job->first + r, batch = b->shape->batch;
    return b->job->workspace + step * batch * b->shape->kept +
           (from * batch + n * kept_width(b, from)) * b->parts;
}

/* Backward: a row of z, at unit u, in slot 0; the next slot's lies `slot_size` behind. */
LEATI_INLINE float *z_at(const rnn_block *b, int64_t r, int64_t u) {
    return b->z + (u / LEATI_PANEL * b->gathered + b->at + r) * LEATI_PANEL + u % LEATI_PANEL;
}
LEATI_INLINE int64_t slot_size(const rnn_block *b) {
    return b->gathered * b->padded;
}

/* A gate's row of factors on h; 1 without a mask. */
LEATI_INLINE vf h_factor(const rnn_block *b, int64_t gate, int64_t r, int64_t u) {
    const float *mask = b->job->h_mask;
    if (!mask) return v_all(1);
    return v_load_part(mask + (gate * b->shape->batch + b->job->first + r) * b->units + u, b->units - u);
}

/* ---- Products ---- */

/* `rows` rows of an operand, which are a block's of one step or several, through its mask of every gate where it has one. */
static operand masked_by_gate(const rnn_block *b, operand from, int64_t rows, const float *mask, float *to,
                              int64_t to_width) {
    if (!mask) return from;
    operand masked = {to, to_width, from.depth, rows * to_width};
    for (int64_t gate = 0; gate < b->shape->gates; gate++)
        for (int64_t r = 0; r < rows; r++, to += to_width) {
            const float *factor = mask + (gate * b->shape->batch + b->job->first + r % b->rows) * from.depth;
            for (int64_t j = 0; j < from.depth; j++) to[j] = from.a[r * from.by_row + j] * factor[j];
        }
    return masked;
}

/* The first gates' biases, each LEATI_PANEL. */
LEATI_INLINE const float *bias_of(const rnn_block *b, int64_t panel, int64_t slot) {
    return b->job->packed.bias + (panel * b->slots + slot) * LEATI_PANEL;
}

LEATI_INLINE const float *weights_of(const rnn_block *b, int64_t panel, int64_t row, int64_t gate) {
    int64_t depth = b->features + b->units;
    return b->job->packed.weights + ((panel * depth + row) * b->shape->gates + gate) * LEATI_PANEL;
}

/* Of a single row, at a panel: what the sums of some gates begin with, and where they go; the last gate's are apart in a GRU
 * that resets after the product. */
typedef struct row_sums {
    const float *start, *last_start;
    int64_t start_by;
    float *z, *last_z;
} row_sums;

/* z = start + a W for a single row, from either end of the depth: a caller that takes turns finds in the first cache what
 * it used last.  In several sums, where one would wait for itself. */
LEATI_INLINE void row_of(const float *a, int64_t depth, const float *w, int64_t w_row, row_sums s,
                         bool backwards, const int panels, const int sums) {
    vf acc[4][8];
    int64_t by = backwards ? -1 : 1, k = 0;
    if (backwards && depth > 0) a += depth - 1, w += (depth - 1) * w_row, w_row = -w_row;
    for (int j = 0; j < 2 * panels; j++) {
        const float *start = j / 2 == panels - 1 ? s.last_start : s.start + j / 2 * s.start_by;
        acc[0][j] = v_load(start + j % 2 * LEATI_LANES);
        for (int i = 1; i < sums; i++) acc[i][j] = (vf){0};
    }
    for (; k + sums <= depth; k += sums)
        for (int i = 0; i < sums; i++, a += by, w += w_row) {
            vf left = v_all(*a);
            for (int j = 0; j < 2 * panels; j++) acc[i][j] += left * v_load(w + j * LEATI_LANES);
        }
    for (; k < depth; k++, a += by, w += w_row)
        for (int j = 0; j < 2 * panels; j++) acc[0][j] += v_all(*a) * v_load(w + j * LEATI_LANES);
    for (int j = 0; j < 2 * panels; j++) {
        float *z = j / 2 == panels - 1 ? s.last_z : s.z + j / 2 * LEATI_PANEL;
        for (int i = 1; i < sums; i++) acc[0][j] += acc[i][j];
        v_store(z + j % 2 * LEATI_LANES, acc[0][j]);
    }
}

/* A panel's products by x of one gate, which are made. */
LEATI_INLINE const float *ahead_of(const rnn_block *b, int64_t panel, int64_t gate, int64_t step) {
    return b->ahead + ((panel * b->shape->gates + gate) * AHEAD + step % AHEAD) * LEATI_PANEL;
}

/* z = x K + b + h R for a single row, all panels of a span of gates; the products by x are made.  `apart`: x K + b of the last
 * gate is in its own slot, and h R + b in the next.  From run to run, too, the panel that comes first was the last one; within
 * a panel each run sums in the same order. */
static void row_product(const rnn_block *b, int64_t step, span s, bool apart, const operand *h) {
    int64_t w_row = b->shape->gates * LEATI_PANEL, last = s.to - s.from - 1, out = last + (apart ? 1 : 0);
    bool backwards = step % 2 == 1;
    bool last_first = (b->job->turn * (uint64_t)b->shape->steps + (uint64_t)step) % 2 == 1;
    for (int64_t i = 0; i < b->panels; i++) {
        int64_t panel = last_first ? b->panels - 1 - i : i;
        const float *w = weights_of(b, panel, b->features, s.from), *x = ahead_of(b, panel, s.to - 1, step);
        float *z = b->z + (panel * b->slots + s.slot) * LEATI_PANEL;
        row_sums sums = {.start = ahead_of(b, panel, s.from, step),
                         .last_start = apart ? bias_of(b, panel, s.slot + out) : x,
                         .start_by = AHEAD * LEATI_PANEL,
                         .z = z,
                         .last_z = z + out * LEATI_PANEL};
        for (int64_t v = 0; apart && v < LEATI_PANEL; v += LEATI_LANES)
            v_store(z + last * LEATI_PANEL + v, v_load(x + v));
        switch (s.to - s.from) {
        case 4: row_of(h->a, h->depth, w, w_row, sums, backwards, 4, 1); break;
        case 3: row_of(h->a, h->depth, w, w_row, sums, backwards, 3, 1); break;
        case 2: row_of(h->a, h->depth, w, w_row, sums, backwards, 2, 2); break;
        default: row_of(h->a, h->depth, w, w_row, sums, backwards, 1, 4);
        }
    }
}

/* z = bias + x K + h R for a strip of a span of gates; x or h may be NULL. */
static void product(const rnn_block *b, int64_t step, strip at, span s, const operand *x, const operand *h) {
    bool apart = (x && x->by_gate) || (h && h->by_gate);
    int64_t each = apart ? 1 : s.to - s.from, slots = b->slots, z_gate = b->z_rows * LEATI_PANEL;
    if (b->ahead) {
        row_product(b, step, s, false, h);
        return;
    }
    for (int64_t u = at.from; u < at.to; u += LEATI_PANEL)
        for (int64_t gate = s.from; gate < s.to; gate += each) {
            int64_t panel = u / LEATI_PANEL, slot = s.slot + gate - s.from;
            leati_stretch in[2];
            leati_tile t = {.stretches = in,
                            .row = at.first,
                            .b = weights_of(b, panel, x ? 0 : b->features, gate),
                            .b_row = b->shape->gates * LEATI_PANEL,
                            .b_panel = LEATI_PANEL,
                            .start = bias_of(b, panel, slot),
                            .c = b->z + ((u - at.from) / LEATI_PANEL * slots + slot) * z_gate,
                            .c_row = LEATI_PANEL,
                            .c_panel = z_gate};
            if (x) in[t.count++] = (leati_stretch){x->a + gate * x->by_gate, x->by_row, 1, 0, x->depth, 1};
            if (h) in[t.count++] = (leati_stretch){h->a + gate * h->by_gate, h->by_row, 1, 0, h->depth, 1};
            tile_row_block(t, at.rows, each);
        }
}

/* A single row's x K + b of the next steps. */
static void look_ahead(const rnn_block *b, int64_t step) {
    int64_t gates = b->shape->gates, by_step = b->shape->go_backwards ? -b->features : b->features;
    leati_stretch x = {x_at(b, step), by_step, 1, 0, b->features, 1};
    leati_tile t = {.stretches = &x,
                    .count = 1,
                    .b_row = gates * LEATI_PANEL,
                    .b_panel = LEATI_PANEL,
                    .c = b->ahead,
                    .c_row = LEATI_PANEL,
                    .c_panel = AHEAD * LEATI_PANEL};
    for (int64_t p = 0; p < b->panels; p++, t.c += gates * AHEAD * LEATI_PANEL) {
        t.b = weights_of(b, p, 0, 0);
        t.start = bias_of(b, p, 0);
        tile_row_block(t, least(AHEAD, b->shape->steps - step), gates);
    }
}

/* The gradient by a span's weights, from row first_row on: the operand transposed times z of the gathered steps, added to
 * the block's. */
static void add_outer(const rnn_block *b, span s, const operand *v, int64_t rows, int64_t first_row) {
    int64_t depth = b->features + b->units, gates = b->shape->gates, each = v->by_gate ? 1 : s.to - s.from;
    for (int64_t p = 0; p < b->panels; p++)
        for (int64_t gate = s.from; gate < s.to; gate += each) {
            leati_stretch in = {v->a + gate * v->by_gate, 1, v->by_row, 0, rows, 1};
            leati_tile t = {.stretches = &in,
                            .count = 1,
                            .b = b->z + (s.slot + gate - s.from) * slot_size(b) +
                                 p * b->gathered * LEATI_PANEL,
                            .b_row = LEATI_PANEL,
                            .b_panel = slot_size(b),
                            .c =
                                b->job->diff_weights + ((p * depth + first_row) * gates + gate) * LEATI_PANEL,
                            .c_row = gates * LEATI_PANEL,
                            .c_panel = LEATI_PANEL,
                            .add = 1};
            tile_all(t, v->depth, each);
        }
}

static void add_bias_gradient(const rnn_block *b, int64_t rows) {
    int64_t depth = b->features + b->units, panels = b->slots * b->panels;
    float *by_bias = b->job->diff_weights + b->shape->gates * b->padded * depth;
    for (int64_t p = 0; p < panels; p++, by_bias += LEATI_PANEL) {
        const float *z = b->z + p * b->gathered * LEATI_PANEL;
        vf sums[4] = {v_load(by_bias), v_load(by_bias + LEATI_LANES)};
        int64_t r = 0;
        for (; r + 2 <= rows; r += 2, z += 2 * LEATI_PANEL)
            for (int j = 0; j < 4; j++) sums[j] += v_load(z + j * LEATI_LANES);
        for (int j = 0; r < rows && j < 2; j++) sums[j] += v_load(z + j * LEATI_LANES);
        for (int j = 0; j < 2; j++) v_store(by_bias + j * LEATI_LANES, sums[j] + sums[j + 2]);
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
    int64_t to_width = round_up(w.width), panels = to_width / LEATI_PANEL,
            by_panel = b->gathered * LEATI_PANEL;
    leati_stretch z = {z_at(b, 0, 0) + s.slot * slot_size(b),
                       LEATI_PANEL,
                       1,
                       by_panel,
                       LEATI_PANEL,
                       (s.to - s.from) * b->panels};
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

#include "backends/native/rnn/rnn_cells_tmpl.h"

/* ---- The block ---- */

/* The strips of a step, panel by panel: a panel's weights stay in the first cache while the rows go by. */
static void forward_strips(const rnn_block *b, int64_t step, cell_forward forward, const operand *x,
                           const operand *h) {
    if (b->rows == 1) {
        forward(b, step, (strip){0, b->units, 0, 1}, x, h);
        return;
    }
    int64_t groups = (b->rows + LEATI_ROWS - 1) / LEATI_ROWS;
    for (int64_t u = 0; u < b->units; u += LEATI_PANEL)
        for (int64_t i = 0; i < groups; i++) { /* 32 rows are 6 6 5 5 5 5, not five times 6 and a slow 2 */
            int64_t first = b->rows * i / groups, last = b->rows * (i + 1) / groups;
            forward(b, step, (strip){u, least(u + LEATI_PANEL, b->units), first, last - first}, x, h);
        }
}

/* A step's outputs: h, or 0 before the first step that counts. */
static void store_sequence(const rnn_block *b, int64_t step, const float *h) {
    size_t bytes = (size_t)b->units * sizeof *h;
    for (int64_t r = 0; b->job->sequence && r < b->rows; r++, h += b->padded)
        if (step < b->first[r])
            memset(step_row(b, b->job->sequence, step, r), 0, bytes);
        else
            memcpy(step_row(b, b->job->sequence, step, r), h, bytes);
}

static void rnn_forward(const leati_rnn_job *job) {
    rnn_block b;
    lay_out(&b, job, false);
    const rnn_cell *cell = &rnn_cells[job->shape->cell];
    functions_kind kind = kind_of(job->shape);
    find_first_steps(&b);
    load_rows(&b, job->h0, b.h);
    load_rows(&b, job->c0, b.c);
    for (int64_t step = 0; step < job->shape->steps; step++) {
        operand x = {x_at(&b, step), b.shape->steps * b.features, b.features, 0},
                h = {b.h, b.padded, b.units, 0};
        x = masked_by_gate(&b, x, b.rows, job->x_mask, b.masked_x, b.features);
        h = masked_by_gate(&b, h, b.rows, job->h_mask, b.masked_h, b.padded);
        if (b.ahead && step % AHEAD == 0) look_ahead(&b, step);
        for (int phase = 0; phase < 2 && cell->forward[phase][kind]; phase++)
            forward_strips(&b, step, cell->forward[phase][kind], &x, &h);
        store_sequence(&b, step, b.h_next);
        float *before = b.h;
        b.h = b.h_next;
        b.h_next = before;
    }
    store_rows(&b, b.h, job->h_last);
    store_rows(&b, b.c, job->c_last);
    if (b.past) v_stored();
}

/* A step's x and, unless the cell makes it, the h before it. */
static void gather_step(const rnn_block *b, const rnn_cell *cell, int64_t step) {
    const leati_rnn_job *job = b->job;
    float *to = b->h_before + b->at * b->padded, *x = b->x_before + b->at * b->features;
    const float *from_x = x_at(b, step);
    for (int64_t r = 0; r < b->rows; r++, x += b->features)
        memcpy(x, from_x + r * b->shape->steps * b->features, (size_t)b->features * sizeof *x);
    if (cell->makes_h && !job->steps && step > 0) return;
    for (int64_t r = 0; r < b->rows; r++, to += b->padded) {
        const float *from = step > b->first[r] ? step_row(b, job->sequence, step - 1, r)
                            : job->h0          ? job->h0 + (job->first + r) * b->units
                                               : NULL;
        for (int64_t u = 0; u < b->padded; u += LEATI_LANES)
            v_store(to + u, from ? v_load_part(from + u, b->units - u) : (vf){0});
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

/* The weights' gradients from the gathered steps. */
static void add_gathered(const rnn_block *b, const rnn_cell *cell, int64_t rows) {
    const leati_rnn_job *job = b->job;
    operand x = {b->x_before, b->features, b->features, 0}, h = {b->h_before, b->padded, b->units, 0};
    operand v = {b->v, b->padded, b->units, 0};
    x = masked_by_gate(b, x, rows, job->x_mask, b->masked_x, b->features);
    h = masked_by_gate(b, h, rows, job->h_mask, b->masked_h, b->padded);
    add_outer(b, (span){0, b->shape->gates, 0}, &x, rows, 0);
    for (int i = 0; i < 2 && cell->by_h[i].to > 0; i++) add_outer(b, cell->by_h[i], &h, rows, b->features);
    if (cell->by_v.to > 0) add_outer(b, cell->by_v, &v, rows, b->features);
    add_bias_gradient(b, rows);
}

static void rnn_backward(const leati_rnn_job *job) {
    rnn_block b;
    lay_out(&b, job, true);
    const rnn_cell *cell = &rnn_cells[job->shape->cell];
    cell_backward backward = cell->backward[kind_of(job->shape)];
    target by_h = {job->packed.by_h, job->h_mask, b.units, b.h};
    find_first_steps(&b);
    load_rows(&b, job->diff_h_last, b.h);
    load_rows(&b, job->diff_c_last, b.c);
    for (int64_t step = job->shape->steps - 1; step >= 0; step--) {
        gather_step(&b, cell, step);
        bool add = backward(&b, step);
        for (int i = 0; i < 2 && cell->by_h[i].to > 0; i++)
            through_weights(&b, cell->by_h[i], by_h, add || i > 0);
        backward_x(&b, step);
        b.at += b.rows;
        if (b.at < b.gathered && step > 0) continue;
        add_gathered(&b, cell, b.at);
        b.at = 0;
    }
    store_rows(&b, b.h, job->diff_h0);
    store_rows(&b, b.c, job->diff_c0);
}

#endif
