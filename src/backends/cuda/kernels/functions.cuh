/* SPDX-License-Identifier: Apache-2.0 */
/* The element-wise functions of one variable and their derivatives in kernels, with the formulas of
 * engine/op_semantics/function.c in float. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_FUNCTIONS_CUH
#define LEATI_BACKENDS_CUDA_KERNELS_FUNCTIONS_CUH

#include "backends/cuda/kernels/common.cuh"
#include "backends/cuda/kernels/functions.h"

#define LEATI_SELU_SCALE     1.0507009873554805f
#define LEATI_SELU_ALPHA     1.6732632423543772f
#define LEATI_SQRT_HALF      0.70710678118654752f
#define LEATI_SQRT_2_OVER_PI 0.79788456080286536f
#define LEATI_NORMAL_PEAK    0.39894228040143268f /* 1 / sqrt(2 pi) */
#define LEATI_SLOPE_OF_ERF   1.1283791670955126f  /* 2 / sqrt(pi) */

static __device__ __forceinline__ float leati_sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}

static __device__ __forceinline__ float leati_softplus(float x) {
    return (x > 0.0f ? x : 0.0f) + log1pf(expf(-fabsf(x)));
}

/* gelu_tanh(x) / x, and the derivative of gelu_tanh; gelu_tanh(x) is 0 where the share is 0. */
static __device__ __forceinline__ float leati_gelu_tanh_share(float x) {
    return leati_sigmoid(2.0f * LEATI_SQRT_2_OVER_PI * (x + 0.044715f * x * x * x));
}

static __device__ __forceinline__ float leati_gelu_tanh_slope(float x) {
    float share = leati_gelu_tanh_share(x);
    return share + 2.0f * x * share * (1.0f - share) * LEATI_SQRT_2_OVER_PI * (1.0f + 0.134145f * x * x);
}

static __device__ __forceinline__ float leati_clip(float x, float low, float high) {
    float below = x < high || x != x ? x : high;
    return below > low || x != x ? below : low;
}

/* Each function is a case that replaces x by its value, in a loop over COUNT numbers of a thread: the choice of the
 * function costs one branch for all of them. */
#define LEATI_EACH(COUNT, expression)                                                                        \
    _Pragma("unroll") for (int k = 0; k < (COUNT); ++k) {                                                    \
        float x = values[k];                                                                                 \
        values[k] = (expression);                                                                            \
    }                                                                                                        \
    return

/* Replaces each x by f(x). */
template <int COUNT>
static __device__ __forceinline__ void leati_functions_at(const leati_cuda_function &f, float *values) {
    const float a = f.a, b = f.b, c = f.c;
    switch (f.function) {
    case LEATI_CUDA_RELU: LEATI_EACH(COUNT, (x >= c ? (x < b ? x : b) : a * (x - c)) + 0.0f); /* +0 for -0 */
    case LEATI_CUDA_ELU: LEATI_EACH(COUNT, x > 0.0f ? x : a * expm1f(x));
    case LEATI_CUDA_SELU: LEATI_EACH(COUNT, LEATI_SELU_SCALE * (x > 0.0f ? x : LEATI_SELU_ALPHA * expm1f(x)));
    case LEATI_CUDA_SOFTPLUS: LEATI_EACH(COUNT, leati_softplus(x));
    case LEATI_CUDA_SOFTSIGN: LEATI_EACH(COUNT, x / (1.0f + fabsf(x)));
    case LEATI_CUDA_TANH: LEATI_EACH(COUNT, tanhf(x));
    case LEATI_CUDA_SIGMOID: LEATI_EACH(COUNT, leati_sigmoid(x));
    case LEATI_CUDA_HARD_SIGMOID: LEATI_EACH(COUNT, leati_clip(a * x + b, 0.0f, 1.0f));
    case LEATI_CUDA_EXP: LEATI_EACH(COUNT, expf(x));
    case LEATI_CUDA_LOG: LEATI_EACH(COUNT, logf(x));
    case LEATI_CUDA_SQRT: LEATI_EACH(COUNT, sqrtf(x));
    case LEATI_CUDA_SQUARE: LEATI_EACH(COUNT, x * x);
    case LEATI_CUDA_ABS: LEATI_EACH(COUNT, fabsf(x));
    case LEATI_CUDA_LINEAR: LEATI_EACH(COUNT, a * x + b);
    case LEATI_CUDA_CLIP: LEATI_EACH(COUNT, leati_clip(x, a, b));
    case LEATI_CUDA_POW: LEATI_EACH(COUNT, powf(x, a));
    case LEATI_CUDA_GELU: LEATI_EACH(COUNT, 0.5f * x * erfcf(-x * LEATI_SQRT_HALF));
    case LEATI_CUDA_SILU: LEATI_EACH(COUNT, x * leati_sigmoid(x));
    case LEATI_CUDA_MISH: LEATI_EACH(COUNT, x * tanhf(leati_softplus(x)));
    case LEATI_CUDA_HARD_SWISH: LEATI_EACH(COUNT, x * leati_clip(x / 6.0f + 0.5f, 0.0f, 1.0f));
    case LEATI_CUDA_SIN: LEATI_EACH(COUNT, sinf(x));
    case LEATI_CUDA_COS: LEATI_EACH(COUNT, cosf(x));
    case LEATI_CUDA_TAN: LEATI_EACH(COUNT, tanf(x));
    case LEATI_CUDA_ASIN: LEATI_EACH(COUNT, asinf(x));
    case LEATI_CUDA_ACOS: LEATI_EACH(COUNT, acosf(x));
    case LEATI_CUDA_ATAN: LEATI_EACH(COUNT, atanf(x));
    case LEATI_CUDA_SINH: LEATI_EACH(COUNT, sinhf(x));
    case LEATI_CUDA_COSH: LEATI_EACH(COUNT, coshf(x));
    case LEATI_CUDA_ASINH: LEATI_EACH(COUNT, asinhf(x));
    case LEATI_CUDA_ACOSH: LEATI_EACH(COUNT, acoshf(x));
    case LEATI_CUDA_ATANH: LEATI_EACH(COUNT, atanhf(x));
    case LEATI_CUDA_ERF: LEATI_EACH(COUNT, erff(x));
    case LEATI_CUDA_LOG1P: LEATI_EACH(COUNT, log1pf(x));
    case LEATI_CUDA_EXPM1: LEATI_EACH(COUNT, expm1f(x));
    case LEATI_CUDA_GELU_TANH: LEATI_EACH(COUNT, x * leati_gelu_tanh_share(x));
    default: LEATI_EACH(COUNT, x * NAN);
    }
}

