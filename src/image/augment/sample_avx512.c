/* SPDX-License-Identifier: Apache-2.0 */
/* Affine sampling with AVX-512: sixteen pixels of the result at a time, with masks at the end of a line and with all
 * rules at the border.  The operations and their order are those of the plain kernel, without fused multiplication and
 * addition, so that the results have the same bits.  Room: image. */
#include "image/augment/sample.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum { LANES = 16, HALVES = 2, HALF_LANES = 8, MOST_CHANNELS = 4 };

#define INLINE static inline __attribute__((always_inline))

/* Sixteen positions on one axis: the pixels before and after each, and the distance from the one before. */
typedef struct positions {
    __m512i before, after;
    __m512 distance;
    __mmask16 before_known, after_known; /* the others stand for the constant value */
    __mmask16 known;                     /* the others make the whole pixel the constant value */
    bool inside;                         /* each position lies between two pixels of the picture */
} positions;

/* ---- Positions ---- */

/* Returns the remainders of the division by `period`, all at least 0. */
INLINE __m512i modulo(__m512i index, int64_t period) {
    enum { DOWN = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC };
    const __m512d inverse = _mm512_set1_pd(1 / (double)period);
    const __m512i p = _mm512_set1_epi32((int)period);
    const __m512d low = _mm512_cvtepi32_pd(_mm512_castsi512_si256(index));
    const __m512d high = _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(index, 1));
    const __m256i quotient_low = _mm512_cvt_roundpd_epi32(_mm512_mul_pd(low, inverse), DOWN);
    const __m256i quotient_high = _mm512_cvt_roundpd_epi32(_mm512_mul_pd(high, inverse), DOWN);
    const __m512i quotient = _mm512_inserti64x4(_mm512_castsi256_si512(quotient_low), quotient_high, 1);
    __m512i rest = _mm512_sub_epi32(index, _mm512_mullo_epi32(quotient, p));
    /* The rounding of the product may have made the quotient too large or too small by 1. */
    rest = _mm512_mask_add_epi32(rest, _mm512_movepi32_mask(rest), rest, p);
    return _mm512_mask_sub_epi32(rest, _mm512_cmpge_epi32_mask(rest, p), rest, p);
}

/* Does what fix_index of the plain kernel does.  Clears the bits of lanes that stand for the constant value; their
 * index becomes that of some pixel. */
INLINE __m512i fix_index(__m512i index, int64_t length, const leati_sampling *sampling, __mmask16 *known) {
    const __m512i last = _mm512_set1_epi32((int)length - 1), zero = _mm512_setzero_si512();
    const __mmask16 low = _mm512_cmplt_epi32_mask(index, zero), high = _mm512_cmpgt_epi32_mask(index, last);
    const __m512i nearest = _mm512_min_epi32(_mm512_max_epi32(index, zero), last);
    if (sampling->scipy) {
        const int second = length < 2 ? 0 : 1;
        index = _mm512_mask_mov_epi32(index, low, _mm512_set1_epi32(second));
        return _mm512_mask_mov_epi32(index, high, _mm512_set1_epi32((int)length - 1 - second));
    }
    switch (sampling->fill) {
    case LEATI_FILL_CONSTANT: *known = (__mmask16) ~(low | high); break;
    case LEATI_FILL_NEAREST: break;
    case LEATI_FILL_WRAP: return modulo(index, length);
    case LEATI_FILL_REFLECT: {
        const __m512i rest = modulo(index, 2 * length);
        return _mm512_min_epi32(rest, _mm512_sub_epi32(_mm512_set1_epi32((int)(2 * length - 1)), rest));
    }
    }
    return nearest;
}

