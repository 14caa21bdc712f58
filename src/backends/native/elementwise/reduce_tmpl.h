/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, pooling and vector times matrix, for the code that is compiled once per instruction set. */
#ifndef LEATI_BACKENDS_NATIVE_ELEMENTWISE_REDUCE_TMPL_H
#define LEATI_BACKENDS_NATIVE_ELEMENTWISE_REDUCE_TMPL_H

#include "backends/native/simd/function_tmpl.h"
#include "backends/native/simd/isa.h"

/* The sum of a row: floats in vectors for a stretch, then double, so that a long row loses no more than a short one. */
static double row_sum(const float *from, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i += 512) {
        int64_t end = count - i < 512 ? count : i + 512, j = i;
        vf part[4] = {{0}};
        for (; j + 4 * LEATI_LANES <= end; j += 4 * LEATI_LANES)
            for (int k = 0; k < 4; k++) part[k] += v_load(from + j + k * LEATI_LANES);
        for (; j < end; j += LEATI_LANES) part[0] += v_load_part(from + j, end - j);
        sum += (double)v_sum((part[0] + part[1]) + (part[2] + part[3]));
    }
    return sum;
}

/* Largest or smallest of two, NaN before all. */
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
        float lanes[LEATI_LANES];
        vf acc = v_load(from);
        for (i = LEATI_LANES; i + LEATI_LANES <= count; i += LEATI_LANES)
            acc = v_extreme(acc, v_load(from + i), maximum);
        v_store(lanes, acc);
        for (int k = 0; k < LEATI_LANES; k++) best = extreme_of(best, (double)lanes[k], maximum);
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

LEATI_INLINE void fold_lanes(double *to, vf x, fold_kind kind) {
    float lanes[LEATI_LANES];
    v_store(lanes, x);
    for (int k = 0; k < LEATI_LANES; k++) to[k] = fold_two(to[k], (double)lanes[k], kind);
}

#define FOLD_ROWS 16 /* whose sums are float; their rows are read side by side */

/* acc (columns) with rows, at most FOLD_ROWS and at least 1. */
LEATI_INLINE void fold_some(const float *from, int64_t rows, int64_t columns, double *acc, fold_kind kind) {
    int64_t j = 0;
    for (; j + 2 * LEATI_LANES <= columns; j += 2 * LEATI_LANES) {
        vf a = v_load(from + j), b = v_load(from + j + LEATI_LANES);
        for (int64_t i = 1; i < rows; i++) {
            a = v_fold(a, v_load(from + i * columns + j), kind);
            b = v_fold(b, v_load(from + i * columns + j + LEATI_LANES), kind);
        }
        fold_lanes(acc + j, a, kind);
        fold_lanes(acc + j + LEATI_LANES, b, kind);
    }
    for (; j < columns; j++)
        for (int64_t i = 0; i < rows; i++) acc[j] = fold_two(acc[j], (double)from[i * columns + j], kind);
}

#define FOLD_NARROW 32 /* columns */

/* The same for few columns, of which a vector has no whole number: LEATI_LANES rows are `columns` vectors, and what stands
 * at one place in them is always of one column.  Returns the rows that it took. */
LEATI_INLINE int64_t fold_narrow(const float *from, int64_t rows, int64_t columns, double *acc,
                                 fold_kind kind) {
    int64_t groups = rows / LEATI_LANES, floats = columns * LEATI_LANES;
    float sums[FOLD_NARROW * LEATI_LANES];
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
    if (columns <= FOLD_NARROW && columns % LEATI_LANES != 0) i = fold_narrow(from, rows, columns, acc, kind);
    for (; i < rows; i += FOLD_ROWS)
        fold_some(from + i * columns, rows - i < FOLD_ROWS ? rows - i : FOLD_ROWS, columns, acc, kind);
}

