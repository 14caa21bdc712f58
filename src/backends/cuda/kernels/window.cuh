/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels with windows share: loads and stores of either type, and the positions under a window. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_WINDOW_CUH
#define LEATI_BACKENDS_CUDA_KERNELS_WINDOW_CUH

#include "backends/cuda/kernels/common.cuh"
#include "backends/cuda/kernels/window.h"

#ifdef LEATI_CUDA_SIMULATED
#define LEATI_UNROLL
#else
#define LEATI_UNROLL _Pragma("unroll")
#endif

/* Stands for a type that is known only at run time. */
struct leati_mixed {};

/* V neighbours, which one instruction reads or writes. */
template <typename T, int V> struct alignas(sizeof(T) * V) leati_vector { T at[V]; };

template <typename T, int V> struct leati_access {
    static __device__ __forceinline__ void load(const leati_cuda_array &array, int64_t i, float *out) {
        leati_vector<T, V> v =
            *reinterpret_cast<const leati_vector<T, V> *>(static_cast<const T *>(array.data) + i);
        LEATI_UNROLL for (int k = 0; k < V; ++k) out[k] = leati_load(&v.at[k]);
    }
    static __device__ __forceinline__ void store(const leati_cuda_array &array, int64_t i, const float *x) {
        leati_vector<T, V> v;
        LEATI_UNROLL for (int k = 0; k < V; ++k) leati_store(&v.at[k], x[k]);
        *reinterpret_cast<leati_vector<T, V> *>(static_cast<T *>(array.data) + i) = v;
    }
};
template <int V> struct leati_access<leati_mixed, V> {
    static __device__ __forceinline__ void load(const leati_cuda_array &array, int64_t i, float *out) {
        LEATI_UNROLL for (int k = 0; k < V; ++k) out[k] =
            array.bf16 ? leati_load(static_cast<const leati_bf16 *>(array.data) + i + k)
                       : static_cast<const float *>(array.data)[i + k];
    }
    static __device__ __forceinline__ void store(const leati_cuda_array &array, int64_t i, const float *x) {
        LEATI_UNROLL for (int k = 0; k < V; ++k) if (array.bf16)
            leati_store(static_cast<leati_bf16 *>(array.data) + i + k, x[k]);
        else static_cast<float *>(array.data)[i + k] = x[k];
    }
};

static __device__ __forceinline__ float leati_at(const leati_cuda_array &array, int64_t i) {
    float x;
    leati_access<leati_mixed, 1>::load(array, i, &x);
    return x;
}

/* Divides a number that usually has 32 bits. */
static __device__ __forceinline__ int64_t leati_divided(int64_t i, int32_t by, int32_t *rest) {
    if (((uint64_t)i >> 32) == 0) {
        uint32_t quotient = (uint32_t)i / (uint32_t)by;
        *rest = (int32_t)((uint32_t)i - quotient * (uint32_t)by);
        return quotient;
    }
    int64_t quotient = i / by;
    *rest = (int32_t)(i - quotient * by);
    return quotient;
}

/* Returns the offset in src of the pixel under tap k of the window that starts at `at`, or -1 in the padding. */
static __device__ __forceinline__ int64_t leati_source_of(const leati_cuda_window_shape &s, int32_t n,
                                                          const int32_t *at, int32_t k0, int32_t k1,
                                                          int32_t k2) {
    int32_t i0 = at[0] + k0 * s.dilation[0], i1 = at[1] + k1 * s.dilation[1], i2 = at[2] + k2 * s.dilation[2];
    bool inside = (uint32_t)i0 < (uint32_t)s.in[0] && (uint32_t)i1 < (uint32_t)s.in[1] &&
                  (uint32_t)i2 < (uint32_t)s.in[2];
    return inside ? (((int64_t)n * s.in[0] + i0) * s.in[1] + i1) * s.in[2] + i2 : -1;
}

/* Sets the sample and the first source position of output pixel `pixel`. */
static __device__ __forceinline__ void leati_window_of(const leati_cuda_window_shape &s, int64_t pixel,
                                                       int32_t *n, int32_t *at) {
    int32_t o0, o1, o2;
    int64_t rest = leati_divided(pixel, s.out[2], &o2);
    rest = leati_divided(rest, s.out[1], &o1);
    *n = (int32_t)leati_divided(rest, s.out[0], &o0);
    at[0] = o0 * s.stride[0] - s.pad[0];
    at[1] = o1 * s.stride[1] - s.pad[1];
    at[2] = o2 * s.stride[2] - s.pad[2];
}

/* Returns the index of the output whose window has source position `i` under tap k, or -1. */
static __device__ __forceinline__ int32_t leati_output_of(const leati_cuda_window_shape &s, int axis,
                                                          int32_t i, int32_t k) {
    int32_t at = i + s.pad[axis] - k * s.dilation[axis];
    if (at < 0) return -1;
    int32_t o = at / s.stride[axis];
    return o * s.stride[axis] == at && o < s.out[axis] ? o : -1;
}

#endif
