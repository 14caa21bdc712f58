/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent cells over a block of samples, for the code that is compiled once per instruction set.  A block goes
 * through all steps by itself, so that its data stays in the L2 cache and threads never wait for each other.
 * Forward, a strip (a panel of units for a few rows) goes from the product to the new state within the L1 cache.
 * backends/ref/rnn.c has the formulas, rnn_cells_tmpl.h what differs from cell to cell. */
#ifndef LEATI_BACKENDS_NATIVE_RNN_RNN_TMPL_H
#define LEATI_BACKENDS_NATIVE_RNN_RNN_TMPL_H

#include "backends/native/simd/function_tmpl.h"
#include "backends/native/rnn/jobs.h"
#include "backends/native/matmul/product_tmpl.h"

#define GATHER_ROWS       96  /* rows that are gathered over some steps for one product with the gradients */
#define GATHER_ROWS_LARGE 192 /* the same for large weights, whose gradients do not stay in the L2 cache */
#define OUTER_COLUMNS     96  /* columns of x or h at a time in a product with large gradients */
/* depth at most of a chunk of large weights, whose panels of a tile stay in the caches for all rows */
#define CHUNK_DEPTH (16 * LEATI_PANEL)
/* bytes of the workspace from which the caches do not keep it until the backward pass */
#define MIN_BYPASS_BYTES (32 << 20)

typedef struct rnn_block {
    const leati_rnn_job *job;
    const leati_rnn_shape *shape;
    int64_t rows, units, features, padded, panels; /* padded: padded units; panels: of one gate */
    int64_t depth;        /* rows of packed.weights: features and, unless they lie in lines, units */
    int64_t slots, parts; /* slots: sums per step; parts: arrays of units that the workspace keeps per step */
    bool bypass_cache;    /* forward: the workspace is written with non-temporal stores */
    /* forward: gates of a strip, with the strides below; backward: gradients (slots, panels, gathered, panel) */
    float *z;
    int64_t z_row, z_slot; /* forward: floats from one row of z to the next, from one slot to the next */
    float *h, *c;          /* (rows, padded); backward: gradients that flow to the step before */
    float *h_next;         /* (rows, padded), forward */
    float *update;         /* (rows, padded), forward: the update gate of a GRU */
    /* (panels, gates, ahead, panel), forward, single row: x K + b of the next steps; or NULL */
    float *x_products;
    int64_t ahead;    /* steps whose x K are computed together: more where threads share large weights */
    int64_t ahead_at; /* index of the current step among them */
    float *joined;    /* forward, single row, single step of an LSTM or SimpleRNN: x, then h; or NULL */
    void *prepared;   /* forward, single row, narrow weights: x and h as narrow.h prepares them; or NULL */
    float *v;         /* (rows or gathered, padded): r (.) h' of a GRU */
    int32_t *first;   /* (rows): the first step of processing that counts */
    float *masked_x;  /* (gates, rows or gathered, features), with x_mask */
    float *masked_h;  /* (gates, rows or gathered, padded), with h_mask */
    int64_t gathered, at; /* backward: rows of some steps; index of the first row of this step */
    float *h_before;      /* (gathered, padded) */
    float *x_before;      /* (gathered, features) */
    float *activated_c;   /* (rows, padded): g(c) of an LSTM */
    float *x_out;         /* (rows, padded features) */
    float *columns;       /* (gathered, OUTER_COLUMNS), large: some columns of an operand */
    float *part;          /* (rows, max of padded units and features) */
} rnn_block;

/* Rows first to first + rows - 1 of the units from `from` to `to` - 1: whole panels, except that the last may have
 * fewer units. */
typedef struct strip {
    int64_t from, to, first, rows;
} strip;

/* Gates `from` to `to` - 1; their sums are in z from `slot` on. */
typedef struct gate_range {
    int64_t from, to, slot;
} gate_range;

/* The left operand of a product, (rows, depth); gate_stride: floats from one gate's operand to the next, 0 where
 * they share it. */
typedef struct operand {
    const float *a;
    int64_t row_stride, depth, gate_stride;
} operand;

LEATI_INLINE int64_t round_up(int64_t n) {
    return (n + LEATI_PANEL - 1) / LEATI_PANEL * LEATI_PANEL;
}

