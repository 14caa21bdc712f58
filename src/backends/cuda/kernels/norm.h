/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of the kernels in norm.cu. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_NORM_H
#define LEATI_BACKENDS_CUDA_KERNELS_NORM_H

#include "backends/cuda/kernels/columns.h"
#include "backends/cuda/kernels/functions.h"
#include "backends/cuda/kernels/tensor.h"

/* The workspace of BATCH_NORM, computed from dst. */
typedef struct leati_cuda_norm_signs_args {
    int64_t count; /* bytes */
    leati_cuda_tensor dst;
    uint8_t *positive;
    int64_t signs;
} leati_cuda_norm_signs_args;

/* BATCH_NORM and BATCH_NORM_APPLY.  One part: the kernel normalizes, too, and otherwise only the statistics are
 * computed. */
typedef struct leati_cuda_batch_norm_args {
    leati_cuda_columns columns;
    leati_cuda_tensor src, gamma, beta, mean, variance, addend, dst;
    float
        *coefficients; /* (3, channels): mean, scale, beta; for the second launch.  NULL: it computes them */
    uint8_t
        *positive; /* the workspace: bit j of byte i: element i * V + j of dst is above 0; NULL: unwanted */
    int32_t has_post; /* a function follows */
    leati_cuda_function post;
    float epsilon;
    int32_t relu; /* post is max(x, 0) */
} leati_cuda_batch_norm_args;

/* Where BATCH_NORM_BWD finds `diff`. */
typedef struct leati_cuda_norm_gradient {
    leati_cuda_tensor diff_dst;
    leati_cuda_tensor more;      /* is added to diff_dst */
    leati_cuda_tensor rectified; /* diff is 0 where this is not above 0 */
    const uint8_t *positive;     /* the signs of `rectified`, which is not read then */
    int64_t signs; /* binary logarithm of the number of elements whose bits are in one byte of `positive` */
} leati_cuda_norm_gradient;

typedef struct leati_cuda_batch_norm_bwd_args {
    leati_cuda_columns columns;
    leati_cuda_tensor src, gamma, mean, variance;
    leati_cuda_norm_gradient gradient;
    leati_cuda_tensor diff_src, diff_gamma, diff_beta, diff;
    float *coefficients; /* (4, channels): mean, scale, slope, rest; for the second launch */
    float epsilon;
    int32_t padding;
} leati_cuda_batch_norm_bwd_args;

/* GROUP_NORM and GROUP_NORM_BWD: see engine/op_semantics/group_norm.h.  inverse is 1 / sqrt(variance + epsilon). */
typedef struct leati_cuda_group_norm_args {
    int64_t rows, places, channels, groups;
    leati_cuda_tensor src, gamma, beta, mean, inverse, dst;
    float epsilon;
    int32_t padding;
} leati_cuda_group_norm_args;

typedef struct leati_cuda_group_norm_bwd_args {
    int64_t rows, places, channels, groups;
    leati_cuda_columns columns; /* of (rows * places, channels), for diff_gamma and diff_beta */
    leati_cuda_tensor src, gamma, mean, inverse, diff_dst, diff_src, diff_gamma, diff_beta;
} leati_cuda_group_norm_bwd_args;

#endif
