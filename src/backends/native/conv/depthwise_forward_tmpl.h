/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions with one filter per channel, for the code that is compiled once per instruction set.  A tile
 * is up to DEPTHWISE_PIXELS pixels of a row of the destination times one vector of channels.  Its sums stay in
 * registers over all taps; for the usual windows a source vector is read once for all pixels whose windows it is in.
 * Every sum adds its taps in the order of the weights, so that it does not depend on the tile. */
#ifndef LEATI_BACKENDS_NATIVE_CONV_DEPTHWISE_FORWARD_TMPL_H
#define LEATI_BACKENDS_NATIVE_CONV_DEPTHWISE_FORWARD_TMPL_H

#include "backends/native/conv/jobs.h"
#include "backends/native/matmul/product_tmpl.h"
#include "backends/native/simd/vector_tmpl.h"

#define DEPTHWISE_PIXELS 8
#define DEPTHWISE_VECTORS                                                                                    \
    16 /* the most vectors of a block of channels: their weights and sums stay in the L1 cache */

/* Tiles of a block of channels: the same pixels for each vector. */
typedef struct depthwise_tile {
    const leati_geometry *g;
    const float *src; /* the source's sample, from the first channel of the vectors on */
    int64_t at[3]; /* the source pixel under the first tap of the first pixel's window; it may be outside */
    int64_t first[2], last[2]; /* the taps of the two outer axes that are inside of the source */
    /* of the last axis: the taps that are inside; or, for windows of a fixed size, the columns under the windows */
    int64_t first_column, last_column;
    const float *weights; /* for each vector: its weights (taps, lanes), then its bias (lanes) */
    int64_t lanes;        /* lanes that a source vector has in memory */
    float *to;
    int64_t to_pixel, to_vector;
    const float *addend;    /* with the layout of `to`; may be NULL */
    const leati_eltwise *f; /* one that a tile computes in registers; may be NULL */
} depthwise_tile;

#define EACH(i, count) _Pragma("GCC unroll 32") for (int i = 0; i < count; i++)

/* Adds one row of a window to the sums.  taps and stride are those of the last axis; taps of 0 stands for any window.
 * cut: columns outside of first_column to last_column - 1 are not read. */
LEATI_INLINE void depthwise_row(vf *acc, const depthwise_tile *t, const float *src, const float *weights,
                                const int pixels, const int taps, const int stride, const bool cut,
                                const bool partial) {
    int64_t c = t->g->channels;
    if (taps) {
        vf w[7];
        EACH (k, taps) w[k] = v_load(weights + k * LEATI_LANES);
        EACH (j, (pixels - 1) * stride + taps) {
            if (!cut || (j >= t->first_column && j < t->last_column)) {
                vf x = v_load(src + j * c);
                EACH (k, taps)
                    if (j >= k && (j - k) % stride == 0 && (j - k) / stride < pixels)
                        acc[(j - k) / stride] += w[k] * x;
            }
        }
        return;
    }
    int64_t tap = t->g->dilation[2] * c, step = t->g->stride[2] * c;
    for (int64_t k = t->first_column; k < t->last_column; k++) {
        vf w = v_load(weights + k * LEATI_LANES);
        const float *from = src + k * tap;
        EACH (i, pixels)
            acc[i] += w * (partial ? v_load_part(from + i * step, t->lanes) : v_load(from + i * step));
    }
}

