/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of LEATI_LANES floats for the code that is compiled once per instruction set (isa_*.c).  They are GCC's and
 * clang's vector types: the one place where leat leaves standard C, because loops that must keep a dozen accumulators
 * in registers cannot be left to a vectoriser. */
#ifndef LEATI_BACKENDS_NATIVE_VECTOR_H
#define LEATI_BACKENDS_NATIVE_VECTOR_H

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#ifndef LEATI_LANES
#error "LEATI_LANES says how many floats a vector has"
#endif

#define LEATI_INLINE static inline __attribute__((always_inline))

typedef float vf __attribute__((vector_size(LEATI_LANES * 4)));
typedef int32_t vi __attribute__((vector_size(LEATI_LANES * 4)));
typedef float vf_loose __attribute__((vector_size(LEATI_LANES * 4), aligned(4), may_alias));

LEATI_INLINE vf v_load(const float *from) {
    return *(const vf_loose *)from;
}

LEATI_INLINE void v_store(float *to, vf x) {
    *(vf_loose *)to = x;
}

LEATI_INLINE vf v_all(float x) {
    return x - (vf){0};
}

/* The first count lanes, at most all; the others are 0. */
LEATI_INLINE vf v_load_part(const float *from, int64_t count) {
    if (count >= LEATI_LANES) return v_load(from);
    float lanes[LEATI_LANES] = {0};
    for (int64_t i = 0; i < count; i++) lanes[i] = from[i];
    return v_load(lanes);
}

LEATI_INLINE void v_store_part(float *to, vf x, int64_t count) {
    if (count >= LEATI_LANES) {
        v_store(to, x);
        return;
    }
    float lanes[LEATI_LANES];
    v_store(lanes, x);
    for (int64_t i = 0; i < count; i++) to[i] = lanes[i];
}

/* Per lane: mask ? a : b, where the mask is what a comparison gives. */
LEATI_INLINE vf v_select(vi mask, vf a, vf b) {
    return (vf)((mask & (vi)a) | (~mask & (vi)b));
}

/* NaN in x stays. */
LEATI_INLINE vf v_min(vf x, vf y) {
#if defined(__AVX512F__) && LEATI_LANES == 16
    return (vf)_mm512_min_ps((__m512)y, (__m512)x);
#elif defined(__AVX__) && LEATI_LANES == 8
    return (vf)_mm256_min_ps((__m256)y, (__m256)x);
#else
    return v_select((vi)(x > y), y, x);
#endif
}

LEATI_INLINE vf v_max(vf x, vf y) {
#if defined(__AVX512F__) && LEATI_LANES == 16
    return (vf)_mm512_max_ps((__m512)y, (__m512)x);
#elif defined(__AVX__) && LEATI_LANES == 8
    return (vf)_mm256_max_ps((__m256)y, (__m256)x);
#else
    return v_select((vi)(x < y), y, x);
#endif
}

LEATI_INLINE float v_sum(vf x) {
    float lanes[LEATI_LANES], sum = 0;
    v_store(lanes, x);
    for (int i = 0; i < LEATI_LANES; i++) sum += lanes[i];
    return sum;
}

/* e^x within 2 units in the last place; x is held to [-87.3, 88.3], so that it neither overflows nor denormalises.
 * 2^n e^r with n the nearest whole number to x / log 2; the polynomial is that of Cephes (S. Moshier, expf). */
LEATI_INLINE vf v_exp(vf x) {
    const float shift = 12582912.0f; /* 1.5 * 2^23: adding it leaves the rounded number in the low bits */
    x = v_max(v_min(x, v_all(88.3f)), v_all(-87.3f));
    vf shifted = x * 1.44269504088896341f + shift, n = shifted - shift;
    vf r = x - n * 0.693359375f + n * 2.12194440e-4f;
    vf p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    vi exponent = ((vi)shifted - (vi)v_all(shift) + 127) << 23;
    return (p * r * r + r + 1.0f) * (vf)exponent;
}

LEATI_INLINE vf v_sigmoid(vf x) {
    return 1.0f / (1.0f + v_exp(-x));
}

/* tanh x within 3 units in the last place: x P(x^2) / Q(x^2), fitted by weighted least squares on [0, 9.02], beyond
 * which the nearest float is 1. */
LEATI_INLINE vf v_tanh(vf x) {
    x = v_max(v_min(x, v_all(9.02f)), v_all(-9.02f));
    vf z = x * x;
    vf p = z * 1.3319054303906341e-8f + 2.058346763078589e-5f;
    vf q = z * 7.762012046441669e-7f + 3.283091355115175e-4f;
    p = p * z + 3.4940335899591446e-3f;
    q = q * z + 2.5871070101857185e-2f;
    p = p * z + 0.13379716873168945f;
    q = q * z + 0.4671303331851959f;
    p = p * z + 1.0f;
    q = q * z + 1.0f;
    return v_max(v_min(x * p / q, v_all(1)), v_all(-1));
}

#endif
