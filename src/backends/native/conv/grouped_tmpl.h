/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions whose groups have a few channels and as many filters, for the code that is compiled once per instruction
 * set.  A vector of filters belongs to whole groups, whose channels are the same lanes of the source: channel i of each
 * group is spread over the lanes of its group, and multiplied by the weights of all its filters. */
#ifndef LEATI_BACKENDS_NATIVE_CONV_GROUPED_TMPL_H
#define LEATI_BACKENDS_NATIVE_CONV_GROUPED_TMPL_H

#include "backends/native/conv/depthwise_forward_tmpl.h"
#include "backends/native/conv/jobs.h"
#include "backends/native/simd/function_tmpl.h"

#define EACH(i, count) _Pragma("GCC unroll 32") for (int i = 0; i < count; i++)

/* Returns, in each lane, the first lane of its group; width is a power of two. */
LEATI_INLINE vi grouped_lanes(int64_t width) {
    static const int32_t numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    vi lanes;
    memcpy(&lanes, numbers, sizeof lanes);
    return lanes & (int32_t)-width;
}

/* Spreads channel i of each group over the group; lanes: those of grouped_lanes() plus i. */
LEATI_INLINE vf grouped_spread(const float *from, int64_t i, vi lanes) {
#if LEATI_LANES == 4
    (void)lanes;
    return v_all(from[i]); /* the group is the whole vector */
#else
    (void)i;
    return v_permute(v_load(from), lanes);
#endif
}

/* Adds channel i of one row of the window to the sums.  taps: of the last axis, with stride 1; 0 stands for any window.
 * cut: columns outside of first_column to last_column - 1 are not read.  width: channels of a group. */
LEATI_INLINE void grouped_row(vf *acc, const depthwise_tile *t, const float *src, const float *weights,
                              int64_t i, vi lanes, int64_t width, const int pixels, const int taps,
                              const bool cut) {
    const int64_t c = t->g->channels, next = width * LEATI_LANES;
    if (taps) {
        const int columns = pixels - 1 + taps;
        vf w[3];
        EACH (k, taps) w[k] = v_load(weights + k * next);
        EACH (j, columns) {
            bool at_border = j < taps - 1 || j > columns - taps;
            if (!cut || !at_border || (j >= t->first_column && j < t->last_column)) {
                const vf x = grouped_spread(src + j * c, i, lanes);
                EACH (k, taps)
                    if (j >= k && j - k < pixels) acc[j - k] += w[k] * x;
            }
        }
        return;
    }
    const int64_t tap = t->g->dilation[2] * c, step = t->g->stride[2] * c;
    for (int64_t k = t->first_column; k < t->last_column; k++) {
        const vf w = v_load(weights + k * next);
        EACH (p, pixels) acc[p] += w * grouped_spread(src + k * tap + p * step, i, lanes);
    }
}

/* Computes `pixels` pixels of `vectors` vectors of filters. */
LEATI_INLINE void grouped_tile(const depthwise_tile *t, const float *bias, int64_t vectors, const int pixels,
                               const int taps, const bool cut) {
    const int64_t width = t->g->channels / t->g->groups, weights_of = t->g->taps * width * LEATI_LANES;
    const vi first = grouped_lanes(width);
    for (int64_t v = 0; v < vectors; v++) {
        const float *plane = t->src + v * LEATI_LANES, *plane_weights = t->weights + v * weights_of;
        float *to = t->to + v * LEATI_LANES;
        vf acc[DEPTHWISE_PIXELS];
        EACH (p, pixels) acc[p] = bias ? v_load(bias + v * LEATI_LANES) : v_all(0);
        for (int64_t d = t->rows[0]; d > 0; d--, plane += t->src_row[0], plane_weights += t->weights_row[0]) {
            const float *row = plane, *w = plane_weights;
            for (int64_t h = t->rows[1]; h > 0; h--, row += t->src_row[1], w += t->weights_row[1]) {
                vi lanes = first;
                if (h == 1) /* the next tile's part of the line that no earlier row has read */
                    EACH (j, pixels) __builtin_prefetch(row + (j + pixels + 2) * t->g->channels);
                for (int64_t i = 0; i < width; i++, lanes += 1)
                    grouped_row(acc, t, row, w + i * LEATI_LANES, i, lanes, width, pixels, taps, cut);
            }
        }
        EACH (p, pixels) v_store(to + p * t->to_pixel, acc[p]);
    }
}

