/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions with a few filters, for the code that is compiled once per instruction set.  A vector holds elements
 * of a line of the source, and each output is a sum over its lanes: the outputs would fill only a part of a vector. */
#ifndef LEATI_BACKENDS_NATIVE_CONV_FEW_FILTERS_TMPL_H
#define LEATI_BACKENDS_NATIVE_CONV_FEW_FILTERS_TMPL_H

#include "backends/native/conv/jobs.h"
#include "backends/native/simd/function_tmpl.h"

/* The row of the destination that is computed. */
typedef struct few_filters_row {
    const leati_conv_rows *job;
    int64_t sample, at[2]; /* at: position along the first two axes */
} few_filters_row;

/* Returns the line of the source under row `tap` of the window, or NULL where that is padding. */
LEATI_INLINE const float *few_filters_line(const few_filters_row *row, int64_t tap) {
    const leati_geometry *g = row->job->g;
    const int64_t taps[2] = {tap / g->kernel[1], tap % g->kernel[1]};
    int64_t line = row->sample;
    for (int i = 0; i < 2; i++) {
        const int64_t from = row->at[i] * g->stride[i] + taps[i] * g->dilation[i] - g->pad_before[i];
        if (from < 0 || from >= g->in[i]) return NULL;
        line = line * g->in[i] + from;
    }
    return row->job->src + line * g->in[2] * g->channels;
}

/* Computes `pixels` neighbouring pixels, x and the next, from the columns first to last - 1 of the window. */
LEATI_INLINE void few_filters_pixels(const few_filters_row *row, int64_t x, int64_t first, int64_t last,
                                     float *dst, const int pixels, const int filters) {
    const leati_geometry *g = row->job->g;
    const float *bias = row->job->bias;
    const int64_t width = g->kernel[2] * g->channels, step = g->stride[2] * g->channels,
                  depth = (last - first) * g->channels, rows = g->kernel[0] * g->kernel[1],
                  from = (x * g->stride[2] - g->pad_before[2] + first) * g->channels;
    vf acc[8][4];
    for (int i = 0; i < pixels; i++)
        for (int f = 0; f < filters; f++) acc[i][f] = (vf){0};
    for (int64_t tap = 0; tap < rows; tap++) {
        const float *line = few_filters_line(row, tap),
                    *w = row->job->packed + tap * width + first * g->channels;
        if (!line) continue;
        line += from;
        int64_t k = 0;
        for (; k + LEATI_LANES <= depth; k += LEATI_LANES)
            for (int f = 0; f < filters; f++) {
                const vf weights = v_load(w + f * rows * width + k);
                for (int i = 0; i < pixels; i++) acc[i][f] += weights * v_load(line + i * step + k);
            }
        for (int f = 0; k < depth && f < filters; f++) {
            const vf weights = v_load_part(w + f * rows * width + k, depth - k);
            for (int i = 0; i < pixels; i++)
                acc[i][f] += weights * v_load_part(line + i * step + k, depth - k);
        }
    }
    for (int i = 0; i < pixels; i++)
        for (int f = 0; f < filters; f++)
            dst[i * filters + f] = v_sum_in_pairs(acc[i][f]) + (bias ? bias[f] : 0);
}

/* Computes the sums of one row of the destination. */
LEATI_INLINE void few_filters_sums(const few_filters_row *row, float *dst, const int pixels,
                                   const int filters) {
    const leati_geometry *g = row->job->g;
    const int64_t stride = g->stride[2];
    for (int64_t x = 0; x < g->out[2];) {
        const int64_t begin = x * stride - g->pad_before[2], after = g->in[2] - begin,
                      reach = after - (pixels - 1) * stride; /* columns that the last of the pixels has */
        const int64_t first = begin < 0 ? -begin : 0, last = after < g->kernel[2] ? after : g->kernel[2];
        float *to = dst + x * filters;
        if (first == 0 && reach >= g->kernel[2] && x + pixels <= g->out[2]) {
            few_filters_pixels(row, x, 0, g->kernel[2], to, pixels, filters);
            x += pixels;
        } else {
            few_filters_pixels(row, x, first, last > first ? last : first, to, 1, filters);
            x++;
        }
    }
}

static void few_filters_forward(const leati_conv_rows *job) {
    const leati_geometry *g = job->g;
    const int64_t count = g->out[2] * g->filters;
    for (int64_t r = job->first_row; r < job->last_row; r++) {
        const few_filters_row row = {job,
                                     r / (g->out[0] * g->out[1]),
                                     {r / g->out[1] % g->out[0], r % g->out[1]}};
        float *dst = job->dst + r * count;
        switch (g->filters) {
        case 1: few_filters_sums(&row, dst, 8, 1); break;
        case 2: few_filters_sums(&row, dst, 4, 2); break;
        case 3: few_filters_sums(&row, dst, 3, 3); break;
        default: few_filters_sums(&row, dst, 2, 4);
        }
        for (int64_t i = 0; (job->addend || job->f) && i < count; i += LEATI_LANES) {
            vf y = v_load_part(dst + i, count - i);
            if (job->addend) y += v_load_part(job->addend + r * count + i, count - i);
            v_store_part(dst + i, job->f ? f_apply(job->f, y) : y, count - i);
        }
    }
}

/* ---- The gradient with respect to the weights ---- */

enum { FEW_FILTERS_VECTORS = 6 }; /* vectors of a window's line whose sums are kept in registers, at most */

/* The pixels x to last - 1 of a row, whose windows lie in the source's lines, under one row of the window. */
typedef struct few_filters_run {
    const float *src, *diff; /* src: the first pixel's window; diff: (pixels, filters) */
    float *sums;             /* (filters, sums_step) */
    int64_t count, step, sums_step;
} few_filters_run;

