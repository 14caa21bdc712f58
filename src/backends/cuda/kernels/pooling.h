/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of the kernels of pooling (pooling.cu).  Room: backends/cuda. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_POOLING_H
#define LEATI_BACKENDS_CUDA_KERNELS_POOLING_H

#include "backends/cuda/kernels/window.h"

typedef struct leati_cuda_pooling_args {
    leati_cuda_window_shape shape;
    leati_cuda_array src, dst;
    uint8_t *tap; /* the workspace: the tap of the maximum of each output element; NULL: not wanted */
    int32_t average;
} leati_cuda_pooling_args;

typedef struct leati_cuda_pooling_bwd_args {
    leati_cuda_window_shape shape;
    leati_cuda_array src, diff_dst, diff_src;
    const uint8_t *tap; /* NULL: the maximum is looked up in src */
    int32_t average;
} leati_cuda_pooling_bwd_args;

#endif
