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
    /* The source under the first column of the first pixel's window, in the first row of the window that is inside of
     * the source, from the first channel of the vectors on; the column may be outside. */
    const float *src;
    /* of the two outer axes: the taps that are inside of the source; floats from one to the next, in the source and in
     * the weights */
    int64_t rows[2], src_row[2], weights_row[2];
    /* of the last axis: the taps that are inside; or, for windows of a fixed size, the columns under the windows */
    int64_t first_column, last_column;
    const float *weights; /* for each vector: its weights (taps, lanes), then its bias (lanes) */
    int64_t first_weight; /* floats from there to the weights of the first row that is inside */
    int64_t lanes;        /* lanes that a source vector has in memory */
    float *to;
    int64_t to_pixel;
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
        const int columns = (pixels - 1) * stride + taps;
        vf w[7];
        EACH (k, taps) w[k] = v_load(weights + k * LEATI_LANES);
        EACH (j, columns) {
            bool at_border = j < taps - 1 || j > columns - taps;
            if (!cut || !at_border || (j >= t->first_column && j < t->last_column)) {
                /* volatile: the compiler would read the vector again for each product */
                vf x = *(const volatile vf_loose *)(src + j * c);
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
    const float *weights = t->weights, *src = t->src, *addend = t->addend;
    const int64_t bias = t->g->taps * LEATI_LANES, to_pixel = t->to_pixel;
    const leati_eltwise *f = t->f;
    float *to = t->to;
    for (int64_t v = 0; v < vectors;
         v++, weights += bias + LEATI_LANES, src += LEATI_LANES, to += LEATI_LANES) {
        vf acc[DEPTHWISE_PIXELS];
        EACH (i, pixels) acc[i] = v_load(weights + bias);
        const float *plane = src, *plane_weights = weights + t->first_weight;
        for (int64_t d = t->rows[0]; d > 0; d--, plane += t->src_row[0], plane_weights += t->weights_row[0]) {
            const float *row = plane, *w = plane_weights;
            for (int64_t h = t->rows[1]; h > 0; h--, row += t->src_row[1], w += t->weights_row[1])
                depthwise_row(acc, t, row, w, pixels, taps, stride, cut, partial);
        }
        if (addend) {
            EACH (i, pixels) acc[i] += v_load(addend + i * to_pixel);
            addend += LEATI_LANES;
        }
        if (f && is_clip(f)) {
            vf high = v_all(f->b);
            EACH (i, pixels) acc[i] = v_min(v_max(acc[i], v_all(0)), high);
        } else if (f && f->function == LEATI_FN_SILU) {
            const leati_eltwise silu = {.function = LEATI_FN_SILU};
            EACH (i, pixels) acc[i] = f_apply(&silu, acc[i]);
        } else if (f) {
            const leati_eltwise hard_swish = {.function = LEATI_FN_HARD_SWISH};
            EACH (i, pixels) acc[i] = f_apply(&hard_swish, acc[i]);
        }
        EACH (i, pixels) v_store(to + i * to_pixel, acc[i]);
    }
}

#undef EACH

/* True for functions that a tile computes in registers. */
LEATI_INLINE bool depthwise_is_short(const leati_eltwise *f) {
    return is_clip(f) || f->function == LEATI_FN_SILU || f->function == LEATI_FN_HARD_SWISH;
}

typedef void (*depthwise_tiles_of)(const depthwise_tile *t, int64_t vectors);

#define DEPTHWISE_TILE(name, pixels, ...)                                                                    \
    static __attribute__((noinline)) void name##_##pixels(const depthwise_tile *t, int64_t vectors) {        \
        depthwise_tiles(t, vectors, pixels, __VA_ARGS__);                                                    \
    }
/* Defines TILE(name, 1, ...) to TILE(name, 8, ...), which are the functions name_1 to name_8, and their table `name` by
 * pixels. */