LEATI_INLINE void depthwise_tiles(const depthwise_tile *t, int64_t vectors, const int pixels, const int taps,
                                  const int stride, const bool cut, const bool partial) {
    const leati_geometry *g = t->g;
    const float *weights = t->weights;
    int64_t row_weights = g->kernel[2] * LEATI_LANES, bias = g->taps * LEATI_LANES;
    for (int64_t v = 0; v < vectors; v++, weights += bias + LEATI_LANES) {
        vf acc[DEPTHWISE_PIXELS];
        EACH (i, pixels) acc[i] = v_load(weights + bias);
        for (int64_t d = t->first[0]; d < t->last[0]; d++)
            for (int64_t h = t->first[1]; h < t->last[1]; h++) {
                int64_t row = (t->at[0] + d * g->dilation[0]) * g->in[1] + t->at[1] + h * g->dilation[1];
                depthwise_row(acc, t, t->src + (row * g->in[2] + t->at[2]) * g->channels + v * LEATI_LANES,
                              weights + (d * g->kernel[1] + h) * row_weights, pixels, taps, stride, cut,
                              partial);
            }
        if (t->addend)
            EACH (i, pixels) acc[i] += v_load(t->addend + i * t->to_pixel + v * t->to_vector);
        if (t->f && is_clip(t->f)) {
            vf high = v_all(t->f->b);
            EACH (i, pixels) acc[i] = v_min(v_max(acc[i], v_all(0)), high);
        } else if (t->f) {
            const leati_eltwise f = {.function = LEATI_FN_HARD_SWISH};
            EACH (i, pixels) acc[i] = f_apply(&f, acc[i]);
        }
        EACH (i, pixels) v_store(t->to + i * t->to_pixel + v * t->to_vector, acc[i]);
    }
}

#undef EACH

/* True for functions that a tile computes in registers. */
LEATI_INLINE bool depthwise_is_short(const leati_eltwise *f) {
    return is_clip(f) || f->function == LEATI_FN_HARD_SWISH;
}

typedef void (*depthwise_tiles_of)(const depthwise_tile *t, int64_t vectors);

#define DEPTHWISE_TILE(name, pixels, ...)                                                                    \
    static __attribute__((noinline)) void depthwise_##name##_##pixels(const depthwise_tile *t,               \
                                                                      int64_t vectors) {                     \
        depthwise_tiles(t, vectors, pixels, __VA_ARGS__);                                                    \
    }
#define DEPTHWISE_TILES(name, ...)                                                                           \
    DEPTHWISE_TILE(name, 1, __VA_ARGS__)                                                                     \
    DEPTHWISE_TILE(name, 2, __VA_ARGS__)                                                                     \
    DEPTHWISE_TILE(name, 3, __VA_ARGS__)                                                                     \
    DEPTHWISE_TILE(name, 4, __VA_ARGS__)                                                                     \
    DEPTHWISE_TILE(name, 5, __VA_ARGS__)                                                                     \
    DEPTHWISE_TILE(name, 6, __VA_ARGS__)                                                                     \
    DEPTHWISE_TILE(name, 7, __VA_ARGS__)                                                                     \
    DEPTHWISE_TILE(name, 8, __VA_ARGS__)                                                                     \
    static const depthwise_tiles_of depthwise_##name[DEPTHWISE_PIXELS + 1] = {NULL,                          \
                                                                              depthwise_##name##_1,          \
                                                                              depthwise_##name##_2,          \
                                                                              depthwise_##name##_3,          \
                                                                              depthwise_##name##_4,          \
                                                                              depthwise_##name##_5,          \
                                                                              depthwise_##name##_6,          \
                                                                              depthwise_##name##_7,          \
                                                                              depthwise_##name##_8};

DEPTHWISE_TILES(3, 3, 1, false, false)
DEPTHWISE_TILES(5, 5, 1, false, false)
DEPTHWISE_TILES(7, 7, 1, false, false)
DEPTHWISE_TILES(3_cut, 3, 1, true, false)
DEPTHWISE_TILES(5_cut, 5, 1, true, false)
DEPTHWISE_TILES(7_cut, 7, 1, true, false)
DEPTHWISE_TILES(3_by_2, 3, 2, false, false)
DEPTHWISE_TILES(5_by_2, 5, 2, false, false)
DEPTHWISE_TILES(3_by_2_cut, 3, 2, true, false)
DEPTHWISE_TILES(5_by_2_cut, 5, 2, true, false)
DEPTHWISE_TILES(any, 0, 0, false, false)
DEPTHWISE_TILES(partial, 0, 0, false, true)
#undef DEPTHWISE_TILES
#undef DEPTHWISE_TILE

/* The tiles for a window: taps and stride of the last axis if these are fixed; tiles whose columns are all inside of
 * the source; other tiles. */
typedef struct depthwise_choice {
    int64_t taps, stride;
    const depthwise_tiles_of *whole, *cut;
} depthwise_choice;

