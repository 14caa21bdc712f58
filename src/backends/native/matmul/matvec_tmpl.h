/* SPDX-License-Identifier: Apache-2.0 */
/* A vector times a matrix that is not packed, for the code that is compiled once per instruction set. */
#ifndef LEATI_BACKENDS_NATIVE_MATMUL_MATVEC_TMPL_H
#define LEATI_BACKENDS_NATIVE_MATMUL_MATVEC_TMPL_H

#include "backends/native/matmul/jobs.h"
#include "backends/native/simd/function_tmpl.h"

/* vectors of the result that are kept in registers at a time */
#define MATVEC_VECTORS 8

LEATI_INLINE void matvec_columns(const leati_matvec_job *job, int64_t first, const int vectors) {
    vf acc[MATVEC_VECTORS];
    int64_t left = job->n - first, beyond = vectors * LEATI_LANES - left, k = 0;
    for (int v = 0; v < vectors; v++)
        acc[v] =
            job->bias ? v_load_part(job->bias + first + v * LEATI_LANES, left - v * LEATI_LANES) : (vf){0};
    /* A vector that reaches beyond the end of a row holds elements of the next rows, which go into lanes that are
     * not stored. The last rows have no next rows, so their vectors are loaded in part. */

    int64_t whole_rows = beyond > 0 ? job->k - (beyond + job->n - 1) / job->n : job->k;
    const float *row = job->b + first;
    if (vectors <= 2) { /* two accumulators cannot hide the latency of an addition: four of each */
        vf partial[3][2] = {{{0}}};
        for (; k + 4 <= whole_rows; k += 4, row += 4 * job->n)
            for (int v = 0; v < vectors; v++) {
                acc[v] += job->a[k] * v_load(row + v * LEATI_LANES);
                for (int i = 0; i < 3; i++)
                    partial[i][v] += job->a[k + 1 + i] * v_load(row + (1 + i) * job->n + v * LEATI_LANES);
            }
        for (int v = 0; v < vectors; v++) acc[v] += partial[0][v] + (partial[1][v] + partial[2][v]);
    }
    for (; k < whole_rows; k++, row += job->n)
        for (int v = 0; v < vectors; v++) acc[v] += job->a[k] * v_load(row + v * LEATI_LANES);
    for (; k < job->k; k++, row += job->n)
        for (int v = 0; v < vectors; v++)
            acc[v] += job->a[k] * v_load_part(row + v * LEATI_LANES, left - v * LEATI_LANES);
    for (int v = 0; v < vectors; v++)
        v_store_part(job->dst + first + v * LEATI_LANES, job->f ? f_apply(job->f, acc[v]) : acc[v],
                     left - v * LEATI_LANES);
}

/* n columns, where a vector of b holds LEATI_LANES / n whole rows: elements of a are repeated n times each to
 * match. */
LEATI_INLINE void matvec_narrow(const leati_matvec_job *job, const int n) {
    vf acc[8];
    vi index;
    for (int i = 0; i < LEATI_LANES; i++) index[i] = i;
    for (int i = 0; i < n; i++) acc[i] = (vf){0};
    int64_t k = 0;
    for (; k + LEATI_LANES <= job->k; k += LEATI_LANES) {
        vf a = v_load(job->a + k);
        const float *rows = job->b + k * n;
        for (int i = 0; i < n; i++)
            acc[i] += v_permute(a, index / n + i * (LEATI_LANES / n)) * v_load(rows + i * LEATI_LANES);
    }
    for (int i = 1; i < n; i++) acc[0] += acc[i];
    for (int lanes = LEATI_LANES / 2; lanes >= n; lanes /= 2) /* add the lanes of the same column */
        acc[0] += v_permute(acc[0], (index + lanes) % LEATI_LANES);
    if (job->bias) acc[0] += v_load_part(job->bias, n);
    for (; k < job->k; k++) acc[0] += job->a[k] * v_load_part(job->b + k * n, n);
    v_store_part(job->dst, job->f ? f_apply(job->f, acc[0]) : acc[0], n);
}

static void matvec_1(const leati_matvec_job *job) {
    matvec_narrow(job, 1);
}
static void matvec_2(const leati_matvec_job *job) {
    matvec_narrow(job, 2);
}
static void matvec_4(const leati_matvec_job *job) {
    matvec_narrow(job, 4);
}
#if LEATI_LANES >= 8
static void matvec_8(const leati_matvec_job *job) {
    matvec_narrow(job, 8);
}
#else
#define matvec_8 NULL
#endif

/* b is transposed: dst[j] is the dot product of a and row j of b. */
static void matvec_rows(const leati_matvec_job *job) {
    for (int64_t j = 0; j < job->n; j++) {
        const float *row = job->b + j * job->k;
        float sum = job->bias ? job->bias[j] : 0;
        vf acc[2] = {{0}};
        int64_t k = 0;
        for (; k + 2 * LEATI_LANES <= job->k; k += 2 * LEATI_LANES)
            for (int v = 0; v < 2; v++)
                acc[v] += v_load(job->a + k + v * LEATI_LANES) * v_load(row + k + v * LEATI_LANES);
        if (k > 0) sum += v_sum(acc[0] + acc[1]);
        for (; k < job->k; k++) sum += job->a[k] * row[k];
        job->dst[j] = job->f ? leati_eltwise_at(job->f, sum) : sum;
    }
}

static void matvec(const leati_matvec_job *job) {
    static void (*const few_columns[])(
        const leati_matvec_job *) = {NULL, matvec_1, matvec_2, NULL, matvec_4, NULL, NULL, NULL, matvec_8};
    void (*special)(const leati_matvec_job *) = job->transposed ? matvec_rows
                                                : job->n <= 8   ? few_columns[job->n]
                                                                : NULL;
    if (special) {
        special(job);
        return;
    }
    int64_t first = 0;
    for (; first + MATVEC_VECTORS * LEATI_LANES <= job->n; first += MATVEC_VECTORS * LEATI_LANES)
        matvec_columns(job, first, MATVEC_VECTORS);
    for (; first + 2 * LEATI_LANES <= job->n; first += 2 * LEATI_LANES) matvec_columns(job, first, 2);
    for (; first < job->n; first += LEATI_LANES) matvec_columns(job, first, 1);
}

#endif