static __device__ __forceinline__ float leati_mish_slope(float x) {
    float t = tanhf(leati_softplus(x));
    return t + x * leati_sigmoid(x) * (1.0f - t * t);
}

static __device__ __forceinline__ float leati_gelu_slope(float x) {
    return 0.5f * erfcf(-x * LEATI_SQRT_HALF) + x * LEATI_NORMAL_PEAK * expf(-0.5f * x * x);
}

static __device__ __forceinline__ float leati_hard_sigmoid_slope(float y, float a) {
    return y >= 0.0f && y <= 1.0f ? a : 0.0f;
}

/* Replaces each x by f'(x). */
template <int COUNT>
static __device__ __forceinline__ void leati_slopes_at(const leati_cuda_function &f, float *values) {
    const float a = f.a, b = f.b, c = f.c;
    switch (f.function) {
    case LEATI_CUDA_RELU: LEATI_EACH(COUNT, x > c ? (x < b ? 1.0f : 0.0f) : a);
    case LEATI_CUDA_ELU: LEATI_EACH(COUNT, x > 0.0f ? 1.0f : a * expf(x));
    case LEATI_CUDA_SELU:
        LEATI_EACH(COUNT, x > 0.0f ? LEATI_SELU_SCALE : LEATI_SELU_SCALE * LEATI_SELU_ALPHA * expf(x));
    case LEATI_CUDA_SOFTPLUS: LEATI_EACH(COUNT, leati_sigmoid(x));
    case LEATI_CUDA_SOFTSIGN: LEATI_EACH(COUNT, 1.0f / ((1.0f + fabsf(x)) * (1.0f + fabsf(x))));
    case LEATI_CUDA_TANH: LEATI_EACH(COUNT, 1.0f - tanhf(x) * tanhf(x));
    case LEATI_CUDA_SIGMOID: LEATI_EACH(COUNT, leati_sigmoid(x) * leati_sigmoid(-x));
    case LEATI_CUDA_HARD_SIGMOID: LEATI_EACH(COUNT, leati_hard_sigmoid_slope(a * x + b, a));
    case LEATI_CUDA_EXP: LEATI_EACH(COUNT, expf(x));
    case LEATI_CUDA_LOG: LEATI_EACH(COUNT, 1.0f / x);
    case LEATI_CUDA_SQRT: LEATI_EACH(COUNT, 0.5f / sqrtf(x));
    case LEATI_CUDA_SQUARE: LEATI_EACH(COUNT, 2.0f * x);
    case LEATI_CUDA_ABS: LEATI_EACH(COUNT, x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : 0.0f);
    case LEATI_CUDA_LINEAR: LEATI_EACH(COUNT, x == x ? a : a);
    case LEATI_CUDA_CLIP: LEATI_EACH(COUNT, x >= a && x <= b ? 1.0f : 0.0f);
    case LEATI_CUDA_POW: LEATI_EACH(COUNT, a * powf(x, a - 1.0f));
    case LEATI_CUDA_GELU: LEATI_EACH(COUNT, leati_gelu_slope(x));
    case LEATI_CUDA_SILU: LEATI_EACH(COUNT, leati_sigmoid(x) * (1.0f + x * leati_sigmoid(-x)));
    case LEATI_CUDA_MISH: LEATI_EACH(COUNT, leati_mish_slope(x));
    case LEATI_CUDA_HARD_SWISH: LEATI_EACH(COUNT, x <= -3.0f ? 0.0f : x < 3.0f ? x / 3.0f + 0.5f : 1.0f);
    case LEATI_CUDA_SIN: LEATI_EACH(COUNT, cosf(x));
    case LEATI_CUDA_COS: LEATI_EACH(COUNT, -sinf(x));
    case LEATI_CUDA_TAN: LEATI_EACH(COUNT, 1.0f / (cosf(x) * cosf(x)));
    case LEATI_CUDA_ASIN: LEATI_EACH(COUNT, 1.0f / sqrtf((1.0f - x) * (1.0f + x)));
    case LEATI_CUDA_ACOS: LEATI_EACH(COUNT, -1.0f / sqrtf((1.0f - x) * (1.0f + x)));
    case LEATI_CUDA_ATAN: LEATI_EACH(COUNT, 1.0f / (1.0f + x * x));
    case LEATI_CUDA_SINH: LEATI_EACH(COUNT, coshf(x));
    case LEATI_CUDA_COSH: LEATI_EACH(COUNT, sinhf(x));
    case LEATI_CUDA_ASINH: LEATI_EACH(COUNT, 1.0f / sqrtf(x * x + 1.0f));
    case LEATI_CUDA_ACOSH: LEATI_EACH(COUNT, 1.0f / sqrtf((x - 1.0f) * (x + 1.0f)));
    case LEATI_CUDA_ATANH: LEATI_EACH(COUNT, 1.0f / ((1.0f - x) * (1.0f + x)));
    case LEATI_CUDA_ERF: LEATI_EACH(COUNT, LEATI_SLOPE_OF_ERF * expf(-x * x));
    case LEATI_CUDA_LOG1P: LEATI_EACH(COUNT, 1.0f / (1.0f + x));
    case LEATI_CUDA_EXPM1: LEATI_EACH(COUNT, expf(x));
    case LEATI_CUDA_GELU_TANH: LEATI_EACH(COUNT, leati_gelu_tanh_slope(x));
    default: LEATI_EACH(COUNT, x * NAN);
    }
}

