/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's F(2x2, 3x3) and F(4x4, 3x3), for the code that is compiled once per instruction set: transforms images
 * to the 16 or 36 elements of each tile and back, for the convolution (jobs.h) and, transposed, for its gradient
 * with respect to the weights.  winograd_line_tmpl.h has the windows of one axis. */
#ifndef LEATI_BACKENDS_NATIVE_CONV_WINOGRAD_TMPL_H
#define LEATI_BACKENDS_NATIVE_CONV_WINOGRAD_TMPL_H

#include "backends/native/conv/jobs.h"
#include "backends/native/matmul/product_tmpl.h"

/* ---- One axis: a tile of `size` pixels, 2 or 4, and its size + 2 elements ---- */

/* For size 4 the interpolation points are 0, A, -A, B, -B and infinity.  Sums of these factors are exact, and
 * errors are a third of those with the points 1 and 2. */
#define A    0.75f
#define A2   (A * A)
#define B    1.5f
#define B2   (B * B)
#define BY_A (1 / (2 * A2 * (A2 - B2)))
#define BY_B (1 / (2 * B2 * (B2 - A2)))

LEATI_INLINE void source_line(const int size, vf to[6], const vf x[6]) {
    if (size == 2) {
        to[0] = x[0] - x[2], to[1] = x[1] + x[2], to[2] = x[2] - x[1], to[3] = x[1] - x[3];
        return;
    }
    vf even_a = x[4] - B2 * x[2], odd_a = A * (x[3] - B2 * x[1]);
    vf even_b = x[4] - A2 * x[2], odd_b = B * (x[3] - A2 * x[1]);
    to[0] = A2 * B2 * x[0] - (A2 + B2) * x[2] + x[4];
    to[1] = even_a + odd_a, to[2] = even_a - odd_a;
    to[3] = even_b + odd_b, to[4] = even_b - odd_b;
    to[5] = A2 * B2 * x[1] - (A2 + B2) * x[3] + x[5];
}

LEATI_INLINE void weights_line(const int size, vf to[6], const vf x[3]) {
    if (size == 2) {
        vf sum = (x[0] + x[2]) * 0.5f, middle = x[1] * 0.5f;
        to[0] = x[0], to[1] = sum + middle, to[2] = sum - middle, to[3] = x[2];
        return;
    }
    vf even_a = (x[0] + A2 * x[2]) * BY_A, odd_a = x[1] * (A * BY_A);
    vf even_b = (x[0] + B2 * x[2]) * BY_B, odd_b = x[1] * (B * BY_B);
    to[0] = x[0] * (1 / (A2 * B2));
    to[1] = even_a + odd_a, to[2] = even_a - odd_a;
    to[3] = even_b + odd_b, to[4] = even_b - odd_b;
    to[5] = x[2];
}

LEATI_INLINE void result_line(const int size, vf to[4], const vf m[6]) {
    if (size == 2) {
        to[0] = m[0] + m[1] + m[2], to[1] = m[1] - m[2] - m[3];
        return;
    }
    vf even_a = m[1] + m[2], odd_a = A * (m[1] - m[2]), even_b = m[3] + m[4], odd_b = B * (m[3] - m[4]);
    to[0] = m[0] + even_a + even_b, to[1] = odd_a + odd_b;
    to[2] = A2 * even_a + B2 * even_b, to[3] = A2 * odd_a + B2 * odd_b + m[5];
}

/* The transposed transforms: from the gradient with respect to pixels to elements, and from elements to the
 * gradient with respect to the weights. */
LEATI_INLINE void diff_line(const int size, vf to[6], const vf x[4]) {
    if (size == 2) {
        to[0] = x[0], to[1] = x[0] + x[1], to[2] = x[0] - x[1], to[3] = -x[1];
        return;
    }
    vf even_a = x[0] + A2 * x[2], odd_a = A * (x[1] + A2 * x[3]);
    vf even_b = x[0] + B2 * x[2], odd_b = B * (x[1] + B2 * x[3]);
    to[0] = x[0], to[1] = even_a + odd_a, to[2] = even_a - odd_a;
    to[3] = even_b + odd_b, to[4] = even_b - odd_b, to[5] = x[3];
}

