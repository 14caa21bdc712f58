/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices with what follows them, for the code that is compiled once per instruction set.  A tile is
 * LEATI_ROWS rows of the product times a panel, kept in registers over the whole depth. */
#ifndef LEATI_BACKENDS_NATIVE_PRODUCT_BODY_H
#define LEATI_BACKENDS_NATIVE_PRODUCT_BODY_H

#include "backends/native/function_body.h"
#include "backends/native/product.h"
#include "backends/native/tile.h"

/* max(x, 0) and min(max(x, 0), b): done in registers; other functions in a pass over the tile. */
LEATI_INLINE int is_clip(const leati_eltwise *f) {
    return f->function == LEATI_FN_RELU && f->a == 0 && f->c == 0;
}

LEATI_INLINE void product_tile(const leati_product *p, const int rows) {
    vf acc[LEATI_ROWS][2];
    const float *a = p->a, *b = p->b;
    int64_t a_row = p->a_row, a_depth = p->a_depth, from_row = p->from_row, c_row = p->c_row;
    vf bias[2] = {{0}};
    if (p->bias) bias[0] = v_load(p->bias), bias[1] = v_load(p->bias + LEATI_LANES);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < 2; j++) acc[i][j] = bias[j];
    for (int64_t k = p->depth; k > 0; k--, a += a_depth, b += LEATI_PANEL) {
        vf left_column, right[2] = {v_load(b), v_load(b + LEATI_LANES)};
        for (int i = 0; i < rows; i++) {
            left_column = v_all(a[i * a_row]);
            for (int j = 0; j < 2; j++) acc[i][j] += left_column * right[j];
        }
    }
    if (p->from)
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < 2; j++) acc[i][j] += v_load(p->from + i * from_row + j * LEATI_LANES);
    if (p->f && is_clip(p->f)) {
        vf high = v_all(p->f->b);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < 2; j++) acc[i][j] = v_min(v_max(acc[i][j], v_all(0)), high);
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < 2; j++) v_store(p->c + i * c_row + j * LEATI_LANES, acc[i][j]);
}

#define PRODUCT_TILE(rows)                                                                                   \
    static __attribute__((noinline)) void product_tile_##rows(const leati_product *p) {                      \
        product_tile(p, rows);                                                                               \
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

/* Panel by panel: it stays in the first cache while the rows go by.  32 rows are 6 6 5 5 5 5, not five times 6 and a 2. */
static void multiply(const leati_product *p) {
    static void (*const tiles[LEATI_ROWS])(const leati_product *) = {product_tile_1, product_tile_2,
                                                                     product_tile_3, product_tile_4,
                                                                     product_tile_5, product_tile_6};
    int64_t blocks = (p->rows + LEATI_ROWS - 1) / LEATI_ROWS;
    for (int64_t column = 0; column < p->columns; column += LEATI_PANEL)
        for (int64_t i = 0; i < blocks; i++) {
            int64_t first = p->rows * i / blocks;
            leati_product t = *p;
            t.a += first * p->a_row;
            t.b += column / LEATI_PANEL * p->b_panel;
            t.c += first * p->c_row + column;
            if (t.from) t.from += first * p->from_row + column;
            if (t.bias) t.bias += column;
            tiles[p->rows * (i + 1) / blocks - first - 1](&t);
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