/* Replaces each y = f(x) by f'(x), for the functions of leati_slope_known_from_dst. */
template <int COUNT>
static __device__ __forceinline__ void leati_slopes_from_dst(const leati_cuda_function &f, float *values) {
    const float a = f.a, b = f.b;
    switch (f.function) {
    case LEATI_CUDA_RELU: LEATI_EACH(COUNT, x <= 0.0f ? a : x < b ? 1.0f : 0.0f);
    case LEATI_CUDA_ELU: LEATI_EACH(COUNT, x > 0.0f ? 1.0f : x + a);
    case LEATI_CUDA_SELU:
        LEATI_EACH(COUNT, x > 0.0f ? LEATI_SELU_SCALE : x + LEATI_SELU_SCALE * LEATI_SELU_ALPHA);
    case LEATI_CUDA_SOFTPLUS: LEATI_EACH(COUNT, -expm1f(-x));
    case LEATI_CUDA_SOFTSIGN: LEATI_EACH(COUNT, (1.0f - fabsf(x)) * (1.0f - fabsf(x)));
    case LEATI_CUDA_TANH: LEATI_EACH(COUNT, 1.0f - x * x);
    case LEATI_CUDA_SIGMOID: LEATI_EACH(COUNT, x * (1.0f - x));
    case LEATI_CUDA_HARD_SIGMOID: LEATI_EACH(COUNT, x > 0.0f && x < 1.0f ? a : 0.0f);
    case LEATI_CUDA_EXP: return;
    case LEATI_CUDA_SQRT: LEATI_EACH(COUNT, 0.5f / x);
    case LEATI_CUDA_LINEAR: LEATI_EACH(COUNT, x == x ? a : a);
    default: LEATI_EACH(COUNT, x * NAN);
    }
}

/* The same for one number. */
static __device__ __forceinline__ float leati_function_at(const leati_cuda_function &f, float x) {
    leati_functions_at<1>(f, &x);
    return x;
}
/* The same for kernels in which the function is a small part: the code of all functions but RELU stands apart. */
static __device__ __noinline__ float leati_function_apart(int function, float a, float b, float c, float x) {
    return leati_function_at(leati_cuda_function{function, a, b, c}, x);
}
static __device__ __forceinline__ float leati_function_called(const leati_cuda_function &f, float x) {
    if (f.function == LEATI_CUDA_RELU) return (x >= f.c ? (x < f.b ? x : f.b) : f.a * (x - f.c)) + 0.0f;
    return leati_function_apart(f.function, f.a, f.b, f.c, x);
}
static __device__ __forceinline__ float leati_slope_at(const leati_cuda_function &f, float x) {
    leati_slopes_at<1>(f, &x);
    return x;
}
static __device__ __forceinline__ float leati_slope_from_dst(const leati_cuda_function &f, float y) {
    leati_slopes_from_dst<1>(f, &y);
    return y;
}

#endif
