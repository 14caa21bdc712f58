/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts sums over the rows of matrices into parts (kernels/columns.h), and describes tensors to kernels. */
#ifndef LEATI_BACKENDS_CUDA_OPS_COLUMNS_H
#define LEATI_BACKENDS_CUDA_OPS_COLUMNS_H

#include "backends/cuda/cuda.h"
#include "backends/cuda/kernels/columns.h"
#include "backends/cuda/kernels/tensor.h"

/* `count` matrices (rows, channels) that follow each other, of which one thread reads `vector` channels at once. */
typedef struct leati_column_sums {
    int64_t count, rows, channels;
    int32_t vector;
    int32_t sums; /* numbers that are added up for each channel */
    bool again;   /* the kernel reads the rows once more if there is one part: it wants few rows per block */
    int32_t most_threads; /* in a block */
} leati_column_sums;

typedef struct leati_column_plan {
    leati_cuda_columns columns; /* without addresses */
    leati_cuda_grid grid;
    size_t partial_bytes; /* of columns.partial */
    size_t counters;      /* numbers in columns.finished; 0: there is one part */
} leati_column_plan;

leati_column_plan leati_plan_columns(const leati_cuda *cuda, const leati_column_sums *sums);

/* Returns a plan for a kernel that computes each element of a matrix (rows, channels) for itself, with at most `blocks`
 * blocks of 256 threads on each multiprocessor. */
leati_column_plan leati_plan_elements(const leati_cuda *cuda, int64_t rows, int64_t channels, int32_t vector,
                                      int32_t blocks);

/* Describes an argument to a kernel; `memory` NULL: absent. */
leati_cuda_tensor leati_cuda_tensor_of(void *memory, const leati_desc *desc);

static inline bool leati_is_aligned(const void *memory) {
    return (uintptr_t)memory % 16 == 0;
}

#endif
