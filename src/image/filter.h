/* SPDX-License-Identifier: Apache-2.0 */
/* The two passes of a resize, and their kernels for each instruction set. */
#ifndef LEATI_IMAGE_FILTER_H
#define LEATI_IMAGE_FILTER_H

#include "image/picture.h"

/* Weights are integers with 22 bits behind the point, as Pillow has them.  Each is the sum of high * 2^12 and low, both
 * of which fit 16 bits with a sign, so that vectorized kernels can multiply 16 bits by 16 bits. */
enum { LEATI_WEIGHT_BITS = 22, LEATI_WEIGHT_LOW_BITS = 12 };

/* Outputs behind the last one whose first input, count and weights vectorized kernels may read; all are zeros. */
enum { LEATI_WEIGHT_SLACK = 16 };

/* The weights of one pass: output i is the weighted sum of the inputs from first[i] on, count[i] of them.  taps is even
 * and at least the largest count; weights behind the last input of an output are zeros. */
typedef struct leati_weights {
    int64_t outputs, taps;
    int64_t stride;         /* outputs + LEATI_WEIGHT_SLACK */
    int32_t *first, *count; /* (stride) */
    int32_t *whole;         /* (outputs, taps) */
    int16_t *low, *high;    /* (taps / 2, stride, 2): the weights 2k and 2k + 1 of an output are neighbours */
} leati_weights;

/* Returns the index in `low` and `high` of weight k of output i. */
static inline int64_t leati_weight_index(const leati_weights *w, int64_t i, int64_t k) {
    return (k / 2 * w->stride + i) * 2 + k % 2;
}

/* One pass over lines of bytes. */
typedef struct leati_pass_job {
    const unsigned char *src;
    unsigned char *dst;
    int64_t src_line, dst_line; /* bytes from one line to the next */
    int64_t lines;              /* of dst */
    int64_t line_bytes;         /* of dst; for the vertical pass */
    int channels;               /* for the horizontal pass */
    const leati_weights *weights;
} leati_pass_job;

typedef void leati_pass_kernel(const leati_pass_job *job);

/* The plain kernels, which define the result. */
leati_pass_kernel leati_pass_horizontal_plain, leati_pass_vertical_plain;
/* The kernels for AVX2, and for AVX-512 with VBMI and VNNI; the slack behind a picture's pixels is read. */
leati_pass_kernel leati_pass_horizontal_avx2, leati_pass_vertical_avx2;
leati_pass_kernel leati_pass_horizontal_avx512, leati_pass_vertical_avx512;

/* Chooses the kernels of a pass for this CPU. */
leati_pass_kernel *leati_pass_horizontal(void);
leati_pass_kernel *leati_pass_vertical(void);

#endif
