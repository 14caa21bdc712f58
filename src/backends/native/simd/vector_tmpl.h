/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of LEATI_LANES floats for the code that is compiled once per instruction set (isa_*.c).  They are vector
 * types of GCC and clang: the one place where leat leaves standard C, because an auto-vectorizer does not reliably
 * keep a dozen accumulators in registers. */
#ifndef LEATI_BACKENDS_NATIVE_SIMD_VECTOR_TMPL_H
#define LEATI_BACKENDS_NATIVE_SIMD_VECTOR_TMPL_H

#include <stdbool.h>
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
/* Like v_load(), for a vector with two or three uses, for each of which GCC would otherwise read memory again. */
LEATI_INLINE vf v_load_once(const float *from) {
    return *(const volatile vf_loose *)from;
}

LEATI_INLINE void v_store(float *to, vf x) {
    *(vf_loose *)to = x;
}

/* Stores x with a non-temporal store, which bypasses the caches; `to` is aligned to a vector.  Call v_stored()
 * before another thread reads the data. */
LEATI_INLINE void v_store_past(float *to, vf x) {
#if defined(__AVX512F__) && LEATI_LANES == 16
    _mm512_stream_ps(to, (__m512)x);
#elif defined(__AVX__) && LEATI_LANES == 8
    _mm256_stream_ps(to, (__m256)x);
#else
    v_store(to, x);
#endif
}
LEATI_INLINE void v_stored(void) {
#if defined(__AVX__)
    _mm_sfence();
#endif
}

LEATI_INLINE vf v_all(float x) {
    return x - (vf){0};
}

