/* SPDX-License-Identifier: Apache-2.0 */
/* What the two ways to compute a MATMUL share: own kernels (matmul.c) and cuBLASLt (matmul_blas.c).
 * Room: backends/cuda. */
#ifndef LEATI_BACKENDS_CUDA_OPS_MATMUL_H
#define LEATI_BACKENDS_CUDA_OPS_MATMUL_H

#include "backends/cuda/cuda.h"
#include "backends/cuda/kernels/matmul.h"

/* A MATMUL task: dst (count, m, n) = a (count, m, k) b (count, k, n), and what follows. */
typedef struct leati_cuda_product {
    int64_t count, m, n, k;
    bool transpose_a, transpose_b;
    leat_dtype a, b, out;
    bool has_bias, has_addend, has_function;
    leat_dtype bias, addend;
    leati_eltwise function;
    int addend_arg, out_arg; /* in args */
    /* Of groups (matmul_group.c): the result is multiplied by the function's slope; the sums of the rows of b. */
    bool has_slope, has_row_sums;
    leat_dtype slope, row_sums;
    int slope_arg, row_sums_arg;
} leati_cuda_product;

leati_cuda_product leati_cuda_product_of(const leati_task *task);

/* Fills *kernel with a product by cuBLASLt.  algorithm: its number in the order in which cuBLASLt offers them, below
 * LEATI_CUDA_MATMUL_ALGORITHMS.  If cuBLASLt has no such algorithm, kernel->run stays NULL and `why` says what is
 * missing. */
enum {
    LEATI_CUDA_MATMUL_ALGORITHMS = 8,
    LEATI_CUDA_MATMUL_CANDIDATES = LEATI_CUDA_MATMUL_ALGORITHMS + 1,
    LEATI_CUDA_MATMUL_OWN = 1 /* the candidate that is an own kernel */
};
leat_status leati_cuda_matmul_blas(leati_cuda *cuda, const leati_cuda_product *product, int algorithm,
                                   leati_kernel *kernel, char *why, leat_error *err);

/* Fills *kernel with one of the ways to compute a large product: 0: cuBLASLt's first algorithm, 1: an own kernel, from
 * 2 on: cuBLASLt's other algorithms.  kernel->run stays NULL if there is no such way. */
leat_status leati_cuda_matmul_candidate(leati_cuda *cuda, const leati_cuda_product *product, int candidate,
                                        leati_kernel *kernel, char *why, leat_error *err);

/* Returns true if the speed of own kernels is good without doubt. */
bool leati_cuda_matmul_is_small(const leati_cuda *cuda, const leati_cuda_product *product);
/* Fills *kernel with an own kernel; only those of tiles compute row_sums. */
leat_status leati_cuda_matmul_own(leati_cuda *cuda, const leati_cuda_product *product, leati_kernel *kernel,
                                  leat_error *err);

/* Finds the fastest candidate by measuring, or as it was measured before. */
leat_status leati_cuda_matmul_choose(leati_cuda *cuda, const leati_cuda_product *product, int *candidate,
                                     char *why, leat_error *err);

#endif