static depthwise_choice depthwise_choose(const leati_geometry *g) {
    static const depthwise_choice choices[] = {{3, 1, depthwise_3, depthwise_3_cut},
                                               {5, 1, depthwise_5, depthwise_5_cut},
                                               {7, 1, depthwise_7, depthwise_7_cut},
                                               {3, 2, depthwise_3_by_2, depthwise_3_by_2_cut},
                                               {5, 2, depthwise_5_by_2, depthwise_5_by_2_cut}};
    if (g->channels < LEATI_LANES) return (depthwise_choice){0, 0, depthwise_partial, depthwise_partial};
    for (size_t i = 0; i < sizeof choices / sizeof choices[0] && g->dilation[2] == 1; i++)
        if (choices[i].taps == g->kernel[2] && choices[i].stride == g->stride[2]) return choices[i];
    return (depthwise_choice){0, 0, depthwise_any, depthwise_any};
}

/* Sets first to last - 1 to the taps of an axis that are inside of the source where the window begins at `at`. */
LEATI_INLINE void depthwise_inside(const leati_geometry *g, int axis, int64_t at, int64_t *first,
                                   int64_t *last) {
    int64_t gap = g->dilation[axis], left = g->in[axis] - at;
    *first = at < 0 ? (-at + gap - 1) / gap : 0;
    *last = left > 0 ? (left + gap - 1) / gap : 0;
    if (*last > g->kernel[axis]) *last = g->kernel[axis];
    if (*last < *first) *last = *first;
}

/* Returns how many pixels the tile at pixel x of a row has, and sets the tile's columns. */
LEATI_INLINE int64_t depthwise_pixels(depthwise_tile *t, const depthwise_choice *choice, int64_t x,
                                      bool *cut) {
    const leati_geometry *g = t->g;
    int64_t most = g->out[2] - x, stride = g->stride[2], at = x * stride - g->pad_before[2];
    t->at[2] = at;
    if (choice->taps) {
        int64_t blocks = (most + DEPTHWISE_PIXELS - 1) / DEPTHWISE_PIXELS,
                pixels = (most + blocks - 1) / blocks;
        int64_t columns = (pixels - 1) * stride + choice->taps, left = g->in[2] - at;
        t->first_column = at < 0 ? -at : 0;
        t->last_column = left < columns ? left : columns;
        *cut = at < 0 || left < columns;
        return pixels;
    }
    depthwise_inside(g, 2, at, &t->first_column, &t->last_column);
    *cut = true;
    if (t->last_column - t->first_column < g->kernel[2]) return 1;
    int64_t whole = (g->in[2] - 1 - at - (g->kernel[2] - 1) * g->dilation[2]) / stride + 1;
    if (whole < most) most = whole;
    return most < DEPTHWISE_PIXELS ? most : DEPTHWISE_PIXELS;
}

/* Computes tiles that do not go to the destination directly: the last vector of channels, of which the first `known`
 * lanes are known, or vectors with a function that is not computed in registers. */
static __attribute__((noinline)) void depthwise_apart(const leati_depthwise *job, depthwise_tile *t,
                                                      depthwise_tiles_of tiles, int64_t pixels,
                                                      int64_t vectors, int64_t known, int64_t at) {
    _Alignas(64) float sums[DEPTHWISE_VECTORS * DEPTHWISE_PIXELS * LEATI_LANES];
    int64_t c = job->g->channels, lanes = t->lanes - known;
    depthwise_tile apart = *t;
    apart.to = sums;
    apart.to_pixel = LEATI_LANES;
    apart.to_vector = pixels * LEATI_LANES;
    apart.addend = NULL;
    if (job->addend) apart.f = NULL;
    tiles(&apart, vectors);
    for (int64_t v = 0; job->addend && v < vectors; v++)
        for (int64_t i = 0; i < pixels; i++) {
            float *x = sums + (v * pixels + i) * LEATI_LANES + known;
            v_store_part(x,
                         v_load_part(x, lanes) +
                             v_load_part(job->addend + at + i * c + v * LEATI_LANES + known, lanes),
                         lanes);
        }
    if (job->f && !apart.f) map_function(job->f, sums, sums, vectors * pixels * LEATI_LANES);
    for (int64_t v = 0; v < vectors; v++)
        for (int64_t i = 0; i < pixels; i++)
            v_store_part(job->dst + at + i * c + v * LEATI_LANES + known,
                         v_load_part(sums + (v * pixels + i) * LEATI_LANES + known, lanes), lanes);
}

