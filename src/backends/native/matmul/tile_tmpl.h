/* SPDX-License-Identifier: Apache-2.0 */
/* Small matrix products from packed panels, for the code that is compiled once per instruction set.
 *
 * A panel is LEATI_PANEL columns of a matrix, stored row by row.  A tile is some rows of the product times one or
 * more panels, kept in registers over the whole depth: 6 x 2 accumulators and their operands fill 16 registers;
 * AVX-512 has 32. */
#ifndef LEATI_BACKENDS_NATIVE_MATMUL_TILE_TMPL_H
#define LEATI_BACKENDS_NATIVE_MATMUL_TILE_TMPL_H

#include "backends/native/simd/vector_tmpl.h"

#define LEATI_PANEL (2 * LEATI_LANES)
#define LEATI_ROWS  6
#if LEATI_LANES == 16
#define LEATI_WIDE     2 /* panels of a tile with 4 rows or more: there are 32 registers */
#define TILE_REGISTERS 32
#else
#define LEATI_WIDE     1
#define TILE_REGISTERS 16
#endif

/* A part of the left operand, for a part of the depth: element (i, k) of chunk c is a[i * row_stride + k *
 * depth_stride + c * chunk_stride]. */
typedef struct leati_operand_part {
    const float *a;
    int64_t row_stride, depth_stride, chunk_stride, depth, chunks;
} leati_operand_part;

/* c (rows, panels) = start + the sum over the parts of a times the rows of b, which continue from part to part.
 * start: NULL for 0, else one row of a panel that all rows share (a bias); or c itself where `add` is set. */
typedef struct leati_tile {
    const leati_operand_part *parts;
    int count;
    int64_t row; /* first row of a */
    const float *b;
    int64_t b_row, b_panel; /* strides, in floats */
    const float *start;     /* (panels * LEATI_PANEL) or NULL */
    float *c;
    int64_t c_row, c_panel;
    int add;
    /* visit the panels from last to first: a caller that alternates finds the last ones still in the cache */
    int backwards;
} leati_tile;

/* Computes one tile.  The loops are do-while, because GCC keeps only then all accumulators in registers. */
LEATI_INLINE void tile_of(const leati_tile *t, const int rows, const int panels) {
    static const float zeros[4 * LEATI_PANEL];
    vf acc[LEATI_ROWS][8];
    const float *from = t->add ? t->c : t->start ? t->start : zeros, *b = t->b;
    int64_t from_row = t->add ? t->c_row : 0, from_panel = t->add ? t->c_panel : LEATI_PANEL;
    int64_t b_row = t->b_row, b_panel = t->b_panel;
    /* True if a row of b fits into the registers that the sums and one element of a leave. */
    const bool holds_b = rows > 1 && 2 * panels * (rows + 1) < TILE_REGISTERS;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < 2 * panels; j++)
            acc[i][j] = v_load(from + i * from_row + j / 2 * from_panel + j % 2 * LEATI_LANES);
    const leati_operand_part *part = t->parts, *end = part + t->count;
    do {
        const float *chunk = part->a + t->row * part->row_stride;
        int64_t row_stride = part->row_stride, depth_stride = part->depth_stride, chunks = part->chunks;
        do {
            const float *a = chunk;
            int64_t k = part->depth;
            do {
                vf row_of_b[8];
                for (int j = 0; j < 2 * panels; j++) {
                    const float *of_b = b + j / 2 * b_panel + j % 2 * LEATI_LANES;
                    row_of_b[j] = holds_b ? v_load_once(of_b) : v_load(of_b);
                }
                for (int i = 0; i < rows; i++) {
                    vf left = v_all(a[i * row_stride]);
                    for (int j = 0; j < 2 * panels; j++) acc[i][j] += left * row_of_b[j];
                }
                a += depth_stride, b += b_row;
            } while (--k > 0);
            chunk += part->chunk_stride;
        } while (--chunks > 0);
    } while (++part < end);
    float *to = t->c;
    int64_t c_row = t->c_row, c_panel = t->c_panel;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < 2 * panels; j++)
            v_store(to + i * c_row + j / 2 * c_panel + j % 2 * LEATI_LANES, acc[i][j]);
}

/* One row needs several panels at a time: with a single panel's two accumulators each addition would wait for the
 * one before. */
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
static void tile_4_wide(const leati_tile *t) {
    tile_of(t, 4, LEATI_WIDE);
}
static void tile_5_wide(const leati_tile *t) {
    tile_of(t, 5, LEATI_WIDE);
}
static void tile_6_wide(const leati_tile *t) {
    tile_of(t, 6, LEATI_WIDE);
}

/* Computes `rows` rows (at most LEATI_ROWS) of all panels. */
LEATI_INLINE void tile_row_block(leati_tile t, int64_t rows, int64_t panels) {
    static const struct {
        int panels_at_once; /* panels per call of `many` */
        void (*one)(const leati_tile *), (*many)(const leati_tile *);
    } tiles[LEATI_ROWS] = {{4, tile_1x1, tile_1x4},
                           {2, tile_2x1, tile_2x2},
                           {2, tile_3x1, tile_3x2},
                           {LEATI_WIDE, tile_4x1, tile_4_wide},
                           {LEATI_WIDE, tile_5x1, tile_5_wide},
                           {LEATI_WIDE, tile_6x1, tile_6_wide}};
    int step = tiles[rows - 1].panels_at_once;
    for (int64_t done = 0; done < panels; done += step) {
        if (panels - done < step) step = 1;
        leati_tile now = t;
        int64_t p = t.backwards ? panels - done - step : done;
        now.b += p * t.b_panel;
        now.c += p * t.c_panel;
        if (t.start) now.start += p * LEATI_PANEL;
        (step > 1 ? tiles[rows - 1].many : tiles[rows - 1].one)(&now);
    }
}

/* Computes all of c, LEATI_WIDE panels at a time, which stay in the L1 cache for all rows. */
LEATI_INLINE void tile_all(leati_tile t, int64_t rows, int64_t panels) {
    if (rows <= LEATI_ROWS) {
        if (rows > 0) tile_row_block(t, rows, panels);
        return;
    }
    int64_t blocks = (rows + LEATI_ROWS - 1) / LEATI_ROWS;
    for (int64_t p = 0; p < panels; p += LEATI_WIDE)
        for (int64_t i = 0; i < blocks; i++) { /* 32 rows are 6 6 5 5 5 5, not 6 6 6 6 6 2 */
            leati_tile one = t;
            int64_t first = rows * i / blocks;
            one.b += p * t.b_panel;
            one.row += first;
            one.c += p * t.c_panel + first * t.c_row;
            if (t.start) one.start += p * LEATI_PANEL;
            tile_row_block(one, rows * (i + 1) / blocks - first,
                           panels - p < LEATI_WIDE ? panels - p : LEATI_WIDE);
        }
}

#endif
