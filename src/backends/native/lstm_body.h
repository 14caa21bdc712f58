/* SPDX-License-Identifier: Apache-2.0 */
/* The LSTM over a block of samples, for the code that is compiled once per instruction set.  A block goes through all
 * steps by itself: its state and one step's gates stay in the second cache, and threads never wait for each other.
 * Formulas: backends/ref/lstm.c.  Gates of a step lie in panels: (4, padded units / panel, rows, panel). */
#ifndef LEATI_BACKENDS_NATIVE_LSTM_BODY_H
#define LEATI_BACKENDS_NATIVE_LSTM_BODY_H

#include "backends/native/function_body.h"
#include "backends/native/isa.h"
#include "backends/native/tile.h"

typedef struct lstm_block {
    const leati_lstm_job *job;
    const leati_lstm_shape *shape;
    int64_t rows, units, features, padded, panels; /* padded units; panels of one gate */
    float *z;                                      /* gates of a step, or their gradients, in panels */
    float *h, *c;    /* (rows, padded); backward: gradients that flow to the step before */
    float *h_before; /* (rows, padded), backward */
    float *x_out;    /* (rows, padded features), backward */
    float *masked_x; /* (4, rows, features), with x_mask */
    float *masked_h; /* (4, rows, padded), with h_mask */
    float *part;     /* (rows, max of padded units and features), backward with masks */
} lstm_block;

LEATI_INLINE int64_t round_up(int64_t n) {
    return (n + LEATI_PANEL - 1) / LEATI_PANEL * LEATI_PANEL;
}

static float *carve(float **from, int64_t count) {
    float *taken = *from;
    *from += (count + 15) / 16 * 16;
    return taken;
}

/* Lays out the scratch; returns its floats.  With scratch NULL only counts. */
static int64_t lay_out(lstm_block *b, const leati_lstm_shape *shape, int64_t rows, bool backward,
                       float *scratch) {
    float *at = scratch;
    int64_t features = round_up(shape->features);
    b->shape = shape;
    b->rows = rows;
    b->units = shape->units;
    b->features = shape->features;
    b->padded = round_up(shape->units);
    b->panels = b->padded / LEATI_PANEL;
    b->z = carve(&at, 4 * rows * b->padded);
    b->h = carve(&at, rows * b->padded);
    b->c = carve(&at, rows * b->padded);
    b->masked_x = carve(&at, 4 * rows * b->features);
    b->masked_h = carve(&at, 4 * rows * b->padded);
    if (backward) {
        b->h_before = carve(&at, rows * b->padded);
        b->x_out = carve(&at, rows * features);
        b->part = carve(&at, rows * (features > b->padded ? features : b->padded));
    }
    return at - scratch;
}

static int64_t lstm_scratch(const leati_lstm_shape *shape, int64_t rows, bool backward) {
    static float origin[1];
    lstm_block b = {0};
    return lay_out(&b, shape, rows, backward, origin);
}

static void lstm_pack(const leati_lstm_shape *shape, const float *kernel, const float *recurrent,
                      const float *bias, float *weights, float *packed_bias) {
    int64_t units = shape->units, features = shape->features, depth = features + units;
    for (int64_t gate = 0; gate < 4; gate++)
        for (int64_t u = 0; u < round_up(units); u += LEATI_PANEL)
            for (int64_t row = 0; row < depth; row++, weights += LEATI_PANEL) {
                const float *from =
                    row < features ? kernel + row * 4 * units : recurrent + (row - features) * 4 * units;
                for (int64_t j = 0; j < LEATI_PANEL; j++)
                    weights[j] = u + j < units ? from[gate * units + u + j] : 0;
            }
    for (int64_t i = 0; i < 4 * round_up(units); i++) {
        int64_t u = i % round_up(units);
        packed_bias[i] = bias && u < units ? bias[i / round_up(units) * units + u] : 0;
    }
}

static void lstm_pack_transposed(const leati_lstm_shape *shape, const float *from, int64_t rows, float *to) {
    int64_t units = shape->units, padded = round_up(units);
    for (int64_t first = 0; first < rows; first += LEATI_PANEL)
        for (int64_t k = 0; k < 4 * padded; k++, to += LEATI_PANEL)
            for (int64_t j = 0; j < LEATI_PANEL; j++)
                to[j] = first + j < rows && k % padded < units
                            ? from[(first + j) * 4 * units + k / padded * units + k % padded]
                            : 0;
}