/* Returns the next `count` floats of the scratch, of which *used are taken; NULL where scratch is NULL because only
 * the size is wanted. */
static float *next_floats(float *scratch, int64_t *used, int64_t count) {
    float *taken = scratch ? scratch + *used : NULL;
    *used += (count + 15) / 16 * 16;
    return taken;
}

static int64_t gathered_steps(const leati_rnn_job *job) {
    const leati_rnn_shape *shape = job->shape;
    int64_t most = job->large ? GATHER_ROWS_LARGE : GATHER_ROWS,
            steps = job->rows < most ? most / job->rows : 1;
    return steps < shape->steps ? steps : shape->steps > 0 ? shape->steps : 1;
}

/* Sets *b, whose arrays lie in the job's scratch (NULL: they stay NULL).  Returns how many floats of scratch they
 * take. */
static int64_t lay_out(rnn_block *b, const leati_rnn_job *job, bool backward) {
    const leati_rnn_shape *shape = job->shape;
    float *scratch = job->scratch;
    int64_t used = 0, features = round_up(shape->features), rows = job->rows, slots = leati_rnn_slots(shape);
    *b = (rnn_block){.job = job, .shape = shape, .rows = rows, .units = shape->units, .gathered = rows};
    b->features = shape->features;
    b->depth = b->features + (job->packed.lines ? 0 : b->units);
    b->padded = round_up(shape->units);
    b->slots = slots;
    b->parts = shape->kept / shape->units;
    b->panels = b->padded / LEATI_PANEL;
    if (backward) b->gathered *= gathered_steps(job);
    b->bypass_cache =
        shape->batch * shape->steps * shape->kept >= MIN_BYPASS_BYTES / (int64_t)sizeof(float) &&
        b->units % LEATI_PANEL == 0 && (uintptr_t)job->workspace % sizeof(vf) == 0;
    const bool single = rows == 1 && !job->large;
    b->z_row = job->large ? slots * LEATI_PANEL : LEATI_PANEL;
    b->z_slot = job->large || single ? LEATI_PANEL : LEATI_ROWS * LEATI_PANEL;
    b->z = next_floats(scratch, &used,
                       slots * (backward     ? b->gathered * b->padded
                                : job->large ? rows * LEATI_PANEL
                                : single     ? b->padded
                                             : LEATI_ROWS * LEATI_PANEL));
    b->h = next_floats(scratch, &used, rows * b->padded);
    b->c = next_floats(scratch, &used, rows * b->padded);
    b->v = next_floats(scratch, &used, b->gathered * b->padded);
    b->first = (int32_t *)(void *)next_floats(scratch, &used, rows);
    if (job->x_mask) b->masked_x = next_floats(scratch, &used, shape->gates * b->gathered * b->features);
    if (job->h_mask) b->masked_h = next_floats(scratch, &used, shape->gates * b->gathered * b->padded);
    if (!backward) {
        b->h_next = next_floats(scratch, &used, rows * b->padded);
        b->update = next_floats(scratch, &used, rows * b->padded);
        if (single && !job->x_mask && !job->h_mask) {
            float *prepared = next_floats(scratch, &used, b->features + b->units + 3);
            b->ahead = job->unit_threads > 1 ? 4 * LEATI_ROWS : LEATI_ROWS;
            float *products = next_floats(scratch, &used, shape->gates * b->padded * b->ahead);
            bool joins =
                shape->steps == 1 && (shape->cell == LEATI_CELL_LSTM || shape->cell == LEATI_CELL_SIMPLE);
            if (job->packed.narrow)
                b->prepared = prepared;
            else if (joins && !job->packed.lines)
                b->joined = prepared;
            else
                b->x_products = products;
        }
        return used;
    }
    b->h_before = next_floats(scratch, &used, b->gathered * b->padded);
    b->x_before = next_floats(scratch, &used, b->gathered * b->features);
    b->activated_c = next_floats(scratch, &used, rows * b->padded);
    b->x_out = next_floats(scratch, &used, rows * features);
    if (job->large) b->columns = next_floats(scratch, &used, b->gathered * OUTER_COLUMNS);
    b->part = next_floats(scratch, &used, rows * (features > b->padded ? features : b->padded));
    return used;
}

