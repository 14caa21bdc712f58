/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's F(2x2, 3x3), for the code that is compiled once per instruction set: from images to the 16 numbers of each
 * tile and back, for the convolution (product.h) and, transposed, for its gradient by the weights. */
#ifndef LEATI_BACKENDS_NATIVE_WINOGRAD_BODY_H
#define LEATI_BACKENDS_NATIVE_WINOGRAD_BODY_H

#include "backends/native/product_body.h"

/* Where pixels of a tile lie: `size` rows and columns of an image (N, in_rows, in_columns, channels) from (y, x) on; NULL
 * outside. */
typedef struct tile_window {
    int64_t image, y, x;
} tile_window;

static tile_window winograd_window(const leati_geometry *g, int64_t tile) {
    int64_t columns = (g->out[2] + 1) / 2, rows = (g->out[1] + 1) / 2;
    return (tile_window){tile / columns / rows, tile / columns % rows * 2, tile % columns * 2};
}

static int64_t pixel_of(const int64_t size[3], tile_window w, int64_t i, int64_t j) {
    int64_t y = w.y + i, x = w.x + j;
    if (y < 0 || y >= size[1] || x < 0 || x >= size[2]) return -1;
    return (w.image * size[1] + y) * size[2] + x;
}

LEATI_INLINE void store_parts(const leati_winograd *w, int64_t tile, int64_t channel, vf part[4][4]) {
    int64_t by_place = w->by_place;
    float *to = w->parts + channel / w->group * w->by_group + tile * w->group + channel % w->group;
    for (int i = 0; i < 4; i++, to += 4 * by_place)
        for (int j = 0; j < 4; j++) v_store(to + j * by_place, part[i][j]);
}

/* Images come from memory, and a tile's rows are not what a cache foresees: those of the tile after the next. */
#define WINOGRAD_AHEAD 4 /* pixels */

/* B' d B of the tiles' 4x4 source pixels. */
static void winograd_source(const leati_winograd *w) {
    const leati_geometry *g = w->g;
    for (int64_t tile = w->first; tile < w->last; tile++) {
        tile_window window = winograd_window(g, tile);
        const float *at[4][4];
        window.y -= g->pad_before[1];
        window.x -= g->pad_before[2];
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < 4; j++) {
                int64_t pixel = pixel_of(g->in, window, i, j);
                at[i][j] = pixel < 0 ? w->zeros : w->image + pixel * g->channels;
            }
        for (int64_t c = 0; c < g->channels; c += LEATI_LANES) {
            vf d[4][4], t[4][4];
            for (int i = 0; i < 4; i++) {
                for (int j = 2; j < 4; j++) __builtin_prefetch(at[i][j] + WINOGRAD_AHEAD * g->channels + c);
                vf x0 = v_load(at[i][0] + c), x1 = v_load(at[i][1] + c), x2 = v_load(at[i][2] + c),
                   x3 = v_load(at[i][3] + c);
                d[i][0] = x0 - x2, d[i][1] = x1 + x2, d[i][2] = x2 - x1, d[i][3] = x1 - x3;
            }
            for (int j = 0; j < 4; j++) {
                t[0][j] = d[0][j] - d[2][j], t[1][j] = d[1][j] + d[2][j];
                t[2][j] = d[2][j] - d[1][j], t[3][j] = d[1][j] - d[3][j];
            }
            store_parts(w, tile - w->first, c, t);
        }
    }
}

/* A y A' of the tiles' 2x2 pixels of the destination's gradient. */
static void winograd_diff(const leati_winograd *w) {
    const leati_geometry *g = w->g;
    for (int64_t tile = w->first; tile < w->last; tile++) {
        tile_window window = winograd_window(g, tile);
        const float *at[2][2];
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++) {
                int64_t pixel = pixel_of(g->out, window, i, j);
                at[i][j] = pixel < 0 ? w->zeros : w->image + pixel * g->filters;
            }
        for (int64_t c = 0; c < g->filters; c += LEATI_LANES) {
            vf d[2][4], t[4][4];
            for (int i = 0; i < 2; i++) {
                for (int j = 0; j < 2; j++) __builtin_prefetch(at[i][j] + WINOGRAD_AHEAD * g->filters + c);
                vf x0 = v_load(at[i][0] + c), x1 = v_load(at[i][1] + c);
                d[i][0] = x0, d[i][1] = x0 + x1, d[i][2] = x0 - x1, d[i][3] = -x1;
            }
            for (int j = 0; j < 4; j++) {
                t[0][j] = d[0][j], t[1][j] = d[0][j] + d[1][j];
                t[2][j] = d[0][j] - d[1][j], t[3][j] = -d[1][j];
            }
            store_parts(w, tile - w->first, c, t);
        }
    }
}

