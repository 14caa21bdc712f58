/* SPDX-License-Identifier: Apache-2.0 */
/* The products of recurrent cells for a block of a single sample: a part of rnn_tmpl.h.  One row has no reuse of the
 * weights within a step, so that reading them is most of its time. */
#ifndef LEATI_BACKENDS_NATIVE_RNN_ROW_TMPL_H
#define LEATI_BACKENDS_NATIVE_RNN_ROW_TMPL_H

/* For a single row and one panel: what the sums of some gates begin with (start_stride: floats from one gate's to
 * the next), and where they are stored.  The last gate is separate for a GRU that resets after the product. */
typedef struct row_sums {
    const float *start, *last_start;
    int64_t start_stride;
    float *z, *last_z;
} row_sums;

/* z = start + a W for a single row.  The depth is summed forwards or backwards: a caller that alternates finds in
 * the L1 cache the weights that it used last.  `sums` accumulators per element, where a single one would wait for
 * its own additions. */
LEATI_INLINE void row_times_weights(const float *a, int64_t depth, const float *w, int64_t w_row, row_sums s,
                                    bool backwards, const int panels, const int sums) {
    vf acc[4][8];
    int64_t by = backwards ? -1 : 1, k = 0;
    if (backwards && depth > 0) a += depth - 1, w += (depth - 1) * w_row, w_row = -w_row;
    for (int j = 0; j < 2 * panels; j++) {
        const float *start = j / 2 == panels - 1 ? s.last_start : s.start + j / 2 * s.start_stride;
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

/* Returns the precomputed x K + b of one panel and gate for the current step. */
LEATI_INLINE const float *x_products_of(const rnn_block *b, int64_t panel, int64_t gate) {
    return b->x_products + ((panel * b->shape->gates + gate) * b->ahead + b->ahead_at) * LEATI_PANEL;
}

/* Calls row_times_weights for one panel and a number of gates. */
LEATI_INLINE void panel_product(const float *a, int64_t depth, const float *w, int64_t w_row, row_sums sums,
                                bool backwards, int64_t gates) {
    switch (gates) {
    case 4: row_times_weights(a, depth, w, w_row, sums, backwards, 4, 1); break;
    case 3: row_times_weights(a, depth, w, w_row, sums, backwards, 3, 1); break;
    case 2: row_times_weights(a, depth, w, w_row, sums, backwards, 2, 2); break;
    default: row_times_weights(a, depth, w, w_row, sums, backwards, 1, 4);
    }
}

/* Returns what the sums of some gates of one panel begin with and where they are stored, where x K + b is precomputed.
 * `separate`: x K + b of the last gate goes to its own slot, to which it is copied here, and h R + b to the next. */
LEATI_INLINE row_sums panel_sums(const rnn_block *b, int64_t panel, gate_range s, bool separate) {
    const int64_t last = s.to - s.from - 1, out = last + (separate ? 1 : 0);
    const float *x = x_products_of(b, panel, s.to - 1);
    float *z = b->z + (panel * b->slots + s.slot) * LEATI_PANEL;
    for (int64_t v = 0; separate && v < LEATI_PANEL; v += LEATI_LANES)
        v_store(z + last * LEATI_PANEL + v, v_load(x + v));
    return (row_sums){.start = x_products_of(b, panel, s.from),
                      .last_start = separate ? bias_of(b, panel, s.slot + out) : x,
                      .start_stride = b->ahead * LEATI_PANEL,
                      .z = z,
                      .last_z = z + out * LEATI_PANEL};
}

/* Panels are visited in alternating order, from step to step and from run to run, so that the first panel is the one
 * that was used last. */
LEATI_INLINE bool visits_last_first(const rnn_block *b, int64_t step) {
    return (b->job->run_number * (uint64_t)b->shape->steps + (uint64_t)step) % 2 == 1;
}

/* z = x K + b + h R for a single row, all panels of a strip and a range of gates; `separate` as in panel_sums().
 * Within a panel each run sums in the same order. */
static void row_product(const rnn_block *b, int64_t step, const strip *at, gate_range s, bool separate,
                        const operand *h) {
    const int64_t first_panel = at->from / LEATI_PANEL, end_panel = (at->to + LEATI_PANEL - 1) / LEATI_PANEL;
    const int64_t w_row = b->shape->gates * LEATI_PANEL;
    const bool backwards = step % 2 == 1, last_first = visits_last_first(b, step);
    for (int64_t i = first_panel; i < end_panel; i++) {
        int64_t panel = last_first ? first_panel + end_panel - 1 - i : i;
        panel_product(h->a, h->depth, weights_of(b, panel, b->features, s.from), w_row,
                      panel_sums(b, panel, s, separate), backwards, s.to - s.from);
    }
}

/* z = bias + x K + h R for a single row and a single step, all panels and all gates: x and h are one row, whose weights
 * lie together. */
static void joined_product(const rnn_block *b) {
    const int64_t gates = b->shape->gates, w_row = gates * LEATI_PANEL;
    const bool last_first = visits_last_first(b, 0);
    for (int64_t i = 0; i < b->panels; i++) {
        int64_t panel = last_first ? b->panels - 1 - i : i;
        const float *bias = bias_of(b, panel, 0);
        float *z = b->z + panel * b->slots * LEATI_PANEL;
        row_sums sums = {.start = bias,
                         .last_start = bias + (gates - 1) * LEATI_PANEL,
                         .start_stride = LEATI_PANEL,
                         .z = z,
                         .last_z = z + (gates - 1) * LEATI_PANEL};
        panel_product(b->joined, b->features + b->units, weights_of(b, panel, 0, 0), w_row, sums, false,
                      gates);
    }
}

/* ---- Lines ---- */

/* A single row times weights that lie in lines.  `kernel` and `lines` are those of the first panel. */
typedef struct line_product {
    const float *x, *kernel;
    int64_t features; /* 0: the sums begin with x K + b */
    const float *h, *lines;
    int64_t units;
} line_product;

#define LINE_PANELS (LEATI_LANES == 16 ? 2 : 1) /* panels whose sums are in registers at the same time */

/* z = start + x K + h R for some panels.  All lines of a row of R lie in the same set of the L1 cache, and are looked
 * up before the first of those that are missing arrives and evicts another.  With one row after the other in memory,
 * the lines of a set would be read far apart in time, and each would evict the one that is read next. */
LEATI_INLINE void lines_times_row(const line_product *in, const row_sums *sums, const int panels,
                                  const int gates) {
    vf acc[LINE_PANELS * 8];
    const int width = 2 * gates, count = panels * width;
    for (int j = 0; j < count; j++) {
        const row_sums *s = &sums[j / width];
        const int gate = j % width / 2;
        acc[j] = v_load((gate == gates - 1 ? s->last_start : s->start + gate * s->start_stride) +
                        j % 2 * LEATI_LANES);
    }
    const float *kernel = in->kernel, *lines = in->lines;
    for (int64_t k = 0; k < in->features; k++, kernel += gates * LEATI_PANEL) {
        vf left = v_all(in->x[k]);
        for (int j = 0; j < count; j++)
            acc[j] += left * v_load(kernel + j / width * in->features * gates * LEATI_PANEL +
                                    j % width * LEATI_LANES);
    }
    for (int64_t k = 0; k < in->units; k++, lines += LEATI_RNN_LINE) {
        vf left = v_all(in->h[k]);
        for (int j = 0; j < count; j++) {
            const int at = j * LEATI_LANES;
            acc[j] += left * v_load(lines + at / LEATI_RNN_LINE * LEATI_RNN_COLUMN + at % LEATI_RNN_LINE);
        }
    }
    for (int j = 0; j < count; j++) {
        const row_sums *s = &sums[j / width];
        const int gate = j % width / 2;
        v_store((gate == gates - 1 ? s->last_z : s->z + gate * LEATI_PANEL) + j % 2 * LEATI_LANES, acc[j]);
    }
}

/* Returns the recurrent kernel of a panel. */
LEATI_INLINE const float *lines_of(const leati_rnn_job *job, int64_t panel) {
    return job->packed.lines + panel * job->shape->gates * (LEATI_PANEL / LEATI_RNN_LINE * LEATI_RNN_COLUMN);
}

/* z = x K + b + h R for a single row, all panels and all gates, as row_product() computes it, but each step sums
 * forwards.  The number of panels is a multiple of LINE_PANELS: lines are for more than 32 units. */
static void lines_product(const rnn_block *b, int64_t step, bool separate, const operand *h) {
    const gate_range all = {0, b->shape->gates, 0};
    const bool last_first = visits_last_first(b, step);
    for (int64_t i = 0; i < b->panels; i += LINE_PANELS) {
        const int64_t first = last_first ? b->panels - LINE_PANELS - i : i;
        const line_product in = {.h = h->a, .lines = lines_of(b->job, first), .units = h->depth};
        row_sums sums[LINE_PANELS];
        for (int64_t p = 0; p < LINE_PANELS; p++) sums[p] = panel_sums(b, first + p, all, separate);
        if (all.to == 4)
            lines_times_row(&in, sums, LINE_PANELS, 4);
        else
            lines_times_row(&in, sums, LINE_PANELS, 3);
    }
}

/* A step of a single row, whose units several threads share. */
typedef struct row_step {
    const rnn_block *b;
    int64_t step;
    void (*forward)(const rnn_block *b, int64_t step, const strip *at, const operand *x, const operand *h);
    const operand *x, *h;
} row_step;

/* Returns the units of one of the threads that share them. */
LEATI_INLINE strip units_of(const rnn_block *b, int64_t task) {
    const int64_t tasks = b->job->unit_threads, from = b->panels * task / tasks * LEATI_PANEL,
                  to = b->panels * (task + 1) / tasks * LEATI_PANEL;
    return (strip){from, least(to, b->units), 0, 1};
}

/* Computes x K + b of the next steps of a single row, for a share of the units. */
static void compute_x_products(void *of, int64_t task, int member) {
    const row_step *r = of;
    const rnn_block *b = r->b;
    const strip at = units_of(b, task);
    const int64_t gates = b->shape->gates, steps = least(b->ahead, b->shape->steps - r->step),
                  step_stride = b->shape->go_backwards ? -b->features : b->features;
    leati_operand_part x = {.row_stride = step_stride, .depth_stride = 1, .depth = b->features, .chunks = 1};
    leati_tile t = {.parts = &x,
                    .count = 1,
                    .b_row = gates * LEATI_PANEL,
                    .b_panel = LEATI_PANEL,
                    .c_row = LEATI_PANEL,
                    .c_panel = b->ahead * LEATI_PANEL};
    (void)member;
    for (int64_t p = at.from / LEATI_PANEL; p * LEATI_PANEL < at.to; p++) {
        t.b = weights_of(b, p, 0, 0);
        t.start = bias_of(b, p, 0);
        for (int64_t i = 0; i < steps; i += LEATI_ROWS) {
            x.a = x_at(b, r->step + i);
            t.c = b->x_products + (p * gates * b->ahead + i) * LEATI_PANEL;
            tile_row_block(t, least(LEATI_ROWS, steps - i), gates);
        }
    }
}

/* Computes a step for a share of the units. */
static void compute_units(void *of, int64_t task, int member) {
    const row_step *r = of;
    const strip at = units_of(r->b, task);
    (void)member;
    if (at.from < at.to) r->forward(r->b, r->step, &at, r->x, r->h);
}

/* ---- Narrow weights ---- */

/* z = bias + x K + h R for a single row, all panels of a range of gates; x or h may be NULL.  Without scales x and h
 * are one row, and their weights one block. */
static void narrow_product(const rnn_block *b, gate_range s, const operand *x, const operand *h) {
    const leati_rnn_packed *packed = &b->job->packed;
    const leati_narrow *narrow = packed->narrow;
    const int64_t x_pairs = leati_narrow_pairs(b->features), h_pairs = leati_narrow_pairs(b->units);
    const int64_t columns = b->shape->gates * LEATI_PANEL, step = 2 * columns * (x_pairs + h_pairs);
    unsigned char *x_row = b->prepared, *h_row = x_row + (size_t)(2 * x_pairs) * narrow->prepared_bytes;
    const float x_scale = x ? narrow->prepare(x->a, x->depth, x_row) : 0;
    const float h_scale = h ? narrow->prepare(h->a, h->depth, h_row) : 0;
    const bool together = x && h && !narrow->scaled;
    leati_narrow_job job = {.w_row = 2 * columns, .vectors = 2 * (s.to - s.from)};
    const unsigned char *w =
        packed->narrow_weights + (size_t)(2 * s.from * LEATI_PANEL) * narrow->element_bytes;
    const float *scales = packed->narrow_scales + s.from * LEATI_PANEL;
    for (int64_t panel = 0; panel < b->panels; panel++) {
        job.start = bias_of(b, panel, s.slot);
        job.z = b->z + (panel * b->slots + s.slot) * LEATI_PANEL;
        if (x) {
            job.a = x_row, job.a_scale = x_scale, job.w = w, job.scales = scales;
            job.pairs = together ? x_pairs + h_pairs : x_pairs;
            narrow->multiply(&job);
            job.start = job.z;
        }
        if (h && !together) {
            job.a = h_row, job.a_scale = h_scale, job.scales = scales + columns;
            job.w = w + (size_t)(2 * x_pairs * columns) * narrow->element_bytes;
            job.pairs = h_pairs;
            narrow->multiply(&job);
        }
        w += (size_t)step * narrow->element_bytes;
        scales += 2 * columns;
    }
}

#endif
