/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of a resize with AVX2.  A weight w is high * 2^12 + low, and vpmaddwd sums the products of two pixels
 * with two weights of 16 bits exactly, so that the results are those of the plain kernels.  Room: image. */
#include "image/filter.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

enum { HALF = 1 << (LEATI_WEIGHT_BITS - 1) };

/* Adds the sums of high and low products, rounds and shifts. */
static inline __m256i combine(__m256i low, __m256i high) {
    const __m256i sum = _mm256_add_epi32(low, _mm256_slli_epi32(high, LEATI_WEIGHT_LOW_BITS));
    return _mm256_srai_epi32(sum, LEATI_WEIGHT_BITS);
}

/* ---- Horizontal: one output pixel at a time, four taps at a time ---- */

/* The bytes of four pixels become two lanes of pairs of 16 bits: pixels 0 and 1, then pixels 2 and 3. */
static inline __m256i pair_mask(int channels) {
    unsigned char mask[32];
    memset(mask, 0x80, sizeof mask);
    for (int lane = 0; lane < 2; ++lane)
        for (int c = 0; c < channels; ++c)
            for (int k = 0; k < 2; ++k)
                mask[16 * lane + 4 * c + 2 * k] = (unsigned char)((2 * lane + k) * channels + c);
    return _mm256_loadu_si256((const __m256i *)(const void *)mask);
}

/* Loads four weights: the first two into each pair of lane 0, the last two into each pair of lane 1. */
static inline __m256i load_weights(const int16_t *weights, __m256i spread) {
    long long four = 0;
    memcpy(&four, weights, sizeof four);
    return _mm256_shuffle_epi8(_mm256_set1_epi64x(four), spread);
}

static inline __m128i sum_pixel(const unsigned char *from, const leati_weights *w, int64_t x, int channels,
                                __m256i pairs, __m256i spread) {
    __m256i low = _mm256_zextsi128_si256(_mm_set1_epi32(HALF)), high = _mm256_setzero_si256();
    for (int64_t i = 0; i < w->count[x]; i += 4) {
        const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)(from + i * channels));
        const __m256i pixels = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), pairs);
        const __m256i l = load_weights(w->low + x * w->taps + i, spread);
        const __m256i h = load_weights(w->high + x * w->taps + i, spread);
        low = _mm256_add_epi32(low, _mm256_madd_epi16(pixels, l));
        high = _mm256_add_epi32(high, _mm256_madd_epi16(pixels, h));
    }
    const __m256i sum = _mm256_add_epi32(low, _mm256_slli_epi32(high, LEATI_WEIGHT_LOW_BITS));
    return _mm_srai_epi32(_mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1)),
                          LEATI_WEIGHT_BITS);
}

static inline void horizontal(const leati_pass_job *job, int channels) {
    const leati_weights *w = job->weights;
    const __m256i pairs = pair_mask(channels);
    const __m256i spread = _mm256_setr_epi8(0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 4, 5,
                                            6, 7, 4, 5, 6, 7, 4, 5, 6, 7);
    for (int64_t y = 0; y < job->lines; ++y)
        for (int64_t x = 0; x < w->outputs; ++x) {
            const unsigned char *from = job->src + y * job->src_line + (int64_t)w->first[x] * channels;
            __m128i sum = sum_pixel(from, w, x, channels, pairs, spread);
            sum = _mm_packs_epi32(sum, sum);
            const int pixel = _mm_cvtsi128_si32(_mm_packus_epi16(sum, sum));
            memcpy(job->dst + y * job->dst_line + x * channels, &pixel, (size_t)channels);
        }
}

void leati_pass_horizontal_avx2(const leati_pass_job *job) {
    switch (job->channels) {
    case 1: horizontal(job, 1); break;
    case 3: horizontal(job, 3); break;
    case 4: horizontal(job, 4); break;
    default: leati_pass_horizontal_plain(job);
    }
}

/* ---- Vertical: 32 columns at a time, two lines at a time ---- */

typedef struct sums {
    __m256i low[4], high[4];
} sums;

/* Adds the products of 32 columns of two lines with two weights. */
static inline void add_lines(sums *s, __m256i a, __m256i b, __m256i low, __m256i high) {
    const __m256i zero = _mm256_setzero_si256();
    const __m256i left = _mm256_unpacklo_epi8(a, b), right = _mm256_unpackhi_epi8(a, b);
    const __m256i columns[4] = {_mm256_unpacklo_epi8(left, zero), _mm256_unpackhi_epi8(left, zero),
                                _mm256_unpacklo_epi8(right, zero), _mm256_unpackhi_epi8(right, zero)};
    for (int k = 0; k < 4; ++k) {
        s->low[k] = _mm256_add_epi32(s->low[k], _mm256_madd_epi16(columns[k], low));
        s->high[k] = _mm256_add_epi32(s->high[k], _mm256_madd_epi16(columns[k], high));
    }
}

/* Returns two weights in each 32 bits. */
static inline __m256i two_weights(const int16_t *weights) {
    int two = 0;
    memcpy(&two, weights, sizeof two);
    return _mm256_set1_epi32(two);
}

/* Computes 32 bytes of an output line. */
static inline __m256i sum_columns(const leati_pass_job *job, int64_t y, const unsigned char *from) {
    const leati_weights *w = job->weights;
    const int16_t *low = w->low + y * w->taps, *high = w->high + y * w->taps;
    const int64_t count = w->count[y];
    sums s;
    for (int k = 0; k < 4; ++k) {
        s.low[k] = _mm256_set1_epi32(HALF);
        s.high[k] = _mm256_setzero_si256();
    }
    for (int64_t i = 0; i < count; i += 2) {
        const unsigned char *second = from + (i + 1 < count ? i + 1 : i) * job->src_line;
        const __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)(from + i * job->src_line));
        const __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)second);
        add_lines(&s, a, b, two_weights(low + i), two_weights(high + i));
    }
    const __m256i left = _mm256_packs_epi32(combine(s.low[0], s.high[0]), combine(s.low[1], s.high[1]));
    const __m256i right = _mm256_packs_epi32(combine(s.low[2], s.high[2]), combine(s.low[3], s.high[3]));
    return _mm256_packus_epi16(left, right);
}

void leati_pass_vertical_avx2(const leati_pass_job *job) {
    const leati_weights *w = job->weights;
    for (int64_t y = 0; y < job->lines; ++y) {
        const unsigned char *from = job->src + w->first[y] * job->src_line;
        unsigned char *to = job->dst + y * job->dst_line;
        for (int64_t x = 0; x < job->line_bytes; x += 32) {
            const __m256i line = sum_columns(job, y, from + x);
            unsigned char bytes[32];
            _mm256_storeu_si256((__m256i *)(void *)bytes, line);
            memcpy(to + x, bytes, job->line_bytes - x < 32 ? (size_t)(job->line_bytes - x) : 32);
        }
    }
}
#endif
