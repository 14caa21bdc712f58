/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of the kernels in matmul.cu.  Room: backends/cuda. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_MATMUL_H
#define LEATI_BACKENDS_CUDA_KERNELS_MATMUL_H

#include <stdint.h>

#include "backends/cuda/kernels/functions.h"

/* A block of the kernels leati_cuda_matmul_tile_16, _32 and _64 computes 16 x 16 to 64 x 64 elements of the result, and
 * needs this much shared memory. */
enum {
    LEATI_CUDA_MATMUL_THREADS = 256,
    LEATI_CUDA_MATMUL_THREADS_16 = 512,
    LEATI_CUDA_MATMUL_SHARED_16 = 2 * 16 * (256 + 4) * 4,
    LEATI_CUDA_MATMUL_SHARED_32 = 2 * 2 * 32 * (64 + 4) * 4,
    LEATI_CUDA_MATMUL_SHARED_64 = 4 * 64 * (64 + 8) * 4,
    LEATI_CUDA_MATMUL_MOST_FEW = 8
};

/* What happens to an element of the result after the sum: + bias, + addend, function or times its slope, store. */
typedef struct leati_cuda_matmul_end {
    const void *bias, *addend; /* NULL: none */
    const void
        *slope_of; /* where the slope of the function is taken, of the result's shape; NULL: not the slope */
    void *out;
    int32_t bias_bf16, addend_bf16, slope_bf16, out_bf16;
    int32_t has_function;   /* the function of the sum is taken */
    int32_t slope_from_dst; /* slope_of is the function's value */
    leati_cuda_function function;
    int32_t columns; /* of the result: its row-major leading dimension */
} leati_cuda_matmul_end;

/* out (count, m, n) = a (count, m, k) b (count, k, n).  The inner axis may be cut into `splits` parts of `split_k`
 * elements, a multiple of 4.  Then the last block that ends adds the parts in their order. */
typedef struct leati_cuda_matmul_tile {
    const void *a, *b;
    int32_t a_transposed, b_transposed;
    int32_t a_vectorized, b_vectorized; /* 4 elements may be read at once */
    int32_t m, n, k;
    int32_t tiles_m, tiles_n;
    int32_t splits, split_k;
    float *parts;       /* (count * tiles, splits, tile, tile) */
    unsigned *finished; /* (count * tiles) zeros; the kernel leaves zeros behind */
    /* Not NULL: the sums of the rows of b, n elements, are stored there: the product with a row of ones, which follows
     * the rows of a.  Then a is transposed, and count is 1. */
    void *row_sums;
    int32_t row_sums_bf16;
    leati_cuda_matmul_end end;
} leati_cuda_matmul_tile;

/* The products of a wide matrix with a few vectors: result[r, f] = sum over k of wide[r, k] few[f, k].  The rows r of
 * the wide matrix are the rows or the columns of the result. */
typedef struct leati_cuda_matmul_few {
    const void *wide; /* (count, rows, k), or (count, k, rows) for the kernels _columns */
    const void *few;
    int32_t few_bf16, few_count;
    int32_t few_vectorized;    /* 4 elements of a vector may be read at once */
    int32_t few_vector, few_k; /* strides in elements: from vector to vector, and along k */
    int32_t rows, k;
    int32_t blocks;        /* for one of the `count` products */
    int32_t vectorized;    /* 4 elements of `wide` may be read at once */
    int32_t lanes;         /* kernels _columns: threads beside each other, with 4 columns each; 4 or 8 */
    int32_t rows_are_rows; /* 1: row r is a row of the result, 0: a column */
    leati_cuda_matmul_end end;
} leati_cuda_matmul_few;

/* Rounds f32 to bf16; up to three tensors. */
enum { LEATI_CUDA_MATMUL_NARROWED = 3 };
typedef struct leati_cuda_matmul_narrow {
    const float *from[LEATI_CUDA_MATMUL_NARROWED];
    void *to[LEATI_CUDA_MATMUL_NARROWED];
    int64_t count[LEATI_CUDA_MATMUL_NARROWED];
} leati_cuda_matmul_narrow;

#endif