/* (reduced, columns) into acc (columns). */
LEATI_INLINE void fold_leaf(const leati_range_job *job, const float *from, double *acc, fold_kind kind) {
    if (job->columns > 1)
        fold_columns(from, job->reduced, job->columns, acc, kind);
    else if (kind == FOLD_SUM)
        *acc += row_sum(from, job->reduced);
    else
        *acc = extreme_of(*acc, row_extreme(from, job->reduced, kind == FOLD_MAX), kind == FOLD_MAX);
}

/* A row: leaves at the places that the axes say, each with its place in acc. */
LEATI_INLINE void fold_row(const leati_range_job *job, const float *from, double *acc, fold_kind kind) {
    int64_t index[LEAT_MAX_RANK] = {0};
    double start = kind == FOLD_SUM ? 0 : kind == FOLD_MAX ? -INFINITY : INFINITY;
    for (int64_t j = 0; j < job->inside; j++) acc[j] = start;
    for (int axis = 0; axis >= 0;) {
        fold_leaf(job, from, acc, kind);
        for (axis = job->axes - 1; axis >= 0; axis--) {
            from += job->by[0][axis];
            acc += job->by[1][axis];
            if (++index[axis] < job->dim[axis]) break;
            from -= job->dim[axis] * job->by[0][axis];
            acc -= job->dim[axis] * job->by[1][axis];
            index[axis] = 0;
        }
    }
}

/* Rows that fill no vector: what is done once for each would cost more than its sum. */
static void short_row_sums(const float *restrict from, float *restrict to, int64_t rows, int64_t reduced,
                           double factor) {
    for (int64_t row = 0; row < rows; row++, from += reduced) {
        double sum = (double)from[0];
        for (int64_t j = 1; j < reduced; j++) sum += (double)from[j];
        to[row] = (float)(sum * factor);
    }
}

/* Rows first to last - 1 of job->step floats each, every one to job->inside. */
static void reduce(const leati_range_job *job, int64_t first, int64_t last) {
    leati_reduce kind = job->attrs->reduce.kind;
    bool sum = kind == LEATI_REDUCE_SUM || kind == LEATI_REDUCE_MEAN;
    if (sum && job->axes == 0 && job->columns == 1 && job->reduced < LEATI_LANES) {
        short_row_sums(job->in[0] + first * job->reduced, job->out[0] + first, last - first, job->reduced,
                       1 / job->divisor);
        return;
    }
    for (int64_t row = first; row < last; row++) {
        const float *from = job->in[0] + row * job->step;
        float *to = job->out[0] + row * job->inside;
        if (sum)
            fold_row(job, from, job->sums, FOLD_SUM);
        else if (kind == LEATI_REDUCE_MAX)
            fold_row(job, from, job->sums, FOLD_MAX);
        else
            fold_row(job, from, job->sums, FOLD_MIN);
        for (int64_t j = 0; j < job->inside; j++) to[j] = (float)(job->sums[j] / job->divisor);
    }
}

#define POOL_TAPS 128 /* of a window; larger ones are refused */

/* The elements of an image's channel 0 under output pixel `pixel` of image 0: their number, and where they start. */
static int taps_of(const leati_geometry *g, int64_t pixel, int64_t starts[POOL_TAPS]) {
    int count = 0;
    for (int64_t tap = 0; tap < g->taps; tap++) {
        int64_t from = leati_source_pixel(g, pixel, tap);
        if (from >= 0) starts[count++] = from * g->channels;
    }
    return count;
}

LEATI_INLINE int64_t image_floats(const leati_geometry *g) {
    return g->in[0] * g->in[1] * g->in[2] * g->channels;
}

LEATI_INLINE vf pool_one(const float *src, const int64_t *starts, int taps, bool maximum, int64_t left) {
    vf acc = v_load_part(src + starts[0], left);
    for (int t = 1; t < taps; t++) {
        vf x = v_load_part(src + starts[t], left);
        acc = maximum ? v_max(acc, x) : acc + x;
    }
    return maximum ? acc : acc / (float)taps;
}

