/* SPDX-License-Identifier: Apache-2.0 */
/* POOLING and its gradient, for the code that is compiled once per instruction set.  A window is a list of rows of the
 * source, which all pixels of a row of the output share, and a range of columns.  The elements of a window are folded
 * in row-major order, whatever the number of pixels that are computed together. */
#ifndef LEATI_BACKENDS_NATIVE_ELEMENTWISE_POOLING_TMPL_H
#define LEATI_BACKENDS_NATIVE_ELEMENTWISE_POOLING_TMPL_H

#include "backends/native/elementwise/jobs.h"
#include "backends/native/simd/vector_tmpl.h"

#define POOL_PIXELS 4 /* output pixels that are computed together */

/* The rows of the source under one row of the output, padding excluded. */
typedef struct pool_rows {
    int64_t channels;
    int64_t starts[LEATI_POOL_TAPS]; /* the floats of the source before each row */
    int count;
} pool_rows;

/* The columns of a row that are under an output pixel, padding excluded. */
typedef struct pool_columns {
    int64_t first, count;
} pool_columns;

/* Sets *rows for row `row` (of n and the outer two spatial axes, flattened) of the output. */
static void pool_rows_of(const leati_geometry *g, int64_t row, pool_rows *rows) {
    int64_t h0 = row % g->out[1] * g->stride[1] - g->pad_before[1], rest = row / g->out[1];
    int64_t d0 = rest % g->out[0] * g->stride[0] - g->pad_before[0], image = rest / g->out[0];
    rows->channels = g->channels;
    rows->count = 0;
    for (int64_t d = d0 < 0 ? 0 : d0; d < d0 + g->kernel[0] && d < g->in[0]; d++)
        for (int64_t h = h0 < 0 ? 0 : h0; h < h0 + g->kernel[1] && h < g->in[1]; h++)
            rows->starts[rows->count++] = ((image * g->in[0] + d) * g->in[1] + h) * g->in[2] * g->channels;
}

static pool_columns pool_columns_of(const leati_geometry *g, int64_t pixel) {
    int64_t first = pixel * g->stride[2] - g->pad_before[2], last = first + g->kernel[2];
    if (first < 0) first = 0;
    if (last > g->in[2]) last = g->in[2];
    return (pool_columns){.first = first, .count = last - first};
}

/* Returns the first pixel of an output row whose window has no padding on its left. */
static int64_t pool_first_whole(const leati_geometry *g) {
    int64_t first = (g->pad_before[2] + g->stride[2] - 1) / g->stride[2];
    return first < g->out[2] ? first : g->out[2];
}

/* Returns the pixel after the last one whose window has no padding on its right. */
static int64_t pool_last_whole(const leati_geometry *g) {
    int64_t room = g->in[2] + g->pad_before[2] - g->kernel[2];
    int64_t last = room < 0 ? 0 : room / g->stride[2] + 1;
    return last < g->out[2] ? last : g->out[2];
}

LEATI_INLINE vf pool_fold(vf acc, vf x, const bool maximum) {
    return maximum ? v_max(acc, x) : acc + x;
}

/* Folds a row of the source into the windows of `pixels` output pixels; `from` is at the first of their columns.
 * left: the lanes of the vector that are channels.  shared: width and stride are constants, so that a column which
 * several windows have is loaded once. */
LEATI_INLINE void pool_row(vf *acc, const float *from, int64_t channels, const int64_t left,
                           const int64_t width, const int64_t stride, const int pixels, const bool maximum,
                           const bool shared) {
    if (!shared) {
        for (int64_t w = 0; w < width; w++)
            for (int p = 0; p < pixels; p++)
                acc[p] = pool_fold(acc[p], v_load_part(from + (p * stride + w) * channels, left), maximum);
        return;
    }
#pragma GCC unroll 16
    for (int64_t column = 0; column < (pixels - 1) * stride + width; column++) {
        vf x = v_load_part(from + column * channels, left);
#pragma GCC unroll 4
        for (int p = 0; p < pixels; p++)
            if (column >= p * stride && column < p * stride + width) acc[p] = pool_fold(acc[p], x, maximum);
    }
}

/* Pools the windows of `pixels` neighbouring output pixels, each `width` columns wide; src is at the first column. */
LEATI_INLINE void pool_pixels(const pool_rows *rows, const float *src, float *dst, const int64_t width,
                              const int64_t stride, const int64_t left, const int pixels, const bool maximum,
                              const bool shared) {
    int64_t channels = rows->channels;
    float share = 1.0f / (float)(rows->count * width);
    for (int64_t c = 0; c < channels; c = next_vector(c, channels)) {
        vf acc[POOL_PIXELS];
        for (int p = 0; p < pixels; p++)
            acc[p] = maximum ? v_load_part(src + rows->starts[0] + p * stride * channels + c, left) : (vf){0};
        for (int r = 0; r < rows->count; r++)
            pool_row(acc, src + rows->starts[r] + c, channels, left, width, stride, pixels, maximum, shared);
        for (int p = 0; p < pixels; p++)
            v_store_part(dst + p * channels + c, maximum ? acc[p] : acc[p] * share, left);
    }
}

/* Computes a row of output pixels; left: as in pool_row().  Pixels whose windows have no padding beside them are
 * computed POOL_PIXELS at a time; the last of these blocks overlaps the one before. */
