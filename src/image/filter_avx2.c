/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of a resize with AVX2.  A weight w is high * 2^12 + low, and vpmaddwd sums the products of two pixels
 * with two weights of 16 bits exactly, so that the results are those of the plain kernels.  Room: image. */
#include "image/filter.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

enum { HALF = 1 << (LEATI_WEIGHT_BITS - 1) };

/* Adds the sums of high and low products, rounds and shifts. */
static inline __m256i combine(__m256i low, __m256i high) {
    const __m256i sum = _mm256_add_epi32(low, _mm256_slli_epi32(high, LEATI_WEIGHT_LOW_BITS));
    return _mm256_srai_epi32(sum, LEATI_WEIGHT_BITS);
}

/* ---- Horizontal: two output pixels at a time, one in each lane of 128 bits ---- */

enum { BLOCK = 16, MOST_PAIRS = 64 };

/* Returns the order in which the bytes of a lane give the taps 0 and 1 (or 2 and 3) of each channel as 16 bits. */
static inline __m256i pair_mask(int channels, int tap) {
    unsigned char mask[32];
    memset(mask, 0x80, sizeof mask);
    for (int c = 0; c < channels; ++c)
        for (int k = 0; k < 2; ++k)
            mask[4 * c + 2 * k] = mask[16 + 4 * c + 2 * k] = (unsigned char)((tap + k) * channels + c);
    return _mm256_loadu_si256((const __m256i *)(const void *)mask);
}

/* Two output pixels: their first bytes in a line, the distance from there to their last tap, and the weights of each
 * pair of taps in all four 32 bits of a lane. */
typedef struct couple {
    int64_t from[2], last[2], pairs;
    __m256i low[MOST_PAIRS], high[MOST_PAIRS];
} couple;

/* Returns the weights of a pair of taps of the outputs x and x + 1. */
static inline __m256i spread(const int16_t *weights) {
    long long two = 0;
    memcpy(&two, weights, sizeof two);
    return _mm256_permutevar8x32_epi32(_mm256_set1_epi64x(two), _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
}

static inline void prepare(couple *p, const leati_weights *w, int64_t x, int64_t pairs, int channels) {
    const int64_t second = x + 1 < w->outputs ? x + 1 : x;
    const int32_t most = w->count[x] > w->count[second] ? w->count[x] : w->count[second];
    p->from[0] = (int64_t)w->first[x] * channels;
    p->from[1] = (int64_t)w->first[second] * channels;
    p->last[0] = (int64_t)w->count[x] * channels;
    p->last[1] = (int64_t)w->count[second] * channels;
    p->pairs = most / 2 + most % 2;
    const int64_t count = pairs > 0 ? pairs : p->pairs;
    for (int64_t k = 0; k < count; ++k) {
        const int64_t at = leati_weight_index(w, x, 2 * k);
        p->low[k] = spread(w->low + at);
        p->high[k] = spread(w->high + at);
    }
}

/* Loads 16 bytes of both pixels.  Behind the last tap of a pixel any bytes will do, because the weights are zeros. */
static inline __m256i load_couple(const unsigned char *line, const couple *p, int64_t offset, bool is_far) {
    const int64_t at0 = is_far && offset > p->last[0] ? p->last[0] : offset;
    const int64_t at1 = is_far && offset > p->last[1] ? p->last[1] : offset;
    const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(line + p->from[0] + at0));
    const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(line + p->from[1] + at1));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(a), b, 1);
}

/* The shuffles for a number of channels: of the taps 0 and 1, of the taps 2 and 3, and of the results. */
typedef struct shuffles {
    __m256i taps[2];
    __m128i result; /* the first bytes of two 32 bits, without gaps */
} shuffles;

static shuffles describe_shuffles(int channels) {
    unsigned char bytes[16];
    memset(bytes, 0x80, sizeof bytes);
    for (int i = 0; i < 2 * channels; ++i) bytes[i] = (unsigned char)(4 * (i / channels) + i % channels);
    return (shuffles){{pair_mask(channels, 0), pair_mask(channels, 2)},
                      _mm_loadu_si128((const __m128i *)(const void *)bytes)};
}

/* Returns the channels of the two pixels in the first bytes.  `pairs` is a constant, or 0 for the number of the
 * couple. */
