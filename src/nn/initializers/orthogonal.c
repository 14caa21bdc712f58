/* SPDX-License-Identifier: Apache-2.0 */
/* Orthogonal: a random matrix with orthonormal rows or columns (Saxe et al. 2013, arXiv:1312.6120), from the QR
 * decomposition of a normal matrix by Householder reflections in double precision.  The signs are those of R's
 * diagonal, so that every orthogonal matrix is equally likely (Mezzadri 2007, arXiv:math-ph/0609050). */
#include "nn/initializers/types.h"

#include <math.h>
#include <string.h>

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

/* Columns that are reflected together, in a copy whose rows lie one after the other: a copy of thousands of rows stays
 * in the L2 cache. */
enum { BLOCK = 16, PAIRS = BLOCK / 2 };
typedef double pair __attribute__((vector_size(16), aligned(8), may_alias));

/* Applies I - 2 v v' / (v' v) to the columns of a block from column `first` on, rows `from` on; v has length 1. */
static void reflect(double *block, int64_t n, int64_t first, int64_t from, const double *v) {
    pair twice[PAIRS] = {{0}}, *rows = (pair *)block;
    for (int64_t i = from; i < n; ++i)
        for (int j = 0; j < PAIRS; ++j) twice[j] += v[i] * rows[i * PAIRS + j];
    for (int j = 0; j < BLOCK; ++j) twice[j / 2][j % 2] = j < first ? 0.0 : 2.0 * twice[j / 2][j % 2];
    for (int64_t i = from; i < n; ++i)
        for (int j = 0; j < PAIRS; ++j) rows[i * PAIRS + j] -= twice[j] * v[i];
}

/* Computes the unit vector v of the reflection that clears a column of a block below row k; v is zero if there is
 * nothing to clear. */
static void householder(const double *column, int64_t n, int64_t k, double *v) {
    double norm = 0.0;
    for (int64_t i = k; i < n; ++i) {
        v[i] = column[i * BLOCK];
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

/* Replaces a (n, m), n >= m, by orthonormal columns; v (m, n), signs (m) and block (n, BLOCK) are scratch. */
static void orthogonalize(double *a, double *v, double *signs, double *block, int64_t n, int64_t m) {
    for (int64_t first = 0; first < m; first += BLOCK) {
        const int64_t count = m - first < BLOCK ? m - first : BLOCK;
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < BLOCK; ++j) block[i * BLOCK + j] = j < count ? a[i * m + first + j] : 0.0;
        for (int64_t k = 0; k < first; ++k) reflect(block, n, 0, k, v + k * n);
        for (int64_t j = 0; j < count; ++j) {
            const int64_t k = first + j;
            householder(block + j, n, k, v + k * n);
            reflect(block, n, j, k, v + k * n);
            signs[k] = block[k * BLOCK + j] < 0.0 ? -1.0 : 1.0;
        }
    }
    for (int64_t first = 0; first < m; first += BLOCK) {
        const int64_t count = m - first < BLOCK ? m - first : BLOCK;
        memset(block, 0, (size_t)(n * BLOCK) * sizeof *block);
        for (int64_t j = 0; j < count; ++j) block[(first + j) * BLOCK + j] = signs[first + j];
        for (int64_t k = first + count - 1; k >= 0; --k) reflect(block, n, 0, k, v + k * n);
        for (int64_t i = 0; i < n; ++i)
            for (int64_t j = 0; j < count; ++j) a[i * m + first + j] = block[i * BLOCK + j];
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
    size_t scratch = count + (size_t)(m + n * BLOCK);
    double *a = leati_calloc(count + scratch, sizeof(double));
    if (!a) return leati_fail_memory(err, (count + scratch) * sizeof(double), "an orthogonal matrix");
    double *v = a + count, *signs = v + count;
    for (size_t i = 0; i < count; ++i) {
        a[i] = leat_rng_normal(rng);
    }
    orthogonalize(a, v, signs, signs + m, n, m);
    double gain = ((const orthogonal_config *)config)->gain;
    for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
            out[i * columns + j] = (float)(gain * (rows >= columns ? a[i * m + j] : a[j * m + i]));
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