LEATI_INLINE void pool_output_row(const leati_geometry *g, const pool_rows *rows, const float *src,
                                  float *dst, const int64_t left, const bool maximum) {
    int64_t c = g->channels, width = g->kernel[2], stride = g->stride[2];
    int64_t first_whole = pool_first_whole(g), last_block = pool_last_whole(g) - POOL_PIXELS;
    for (int64_t pixel = 0; pixel < g->out[2];) {
        bool block = pixel >= first_whole && first_whole <= last_block && pixel < last_block + POOL_PIXELS;
        if (block && pixel > last_block) pixel = last_block;
        pool_columns columns = pool_columns_of(g, pixel);
        const float *from = src + columns.first * c;
        float *to = dst + pixel * c;
        if (!block)
            pool_pixels(rows, from, to, columns.count, stride, left, 1, maximum, false);
        else if (width == 3 && stride == 1)
            pool_pixels(rows, from, to, 3, 1, left, POOL_PIXELS, maximum, true);
        else if (width == 3 && stride == 2)
            pool_pixels(rows, from, to, 3, 2, left, POOL_PIXELS, maximum, true);
        else
            pool_pixels(rows, from, to, width, stride, left, POOL_PIXELS, maximum, false);
        pixel += block ? POOL_PIXELS : 1;
    }
}

/* POOLING: computes rows first to last - 1 of output pixels. */
static void pooling(const leati_range_job *job, int64_t first, int64_t last) {
    const leati_geometry *g = job->window.geometry;
    bool maximum = job->attrs->pooling.kind == LEATI_POOL_MAX, whole = g->channels >= LEATI_LANES;
    pool_rows rows;
    for (int64_t row = first; row < last; row++) {
        float *dst = job->out[0] + row * g->out[2] * g->channels;
        pool_rows_of(g, row, &rows);
        if (maximum && whole)
            pool_output_row(g, &rows, job->in[0], dst, LEATI_LANES, true);
        else if (maximum)
            pool_output_row(g, &rows, job->in[0], dst, g->channels, true);
        else if (whole)
            pool_output_row(g, &rows, job->in[0], dst, LEATI_LANES, false);
        else
            pool_output_row(g, &rows, job->in[0], dst, g->channels, false);
    }
}

/* True if windows neither overlap nor leave elements out: then each element of diff_src is written exactly once. */
static bool tiles_exactly(const leati_geometry *g) {
    for (int i = 0; i < 3; i++)
        if (g->kernel[i] != g->stride[i] || g->out[i] * g->stride[i] != g->in[i] || g->pad_before[i] != 0)
            return false;
    return true;
}

LEATI_INLINE void add_to(float *to, vf x, bool overwrite, int64_t left) {
    v_store_part(to, overwrite ? x : v_load_part(to, left) + x, left);
}

/* Maximum pooling: the first element of the window that equals dst receives the gradient. */
LEATI_INLINE void max_bwd(const float *src, vf dst, vf diff, float *to, const int64_t *starts, int taps,
                          bool overwrite, int64_t left) {
    vi free = ~(vi){0};
    for (int t = 0; t < taps; t++) {
        vi hit = (vi)(v_load_part(src + starts[t], left) == dst) & free;
        add_to(to + starts[t], (vf)(hit & (vi)diff), overwrite, left);
        free &= ~hit;
    }
}

LEATI_INLINE void average_bwd(vf diff, float *to, const int64_t *starts, int taps, bool overwrite,
                              int64_t left) {
    vf share = diff / (float)taps;
    for (int t = 0; t < taps; t++) add_to(to + starts[t], share, overwrite, left);
}

/* Sets where the elements of channel 0 under an output pixel start in src; returns their number. */
static int pool_taps_of(const pool_rows *rows, pool_columns columns, int64_t starts[LEATI_POOL_TAPS]) {
    int count = 0;
    for (int r = 0; r < rows->count; r++)
        for (int64_t w = 0; w < columns.count; w++)
            starts[count++] = rows->starts[r] + (columns.first + w) * rows->channels;
    return count;
}

/* Adds the gradient with respect to a row of output pixels to diff_src. */
LEATI_INLINE void pool_row_bwd(const leati_range_job *job, int64_t row, bool maximum, bool overwrite) {
    const leati_geometry *g = job->window.geometry;
    int64_t starts[LEATI_POOL_TAPS], at = row * g->out[2] * g->channels;
    pool_rows rows;
    pool_rows_of(g, row, &rows);
    for (int64_t pixel = 0; pixel < g->out[2]; pixel++, at += g->channels) {
        int taps = pool_taps_of(&rows, pool_columns_of(g, pixel), starts);
        for (int64_t c = 0; c < g->channels; c += LEATI_LANES) {
            int64_t left = g->channels - c;
            vf diff = v_load_part(job->in[2] + at + c, left);
            if (maximum)
                max_bwd(job->in[0] + c, v_load_part(job->in[1] + at + c, left), diff, job->out[0] + c, starts,
                        taps, overwrite, left);
            else
                average_bwd(diff, job->out[0] + c, starts, taps, overwrite, left);
        }
    }
}

/* POOLING_BWD, for images first to last - 1. */
static void pooling_bwd(const leati_range_job *job, int64_t first, int64_t last) {
    const leati_geometry *g = job->window.geometry;
    int64_t rows = g->out[0] * g->out[1], image = g->in[0] * g->in[1] * g->in[2] * g->channels;
    bool maximum = job->attrs->pooling.kind == LEATI_POOL_MAX, overwrite = tiles_exactly(g);
    if (!overwrite) memset(job->out[0] + first * image, 0, (size_t)((last - first) * image) * sizeof(float));
    for (int64_t row = first * rows; row < last * rows; row++) {
        if (maximum && overwrite)
            pool_row_bwd(job, row, true, true);
        else
            pool_row_bwd(job, row, maximum, overwrite);
    }
}

#endif