static int64_t rnn_scratch(const leati_rnn_job *job, bool backward) {
    rnn_block b;
    return lay_out(&b, job, backward);
}

/* ---- Packing ---- */

/* Returns the bias of one slot and unit: the sum of both rows of the bias where the products with x and h share a
 * slot. */
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

/* Returns the number of chunks, which are as even as possible, of large weights of `depth` rows. */
LEATI_INLINE int64_t chunks_of(int64_t depth) {
    return (depth + CHUNK_DEPTH - 1) / CHUNK_DEPTH;
}

/* Packs `rows` rows of a panel of units that begins at unit u; the next row of a gate lies row_stride further, the
 * next gate gate_stride. */
static void pack_unit_rows(const leati_rnn_shape *shape, const float *from, int64_t rows, int64_t u,
                           float *to, int64_t row_stride, int64_t gate_stride) {
    const size_t bytes = (size_t)least(LEATI_PANEL, shape->units - u) * sizeof(float);
    for (int64_t row = 0; row < rows; row++, to += row_stride)
        for (int64_t gate = 0; gate < shape->gates; gate++, from += shape->units) {
            float *panel = to + gate * gate_stride;
            memset(panel, 0, LEATI_PANEL * sizeof *panel);
            memcpy(panel, from + u, bytes);
        }
}

/* Packs `depth` rows of a panel of units in chunks. */
static void pack_chunks(const leati_rnn_shape *shape, const float *from, int64_t depth, int64_t u,
                        float *to) {
    const int64_t chunks = chunks_of(depth), width = shape->gates * LEATI_PANEL;
    for (int64_t i = 0; i < chunks; i++) {
        const int64_t first = depth * i / chunks, rows = depth * (i + 1) / chunks - first;
        pack_unit_rows(shape, from + first * shape->gates * shape->units, rows, u, to + first * width,
                       LEATI_PANEL, rows * LEATI_PANEL);
    }
}

/* Packs a panel of units of the recurrent kernel by lines. */
static void pack_lines(const leati_rnn_shape *shape, const float *from, int64_t u, float *to) {
    const int64_t units = shape->units, row = shape->gates * units;
    memset(to, 0, (size_t)(shape->gates * LEATI_PANEL * LEATI_RNN_LINE_ROWS) * sizeof *to);
    for (int64_t gate = 0; gate < shape->gates; gate++)
        for (int64_t v = u; v < u + LEATI_PANEL; v += LEATI_RNN_LINE, to += LEATI_RNN_COLUMN) {
            const int64_t width = least(LEATI_RNN_LINE, units - v);
            for (int64_t k = 0; k < units && width > 0; k++)
                memcpy(to + k * LEATI_RNN_LINE, from + k * row + gate * units + v,
                       (size_t)width * sizeof *to);
        }
}

static void rnn_pack(const leati_rnn_packing *p, int64_t unit_panel) {
    const leati_rnn_shape *shape = p->shape;
    const int64_t features = shape->features, units = shape->units, slots = leati_rnn_slots(shape);
    const int64_t width = shape->gates * LEATI_PANEL, u = unit_panel * LEATI_PANEL;
    float *kernel = p->weights + unit_panel * (features + (p->lines ? 0 : units)) * width,
          *recurrent = kernel + features * width, *bias = p->packed_bias + unit_panel * slots * LEATI_PANEL;
    if (p->lines) {
        pack_unit_rows(shape, p->kernel, features, u, kernel, width, LEATI_PANEL);
        pack_lines(shape, p->recurrent, u, p->lines + unit_panel * LEATI_RNN_LINE_ROWS * width);
    } else if (p->large) {
        pack_chunks(shape, p->kernel, features, u, kernel);
        pack_chunks(shape, p->recurrent, units, u, recurrent);
    } else {
        pack_unit_rows(shape, p->kernel, features, u, kernel, width, LEATI_PANEL);
        pack_unit_rows(shape, p->recurrent, units, u, recurrent, width, LEATI_PANEL);
    }
    for (int64_t slot = 0; slot < slots; slot++)
        for (int64_t j = 0; j < LEATI_PANEL; j++) *bias++ = bias_at(shape, p->bias, slot, u + j);
}

