/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of a resize with AVX-512, VBMI and VNNI.  As in filter_avx2.c a weight is high * 2^12 + low, and the
 * products of 16 bits are summed exactly, so that the results are those of the plain kernels.  Room: image. */
#include "image/filter.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <stdbool.h>

enum { HALF = 1 << (LEATI_WEIGHT_BITS - 1), LANES = 16, WINDOW = 64, BLOCK = 16, MOST_PAIRS = 6 };

/* ---- Horizontal: the channels of 16, 5 or 4 output pixels at a time, from 64 bytes of the input ---- */

/* One group of output pixels: where the bytes of each pair of taps are in the window, and their weights. */
typedef struct group {
    __m512i index[MOST_PAIRS], low[MOST_PAIRS], high[MOST_PAIRS];
} group;

/* The pixel and the channel of each of the 16 lanes. */
typedef struct lanes {
    __m512i pixel, channel;
    int channels, pixels;
} lanes;

static lanes describe_lanes(int channels) {
    int pixel[LANES], channel[LANES];
    for (int i = 0; i < LANES; ++i) {
        pixel[i] = i / channels;
        channel[i] = i % channels;
    }
    return (lanes){_mm512_loadu_si512(pixel), _mm512_loadu_si512(channel), channels, LANES / channels};
}

static int64_t pixels_from(const leati_weights *w, const lanes *l, int64_t x) {
    return w->outputs - x < l->pixels ? w->outputs - x : l->pixels;
}

/* Returns the number of pairs of taps that each output needs; 0 if a group does not fit the window or the
 * registers. */
static int64_t count_pairs(const leati_weights *w, const lanes *l) {
    int64_t most = 1;
    for (int64_t x = 0; x < w->outputs; ++x)
        if (w->count[x] > most) most = w->count[x];
    if (most > 2 * MOST_PAIRS) return 0;
    for (int64_t x = 0; x < w->outputs; x += l->pixels) {
        const int64_t last = x + pixels_from(w, l, x) - 1;
        if ((w->first[last] - w->first[x] + most) * l->channels > WINDOW) return 0;
    }
    return (most + 1) / 2;
}

static inline __attribute__((always_inline)) void prepare(group *g, const leati_weights *w, const lanes *l,
                                                          int64_t x, int pairs) {
    const __m512i firsts = _mm512_permutexvar_epi32(l->pixel, _mm512_loadu_si512(w->first + x));
    const __m512i distance = _mm512_sub_epi32(firsts, _mm512_set1_epi32(w->first[x]));
    const __m512i at =
        _mm512_add_epi32(_mm512_mullo_epi32(distance, _mm512_set1_epi32(l->channels)), l->channel);
    const __m512i next = _mm512_slli_epi32(_mm512_add_epi32(at, _mm512_set1_epi32(l->channels)), 16);
    for (int k = 0; k < pairs; ++k) {
        const int64_t weights = leati_weight_index(w, x, 2 * k);
        g->index[k] =
            _mm512_add_epi8(_mm512_or_si512(at, next), _mm512_set1_epi8((char)(2 * k * l->channels)));
        g->low[k] = _mm512_permutexvar_epi32(l->pixel, _mm512_loadu_si512(w->low + weights));
        g->high[k] = _mm512_permutexvar_epi32(l->pixel, _mm512_loadu_si512(w->high + weights));
    }
}

/* Computes one group of a line: bytes of the window become 16 bits, and the sum of the high products takes the
 * rounding and the low products in. */
static inline __attribute__((always_inline)) __m128i sum_group(const group *g, __m512i window,
                                                               __m512i first_bytes, int pairs) {
    const __mmask64 even = 0x5555555555555555;
    __m512i taps[MOST_PAIRS], sum = _mm512_set1_epi32(HALF >> LEATI_WEIGHT_LOW_BITS);
    for (int k = 0; k < pairs; ++k) {
        taps[k] = _mm512_maskz_permutexvar_epi8(even, g->index[k], window);
        sum = _mm512_dpwssd_epi32(sum, taps[k], g->high[k]);
    }
    sum = _mm512_slli_epi32(sum, LEATI_WEIGHT_LOW_BITS);
    for (int k = 0; k < pairs; ++k) sum = _mm512_dpwssd_epi32(sum, taps[k], g->low[k]);
    sum = _mm512_max_epi32(_mm512_srai_epi32(sum, LEATI_WEIGHT_BITS), _mm512_setzero_si512());
    sum = _mm512_min_epi32(sum, _mm512_set1_epi32(255));
    return _mm512_castsi512_si128(_mm512_permutexvar_epi8(first_bytes, sum));
}