static inline __attribute__((always_inline)) __m128i
sum_couple(const unsigned char *line, const couple *p, int64_t pairs, int channels, const shuffles *s) {
    const int64_t count = pairs > 0 ? pairs : p->pairs;
    __m256i low = _mm256_set1_epi32(HALF), high = _mm256_setzero_si256(), bytes = high;
    for (int64_t k = 0; k < count; ++k) {
        if (k % 2 == 0) bytes = load_couple(line, p, 2 * k * channels, pairs == 0);
        const __m256i taps = _mm256_shuffle_epi8(bytes, s->taps[k % 2]);
        low = _mm256_add_epi32(low, _mm256_madd_epi16(taps, p->low[k]));
        high = _mm256_add_epi32(high, _mm256_madd_epi16(taps, p->high[k]));
    }
    const __m256i words = _mm256_packs_epi32(combine(low, high), low),
                  all = _mm256_packus_epi16(words, words);
    const __m128i both = _mm_unpacklo_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
    return _mm_shuffle_epi8(both, s->result);
}

/* Computes two output pixels of some lines. */
static inline __attribute__((always_inline)) void sum_lines(const leati_pass_job *job, int64_t top, int64_t x,
                                                            int64_t pairs, int channels, const shuffles *s) {
    const int64_t src_line = job->src_line, dst_line = job->dst_line, left = job->weights->outputs - x;
    const int64_t count = job->lines - top < BLOCK ? job->lines - top : BLOCK;
    const bool is_inside = left * channels >= 8; /* bytes behind the two pixels are written later */
    const size_t bytes = (left < 2 ? 1 : 2) * (size_t)channels;
    const unsigned char *from = job->src + top * src_line;
    unsigned char *to = job->dst + top * dst_line + x * channels;
    couple p;
    prepare(&p, job->weights, x, pairs, channels);
    for (int64_t y = 0; y < count; ++y, from += src_line, to += dst_line) {
        const int64_t both = _mm_cvtsi128_si64(sum_couple(from, &p, pairs, channels, s));
        if (is_inside)
            memcpy(to, &both, sizeof both);
        else
            memcpy(to, &both, bytes);
    }
}

/* Goes over blocks of lines, so that a couple is prepared once for all lines of a block. */
static inline __attribute__((always_inline)) void horizontal(const leati_pass_job *job, int channels,
                                                             int64_t pairs) {
    const shuffles s = describe_shuffles(channels);
    for (int64_t top = 0; top < job->lines; top += BLOCK)
        for (int64_t x = 0; x < job->weights->outputs; x += 2) sum_lines(job, top, x, pairs, channels, &s);
}

/* Makes the number of pairs a constant where it is small. */
static inline __attribute__((always_inline)) void horizontal_by_pairs(const leati_pass_job *job, int channels,
                                                                      int64_t pairs) {
    switch (pairs) {
    case 1: horizontal(job, channels, 1); break;
    case 2: horizontal(job, channels, 2); break;
    case 3: horizontal(job, channels, 3); break;
    default: horizontal(job, channels, 0);
    }
}

static int64_t count_pairs(const leati_weights *w) {
    int64_t most = 1;
    for (int64_t x = 0; x < w->outputs; ++x)
        if (w->count[x] > most) most = w->count[x];
    return (most + 1) / 2;
}

void leati_pass_horizontal_avx2(const leati_pass_job *job) {
    const int64_t pairs = count_pairs(job->weights);
    switch (pairs > MOST_PAIRS ? 0 : job->channels) {
    case 1: horizontal_by_pairs(job, 1, pairs); break;
    case 3: horizontal_by_pairs(job, 3, pairs); break;
    case 4: horizontal_by_pairs(job, 4, pairs); break;
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

/* Returns the weights k and k + 1 of output y in each 32 bits. */
static inline __m256i two_weights(const int16_t *weights, const leati_weights *w, int64_t y, int64_t k) {
    int two = 0;
    memcpy(&two, weights + leati_weight_index(w, y, k), sizeof two);
    return _mm256_set1_epi32(two);
}

/* Computes 32 bytes of an output line. */
static inline __m256i sum_columns(const leati_pass_job *job, int64_t y, const unsigned char *from) {
    const leati_weights *w = job->weights;
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
        add_lines(&s, a, b, two_weights(w->low, w, y, i), two_weights(w->high, w, y, i));
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