static void rnn_pack_transposed(const leati_rnn_shape *shape, const float *from, int64_t rows, float *to,
                                int64_t row_panel) {
    int64_t units = shape->units, padded = round_up(units), first = row_panel * LEATI_PANEL,
            panel_floats = shape->gates * padded * LEATI_PANEL;
    to += row_panel * panel_floats;
    memset(to, 0, (size_t)panel_floats * sizeof *to);
    from += first * shape->gates * units;
    for (int64_t gate = 0; gate < shape->gates; gate++)
        pack_transposed(from + gate * units, shape->gates * units, units, 0, least(LEATI_PANEL, rows - first),
                        to + gate * padded * LEATI_PANEL, panel_floats);
}

static void rnn_unpack(const leati_rnn_shape *shape, const float *packed, int64_t unit_panel, float *kernel,
                       float *recurrent) {
    const int64_t units = shape->units, u = unit_panel * LEATI_PANEL,
                  kernel_rows = shape->features * shape->gates;
    const size_t bytes = (size_t)least(LEATI_PANEL, units - u) * sizeof(float);
    const float *from = packed + u * (shape->features + units) * shape->gates;
    for (int64_t row = 0; kernel && row < kernel_rows; row++)
        memcpy(kernel + row * units + u, from + row * LEATI_PANEL, bytes);
    from += kernel_rows * LEATI_PANEL;
    for (int64_t row = 0; recurrent && row < units * shape->gates; row++)
        memcpy(recurrent + row * units + u, from + row * LEATI_PANEL, bytes);
}

/* ---- Rows ---- */

/* Copies the (units) of the block's samples, or zeros where `from` is NULL, to (rows, padded). */
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

/* True if a step of processing counts for a row, that is, is not masked. */
LEATI_INLINE bool step_counts(const rnn_block *b, int64_t step, int64_t r) {
    const float *steps = b->job->steps;
    return !steps || steps[(b->job->first + r) * b->shape->steps + leati_rnn_input_step(b->shape, step)] != 0;
}

static const float *x_at(const rnn_block *b, int64_t step) {
    int64_t steps = b->shape->steps, t = leati_rnn_input_step(b->shape, step);
    return b->job->x + (b->job->first * steps + t) * b->features;
}

/* Returns a sample's step in a (N, T, U) tensor; NULL where the tensor is NULL. */
LEATI_INLINE float *step_row(const rnn_block *b, float *of, int64_t step, int64_t r) {
    return of ? of + ((b->job->first + r) * b->shape->steps + step) * b->units : NULL;
}

/* Returns the width of a panel in the workspace.  A step is kept there as (panels, samples, parts, panel), so that
 * a strip is contiguous; the last panel is only as wide as it has units. */
LEATI_INLINE int64_t kept_width(const rnn_block *b, int64_t panel_from) {
    int64_t left = b->units - panel_from;
    return left < LEATI_PANEL ? left : LEATI_PANEL;
}

/* Returns where the workspace keeps the first part of a row, for the panel that begins at unit `from`; the next
 * part is kept_width() floats further. */
LEATI_INLINE float *kept_at(const rnn_block *b, int64_t step, int64_t r, int64_t from) {
    int64_t n = b->job->first + r, batch = b->shape->batch;
    return b->job->workspace + step * batch * b->shape->kept +
           (from * batch + n * kept_width(b, from)) * b->parts;
}

/* Backward: returns where z has unit u of a row in slot 0; the next slot is slot_size() floats further. */
LEATI_INLINE float *z_at(const rnn_block *b, int64_t r, int64_t u) {
    return b->z + (u / LEATI_PANEL * b->gathered + b->at + r) * LEATI_PANEL + u % LEATI_PANEL;
}
LEATI_INLINE int64_t slot_size(const rnn_block *b) {
    return b->gathered * b->padded;
}

/* Returns the dropout factors of h for a gate and row; 1 without a mask. */
LEATI_INLINE vf h_factor(const rnn_block *b, int64_t gate, int64_t r, int64_t u) {
    const float *mask = b->job->h_mask;
    if (!mask) return v_all(1);
    return v_load_part(mask + (gate * b->shape->batch + b->job->first + r) * b->units + u, b->units - u);
}

