/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of the kernels in moves.cu.  A unit is what one thread moves: an element, or several neighbours of up
 * to 16 bytes.  All offsets, strides and lengths count units. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_MOVES_H
#define LEATI_BACKENDS_CUDA_KERNELS_MOVES_H

#include <stdint.h>

#define LEATI_CUDA_MOVE_RANK    8
#define LEATI_CUDA_CONCAT_MOST  32
#define LEATI_CUDA_TILE         32 /* rows and columns of a tile of a transposition */
#define LEATI_CUDA_TILE_THREADS 256

/* Divides numbers below 2^31: n / d == (umulhi(n, multiplier) + n) >> shift. */
typedef struct leati_cuda_divisor {
    uint32_t divisor, multiplier, shift;
} leati_cuda_divisor;

/* dst[i] = src[first + sum of index[d] * stride[d]] for all positions (index) of dst in row-major order.  With
 * `padded`, index[d] - before[d] takes the place of index[d], and positions at which it is outside [0, size[d])
 * get `value`. */
typedef struct leati_cuda_move {
    const void *src;
    void *dst;
    int64_t count, first;
    int32_t rank, padded;
    int64_t shape[LEATI_CUDA_MOVE_RANK], stride[LEATI_CUDA_MOVE_RANK];
    int64_t before[LEATI_CUDA_MOVE_RANK], size[LEATI_CUDA_MOVE_RANK];
    leati_cuda_divisor divisor[LEATI_CUDA_MOVE_RANK]; /* valid if count is below 2^31 */
    uint32_t value[4];                                /* repeated to 16 bytes */
} leati_cuda_move;

/* dst[row * dst_stride + column] = src[column * src_stride + row], for all positions of `rank` outer axes. */
typedef struct leati_cuda_tiles {
    const void *src;
    void *dst;
    int64_t rows, columns, src_stride, dst_stride;
    int64_t row_tiles, column_tiles, tiles; /* tiles: of all planes, below 2^31 */
    int32_t rank, unused;
    int64_t shape[LEATI_CUDA_MOVE_RANK], src_outer[LEATI_CUDA_MOVE_RANK], dst_outer[LEATI_CUDA_MOVE_RANK];
} leati_cuda_tiles;

/* dst[o * stride + offset[k] + i] = src[k][o * length[k] + i] for each o in [0, outer). */
typedef struct leati_cuda_joined {
    const void *src[LEATI_CUDA_CONCAT_MOST];
    void *dst;
    int64_t outer, stride;
    int64_t length[LEATI_CUDA_CONCAT_MOST], offset[LEATI_CUDA_CONCAT_MOST];
    leati_cuda_divisor divisor[LEATI_CUDA_CONCAT_MOST]; /* of length; valid if outer * length is below 2^31 */
} leati_cuda_joined;

#endif