INLINE __m512d truncated_quotient(__m512d a, __m512d b) {
    return _mm512_roundscale_pd(_mm512_div_pd(a, b), _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}

/* Does what move_inside of the plain kernel does with LEATI_FILL_WRAP, to positions of the lanes low and high. */
INLINE __m512d wrap(__m512d p, __mmask8 low, __mmask8 high, int64_t length) {
    const __m512d last = _mm512_set1_pd((double)(length - 1)), one = _mm512_set1_pd(1);
    const __m512d periods =
        _mm512_add_pd(truncated_quotient(_mm512_sub_pd(_mm512_setzero_pd(), p), last), one);
    if (length < 2) return _mm512_setzero_pd();
    const __m512d raised = _mm512_mask_add_pd(p, low, p, _mm512_mul_pd(last, periods));
    return _mm512_mask_sub_pd(raised, high, p, _mm512_mul_pd(last, truncated_quotient(p, last)));
}

/* The same with LEATI_FILL_REFLECT. */
INLINE __m512d reflect(__m512d p, __mmask8 low, __mmask8 high, int64_t length) {
    const __m512d size = _mm512_set1_pd((double)length), twice = _mm512_set1_pd(2 * (double)length);
    const __m512d one = _mm512_set1_pd(1), zero = _mm512_setzero_pd(), negative = _mm512_sub_pd(zero, p);
    if (length < 2) return _mm512_mask_mov_pd(p, low | high, zero);
    const __mmask8 far = _mm512_mask_cmp_pd_mask(low, p, _mm512_sub_pd(zero, twice), _CMP_LT_OQ);
    __m512d raised = _mm512_mask_add_pd(p, far, _mm512_mul_pd(twice, truncated_quotient(negative, twice)), p);
    const __mmask8 beyond = _mm512_cmp_pd_mask(raised, _mm512_sub_pd(zero, size), _CMP_LT_OQ);
    raised = _mm512_mask_add_pd(_mm512_sub_pd(_mm512_sub_pd(zero, raised), one), beyond, raised, twice);
    __m512d lowered = _mm512_sub_pd(p, _mm512_mul_pd(twice, truncated_quotient(p, twice)));
    lowered = _mm512_mask_sub_pd(lowered, _mm512_cmp_pd_mask(lowered, size, _CMP_GE_OQ),
                                 _mm512_sub_pd(twice, lowered), one);
    return _mm512_mask_mov_pd(_mm512_mask_mov_pd(p, low, raised), high, lowered);
}

/* Does what move_inside of the plain kernel does; returns the lanes for which it returns true. */
INLINE __mmask8 move_inside(__m512d *position, int64_t length, leati_fill fill) {
    const __m512d last = _mm512_set1_pd((double)(length - 1)), zero = _mm512_setzero_pd(), p = *position;
    const __mmask8 low = _mm512_cmp_pd_mask(p, zero, _CMP_LT_OQ);
    const __mmask8 high = _mm512_cmp_pd_mask(p, last, _CMP_GT_OQ);
    if (!(low | high)) return 0xff;
    switch (fill) {
    case LEATI_FILL_NEAREST: *position = _mm512_min_pd(_mm512_max_pd(p, zero), last); break;
    case LEATI_FILL_CONSTANT: return (__mmask8) ~(low | high);
    case LEATI_FILL_WRAP: *position = wrap(p, low, high, length); break;
    case LEATI_FILL_REFLECT: *position = reflect(p, low, high, length); break;
    }
    return _mm512_cmp_pd_mask(*position, _mm512_set1_pd(-1), _CMP_GT_OQ);
}

/* Computes base + step * (x + lane), and the pixels around. */
INLINE positions find(const leati_sampling *sampling, double base, double step, int64_t x, int64_t length) {
    const __m512d lanes = _mm512_setr_pd(0, 1, 2, 3, 4, 5, 6, 7), limit = _mm512_set1_pd(1e9);
    const bool nearest = sampling->order == 0;
    __m512d at[HALVES], floor[HALVES];
    unsigned known = 0;
    positions out;
    for (int h = 0; h < HALVES; ++h) {
        const __m512d column = _mm512_add_pd(_mm512_set1_pd((double)(x + h * HALF_LANES)), lanes);
        const __m512d p = _mm512_add_pd(_mm512_set1_pd(base), _mm512_mul_pd(_mm512_set1_pd(step), column));
        /* Of two operands, one of which is no number, the second is the maximum. */
        at[h] = _mm512_min_pd(_mm512_max_pd(p, _mm512_sub_pd(_mm512_setzero_pd(), limit)), limit);
        const __mmask8 moved = sampling->scipy ? move_inside(&at[h], length, sampling->fill) : 0xff;
        known |= (unsigned)moved << (h * HALF_LANES);
        if (nearest) at[h] = _mm512_add_pd(at[h], _mm512_set1_pd(0.5));
        floor[h] = _mm512_floor_pd(at[h]);
    }
    out.before = _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvttpd_epi32(floor[0])),
                                    _mm512_cvttpd_epi32(floor[1]), 1);
    out.distance = _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(_mm512_sub_pd(at[0], floor[0]))),
                                      _mm512_cvtpd_ps(_mm512_sub_pd(at[1], floor[1])), 1);
    out.after = _mm512_add_epi32(out.before, _mm512_set1_epi32(1));
    out.known = (__mmask16)known;
    out.before_known = out.after_known = 0xffff;
    /* Without a sign, an index below 0 is beyond the last pixel. */
    out.inside = _mm512_cmpge_epu32_mask(out.before, _mm512_set1_epi32((int)length - 1)) == 0;
    if (!out.inside) {
        out.before = fix_index(out.before, length, sampling, &out.before_known);
        out.after = fix_index(out.after, length, sampling, &out.after_known);
    }
    return out;
}

