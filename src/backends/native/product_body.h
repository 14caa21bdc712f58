/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices with what follows them, for the code that is compiled once per instruction set.  A tile is
 * LEATI_ROWS rows of the product times a panel, kept in registers over the whole depth. */
#ifndef LEATI_BACKENDS_NATIVE_PRODUCT_BODY_H
#define LEATI_BACKENDS_NATIVE_PRODUCT_BODY_H

#include "backends/native/function_body.h"
#include "backends/native/product.h"
#include "backends/native/tile.h"

#define PRODUCT_NEAR (32 * 1024) /* floats of panels that are read from the second cache */

/* max(x, 0) and min(max(x, 0), b): done in registers; other functions in a pass over the tile. */
LEATI_INLINE int is_clip(const leati_eltwise *f) {
    return f->function == LEATI_FN_RELU && f->a == 0 && f->c == 0;
}

/* A tile of p at (row, column). */
LEATI_INLINE void product_tile(const leati_product *p, int64_t row, int64_t column, const int rows) {
    vf acc[LEATI_ROWS][2];
    int64_t a_row = p->a_row, a_depth = p->a_depth, from_row = p->from_row, c_row = p->c_row;
    const float *a = p->a + row * a_row, *b = p->b + column / LEATI_PANEL * p->b_panel;
    float *c = p->c + row * c_row + column;
    for (int i = 0; i < rows; i++) {
        __builtin_prefetch(c + i * c_row, 1);
        for (int j = 0; j < 2; j++) acc[i][j] = (vf){0};
    }
#pragma GCC unroll 4
    for (int64_t k = p->depth; k > 0; k--, a += a_depth, b += LEATI_PANEL) {
        vf right[2] = {v_load(b), v_load(b + LEATI_LANES)};
        for (int i = 0; i < rows; i++) {
            vf left = v_all(a[i * a_row]);
            for (int j = 0; j < 2; j++) acc[i][j] += left * right[j];
        }
    }
    if (p->bias) {
        vf bias[2] = {v_load(p->bias + column), v_load(p->bias + column + LEATI_LANES)};
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < 2; j++) acc[i][j] += bias[j];
    }
    if (p->from) {
        const float *from = p->from + row * from_row + column;
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < 2; j++) acc[i][j] += v_load(from + i * from_row + j * LEATI_LANES);
    }
    if (p->f && is_clip(p->f)) {
        vf high = v_all(p->f->b);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < 2; j++) acc[i][j] = v_min(v_max(acc[i][j], v_all(0)), high);
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < 2; j++) v_store(c + i * c_row + j * LEATI_LANES, acc[i][j]);
}

#define PRODUCT_TILE(rows)                                                                                   \
    static __attribute__((noinline)) void product_tile_##rows(const leati_product *p, int64_t row,           \
                                                              int64_t column) {                              \
        product_tile(p, row, column, rows);                                                                  \
    }
PRODUCT_TILE(1)
PRODUCT_TILE(2)
PRODUCT_TILE(3)
PRODUCT_TILE(4)
PRODUCT_TILE(5)
PRODUCT_TILE(6)
#undef PRODUCT_TILE

static __attribute__((noinline)) vf function_of(const leati_eltwise *f, vf x) {
    return f_apply(f, x);
}

/* The function over what the tiles have left of it. */
static void product_function(const leati_product *p) {
    for (int64_t i = 0; i < p->rows; i++)
        for (int64_t j = 0; j < p->columns; j += LEATI_LANES) {
            float *c = p->c + i * p->c_row + j;
            v_store(c, function_of(p->f, v_load(c)));
        }
}

/* Panel by panel: it stays in the first cache while the rows go by.  Where all panels stay in the second, row by row: c
 * is written as it lies.  32 rows are 6 6 5 5 5 5, not five times 6 and a 2. */
static void multiply(const leati_product *p) {
    static void (*const tiles[])(const leati_product *, int64_t,
                                 int64_t) = {NULL,           product_tile_1, product_tile_2, product_tile_3,
                                             product_tile_4, product_tile_5, product_tile_6};
    int64_t blocks = (p->rows + LEATI_ROWS - 1) / LEATI_ROWS, size = p->rows / blocks;
    int64_t larger = p->rows % blocks * (size + 1); /* rows in blocks of one more */
    if (p->a_depth == 1 && p->columns * p->depth <= PRODUCT_NEAR)
        for (int64_t row = 0, n; row < p->rows; row += n) {
            n = size + (row < larger);
            for (int64_t column = 0; column < p->columns; column += LEATI_PANEL) tiles[n](p, row, column);
        }
    else
        for (int64_t column = 0; column < p->columns; column += LEATI_PANEL)
            for (int64_t row = 0, n; row < p->rows; row += n) {
                n = size + (row < larger);
                tiles[n](p, row, column);
            }
    if (p->f && !is_clip(p->f)) product_function(p);
}

/* Columns first to last - 1 of b (k, n), rows b_row apart, as panels panel_floats apart: whole panels. */
static void pack_columns(const float *b, int64_t b_row, int64_t k, int64_t first, int64_t last, float *packed,
                         int64_t panel_floats, float *sums) {
    for (int64_t j = first; j < last; j += LEATI_PANEL) {
        float *to = packed + j / LEATI_PANEL * panel_floats;
        vf sum[2] = {{0}};
        for (int64_t i = 0; i < k; i++, to += LEATI_PANEL) {
            vf left = v_load(b + i * b_row + j), right = v_load(b + i * b_row + j + LEATI_LANES);
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

#endif
