/* SPDX-License-Identifier: Apache-2.0 */
/* Small matrix products from packed panels, for the code that is compiled once per instruction set.
 *
 * A panel is LEATI_PANEL columns of a matrix, row after row.  A tile is some rows of the product times one panel or
 * more, kept in registers over the whole depth: 6 x 2 vectors and what feeds them are just what 16 registers hold. */
#ifndef LEATI_BACKENDS_NATIVE_TILE_H
#define LEATI_BACKENDS_NATIVE_TILE_H

#include "backends/native/vector.h"

#define LEATI_PANEL (2 * LEATI_LANES)
#define LEATI_ROWS  6

/* A stretch of the depth: element (i, k) of chunk c of the left operand is a[i * by_row + k * by_depth + c * by_chunk]. */
typedef struct leati_stretch {
    const float *a;
    int64_t by_row, by_depth, by_chunk, depth, chunks;
} leati_stretch;

/* c (rows, panels) = start + sum over the stretches of a times b's rows, which go on from stretch to stretch.
 * start: NULL for 0, else a panel's row that all rows share (a bias), or c itself where `add`. */
typedef struct leati_tile {
    const leati_stretch *stretches;
    int count;
    int64_t row; /* of a, where the tile begins */
    const float *b;
    int64_t b_row, b_panel; /* floats from one row of b to the next, from one panel to the next */
    const float *start;     /* (panels * LEATI_PANEL) or NULL */
    float *c;
    int64_t c_row, c_panel;
    int add;
    int backwards; /* visit panels last to first: a caller that alternates finds the last ones still in the cache */
} leati_tile;

LEATI_INLINE void tile_of(const leati_tile *t, const int rows, const int panels) {
    vf acc[LEATI_ROWS][8];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < 2 * panels; j++) {
            const float *c = t->c + i * t->c_row + j / 2 * t->c_panel + j % 2 * LEATI_LANES;
            acc[i][j] = t->add ? v_load(c) : t->start ? v_load(t->start + j * LEATI_LANES) : (vf){0};
        }
    const float *b = t->b;
    for (int s = 0; s < t->count; s++) {
        const leati_stretch *st = &t->stretches[s];
        const float *chunk = st->a + t->row * st->by_row;
        int64_t by_row = st->by_row, by_depth = st->by_depth;
        for (int64_t c = 0; c < st->chunks; c++, chunk += st->by_chunk) {
            const float *a = chunk;
            for (int64_t k = 0; k < st->depth; k++, a += by_depth, b += t->b_row) {
                vf row_of_b[8];
                for (int j = 0; j < 2 * panels; j++)
                    row_of_b[j] = v_load(b + j / 2 * t->b_panel + j % 2 * LEATI_LANES);
                for (int i = 0; i < rows; i++) {
                    vf left = v_all(a[i * by_row]);
                    for (int j = 0; j < 2 * panels; j++) acc[i][j] += left * row_of_b[j];
                }
            }
        }
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < 2 * panels; j++)
            v_store(t->c + i * t->c_row + j / 2 * t->c_panel + j % 2 * LEATI_LANES, acc[i][j]);
}

/* One row needs several panels at a time: a single panel's two accumulators would wait for their own sums. */
static void tile_1x4(const leati_tile *t) {
    tile_of(t, 1, 4);
}
static void tile_2x2(const leati_tile *t) {
    tile_of(t, 2, 2);
}
static void tile_3x2(const leati_tile *t) {
    tile_of(t, 3, 2);
}
static void tile_1x1(const leati_tile *t) {
    tile_of(t, 1, 1);
}
static void tile_2x1(const leati_tile *t) {
    tile_of(t, 2, 1);
}
static void tile_3x1(const leati_tile *t) {
    tile_of(t, 3, 1);
}
static void tile_4x1(const leati_tile *t) {
    tile_of(t, 4, 1);
}
static void tile_5x1(const leati_tile *t) {
    tile_of(t, 5, 1);
}
static void tile_6x1(const leati_tile *t) {
    tile_of(t, 6, 1);
}

/* `rows` rows (at most LEATI_ROWS) of all `panels`. */
LEATI_INLINE void tile_row_block(leati_tile t, int64_t rows, int64_t panels) {
    static const struct {
        int wide; /* panels at a time */
        void (*one)(const leati_tile *), (*many)(const leati_tile *);
    } ways[LEATI_ROWS] = {{4, tile_1x1, tile_1x4}, {2, tile_2x1, tile_2x2}, {2, tile_3x1, tile_3x2},
                          {1, tile_4x1, NULL},     {1, tile_5x1, NULL},     {1, tile_6x1, NULL}};
    int step = ways[rows - 1].wide;
    for (int64_t done = 0; done < panels; done += step) {
        if (panels - done < step) step = 1;
        leati_tile now = t;
        int64_t p = t.backwards ? panels - done - step : done;
        now.b += p * t.b_panel;
        now.c += p * t.c_panel;
        if (t.start) now.start += p * LEATI_PANEL;
        (step > 1 ? ways[rows - 1].many : ways[rows - 1].one)(&now);
    }
}

/* All of c, panel by panel: it stays in the first cache while the rows go by. */
LEATI_INLINE void tile_all(leati_tile t, int64_t rows, int64_t panels) {
    if (rows <= LEATI_ROWS) {
        if (rows > 0) tile_row_block(t, rows, panels);
        return;
    }
    int64_t blocks = (rows + LEATI_ROWS - 1) / LEATI_ROWS;
    for (int64_t p = 0; p < panels; p++)
        for (int64_t i = 0; i < blocks; i++) { /* 32 rows are 6 6 5 5 5 5, not five times 6 and a slow 2 */
            leati_tile one = t;
            int64_t first = rows * i / blocks;
            one.b += p * t.b_panel;
            one.row += first;
            one.c += p * t.c_panel + first * t.c_row;
            if (t.start) one.start += p * LEATI_PANEL;
            tile_row_block(one, rows * (i + 1) / blocks - first, 1);
        }
}

#endif