typedef void (*grouped_tile_of)(const depthwise_tile *t, const float *bias, int64_t vectors);

#define GROUPED_TILE(name, pixels, ...)                                                                      \
    static __attribute__((noinline)) void grouped_##name##_##pixels(const depthwise_tile *t,                 \
                                                                    const float *bias, int64_t vectors) {    \
        grouped_tile(t, bias, vectors, pixels, __VA_ARGS__);                                                 \
    }
#define GROUPED_TILES(name, ...)                                                                             \
    GROUPED_TILE(name, 1, __VA_ARGS__)                                                                       \
    GROUPED_TILE(name, 2, __VA_ARGS__)                                                                       \
    GROUPED_TILE(name, 3, __VA_ARGS__)                                                                       \
    GROUPED_TILE(name, 4, __VA_ARGS__)                                                                       \
    GROUPED_TILE(name, 5, __VA_ARGS__)                                                                       \
    GROUPED_TILE(name, 6, __VA_ARGS__)                                                                       \
    GROUPED_TILE(name, 7, __VA_ARGS__)                                                                       \
    GROUPED_TILE(name, 8, __VA_ARGS__)                                                                       \
    static const grouped_tile_of grouped_##name[DEPTHWISE_PIXELS + 1] = {NULL,                               \
                                                                         grouped_##name##_1,                 \
                                                                         grouped_##name##_2,                 \
                                                                         grouped_##name##_3,                 \
                                                                         grouped_##name##_4,                 \
                                                                         grouped_##name##_5,                 \
                                                                         grouped_##name##_6,                 \
                                                                         grouped_##name##_7,                 \
                                                                         grouped_##name##_8};

GROUPED_TILES(3, 3, false)
GROUPED_TILES(3_cut, 3, true)
GROUPED_TILES(any, 0, false)
#undef GROUPED_TILES
#undef GROUPED_TILE

/* Applies what follows the convolution to the pixels of a tile. */
static void grouped_finish(const leati_grouped *job, int64_t at, int64_t pixels) {
    const int64_t filters = job->last_filter - job->first_filter;
    for (int64_t p = 0; p < pixels; p++, at += job->g->filters)
        for (int64_t c = 0; c < filters; c += LEATI_LANES) {
            vf y = v_load(job->dst + at + c);
            if (job->addend) y += v_load(job->addend + at + c);
            v_store(job->dst + at + c, job->f ? f_apply(job->f, y) : y);
        }
}

/* Computes one row of the destination, of all axes but the last. */
static void grouped_forward_row(const leati_grouped *job, depthwise_tile *t, const depthwise_choice *choice,
                                int64_t row) {
    const leati_geometry *g = job->g;
    const int64_t c = g->channels, from[2] = {row / g->out[1] % g->out[0], row % g->out[1]};
    const int64_t weights_of = g->taps * (c / g->groups);
    const float *src = job->src + row / g->out[1] / g->out[0] * g->in[0] * g->in[1] * g->in[2] * c;
    const int64_t vectors = (job->last_filter - job->first_filter) / LEATI_LANES;
    int64_t first_weight = 0;
    for (int i = 0; i < 2; i++) {
        int64_t at = from[i] * g->stride[i] - g->pad_before[i], first, last;
        depthwise_inside(g, i, at, &first, &last);
        t->rows[i] = last - first;
        first_weight += first * t->weights_row[i];
        src += (at + first * g->dilation[i]) * (t->src_row[i] / g->dilation[i]);
    }
    for (int64_t x = 0, pixels; x < g->out[2]; x += pixels) {
        bool cut;
        pixels = depthwise_pixels(t, choice, x, &cut);
        const int64_t at = (row * g->out[2] + x) * c;
        const grouped_tile_of tile = !choice->taps ? grouped_any[pixels]
                                     : cut         ? grouped_3_cut[pixels]
                                                   : grouped_3[pixels];
        t->src = src + (x * g->stride[2] - g->pad_before[2]) * c + job->first_filter;
        t->weights = job->packed + job->first_filter * weights_of + first_weight;
        t->to = job->dst + at + job->first_filter;
        tile(t, job->bias ? job->bias + job->first_filter : NULL, vectors);
        if (job->addend || job->f) grouped_finish(job, at + job->first_filter, pixels);
    }
}

