/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of the kernels in labels.cu. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_LABELS_H
#define LEATI_BACKENDS_CUDA_KERNELS_LABELS_H

#include <stdint.h>

/* How an index is read: the kinds of numbers, times 16, plus the bytes of one. */
typedef enum leati_cuda_number {
    LEATI_CUDA_SIGNED = 16,
    LEATI_CUDA_UNSIGNED = 32,
    LEATI_CUDA_TRUTH = 48, /* 1 if the byte is not 0 */
    LEATI_CUDA_REAL = 64,
    LEATI_CUDA_BFLOAT = 80
} leati_cuda_number;

/* `count` indices in [0, limit).  Of an index that is out of range, the fault has its place in the upper place_bits
 * bits; below them are the integer, clamped to the bits that are left, or the upper bits of the number as a double. */
typedef struct leati_cuda_indices {
    const void *data;
    uint64_t *fault;
    int64_t count, limit;
    int32_t number, place_bits;
} leati_cuda_indices;

/* dst (count, columns) = table[indices].  A thread moves `width` neighbours. */
typedef struct leati_cuda_gather_args {
    leati_cuda_indices indices;
    const void *table;
    void *dst;
    int64_t columns; /* in units of `width` elements */
} leati_cuda_gather_args;

#define LEATI_CUDA_GATHER_THREADS 512
#define LEATI_CUDA_GATHER_PLACE   13 /* bits of a place in a tile: the indices that a block sorts at a time */
#define LEATI_CUDA_GATHER_TILE    (1 << LEATI_CUDA_GATHER_PLACE)
#define LEATI_CUDA_GATHER_ROWS                                                                               \
    (1 << 18) /* most rows of a block, so that a row and a place are below 2^32 - 1 */

/* dst (rows, columns) = for each row, the sum of diff over its indices.  Block (x, y) computes block_rows rows and
 * lanes * width columns. */
typedef struct leati_cuda_scatter_args {
    leati_cuda_indices indices;
    const void *diff;
    float *dst;
    int64_t columns, block_rows;
    int32_t lanes; /* a power of 2, at most 32 */
    int32_t unused;
} leati_cuda_scatter_args;

/* dst (count, depth) */
typedef struct leati_cuda_one_hot_args {
    leati_cuda_indices indices;
    void *dst;
    int64_t depth;
} leati_cuda_one_hot_args;

/* src (outer, length, inner) -> dst (outer, inner) */
typedef struct leati_cuda_argmax_args {
    const void *src;
    int32_t *dst;
    int64_t outer, length, inner;
} leati_cuda_argmax_args;

/* src (count, classes), indices (count) -> dst (count) */
typedef struct leati_cuda_top_k_args {
    leati_cuda_indices indices;
    const void *src;
    void *dst;
    int64_t classes, k;
} leati_cuda_top_k_args;

#endif