LEATI_INLINE void weights_back_line(const int size, vf to[3], const vf m[6]) {
    if (size == 2) {
        vf sum = (m[1] + m[2]) * 0.5f;
        to[0] = m[0] + sum, to[1] = (m[1] - m[2]) * 0.5f, to[2] = sum + m[3];
        return;
    }
    vf even_a = (m[1] + m[2]) * BY_A, odd_a = (m[1] - m[2]) * (A * BY_A);
    vf even_b = (m[3] + m[4]) * BY_B, odd_b = (m[3] - m[4]) * (B * BY_B);
    to[0] = m[0] * (1 / (A2 * B2)) + even_a + even_b;
    to[1] = odd_a + odd_b;
    to[2] = A2 * even_a + B2 * even_b + m[5];
}

#undef A
#undef A2
#undef B
#undef B2
#undef BY_A
#undef BY_B

/* ---- Tiles ---- */

/* Position of a tile's first pixel, and how far apart its pixels are. */
typedef struct tile_window {
    int64_t image, y, x, step_y, step_x;
} tile_window;

static tile_window winograd_window(const leati_winograd *w, int64_t tile) {
    const leati_geometry *g = w->g;
    int64_t size = w->size, height = leati_winograd_height(g, size);
    int64_t columns = leati_winograd_tiles_along(g, 2, size), rows = leati_winograd_tiles_along(g, 1, height);
    return (tile_window){tile / columns / rows, leati_winograd_first(g, 1, height, tile / columns % rows),
                         leati_winograd_first(g, 2, size, tile % columns), g->dilation[1], g->dilation[2]};
}

static int64_t pixel_of(const int64_t size[3], tile_window w, int64_t i, int64_t j) {
    int64_t y = w.y + i * w.step_y, x = w.x + j * w.step_x;
    if (y < 0 || y >= size[1] || x < 0 || x >= size[2]) return -1;
    return (w.image * size[1] + y) * size[2] + x;
}

/* Images are read from memory, in an order that the hardware prefetcher does not predict: prefetch the pixels of a
 * tile that comes soon. */
#define WINOGRAD_AHEAD 4 /* pixels ahead */

/* Returns where a pixel's channels begin; zeros where pixel is -1, in the padding. */
LEATI_INLINE const void *winograd_pixel(const leati_winograd *w, int64_t pixel, int64_t channels) {
    size_t size = w->bf16 ? sizeof(uint16_t) : sizeof(float);
    return pixel < 0 ? (const void *)w->zeros
                     : (const unsigned char *)w->image + (size_t)(pixel * channels) * size;
}

LEATI_INLINE void winograd_prefetch(const void *image, int64_t at, const bool bf16) {
    __builtin_prefetch((const unsigned char *)image + (bf16 ? 2 : 4) * at);
}

LEATI_INLINE float *transformed_at(const leati_winograd *w, int64_t tile, int64_t channel) {
    return w->transformed + channel / w->group * w->group_stride + (tile - w->first) * w->group +
           channel % w->group;
}

/* Defines square_<name>(), which calls square_<name>_tile() for all tiles. */
#define EACH_TILE(name)                                                                                      \
    static void square_##name(const leati_winograd *w) {                                                     \
        for (int64_t tile = w->first; tile < w->last; tile++)                                                \
            if (w->size == 2 && w->bf16)                                                                     \
                square_##name##_tile(w, tile, 2, true);                                                      \
            else if (w->size == 2)                                                                           \
                square_##name##_tile(w, tile, 2, false);                                                     \
            else if (w->bf16)                                                                                \
                square_##name##_tile(w, tile, 4, true);                                                      \
            else                                                                                             \
                square_##name##_tile(w, tile, 4, false);                                                     \
    }

/* Computes B' d B of the tile's source pixels d, which reach one step beyond the tile on each side. */
LEATI_INLINE void square_source_tile(const leati_winograd *w, int64_t tile, const int size, const bool bf16) {
    const leati_geometry *g = w->g;
    const int side = size + 2;
    tile_window window = winograd_window(w, tile);
    const void *at[6][6];
    int64_t element_stride = w->element_stride, ahead = WINOGRAD_AHEAD * g->channels;
    window.y -= g->pad_before[1];
    window.x -= g->pad_before[2];
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++)
            at[i][j] = winograd_pixel(w, pixel_of(g->in, window, i, j), g->channels);
    for (int64_t c = 0; c < g->channels; c += LEATI_LANES) {
        float *to = transformed_at(w, tile, c);
        vf d[6][6], x[6], t[6];
#pragma GCC unroll 6
        for (int i = 0; i < side; i++) {
            for (int j = 2; j < side; j++) winograd_prefetch(at[i][j], ahead + c, bf16);
            for (int j = 0; j < side; j++) x[j] = v_load_image(at[i][j], c, LEATI_LANES, bf16);
            source_line(size, d[i], x);
        }
#pragma GCC unroll 6
        for (int j = 0; j < side; j++) {
            for (int i = 0; i < side; i++) x[i] = d[i][j];
            source_line(size, t, x);
            for (int i = 0; i < side; i++) v_store(to + (side * i + j) * element_stride, t[i]);
        }
    }
}

