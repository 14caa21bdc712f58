/* SPDX-License-Identifier: Apache-2.0 */
/* What the parameters of the kernels with windows share: convolutions, pooling, patches.  Room: backends/cuda. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_WINDOW_H
#define LEATI_BACKENDS_CUDA_KERNELS_WINDOW_H

#include <stdint.h>

/* A tensor of f32, or of bf16. */
typedef struct leati_cuda_array {
    void *data; /* NULL: absent */
    int32_t bf16;
} leati_cuda_array;

/* The sizes of a window's way over a source (leati_geometry).  The spatial axes are the last of three; absent ones have
 * size 1. */
typedef struct leati_cuda_window_shape {
    int64_t in_pixels, out_pixels; /* of the whole batch */
    int32_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3] /* before */;
    int32_t batch, channels, filters, group_channels, group_filters, taps;
} leati_cuda_window_shape;

#endif
