/* SPDX-License-Identifier: Apache-2.0 */
/* Affine sampling with AVX2: eight pixels of the result at a time, as long as all of them lie between pixels of the
 * input, or beyond a border that repeats its pixels; the plain kernel computes the others.  The operations and their
 * order are those of the plain kernel, without fused multiplication and addition, so that the results have the same
 * bits.  Room: image. */
#include "image/augment/sample.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum { LANES = 8 };

/* Eight positions on one axis: the pixel before, and the distance from it. */
typedef struct positions {
    __m256i before;
    __m256 distance;
} positions;

/* Moves positions beyond the border to it, as LEATI_FILL_NEAREST with scipy's rules does.  The last pixel becomes the
 * second one of a pair, with all of the weight. */
static inline void clamp(__m256d *at, __m256d *floor, __m256d last) {
    *at = _mm256_min_pd(_mm256_max_pd(*at, _mm256_setzero_pd()), last);
    *floor = _mm256_min_pd(_mm256_floor_pd(*at), _mm256_sub_pd(last, _mm256_set1_pd(1)));
}

/* Computes base + step * (x + lane).  `last`: the last position, to which positions are moved; 0: they are not. */
static inline positions find(double base, double step, int64_t x, int64_t last) {
    const __m256d lanes = _mm256_setr_pd(0, 1, 2, 3), first = _mm256_set1_pd((double)x);
    const __m256d b = _mm256_set1_pd(base), s = _mm256_set1_pd(step);
    __m256d at0 = _mm256_add_pd(b, _mm256_mul_pd(s, _mm256_add_pd(first, lanes)));
    __m256d at1 =
        _mm256_add_pd(b, _mm256_mul_pd(s, _mm256_add_pd(first, _mm256_add_pd(lanes, _mm256_set1_pd(4)))));
    __m256d floor0 = _mm256_floor_pd(at0), floor1 = _mm256_floor_pd(at1);
    positions out;
    if (last > 0) {
        clamp(&at0, &floor0, _mm256_set1_pd((double)last));
        clamp(&at1, &floor1, _mm256_set1_pd((double)last));
    }
    out.before = _mm256_set_m128i(_mm256_cvttpd_epi32(floor1), _mm256_cvttpd_epi32(floor0));
    out.distance = _mm256_set_m128(_mm256_cvtpd_ps(_mm256_sub_pd(at1, floor1)),
                                   _mm256_cvtpd_ps(_mm256_sub_pd(at0, floor0)));
    return out;
}

/* Returns true if each position has a pixel on both sides.  A position that is too large for 32 bits has none. */
static inline bool are_inside(const positions *p, int64_t length) {
    const __m256i limit = _mm256_set1_epi32((int)(length - 1));
    const __m256i inside = _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_setzero_si256(), p->before),
                                               _mm256_cmpgt_epi32(limit, p->before));
    return _mm256_movemask_epi8(inside) == -1;
}

static inline __m256 mix(__m256 a, __m256 b, __m256 weight_a, __m256 weight_b) {
    return _mm256_add_ps(_mm256_mul_ps(a, weight_a), _mm256_mul_ps(b, weight_b));
}

/* The four neighbours' words of a pixel of bytes. */
typedef struct corners {
    __m256i word[4];
} corners;

/* Loads eight bytes at each of eight offsets.  Returns the first four bytes of each, and in *next four bytes from
 * `shift` bits on. */
static inline __m256i gather_pairs(const unsigned char *from, __m256i at, int shift, __m256i *next) {
    const __m256i order = _mm256_permute4x64_epi64(at, 0xd8); /* 0 1 4 5, then 2 3 6 7 */
    const long long *base = (const long long *)(const void *)from;
    const __m256i a = _mm256_i32gather_epi64(base, _mm256_castsi256_si128(order), 1);
    const __m256i b = _mm256_i32gather_epi64(base, _mm256_extracti128_si256(order, 1), 1);
    const __m256 a1 = _mm256_castsi256_ps(_mm256_srli_epi64(a, shift));
    const __m256 b1 = _mm256_castsi256_ps(_mm256_srli_epi64(b, shift));
    *next = _mm256_castps_si256(_mm256_shuffle_ps(a1, b1, 0x88));
    return _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0x88));
}

static inline corners gather_bytes(const leati_sample_job *job, __m256i offset, int channels) {
    const __m256i at = _mm256_mullo_epi32(offset, _mm256_set1_epi32(channels));
    corners c;
    c.word[0] = gather_pairs(job->bytes, at, 8 * channels, &c.word[1]);
    c.word[2] = gather_pairs(job->bytes + job->width * channels, at, 8 * channels, &c.word[3]);
    return c;
}

static inline __m256 byte_of(__m256i word, int channel) {
    const __m256i shifted = _mm256_srli_epi32(word, 8 * channel);
    return _mm256_cvtepi32_ps(_mm256_and_si256(shifted, _mm256_set1_epi32(255)));
}

static inline __m256 gather_float(const float *from, __m256i at) {
    return _mm256_i32gather_ps(from, at, 4);
}

/* Writes eight pixels of three channels, which are in one vector each. */
static inline void write_three(float *dst, const __m256 *c) {
    const __m256 r = _mm256_permutevar8x32_ps(c[0], _mm256_setr_epi32(0, 3, 6, 1, 4, 7, 2, 5));
    const __m256 g = _mm256_permutevar8x32_ps(c[1], _mm256_setr_epi32(5, 0, 3, 6, 1, 4, 7, 2));
    const __m256 b = _mm256_permutevar8x32_ps(c[2], _mm256_setr_epi32(2, 5, 0, 3, 6, 1, 4, 7));
    _mm256_storeu_ps(dst, _mm256_blend_ps(_mm256_blend_ps(r, g, 0x92), b, 0x24));
    _mm256_storeu_ps(dst + 8, _mm256_blend_ps(_mm256_blend_ps(r, g, 0x24), b, 0x49));
    _mm256_storeu_ps(dst + 16, _mm256_blend_ps(_mm256_blend_ps(r, g, 0x49), b, 0x92));
}