#if defined(__AVX512F__) && LEATI_LANES == 16
LEATI_INLINE __mmask16 v_first(int64_t count) {
    return (__mmask16)(count > 0 ? (1u << count) - 1 : 0);
}
#elif defined(__AVX2__) && LEATI_LANES == 8
LEATI_INLINE __m256i v_first(int64_t count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
#endif

/* Loads the first count lanes (all of them where count is larger); the other lanes are 0. */
LEATI_INLINE vf v_load_part(const float *from, int64_t count) {
    if (count >= LEATI_LANES) return v_load(from);
#if defined(__AVX512F__) && LEATI_LANES == 16
    return (vf)_mm512_maskz_loadu_ps(v_first(count), from);
#elif defined(__AVX2__) && LEATI_LANES == 8
    return (vf)_mm256_maskload_ps(from, v_first(count));
#else
    float lanes[LEATI_LANES] = {0};
    for (int64_t i = 0; i < count; i++) lanes[i] = from[i];
    return v_load(lanes);
#endif
}

LEATI_INLINE void v_store_part(float *to, vf x, int64_t count) {
    if (count >= LEATI_LANES) {
        v_store(to, x);
        return;
    }
#if defined(__AVX512F__) && LEATI_LANES == 16
    _mm512_mask_storeu_ps(to, v_first(count), (__m512)x);
#elif defined(__AVX2__) && LEATI_LANES == 8
    _mm256_maskstore_ps(to, v_first(count), (__m256)x);
#else
    float lanes[LEATI_LANES];
    v_store(lanes, x);
    for (int64_t i = 0; i < count; i++) to[i] = lanes[i];
#endif
}

/* Returns where the next vector of a row begins.  The last vector overlaps the one before instead of being a
 * partial one. */
LEATI_INLINE int64_t next_vector(int64_t c, int64_t channels) {
    int64_t next = c + LEATI_LANES;
    return next < channels && next > channels - LEATI_LANES ? channels - LEATI_LANES : next;
}

typedef uint16_t vh __attribute__((vector_size(LEATI_LANES * 2)));
typedef uint16_t vh_loose __attribute__((vector_size(LEATI_LANES * 2), aligned(2), may_alias));
typedef uint32_t vu __attribute__((vector_size(LEATI_LANES * 4)));

/* Load bf16 as floats; store floats rounded to the nearest bf16 (tensor/bfloat16.h defines the rounding). */
LEATI_INLINE vf v_load_bf16(const uint16_t *from) {
    return (vf)(__builtin_convertvector(*(const vh_loose *)from, vu) << 16);
}

LEATI_INLINE void v_store_bf16(uint16_t *to, vf x) {
    vu bits = (vu)x, nearest = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16, nan = bits >> 16 | 0x40u;
    vu is_nan = (vu)((bits & 0x7fffffffu) > 0x7f800000u);
    *(vh_loose *)to = __builtin_convertvector((nearest & ~is_nan) | (nan & is_nan), vh);
}

LEATI_INLINE vf v_load_bf16_part(const uint16_t *from, int64_t count) {
    if (count >= LEATI_LANES) return v_load_bf16(from);
    uint16_t lanes[LEATI_LANES] = {0};
    for (int64_t i = 0; i < count; i++) lanes[i] = from[i];
    return v_load_bf16(lanes);
}

LEATI_INLINE void v_store_bf16_part(uint16_t *to, vf x, int64_t count) {
    if (count >= LEATI_LANES) {
        v_store_bf16(to, x);
        return;
    }
    uint16_t lanes[LEATI_LANES];
    v_store_bf16(lanes, x);
    for (int64_t i = 0; i < count; i++) to[i] = lanes[i];
}

/* Load and store elements of an image, which is bf16 or f32; `at` is the index of the first element. */
LEATI_INLINE vf v_load_image(const void *image, int64_t at, int64_t count, const bool bf16) {
    return bf16 ? v_load_bf16_part((const uint16_t *)image + at, count)
                : v_load_part((const float *)image + at, count);
}

LEATI_INLINE void v_store_image(void *image, int64_t at, vf x, int64_t count, const bool bf16) {
    if (bf16)
        v_store_bf16_part((uint16_t *)image + at, x, count);
    else
        v_store_part((float *)image + at, x, count);
}

/* Per lane: mask ? a : b.  The mask is the result of a vector comparison. */
LEATI_INLINE vf v_select(vi mask, vf a, vf b) {
    return (vf)((mask & (vi)a) | (~mask & (vi)b));
}

/* Returns i in lane i. */
LEATI_INLINE vi v_lanes(void) {
    static const int32_t numbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    vi lanes;
    memcpy(&lanes, numbers, sizeof lanes);
    return lanes;
}

/* Like v_load_part(), but the other lanes are 1.  For functions that have no result at 0, such as 0 / x or the
 * derivative of a logarithm: an unused lane must not raise a floating-point exception, which a program may have
 * trapped. */
LEATI_INLINE vf v_load_part_or_one(const float *from, int64_t count) {
    if (count >= LEATI_LANES) return v_load(from);
    return v_select(v_lanes() < (int32_t)count, v_load_part(from, count), v_all(1));
}

/* Returns x[from[i]] in lane i. */
LEATI_INLINE vf v_permute(vf x, vi from) {
#if defined(__AVX512F__) && LEATI_LANES == 16
    return (vf)_mm512_permutexvar_ps((__m512i)from, (__m512)x);
#elif defined(__AVX2__) && LEATI_LANES == 8
    return (vf)_mm256_permutevar8x32_ps((__m256)x, (__m256i)from);
#else
    vf y;
    for (int i = 0; i < LEATI_LANES; i++) y[i] = x[from[i]];
    return y;
#endif
}

/* Returns the mask of the lanes that are NaN. */
LEATI_INLINE vi v_nan(vf x) {
    const vf same = x;
    return (vi)(x != same);
}

/* Returns true if the mask of any lane is set. */
LEATI_INLINE bool v_any(vi mask) {
#if defined(__AVX512F__) && LEATI_LANES == 16
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__AVX__) && LEATI_LANES == 8
    return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
#else
    int32_t lanes = 0;
    for (int i = 0; i < LEATI_LANES; i++) lanes |= mask[i];
    return lanes != 0;
#endif
}

/* v_min and v_max return NaN where x is NaN. */
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

/* Computes the low and the high word of x * y, per lane. */
LEATI_INLINE void v_multiply_wide(vu x, uint32_t y, vu *low, vu *high) {
#if defined(__AVX512F__) && LEATI_LANES == 16
    __m512i factor = _mm512_set1_epi32((int)y);
    __m512i even = _mm512_mul_epu32((__m512i)x, factor);
    __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64((__m512i)x, 32), factor);
    *low = (vu)_mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
    *high = (vu)_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
#elif defined(__AVX2__) && LEATI_LANES == 8
    __m256i factor = _mm256_set1_epi32((int)y);
    __m256i even = _mm256_mul_epu32((__m256i)x, factor);
    __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64((__m256i)x, 32), factor);
    *low = (vu)_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
    *high = (vu)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
