/* SPDX-License-Identifier: Apache-2.0 */
/* REDUCE, for the code that is compiled once per instruction set. */
#ifndef LEATI_BACKENDS_NATIVE_ELEMENTWISE_REDUCE_TMPL_H
#define LEATI_BACKENDS_NATIVE_ELEMENTWISE_REDUCE_TMPL_H

#include "backends/native/simd/function_tmpl.h"
#include "backends/native/elementwise/jobs.h"

#define ROW_STRETCH 512 /* elements of a row that are summed in float */

/* Returns a vector whose lanes add up to the sum of at most ROW_STRETCH elements. */
LEATI_INLINE vf stretch_sum(const float *from, int64_t count) {
    vf part[4] = {{0}};
    int64_t j = 0;
    for (; j + 4 * LEATI_LANES <= count; j += 4 * LEATI_LANES)
        for (int k = 0; k < 4; k++) part[k] += v_load(from + j + k * LEATI_LANES);
    for (; j < count; j += LEATI_LANES) part[0] += v_load_part(from + j, count - j);
    return (part[0] + part[1]) + (part[2] + part[3]);
}

/* Returns the sum of a row.  Stretches are summed in float vectors and added up in double, so that a long row loses no
 * more accuracy than a short one. */
static double row_sum(const float *from, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i += ROW_STRETCH)
        sum += (double)v_sum(stretch_sum(from + i, count - i < ROW_STRETCH ? count - i : ROW_STRETCH));
    return sum;
}

/* Returns the larger or the smaller of two numbers; NaN if b is NaN. */
LEATI_INLINE double extreme_of(double a, double b, bool maximum) {
    return b != b || (maximum ? b > a : b < a) ? b : a;
}

LEATI_INLINE vf v_extreme(vf a, vf b, bool maximum) {
    return v_select((vi)(maximum ? b > a : b < a) | v_nan(b), b, a);
}

LEATI_INLINE double row_extreme(const float *from, int64_t count, bool maximum) {
    double best = (double)from[0];
    int64_t i = 0;
    if (count >= LEATI_LANES) {
        vf acc = v_load(from);
        for (i = LEATI_LANES; i + LEATI_LANES <= count; i += LEATI_LANES)
            acc = v_extreme(acc, v_load(from + i), maximum);
#define FOLD(a, b) v_extreme(a, b, maximum)
        V_FOLD_LANES(acc, FOLD);
#undef FOLD
        best = (double)acc[0];
    }
    for (; i < count; i++) best = extreme_of(best, (double)from[i], maximum);
    return best;
}

typedef enum fold_kind { FOLD_SUM, FOLD_MAX, FOLD_MIN } fold_kind;

LEATI_INLINE double fold_two(double a, double b, fold_kind kind) {
    return kind == FOLD_SUM ? a + b : extreme_of(a, b, kind == FOLD_MAX);
}

LEATI_INLINE vf v_fold(vf a, vf b, fold_kind kind) {
    return kind == FOLD_SUM ? a + b : v_extreme(a, b, kind == FOLD_MAX);
}

/* Folds the first `count` lanes of x (all of them where count is larger) into to.  Extremes are compared as floats,
 * which they are in `to`, too, so that the loops have no branches. */
LEATI_INLINE void fold_lanes(double *to, vf x, int64_t count, fold_kind kind) {
    float lanes[LEATI_LANES];
    if (count > LEATI_LANES) count = LEATI_LANES;
    if (kind != FOLD_SUM) {
        for (int64_t k = 0; k < count; k++) lanes[k] = (float)to[k];
        x = v_extreme(v_load_part(lanes, count), x, kind == FOLD_MAX);
    }
    v_store(lanes, x);
    for (int64_t k = 0; k < count; k++)
        to[k] = kind == FOLD_SUM ? to[k] + (double)lanes[k] : (double)lanes[k];
}

#define FOLD_ROWS 16 /* rows whose sums are float, beyond which sums are double */

/* Folds 1 to FOLD_ROWS rows into acc (columns). */
LEATI_INLINE void fold_some(const float *from, int64_t rows, int64_t columns, double *acc, fold_kind kind) {
    int64_t j = 0;
    for (; j + 2 * LEATI_LANES <= columns; j += 2 * LEATI_LANES) {
        vf a = v_load(from + j), b = v_load(from + j + LEATI_LANES);
        for (int64_t i = 1; i < rows; i++) {
            a = v_fold(a, v_load(from + i * columns + j), kind);
            b = v_fold(b, v_load(from + i * columns + j + LEATI_LANES), kind);
        }
        fold_lanes(acc + j, a, LEATI_LANES, kind);
        fold_lanes(acc + j + LEATI_LANES, b, LEATI_LANES, kind);
    }
    for (; j < columns; j += LEATI_LANES) {
        vf a = v_load_part(from + j, columns - j);
        for (int64_t i = 1; i < rows; i++)
            a = v_fold(a, v_load_part(from + i * columns + j, columns - j), kind);
        fold_lanes(acc + j, a, columns - j, kind);
    }
}

#define FOLD_FEW_COLUMNS 32 /* columns at most */

