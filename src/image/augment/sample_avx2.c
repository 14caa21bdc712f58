/* SPDX-License-Identifier: Apache-2.0 */
/* Affine sampling with AVX2: eight pixels of the result at a time, as long as all of them lie between pixels of the
 * input; the plain kernel computes the others.  The operations and their order are those of the plain kernel, without
 * fused multiplication and addition, so that the results have the same bits.  Room: image. */
#include "image/augment/sample.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum { LANES = 8 };

/* Eight positions on one axis: the pixel before, and the distance from it. */
typedef struct positions {
    __m256i before;
    __m256 distance;
} positions;

/* Computes base + step * (x + lane). */
static inline positions find(double base, double step, int64_t x) {
    const __m256d lanes = _mm256_setr_pd(0, 1, 2, 3), first = _mm256_set1_pd((double)x);
    const __m256d b = _mm256_set1_pd(base), s = _mm256_set1_pd(step);
    const __m256d at0 = _mm256_add_pd(b, _mm256_mul_pd(s, _mm256_add_pd(first, lanes)));
    const __m256d at1 =
        _mm256_add_pd(b, _mm256_mul_pd(s, _mm256_add_pd(first, _mm256_add_pd(lanes, _mm256_set1_pd(4)))));
    const __m256d floor0 = _mm256_floor_pd(at0), floor1 = _mm256_floor_pd(at1);
    positions out;
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

static inline corners gather_bytes(const leati_sample_job *job, __m256i offset, int channels) {
    const unsigned char *above = job->bytes, *below = above + job->width * channels;
    const __m256i at = _mm256_mullo_epi32(offset, _mm256_set1_epi32(channels));
    return (corners){{_mm256_i32gather_epi32((const int *)(const void *)above, at, 1),
                      _mm256_i32gather_epi32((const int *)(const void *)(above + channels), at, 1),
                      _mm256_i32gather_epi32((const int *)(const void *)below, at, 1),
                      _mm256_i32gather_epi32((const int *)(const void *)(below + channels), at, 1)}};
}

static inline __m256 byte_of(__m256i word, int channel) {
    const __m256i shifted = _mm256_srl_epi32(word, _mm_cvtsi32_si128(8 * channel));
    return _mm256_cvtepi32_ps(_mm256_and_si256(shifted, _mm256_set1_epi32(255)));
}

static inline __m256 gather_float(const float *from, __m256i at) {
    return _mm256_i32gather_ps(from, at, 4);
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
    float result[4][LANES];
    if (bytes) words = gather_bytes(job, offset, channels);
    for (int c = 0; c < channels; ++c) {
        const float *from = bytes ? NULL : job->floats + c;
        const __m256 p00 = bytes ? byte_of(words.word[0], c) : gather_float(from, at);
        const __m256 p01 = bytes ? byte_of(words.word[1], c) : gather_float(from + channels, at);
        const __m256 p10 = bytes ? byte_of(words.word[2], c) : gather_float(from + line, at);
        const __m256 p11 = bytes ? byte_of(words.word[3], c) : gather_float(from + line + channels, at);
        const __m256 upper = mix(p00, p01, gx, x->distance), lower = mix(p10, p11, gx, x->distance);
        _mm256_storeu_ps(result[c], mix(upper, lower, gy, y->distance));
    }
    for (int i = 0; i < LANES; ++i)
        for (int c = 0; c < channels; ++c) dst[i * channels + c] = result[c][i];
}

static inline void sample_all(const leati_sample_job *job, int channels, bool bytes) {
    const leati_affine *a = &job->affine;
    for (int64_t y = 0; y < job->dst_height; ++y) {
        const double base_x = a->x[2] + a->x[1] * (double)y, base_y = a->y[2] + a->y[1] * (double)y;
        int64_t x = 0;
        for (; x + LANES <= job->dst_width; x += LANES) {
            const positions px = find(base_x, a->x[0], x), py = find(base_y, a->y[0], x);
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
#endif