/* ---- Products ---- */

/* Returns the operand multiplied, for every gate, with that gate's dropout mask; the operand itself where mask is
 * NULL.  Its `rows` rows are those of the block for one or several steps; `to` (gates, rows, to_width) takes the
 * result. */
static operand masked_by_gate(const rnn_block *b, operand from, int64_t rows, const float *mask, float *to,
                              int64_t to_width) {
    if (!mask) return from;
    operand masked = {to, to_width, from.depth, rows * to_width};
    for (int64_t gate = 0; gate < b->shape->gates; gate++)
        for (int64_t r = 0; r < rows; r++, to += to_width) {
            const float *factor = mask + (gate * b->shape->batch + b->job->first + r % b->rows) * from.depth;
            for (int64_t j = 0; j < from.depth; j++) to[j] = from.a[r * from.row_stride + j] * factor[j];
        }
    return masked;
}

/* Returns the biases of a panel from `slot` on, LEATI_PANEL floats each. */
LEATI_INLINE const float *bias_of(const rnn_block *b, int64_t panel, int64_t slot) {
    return b->job->packed.bias + (panel * b->slots + slot) * LEATI_PANEL;
}

LEATI_INLINE const float *weights_of(const rnn_block *b, int64_t panel, int64_t row, int64_t gate) {
    return b->job->packed.weights + ((panel * b->depth + row) * b->shape->gates + gate) * LEATI_PANEL;
}

#include "backends/native/rnn/row_tmpl.h"

/* Large weights: z = bias + v W, or z += v W where `add` is set, for a strip and a range of gates, chunk by chunk.  The
 * rows of W begin with row first_row of the weights.  Each product prefetches the panels behind its own, which are
 * used next. */
static void add_chunks(const rnn_block *b, const strip *at, gate_range s, const operand *v, int64_t first_row,
                       bool add) {
    const int64_t chunks = chunks_of(v->depth), each = v->gate_stride ? 1 : s.to - s.from,
                  panel = at->from / LEATI_PANEL;
    for (int64_t i = 0; i < chunks; i++)
        for (int64_t gate = s.from; gate < s.to; gate += each) {
            const int64_t first = v->depth * i / chunks, depth = v->depth * (i + 1) / chunks - first,
                          slot = s.slot + gate - s.from;
            leati_product p = {.a = v->a + at->first * v->row_stride + gate * v->gate_stride + first,
                               .b = weights_of(b, panel, first_row + first, 0) + gate * depth * LEATI_PANEL,
                               .c = b->z + slot * b->z_slot,
                               .rows = at->rows,
                               .columns = each * LEATI_PANEL,
                               .depth = depth,
                               .a_row = v->row_stride,
                               .a_depth = 1,
                               .b_panel = depth * LEATI_PANEL,
                               .c_row = b->z_row,
                               .addend_row = b->z_row,
                               .streams = true};
            if (add || i > 0)
                p.addend = p.c;
            else
                p.bias = bias_of(b, panel, slot);
            multiply(&p);
        }
}

/* z = bias + x K + h R for a strip and a range of gates; x or h may be NULL. */
static void product(const rnn_block *b, int64_t step, const strip *at, gate_range s, const operand *x,
                    const operand *h) {
    bool separate = (x && x->gate_stride) || (h && h->gate_stride);
    int64_t each = separate ? 1 : s.to - s.from, slots = b->slots;
    if (b->job->large) {
        if (x) add_chunks(b, at, s, x, 0, false);
        if (h && !(x && step == 0 && !b->job->h0)) add_chunks(b, at, s, h, b->features, x != NULL);
        return;
    }
    if (b->prepared) {
        narrow_product(b, s, x, h);
        return;
    }
    if (b->joined) {
        memcpy(b->joined, x->a, (size_t)x->depth * sizeof *b->joined);
        memcpy(b->joined + x->depth, h->a, (size_t)h->depth * sizeof *b->joined);
        joined_product(b);
        return;
    }
    if (b->job->packed.lines) {
        lines_product(b, step, false, h);
        return;
    }
    if (b->x_products) {
        row_product(b, step, at, s, false, h);
        return;
    }
    for (int64_t u = at->from; u < at->to; u += LEATI_PANEL)
        for (int64_t gate = s.from; gate < s.to; gate += each) {
            int64_t panel = u / LEATI_PANEL, slot = s.slot + gate - s.from;
            leati_operand_part in[2];
            leati_tile t = {.parts = in,
                            .row = at->first,
                            .b = weights_of(b, panel, x ? 0 : b->features, gate),
                            .b_row = b->shape->gates * LEATI_PANEL,
                            .b_panel = LEATI_PANEL,
                            .start = bias_of(b, panel, slot),
                            .c = b->z + ((u - at->from) / LEATI_PANEL * slots + slot) * b->z_slot,
                            .c_row = LEATI_PANEL,
                            .c_panel = b->z_slot};
            if (x)
                in[t.count++] =
                    (leati_operand_part){x->a + gate * x->gate_stride, x->row_stride, 1, 0, x->depth, 1};
            if (h)
                in[t.count++] =
                    (leati_operand_part){h->a + gate * h->gate_stride, h->row_stride, 1, 0, h->depth, 1};
            tile_row_block(t, at->rows, each);
        }
}

