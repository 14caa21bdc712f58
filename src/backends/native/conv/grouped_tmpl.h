/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions whose groups have a few channels and filters, for the code that is compiled once per instruction set.  A
 * vector of filters belongs to whole groups: channel i of each group is spread over the lanes of its group, and
 * multiplied by the weights of all its filters. */
#ifndef LEATI_BACKENDS_NATIVE_CONV_GROUPED_TMPL_H
#define LEATI_BACKENDS_NATIVE_CONV_GROUPED_TMPL_H

#include "backends/native/conv/depthwise_forward_tmpl.h"
#include "backends/native/conv/jobs.h"
#include "backends/native/simd/function_tmpl.h"

#define EACH(i, count) _Pragma("GCC unroll 32") for (int i = 0; i < count; i++)

/* How the channels of a vector of filters lie in memory. */
typedef enum grouped_source {
    GROUPED_SAME, /* a vector: groups have as many channels as filters */
    GROUPED_LESS, /* a part of a vector */
    GROUPED_MORE  /* several vectors */
} grouped_source;

/* Returns, in each lane, the channel of which it is a filter's, the first of the group, counted from the first group of
 * the vector.  Both numbers, of a group, are powers of two. */
LEATI_INLINE vi grouped_first(int64_t channels, int64_t filters) {
    return (v_lanes() >> (int32_t)__builtin_ctzll((uint64_t)filters)) * (int32_t)channels;
}

/* Returns from[lanes[i]] in lane i; used: the number of these floats. */
LEATI_INLINE vf grouped_spread(const float *from, vi lanes, int64_t used, const grouped_source source) {
#if defined(__AVX512F__) && LEATI_LANES == 16
    if (source == GROUPED_MORE) return (vf)_mm512_i32gather_ps((__m512i)lanes, from, 4);
#elif defined(__AVX2__) && LEATI_LANES == 8
    if (source == GROUPED_MORE) return (vf)_mm256_i32gather_ps(from, (__m256i)lanes, 4);
#else
    if (source == GROUPED_SAME) return v_all(from[lanes[0]]); /* the group is the whole vector */
    if (source == GROUPED_MORE) {
        vf x;
        for (int i = 0; i < LEATI_LANES; i++) x[i] = from[lanes[i]];
        return x;
    }
#endif
    return v_permute(source == GROUPED_SAME ? v_load(from) : v_load_part(from, used), lanes);
}

/* The groups of a vector of filters. */
typedef struct grouped_vector {
    int64_t channels, filters; /* of a group */
    int64_t used;              /* channels of all groups of the vector */
    int64_t weights;           /* floats of its packed weights */
} grouped_vector;

static grouped_vector grouped_vector_of(const leati_geometry *g) {
    const int64_t channels = g->channels / g->groups, filters = g->filters / g->groups;
    return (grouped_vector){channels, filters, LEATI_LANES / filters * channels,
                            g->taps * channels * LEATI_LANES};
}

/* Adds one channel of each group, in one row of the window, to the sums; lanes: of that channel.  taps: of the last
 * axis, with stride 1; 0 stands for any window.  cut: columns outside of first_column to last_column - 1 are not
 * read. */
LEATI_INLINE void grouped_row(vf *acc, const depthwise_tile *t, const grouped_vector *v, const float *src,
                              const float *weights, vi lanes, const int pixels, const int taps,
                              const bool cut, const grouped_source source) {
    const int64_t c = t->g->channels, next = v->channels * LEATI_LANES;
    if (taps) {
        const int columns = pixels - 1 + taps;
        vf w[3];
        EACH (k, taps) w[k] = v_load(weights + k * next);
        EACH (j, columns) {
            bool at_border = j < taps - 1 || j > columns - taps;
            if (!cut || !at_border || (j >= t->first_column && j < t->last_column)) {
                const vf x = grouped_spread(src + j * c, lanes, v->used, source);
                EACH (k, taps)
                    if (j >= k && j - k < pixels) acc[j - k] += w[k] * x;
            }
        }
        return;
    }
    const int64_t tap = t->g->dilation[2] * c, step = t->g->stride[2] * c;
    for (int64_t k = t->first_column; k < t->last_column; k++) {
        const vf w = v_load(weights + k * next);
        EACH (p, pixels) acc[p] += w * grouped_spread(src + k * tap + p * step, lanes, v->used, source);
    }
}

