/* SPDX-License-Identifier: Apache-2.0 */
/* What follows the product of a convolution: bias, normalisation, addend, function. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_CONV_PARTS_CUH
#define LEATI_BACKENDS_CUDA_KERNELS_CONV_PARTS_CUH

#include "backends/cuda/kernels/common.cuh"
#include "backends/cuda/kernels/conv.h"
#include "backends/cuda/kernels/functions.cuh"
#include "backends/cuda/kernels/window.cuh"

/* Applies what follows the product to one element: filter f, element i of dst. */
static __device__ __forceinline__ float leati_conv_finished(const leati_cuda_conv_post &post, float x,
                                                            int32_t f, int64_t i) {
    if (post.bias.data) x += leati_at(post.bias, f);
    if (post.mean.data) {
        float scale = 1.0f / sqrtf(leati_at(post.variance, f) + post.epsilon);
        if (post.gamma.data) scale *= leati_at(post.gamma, f);
        x = (x - leati_at(post.mean, f)) * scale;
        if (post.beta.data) x += leati_at(post.beta, f);
    }
    if (post.addend.data) x += leati_at(post.addend, i);
    if (post.has_function) x = leati_function_called(post.function, x);
    return x;
}

#endif