/* Computes the tile `t`, of one part of which b and c have adjacent panels, with all its rows and panels.  Large
 * weights: a chunk of the depth at a time, and the panels of a chunk one after the other, so that the weights are
 * read ahead of use. */
static void part_product(const rnn_block *b, const leati_tile *t, int64_t rows, int64_t panels) {
    if (!b->job->large) {
        tile_all(*t, rows, panels);
        return;
    }
    const leati_operand_part *in = t->parts;
    const int64_t parts = in->chunks > 1 ? CHUNK_DEPTH / in->depth : 1;
    for (int64_t first = 0; first < in->chunks; first += parts) {
        leati_product p = {.a = in->a + first * in->chunk_stride,
                           .b = t->b + first * in->depth * LEATI_PANEL,
                           .addend = t->add || first > 0 ? t->c : NULL,
                           .c = t->c,
                           .rows = rows,
                           .columns = panels * LEATI_PANEL,
                           .depth = in->depth,
                           .a_row = in->row_stride,
                           .a_depth = in->depth_stride,
                           .b_panel = t->b_panel,
                           .c_row = t->c_row,
                           .addend_row = t->c_row,
                           .parts = least(parts, in->chunks - first),
                           .a_part = in->chunk_stride,
                           .streams = true};
        multiply(&p);
    }
}

/* Adds the gradient with respect to the weights of a range of gates, from row first_row on: the transposed operand
 * times z of the gathered steps. */
