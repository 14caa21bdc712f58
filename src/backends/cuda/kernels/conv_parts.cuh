/* SPDX-License-Identifier: Apache-2.0 */
/* What follows the product of a convolution: bias, normalisation, addend, function. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_CONV_PARTS_CUH
#define LEATI_BACKENDS_CUDA_KERNELS_CONV_PARTS_CUH

#include "backends/cuda/kernels/common.cuh"
#include "backends/cuda/kernels/conv.h"
#include "backends/cuda/kernels/window.cuh"

#ifdef LEATI_CUDA_SIMULATED
#define LEATI_OUT_OF_LINE
#else
#define LEATI_OUT_OF_LINE __noinline__
#endif

static __device__ __forceinline__ float leati_conv_sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}

static __device__ __forceinline__ float leati_conv_softplus(float x) {
    return (x > 0 ? x : 0.0f) + log1pf(expf(-fabsf(x)));
}

static __device__ __forceinline__ float leati_conv_clip(float x, float low, float high) {
    float below = x < high || x != x ? x : high;
    return below > low || x != x ? below : low;
}

/* All functions but RELU. */
static __device__ LEATI_OUT_OF_LINE float leati_conv_function(int function, float a, float b, float x) {
    switch (function) {
    case LEATI_CUDA_CONV_ELU: return x > 0 ? x : a * expm1f(x);
    case LEATI_CUDA_CONV_SELU: return 1.0507009873554805f * (x > 0 ? x : 1.6732632423543772f * expm1f(x));
    case LEATI_CUDA_CONV_SOFTPLUS: return leati_conv_softplus(x);
    case LEATI_CUDA_CONV_SOFTSIGN: return x / (1.0f + fabsf(x));
    case LEATI_CUDA_CONV_TANH: return tanhf(x);
    case LEATI_CUDA_CONV_SIGMOID: return leati_conv_sigmoid(x);
    case LEATI_CUDA_CONV_HARD_SIGMOID: return leati_conv_clip(a * x + b, 0.0f, 1.0f);
    case LEATI_CUDA_CONV_EXP: return expf(x);
    case LEATI_CUDA_CONV_LOG: return logf(x);
    case LEATI_CUDA_CONV_SQRT: return sqrtf(x);
    case LEATI_CUDA_CONV_SQUARE: return x * x;
    case LEATI_CUDA_CONV_ABS: return fabsf(x);
    case LEATI_CUDA_CONV_LINEAR: return a * x + b;
    case LEATI_CUDA_CONV_CLIP: return leati_conv_clip(x, a, b);
    case LEATI_CUDA_CONV_POW: return powf(x, a);
    case LEATI_CUDA_CONV_GELU: return 0.5f * x * erfcf(-x * 0.70710678f);
    case LEATI_CUDA_CONV_SILU: return x * leati_conv_sigmoid(x);
    case LEATI_CUDA_CONV_MISH: return x * tanhf(leati_conv_softplus(x));
    case LEATI_CUDA_CONV_HARD_SWISH: return x * leati_conv_clip(x / 6.0f + 0.5f, 0.0f, 1.0f);
    default: return x;
    }
}

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
    if (post.function == LEATI_CUDA_CONV_RELU)
        x = x >= post.function_c ? (x < post.function_b ? x : post.function_b)
                                 : post.function_a * (x - post.function_c);
    else if (post.function >= 0)
        x = leati_conv_function(post.function, post.function_a, post.function_b, x);
    return x;
}

#endif