/* Computes one row of the destination for `vectors` vectors of channels from channel `channel` on. */
static void depthwise_forward_row(const leati_depthwise *job, depthwise_tile *t,
                                  const depthwise_choice *choice, int64_t row, int64_t channel,
                                  int64_t vectors) {
    const leati_geometry *g = job->g;
    int64_t c = g->channels, from[2] = {row / g->out[1] % g->out[0], row % g->out[1]};
    int64_t end = channel + vectors * LEATI_LANES, known = end > c && c >= LEATI_LANES ? end - c : 0;
    int64_t whole = end > c ? vectors - 1 : vectors;
    const float *weights = job->packed + channel * (g->taps + 1);
    for (int i = 0; i < 2; i++) {
        t->at[i] = from[i] * g->stride[i] - g->pad_before[i];
        depthwise_inside(g, i, t->at[i], &t->first[i], &t->last[i]);
    }
    const float *src = job->src + row / g->out[1] / g->out[0] * g->in[0] * g->in[1] * g->in[2] * c;
    for (int64_t x = 0, pixels; x < g->out[2]; x += pixels) {
        bool cut;
        int64_t at = (row * g->out[2] + x) * c + channel;
        pixels = depthwise_pixels(t, choice, x, &cut);
        depthwise_tiles_of tiles = (cut ? choice->cut : choice->whole)[pixels];
        t->src = src + channel;
        t->weights = weights;
        if (whole && job->f && !t->f)
            depthwise_apart(job, t, tiles, pixels, whole, 0, at);
        else if (whole) {
            t->to = job->dst + at;
            t->addend = job->addend ? job->addend + at : NULL;
            tiles(t, whole);
        }
        if (whole == vectors) continue;
        int64_t shift = whole * LEATI_LANES - known;
        t->src += shift;
        t->weights += whole * (g->taps + 1) * LEATI_LANES;
        depthwise_apart(job, t, tiles, pixels, 1, known, at + shift);
    }
}

static void depthwise_forward(const leati_depthwise *job) {
    const leati_geometry *g = job->g;
    int64_t c = g->channels, all = job->last_vector - job->first_vector;
    int64_t blocks = (all + DEPTHWISE_VECTORS - 1) / DEPTHWISE_VECTORS;
    depthwise_choice choice = depthwise_choose(g);
    depthwise_tile t = {.g = g,
                        .lanes = c < LEATI_LANES ? c : LEATI_LANES,
                        .to_pixel = c,
                        .to_vector = LEATI_LANES,
                        .f = job->f && depthwise_is_short(job->f) ? job->f : NULL};
    for (int64_t b = 0; b < blocks; b++) {
        int64_t first = job->first_vector + all * b / blocks,
                last = job->first_vector + all * (b + 1) / blocks;
        for (int64_t row = job->first_row; row < job->last_row; row++)
            depthwise_forward_row(job, &t, &choice, row, first * LEATI_LANES, last - first);
    }
}

/* Packs weights (taps, channels) times scale, and bias, as depthwise_tile has them.  The last vector has the last
 * LEATI_LANES channels; where there are fewer, the weights of its other lanes are 0, and their bias is 1, for which
 * every function has a result. */
static void depthwise_pack(const leati_geometry *g, const float *weights, const float *scale,
                           const float *bias, float *packed) {
    int64_t c = g->channels;
    for (int64_t from = 0; from < c; from += LEATI_LANES) {
        int64_t at = c - from >= LEATI_LANES || c < LEATI_LANES ? from : c - LEATI_LANES;
        for (int64_t tap = 0; tap < g->taps; tap++, packed += LEATI_LANES)
            v_store(packed, v_load_part(weights + tap * c + at, c - at) * v_load_part(scale + at, c - at));
        v_store(packed, v_load_part_or_one(bias + at, c - at));
        packed += LEATI_LANES;
    }
}

#endif