LEATI_INLINE void winograd_store(const leati_winograd *w, int64_t at, const int calls, vf x) {
    if (w->addend) x += v_load(w->addend + at);
    if (calls)
        x = function_of(w->f, x);
    else if (w->f)
        x = v_min(v_max(x, v_all(0)), v_all(w->f->b));
    v_store(w->dst + at, x);
}

/* A' m A, bias and what follows, into the tile's 2x2 pixels: of some filters. */
LEATI_INLINE void winograd_pixels(const leati_winograd *w, int64_t tile, const int calls) {
    const leati_geometry *g = w->g;
    tile_window window = winograd_window(g, tile);
    int64_t at[2][2], by_place = w->by_place, filters = g->filters;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++) at[i][j] = pixel_of(g->out, window, i, j) * filters + w->from;
    for (int64_t c = 0; c < w->columns; c += LEATI_LANES) {
        const float *from = w->parts + (tile - w->first) * w->group + c;
        vf m[2][4], bias = w->bias ? v_load(w->bias + w->from + c) : (vf){0};
        for (int j = 0; j < 4; j++, from += by_place) {
            vf m1 = v_load(from + 4 * by_place), m2 = v_load(from + 8 * by_place);
            m[0][j] = v_load(from) + m1 + m2;
            m[1][j] = m1 - m2 - v_load(from + 12 * by_place);
        }
        for (int i = 0; i < 2; i++) {
            vf left = m[i][0] + m[i][1] + m[i][2] + bias, right = m[i][1] - m[i][2] - m[i][3] + bias;
            if (at[i][0] >= 0) {
                __builtin_prefetch(w->dst + at[i][0] + c + WINOGRAD_AHEAD * filters, 1);
                winograd_store(w, at[i][0] + c, calls, left);
            }
            if (at[i][1] >= 0) {
                __builtin_prefetch(w->dst + at[i][1] + c + WINOGRAD_AHEAD * filters, 1);
                winograd_store(w, at[i][1] + c, calls, right);
            }
        }
    }
}

static void winograd_result(const leati_winograd *w) {
    bool calls = w->f && !is_clip(w->f);
    for (int64_t tile = w->first; tile < w->last; tile++)
        if (calls)
            winograd_pixels(w, tile, 1);
        else
            winograd_pixels(w, tile, 0);
}

/* G g G' of weights (9, depth, columns): rows first to last - 1 of the depth, into panels (place, columns / panel, depth,
 * panel). */
static void winograd_weights(const float *weights, int64_t depth, int64_t columns, int64_t first,
                             int64_t last, float *packed) {
    int64_t tap = depth * columns;
    for (int64_t row = first; row < last; row++)
        for (int64_t c = 0; c < columns; c += LEATI_LANES) {
            const float *from = weights + row * columns + c;
            float *to = packed + (c / LEATI_PANEL * depth + row) * LEATI_PANEL + c % LEATI_PANEL;
            vf t[4][3];
            for (int j = 0; j < 3; j++, from += tap) {
                vf g0 = v_load(from), g1 = v_load(from + 3 * tap), g2 = v_load(from + 6 * tap);
                vf sum = (g0 + g2) * 0.5f;
                t[0][j] = g0, t[1][j] = sum + g1 * 0.5f, t[2][j] = sum - g1 * 0.5f, t[3][j] = g2;
            }
            for (int i = 0; i < 4; i++) {
                vf sum = (t[i][0] + t[i][2]) * 0.5f, middle = t[i][1] * 0.5f;
                const vf row_of[4] = {t[i][0], sum + middle, sum - middle, t[i][2]};
                for (int j = 0; j < 4; j++) v_store(to + (4 * i + j) * tap, row_of[j]);
            }
        }
}

/* G' m G of sums (place, depth, columns) into weights (9, depth, columns): rows first to last - 1 of the depth. */
static void winograd_weights_back(const float *sums, int64_t depth, int64_t columns, int64_t first,
                                  int64_t last, float *weights) {
    int64_t tap = depth * columns;
    for (int64_t at = first * columns; at < last * columns; at += LEATI_LANES) {
        vf t[4][3];
        for (int i = 0; i < 4; i++) {
            const float *from = sums + 4 * i * tap + at;
            vf m1 = v_load(from + tap), m2 = v_load(from + 2 * tap), sum = (m1 + m2) * 0.5f;
            t[i][0] = v_load(from) + sum, t[i][1] = (m1 - m2) * 0.5f, t[i][2] = sum + v_load(from + 3 * tap);
        }
        for (int j = 0; j < 3; j++) {
            vf sum = (t[1][j] + t[2][j]) * 0.5f;
            v_store(weights + j * tap + at, t[0][j] + sum);
            v_store(weights + (3 + j) * tap + at, (t[1][j] - t[2][j]) * 0.5f);
            v_store(weights + (6 + j) * tap + at, sum + t[3][j]);
        }
    }
}

#endif