EACH_TILE(source)

/* Computes A y A' of the tile's pixels y of the destination's gradient. */
LEATI_INLINE void square_diff_tile(const leati_winograd *w, int64_t tile, const int size, const bool bf16) {
    const leati_geometry *g = w->g;
    const int side = size + 2;
    tile_window window = winograd_window(w, tile);
    const void *at[4][4];
    int64_t element_stride = w->element_stride, ahead = WINOGRAD_AHEAD * g->filters;
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++)
            at[i][j] = winograd_pixel(w, pixel_of(g->out, window, i, j), g->filters);
    for (int64_t c = 0; c < g->filters; c += LEATI_LANES) {
        float *to = transformed_at(w, tile, c);
        vf d[4][6], x[4], t[6], sum = {0};
#pragma GCC unroll 4
        for (int i = 0; i < size; i++) {
            for (int j = 0; j < size; j++) winograd_prefetch(at[i][j], ahead + c, bf16);
            for (int j = 0; j < size; j++) x[j] = v_load_image(at[i][j], c, LEATI_LANES, bf16);
            for (int j = 0; j < size; j++) sum += x[j];
            diff_line(size, d[i], x);
        }
        if (w->sums) v_store(w->sums + c, v_load(w->sums + c) + sum);
#pragma GCC unroll 6
        for (int j = 0; j < side; j++) {
            for (int i = 0; i < size; i++) x[i] = d[i][j];
            diff_line(size, t, x);
            for (int i = 0; i < side; i++) v_store(to + (side * i + j) * element_stride, t[i]);
        }
    }
}

EACH_TILE(diff)
#undef EACH_TILE

LEATI_INLINE void winograd_store(const leati_winograd *w, int64_t at, const bool calls, const bool bf16,
                                 vf x) {
    if (w->addend) x += v_load_image(w->addend, at, LEATI_LANES, bf16);
    if (calls)
        x = call_function(w->f, x);
    else if (w->f)
        x = v_min(v_max(x, v_all(0)), v_all(w->f->b));
    v_store_image(w->dst, at, x, LEATI_LANES, bf16);
}

/* Computes A' m A plus bias and addend, applies the function, and stores the tile's pixels, for some filters. */
LEATI_INLINE void square_result_tile(const leati_winograd *w, int64_t tile, const int size, const bool calls,
                                     const bool bf16) {
    const leati_geometry *g = w->g;
    const int side = size + 2;
    tile_window window = winograd_window(w, tile);
    int64_t at[4][4], element_stride = w->element_stride, ahead = WINOGRAD_AHEAD * g->filters;
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++)
            at[i][j] = pixel_of(g->out, window, i, j) * g->filters + w->first_filter;
    for (int64_t c = 0; c < w->columns; c += LEATI_LANES) {
        const float *from = w->transformed + (tile - w->first) * w->group + c;
        vf m[4][6], x[6], y[4], bias = w->bias ? v_load(w->bias + w->first_filter + c) : (vf){0};
#pragma GCC unroll 6
        for (int j = 0; j < side; j++) {
            for (int i = 0; i < side; i++) x[i] = v_load(from + (side * i + j) * element_stride);
            result_line(size, y, x);
            for (int i = 0; i < size; i++) m[i][j] = y[i];
        }
#pragma GCC unroll 4
        for (int i = 0; i < size; i++) {
            result_line(size, y, m[i]);
            for (int j = 0; j < size; j++) {
                if (at[i][j] < 0) continue;
                __builtin_prefetch((unsigned char *)w->dst + (bf16 ? 2 : 4) * (at[i][j] + c + ahead), 1);
                winograd_store(w, at[i][j] + c, calls, bf16, y[j] + bias);
            }
        }
    }
}

#define RESULT(name, size, calls, bf16)                                                                      \
    static void winograd_result_##name(const leati_winograd *w, int64_t tile) {                              \
        square_result_tile(w, tile, size, calls, bf16);                                                      \
    }