#define TILES_BY_PIXELS(TILE, type, name, ...)                                                               \
    TILE(name, 1, __VA_ARGS__)                                                                               \
    TILE(name, 2, __VA_ARGS__)                                                                               \
    TILE(name, 3, __VA_ARGS__)                                                                               \
    TILE(name, 4, __VA_ARGS__)                                                                               \
    TILE(name, 5, __VA_ARGS__)                                                                               \
    TILE(name, 6, __VA_ARGS__)                                                                               \
    TILE(name, 7, __VA_ARGS__)                                                                               \
    TILE(name, 8, __VA_ARGS__)                                                                               \
    static const type name[DEPTHWISE_PIXELS + 1] = {NULL,     name##_1, name##_2, name##_3, name##_4,        \
                                                    name##_5, name##_6, name##_7, name##_8};
#define DEPTHWISE_TILES(name, ...)                                                                           \
    TILES_BY_PIXELS(DEPTHWISE_TILE, depthwise_tiles_of, depthwise_##name, __VA_ARGS__)

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
    /* the tiles know that each window has a column inside of the source */
    bool usual = g->dilation[2] == 1 && g->pad_before[2] < g->kernel[2] && g->pad_after[2] < g->kernel[2];
    for (size_t i = 0; i < sizeof choices / sizeof choices[0] && usual; i++)
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

/* Computes the tile of the last vector of channels, of which the first `known` lanes are known. */
static __attribute__((noinline)) void depthwise_last(const leati_depthwise *job, const depthwise_tile *t,
                                                     depthwise_tiles_of tiles, int64_t pixels, int64_t known,
                                                     int64_t at) {
    _Alignas(64) float sums[DEPTHWISE_PIXELS * LEATI_LANES];
    int64_t c = job->g->channels, lanes = t->lanes - known;
    depthwise_tile last = *t;
    last.to = sums;
    last.to_pixel = LEATI_LANES;
    last.addend = NULL;
    if (job->addend) last.f = NULL;
    tiles(&last, 1);
    for (int64_t i = 0; job->addend && i < pixels; i++) {
        float *x = sums + i * LEATI_LANES + known;
        v_store_part(x, v_load_part(x, lanes) + v_load_part(job->addend + at + i * c + known, lanes), lanes);
    }
    if (job->f && !last.f) map_function(job->f, sums, sums, pixels * LEATI_LANES);
    for (int64_t i = 0; i < pixels; i++)
        v_store_part(job->dst + at + i * c + known, v_load_part(sums + i * LEATI_LANES + known, lanes),
                     lanes);
}

/* Sets, for a row of the destination, which rows of the window are inside of the source, and the first weight.  Returns
 * the source under the first of these rows, where the destination's row has column 0 of the source. */
static const float *depthwise_place(depthwise_tile *t, const float *src, int64_t row) {
    const leati_geometry *g = t->g;
    const int64_t from[2] = {row / g->out[1] % g->out[0], row % g->out[1]};
    src += row / g->out[1] / g->out[0] * g->in[0] * g->in[1] * g->in[2] * g->channels;
    t->first_weight = 0;
    for (int i = 0; i < 2; i++) {
        int64_t at = from[i] * g->stride[i] - g->pad_before[i], first, last;
        depthwise_inside(g, i, at, &first, &last);
        t->rows[i] = last - first;
        t->first_weight += first * t->weights_row[i];
        src += (at + first * g->dilation[i]) * (t->src_row[i] / g->dilation[i]);
    }
    return src;
}

/* Computes one row of the destination for `vectors` vectors of channels from channel `channel` on. */
static void depthwise_forward_row(const leati_depthwise *job, depthwise_tile *t,
                                  const depthwise_choice *choice, int64_t row, int64_t channel,
                                  int64_t vectors) {
    const leati_geometry *g = job->g;
    int64_t c = g->channels;
    int64_t end = channel + vectors * LEATI_LANES, known = end > c && c >= LEATI_LANES ? end - c : 0;
    int64_t whole = end > c ? vectors - 1 : vectors;
    const float *weights = job->packed + channel * (g->taps + 1);
    const float *src = depthwise_place(t, job->src, row) + channel;
    for (int64_t x = 0, pixels; x < g->out[2]; x += pixels) {
        bool cut;
        int64_t at = ((row - job->origin) * g->out[2] + x) * c + channel;
        pixels = depthwise_pixels(t, choice, x, &cut);
        depthwise_tiles_of tiles = (cut ? choice->cut : choice->whole)[pixels];
        t->src = src + (x * g->stride[2] - g->pad_before[2]) * c;
        t->weights = weights;
        if (whole) {
            t->to = job->dst + at;
            t->addend = job->addend ? job->addend + at : NULL;
            tiles(t, whole);
            for (int64_t i = 0; job->f && !t->f && i < pixels; i++)
                map_function(job->f, t->to + i * c, t->to + i * c, whole * LEATI_LANES);
        }
        if (whole == vectors) continue;
        int64_t shift = whole * LEATI_LANES - known;
        t->src += shift;
        t->weights += whole * (g->taps + 1) * LEATI_LANES;
        depthwise_last(job, t, tiles, pixels, known, at + shift);
    }
}

static void depthwise_forward(const leati_depthwise *job) {
    const leati_geometry *g = job->g;
    int64_t c = g->channels, all = job->last_vector - job->first_vector;
    int64_t blocks = (all + DEPTHWISE_VECTORS - 1) / DEPTHWISE_VECTORS;
    depthwise_choice choice = depthwise_choose(g);
    depthwise_tile t = {.g = g,
                        .src_row = {g->dilation[0] * g->in[1] * g->in[2] * c, g->dilation[1] * g->in[2] * c},
                        .weights_row = {g->kernel[1] * g->kernel[2] * LEATI_LANES,
                                        g->kernel[2] * LEATI_LANES},
                        .lanes = c < LEATI_LANES ? c : LEATI_LANES,
                        .to_pixel = c,
                        .f = job->f && depthwise_is_short(job->f) ? job->f : NULL};
    for (int64_t row = job->first_row; row < job->last_row; row++)
        for (int64_t b = 0; b < blocks; b++) {
            int64_t first = job->first_vector + all * b / blocks,
                    last = job->first_vector + all * (b + 1) / blocks;
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
