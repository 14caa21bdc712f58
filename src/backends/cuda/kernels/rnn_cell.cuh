/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of the family rnn share: activations, masks and places in memory. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_RNN_CELL_CUH
#define LEATI_BACKENDS_CUDA_KERNELS_RNN_CELL_CUH

#include "backends/cuda/kernels/common.cuh"
#include "backends/cuda/kernels/rnn.h"

#ifdef LEATI_CUDA_SIMULATED
#define RNN_UNROLL
#define RNN_UNROLL_BY(count)
#else
#define RNN_PRAGMA(text)     _Pragma(#text)
#define RNN_UNROLL           RNN_PRAGMA(unroll)
#define RNN_UNROLL_BY(count) RNN_PRAGMA(unroll count)
#endif

#define SELU_SCALE 1.0507009873554805f
#define SELU_ALPHA 1.6732632423543772f

static __device__ __forceinline__ float rnn_sigmoid(float x) {
    return 1.0f / (1.0f + expf(-x));
}

static __device__ __forceinline__ float rnn_other_function(const leati_cuda_rnn_function &f, float x) {
    switch (f.kind) {
    case LEATI_CUDA_RNN_HARD_SIGMOID: {
        float y = f.a * x + f.b;
        return y != y ? y : fminf(fmaxf(y, 0.0f), 1.0f);
    }
    case LEATI_CUDA_RNN_RELU: return (x >= f.c ? (x < f.b ? x : f.b) : f.a * (x - f.c)) + 0.0f;
    case LEATI_CUDA_RNN_ELU: return x > 0 ? x : f.a * expm1f(x);
    case LEATI_CUDA_RNN_SELU: return SELU_SCALE * (x > 0 ? x : SELU_ALPHA * expm1f(x));
    case LEATI_CUDA_RNN_SOFTPLUS: return (x > 0 ? x : 0.0f) + log1pf(expf(-fabsf(x)));
    case LEATI_CUDA_RNN_SOFTSIGN: return x / (1.0f + fabsf(x));
    case LEATI_CUDA_RNN_EXP: return expf(x);
    case LEATI_CUDA_RNN_SQRT: return sqrtf(x);
    default: return f.a * x + f.b;
    }
}

static __device__ __forceinline__ float rnn_activate(const leati_cuda_rnn_function &f, float x) {
    if (f.kind == LEATI_CUDA_RNN_SIGMOID) return rnn_sigmoid(x);
    if (f.kind == LEATI_CUDA_RNN_TANH) return tanhf(x);
    return rnn_other_function(f, x);
}

static __device__ __forceinline__ float rnn_other_slope(const leati_cuda_rnn_function &f, float y) {
    switch (f.kind) {
    case LEATI_CUDA_RNN_HARD_SIGMOID: return y > 0 && y < 1 ? f.a : 0.0f;
    case LEATI_CUDA_RNN_RELU: return y <= 0 ? f.a : y < f.b ? 1.0f : 0.0f;
    case LEATI_CUDA_RNN_ELU: return y > 0 ? 1.0f : y + f.a;
    case LEATI_CUDA_RNN_SELU: return y > 0 ? SELU_SCALE : y + SELU_SCALE * SELU_ALPHA;
    case LEATI_CUDA_RNN_SOFTPLUS: return -expm1f(-y);
    case LEATI_CUDA_RNN_SOFTSIGN: return (1 - fabsf(y)) * (1 - fabsf(y));
    case LEATI_CUDA_RNN_EXP: return y;
    case LEATI_CUDA_RNN_SQRT: return 0.5f / y;
    default: return f.a;
    }
}

/* Returns f'(x) from y = f(x). */
static __device__ __forceinline__ float rnn_slope(const leati_cuda_rnn_function &f, float y) {
    if (f.kind == LEATI_CUDA_RNN_SIGMOID) return y * (1.0f - y);
    if (f.kind == LEATI_CUDA_RNN_TANH) return 1.0f - y * y;
    return rnn_other_slope(f, y);
}

/* Returns the row of sample n at a step of processing. */
static __device__ __forceinline__ int64_t rnn_row(const leati_cuda_rnn_args &a, int n, int step) {
    return (int64_t)n * a.steps + (a.go_backwards ? a.steps - 1 - step : step);
}

static __device__ __forceinline__ bool rnn_counts(const leati_cuda_rnn_args &a, int64_t row) {
    return !a.counted || a.counted[row] != 0.0f;
}

/* Returns the dropout factor of h for a gate. */
static __device__ __forceinline__ float rnn_h_mask(const leati_cuda_rnn_args &a, int gate, int n, int unit) {
    return a.h_mask ? a.h_mask[((int64_t)gate * a.batch + n) * a.units + unit] : 1.0f;
}

static __device__ __forceinline__ float rnn_x_mask(const leati_cuda_rnn_args &a, int gate, int n,
                                                   int feature) {
    return a.x_mask ? a.x_mask[((int64_t)gate * a.batch + n) * a.features + feature] : 1.0f;
}

/* Returns the factor of h in z (.) h of a GRU. */
static __device__ __forceinline__ float rnn_carry(const leati_cuda_rnn_args &a, int n, int unit) {
    return a.carry_masked ? rnn_h_mask(a, 0, n, unit) : 1.0f;
}

/* Returns the bias of `inner` of a GRU that resets after the product. */
static __device__ __forceinline__ float rnn_state_bias(const leati_cuda_rnn_args &a, int gate, int unit) {
    return a.bias && a.cell == LEATI_CUDA_GRU_RESET_AFTER ? a.bias[(3 + gate) * a.units + unit] : 0.0f;
}

#endif