/* Computes `pixels` pixels of `vectors` vectors of filters. */
LEATI_INLINE void grouped_tile(const depthwise_tile *t, const float *bias, int64_t vectors, const int pixels,
                               const int taps, const bool cut, const grouped_source source) {
    const grouped_vector v = grouped_vector_of(t->g);
    const vi first = grouped_first(v.channels, v.filters);
    const float *src = t->src, *weights = t->weights;
    float *to = t->to;
    for (; vectors > 0; vectors--, src += v.used, weights += v.weights, to += LEATI_LANES) {
        const float *plane = src, *plane_weights = weights;
        vf acc[DEPTHWISE_PIXELS];
        EACH (p, pixels) acc[p] = bias ? v_load(bias) : v_all(0);
        if (bias) bias += LEATI_LANES;
        for (int64_t d = t->rows[0]; d > 0; d--, plane += t->src_row[0], plane_weights += t->weights_row[0]) {
            const float *row = plane, *w = plane_weights;
            for (int64_t h = t->rows[1]; h > 0; h--, row += t->src_row[1], w += t->weights_row[1]) {
                vi lanes = first;
                if (h == 1) /* the next tile's part of the line that no earlier row has read */
                    EACH (j, pixels) __builtin_prefetch(row + (j + pixels + 2) * t->g->channels);
                for (int64_t i = 0; i < v.channels; i++, lanes += 1)
                    grouped_row(acc, t, &v, row, w + i * LEATI_LANES, lanes, pixels, taps, cut, source);
            }
        }
        EACH (p, pixels) v_store(to + p * t->to_pixel, acc[p]);
    }
}

typedef void (*grouped_tile_of)(const depthwise_tile *t, const float *bias, int64_t vectors);

#define GROUPED_TILE(name, pixels, ...)                                                                      \
    static __attribute__((noinline)) void name##_##pixels(const depthwise_tile *t, const float *bias,        \
                                                          int64_t vectors) {                                 \
        grouped_tile(t, bias, vectors, pixels, __VA_ARGS__);                                                 \
    }
#define GROUPED_TILES(name, ...) TILES_BY_PIXELS(GROUPED_TILE, grouped_tile_of, grouped_##name, __VA_ARGS__)

GROUPED_TILES(3, 3, false, GROUPED_SAME)
GROUPED_TILES(3_cut, 3, true, GROUPED_SAME)
GROUPED_TILES(same, 0, false, GROUPED_SAME)
GROUPED_TILES(less, 0, false, GROUPED_LESS)
GROUPED_TILES(more, 0, false, GROUPED_MORE)
#undef GROUPED_TILES
#undef GROUPED_TILE

/* Applies what follows the convolution to the pixels of a tile. */
static void grouped_finish(const leati_conv_rows *job, int64_t at, int64_t pixels) {
    const int64_t filters = job->last_filter - job->first_filter;
    for (int64_t p = 0; p < pixels; p++, at += job->g->filters)
        for (int64_t c = 0; c < filters; c += LEATI_LANES) {
            vf y = v_load(job->dst + at + c);
            if (job->addend) y += v_load(job->addend + at + c);
            v_store(job->dst + at + c, job->f ? f_apply(job->f, y) : y);
        }
}

/* The tiles for a window: those whose columns are all inside of the source, and others. */
typedef struct grouped_choice {
    depthwise_choice columns;
    const grouped_tile_of *whole, *cut;
} grouped_choice;

static grouped_choice grouped_choose(const leati_geometry *g) {
    const bool usual = g->kernel[2] == 3 && g->stride[2] == 1 && g->dilation[2] == 1 &&
                       g->pad_before[2] < 3 && g->pad_after[2] < 3;
    if (g->channels < g->filters) return (grouped_choice){{.taps = 0}, grouped_less, grouped_less};
    if (g->channels > g->filters) return (grouped_choice){{.taps = 0}, grouped_more, grouped_more};
    if (!usual) return (grouped_choice){{.taps = 0}, grouped_same, grouped_same};
    return (grouped_choice){{.taps = 3, .stride = 1}, grouped_3, grouped_3_cut};
}

/* Computes one row of the destination, of all axes but the last. */
static void grouped_forward_row(const leati_conv_rows *job, depthwise_tile *t, const grouped_choice *choice,
                                int64_t row) {
    const leati_geometry *g = job->g;
    const grouped_vector v = grouped_vector_of(g);
    const int64_t c = g->channels;
    const int64_t first = job->first_filter / LEATI_LANES,
                  vectors = (job->last_filter - job->first_filter) / LEATI_LANES;
    const float *src = depthwise_place(t, job->src, row);
    t->weights = job->packed + first * v.weights + t->first_weight;
    for (int64_t x = 0, pixels; x < g->out[2]; x += pixels) {
        bool cut;
        pixels = depthwise_pixels(t, &choice->columns, x, &cut);
        const int64_t at = (row * g->out[2] + x) * g->filters + job->first_filter;
        t->src = src + (x * g->stride[2] - g->pad_before[2]) * c + first * v.used;
        t->to = job->dst + at;
        (cut ? choice->cut : choice->whole)[pixels](t, job->bias ? job->bias + job->first_filter : NULL,
                                                    vectors);
        if (job->addend || job->f) grouped_finish(job, at, pixels);
    }
}

