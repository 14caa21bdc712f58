/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices with their fused bias, addend and function, for the code that is compiled once per
 * instruction set.  A tile is some rows of the product times some vectors of columns, kept in registers over the
 * whole depth.  Its last vector may have columns that the product does not have: panels are padded with zeros. */
#ifndef LEATI_BACKENDS_NATIVE_MATMUL_PRODUCT_TMPL_H
#define LEATI_BACKENDS_NATIVE_MATMUL_PRODUCT_TMPL_H

#include <stdbool.h>

#include "backends/native/simd/function_tmpl.h"
#include "backends/native/matmul/jobs.h"
#include "backends/native/matmul/tile_tmpl.h"
#include "backends/native/simd/transpose_tmpl.h"

#define PRODUCT_L2_FLOATS (32 * 1024) /* floats of b that stay in the L2 cache */
#if LEATI_LANES == 16
#define PRODUCT_VECTORS 4 /* vectors of a tile's row: with 32 registers two panels, for fewer loads */
#else
#define PRODUCT_VECTORS 2
#endif
#define PRODUCT_TALL 12 /* rows of the tallest tile */

/* True for max(x, 0) and min(max(x, 0), b), which are applied in registers; other functions are applied to each block
 * of c while it is in the L1 cache. */
LEATI_INLINE int is_clip(const leati_eltwise *f) {
    return f->function == LEATI_FN_RELU && f->a == 0 && f->c == 0;
}

/* Unrolled early, so that the accumulators that the loop indexes stay in registers throughout. */
#define EACH(i, count) _Pragma("GCC unroll 12") for (int i = 0; i < count; i++)

#define LINE_FLOATS 16
#define STEP_DEPTH  4 /* rows of b before which a tile prefetches some lines of the next panels */
#define STEP_LINES  (STEP_DEPTH * LEATI_PANEL / LINE_FLOATS) /* lines of a panel's STEP_DEPTH rows */

/* Data that a tile prefetches: cache lines of the panels that are used next, and of the next rows of a. */
typedef struct product_prefetch {
    const float *b;
    int lines; /* cache lines of each panel for each STEP_DEPTH rows of b: few at a time, so that loads need not wait */
    bool rows;
} product_prefetch;

/* Adds bias and addend to a tile, applies the function where it is a clip, and stores the tile.  The last of its
 * vectors has `last` columns. */
LEATI_INLINE void finish_tile(const leati_product *p, int64_t row, int64_t column,
                              vf acc[PRODUCT_TALL][PRODUCT_VECTORS], const int rows, const int vectors,
                              int64_t last) {
    if (p->bias) {
        const float *from = p->bias + column;
        EACH (j, vectors) {
            vf bias = v_load_part(from + j * LEATI_LANES, j < vectors - 1 ? LEATI_LANES : last);
            EACH (i, rows) acc[i][j] += bias;
        }
    }
    if (p->addend) {
        int64_t addend_row = p->addend_row;
        const float *addend = p->addend + row * addend_row + column;
        EACH (i, rows)
            EACH (j, vectors)
                acc[i][j] += v_load_part(addend + i * addend_row + j * LEATI_LANES,
                                         j < vectors - 1 ? LEATI_LANES : last);
    }
    if (p->f && is_clip(p->f)) {
        vf high = v_all(p->f->b);
        EACH (i, rows)
            EACH (j, vectors) acc[i][j] = v_min(v_max(acc[i][j], v_all(0)), high);
    }
    int64_t c_row = p->c_row;
    float *c = p->c + row * c_row + column;
    EACH (i, rows)
        EACH (j, vectors)
            v_store_part(c + i * c_row + j * LEATI_LANES, acc[i][j], j < vectors - 1 ? LEATI_LANES : last);
}

/* The rows of c and of the addend that a tile has not prefetched yet. */
typedef struct tile_rows {
    const float *c, *addend; /* addend: NULL where there is none, or where it is c */
    int64_t left;
} tile_rows;