/* Adds the products of a run's pixels with `vectors` vectors of their windows.  Pixels alternate between `sets` sets of
 * accumulators, so that the additions wait less for one another. */
LEATI_INLINE void few_filters_add(few_filters_run t, const int vectors, const int filters, const int sets) {
    vf acc[2][FEW_FILTERS_VECTORS][4];
    for (int i = 0; i < vectors; i++)
        for (int f = 0; f < filters; f++) {
            acc[0][i][f] = v_load(t.sums + f * t.sums_step + i * LEATI_LANES);
            acc[1][i][f] = (vf){0};
        }
    for (; t.count >= sets; t.count -= sets)
        for (int k = 0; k < sets; k++, t.src += t.step, t.diff += filters)
            for (int i = 0; i < vectors; i++) {
                const vf x = v_load(t.src + i * LEATI_LANES);
                for (int f = 0; f < filters; f++) acc[k][i][f] += x * t.diff[f];
            }
    for (int i = 0; i < vectors; i++) {
        const vf x = t.count > 0 ? v_load(t.src + i * LEATI_LANES) : (vf){0};
        for (int f = 0; f < filters; f++) {
            vf sum = sets > 1 ? acc[0][i][f] + acc[1][i][f] : acc[0][i][f];
            if (t.count > 0) sum += x * t.diff[f];
            v_store(t.sums + f * t.sums_step + i * LEATI_LANES, sum);
        }
    }
}

/* The same for the first `depth` floats of the windows, fewer than a vector. */
LEATI_INLINE void few_filters_add_part(few_filters_run t, int64_t depth, const int filters) {
    for (; t.count > 0; t.count--, t.src += t.step, t.diff += filters) {
        const vf x = v_load_part(t.src, depth);
        for (int f = 0; f < filters; f++) {
            float *to = t.sums + f * t.sums_step;
            v_store_part(to, v_load_part(to, depth) + x * t.diff[f], depth);
        }
    }
}

/* Adds the products of a run's pixels with the first `depth` floats of their windows. */
LEATI_INLINE void few_filters_add_line(few_filters_run t, int64_t depth, const int filters, const int sets) {
    int64_t left = depth / LEATI_LANES;
    for (int64_t blocks = (left + FEW_FILTERS_VECTORS - 1) / FEW_FILTERS_VECTORS, now; blocks > 0; blocks--) {
        now = (left + blocks - 1) / blocks;
        switch (now) {
        case 1: few_filters_add(t, 1, filters, sets); break;
        case 2: few_filters_add(t, 2, filters, sets); break;
        case 3: few_filters_add(t, 3, filters, sets); break;
        case 4: few_filters_add(t, 4, filters, sets); break;
        case 5: few_filters_add(t, 5, filters, sets); break;
        default: few_filters_add(t, 6, filters, sets);
        }
        left -= now;
        t.src += now * LEATI_LANES;
        t.sums += now * LEATI_LANES;
    }
    if (depth % LEATI_LANES) few_filters_add_part(t, depth % LEATI_LANES, filters);
}

/* Adds the products of one row of the destination. */
LEATI_INLINE void few_filters_add_row(const few_filters_row *row, const float *diff, float *sums,
                                      const int filters, const int sets) {
    const leati_geometry *g = row->job->g;
    const int64_t stride = g->stride[2], rows = g->kernel[0] * g->kernel[1],
                  width = g->kernel[2] * g->channels;
    int64_t inner =
        (g->pad_before[2] + stride - 1) / stride; /* the pixels inner to outer - 1 have whole windows */
    int64_t outer = (g->in[2] + g->pad_before[2] - g->kernel[2]) / stride + 1;
    if (g->in[2] + g->pad_before[2] < g->kernel[2]) outer = 0;
    if (outer > g->out[2]) outer = g->out[2];
    if (outer < inner) outer = inner < g->out[2] ? inner : g->out[2];
    for (int64_t tap = 0; tap < rows; tap++) {
        const float *line = few_filters_line(row, tap);
        for (int64_t x = 0, next; line && x < g->out[2]; x = next) {
            const int64_t begin = x * stride - g->pad_before[2], after = g->in[2] - begin,
                          first = begin < 0 ? -begin : 0, last = after < g->kernel[2] ? after : g->kernel[2];
            const bool whole = x >= inner && x < outer;
            next = whole ? outer : x + 1;
            if (last <= first) continue;
            const few_filters_run t = {.src = line + (begin + first) * g->channels,
                                       .diff = diff + x * filters,
                                       .sums = sums + tap * width + first * g->channels,
                                       .count = next - x,
                                       .step = stride * g->channels,
                                       .sums_step = rows * width};
            few_filters_add_line(t, (last - first) * g->channels, filters, sets);
        }
    }
}

static void few_filters_bwd_weights(const leati_conv_rows_bwd *job) {
    const leati_geometry *g = job->g;
    const leati_conv_rows of = {.g = g, .src = job->src};
    for (int64_t r = job->first_row; r < job->last_row; r++) {
        const few_filters_row row = {&of,
                                     r / (g->out[0] * g->out[1]),
                                     {r / g->out[1] % g->out[0], r % g->out[1]}};
        const float *diff = job->diff_dst + r * g->out[2] * g->filters;
        switch (g->filters) {
        case 1: few_filters_add_row(&row, diff, job->sums, 1, 2); break;
        case 2: few_filters_add_row(&row, diff, job->sums, 2, 1); break;
        case 3: few_filters_add_row(&row, diff, job->sums, 3, 1); break;
        default: few_filters_add_row(&row, diff, job->sums, 4, 1);
        }
        for (int64_t i = 0; job->bias && i < g->out[2] * g->filters; i++)
            job->bias[i % g->filters] += diff[i];
    }
}

#endif