/* Rows first_row, ... of packed weights into (rows, 4 units). */
static void lstm_unpack(const leati_lstm_shape *shape, const float *packed, int64_t first_row, int64_t rows,
                        float *to) {
    int64_t units = shape->units, depth = shape->features + units, padded = round_up(units);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t gate = 0; gate < 4; gate++)
            for (int64_t u = 0; u < units; u++) {
                int64_t panel = (gate * padded + u) / LEATI_PANEL;
                to[(row * 4 + gate) * units + u] =
                    packed[(panel * depth + first_row + row) * LEATI_PANEL + u % LEATI_PANEL];
            }
}

static vf apply(const leati_eltwise *f, vf x) {
    return f_apply(f, x);
}

static vf slope(const leati_eltwise *f, vf y) {
    return f_slope_from_dst(f, y);
}

/* Keras's own activations are compiled apart, so that their code is in line. */
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

static bool usual_functions(const leati_lstm_shape *s) {
    return s->activation.function == LEATI_FN_TANH && s->recurrent_activation.function == LEATI_FN_SIGMOID;
}

static const float *x_at(const lstm_block *b, int64_t step) {
    int64_t steps = b->shape->steps, t = b->shape->go_backwards ? steps - 1 - step : step;
    return b->job->x + (b->job->first * steps + t) * b->features;
}

/* (rows, width) from `from` times each gate's mask, to (4, rows, to_width). */
static void mask_rows(const lstm_block *b, const float *from, int64_t by_row, int64_t width,
                      const float *mask, float *to, int64_t to_width) {
    for (int64_t gate = 0; gate < 4; gate++)
        for (int64_t r = 0; r < b->rows; r++, to += to_width) {
            const float *factor = mask + (gate * b->shape->batch + b->job->first + r) * width;
            for (int64_t j = 0; j < width; j++) to[j] = from[r * by_row + j] * factor[j];
        }
}

/* z = bias + x K + h R for all gates. */
static void gate_products(const lstm_block *b, int64_t step) {
    const leati_lstm_job *job = b->job;
    int64_t depth = b->features + b->units, x_row = b->shape->steps * b->features;
    leati_stretch in[2] = {{x_at(b, step), x_row, 1, 0, b->features, 1},
                           {b->h, b->padded, 1, 0, b->units, 1}};
    leati_tile t = {.stretches = in,
                    .count = 2,
                    .b = job->packed.weights,
                    .b_row = LEATI_PANEL,
                    .b_panel = depth * LEATI_PANEL,
                    .start = job->packed.bias,
                    .c = b->z,
                    .c_row = LEATI_PANEL,
                    .c_panel = b->rows * LEATI_PANEL,
                    .backwards = step % 2 == 1};
    if (!job->x_mask && !job->h_mask) {
        tile_all(t, b->rows, 4 * b->panels);
        return;
    }
    if (job->x_mask) {
        mask_rows(b, in[0].a, x_row, b->features, job->x_mask, b->masked_x, b->features);
        in[0] = (leati_stretch){b->masked_x, b->features, 1, 0, b->features, 1};
    }
    if (job->h_mask) {
        mask_rows(b, b->h, b->padded, b->units, job->h_mask, b->masked_h, b->padded);
        in[1].a = b->masked_h;
    }
    for (int64_t gate = 0; gate < 4; gate++) {
        tile_all(t, b->rows, b->panels);
        t.b += b->panels * t.b_panel;
        t.c += b->panels * t.c_panel;
        t.start += b->padded;
        if (job->x_mask) in[0].a += b->rows * b->features;
        if (job->h_mask) in[1].a += b->rows * b->padded;
    }
}

