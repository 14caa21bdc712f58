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

#endif
