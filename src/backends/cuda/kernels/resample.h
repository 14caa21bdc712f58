/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of the kernels of resampling (resample.cu).  Room: backends/cuda. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_RESAMPLE_H
#define LEATI_BACKENDS_CUDA_KERNELS_RESAMPLE_H

#include "backends/cuda/kernels/window.h"

/* The spatial axes are the last of three; absent ones have size 1 and factor 1. */
typedef struct leati_cuda_resample_args {
    leati_cuda_array from, to;
    int64_t pixels; /* of `to`, of the whole batch */
    int32_t in[3], factor[3], channels;
    int32_t linear[3], halved;
} leati_cuda_resample_args;

#endif