static void add_outer_of(const rnn_block *b, gate_range s, const operand *v, int64_t rows,
                         int64_t first_row) {
    int64_t depth = b->features + b->units, gates = b->shape->gates,
            each = v->gate_stride ? 1 : s.to - s.from;
    for (int64_t p = 0; p < b->panels; p++)
        for (int64_t gate = s.from; gate < s.to; gate += each) {
            leati_operand_part in = {v->a + gate * v->gate_stride, 1, v->row_stride, 0, rows, 1};
            leati_tile t = {.parts = &in,
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
            part_product(b, &t, v->depth, each);
        }
}

/* Calls add_outer_of(): for large weights with copies of some columns of the operand, whose rows may otherwise lie so
 * that they share a few sets of the L1 cache. */
static void add_outer(const rnn_block *b, gate_range s, const operand *v, int64_t rows, int64_t first_row) {
    if (!b->job->large) {
        add_outer_of(b, s, v, rows, first_row);
        return;
    }
    for (int64_t column = 0; column < v->depth; column += OUTER_COLUMNS) {
        int64_t columns = least(OUTER_COLUMNS, v->depth - column);
        for (int64_t gate = s.from, each = v->gate_stride ? 1 : s.to - s.from; gate < s.to; gate += each) {
            const float *from = v->a + gate * v->gate_stride + column;
            for (int64_t r = 0; r < rows; r++)
                memcpy(b->columns + r * OUTER_COLUMNS, from + r * v->row_stride,
                       (size_t)columns * sizeof *from);
            add_outer_of(b, (gate_range){gate, gate + each, s.slot + gate - s.from},
                         &(operand){b->columns, OUTER_COLUMNS, columns, 0}, rows, first_row + column);
        }
    }
}

static void add_bias_gradient(const rnn_block *b, int64_t rows) {
    int64_t depth = b->features + b->units, panels = b->slots * b->panels;
    float *bias_gradient = b->job->diff_weights + b->shape->gates * b->padded * depth;
    for (int64_t p = 0; p < panels; p++, bias_gradient += LEATI_PANEL) {
        const float *z = b->z + p * b->gathered * LEATI_PANEL;
        vf sums[4] = {v_load(bias_gradient), v_load(bias_gradient + LEATI_LANES)};
        int64_t r = 0;
        for (; r + 2 <= rows; r += 2, z += 2 * LEATI_PANEL)
            for (int j = 0; j < 4; j++) sums[j] += v_load(z + j * LEATI_LANES);
        for (int j = 0; r < rows && j < 2; j++) sums[j] += v_load(z + j * LEATI_LANES);
        for (int j = 0; j < 2; j++) v_store(bias_gradient + j * LEATI_LANES, sums[j] + sums[j + 2]);
    }
}

/* Transposed weights (padded width / panel, gates padded, panel), the mask of their operand, and where z times the
 * weights goes: (rows, padded width). */
typedef struct target {
    const float *packed, *mask;
    int64_t width;
    float *to;
} target;

/* Computes to = z weights' for a range of gates, or adds it to `to`; gate by gate where there is a mask. */
static void through_weights(const rnn_block *b, gate_range s, target w, bool add) {
    int64_t to_width = round_up(w.width), panels = to_width / LEATI_PANEL,
            by_panel = b->gathered * LEATI_PANEL;
    leati_operand_part z = {z_at(b, 0, 0) + s.slot * slot_size(b),
                            LEATI_PANEL,
                            1,
                            by_panel,
                            LEATI_PANEL,
                            (s.to - s.from) * b->panels};
    leati_tile t = {.parts = &z,
                    .count = 1,
                    .b = w.packed + s.from * b->padded * LEATI_PANEL,
                    .b_row = LEATI_PANEL,
                    .b_panel = b->shape->gates * b->padded * LEATI_PANEL,
                    .c = w.mask ? b->part : w.to,
                    .c_row = to_width,
                    .c_panel = LEATI_PANEL,
                    .add = add && !w.mask};
    if (!w.mask) {
        part_product(b, &t, b->rows, panels);
        return;
    }
    z.chunks = b->panels;
    if (!add) memset(w.to, 0, (size_t)(b->rows * to_width) * sizeof *w.to);
    for (int64_t gate = s.from; gate < s.to; gate++) {
        part_product(b, &t, b->rows, panels);
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

/* Runs `forward` on the strips of a step, panel by panel: a panel's weights stay in the L1 cache for all rows. */
static void forward_strips(const rnn_block *b, int64_t step, cell_forward forward, const operand *x,
                           const operand *h) {
    if (b->x_products && b->job->unit_threads > 1) {
        row_step r = {b, step, forward, x, h};
        leati_thread_pool_share(b->job->pool, b->job->unit_threads, b->job->unit_threads, compute_units, &r);
        return;
    }
    if (b->rows == 1 && !b->job->large) {
        forward(b, step, &(strip){0, b->units, 0, 1}, x, h);
        return;
    }
    int64_t groups = b->job->large ? 1 : (b->rows + LEATI_ROWS - 1) / LEATI_ROWS;
    for (int64_t u = 0; u < b->units; u += LEATI_PANEL)
        for (int64_t i = 0; i < groups; i++) { /* 32 rows are 6 6 5 5 5 5, not 6 6 6 6 6 2 */
            int64_t first = b->rows * i / groups, last = b->rows * (i + 1) / groups;
            forward(b, step, &(strip){u, least(u + LEATI_PANEL, b->units), first, last - first}, x, h);
        }
}

/* Stores a step's h in the op's sequence; 0 before the first step that counts. */
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
    if (is_lone_step(job)) {
        lone_step(job);
        return;
    }
    lay_out(&b, job, false);
    const rnn_cell *cell = &rnn_cells[job->shape->cell];
    functions_kind kind = kind_of(job->shape);
    find_first_steps(&b);
    load_rows(&b, job->h0, b.h);
    load_rows(&b, job->c0, b.c);
    for (int64_t step = 0; step < job->shape->steps; step++) {
        operand x = {x_at(&b, step), b.shape->steps * b.features, b.features, 0},
                h = {b.h, b.padded, b.units, 0};
        if (job->x_mask) x = masked_by_gate(&b, x, b.rows, job->x_mask, b.masked_x, b.features);
        if (job->h_mask) h = masked_by_gate(&b, h, b.rows, job->h_mask, b.masked_h, b.padded);
        if (b.x_products && (++b.ahead_at == b.ahead || step == 0)) {
            b.ahead_at = 0;
            row_step r = {.b = &b, .step = step};
            if (job->unit_threads > 1)
                leati_thread_pool_share(job->pool, job->unit_threads, job->unit_threads, compute_x_products,
                                        &r);
            else
                compute_x_products(&r, 0, 0);
        }
        for (int phase = 0; phase < 2 && cell->forward[phase][kind]; phase++)
            forward_strips(&b, step, cell->forward[phase][kind], &x, &h);
        store_sequence(&b, step, b.h_next);
        float *before = b.h;
        b.h = b.h_next;
        b.h_next = before;
    }
    store_rows(&b, b.h, job->h_last);
    store_rows(&b, b.c, job->c_last);
    if (b.bypass_cache) v_stored();
}

/* Gathers a step's x and, unless the cell computes it, the h of the step before. */
static void gather_step(const rnn_block *b, const rnn_cell *cell, int64_t step) {
    const leati_rnn_job *job = b->job;
    float *to = b->h_before + b->at * b->padded, *x = b->x_before + b->at * b->features;
    const float *from_x = x_at(b, step);
    for (int64_t r = 0; r < b->rows; r++, x += b->features)
        memcpy(x, from_x + r * b->shape->steps * b->features, (size_t)b->features * sizeof *x);
    if (cell->computes_h_before && !job->steps && step > 0) return;
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
    gate_range all = {0, b->shape->gates, 0};
    if (!job->diff_x) return;
    through_weights(b, all, (target){job->packed.kernel_transposed, job->x_mask, b->features, b->x_out},
                    false);
    float *to = job->diff_x + (x_at(b, step) - job->x);
    for (int64_t r = 0; r < b->rows; r++)
        memcpy(to + r * steps * b->features, b->x_out + r * round_up(b->features),
               (size_t)b->features * sizeof *to);
}

/* Adds the gathered steps to the gradients with respect to the weights. */
static void add_gathered(const rnn_block *b, const rnn_cell *cell, int64_t rows) {
    const leati_rnn_job *job = b->job;
    operand x = {b->x_before, b->features, b->features, 0}, h = {b->h_before, b->padded, b->units, 0};
    operand v = {b->v, b->padded, b->units, 0};
    x = masked_by_gate(b, x, rows, job->x_mask, b->masked_x, b->features);
    h = masked_by_gate(b, h, rows, job->h_mask, b->masked_h, b->padded);
    add_outer(b, (gate_range){0, b->shape->gates, 0}, &x, rows, 0);
    for (int i = 0; i < 2 && cell->h_gates[i].to > 0; i++)
        add_outer(b, cell->h_gates[i], &h, rows, b->features);
    if (cell->v_gates.to > 0) add_outer(b, cell->v_gates, &v, rows, b->features);
    add_bias_gradient(b, rows);
}

static void rnn_backward(const leati_rnn_job *job) {
    rnn_block b;
    lay_out(&b, job, true);
    const rnn_cell *cell = &rnn_cells[job->shape->cell];
    cell_backward backward = cell->backward[kind_of(job->shape)];
    target to_h = {job->packed.recurrent_transposed, job->h_mask, b.units, b.h};
    find_first_steps(&b);
    load_rows(&b, job->diff_h_last, b.h);
    load_rows(&b, job->diff_c_last, b.c);
    for (int64_t step = job->shape->steps - 1; step >= 0; step--) {
        gather_step(&b, cell, step);
        bool add = backward(&b, step);
        for (int i = 0; i < 2 && cell->h_gates[i].to > 0; i++)
            through_weights(&b, cell->h_gates[i], to_h, add || i > 0);
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
