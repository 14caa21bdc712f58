/* SPDX-License-Identifier: Apache-2.0 */
/* Products of one row with weights in bf16 or int8 (narrow.h) for x86-64 with AVX512_BF16 and AVX512_VNNI, which add
 * the products of a pair by one instruction.  Room: backends/native. */
#include <immintrin.h>

#include "backends/native/narrow/narrow.h"
#include "tensor/bfloat16.h"

#define LANES 16
#define FAST  static inline __attribute__((always_inline))

float leati_narrow_prepare_bf16(const float *a, int64_t depth, void *to) {
    uint16_t *out = to;
    int64_t k = 0;
    for (; k + LANES <= depth; k += LANES) {
        __m256bh low = _mm512_cvtneps_pbh(_mm512_loadu_ps(a + k));
        _mm256_storeu_si256((__m256i *)(void *)(out + k), (__m256i)low);
    }
    for (; k < depth; k++) out[k] = leati_bfloat16_of_float(a[k]);
    out[depth] = 0;
    return 1;
}

FAST void bf16_tile(const leati_narrow_job *job, const int vectors, const int sums) {
    __m512 acc[4][8];
    const int32_t *a = job->a;
    const uint16_t *w = job->w;
    int64_t pair = 0;
    for (int v = 0; v < vectors; v++) {
        acc[0][v] = _mm512_loadu_ps(job->start + v * LANES);
        for (int i = 1; i < sums; i++) acc[i][v] = _mm512_setzero_ps();
    }
    for (; pair + sums <= job->pairs; pair += sums)
        for (int i = 0; i < sums; i++, w += job->w_row) {
            __m512bh both = (__m512bh)_mm512_set1_epi32(*a++);
            for (int v = 0; v < vectors; v++)
                acc[i][v] =
                    _mm512_dpbf16_ps(acc[i][v], both, (__m512bh)_mm512_loadu_si512(w + v * 2 * LANES));
        }
    for (; pair < job->pairs; pair++, w += job->w_row) {
        __m512bh both = (__m512bh)_mm512_set1_epi32(*a++);
        for (int v = 0; v < vectors; v++)
            acc[0][v] = _mm512_dpbf16_ps(acc[0][v], both, (__m512bh)_mm512_loadu_si512(w + v * 2 * LANES));
    }
    for (int v = 0; v < vectors; v++) {
        for (int i = 1; i < sums; i++) acc[0][v] = _mm512_add_ps(acc[0][v], acc[i][v]);
        _mm512_storeu_ps(job->z + v * LANES, acc[0][v]);
    }
}

void leati_narrow_multiply_bf16(const leati_narrow_job *job) {
    switch (job->vectors) {
    case 8: bf16_tile(job, 8, 2); break;
    case 6: bf16_tile(job, 6, 2); break;
    case 4: bf16_tile(job, 4, 4); break;
    default: bf16_tile(job, 2, 4);
    }
}

FAST __m512i widened(const int8_t *from) {
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)from));
}

/* Sums at most LEATI_NARROW_PAIRS pairs. */
FAST void int8_tile(const leati_narrow_job *job, const float *start, int64_t first, int64_t pairs,
                    const int vectors, const int sums) {
    __m512i acc[4][8];
    const int32_t *a = (const int32_t *)job->a + first;
    const int8_t *w = (const int8_t *)job->w + first * job->w_row;
    int64_t pair = 0;
    for (int v = 0; v < vectors; v++)
        for (int i = 0; i < sums; i++) acc[i][v] = _mm512_setzero_si512();
    for (; pair + sums <= pairs; pair += sums)
        for (int i = 0; i < sums; i++, w += job->w_row) {
            __m512i both = _mm512_set1_epi32(*a++);
            for (int v = 0; v < vectors; v++)
                acc[i][v] = _mm512_dpwssd_epi32(acc[i][v], both, widened(w + v * 2 * LANES));
        }
    for (; pair < pairs; pair++, w += job->w_row) {
        __m512i both = _mm512_set1_epi32(*a++);
        for (int v = 0; v < vectors; v++)
            acc[0][v] = _mm512_dpwssd_epi32(acc[0][v], both, widened(w + v * 2 * LANES));
    }
    const __m512 scale = _mm512_set1_ps(job->a_scale);
    for (int v = 0; v < vectors; v++) {
        for (int i = 1; i < sums; i++) acc[0][v] = _mm512_add_epi32(acc[0][v], acc[i][v]);
        __m512 factor = _mm512_mul_ps(_mm512_loadu_ps(job->scales + v * LANES), scale);
        _mm512_storeu_ps(job->z + v * LANES, _mm512_fmadd_ps(_mm512_cvtepi32_ps(acc[0][v]), factor,
                                                             _mm512_loadu_ps(start + v * LANES)));
    }
}

static void multiply_int8(const leati_narrow_job *job, const float *start, int64_t first, int64_t pairs) {
    switch (job->vectors) {
    case 8: int8_tile(job, start, first, pairs, 8, 2); break;
    case 6: int8_tile(job, start, first, pairs, 6, 2); break;
    case 4: int8_tile(job, start, first, pairs, 4, 4); break;
    default: int8_tile(job, start, first, pairs, 2, 4);
    }
}

void leati_narrow_multiply_int8(const leati_narrow_job *job) {
    const float *start = job->start;
    int64_t first = 0;
    for (; job->pairs - first > LEATI_NARROW_PAIRS; first += LEATI_NARROW_PAIRS, start = job->z)
        multiply_int8(job, start, first, LEATI_NARROW_PAIRS);
    multiply_int8(job, start, first, job->pairs - first);
}