RESULT(2, 2, false, false)
RESULT(2_narrow, 2, false, true)
RESULT(2_any, 2, true, false)
RESULT(2_any_narrow, 2, true, true)
RESULT(4, 4, false, false)
RESULT(4_narrow, 4, false, true)
RESULT(4_any, 4, true, false)
RESULT(4_any_narrow, 4, true, true)
#undef RESULT

static void square_result(const leati_winograd *w) {
    static void (*const results[2][2][2])(const leati_winograd *,
                                          int64_t) = {{{winograd_result_2, winograd_result_2_narrow},
                                                       {winograd_result_2_any, winograd_result_2_any_narrow}},
                                                      {{winograd_result_4, winograd_result_4_narrow},
                                                       {winograd_result_4_any,
                                                        winograd_result_4_any_narrow}}};
    bool calls = w->f && !is_clip(w->f);
    for (int64_t tile = w->first; tile < w->last; tile++) results[w->size == 4][calls][w->bf16](w, tile);
}

/* Floats from one element of the packed weights of a column to the next. */
LEATI_INLINE int64_t packed_element(const leati_winograd_weights *w, int64_t column) {
    int64_t left = w->columns - column / LEATI_WINOGRAD_COLUMNS * LEATI_WINOGRAD_COLUMNS;
    int64_t width = left < LEATI_WINOGRAD_COLUMNS ? left : LEATI_WINOGRAD_COLUMNS;
    return w->depth * ((width + LEATI_PANEL - 1) / LEATI_PANEL * LEATI_PANEL);
}

/* Returns where row `row` and column `column` of the first element of the packed weights are. */
LEATI_INLINE float *packed_at(const leati_winograd_weights *w, int64_t row, int64_t column) {
    int64_t inside = column % LEATI_WINOGRAD_COLUMNS;
    return w->packed + (column - inside) * w->depth * w->elements +
           (inside / LEATI_PANEL * w->depth + row) * LEATI_PANEL + inside % LEATI_PANEL;
}

/* Computes G g G' of weights g (9, depth, columns) for rows first to last - 1 of the depth, into the panels
 * that leati_winograd_weights describes. */
LEATI_INLINE void winograd_pack(const leati_winograd_weights *w, const int size) {
    const int side = size + 2;
    int64_t tap = w->depth * w->columns;
    for (int64_t row = w->first; row < w->last; row++)
        for (int64_t c = 0; c < w->columns; c += LEATI_LANES) {
            const float *from = w->weights + row * w->columns + c;
            float *to = packed_at(w, row, c);
            int64_t element = packed_element(w, c);
            vf t[6][3], x[6], y[6];
#pragma GCC unroll 3
            for (int j = 0; j < 3; j++) {
                for (int i = 0; i < 3; i++) x[i] = v_load(from + (3 * i + j) * tap);
                weights_line(size, y, x);
                for (int i = 0; i < side; i++) t[i][j] = y[i];
            }
#pragma GCC unroll 6
            for (int i = 0; i < side; i++) {
                weights_line(size, y, t[i]);
                for (int j = 0; j < side; j++) v_store(to + (side * i + j) * element, y[j]);
            }
        }
}

static void square_weights(const leati_winograd_weights *w) {
    if (w->size == 2)
        winograd_pack(w, 2);
    else
        winograd_pack(w, 4);
}

/* Computes G' m G of sums m (element, depth, columns) for rows first to last - 1 of the depth, into weights (9,
 * depth, columns). */
LEATI_INLINE void winograd_unpack(const leati_winograd_weights *w, const int size) {
    const int side = size + 2;
    int64_t tap = w->depth * w->columns;
    for (int64_t at = w->first * w->columns; at < w->last * w->columns; at += LEATI_LANES) {
        vf t[6][3], x[6], y[3];
#pragma GCC unroll 6
        for (int i = 0; i < side; i++) {
            for (int j = 0; j < side; j++) x[j] = v_load(w->packed + (side * i + j) * tap + at);
            weights_back_line(size, t[i], x);
        }
#pragma GCC unroll 3
        for (int j = 0; j < 3; j++) {
            for (int i = 0; i < side; i++) x[i] = t[i][j];
            weights_back_line(size, y, x);
            for (int i = 0; i < 3; i++) v_store(w->weights + (3 * i + j) * tap + at, y[i]);
        }
    }
}

static void square_weights_back(const leati_winograd_weights *w) {
    if (w->size == 2)
        winograd_unpack(w, 2);
    else
        winograd_unpack(w, 4);
}

#endif
