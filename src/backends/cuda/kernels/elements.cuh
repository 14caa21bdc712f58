/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of every type as numbers, with the conversions of tensor/convert.c: what is out of the new type's range
 * becomes the nearest number in range, and NaN becomes 0 where the new type has no NaN. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_ELEMENTS_CUH
#define LEATI_BACKENDS_CUDA_KERNELS_ELEMENTS_CUH

#include <string.h>

#include "backends/cuda/kernels/common.cuh"
#include "backends/cuda/kernels/elementwise.h"

static __device__ __forceinline__ float leati_from_f16(uint16_t x) {
    unsigned sign = (unsigned)(x & 0x8000u) << 16, exponent = x >> 10 & 0x1fu, fraction = x & 0x3ffu;
    if (exponent == 0x1fu)
        return __uint_as_float(sign | 0x7f800000u | (fraction ? 0x00400000u | fraction << 13 : 0u));
    float size = exponent ? __uint_as_float((exponent + 112u) << 23 | fraction << 13)
                          : (float)fraction * 5.9604644775390625e-8f; /* 2^-24 */
    return sign ? -size : size;
}

static __device__ __forceinline__ uint16_t leati_to_f16(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    const uint32_t sign = (uint32_t)(bits >> 48) & 0x8000u;
    const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    const uint64_t fraction = bits & 0xfffffffffffffu, one = 1;
    if (exponent == 1024) return (uint16_t)(sign | (fraction ? 0x7e00u : 0x7c00u));
    if (exponent > 15) return (uint16_t)(sign | 0x7c00u);
    if (exponent < -25) return (uint16_t)sign;
    const int cut = exponent < -14 ? 28 - exponent : 42; /* low bits that binary16 does not keep */
    const uint64_t kept = fraction | (exponent < -14 ? one << 52 : (uint64_t)(exponent + 15) << 52);
    const uint64_t half = one << (cut - 1), rest = kept & (2 * half - 1);
    const uint64_t nearest = (kept >> cut) + (rest > half || (rest == half && (kept >> cut & 1)));
    return (uint16_t)(sign | (uint32_t)nearest);
}

/* Returns element i as f32. */
static __device__ __forceinline__ float leati_element(int dtype, const void *data, int64_t i) {
    switch (dtype) {
    case LEATI_CUDA_F32: return ((const float *)data)[i];
    case LEATI_CUDA_BF16: return leati_widen(((const leati_bf16 *)data)[i]);
    case LEATI_CUDA_F64: return (float)((const double *)data)[i];
    case LEATI_CUDA_F16: return leati_from_f16(((const uint16_t *)data)[i]);
    case LEATI_CUDA_I32: return (float)((const int32_t *)data)[i];
    case LEATI_CUDA_I64: return (float)((const int64_t *)data)[i];
    case LEATI_CUDA_U8: return (float)((const uint8_t *)data)[i];
    case LEATI_CUDA_BOOL: return ((const uint8_t *)data)[i] ? 1.0f : 0.0f;
    case LEATI_CUDA_I8: return (float)((const int8_t *)data)[i];
    case LEATI_CUDA_I16: return (float)((const int16_t *)data)[i];
    case LEATI_CUDA_U16: return (float)((const uint16_t *)data)[i];
    case LEATI_CUDA_U32: return (float)((const uint32_t *)data)[i];
    case LEATI_CUDA_U64: return (float)((const uint64_t *)data)[i];
    default: return 0.0f;
    }
}

/* A number without loss: of a real type, of a signed integer type, or u64. */
struct leati_number {
    int kind; /* 0: real, 1: whole, 2: large */
    double real;
    int64_t whole;
    uint64_t large;
};

static __device__ __forceinline__ leati_number leati_real(double x) {
    return {0, x, 0, 0};
}
static __device__ __forceinline__ leati_number leati_whole(int64_t x) {
    return {1, 0.0, x, 0};
}

static __device__ __forceinline__ leati_number leati_number_at(int dtype, const void *data, int64_t i) {
    switch (dtype) {
    case LEATI_CUDA_F64: return leati_real(((const double *)data)[i]);
    case LEATI_CUDA_I32: return leati_whole(((const int32_t *)data)[i]);
    case LEATI_CUDA_I64: return leati_whole(((const int64_t *)data)[i]);
    case LEATI_CUDA_U8: return leati_whole(((const uint8_t *)data)[i]);
    case LEATI_CUDA_BOOL: return leati_whole(((const uint8_t *)data)[i] != 0);
    case LEATI_CUDA_I8: return leati_whole(((const int8_t *)data)[i]);
    case LEATI_CUDA_I16: return leati_whole(((const int16_t *)data)[i]);
    case LEATI_CUDA_U16: return leati_whole(((const uint16_t *)data)[i]);
    case LEATI_CUDA_U32: return leati_whole(((const uint32_t *)data)[i]);
    case LEATI_CUDA_U64: return {2, 0.0, 0, ((const uint64_t *)data)[i]};
    default: return leati_real((double)leati_element(dtype, data, i));
    }
}