LEATI_INLINE tile_rows rows_of_tile(const leati_product *p, int64_t row, int64_t column, int64_t rows) {
    tile_rows all = {.c = p->c + row * p->c_row + column, .left = rows};
    if (p->addend && p->addend != p->c) all.addend = p->addend + row * p->addend_row + column;
    return all;
}

LEATI_INLINE void prefetch_row(const leati_product *p, tile_rows *next, const int vectors) {
    EACH (j, vectors) __builtin_prefetch(next->c + j * LEATI_LANES, 1);
    next->c += p->c_row;
    next->left--;
    if (!next->addend) return;
    EACH (j, vectors) __builtin_prefetch(next->addend + j * LEATI_LANES);
    next->addend += p->addend_row;
}

/* Computes the tile of p at (row, column): `rows` rows of `vectors` vectors.  Before each LINE_FLOATS of the depth it
 * prefetches one row of c and of the addend: all rows at once would keep the loads of b waiting. */
LEATI_INLINE void product_tile(const leati_product *p, int64_t row, int64_t column, product_prefetch prefetch,
                               const int rows, const int vectors) {
    vf acc[PRODUCT_TALL][PRODUCT_VECTORS];
    int64_t a_row = p->a_row, a_depth = p->a_depth;
    const float *part = p->a + row * a_row, *b = p->b + column / LEATI_PANEL * p->b_panel;
    int64_t parts = p->parts > 1 ? p->parts : 1;
    tile_rows next = rows_of_tile(p, row, column, rows);
    for (int64_t n = rows - parts * ((p->depth + LINE_FLOATS - 1) / LINE_FLOATS); n > 0; n--)
        prefetch_row(p, &next, vectors);
    EACH (i, rows) {
        EACH (j, vectors) acc[i][j] = (vf){0};
    }
    do {
        const float *a = part;
        for (int64_t k = p->depth, chunk; k > 0; k -= chunk) {
            chunk = k < LINE_FLOATS ? k : LINE_FLOATS;
            if (next.left > 0) prefetch_row(p, &next, vectors);
            if (prefetch.rows)
                EACH (i, rows) __builtin_prefetch(a + (rows + i) * a_row);
            int64_t steps = prefetch.lines > 0 ? STEP_DEPTH : chunk;
            for (int64_t left = chunk, step; left > 0; left -= step) {
                step = left < steps ? left : steps;
                for (int line = 0; line < prefetch.lines; line++, prefetch.b += LINE_FLOATS)
                    EACH (j, PRODUCT_VECTORS / 2) __builtin_prefetch(prefetch.b + j * p->b_panel, 0, 2);
#pragma GCC unroll 4
                for (int64_t n = step; n > 0; n--, a += a_depth, b += LEATI_PANEL) {
                    vf right[PRODUCT_VECTORS];
                    EACH (j, vectors) right[j] = v_load(b + j / 2 * p->b_panel + j % 2 * LEATI_LANES);
                    EACH (i, rows) {
                        vf left_of_row = v_all(a[i * a_row]);
                        EACH (j, vectors) acc[i][j] += left_of_row * right[j];
                    }
                }
            }
        }
        part += p->a_part;
    } while (--parts > 0);
    int64_t last = p->columns - column - (vectors - 1) * LEATI_LANES;
    if (last >= LEATI_LANES)
        finish_tile(p, row, column, acc, rows, vectors, LEATI_LANES);
    else
        finish_tile(p, row, column, acc, rows, vectors, last);
}

#undef EACH

typedef void (*product_tile_of)(const leati_product *p, int64_t row, int64_t column,
                                product_prefetch prefetch);

#define PRODUCT_TILE(rows, vectors)                                                                          \
    static __attribute__((noinline)) void product_tile_##rows##_##vectors(const leati_product *p,            \
                                                                          int64_t row, int64_t column,       \
                                                                          product_prefetch prefetch) {       \
        product_tile(p, row, column, prefetch, rows, vectors);                                               \
    }
#define EACH_OF_6(X, vectors)                                                                                \
    X(1, vectors) X(2, vectors) X(3, vectors) X(4, vectors) X(5, vectors) X(6, vectors)
