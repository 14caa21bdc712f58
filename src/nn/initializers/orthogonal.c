/* SPDX-License-Identifier: Apache-2.0 */
/* Orthogonal: a random matrix with orthonormal rows or columns (Saxe et al. 2013, arXiv:1312.6120), from the QR
 * decomposition of a normal matrix by Householder reflections in double precision.  The signs are those of R's
 * diagonal, so that every orthogonal matrix is equally likely (Mezzadri 2007, arXiv:math-ph/0609050). */
#include "nn/initializers/types.h"

#include <math.h>

#include "base/error.h"
#include "base/memory.h"

typedef struct orthogonal_config {
    double gain;
    int64_t seed;
} orthogonal_config;

static const leati_field fields[] = {
    {.key = "gain", .kind = LEATI_FIELD_FLOAT, .offset = offsetof(orthogonal_config, gain), .preset = "1.0"},
    {.key = "seed",
     .kind = LEATI_FIELD_OPTIONAL_INT,
     .offset = offsetof(orthogonal_config, seed),
     .preset = "null"},
    {.key = NULL},
};

/* Applies I - 2 v v' / (v' v) to column j of a (n, m), from row `from` on; v has length 1. */
static void reflect(double *a, int64_t n, int64_t m, int64_t j, int64_t from, const double *v) {
    double dot = 0.0;
    for (int64_t i = from; i < n; ++i) {
        dot += v[i] * a[i * m + j];
    }
    for (int64_t i = from; i < n; ++i) {
        a[i * m + j] -= 2.0 * dot * v[i];
    }
}

/* Computes the unit vector v of the reflection that clears column k below the diagonal; v is zero if there is nothing
 * to clear. */
static void householder(const double *a, int64_t n, int64_t m, int64_t k, double *v) {
    double norm = 0.0;
    for (int64_t i = k; i < n; ++i) {
        v[i] = a[i * m + k];
        norm += v[i] * v[i];
    }
    v[k] += v[k] >= 0.0 ? sqrt(norm) : -sqrt(norm);
    norm = 0.0;
    for (int64_t i = k; i < n; ++i) {
        norm += v[i] * v[i];
    }
    for (int64_t i = k; norm > 0.0 && i < n; ++i) {
        v[i] /= sqrt(norm);
    }
}

/* Replaces a (n, m), n >= m, by R and writes orthonormal columns to q (n, m); v (m, n) is scratch. */
static void decompose(double *a, double *q, double *v, int64_t n, int64_t m) {
    for (int64_t k = 0; k < m; ++k) {
        householder(a, n, m, k, v + k * n);
        for (int64_t j = k; j < m; ++j) {
            reflect(a, n, m, j, k, v + k * n);
        }
    }
    for (int64_t j = 0; j < m; ++j) {
        q[j * m + j] = a[j * m + j] < 0.0 ? -1.0 : 1.0;
        for (int64_t k = m - 1; k >= 0; --k) {
            reflect(q, n, m, j, k, v + k * n);
        }
    }
}

static leat_status draw(const void *config, int rank, const int64_t *dims, leat_rng *rng, float *out,
                        leat_error *err) {
    if (rank < 2) {
        return leati_fail(err, LEAT_ESHAPE, "initializer 'Orthogonal': expected rank >= 2, received rank %d",
                          rank);
    }
    int64_t rows = leati_shape_elements(rank - 1, dims), columns = dims[rank - 1];
    if (rows == 0 || columns == 0) return LEAT_OK;
    int64_t n = rows > columns ? rows : columns, m = rows > columns ? columns : rows;
    size_t count = (size_t)(n * m);
    double *a = leati_calloc(count, 3 * sizeof(double));
    if (!a) return leati_fail_memory(err, count * 3 * sizeof(double), "an orthogonal matrix");
    double *q = a + count, *v = q + count;
    for (size_t i = 0; i < count; ++i) {
        a[i] = leat_rng_normal(rng);
    }
    decompose(a, q, v, n, m);
    double gain = ((const orthogonal_config *)config)->gain;
    for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
            out[i * columns + j] = (float)(gain * (rows >= columns ? q[i * m + j] : q[j * m + i]));
        }
    }
    leati_free(a);
    return LEAT_OK;
}

const leati_initializer_type leati_initializer_orthogonal = {.class_name = "Orthogonal",
                                                             .names =
                                                                 (const char *const[]){"Orthogonal",
                                                                                       "orthogonal", NULL},
                                                             .config_bytes = sizeof(orthogonal_config),
                                                             .fields = fields,
                                                             .seed_offset = offsetof(orthogonal_config, seed),
                                                             .draw = draw};
