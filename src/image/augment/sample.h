/* SPDX-License-Identifier: Apache-2.0 */
/* Affine sampling: each pixel of the result is read at a position of the input, between pixels and beyond the border.
 * The plain kernel defines the result; the kernels for AVX2 and AVX-512 give the same bits. */
#ifndef LEATI_IMAGE_AUGMENT_SAMPLE_H
#define LEATI_IMAGE_AUGMENT_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

/* The rows of a matrix that maps (x, y, 1) of the result to (x, y) of the input. */
typedef struct leati_affine {
    double x[3], y[3];
} leati_affine;

/* What is beyond the border, with Keras's names. */
typedef enum leati_fill {
    LEATI_FILL_NEAREST,  /* a a a | a b c d | d d d */
    LEATI_FILL_CONSTANT, /* v v v | a b c d | v v v */
    LEATI_FILL_REFLECT,  /* c b a | a b c d | d c b */
    LEATI_FILL_WRAP      /* b c d | a b c d | a b c */
} leati_fill;

typedef struct leati_sampling {
    leati_fill fill;
    int order;   /* 0: the nearest pixel; 1: between four pixels */
    float value; /* for LEATI_FILL_CONSTANT */
    /* The rules at the border that scipy.ndimage 1.4 has, as under Keras 2.3.1: a position beyond the border is moved
     * inside before its neighbours are read, `wrap` has a period of one pixel less, and `constant` does not mix the
     * value with pixels. */
    bool scipy;
} leati_sampling;

typedef struct leati_sample_job {
    const unsigned char
        *bytes;          /* (height, width, channels), with LEATI_PICTURE_SLACK bytes behind; or NULL */
    const float *floats; /* (height, width, channels), if `bytes` is NULL */
    int64_t height, width, channels;
    float *dst; /* (dst_height, dst_width, channels) */
    int64_t dst_height, dst_width;
    leati_affine affine;
    leati_sampling sampling;
} leati_sample_job;

typedef void leati_sample_kernel(const leati_sample_job *job);
leati_sample_kernel leati_sample_plain, leati_sample_avx2, leati_sample_avx512;

/* Rounds values to bytes. */
void leati_sample_round(unsigned char *dst, const float *values, int64_t count);
/* Rounds the first values with AVX2; returns their number. */
int64_t leati_sample_round_avx2(unsigned char *dst, const float *values, int64_t count);

/* Computes `count` pixels of a line of the result, from column x on. */
void leati_sample_span(const leati_sample_job *job, int64_t y, int64_t x, int64_t count);

/* Reads the pixel at one position, with the rules of the layers of Keras at the border (job->sampling.scipy is false).
 * @param[out] dst  One number for each channel. */
void leati_sample_at(const leati_sample_job *job, double x, double y, float *dst);

/* Chooses the kernel for this CPU. */
leati_sample_kernel *leati_sample_choose(void);

/* Returns the matrix of two steps: first `first`, then `second`. */
leati_affine leati_affine_compose(const leati_affine *first, const leati_affine *second);

#endif
