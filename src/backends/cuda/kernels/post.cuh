/* SPDX-License-Identifier: Apache-2.0 */
/* The element-wise functions (engine/op_semantics/function.c) for kernels into which one of them is fused. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_POST_CUH
#define LEATI_BACKENDS_CUDA_KERNELS_POST_CUH

#include "backends/cuda/kernels/common.cuh"
#include "backends/cuda/kernels/post.h"

static __device__ __forceinline__ float leati_post_sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}
static __device__ __forceinline__ float leati_post_softplus(float x) {
    return (x > 0 ? x : 0) + log1pf(expf(-fabsf(x)));
}
static __device__ __forceinline__ float leati_post_clip(float x, float low, float high) {
    float below = x < high || x != x ? x : high;
    return below > low || x != x ? below : low;
}

static __device__ float leati_post_other(const leati_cuda_post &f, float x) {
    switch (f.function) {
    case LEATI_CUDA_POST_ELU: return x > 0 ? x : f.a * expm1f(x);
    case LEATI_CUDA_POST_SELU: return 1.0507009873554805f * (x > 0 ? x : 1.6732632423543772f * expm1f(x));
    case LEATI_CUDA_POST_SOFTPLUS: return leati_post_softplus(x);
    case LEATI_CUDA_POST_SOFTSIGN: return x / (1.0f + fabsf(x));
    case LEATI_CUDA_POST_TANH: return tanhf(x);
    case LEATI_CUDA_POST_SIGMOID: return leati_post_sigmoid(x);
    case LEATI_CUDA_POST_HARD_SIGMOID: return leati_post_clip(f.a * x + f.b, 0, 1);
    case LEATI_CUDA_POST_EXP: return expf(x);
    case LEATI_CUDA_POST_LOG: return logf(x);
    case LEATI_CUDA_POST_SQRT: return sqrtf(x);
    case LEATI_CUDA_POST_SQUARE: return x * x;
    case LEATI_CUDA_POST_ABS: return fabsf(x);
    case LEATI_CUDA_POST_LINEAR: return f.a * x + f.b;
    case LEATI_CUDA_POST_CLIP: return leati_post_clip(x, f.a, f.b);
    case LEATI_CUDA_POST_POW: return powf(x, f.a);
    case LEATI_CUDA_POST_GELU: return 0.5f * x * erfcf(-x * 0.70710678118654752f);
    case LEATI_CUDA_POST_SILU: return x * leati_post_sigmoid(x);
    case LEATI_CUDA_POST_MISH: return x * tanhf(leati_post_softplus(x));
    case LEATI_CUDA_POST_HARD_SWISH: return x * leati_post_clip(x / 6.0f + 0.5f, 0, 1);
    default: return NAN;
    }
}

static __device__ __forceinline__ float leati_post_at(const leati_cuda_post &f, float x) {
    if (f.function == LEATI_CUDA_POST_NONE) return x;
    if (f.function == LEATI_CUDA_POST_RELU) return x >= f.c ? (x < f.b ? x : f.b) : f.a * (x - f.c);
    return leati_post_other(f, x);
}

#endif
