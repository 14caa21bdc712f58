/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the normalisation kernels that exist once per instruction set (group_norm_tmpl.h, batch_norm_tmpl.h). */
#ifndef LEATI_BACKENDS_NATIVE_NORM_JOBS_H
#define LEATI_BACKENDS_NATIVE_NORM_JOBS_H

#include <stdbool.h>

#include "engine/op_semantics/group_norm.h"
#include "engine/op_semantics/op.h"

/* GROUP_NORM, or its gradient, where dst is diff_src.  gamma and beta may be NULL.  A row of src is (places,
 * channels); mean and inverse (1 / standard deviation) are (rows, groups). */
typedef struct leati_group_norm_job {
    leati_group_shape shape;
    float epsilon;
    const float *src, *gamma, *beta, *diff_dst;
    float *dst, *mean, *inverse;
    double *sums;                        /* (4, channels), of one thread */
    float *channel_mean, *channel_scale; /* (channels) and (3, channels), of one thread */
} leati_group_norm_job;

/* BATCH_NORM of (rows, channels), which normalises over the rows, or its gradient; batch_norm_tmpl.h has the
 * formulas. */
typedef struct leati_batch_norm_job {
    int64_t channels;
    const float *src, *addend /* may be NULL */, *diff_dst, *rectified /* may be NULL */;
    float *dst, *diff /* may be NULL */;
    const float *mean, *scale, *shift, *src_factor; /* (channels) */
    const leati_eltwise *f;                         /* may be NULL */
    double *sums;                                   /* (2, channels), of one part of the rows */
    float *partial;                                 /* (2, channels), of NORM_ROWS rows at most */
    bool bf16; /* src, dst, addend, diff_dst, rectified and diff are bf16 */
} leati_batch_norm_job;

#endif
