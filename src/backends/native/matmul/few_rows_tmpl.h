/* SPDX-License-Identifier: Apache-2.0 */
/* A few rows times a matrix that is not packed, for the code that is compiled once per instruction set.  A tile is
 * all rows (at most LEATI_FEW_ROWS, in two halves where there are many) times some vectors of columns, kept in
 * registers over the whole depth.  A tile has enough accumulators to hide the latency of an addition. */
#ifndef LEATI_BACKENDS_NATIVE_MATMUL_FEW_ROWS_TMPL_H
#define LEATI_BACKENDS_NATIVE_MATMUL_FEW_ROWS_TMPL_H

#include <math.h>

#include "backends/native/matmul/jobs.h"
#include "backends/native/elementwise/loops_tmpl.h"

LEATI_INLINE void few_rows_tile(const leati_rows_job *job, int64_t row, int64_t column, const int rows,
                                const int vectors) {
    const float *a = job->a + row * job->k, *b = job->b + column;
    float *c = job->c + row * job->n + column;
    vf acc[6][4];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++)
            acc[i][j] = job->bias ? v_load(job->bias + column + j * LEATI_LANES) : (vf){0};
    for (int64_t k = 0; k < job->k; k++, b += job->n)
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < vectors; j++)
                acc[i][j] += v_all(a[i * job->k + k]) * v_load(b + j * LEATI_LANES);
    const float *addend = job->addend ? job->addend + (c - job->c) : NULL;
    for (int i = 0; addend && i < rows; i++)
        for (int j = 0; j < vectors; j++) acc[i][j] += v_load(addend + i * job->n + j * LEATI_LANES);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vectors; j++) v_store(c + i * job->n + j * LEATI_LANES, acc[i][j]);
    if (job->f)
        for (int i = 0; i < rows; i++) apply_post(job->f, c + i * job->n, vectors * LEATI_LANES);
}

#define TILE(rows, vectors)                                                                                  \
    static void few_rows_##rows##_##vectors(const leati_rows_job *job, int64_t row, int64_t column) {        \
        few_rows_tile(job, row, column, rows, vectors);                                                      \
    }
TILE(1, 4)
TILE(1, 2)
TILE(2, 4)
TILE(2, 2)
TILE(3, 4)
TILE(3, 2)
TILE(4, 2)
TILE(5, 2)
TILE(6, 2)
#undef TILE

/* job->n is a multiple of 2 LEATI_LANES. */
static void few_rows(const leati_rows_job *job) {
    static const struct {
        void (*two)(const leati_rows_job *job, int64_t row, int64_t column); /* two vectors wide */
        /* four vectors wide; NULL: too many accumulators */
        void (*four)(const leati_rows_job *job, int64_t row, int64_t column);
    } tiles[] = {{few_rows_1_2, few_rows_1_4}, {few_rows_2_2, few_rows_2_4}, {few_rows_3_2, few_rows_3_4},
                 {few_rows_4_2, NULL},         {few_rows_5_2, NULL},         {few_rows_6_2, NULL}};
    int64_t parts = (job->m + 5) / 6, vectors = job->m <= 3 ? 4 : 2;
    for (int64_t column = 0; column < job->n; column += vectors * LEATI_LANES) {
        if (job->n - column < vectors * LEATI_LANES) vectors = 2;
        for (int64_t i = 0; i < parts; i++) { /* as even as possible: 8 rows are 4 and 4 */
            int64_t first = job->m * i / parts, count = job->m * (i + 1) / parts - first;
            (vectors == 4 ? tiles[count - 1].four : tiles[count - 1].two)(job, first, column);
        }
    }
}

#endif