LEATI_INLINE void pool_images(const leati_range_job *job, int64_t first, int64_t last, bool maximum) {
    const leati_geometry *g = job->geometry;
    int64_t pixels = g->out_pixels / g->batch, starts[POOL_TAPS];
    for (int64_t pixel = 0; pixel < pixels; pixel++) {
        int taps = taps_of(g, pixel, starts);
        for (int64_t image = first; image < last; image++) {
            const float *src = job->in[0] + image * image_floats(g);
            float *dst = job->out[0] + (image * pixels + pixel) * g->channels;
            for (int64_t c = 0; c < g->channels; c += LEATI_LANES)
                v_store_part(dst + c, pool_one(src + c, starts, taps, maximum, g->channels - c),
                             g->channels - c);
        }
    }
}

static void pooling(const leati_range_job *job, int64_t first, int64_t last) {
    for (int64_t image = first; image < last; image++)
        if (job->attrs->pooling.kind == LEATI_POOL_MAX)
            pool_images(job, image, image + 1, true);
        else
            pool_images(job, image, image + 1, false);
}

/* Whether windows neither overlap nor leave elements out: then each element is written once. */
static bool tiles_exactly(const leati_geometry *g) {
    for (int i = 0; i < 3; i++)
        if (g->kernel[i] != g->stride[i] || g->out[i] * g->stride[i] != g->in[i] || g->pad_before[i] != 0)
            return false;
    return true;
}

LEATI_INLINE void add_to(float *to, vf x, bool once, int64_t left) {
    v_store_part(to, once ? x : v_load_part(to, left) + x, left);
}

/* The first element of the window that is dst takes the gradient. */
LEATI_INLINE void max_bwd(const float *src, vf dst, vf diff, float *to, const int64_t *starts, int taps,
                          bool once, int64_t left) {
    vi free = ~(vi){0};
    for (int t = 0; t < taps; t++) {
        vi hit = (vi)(v_load_part(src + starts[t], left) == dst) & free;
        add_to(to + starts[t], (vf)(hit & (vi)diff), once, left);
        free &= ~hit;
    }
}

LEATI_INLINE void average_bwd(vf diff, float *to, const int64_t *starts, int taps, bool once, int64_t left) {
    vf share = diff / (float)taps;
    for (int t = 0; t < taps; t++) add_to(to + starts[t], share, once, left);
}

LEATI_INLINE void pool_image_bwd(const leati_range_job *job, int64_t image, bool maximum, bool once) {
    const leati_geometry *g = job->geometry;
    int64_t pixels = g->out_pixels / g->batch, starts[POOL_TAPS];
    const float *src = job->in[0] + image * image_floats(g);
    float *to = job->out[0] + image * image_floats(g);
    if (!once) memset(to, 0, (size_t)image_floats(g) * sizeof *to);
    for (int64_t pixel = 0; pixel < pixels; pixel++) {
        int taps = taps_of(g, pixel, starts);
        int64_t at = (image * pixels + pixel) * g->channels;
        for (int64_t c = 0; c < g->channels; c += LEATI_LANES) {
            int64_t left = g->channels - c;
            vf diff = v_load_part(job->in[2] + at + c, left);
            if (maximum)
                max_bwd(src + c, v_load_part(job->in[1] + at + c, left), diff, to + c, starts, taps, once,
                        left);
            else
                average_bwd(diff, to + c, starts, taps, once, left);
        }
    }
}

static void pooling_bwd(const leati_range_job *job, int64_t first, int64_t last) {
    bool maximum = job->attrs->pooling.kind == LEATI_POOL_MAX, once = tiles_exactly(job->geometry);
    for (int64_t image = first; image < last; image++) {
        if (maximum && once)
            pool_image_bwd(job, image, true, true);
        else
            pool_image_bwd(job, image, maximum, once);
    }
}

/* Vectors that a row of a product keeps in registers. */
#define MATVEC_WIDE 8

