/* SPDX-License-Identifier: Apache-2.0 */
/* A few rows times a matrix that is read once, from memory, in the order in which it lies there, for the code that is
 * compiled once per instruction set. */
#ifndef LEATI_BACKENDS_NATIVE_MATMUL_STREAMED_TMPL_H
#define LEATI_BACKENDS_NATIVE_MATMUL_STREAMED_TMPL_H

#include "backends/native/elementwise/loops_tmpl.h"
#include "backends/native/matmul/jobs.h"

enum {
    STREAMED_DEPTH = 8,     /* rows of b that are read side by side */
    STREAMED_FLOATS = 6144, /* of c, which stay in the L1 cache meanwhile */
    DOTS_ROWS = 6,          /* a tile of dot products: rows of a, and of b */
    DOTS_COLUMNS = LEATI_LANES == 16 ? 4 : 2
};

/* Adds `depth` rows of b from row k on, times their elements of a, to a vector of columns of c, of which `left`
 * exist. */
LEATI_INLINE void streamed_add(const leati_rows_job *job, int64_t k, int64_t column, int64_t left,
                               const int depth, const bool whole) {
    const float *a = job->a + k, *b = job->b + k * job->n + column;
    float *c = job->c + column;
    vf row[STREAMED_DEPTH];
    for (int d = 0; d < depth; d++)
        row[d] = whole ? v_load(b + d * job->n) : v_load_part(b + d * job->n, left);
    for (int64_t i = 0; i < job->m; i++, a += job->k, c += job->n) {
        vf sum = whole ? v_load(c) : v_load_part(c, left), odd = {0};
        for (int d = 0; d < depth; d += 2) {
            sum += a[d] * row[d];
            if (d + 1 < depth) odd += a[d + 1] * row[d + 1];
        }
        if (whole)
            v_store(c, sum + odd);
        else
            v_store_part(c, sum + odd, left);
    }
}

LEATI_INLINE void streamed_add_rows(const leati_rows_job *job, int64_t k, int64_t first, int64_t last,
                                    const int depth) {
    int64_t j = first;
    for (; j + LEATI_LANES <= last; j += LEATI_LANES) streamed_add(job, k, j, LEATI_LANES, depth, true);
    if (j < last) streamed_add(job, k, j, last - j, depth, false);
}

static void streamed_columns(const leati_rows_job *job, int64_t first, int64_t last) {
    for (int64_t i = 0; i < job->m; i++)
        for (int64_t j = first; j < last; j++) job->c[i * job->n + j] = job->bias ? job->bias[j] : 0;
    int64_t k = 0;
    for (; k + STREAMED_DEPTH <= job->k; k += STREAMED_DEPTH)
        streamed_add_rows(job, k, first, last, STREAMED_DEPTH);
    for (; k < job->k; k++) streamed_add_rows(job, k, first, last, 1);
}

/* `rows` rows of a, from `row` on, times `columns` rows of the transposed matrix, from `column` on. */
LEATI_INLINE void dots(const leati_rows_job *job, int64_t row, int64_t column, const int rows,
                       const int columns) {
    const float *a = job->a + row * job->k, *b = job->b + column * job->k;
    vf acc[DOTS_ROWS][DOTS_COLUMNS] = {{{0}}};
    int64_t k = 0;
    for (; k + LEATI_LANES <= job->k; k += LEATI_LANES) {
        vf right[DOTS_COLUMNS];
        for (int j = 0; j < columns; j++) right[j] = v_load(b + j * job->k + k);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++) acc[i][j] += v_load(a + i * job->k + k) * right[j];
    }
    for (int i = 0; k < job->k && i < rows; i++)
        for (int j = 0; j < columns; j++)
            acc[i][j] +=
                v_load_part(a + i * job->k + k, job->k - k) * v_load_part(b + j * job->k + k, job->k - k);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            job->c[(row + i) * job->n + column + j] =
                v_sum(acc[i][j]) + (job->bias ? job->bias[column + j] : 0);
}

#define DOTS(rows)                                                                                           \
    static void dots_##rows(const leati_rows_job *job, int64_t row, int64_t column, bool wide) {             \
        if (wide)                                                                                            \
            dots(job, row, column, rows, DOTS_COLUMNS);                                                      \
        else                                                                                                 \
            dots(job, row, column, rows, 1);                                                                 \
    }
DOTS(1)
DOTS(2)
DOTS(3)
DOTS(4)
DOTS(5)
DOTS(6)
#undef DOTS

static void streamed_transposed(const leati_rows_job *job, int64_t first, int64_t last) {
    static void (*const tiles[DOTS_ROWS])(const leati_rows_job *, int64_t, int64_t,
                                          bool) = {dots_1, dots_2, dots_3, dots_4, dots_5, dots_6};
    int64_t parts = (job->m + DOTS_ROWS - 1) / DOTS_ROWS;
    for (int64_t j = first, columns; j < last; j += columns) {
        columns = j + DOTS_COLUMNS <= last ? DOTS_COLUMNS : 1;
        for (int64_t i = 0; i < parts; i++) { /* as even as possible: 8 rows are 4 and 4 */
            int64_t row = job->m * i / parts, count = job->m * (i + 1) / parts - row;
            tiles[count - 1](job, row, j, columns > 1);
        }
    }
}

/* Computes the columns first to last - 1 of c. */
static void streamed_rows(const leati_rows_job *job, int64_t first, int64_t last) {
    int64_t step = job->transposed ? last - first : STREAMED_FLOATS / job->m / LEATI_LANES * LEATI_LANES;
    for (int64_t j = first; j < last; j += step) {
        int64_t end = j + step < last ? j + step : last;
        (job->transposed ? streamed_transposed : streamed_columns)(job, j, end);
    }
    for (int64_t i = 0; i < job->m; i++) {
        float *c = job->c + i * job->n;
        const float *addend = job->addend ? job->addend + i * job->n : NULL;
        for (int64_t j = first; addend && j < last; j++) c[j] += addend[j];
        if (job->f) apply_post(job->f, c + first, last - first);
    }
}

#endif
