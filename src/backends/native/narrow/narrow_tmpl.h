/* SPDX-License-Identifier: Apache-2.0 */
/* Products of one row with weights in bf16 or int8 (narrow.h), for the code that is compiled once per instruction
 * set.  The sums of the columns stay in registers over the whole depth. */
#ifndef LEATI_BACKENDS_NATIVE_NARROW_NARROW_TMPL_H
#define LEATI_BACKENDS_NATIVE_NARROW_NARROW_TMPL_H

#include <math.h>

#include "backends/native/narrow/narrow.h"
#include "backends/native/simd/vector_tmpl.h"

typedef uint32_t vu_loose __attribute__((vector_size(LEATI_LANES * 4), aligned(1), may_alias));

/* ---- bf16 ---- */

static float narrow_prepare_f32(const float *a, int64_t depth, void *to) {
    float *out = to;
    memcpy(out, a, (size_t)depth * sizeof *out);
    out[depth] = 0;
    return 1;
}

/* The elements of a pair become floats by a shift and by a mask.  `sums` accumulators per element, where a single one
 * would wait for its own additions. */
LEATI_INLINE void narrow_bf16_tile(const leati_narrow_job *job, const int vectors, const int sums) {
    vf acc[4][8];
    const float *a = job->a;
    const uint16_t *w = job->w;
    int64_t pair = 0;
    for (int v = 0; v < vectors; v++) {
        acc[0][v] = v_load(job->start + v * LEATI_LANES);
        for (int i = 1; i < sums; i++) acc[i][v] = (vf){0};
    }
    for (; pair + sums <= job->pairs; pair += sums)
        for (int i = 0; i < sums; i++, a += 2, w += job->w_row) {
            vf first = v_all(a[0]), second = v_all(a[1]);
            for (int v = 0; v < vectors; v++) {
                vu two = *(const vu_loose *)(w + v * 2 * LEATI_LANES);
                acc[i][v] += first * (vf)(two << 16);
                acc[i][v] += second * (vf)(two & 0xffff0000u);
            }
        }
    for (; pair < job->pairs; pair++, a += 2, w += job->w_row)
        for (int v = 0; v < vectors; v++) {
            vu two = *(const vu_loose *)(w + v * 2 * LEATI_LANES);
            acc[0][v] += v_all(a[0]) * (vf)(two << 16);
            acc[0][v] += v_all(a[1]) * (vf)(two & 0xffff0000u);
        }
    for (int v = 0; v < vectors; v++) {
        for (int i = 1; i < sums; i++) acc[0][v] += acc[i][v];
        v_store(job->z + v * LEATI_LANES, acc[0][v]);
    }
}

static void narrow_multiply_bf16(const leati_narrow_job *job) {
    switch (job->vectors) {
    case 8: narrow_bf16_tile(job, 8, 1); break;
    case 6: narrow_bf16_tile(job, 6, 1); break;
    case 4: narrow_bf16_tile(job, 4, 2); break;
    default: narrow_bf16_tile(job, 2, 4);
    }
}

/* ---- int8 ---- */

/* Rounds the row to 16 bits.  Adding 1.5 * 2^23 leaves the rounded integer in the low bits of a float. */
static float narrow_prepare_int16(const float *a, int64_t depth, void *to) {
    const float shift = 12582912.0f;
    int16_t *out = to;
    vf largest = {0}, zeros = {0};
    int64_t k = 0;
    for (; k < depth; k += LEATI_LANES) {
        vf x = v_abs(v_load_part(a + k, depth - k));
        largest = v_max(x, largest);
        zeros += x * 0.0f; /* NaN where x is not finite */
    }
    float scale = v_sum(zeros) == 0 ? v_largest(largest) * (1.0f / 32767) : NAN;
    float factor = scale > 1e-37f ? 1 / scale : 0; /* the reciprocal of a subnormal scale is infinite */
    for (k = 0; k < depth; k += LEATI_LANES) {
        vf x = v_load_part(a + k, depth - k) * factor;
        vi whole = (vi)(x + shift) - (vi)v_all(shift);
        vh low = __builtin_convertvector((vu)whole, vh);
        int64_t left = depth - k < LEATI_LANES ? depth - k : LEATI_LANES;
        memcpy(out + k, &low, (size_t)left * sizeof *out);
    }
    out[depth] = 0;
    return scale;
}

#if defined(__AVX2__)
/* Adds the products of up to LEATI_NARROW_PAIRS pairs for 8 columns each of `count` vectors of integers. */
LEATI_INLINE void narrow_sum_int8(const int32_t *a, const int8_t *w, int64_t w_row, int64_t pairs,
                                  int32_t *sums, const int count) {
    __m256i acc[8];
    for (int v = 0; v < count; v++) acc[v] = _mm256_setzero_si256();
    for (int64_t pair = 0; pair < pairs; pair++, w += w_row) {
        __m256i both = _mm256_set1_epi32(a[pair]);
        for (int v = 0; v < count; v++) {
            __m256i right =
                _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(w + 16 * v)));
            acc[v] = _mm256_add_epi32(acc[v], _mm256_madd_epi16(both, right));
        }
    }
    for (int v = 0; v < count; v++) _mm256_storeu_si256((__m256i *)(void *)(sums + 8 * v), acc[v]);
}

static void narrow_sum(const void *a, const int8_t *w, int64_t w_row, int64_t pairs, int64_t columns,
                       int32_t *sums) {
    int64_t j = 0;
    for (; j + 64 <= columns; j += 64) narrow_sum_int8(a, w + 2 * j, w_row, pairs, sums + j, 8);
    for (; j < columns; j += 16) narrow_sum_int8(a, w + 2 * j, w_row, pairs, sums + j, 2);
}
#else
static void narrow_sum(const void *a, const int8_t *w, int64_t w_row, int64_t pairs, int64_t columns,
                       int32_t *sums) {
    const int16_t *two = a;
    memset(sums, 0, (size_t)columns * sizeof *sums);
    for (int64_t pair = 0; pair < pairs; pair++, w += w_row, two += 2)
        for (int64_t j = 0; j < columns; j++) sums[j] += two[0] * w[2 * j] + two[1] * w[2 * j + 1];
}
#endif

static void narrow_multiply_int8(const leati_narrow_job *job) {
    int32_t sums[8 * LEATI_LANES];
    const float *start = job->start;
    int64_t columns = job->vectors * LEATI_LANES, pair = 0, pairs;
    do { /* at least once, so that z is written */
        pairs = job->pairs - pair < LEATI_NARROW_PAIRS ? job->pairs - pair : LEATI_NARROW_PAIRS;
        narrow_sum((const int16_t *)job->a + 2 * pair, (const int8_t *)job->w + pair * job->w_row, job->w_row,
                   pairs, columns, sums);
        for (int64_t j = 0; j < columns; j += LEATI_LANES) {
            vi whole;
            memcpy(&whole, sums + j, sizeof whole);
            vf factor = v_load(job->scales + j) * job->a_scale;
            v_store(job->z + j, v_load(start + j) + __builtin_convertvector(whole, vf) * factor);
        }
        start = job->z;
        pair += pairs;
    } while (pair < job->pairs);
}

#endif