LEATI_INLINE void matvec_columns(const leati_matvec_job *job, int64_t first, const int vectors) {
    vf acc[MATVEC_WIDE];
    int64_t left = job->n - first, beyond = vectors * LEATI_LANES - left, k = 0;
    for (int v = 0; v < vectors; v++)
        acc[v] =
            job->bias ? v_load_part(job->bias + first + v * LEATI_LANES, left - v * LEATI_LANES) : (vf){0};
    /* What a vector has beyond the row's end is of the next rows and comes to nothing; the last rows have none. */
    int64_t whole = beyond > 0 ? job->k - (beyond + job->n - 1) / job->n : job->k;
    const float *row = job->b + first;
    if (vectors <= 2) { /* too few sums at once to hide how long one takes: four of each */
        vf more[3][2] = {{{0}}};
        for (; k + 4 <= whole; k += 4, row += 4 * job->n)
            for (int v = 0; v < vectors; v++) {
                acc[v] += job->a[k] * v_load(row + v * LEATI_LANES);
                for (int i = 0; i < 3; i++)
                    more[i][v] += job->a[k + 1 + i] * v_load(row + (1 + i) * job->n + v * LEATI_LANES);
            }
        for (int v = 0; v < vectors; v++) acc[v] += more[0][v] + (more[1][v] + more[2][v]);
    }
    for (; k < whole; k++, row += job->n)
        for (int v = 0; v < vectors; v++) acc[v] += job->a[k] * v_load(row + v * LEATI_LANES);
    for (; k < job->k; k++, row += job->n)
        for (int v = 0; v < vectors; v++)
            acc[v] += job->a[k] * v_load_part(row + v * LEATI_LANES, left - v * LEATI_LANES);
    for (int v = 0; v < vectors; v++)
        v_store_part(job->dst + first + v * LEATI_LANES, job->f ? f_apply(job->f, acc[v]) : acc[v],
                     left - v * LEATI_LANES);
}

/* Few columns, of which a vector holds whole rows: a vector of a stands for as many rows, its numbers repeated. */
LEATI_INLINE void matvec_narrow(const leati_matvec_job *job, const int n) {
    vf acc[8] = {{0}};
    vi lane;
    for (int i = 0; i < LEATI_LANES; i++) lane[i] = i / n;
    int64_t k = 0;
    for (; k + LEATI_LANES <= job->k; k += LEATI_LANES) {
        vf a = v_load(job->a + k);
        const float *rows = job->b + k * n;
        for (int i = 0; i < n; i++)
            acc[i] += v_permute(a, lane + i * (LEATI_LANES / n)) * v_load(rows + i * LEATI_LANES);
    }
    for (int i = 1; i < n; i++) acc[0] += acc[i];
    float sums[LEATI_LANES], dst[LEATI_LANES] = {0};
    v_store(sums, acc[0]);
    for (int j = 0; j < n; j++) dst[j] = job->bias ? job->bias[j] : 0;
    for (int i = 0; i < LEATI_LANES; i++) dst[i % n] += sums[i];
    for (; k < job->k; k++)
        for (int j = 0; j < n; j++) dst[j] += job->a[k] * job->b[k * n + j];
    vf y = v_load(dst);
    v_store_part(job->dst, job->f ? f_apply(job->f, y) : y, n);
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

/* dst[j] = a . b[j], row by row of b. */
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
    static void (*const narrow[])(const leati_matvec_job *) = {NULL, matvec_1, matvec_2, NULL,    matvec_4,
                                                               NULL, NULL,     NULL,     matvec_8};
    void (*whole)(const leati_matvec_job *) = job->transposed ? matvec_rows
                                              : job->n <= 8   ? narrow[job->n]
                                                              : NULL;
    if (whole) {
        whole(job);
        return;
    }
    int64_t first = 0;
    for (; first + MATVEC_WIDE * LEATI_LANES <= job->n; first += MATVEC_WIDE * LEATI_LANES)
        matvec_columns(job, first, MATVEC_WIDE);
    for (; first + 2 * LEATI_LANES <= job->n; first += 2 * LEATI_LANES) matvec_columns(job, first, 2);
    for (; first < job->n; first += LEATI_LANES) matvec_columns(job, first, 1);
}

#endif