#define EACH_OF_8(X, vectors) EACH_OF_6(X, vectors) X(7, vectors) X(8, vectors)
#define EACH_OF_12(X, vectors)                                                                               \
    EACH_OF_8(X, vectors) X(9, vectors) X(10, vectors) X(11, vectors) X(12, vectors)
#define PRODUCT_NAME(rows, vectors) [rows] = product_tile_##rows##_##vectors,

/* The tiles by vectors and rows.  A tile of few vectors is taller where registers suffice, so that enough additions
 * are under way: each waits for the one before it. */
EACH_OF_12(PRODUCT_TILE, 1)
#if PRODUCT_VECTORS == 4
EACH_OF_12(PRODUCT_TILE, 2)
EACH_OF_8(PRODUCT_TILE, 3)
EACH_OF_6(PRODUCT_TILE, 4)
static const int product_rows[PRODUCT_VECTORS + 1] = {0, 12, 12, 8, LEATI_ROWS};
static const product_tile_of product_tiles[PRODUCT_VECTORS + 1][PRODUCT_TALL + 1] = {
    {NULL},
    {EACH_OF_12(PRODUCT_NAME, 1)},
    {EACH_OF_12(PRODUCT_NAME, 2)},
    {EACH_OF_8(PRODUCT_NAME, 3)},
    {EACH_OF_6(PRODUCT_NAME, 4)},
};
#else
EACH_OF_6(PRODUCT_TILE, 2)
static const int product_rows[PRODUCT_VECTORS + 1] = {0, 12, LEATI_ROWS};
static const product_tile_of product_tiles[PRODUCT_VECTORS + 1][PRODUCT_TALL + 1] = {
    {NULL},
    {EACH_OF_12(PRODUCT_NAME, 1)},
    {EACH_OF_6(PRODUCT_NAME, 2)},
};
#endif
#undef PRODUCT_NAME
#undef EACH_OF_12
#undef EACH_OF_8
#undef EACH_OF_6
#undef PRODUCT_TILE

static __attribute__((noinline)) vf call_function(const leati_eltwise *f, vf x) {
    return f_apply(f, x);
}

/* Applies the function to a block of c, which the tiles could not do. */
LEATI_INLINE void apply_function_to(const leati_product *p, int64_t row, int64_t rows, int64_t column,
                                    int64_t columns) {
    float *c = p->c + row * p->c_row + column;
    if (p->c_row == columns) {
        map_function(p->f, c, c, rows * columns);
        return;
    }
    for (int64_t i = 0; i < rows; i++, c += p->c_row) map_function(p->f, c, c, columns);
}

/* Returns the vectors of a tile that begins with `column`, where the product's columns end with `to` - 1. */
LEATI_INLINE int64_t product_vectors(int64_t column, int64_t to) {
    int64_t vectors = (to - column + LEATI_LANES - 1) / LEATI_LANES;
    return vectors < PRODUCT_VECTORS ? vectors : PRODUCT_VECTORS;
}

/* Computes the product, one tile's width of columns at a time: these panels stay in the L1 cache for all rows, and
 * each block of rows prefetches its share of the next panels until they are complete.  Where all panels fit in the L2
 * cache, it goes row by row instead, so that c is written in memory order.  A gradient with respect to weights
 * (a_depth other than 1) prefetches nothing, because its operand was packed just before.  Blocks of rows are as even
 * as possible: 32 rows are 6 6 5 5 5 5, not five times 6 and a 2. */