/* Like fold_some() for few columns whose number is not a multiple of the lanes: LEATI_LANES rows are `columns`
 * whole vectors, and one element of those vectors always belongs to the same column.  Returns how many rows were
 * folded. */
LEATI_INLINE int64_t fold_few_columns(const float *from, int64_t rows, int64_t columns, double *acc,
                                      fold_kind kind) {
    int64_t groups = rows / LEATI_LANES, floats = columns * LEATI_LANES;
    float sums[FOLD_FEW_COLUMNS * LEATI_LANES];
    for (int64_t first = 0; first < groups; first += 4 * FOLD_ROWS) {
        int64_t last = groups - first < 4 * FOLD_ROWS ? groups : first + 4 * FOLD_ROWS;
        memcpy(sums, from + first * floats, (size_t)floats * sizeof *sums);
        for (int64_t g = first + 1; g < last; g++)
            for (int64_t v = 0; v < floats; v += LEATI_LANES)
                v_store(sums + v, v_fold(v_load(sums + v), v_load(from + g * floats + v), kind));
        for (int64_t e = 0, column = 0; e < floats; e++, column = column + 1 < columns ? column + 1 : 0)
            acc[column] = fold_two(acc[column], (double)sums[e], kind);
    }
    return groups * LEATI_LANES;
}

LEATI_INLINE void fold_columns(const float *from, int64_t rows, int64_t columns, double *acc,
                               fold_kind kind) {
    int64_t i = 0;
    if (columns <= FOLD_FEW_COLUMNS && columns % LEATI_LANES != 0)
        i = fold_few_columns(from, rows, columns, acc, kind);
    for (; i < rows; i += FOLD_ROWS)
        fold_some(from + i * columns, rows - i < FOLD_ROWS ? rows - i : FOLD_ROWS, columns, acc, kind);
}

/* Folds (reduced, columns) into acc (columns). */
LEATI_INLINE void fold_leaf(const leati_range_job *job, const float *from, double *acc, fold_kind kind) {
    if (job->reduce.columns > 1)
        fold_columns(from, job->reduce.reduced, job->reduce.columns, acc, kind);
    else if (kind == FOLD_SUM)
        *acc += row_sum(from, job->reduce.reduced);
    else
        *acc = extreme_of(*acc, row_extreme(from, job->reduce.reduced, kind == FOLD_MAX), kind == FOLD_MAX);
}

/* Folds one row of src into acc: the innermost (reduced, columns) block for every index of the axes. */
LEATI_INLINE void fold_row(const leati_range_job *job, const float *from, double *acc, fold_kind kind) {
    int64_t index[LEAT_MAX_RANK] = {0};
    double start = kind == FOLD_SUM ? 0 : kind == FOLD_MAX ? -INFINITY : INFINITY;
    for (int64_t j = 0; j < job->reduce.dst_row; j++) acc[j] = start;
    for (int axis = 0; axis >= 0;) {
        fold_leaf(job, from, acc, kind);
        for (axis = job->reduce.axes - 1; axis >= 0; axis--) {
            from += job->reduce.src_stride[axis];
            acc += job->reduce.dst_stride[axis];
            if (++index[axis] < job->reduce.dim[axis]) break;
            from -= job->reduce.dim[axis] * job->reduce.src_stride[axis];
            acc -= job->reduce.dim[axis] * job->reduce.dst_stride[axis];
            index[axis] = 0;
        }
    }
}

/* Sums of rows that are shorter than a vector: the overhead per row would cost more than its sum. */
static void short_row_sums(const float *restrict from, float *restrict to, int64_t rows, int64_t reduced,
                           double factor) {
    for (int64_t row = 0; row < rows; row++, from += reduced) {
        double sum = (double)from[0];
        for (int64_t j = 1; j < reduced; j++) sum += (double)from[j];
        to[row] = (float)(sum * factor);
    }
}

/* REDUCE: reduces rows first to last - 1. */
static void reduce(const leati_range_job *job, int64_t first, int64_t last) {
    leati_reduce kind = job->attrs->reduce.kind;
    bool sum = kind == LEATI_REDUCE_SUM || kind == LEATI_REDUCE_MEAN;
    if (sum && job->reduce.axes == 0 && job->reduce.columns == 1 && job->reduce.reduced < LEATI_LANES) {
        short_row_sums(job->in[0] + first * job->reduce.reduced, job->out[0] + first, last - first,
                       job->reduce.reduced, 1 / job->reduce.divisor);
        return;
    }
    for (int64_t row = first; row < last; row++) {
        const float *from = job->in[0] + row * job->reduce.src_row;
        float *to = job->out[0] + row * job->reduce.dst_row;
        if (sum)
            fold_row(job, from, job->reduce.sums, FOLD_SUM);
        else if (kind == LEATI_REDUCE_MAX)
            fold_row(job, from, job->reduce.sums, FOLD_MAX);
        else
            fold_row(job, from, job->reduce.sums, FOLD_MIN);
        for (int64_t j = 0; j < job->reduce.dst_row; j++)
            to[j] = (float)(job->reduce.sums[j] / job->reduce.divisor);
    }
}

#endif