static __device__ __forceinline__ double leati_as_real(const leati_number &x) {
    return x.kind == 0 ? x.real : x.kind == 1 ? (double)x.whole : (double)x.large;
}
static __device__ __forceinline__ float leati_as_float(const leati_number &x) {
    return x.kind == 0 ? (float)x.real : x.kind == 1 ? (float)x.whole : (float)x.large;
}

/* Returns the nearest number in [low, high]. */
static __device__ __forceinline__ int64_t leati_as_whole(const leati_number &x, int64_t low, int64_t high) {
    if (x.kind == 1) return x.whole < low ? low : x.whole > high ? high : x.whole;
    if (x.kind == 2) return x.large > (uint64_t)high ? high : (int64_t)x.large;
    if (x.real != x.real) return 0;
    return x.real <= (double)low ? low : x.real >= (double)high ? high : (int64_t)x.real;
}
static __device__ __forceinline__ uint64_t leati_as_large(const leati_number &x) {
    if (x.kind == 1) return x.whole < 0 ? 0 : (uint64_t)x.whole;
    if (x.kind == 2) return x.large;
    if (!(x.real > 0.0)) return 0;
    return x.real >= 18446744073709551615.0 ? UINT64_MAX : (uint64_t)x.real;
}
static __device__ __forceinline__ bool leati_is_true(const leati_number &x) {
    return x.kind == 0 ? x.real != 0.0 : x.kind == 1 ? x.whole != 0 : x.large != 0;
}

static __device__ __forceinline__ void leati_store_number(int dtype, void *data, int64_t i,
                                                          const leati_number &x) {
    switch (dtype) {
    case LEATI_CUDA_F32: ((float *)data)[i] = leati_as_float(x); break;
    case LEATI_CUDA_BF16: ((leati_bf16 *)data)[i] = leati_narrow(leati_as_float(x)); break;
    case LEATI_CUDA_F64: ((double *)data)[i] = leati_as_real(x); break;
    case LEATI_CUDA_F16: ((uint16_t *)data)[i] = leati_to_f16(leati_as_real(x)); break;
    case LEATI_CUDA_I32: ((int32_t *)data)[i] = (int32_t)leati_as_whole(x, INT32_MIN, INT32_MAX); break;
    case LEATI_CUDA_I64: ((int64_t *)data)[i] = leati_as_whole(x, INT64_MIN, INT64_MAX); break;
    case LEATI_CUDA_U8: ((uint8_t *)data)[i] = (uint8_t)leati_as_whole(x, 0, UINT8_MAX); break;
    case LEATI_CUDA_BOOL: ((uint8_t *)data)[i] = leati_is_true(x); break;
    case LEATI_CUDA_I8: ((int8_t *)data)[i] = (int8_t)leati_as_whole(x, INT8_MIN, INT8_MAX); break;
    case LEATI_CUDA_I16: ((int16_t *)data)[i] = (int16_t)leati_as_whole(x, INT16_MIN, INT16_MAX); break;
    case LEATI_CUDA_U16: ((uint16_t *)data)[i] = (uint16_t)leati_as_whole(x, 0, UINT16_MAX); break;
    case LEATI_CUDA_U32: ((uint32_t *)data)[i] = (uint32_t)leati_as_whole(x, 0, UINT32_MAX); break;
    case LEATI_CUDA_U64: ((uint64_t *)data)[i] = leati_as_large(x); break;
    default: break;
    }
}

/* Four consecutive f32 or bf16 elements at once. */
static __device__ __forceinline__ void leati_load_quad(const float *p, float *x) {
    float4 quad = *(const float4 *)p;
    x[0] = quad.x, x[1] = quad.y, x[2] = quad.z, x[3] = quad.w;
}
static __device__ __forceinline__ void leati_widen_quad(uint2 quad, float *x) {
    x[0] = __uint_as_float(quad.x << 16), x[1] = __uint_as_float(quad.x & 0xffff0000u);
    x[2] = __uint_as_float(quad.y << 16), x[3] = __uint_as_float(quad.y & 0xffff0000u);
}
static __device__ __forceinline__ void leati_load_quad(const leati_bf16 *p, float *x) {
    leati_widen_quad(*(const uint2 *)p, x);
}
static __device__ __forceinline__ void leati_bytes_quad(unsigned quad, float *x) {
    x[0] = (float)(quad & 0xffu), x[1] = (float)(quad >> 8 & 0xffu);
    x[2] = (float)(quad >> 16 & 0xffu), x[3] = (float)(quad >> 24);
}
static __device__ __forceinline__ void leati_store_quad(float *p, const float *x) {
    *(float4 *)p = make_float4(x[0], x[1], x[2], x[3]);
}
static __device__ __forceinline__ void leati_store_quad(leati_bf16 *p, const float *x) {
    uint2 quad;
    quad.x = leati_narrow(x[0]).bits | (unsigned)leati_narrow(x[1]).bits << 16;
    quad.y = leati_narrow(x[2]).bits | (unsigned)leati_narrow(x[3]).bits << 16;
    *(uint2 *)p = quad;
}

/* Asks the L2 cache for the line at an address. */
static __device__ __forceinline__ void leati_prefetch(const void *address) {
#ifdef __CUDA_ARCH__
    asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
#else
    (void)address;
#endif
}

#endif
