/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix of ZCA whitening: the inverse square root of a symmetric matrix, by its eigenvectors.  Householder
 * reflections make the matrix tridiagonal, and implicit QL steps make it diagonal.  Room: image. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "image/augment/statistics.h"

/* The shares of the parts of the work. */
static const double TRIDIAGONAL = 0.3, DIAGONAL = 0.9;

typedef struct eigen {
    int64_t n;
    double *a;        /* (n, n): the matrix, then the reflections */
    double *z;        /* (n, n): row k becomes eigenvector k */
    double *diagonal; /* (n) */
    double *off;      /* (n): off[k] is next to diagonal[k] and diagonal[k + 1] */
    double *factor;   /* (n): reflection k is 1 - factor * v v^T */
    double *work;     /* (n) */
    const leati_share_report *report;
} eigen;

static void tell(const eigen *e, double share) {
    if (e->report && e->report->call) e->report->call(e->report->user, share);
}

static double dot(const double *a, const double *b, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
    return sum;
}

/* Makes reflection k, whose vector v (from element k + 1 on) is kept in row k of the matrix. */
static void make_reflection(eigen *e, int64_t k) {
    const int64_t n = e->n, first = k + 1, count = n - first;
    double *v = e->a + k * n + first;
    const double length = sqrt(dot(v, v, count)), tail = dot(v + 1, v + 1, count - 1);
    e->diagonal[k] = e->a[k * n + k];
    e->factor[k] = 0;
    e->off[k] = v[0];
    if (tail == 0) return;
    const double image = v[0] > 0 ? -length : length;
    e->off[k] = image;
    v[0] -= image;
    e->factor[k] = 2 / (v[0] * v[0] + tail);
}

/* Applies reflection k to the rest of the matrix from both sides. */
static void reflect_rest(eigen *e, int64_t k) {
    const int64_t n = e->n, first = k + 1, count = n - first;
    const double *v = e->a + k * n + first, beta = e->factor[k];
    double *w = e->work;
    for (int64_t i = 0; i < count; ++i) w[i] = beta * dot(e->a + (first + i) * n + first, v, count);
    const double half = beta / 2 * dot(w, v, count);
    for (int64_t i = 0; i < count; ++i) w[i] -= half * v[i];
    for (int64_t i = 0; i < count; ++i) {
        double *row = e->a + (first + i) * n + first;
        for (int64_t j = 0; j < count; ++j) row[j] -= v[i] * w[j] + w[i] * v[j];
    }
}

static void make_tridiagonal(eigen *e) {
    const int64_t n = e->n;
    for (int64_t k = 0; k < n - 2; ++k) {
        make_reflection(e, k);
        if (e->factor[k] != 0) reflect_rest(e, k);
        if (k % 64 == 0) tell(e, TRIDIAGONAL * (double)k / (double)n);
    }
    for (int64_t k = n < 2 ? 0 : n - 2; k < n; ++k) {
        e->diagonal[k] = e->a[k * n + k];
        e->off[k] = k + 1 < n ? e->a[k * n + k + 1] : 0;
    }
}

/* Multiplies the reflections; row i of `z` becomes column i of the product. */
static void multiply_reflections(eigen *e) {
    const int64_t n = e->n;
    memset(e->z, 0, (size_t)(n * n) * sizeof *e->z);
    for (int64_t i = 0; i < n; ++i) e->z[i * n + i] = 1;
    for (int64_t k = n - 3; k >= 0; --k) {
        const double *v = e->a + k * n + k + 1;
        if (e->factor[k] == 0) continue;
        for (int64_t i = k + 1; i < n; ++i) {
            double *row = e->z + i * n + k + 1;
            const double scale = e->factor[k] * dot(row, v, n - k - 1);
            for (int64_t j = 0; j < n - k - 1; ++j) row[j] -= scale * v[j];
        }
    }
}

/* Rotates rows i and i + 1. */
static void rotate_rows(eigen *e, int64_t i, double s, double c) {
    double *low = e->z + i * e->n, *high = low + e->n;
    for (int64_t k = 0; k < e->n; ++k) {
        const double before = high[k];
        high[k] = s * low[k] + c * before;
        low[k] = c * low[k] - s * before;
    }
}

/* One implicit QL step on the block of elements l to m. */
static void step_ql(eigen *e, int64_t l, int64_t m) {
    double *d = e->diagonal, *off = e->off;
    const double start = (d[l + 1] - d[l]) / (2 * off[l]);
    double g = d[m] - d[l] + off[l] / (start + copysign(hypot(start, 1), start)), s = 1, c = 1, p = 0;
    for (int64_t i = m - 1; i >= l; --i) {
        const double f = s * off[i], b = c * off[i], r = hypot(f, g);
        off[i + 1] = r;
        if (r == 0) {
            d[i + 1] -= p;
            off[m] = 0;
            return;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1] - p;
        const double t = (d[i] - g) * s + 2 * c * b;
        p = s * t;
        d[i + 1] = g + p;
        g = c * t - b;
        rotate_rows(e, i, s, c);
    }
    d[l] -= p;
    off[l] = g;
    off[m] = 0;
}

/* Makes the tridiagonal matrix diagonal. */
static void make_diagonal(eigen *e) {
    enum { MOST_STEPS = 60 };
    const double *d = e->diagonal;
    for (int64_t l = 0; l < e->n; ++l) {
        for (int step = 0; step < MOST_STEPS; ++step) {
            int64_t m = l;
            while (m < e->n - 1 && fabs(e->off[m]) > 2.3e-16 * (fabs(d[m]) + fabs(d[m + 1]))) ++m;
            if (m == l) break;
            step_ql(e, l, m);
        }
        if (l % 16 == 0) tell(e, TRIDIAGONAL + (DIAGONAL - TRIDIAGONAL) * (double)l / (double)e->n);
    }
}

/* Writes the sum of f(eigenvalue) * v v^T, with f(x) = 1 / sqrt(|x| + epsilon). */
static void write_root(eigen *e, double epsilon, float *out) {
    const int64_t n = e->n;
    for (int64_t k = 0; k < n; ++k) e->diagonal[k] = 1 / sqrt(fabs(e->diagonal[k]) + epsilon);
    for (int64_t i = 0; i < n; ++i) {
        memset(e->work, 0, (size_t)n * sizeof *e->work);
        for (int64_t k = 0; k < n; ++k) {
            const double *vector = e->z + k * n, scale = e->diagonal[k] * vector[i];
            for (int64_t j = 0; j <= i; ++j) e->work[j] += scale * vector[j];
        }
        for (int64_t j = 0; j <= i; ++j) out[i * n + j] = out[j * n + i] = (float)e->work[j];
        if (i % 64 == 0) tell(e, DIAGONAL + (1 - DIAGONAL) * (double)i / (double)n);
    }
}

leat_status leati_whitening_compute(double *matrix, int64_t n, double epsilon, float *out,
                                    const leati_share_report *report, leat_error *err) {
    const size_t count = (size_t)n * (size_t)n + 4 * (size_t)n;
    double *memory = leati_realloc(NULL, count, sizeof *memory);
    if (!memory) return leati_fail_memory(err, count * sizeof *memory, "the matrix of zca_whitening");
    eigen e = {.n = n, .a = matrix, .z = memory, .report = report};
    e.diagonal = memory + (size_t)n * (size_t)n;
    e.off = e.diagonal + n;
    e.factor = e.off + n;
    e.work = e.factor + n;
    make_tridiagonal(&e);
    multiply_reflections(&e);
    make_diagonal(&e);
    write_root(&e, epsilon, out);
    leati_free(memory);
    return LEAT_OK;
}