static void grouped_forward(const leati_grouped *job) {
    const leati_geometry *g = job->g;
    const int64_t c = g->channels, row = g->kernel[2] * (c / g->groups) * LEATI_LANES;
    const bool usual = g->kernel[2] == 3 && g->stride[2] == 1 && g->dilation[2] == 1 &&
                       g->pad_before[2] < 3 && g->pad_after[2] < 3;
    const depthwise_choice choice = {.taps = usual ? 3 : 0, .stride = 1};
    depthwise_tile t = {.g = g,
                        .src_row = {g->dilation[0] * g->in[1] * g->in[2] * c, g->dilation[1] * g->in[2] * c},
                        .weights_row = {g->kernel[1] * row, row},
                        .to_pixel = c};
    for (int64_t r = job->first_row; r < job->last_row; r++) grouped_forward_row(job, &t, &choice, r);
}

/* ---- The gradient with respect to the weights ---- */

/* Adds, for one tap, what `pixels` pixels of a row give: (width, filters) from `sums` on. */
LEATI_INLINE void grouped_tap(const leati_geometry *g, const float *src, const float *diff_dst,
                              int64_t pixels, float *sums, const int width) {
    const int64_t step = g->stride[2] * g->channels;
    const vi lanes = grouped_lanes(width);
    vf acc[LEATI_LANES];
    EACH (i, width) acc[i] = v_load(sums + i * g->filters);
    for (int64_t x = 0; x < pixels; x++, src += step, diff_dst += g->filters) {
        const vf diff = v_load(diff_dst);
        EACH (i, width) acc[i] += diff * grouped_spread(src, i, lanes + i);
    }
    EACH (i, width) v_store(sums + i * g->filters, acc[i]);
}

/* Adds what one row of the destination and one line of the source give to the sums of a line of the window. */
static void grouped_line(const leati_geometry *g, const float *src, const float *diff_dst, float *sums) {
    const int64_t width = g->channels / g->groups, stride = g->stride[2];
    for (int64_t k = 0; k < g->kernel[2]; k++, sums += width * g->filters) {
        const int64_t column = k * g->dilation[2] - g->pad_before[2], left = g->in[2] - column;
        int64_t first = column < 0 ? (-column + stride - 1) / stride : 0,
                last = left > 0 ? (left + stride - 1) / stride : 0;
        if (last > g->out[2]) last = g->out[2];
        if (first >= last) continue;
        const float *x = src + (column + first * stride) * g->channels, *diff = diff_dst + first * g->filters;
        switch (width) {
#if LEATI_LANES >= 8
        case 2: grouped_tap(g, x, diff, last - first, sums, 2); break;
#endif
#if LEATI_LANES >= 16
        case 8: grouped_tap(g, x, diff, last - first, sums, 8); break;
#endif
        default: grouped_tap(g, x, diff, last - first, sums, 4);
        }
    }
}

static void grouped_bwd_weights(const leati_grouped_bwd *job) {
    const leati_geometry *g = job->g;
    const int64_t line = g->kernel[2] * (g->channels / g->groups) * g->filters;
    for (int64_t row = job->first_row; row < job->last_row; row++) {
        const int64_t from[2] = {row / g->out[1] % g->out[0], row % g->out[1]};
        const int64_t sample = row / g->out[1] / g->out[0];
        const float *diff = job->diff_dst + row * g->out[2] * g->filters;
        for (int64_t tap = 0; tap < g->kernel[0] * g->kernel[1]; tap++) {
            const int64_t z = from[0] * g->stride[0] + tap / g->kernel[1] * g->dilation[0] - g->pad_before[0],
                          y = from[1] * g->stride[1] + tap % g->kernel[1] * g->dilation[1] - g->pad_before[1];
            if (z < 0 || z >= g->in[0] || y < 0 || y >= g->in[1]) continue;
            const float *src = job->src + ((sample * g->in[0] + z) * g->in[1] + y) * g->in[2] * g->channels;
            for (int64_t f = 0; f < g->filters; f += LEATI_LANES)
                grouped_line(g, src + f, diff + f, job->sums + tap * line + f);
        }
        for (int64_t x = 0; job->bias && x < g->out[2]; x++)
            for (int64_t f = 0; f < g->filters; f += LEATI_LANES)
                v_store(job->bias + f, v_load(job->bias + f) + v_load(diff + x * g->filters + f));
    }
}

#undef EACH

#endif