LEATI_INLINE void forward_cells(const lstm_block *b, int64_t step, bool usual) {
    const leati_lstm_job *job = b->job;
    const leati_eltwise *g = &b->shape->activation, *f = &b->shape->recurrent_activation;
    int64_t units = b->units, gate = b->rows * b->padded;
    for (int64_t r = 0; r < b->rows; r++) {
        int64_t n = job->first + r;
        float *sequence = job->sequence ? job->sequence + (n * b->shape->steps + step) * units : NULL;
        float *kept = job->workspace ? job->workspace + (step * b->shape->batch + n) * 5 * units : NULL;
        for (int64_t u = 0; u < units; u += LEATI_LANES) {
            const float *z = b->z + (u / LEATI_PANEL * b->rows + r) * LEATI_PANEL + u % LEATI_PANEL;
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

static void forward_cells_usual(const lstm_block *b, int64_t step) {
    forward_cells(b, step, true);
}
static void forward_cells_any(const lstm_block *b, int64_t step) {
    forward_cells(b, step, false);
}

/* (rows, units) of the block's samples, or zeros where `from` is NULL, to (rows, padded). */
static void load_rows(const lstm_block *b, const float *from, int64_t by_row, float *to) {
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t u = 0; u < b->padded; u += LEATI_LANES)
            v_store(to + r * b->padded + u,
                    from ? v_load_part(from + r * by_row + u, b->units - u) : (vf){0});
}

static void store_rows(const lstm_block *b, const float *from, float *to) {
    for (int64_t r = 0; to && r < b->rows; r++)
        memcpy(to + r * b->units, from + r * b->padded, (size_t)b->units * sizeof *to);
}

static const float *of_block(const lstm_block *b, const float *per_sample) {
    return per_sample ? per_sample + b->job->first * b->units : NULL;
}

static void lstm_forward(const leati_lstm_job *job) {
    lstm_block b = {.job = job};
    lay_out(&b, job->shape, job->rows, false, job->scratch);
    bool usual = usual_functions(job->shape);
    load_rows(&b, of_block(&b, job->h0), b.units, b.h);
    load_rows(&b, of_block(&b, job->c0), b.units, b.c);
    for (int64_t step = 0; step < job->shape->steps; step++) {
        gate_products(&b, step);
        (usual ? forward_cells_usual : forward_cells_any)(&b, step);
    }
    store_rows(&b, b.c, job->c_last ? job->c_last + job->first * b.units : NULL);
}

/* From the gradients by h (with what comes from outside) and c: z of the gates, and that by c of the step before. */
LEATI_INLINE void backward_cells(const lstm_block *b, int64_t step, bool usual) {
    const leati_lstm_job *job = b->job;
    const leati_eltwise *g = &b->shape->activation, *f = &b->shape->recurrent_activation;
    int64_t units = b->units, gate = b->rows * b->padded, width = 5 * units;
    for (int64_t r = 0; r < b->rows; r++) {
        int64_t n = job->first + r;
        const float *kept = job->workspace + (step * b->shape->batch + n) * width;
        const float *before = step > 0  ? kept - b->shape->batch * width + 4 * units
                              : job->c0 ? job->c0 + n * units
                                        : NULL;
        const float *outside =
            job->diff_sequence ? job->diff_sequence + (n * b->shape->steps + step) * units : NULL;
        for (int64_t u = 0; u < b->padded; u += LEATI_LANES) {
            float *z = b->z + (u / LEATI_PANEL * b->rows + r) * LEATI_PANEL + u % LEATI_PANEL;
            float *by_h = b->h + r * b->padded + u, *by_c = b->c + r * b->padded + u;
            int64_t left = units - u;
            vf i = v_load_part(kept + u, left), forget = v_load_part(kept + units + u, left);
            vf candidate = v_load_part(kept + 2 * units + u, left),
               o = v_load_part(kept + 3 * units + u, left);
            vf squashed = act(usual, g, v_load_part(kept + 4 * units + u, left));
            vf dh = v_load(by_h), c_before = before ? v_load_part(before + u, left) : (vf){0};
            if (outside) dh += v_load_part(outside + u, left);
            vf dc = v_load(by_c) + dh * o * act_slope(usual, g, squashed);
            v_store(z, dc * candidate * gate_slope(usual, f, i));
            v_store(z + gate, dc * c_before * gate_slope(usual, f, forget));
            v_store(z + 2 * gate, dc * i * act_slope(usual, g, candidate));
            v_store(z + 3 * gate, dh * squashed * gate_slope(usual, f, o));
            v_store(by_c, dc * forget);
        }
    }
}

static void backward_cells_usual(const lstm_block *b, int64_t step) {
    backward_cells(b, step, true);
}
static void backward_cells_any(const lstm_block *b, int64_t step) {
    backward_cells(b, step, false);
}

/* The gradients by kernel, recurrent and bias of one step, added to the block's. */
static void weight_gradients(const lstm_block *b, int64_t step) {
    const leati_lstm_job *job = b->job;
    int64_t depth = b->features + b->units, x_row = b->shape->steps * b->features;
    leati_stretch x = {x_at(b, step), 1, x_row, 0, b->rows, 1},
                  h = {b->h_before, 1, b->padded, 0, b->rows, 1};
    leati_tile t = {.count = 1,
                    .b = b->z,
                    .b_row = LEATI_PANEL,
                    .b_panel = b->rows * LEATI_PANEL,
                    .c = job->diff_weights,
                    .c_row = LEATI_PANEL,
                    .c_panel = depth * LEATI_PANEL,
                    .add = 1};
    int64_t groups = job->x_mask || job->h_mask ? 4 : 1, panels = 4 / groups * b->panels;
    if (job->x_mask) {
        mask_rows(b, x.a, x_row, b->features, job->x_mask, b->masked_x, b->features);
        x = (leati_stretch){b->masked_x, 1, b->features, 0, b->rows, 1};
    }
    if (job->h_mask) {
        mask_rows(b, b->h_before, b->padded, b->units, job->h_mask, b->masked_h, b->padded);
        h.a = b->masked_h;
    }
    for (int64_t group = 0; group < groups; group++) {
        leati_tile of_h = t;
        t.stretches = &x;
        tile_all(t, b->features, panels);
        of_h.stretches = &h;
        of_h.c += b->features * LEATI_PANEL;
        tile_all(of_h, b->units, panels);
        t.b += panels * t.b_panel;
        t.c += panels * t.c_panel;
        if (job->x_mask) x.a += b->rows * b->features;
        if (job->h_mask) h.a += b->rows * b->padded;
    }
    float *by_bias = job->diff_weights + 4 * b->padded * depth;
    for (int64_t p = 0; p < 4 * b->panels; p++)
        for (int64_t v = 0; v < LEATI_PANEL; v += LEATI_LANES) {
            vf sum = v_load(by_bias + p * LEATI_PANEL + v);
            for (int64_t r = 0; r < b->rows; r++) sum += v_load(b->z + (p * b->rows + r) * LEATI_PANEL + v);
            v_store(by_bias + p * LEATI_PANEL + v, sum);
        }
}

/* to (rows, to_width) = z weights', gate by gate under a mask. */
static void through_weights(const lstm_block *b, const float *packed, const float *mask, int64_t width,
                            float *to) {
    int64_t to_width = round_up(width);
    leati_stretch z = {b->z, LEATI_PANEL, 1, b->rows * LEATI_PANEL, LEATI_PANEL, 4 * b->panels};
    leati_tile t = {.stretches = &z,
                    .count = 1,
                    .b = packed,
                    .b_row = LEATI_PANEL,
                    .b_panel = 4 * b->padded * LEATI_PANEL,
                    .c = to,
                    .c_row = to_width,
                    .c_panel = LEATI_PANEL};
    if (!mask) {
        tile_all(t, b->rows, to_width / LEATI_PANEL);
        return;
    }
    z.chunks = b->panels;
    t.c = b->part;
    memset(to, 0, (size_t)(b->rows * to_width) * sizeof *to);
    for (int64_t gate = 0; gate < 4; gate++) {
        tile_all(t, b->rows, to_width / LEATI_PANEL);
        for (int64_t r = 0; r < b->rows; r++) {
            const float *factor = mask + (gate * b->shape->batch + b->job->first + r) * width;
            for (int64_t j = 0; j < width; j++) to[r * to_width + j] += b->part[r * to_width + j] * factor[j];
        }
        z.a += b->rows * b->padded;
        t.b += b->padded * LEATI_PANEL;
    }
}

static void backward_step(const lstm_block *b, int64_t step) {
    const leati_lstm_job *job = b->job;
    int64_t steps = b->shape->steps;
    if (step > 0)
        load_rows(b, job->sequence + (job->first * steps + step - 1) * b->units, steps * b->units,
                  b->h_before);
    else
        load_rows(b, of_block(b, job->h0), b->units, b->h_before);
    weight_gradients(b, step);
    through_weights(b, job->packed.by_h, job->h_mask, b->units, b->h);
    if (!job->diff_x) return;
    through_weights(b, job->packed.by_x, job->x_mask, b->features, b->x_out);
    float *to = job->diff_x + (x_at(b, step) - job->x);
    for (int64_t r = 0; r < b->rows; r++)
        memcpy(to + r * steps * b->features, b->x_out + r * round_up(b->features),
               (size_t)b->features * sizeof *to);
}

static void lstm_backward(const leati_lstm_job *job) {
    lstm_block b = {.job = job};
    lay_out(&b, job->shape, job->rows, true, job->scratch);
    bool usual = usual_functions(job->shape);
    load_rows(&b, NULL, 0, b.h);
    load_rows(&b, of_block(&b, job->diff_c_last), b.units, b.c);
    for (int64_t step = job->shape->steps - 1; step >= 0; step--) {
        (usual ? backward_cells_usual : backward_cells_any)(&b, step);
        backward_step(&b, step);
    }
    store_rows(&b, b.h, job->diff_h0 ? job->diff_h0 + job->first * b.units : NULL);
    store_rows(&b, b.c, job->diff_c0 ? job->diff_c0 + job->first * b.units : NULL);
}

#endif