#else
    uint32_t lows[LEATI_LANES], highs[LEATI_LANES];
    for (int i = 0; i < LEATI_LANES; i++) {
        uint64_t product = (uint64_t)x[i] * y;
        lows[i] = (uint32_t)product;
        highs[i] = (uint32_t)(product >> 32);
    }
    memcpy(low, lows, sizeof lows);
    memcpy(high, highs, sizeof highs);
#endif
}

LEATI_INLINE vf v_abs(vf x) {
    return (vf)((vi)x & ~(vi)v_all(-0.0f));
}

/* V_TURNED(x, n) has lane i + n of x in lane i, and begins again with lane 0 after the last one. */
#define V_LANE(i) ((i) % LEATI_LANES)
#if LEATI_LANES == 4
#define V_TURNED(x, n) __builtin_shufflevector(x, x, V_LANE(n), V_LANE(1 + n), V_LANE(2 + n), V_LANE(3 + n))
#elif LEATI_LANES == 8
#define V_TURNED(x, n)                                                                                       \
    __builtin_shufflevector(x, x, V_LANE(n), V_LANE(1 + n), V_LANE(2 + n), V_LANE(3 + n), V_LANE(4 + n),     \
                            V_LANE(5 + n), V_LANE(6 + n), V_LANE(7 + n))
#else
#define V_TURNED(x, n)                                                                                       \
    __builtin_shufflevector(x, x, V_LANE(n), V_LANE(1 + n), V_LANE(2 + n), V_LANE(3 + n), V_LANE(4 + n),     \
                            V_LANE(5 + n), V_LANE(6 + n), V_LANE(7 + n), V_LANE(8 + n), V_LANE(9 + n),       \
                            V_LANE(10 + n), V_LANE(11 + n), V_LANE(12 + n), V_LANE(13 + n), V_LANE(14 + n),  \
                            V_LANE(15 + n))
#endif

/* Folds all lanes of the variable x into each of them, in pairs: FOLD(a, b) is a commutative function. */
#define V_FOLD_LANES(x, FOLD)                                                                                \
    do {                                                                                                     \
        if (LEATI_LANES > 8) x = FOLD(x, V_TURNED(x, 8));                                                    \
        if (LEATI_LANES > 4) x = FOLD(x, V_TURNED(x, 4));                                                    \
        x = FOLD(x, V_TURNED(x, 2));                                                                         \
        x = FOLD(x, V_TURNED(x, 1));                                                                         \
    } while (0)

/* The lanes are added one after the other: in pairs, some of the gradients that are compared with Keras's leave their
 * tolerance. */
LEATI_INLINE float v_sum(vf x) {
    float lanes[LEATI_LANES], sum = 0;
    v_store(lanes, x);
    for (int i = 0; i < LEATI_LANES; i++) sum += lanes[i];
    return sum;
}

/* The sum of the lanes, in pairs: in less time than v_sum, with another rounding. */
LEATI_INLINE float v_sum_in_pairs(vf x) {
#define V_ADD(a, b) ((a) + (b))
    V_FOLD_LANES(x, V_ADD);
#undef V_ADD
    return x[0];
}

/* Returns the largest lane; NaN if all lanes are NaN. */
LEATI_INLINE float v_largest(vf x) {
    V_FOLD_LANES(x, v_max);
    return x[0];
}

/* e^x within 2 units in the last place.  x is clamped to [-87.3, 88.3], so that the result neither overflows nor
 * becomes subnormal.  Computed as 2^n e^r with minimax polynomials, where n is the integer nearest to x / log 2; with
 * AVX-512 it is the nearest multiple of 1/16, and 2 to the power of its fraction comes from a table in a register.
 * Adding `shift` leaves the rounded number of units, 1 or 1/16, in the low bits. */