/* Goes over blocks of lines, so that a group is prepared once for all lines of a block. */
static inline __attribute__((always_inline)) void horizontal(const leati_pass_job *job, const lanes *l,
                                                             int pairs) {
    const leati_weights *w = job->weights;
    const int64_t src_line = job->src_line, dst_line = job->dst_line;
    const __m512i first_bytes =
        _mm512_castsi128_si512(_mm_setr_epi8(0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60));
    for (int64_t top = 0; top < job->lines; top += BLOCK) {
        const int64_t count = job->lines - top < BLOCK ? job->lines - top : BLOCK;
        for (int64_t x = 0; x < w->outputs; x += l->pixels) {
            const __mmask16 mask = (__mmask16)((1u << (pixels_from(w, l, x) * l->channels)) - 1);
            const unsigned char *from = job->src + top * src_line + (int64_t)w->first[x] * l->channels;
            unsigned char *to = job->dst + top * dst_line + x * l->channels;
            group g;
            prepare(&g, w, l, x, pairs);
            for (int64_t y = 0; y < count; ++y, from += src_line, to += dst_line)
                _mm_mask_storeu_epi8(to, mask, sum_group(&g, _mm512_loadu_si512(from), first_bytes, pairs));
        }
    }
}

void leati_pass_horizontal_avx512(const leati_pass_job *job) {
    const bool is_known = job->channels == 1 || job->channels == 3 || job->channels == 4;
    const lanes l = describe_lanes(is_known ? job->channels : 1);
    switch (is_known ? count_pairs(job->weights, &l) : 0) {
    case 1: horizontal(job, &l, 1); break;
    case 2: horizontal(job, &l, 2); break;
    case 3: horizontal(job, &l, 3); break;
    case 4: horizontal(job, &l, 4); break;
    case 5: horizontal(job, &l, 5); break;
    case 6: horizontal(job, &l, 6); break;
    default: leati_pass_horizontal_avx2(job);
    }
}

/* ---- Vertical: 64 columns at a time, two lines at a time ---- */

typedef struct sums {
    __m512i low[4], high[4];
} sums;

/* Adds the products of 64 columns of two lines with two weights. */
static inline __attribute__((always_inline)) void add_lines(sums *s, __m512i a, __m512i b, __m512i low,
                                                            __m512i high) {
    const __m512i zero = _mm512_setzero_si512();
    const __m512i left = _mm512_unpacklo_epi8(a, b), right = _mm512_unpackhi_epi8(a, b);
    const __m512i columns[4] = {_mm512_unpacklo_epi8(left, zero), _mm512_unpackhi_epi8(left, zero),
                                _mm512_unpacklo_epi8(right, zero), _mm512_unpackhi_epi8(right, zero)};
    for (int k = 0; k < 4; ++k) {
        s->low[k] = _mm512_dpwssd_epi32(s->low[k], columns[k], low);
        s->high[k] = _mm512_dpwssd_epi32(s->high[k], columns[k], high);
    }
}

/* Returns the weights k and k + 1 of output y in each 32 bits. */
static inline __m512i two_weights(const int16_t *weights, const leati_weights *w, int64_t y, int64_t k) {
    int two = 0;
    __builtin_memcpy(&two, weights + leati_weight_index(w, y, k), sizeof two);
    return _mm512_set1_epi32(two);
}

static inline __m512i combine(const sums *s, int k) {
    const __m512i high = _mm512_slli_epi32(s->high[k], LEATI_WEIGHT_LOW_BITS);
    return _mm512_srai_epi32(_mm512_add_epi32(s->low[k], high), LEATI_WEIGHT_BITS);
}

/* Computes 64 bytes of an output line; reads the bytes of `mask` alone. */
static inline __attribute__((always_inline)) __m512i sum_columns(const leati_pass_job *job, int64_t y,
                                                                 const unsigned char *from, __mmask64 mask) {
    const leati_weights *w = job->weights;
    const int64_t count = w->count[y];
    sums s;
    for (int k = 0; k < 4; ++k) {
        s.low[k] = _mm512_set1_epi32(HALF);
        s.high[k] = _mm512_setzero_si512();
    }
    for (int64_t i = 0; i < count; i += 2) {
        const unsigned char *second = from + (i + 1 < count ? i + 1 : i) * job->src_line;
        const __m512i a = _mm512_maskz_loadu_epi8(mask, from + i * job->src_line);
        const __m512i b = _mm512_maskz_loadu_epi8(mask, second);
        add_lines(&s, a, b, two_weights(w->low, w, y, i), two_weights(w->high, w, y, i));
    }
    return _mm512_packus_epi16(_mm512_packs_epi32(combine(&s, 0), combine(&s, 1)),
                               _mm512_packs_epi32(combine(&s, 2), combine(&s, 3)));
}

void leati_pass_vertical_avx512(const leati_pass_job *job) {
    for (int64_t y = 0; y < job->lines; ++y) {
        const unsigned char *from = job->src + job->weights->first[y] * job->src_line;
        unsigned char *to = job->dst + y * job->dst_line;
        for (int64_t x = 0; x < job->line_bytes; x += WINDOW) {
            const int64_t left = job->line_bytes - x;
            const __mmask64 mask = left < WINDOW ? ~0ull >> (WINDOW - left) : ~0ull;
            _mm512_mask_storeu_epi8(to + x, mask, sum_columns(job, y, from + x, mask));
        }
    }
}
#endif
