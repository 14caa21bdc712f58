/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the matrix products that exist once per instruction set (product_tmpl.h, few_rows_tmpl.h,
 * streamed_tmpl.h, matvec_tmpl.h). */
#ifndef LEATI_BACKENDS_NATIVE_MATMUL_JOBS_H
#define LEATI_BACKENDS_NATIVE_MATMUL_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/op_semantics/op.h"

/* The elements of a matrix from which several threads read a part each, however few rows are multiplied by it. */
#define LEATI_SHARED_WEIGHTS 65536
/* bytes of a matrix at most that are packed as a whole */
#define LEATI_PACKED_BYTES 33554432

/* c (rows, columns) = f(a b + addend + bias).  Element (i, k) of a is a[i * a_row + k * a_depth].  b is packed in
 * panels of isa->panel columns, which lie b_panel floats apart; the last panel is padded with zeros.  addend (NULL:
 * 0) has rows addend_row apart and may be c.
 *
 * a may consist of `parts` parts of `depth` columns, which lie a_part floats apart; the rows of b continue from part to
 * part. */
typedef struct leati_product {
    const float *a, *b, *addend, *bias;
    float *c;
    int64_t rows, columns, depth, a_row, a_depth, b_panel, c_row, addend_row;
    const leati_eltwise *f; /* may be NULL */
    int64_t parts, a_part;  /* parts: 0 stands for 1 */
    bool streams;           /* b is not in the L2 cache, and what lies behind it is used next */
} leati_product;

/* dst (n) = f(a (k) b + bias).  b is (k, n) row-major, or (n, k) where transposed; bias and f may be NULL. */
typedef struct leati_matvec_job {
    const float *a, *b, *bias;
    float *dst;
    int64_t k, n;
    bool transposed;
    const leati_eltwise *f;
} leati_matvec_job;

/* c (m, n) = f(a (m, k) b (k, n) + bias + addend), for at most LEATI_FEW_ROWS rows. */
typedef struct leati_rows_job {
    const float *a, *b, *bias, *addend; /* bias (n) and addend (m, n) may be NULL */
    float *c;
    int64_t m, n, k;
    bool transposed;        /* b is (n, k) */
    const leati_eltwise *f; /* may be NULL */
} leati_rows_job;
#define LEATI_FEW_ROWS 12

#endif
