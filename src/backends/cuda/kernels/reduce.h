/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of the kernels in reduce.cu. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_REDUCE_H
#define LEATI_BACKENDS_CUDA_KERNELS_REDUCE_H

#include "backends/cuda/kernels/columns.h"
#include "backends/cuda/kernels/tensor.h"

enum { LEATI_CUDA_REDUCE_AXES = 8 };

/* Columns: dst (matrices, channels) from src (matrices, rows, channels). */
typedef struct leati_cuda_reduce_columns {
    leati_cuda_columns columns;
    leati_cuda_tensor src, dst;
    double divisor;
} leati_cuda_reduce_columns;

/* Rows: dst (rows) from src (rows, length).  A row is cut into parts of part_length elements, and blockIdx.y is the
 * part. */
typedef struct leati_cuda_reduce_rows {
    int64_t rows, length, part_length;
    int64_t parts;
    leati_cuda_tensor src, dst;
    double divisor;
    double *partial;    /* (rows, parts), if there are several parts */
    unsigned *finished; /* (rows): the number of parts that are finished; 0 before and after the launch */
} leati_cuda_reduce_rows;

/* Any axes: element o of dst is computed from the elements of src at the offset of o in the kept axes, plus all offsets
 * in the reduced axes.  The outermost axis comes first; absent axes have the size 1. */
typedef struct leati_cuda_reduce_axes {
    int64_t kept, reduced; /* products of the sizes */
    int64_t kept_size[LEATI_CUDA_REDUCE_AXES], kept_stride[LEATI_CUDA_REDUCE_AXES];
    int64_t reduced_size[LEATI_CUDA_REDUCE_AXES], reduced_stride[LEATI_CUDA_REDUCE_AXES];
    leati_cuda_tensor src, dst;
    double divisor;
} leati_cuda_reduce_axes;

#endif
