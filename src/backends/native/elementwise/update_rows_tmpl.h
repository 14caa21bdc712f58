/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of a table by a gradient that is a list of rows, for the code that is compiled once per instruction set. */
#ifndef LEATI_BACKENDS_NATIVE_ELEMENTWISE_UPDATE_ROWS_TMPL_H
#define LEATI_BACKENDS_NATIVE_ELEMENTWISE_UPDATE_ROWS_TMPL_H

#include "backends/native/elementwise/jobs.h"
#include "backends/native/simd/vector_tmpl.h"

LEATI_INLINE bool is_between(int64_t row, int64_t first, int64_t last) {
    return row >= first && row < last;
}

/* Lists the gradient's rows of table rows first to last - 1, each list in the order of the batch. */
static void list_rows(const leati_row_update *u, int64_t first, int64_t last) {
    if (!u->skips) memset(u->first + first, 0xff, (size_t)(last - first) * sizeof *u->first);
    for (int64_t i = 0; u->skips && i < u->rows.count; i++)
        if (is_between(u->rows.indices[i], first, last)) u->first[u->rows.indices[i]] = -1;
    for (int64_t i = u->rows.count - 1; i >= 0; i--) {
        const int64_t row = u->rows.indices[i];
        if (!is_between(row, first, last)) continue;
        u->next[i] = u->first[row];
        u->first[row] = (int32_t)i;
    }
}

/* Adds up the rows of a list, and their powers. */
static void sum_list(const leati_row_update *u, int32_t head, bool absolute) {
    const int64_t columns = u->rows.columns;
    float *sum = u->sums, *powers = u->sums + columns;
    memset(sum, 0, (size_t)(2 * columns) * sizeof *sum);
    for (int32_t i = head; i >= 0; i = u->next[i]) {
        const float *from = u->gradient + i * columns;
        for (int64_t c = 0; c < columns; c++) {
            sum[c] += from[c];
            powers[c] += absolute ? fabsf(from[c]) : from[c] * from[c];
        }
    }
}

/* Updates `count` elements of the table from `at` on. */
LEATI_INLINE void update_some(const leati_row_update *u, const float *gradient, const float *powers,
                              int64_t at, int64_t count) {
    leati_range_job job = u->job;
    job.in[1] = gradient;
    job.in[2] = powers;
    for (int i = 0; i < 1 + LEATI_UPDATE_SLOTS; i++)
        if (job.out[i]) job.out[i] += at;
    u->update(&job, 0, count);
}

/* Updates rows that have no gradient. */
static void update_others(const leati_row_update *u, int64_t first, int64_t last) {
    const int64_t end = last * u->rows.columns;
    for (int64_t at = first * u->rows.columns; at < end; at += u->zero_count)
        update_some(u, u->zeros, u->zeros, at, u->zero_count < end - at ? u->zero_count : end - at);
}

/* Updates a row that has a gradient. */
static void update_listed(const leati_row_update *u, int64_t row) {
    const int64_t columns = u->rows.columns;
    sum_list(u, u->first[row], u->job.op == LEATI_OP_UPDATE_ADAMAX);
    update_some(u, u->sums, u->sums + columns, row * columns, columns);
}

/* Updates rows first to last - 1 of the table. */
static void update_rows(const leati_row_update *u, int64_t first, int64_t last) {
    list_rows(u, first, last);
    if (u->skips) {
        for (int64_t i = 0; i < u->rows.count; i++) {
            const int64_t row = u->rows.indices[i];
            if (is_between(row, first, last) && u->first[row] == i) update_listed(u, row);
        }
        return;
    }
    int64_t begin = first; /* of rows without gradient */
    for (int64_t row = first; row < last; row++) {
        if (u->first[row] < 0) continue;
        update_others(u, begin, row);
        update_listed(u, row);
        begin = row + 1;
    }
    update_others(u, begin, last);
}

#endif
