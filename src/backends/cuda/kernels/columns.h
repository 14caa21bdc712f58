/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the rows of a matrix (rows, channels), for each channel: how the work is cut.  A block takes wide * V
 * neighbouring channels, where V is the width of its loads, and the rows of one part.  blockIdx.x counts the groups of
 * channels of all matrices, blockIdx.y the parts. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_COLUMNS_H
#define LEATI_BACKENDS_CUDA_KERNELS_COLUMNS_H

#include <stdint.h>

typedef struct leati_cuda_columns {
    int64_t rows, channels;
    int64_t part_rows; /* rows of a part; the last one may have fewer */
    int32_t parts;
    int32_t wide;   /* neighbouring threads of a row: a power of two up to 32 */
    int32_t blocks; /* groups of channels of a matrix */
    int32_t padding;
    double *partial; /* (matrices, sums, parts, channels) if there are several parts */
    unsigned *
        finished; /* (matrices * blocks): the number of parts that are finished; 0 before and after the launch */
} leati_cuda_columns;

#endif