LEATI_INLINE vf v_exp(vf x) {
    x = v_max(v_min(x, v_all(88.3f)), v_all(-87.3f));
#if defined(__AVX512F__) && LEATI_LANES == 16
    static const float powers[16] = {1.0f,        1.04427378f, 1.09050773f, 1.13878863f,
                                     1.18920712f, 1.24185781f, 1.29683955f, 1.35425555f,
                                     1.41421356f, 1.47682615f, 1.54221083f, 1.61049033f,
                                     1.68179283f, 1.75625216f, 1.83400809f, 1.91520656f};
    const float shift = 786432.0f; /* 1.5 * 2^19 */
#else
    const float shift = 12582912.0f; /* 1.5 * 2^23 */
#endif
    vf shifted = x * 1.44269504088896341f + shift, n = shifted - shift;
    vf r = x - n * 0.693359375f + n * 2.12194440e-4f;
#if defined(__AVX512F__) && LEATI_LANES == 16
    vf p = r * 0.166662756f + 0.50001955f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    __m512 power = _mm512_permutexvar_ps((__m512i)shifted, _mm512_loadu_ps(powers));
    return p * (vf)_mm512_scalef_ps(power, (__m512)n);
#else
    vf p = r * 1.40612409e-3f + 8.37901116e-3f;
    p = p * r + 4.16647773e-2f;
    p = p * r + 1.66663654e-1f;
    p = p * r + 5.00000043e-1f;
    p = p * r + 1.00000005f;
    p = p * r + 1.0f;
    return (vf)((vi)p + ((vi)shifted << 23));
#endif
}