/* ---- Pixels ---- */

/* The pixels around each position: upper left, upper right, lower left, lower right; of the nearest pixel alone, the
 * first. */
typedef struct corners {
    __m512i at[4];      /* bytes of the pixel; or the index of its first float */
    __mmask16 known[4]; /* if not all_known: the others have the constant value */
    bool all_known;
} corners;

/* Loads eight bytes at each of sixteen offsets.  Returns the first four bytes of each, and in *next four bytes from
 * `shift` bits on. */
INLINE __m512i gather_pairs(const unsigned char *from, __m512i at, int shift, __m512i *next) {
    const __m512i low = _mm512_i32gather_epi64(_mm512_castsi512_si256(at), from, 1);
    const __m512i high = _mm512_i32gather_epi64(_mm512_extracti64x4_epi64(at, 1), from, 1);
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const unsigned bits = (unsigned)shift;
    *next = _mm512_permutex2var_epi32(_mm512_srli_epi64(low, bits), even, _mm512_srli_epi64(high, bits));
    return _mm512_permutex2var_epi32(low, even, high);
}

INLINE corners find_corners(const leati_sample_job *job, const positions *x, const positions *y, int channels,
                            bool bytes) {
    const __m512i width = _mm512_set1_epi32((int)job->width), size = _mm512_set1_epi32(channels);
    const __m512i upper = _mm512_mullo_epi32(y->before, width), lower = _mm512_mullo_epi32(y->after, width);
    const __mmask16 known[4] = {x->before_known & y->before_known, x->after_known & y->before_known,
                                x->before_known & y->after_known, x->after_known & y->after_known};
    corners c = {.at[0] = _mm512_mullo_epi32(_mm512_add_epi32(upper, x->before), size)};
    c.all_known = (known[0] & known[1] & known[2] & known[3]) == 0xffff;
    if (bytes && job->sampling.order == 1 && x->inside && y->inside) {
        const unsigned char *second = job->bytes + job->width * channels;
        const __m512i at = c.at[0];
        c.at[0] = gather_pairs(job->bytes, at, 8 * channels, &c.at[1]);
        c.at[2] = gather_pairs(second, at, 8 * channels, &c.at[3]);
        return c;
    }
    c.at[1] = _mm512_mullo_epi32(_mm512_add_epi32(upper, x->after), size);
    c.at[2] = _mm512_mullo_epi32(_mm512_add_epi32(lower, x->before), size);
    c.at[3] = _mm512_mullo_epi32(_mm512_add_epi32(lower, x->after), size);
    for (int k = 0; k < (job->sampling.order == 0 ? 1 : 4); ++k) {
        c.known[k] = known[k];
        if (bytes) c.at[k] = _mm512_i32gather_epi32(c.at[k], job->bytes, 1);
    }
    return c;
}

/* Returns one channel of the pixels at corner k. */
INLINE __m512 read(const leati_sample_job *job, const corners *c, int k, int channel, bool bytes) {
    __m512 value;
    if (bytes) {
        const __m512i shifted = _mm512_srli_epi32(c->at[k], 8 * (unsigned)channel);
        value = _mm512_cvtepi32_ps(_mm512_and_si512(shifted, _mm512_set1_epi32(255)));
    } else {
        value = _mm512_i32gather_ps(c->at[k], job->floats + channel, 4);
    }
    return c->all_known ? value : _mm512_mask_mov_ps(_mm512_set1_ps(job->sampling.value), c->known[k], value);
}

INLINE __m512 mix(__m512 a, __m512 b, __m512 weight_a, __m512 weight_b) {
    return _mm512_add_ps(_mm512_mul_ps(a, weight_a), _mm512_mul_ps(b, weight_b));
}

