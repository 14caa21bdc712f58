/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a product: bias, addend and function. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_MATMUL_END_CUH
#define LEATI_BACKENDS_CUDA_KERNELS_MATMUL_END_CUH

#include "backends/cuda/kernels/common.cuh"
#include "backends/cuda/kernels/functions.cuh"
#include "backends/cuda/kernels/matmul.h"

/* Loads element i of a tensor of either type. */
static __device__ __forceinline__ float end_load(const void *p, int64_t i, int bf16) {
    return bf16 ? leati_load(static_cast<const leati_bf16 *>(p) + i) : static_cast<const float *>(p)[i];
}

/* Stores the element in `row`, counted over all products, and `column`, whose sum is x. */
static __device__ __forceinline__ void end_element(const leati_cuda_matmul_end &e, int64_t row, int column,
                                                   float x) {
    const int64_t i = row * e.columns + column;
    if (e.bias) x += end_load(e.bias, column, e.bias_bf16);
    if (e.addend) x += end_load(e.addend, i, e.addend_bf16);
    if (e.has_function) x = leati_function_at(e.function, x);
    if (e.slope_of) {
        const float at = end_load(e.slope_of, i, e.slope_bf16);
        x *= e.slope_from_dst ? leati_slope_from_dst(e.function, at) : leati_slope_at(e.function, at);
    }
    if (e.out_bf16)
        leati_store(static_cast<leati_bf16 *>(e.out) + i, x);
    else
        static_cast<float *>(e.out)[i] = x;
}

#endif
