/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores of V neighbouring elements of a leati_cuda_tensor as f32.  V elements start at a multiple of V, and
 * the tensor is aligned to 16 bytes if V is above 1. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_TENSOR_CUH
#define LEATI_BACKENDS_CUDA_KERNELS_TENSOR_CUH

#include "backends/cuda/kernels/common.cuh"
#include "backends/cuda/kernels/tensor.h"

/* What a kernel knows about the types of its large tensors when it is compiled. */
enum leati_cuda_types { LEATI_ALL_F32, LEATI_ALL_BF16, LEATI_ANY_TYPES };

#ifdef LEATI_CUDA_SIMULATED
#define LEATI_UNROLL(n)
#else
#define LEATI_UNROLL_PRAGMA(text) _Pragma(#text)
#define LEATI_UNROLL(n)           LEATI_UNROLL_PRAGMA(unroll n)
#endif

static __device__ __forceinline__ float leati_low_half(unsigned pair) {
    return __uint_as_float(pair << 16);
}
static __device__ __forceinline__ float leati_high_half(unsigned pair) {
    return __uint_as_float(pair & 0xffff0000u);
}
static __device__ __forceinline__ unsigned leati_pair(float low, float high) {
#if defined(LEATI_CUDA_SIMULATED) || __CUDA_ARCH__ < 800
    return (unsigned)leati_narrow(low).bits | (unsigned)leati_narrow(high).bits << 16;
#else
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
#endif
}

template <int V> static __device__ __forceinline__ void leati_load_f32(const float *p, float *x) {
    if (V == 1) x[0] = p[0];
    for (int i = 0; i + 4 <= V; i += 4) {
        float4 four = *(const float4 *)(p + i);
        x[i] = four.x, x[i + 1] = four.y, x[i + 2] = four.z, x[i + 3] = four.w;
    }
}

template <int V> static __device__ __forceinline__ void leati_load_bf16(const leati_bf16 *p, float *x) {
    if (V == 1) x[0] = leati_widen(p[0]);
    if (V == 4) {
        uint2 pairs = *(const uint2 *)p;
        x[0] = leati_low_half(pairs.x), x[1 % V] = leati_high_half(pairs.x);
        x[2 % V] = leati_low_half(pairs.y), x[3 % V] = leati_high_half(pairs.y);
    }
    if (V == 8) {
        uint4 pairs = *(const uint4 *)p;
        x[0] = leati_low_half(pairs.x), x[1 % V] = leati_high_half(pairs.x);
        x[2 % V] = leati_low_half(pairs.y), x[3 % V] = leati_high_half(pairs.y);
        x[4 % V] = leati_low_half(pairs.z), x[5 % V] = leati_high_half(pairs.z);
        x[6 % V] = leati_low_half(pairs.w), x[7 % V] = leati_high_half(pairs.w);
    }
}

template <int V> static __device__ __forceinline__ void leati_store_f32(float *p, const float *x) {
    if (V == 1) p[0] = x[0];
    for (int i = 0; i + 4 <= V; i += 4) *(float4 *)(p + i) = make_float4(x[i], x[i + 1], x[i + 2], x[i + 3]);
}

template <int V> static __device__ __forceinline__ void leati_store_bf16(leati_bf16 *p, const float *x) {
    if (V == 1) p[0] = leati_narrow(x[0]);
    if (V == 4) {
        uint2 pairs;
        pairs.x = leati_pair(x[0], x[1 % V]);
        pairs.y = leati_pair(x[2 % V], x[3 % V]);
        *(uint2 *)p = pairs;
    }
    if (V == 8) {
        uint4 pairs;
        pairs.x = leati_pair(x[0], x[1 % V]);
        pairs.y = leati_pair(x[2 % V], x[3 % V]);
        pairs.z = leati_pair(x[4 % V], x[5 % V]);
        pairs.w = leati_pair(x[6 % V], x[7 % V]);
        *(uint4 *)p = pairs;
    }
}

/* Loads elements i to i + V - 1. */
template <int TYPES, int V>
static __device__ __forceinline__ void leati_load_vector(const leati_cuda_tensor &t, int64_t i, float *x) {
    if (TYPES == LEATI_ALL_BF16 || (TYPES == LEATI_ANY_TYPES && t.bf16))
        leati_load_bf16<V>((const leati_bf16 *)t.at + i, x);
    else
        leati_load_f32<V>((const float *)t.at + i, x);
}

template <int TYPES, int V>
static __device__ __forceinline__ void leati_store_vector(const leati_cuda_tensor &t, int64_t i,
                                                          const float *x) {
    if (TYPES == LEATI_ALL_BF16 || (TYPES == LEATI_ANY_TYPES && t.bf16))
        leati_store_bf16<V>((leati_bf16 *)t.at + i, x);
    else
        leati_store_f32<V>((float *)t.at + i, x);
}

/* V elements as they lie in memory, so that many loads can be under way with few registers; f32 if the type is not
 * known to the kernel. */
template <int V> struct leati_raw { unsigned word[V < 4 ? 1 : 4]; };

template <int TYPES, int V>
static __device__ __forceinline__ void leati_load_raw(const leati_cuda_tensor &t, int64_t i,
                                                      leati_raw<V> &raw) {
    if (TYPES == LEATI_ALL_BF16 && V == 8) {
        uint4 four = *(const uint4 *)((const leati_bf16 *)t.at + i);
        raw.word[0] = four.x, raw.word[1 % V] = four.y, raw.word[2 % V] = four.z, raw.word[3 % V] = four.w;
    } else {
        float x[V];
        leati_load_vector<TYPES, V>(t, i, x);
        for (int v = 0; v < V && v < 4; v++) raw.word[v] = __float_as_uint(x[v]);
    }
}

template <int TYPES, int V>
static __device__ __forceinline__ void leati_unpack(const leati_raw<V> &raw, float *x) {
    for (int v = 0; v < V; v++) {
        if (TYPES == LEATI_ALL_BF16 && V == 8)
            x[v] = v % 2 ? leati_high_half(raw.word[v / 2]) : leati_low_half(raw.word[v / 2]);
        else
            x[v] = __uint_as_float(raw.word[V == 8 ? 0 : v]);
    }
}

/* The same for one element of any type. */
static __device__ __forceinline__ float leati_element(const leati_cuda_tensor &t, int64_t i) {
    return t.bf16 ? leati_widen(((const leati_bf16 *)t.at)[i]) : ((const float *)t.at)[i];
}
static __device__ __forceinline__ float leati_element_or(const leati_cuda_tensor &t, int64_t i,
                                                         float absent) {
    return t.at ? leati_element(t, i) : absent;
}
static __device__ __forceinline__ void leati_set_element(const leati_cuda_tensor &t, int64_t i, float x) {
    if (t.bf16)
        ((leati_bf16 *)t.at)[i] = leati_narrow(x);
    else
        ((float *)t.at)[i] = x;
}

#endif