/* e^x for any x; infinite where it overflows. */
LEATI_INLINE vf v_exp_any(vf x) {
    const float shift = 12582912.0f;
    x = v_max(v_min(x, v_all(89.0f)), v_all(-104.0f));
    vf shifted = x * 1.44269504088896341f + shift, n = shifted - shift;
    vi exponent = (vi)shifted - (vi)v_all(shift), half = exponent >> 1;
    /* e^(x - n log 2) is in the range of v_exp, in which n is then 0 */
    vf p = v_exp(x - n * 0.693359375f + n * 2.12194440e-4f);
    return p * (vf)((half + 127) << 23) * (vf)((exponent - half + 127) << 23);
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

/* e^x - 1 for x <= 0, as 2 t / (1 - t) with t = tanh(x / 2): no digits cancel. */
LEATI_INLINE vf v_expm1_negative(vf x) {
    vf t = v_tanh(x * 0.5f);
    return (t + t) / (1.0f - t);
}

LEATI_INLINE vf v_sqrt(vf x) {
#if defined(__AVX512F__) && LEATI_LANES == 16
    return (vf)_mm512_sqrt_ps((__m512)x);
#elif defined(__AVX__) && LEATI_LANES == 8
    return (vf)_mm256_sqrt_ps((__m256)x);
#else
    float lanes[LEATI_LANES];
    v_store(lanes, x);
    for (int i = 0; i < LEATI_LANES; i++) lanes[i] = __builtin_sqrtf(lanes[i]);
    return v_load(lanes);
#endif
}

/* log x of a positive, normal x.  x = 2^n m with m in [sqrt 1/2, sqrt 2); log m = 2 artanh((m - 1) / (m + 1)) by
 * its series. */
LEATI_INLINE vf v_log(vf x) {
    vi exponent = ((vi)x - 0x3f3504f3) >> 23;
    vf m = (vf)((vi)x - (exponent << 23)), s = (m - 1.0f) / (m + 1.0f), z = s * s;
    vf p = z * (1.0f / 9) + 1.0f / 7;
    p = p * z + 1.0f / 5;
    p = p * z + 1.0f / 3;
    vf n = __builtin_convertvector(exponent, vf);
    return n * 0.693359375f + (n * -2.12194440e-4f + 2.0f * (s + s * z * p));
}

/* log x of any x: -infinity where x is 0 or subnormal, NaN where x is negative. */
LEATI_INLINE vf v_log_any(vf x) {
    vf y = v_select((vi)(x < v_all(0x1p-126f)), v_all(-__builtin_inff()), v_log(v_max(x, v_all(0x1p-126f))));
    y = v_select((vi)(x < v_all(0)) | v_nan(x), v_all(__builtin_nanf("")), y);
    return v_select((vi)(x == v_all(__builtin_inff())), x, y);
}

/* Computes cos a and sin a of the angle a = 2 pi word / 2^32, within 2 units in the last place of 1.  The two
 * highest bits of the word, rounded, are the quadrant; relative to the quadrant the angle is in [-pi / 4, pi / 4],
 * and the polynomials are those of Cephes (S. Moshier, sinf). */
LEATI_INLINE void v_cos_sin(vu word, vf *cosine, vf *sine) {
    vu quarter = (word + 0x20000000u) >> 30;
    vi rest = (vi)(word - (quarter << 30));
    vf a = __builtin_convertvector(rest, vf) * 1.4629180792671596e-9f, z = a * a; /* pi / 2^31 */
    vf s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * a + a;
    vf c = ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z -
           0.5f * z + 1.0f;
    vi odd = -(vi)(quarter & 1u), negative_c = (vi)(((quarter + 1) & 2u) << 30),
       negative_s = (vi)((quarter & 2u) << 30);
    *cosine = (vf)((vi)v_select(odd, s, c) ^ negative_c);
    *sine = (vf)((vi)v_select(odd, c, s) ^ negative_s);
}

/* 1 / x of a normal x, within 2 units in the last place.  A division takes as long as eight multiplications. */
LEATI_INLINE vf v_reciprocal(vf x) {
#if defined(__AVX512F__) && LEATI_LANES == 16
    vf r = (vf)_mm512_rcp14_ps((__m512)x);
    return r * (2.0f - x * r);
#else
    return 1.0f / x;
#endif
}

/* x (1 + erf(x / sqrt 2)) / 2 = max(x, 0) - |x| T(|x|) with the tail T(a) = erfc(a / sqrt 2) / 2 = Q(a)^-4 / 2, within
 * 3e-7.  Q has degree 11 and was fitted by weighted least squares on [0, 6]; its even and odd terms are summed apart,
 * so that the additions wait less for one another. */
LEATI_INLINE vf v_gelu(vf x) {
    vf a = v_min(v_abs(x), v_all(10)), z = a * a;
    vf even = z * -1.29073624e-5f - 2.72004516e-4f;
    vf odd = z * 1.01244802e-6f + 8.15286839e-5f;
    even = even * z - 5.83373243e-4f;
    odd = odd * z + 6.56914955e-4f;
    even = even * z + 5.01648895e-3f;
    odd = odd * z + 2.1625075e-3f;
    even = even * z + 9.94530246e-2f;
    odd = odd * z + 2.64071506e-2f;
    even = even * z + 1.0f;
    odd = odd * z + 0.19947207f;
    vf r = v_reciprocal(even + a * odd), r2 = r * r;
    return v_max(x, v_all(0)) - 0.5f * a * (r2 * r2);
}

/* The derivative of v_gelu: 1/2 + x P(x^2) / Q(x^2) within 3e-7, fitted by weighted least squares on [-5.8, 5.8],
 * beyond which it stays within 1.3e-7 of 0 and 1. */
LEATI_INLINE vf v_gelu_slope(vf x) {
    x = v_max(v_min(x, v_all(5.8f)), v_all(-5.8f));
    vf z = x * x;
    vf p = z * -2.78304844e-11f + 1.13514149e-8f;
    vf q = z * 2.96000508e-7f + 9.6004942e-6f;
    p = p * z + 8.70967995e-7f;
    p = p * z + 3.20913605e-5f;
    q = q * z + 2.35081548e-4f;
    p = p * z + 1.89977363e-4f;
    q = q * z + 3.88203259e-3f;
    p = p * z + 1.37808612e-2f;
    q = q * z + 4.36503142e-2f;
    p = p * z - 2.32975818e-2f;
    q = q * z + 0.304134011f;
    p = p * z + 0.797884583f;
    q = q * z + 1.0f;
    return 0.5f + x * p * v_reciprocal(q);
}

/* Returns (1 + tanh t) / 2 = 1 / (1 + e^-2t) with t = sqrt(2 / pi) (x + 0.044715 x^3): the factor of x in gelu's
 * approximation. */
LEATI_INLINE vf v_gelu_tanh_share(vf x) {
    vf twice = x * (x * x * (0.044715f * 1.5957691f) + 1.5957691f);
    return v_reciprocal(1.0f + v_exp(-twice));
}

/* log(1 + e^x) = max(x, 0) + log(1 + u) with u = e^-|x| in (0, 1]; log(1 + u) = 2 artanh(u / (2 + u)) by its
 * series. */
LEATI_INLINE vf v_softplus(vf x) {
    vf u = v_exp(-v_abs(x)), s = u / (2.0f + u), z = s * s;
    vf p = z * (1.0f / 15) + 1.0f / 13;
    p = p * z + 1.0f / 11;
    p = p * z + 1.0f / 9;
    p = p * z + 1.0f / 7;
    p = p * z + 1.0f / 5;
    p = p * z + 1.0f / 3;
    return v_max(x, v_all(0)) + 2.0f * (s + s * z * p);
}

#endif