static void multiply(const leati_product *p) {
    int64_t parts = p->parts > 1 ? p->parts : 1, depth = parts * p->depth;
    bool fits_l2 = !p->streams && p->a_depth == 1 && p->columns * depth <= PRODUCT_L2_FLOATS;
    bool applies = p->f && !is_clip(p->f);
    int64_t step = fits_l2 ? p->columns : PRODUCT_VECTORS * LEATI_LANES;
    for (int64_t column = 0; column < p->columns; column += step) {
        int64_t to = column + step < p->columns ? column + step : p->columns;
        int64_t most = product_rows[product_vectors(column, to)];
        int64_t blocks = (p->rows + most - 1) / most, size = p->rows / blocks;
        int64_t larger = p->rows % blocks * (size + 1); /* rows in blocks that have one row more */
        product_prefetch prefetch = {.b = p->b + (to + LEATI_PANEL - 1) / LEATI_PANEL * p->b_panel,
                                     .rows = p->a_depth == 1};
        if (prefetch.rows && !fits_l2 && (p->streams || to < p->columns || p->b_panel == depth * LEATI_PANEL))
            prefetch.lines = (int)((STEP_LINES + blocks - 1) / blocks);
        int64_t share = parts * prefetch.lines * ((p->depth + STEP_DEPTH - 1) / STEP_DEPTH) * LINE_FLOATS;
        int64_t to_do = STEP_LINES;
        for (int64_t row = 0, n; row < p->rows; row += n, prefetch.b += share, to_do -= prefetch.lines) {
            n = size + (row < larger);
            product_prefetch now = prefetch;
            if (to_do <= 0) now.lines = 0;
            for (int64_t at = column, vectors; at < to; at += vectors * LEATI_LANES, now.rows = false) {
                vectors = product_vectors(at, to);
                product_tiles[vectors][n](p, row, at, now);
            }
            if (applies) apply_function_to(p, row, n, column, to - column);
        }
    }
}

/* Packs columns first to last - 1 of b (k, ...), whose rows are b_row apart, into panels that lie panel_floats
 * apart; the last panel is padded with zeros.  Adds the columns' sums to `sums` unless that is NULL. */
LEATI_INLINE void pack_columns_of(const void *b, int64_t b_row, int64_t k, int64_t first, int64_t last,
                                  float *packed, int64_t panel_floats, float *sums, const bool bf16) {
    for (int64_t j = first; j < last; j += LEATI_PANEL) {
        float *to = packed + j / LEATI_PANEL * panel_floats;
        /* columns that exist in the first and in the second vector */
        int64_t low = last - j, high = low - LEATI_LANES;
        vf sum[2] = {{0}};
        for (int64_t i = 0; i < k; i++, to += LEATI_PANEL) {
            int64_t at = i * b_row + j;
            vf left = v_load_image(b, at, low, bf16),
               right = high > 0 ? v_load_image(b, at + LEATI_LANES, high, bf16) : (vf){0};
            v_store(to, left);
            v_store(to + LEATI_LANES, right);
            sum[0] += left;
            sum[1] += right;
        }
        if (!sums) continue;
        v_store(sums + j, v_load(sums + j) + sum[0]);
        v_store(sums + j + LEATI_LANES, v_load(sums + j + LEATI_LANES) + sum[1]);
    }
}

static void pack_columns(const float *b, int64_t b_row, int64_t k, int64_t first, int64_t last, float *packed,
                         int64_t panel_floats, float *sums) {
    pack_columns_of(b, b_row, k, first, last, packed, panel_floats, sums, false);
}

static void pack_bf16_columns(const uint16_t *b, int64_t b_row, int64_t k, int64_t first, int64_t last,
                              float *packed, int64_t panel_floats, float *sums) {
    pack_columns_of(b, b_row, k, first, last, packed, panel_floats, sums, true);
}

/* Like pack_columns(), but b is the transposed matrix (n, k), whose rows are b_row apart. */
static void pack_transposed(const float *b, int64_t b_row, int64_t k, int64_t first, int64_t last,
                            float *packed, int64_t panel_floats) {
    for (int64_t j = first; j < last; j += LEATI_LANES) {
        float *to = packed + j / LEATI_PANEL * panel_floats + j % LEATI_PANEL;
        int64_t left = last - j, done = left < LEATI_LANES ? 0 : k / LEATI_LANES * LEATI_LANES;
        const float *addend = b + j * b_row;
        for (int64_t i = 0; i < done; i += LEATI_LANES)
            transpose_square(to + i * LEATI_PANEL, LEATI_PANEL, addend + i, b_row);
        for (int64_t i = done; i < k; i++)
            for (int64_t x = 0; x < LEATI_LANES; x++)
                to[i * LEATI_PANEL + x] = x < left ? addend[x * b_row + i] : 0;
    }
}

#endif