/* Where the values of sixteen pixels come from, for each vector of the result: the number of the pixel, plus 16 for the
 * second channel; and the lanes of the third and the fourth channel. */
typedef struct layout {
    __m512i from[MOST_CHANNELS];
    __mmask16 lanes[MOST_CHANNELS][MOST_CHANNELS];
} layout;

static layout lay_out(int channels) {
    layout l = {0};
    for (int k = 0; k < channels; ++k) {
        int from[LANES];
        for (int i = 0; i < LANES; ++i) {
            const int value = k * LANES + i, channel = value % channels;
            from[i] = value / channels + (channel == 1 ? LANES : 0);
            l.lanes[k][channel] |= (__mmask16)(1u << i);
        }
        l.from[k] = _mm512_loadu_si512(from);
    }
    return l;
}

/* Writes the first pixels of sixteen, whose channels are in one vector each. */
INLINE void write_pixels(float *dst, const __m512 *values, const layout *l, int channels, int64_t pixels) {
    for (int k = 0; k < channels; ++k) {
        const int64_t left = pixels * channels - k * LANES;
        const __mmask16 mask = left >= LANES ? 0xffff : left > 0 ? (__mmask16)((1u << left) - 1) : 0;
        __m512 out = values[0];
        if (channels > 1) out = _mm512_permutex2var_ps(out, l->from[k], values[1]);
        for (int c = 2; c < channels; ++c)
            out = _mm512_mask_permutexvar_ps(out, l->lanes[k][c], l->from[k], values[c]);
        _mm512_mask_storeu_ps(dst + k * LANES, mask, out);
    }
}

/* Computes up to sixteen pixels; `channels` and `bytes` are constants of the caller. */
INLINE void sample_sixteen(const leati_sample_job *job, const positions *x, const positions *y,
                           const layout *l, float *dst, int64_t pixels, int channels, bool bytes) {
    const __m512 one = _mm512_set1_ps(1);
    const __m512 gx = _mm512_sub_ps(one, x->distance), gy = _mm512_sub_ps(one, y->distance);
    const corners around = find_corners(job, x, y, channels, bytes);
    const __mmask16 known = x->known & y->known;
    __m512 result[MOST_CHANNELS];
    for (int c = 0; c < channels; ++c) {
        result[c] = read(job, &around, 0, c, bytes);
        if (job->sampling.order == 1) {
            const __m512 upper = mix(result[c], read(job, &around, 1, c, bytes), gx, x->distance);
            const __m512 lower =
                mix(read(job, &around, 2, c, bytes), read(job, &around, 3, c, bytes), gx, x->distance);
            result[c] = mix(upper, lower, gy, y->distance);
        }
        if (known != 0xffff)
            result[c] = _mm512_mask_mov_ps(_mm512_set1_ps(job->sampling.value), known, result[c]);
    }
    write_pixels(dst, result, l, channels, pixels);
}

INLINE void sample_all(const leati_sample_job *job, int channels, bool bytes) {
    const leati_affine *a = &job->affine;
    const leati_sampling *s = &job->sampling;
    const layout l = lay_out(channels);
    for (int64_t y = 0; y < job->dst_height; ++y) {
        const double base_x = a->x[2] + a->x[1] * (double)y, base_y = a->y[2] + a->y[1] * (double)y;
        for (int64_t x = 0; x < job->dst_width; x += LANES) {
            const positions px = find(s, base_x, a->x[0], x, job->width);
            const positions py = find(s, base_y, a->y[0], x, job->height);
            const int64_t left = job->dst_width - x;
            sample_sixteen(job, &px, &py, &l, job->dst + (y * job->dst_width + x) * channels,
                           left < LANES ? left : LANES, channels, bytes);
        }
    }
}

void leati_sample_avx512(const leati_sample_job *job) {
    const bool fits = job->width * job->height < INT32_MAX / 16; /* offsets have 32 bits */
    if (fits && job->bytes && job->channels == 3)
        sample_all(job, 3, true);
    else if (fits && job->bytes && job->channels == 1)
        sample_all(job, 1, true);
    else if (fits && job->bytes && job->channels == 4)
        sample_all(job, 4, true);
    else if (fits && !job->bytes && job->channels == 3)
        sample_all(job, 3, false);
    else if (fits && !job->bytes && job->channels == 1)
        sample_all(job, 1, false);
    else
        leati_sample_plain(job);
}
#endif