/* Writes eight pixels, each channel of which is in a vector. */
static inline void write_eight(float *dst, const __m256 *c, int channels) {
    float values[4][LANES];
    if (channels == 3) {
        write_three(dst, c);
        return;
    }
    for (int k = 0; k < channels; ++k) _mm256_storeu_ps(values[k], c[k]);
    for (int i = 0; i < LANES; ++i)
        for (int k = 0; k < channels; ++k) dst[i * channels + k] = values[k][i];
}

/* Computes eight pixels; `channels` is a constant of the caller. */
static inline void sample_eight(const leati_sample_job *job, const positions *x, const positions *y,
                                float *dst, int channels, bool bytes) {
    const __m256 one = _mm256_set1_ps(1);
    const __m256 gx = _mm256_sub_ps(one, x->distance), gy = _mm256_sub_ps(one, y->distance);
    const __m256i offset =
        _mm256_add_epi32(_mm256_mullo_epi32(y->before, _mm256_set1_epi32((int)job->width)), x->before);
    const __m256i at = _mm256_mullo_epi32(offset, _mm256_set1_epi32(channels));
    const int64_t line = job->width * channels;
    corners words = {0};
    __m256 result[4];
    if (bytes) words = gather_bytes(job, offset, channels);
    for (int c = 0; c < channels; ++c) {
        const float *from = bytes ? NULL : job->floats + c;
        const __m256 p00 = bytes ? byte_of(words.word[0], c) : gather_float(from, at);
        const __m256 p01 = bytes ? byte_of(words.word[1], c) : gather_float(from + channels, at);
        const __m256 p10 = bytes ? byte_of(words.word[2], c) : gather_float(from + line, at);
        const __m256 p11 = bytes ? byte_of(words.word[3], c) : gather_float(from + line + channels, at);
        const __m256 upper = mix(p00, p01, gx, x->distance), lower = mix(p10, p11, gx, x->distance);
        result[c] = mix(upper, lower, gy, y->distance);
    }
    write_eight(dst, result, channels);
}

static inline void sample_all(const leati_sample_job *job, int channels, bool bytes) {
    const leati_affine *a = &job->affine;
    const bool clamps = bytes && job->sampling.scipy && job->sampling.fill == LEATI_FILL_NEAREST &&
                        job->width > 1 && job->height > 1;
    const int64_t last_x = clamps ? job->width - 1 : 0, last_y = clamps ? job->height - 1 : 0;
    for (int64_t y = 0; y < job->dst_height; ++y) {
        const double base_x = a->x[2] + a->x[1] * (double)y, base_y = a->y[2] + a->y[1] * (double)y;
        int64_t x = 0;
        for (; x + LANES <= job->dst_width; x += LANES) {
            const positions px = find(base_x, a->x[0], x, last_x), py = find(base_y, a->y[0], x, last_y);
            if (are_inside(&px, job->width) && are_inside(&py, job->height))
                sample_eight(job, &px, &py, job->dst + (y * job->dst_width + x) * channels, channels, bytes);
            else
                leati_sample_span(job, y, x, LANES);
        }
        leati_sample_span(job, y, x, job->dst_width - x);
    }
}

void leati_sample_avx2(const leati_sample_job *job) {
    const bool fits = job->width * job->height < INT32_MAX / 16; /* offsets have 32 bits */
    if (job->sampling.order == 1 && fits && job->bytes && job->channels == 3)
        sample_all(job, 3, true);
    else if (job->sampling.order == 1 && fits && job->bytes && job->channels == 1)
        sample_all(job, 1, true);
    else if (job->sampling.order == 1 && fits && job->bytes && job->channels == 4)
        sample_all(job, 4, true);
    else if (job->sampling.order == 1 && fits && !job->bytes && job->channels == 3)
        sample_all(job, 3, false);
    else if (job->sampling.order == 1 && fits && !job->bytes && job->channels == 1)
        sample_all(job, 1, false);
    else
        leati_sample_plain(job);
}

/* ---- Bytes ---- */

/* Returns 16 values rounded to bytes, as 16 bits: 0 to 3, 8 to 11, 4 to 7, 12 to 15. */
static inline __m256i round_sixteen(const float *values) {
    const __m256 half = _mm256_set1_ps(0.5f), most = _mm256_set1_ps(255), zero = _mm256_setzero_ps();
    const __m256 a = _mm256_add_ps(_mm256_loadu_ps(values), half);
    const __m256 b = _mm256_add_ps(_mm256_loadu_ps(values + LANES), half);
    return _mm256_packs_epi32(_mm256_cvttps_epi32(_mm256_min_ps(_mm256_max_ps(a, zero), most)),
                              _mm256_cvttps_epi32(_mm256_min_ps(_mm256_max_ps(b, zero), most)));
}

int64_t leati_sample_round_avx2(unsigned char *dst, const float *values, int64_t count) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    int64_t i = 0;
    for (; i + 32 <= count; i += 32) {
        const __m256i bytes = _mm256_packus_epi16(round_sixteen(values + i), round_sixteen(values + i + 16));
        _mm256_storeu_si256((__m256i *)(void *)(dst + i), _mm256_permutevar8x32_epi32(bytes, order));
    }
    return i;
}
#endif