static void grouped_forward(const leati_conv_rows *job) {
    const leati_geometry *g = job->g;
    const int64_t c = g->channels, row = g->kernel[2] * (c / g->groups) * LEATI_LANES;
    const grouped_choice choice = grouped_choose(g);
    depthwise_tile t = {.g = g,
                        .src_row = {g->dilation[0] * g->in[1] * g->in[2] * c, g->dilation[1] * g->in[2] * c},
                        .weights_row = {g->kernel[1] * row, row},
                        .to_pixel = g->filters};
    for (int64_t r = job->first_row; r < job->last_row; r++) grouped_forward_row(job, &t, &choice, r);
}

/* ---- The gradient with respect to the weights ---- */

/* Adds, for one tap, what `pixels` pixels of a row give: (channels of a group, filters) from `sums` on. */
LEATI_INLINE void grouped_tap(const leati_geometry *g, const float *src, const float *diff_dst,
                              int64_t pixels, float *sums, const int channels, const grouped_source source) {
    const grouped_vector v = grouped_vector_of(g);
    const int64_t step = g->stride[2] * g->channels;
    const vi first = grouped_first(v.channels, v.filters);
    vf acc[LEATI_LANES];
    EACH (i, channels) acc[i] = v_load(sums + i * g->filters);
    for (int64_t x = 0; x < pixels; x++, src += step, diff_dst += g->filters) {
        const vf diff = v_load(diff_dst);
        EACH (i, channels) acc[i] += diff * grouped_spread(src, first + i, v.used, source);
    }
    EACH (i, channels) v_store(sums + i * g->filters, acc[i]);
}

/* Adds what one row of the destination and one line of the source give to the sums of a line of the window. */
static void grouped_line(const leati_geometry *g, const float *src, const float *diff_dst, float *sums) {
    const int64_t channels = g->channels / g->groups, stride = g->stride[2];
    for (int64_t k = 0; k < g->kernel[2]; k++, sums += channels * g->filters) {
        const int64_t column = k * g->dilation[2] - g->pad_before[2], left = g->in[2] - column;
        int64_t first = column < 0 ? (-column + stride - 1) / stride : 0,
                last = left > 0 ? (left + stride - 1) / stride : 0;
        if (last > g->out[2]) last = g->out[2];
        if (first >= last) continue;
        const float *x = src + (column + first * stride) * g->channels, *diff = diff_dst + first * g->filters;
        const int64_t pixels = last - first;
        switch (channels) {
        case 1: grouped_tap(g, x, diff, pixels, sums, 1, GROUPED_LESS); break;
        case 2: grouped_tap(g, x, diff, pixels, sums, 2, GROUPED_SAME); break;
        case 8: grouped_tap(g, x, diff, pixels, sums, 8, GROUPED_SAME); break;
        default: grouped_tap(g, x, diff, pixels, sums, 4, GROUPED_SAME);
        }
    }
}

static void grouped_bwd_weights(const leati_conv_rows_bwd *job) {
    const leati_geometry *g = job->g;
    const grouped_vector v = grouped_vector_of(g);
    const int64_t line = g->kernel[2] * v.channels * g->filters;
    for (int64_t row = job->first_row; row < job->last_row; row++) {
        const int64_t from[2] = {row / g->out[1] % g->out[0], row % g->out[1]};
        const int64_t sample = row / g->out[1] / g->out[0];
        const float *diff = job->diff_dst + row * g->out[2] * g->filters;
        for (int64_t tap = 0; tap < g->kernel[0] * g->kernel[1]; tap++) {
            const int64_t z = from[0] * g->stride[0] + tap / g->kernel[1] * g->dilation[0] - g->pad_before[0],
                          y = from[1] * g->stride[1] + tap % g->kernel[1] * g->dilation[1] - g->pad_before[1];
            if (z < 0 || z >= g->in[0] || y < 0 || y >= g->in[1]) continue;
            const float *src = job->src + ((sample * g->in[0] + z) * g->in[1] + y) * g->in[2] * g->channels;
            for (int64_t f = 0; f < g->filters; f += LEATI_LANES, src += v.used)
                grouped_line(g, src, diff + f, job->sums + tap * line + f);
        }
        for (int64_t x = 0; job->bias && x < g->out[2]; x++)
            for (int64_t f = 0; f < g->filters; f += LEATI_LANES)
                v_store(job->bias + f, v_load(job->bias + f) + v_load(diff + x * g->filters + f));
    }
}

#undef EACH

#endif
