/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of the kernels that compute convolutions as matrix products (conv_gemm.cuh).  Room: backends/cuda. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_CONV_GEMM_H
#define LEATI_BACKENDS_CUDA_KERNELS_CONV_GEMM_H

#include "backends/cuda/kernels/conv.h"

enum { LEATI_CUDA_CONV_GEMM_CHUNK = 16, LEATI_CUDA_CONV_GEMM_CLASSES = 8 };

/* Pixels of the result that read with the same taps.  The forward convolution has one class; the gradient with respect
 * to src has one for each remainder of the position by the stride.  Pixel j along an axis of a class is pixel
 * `first + j * dst_step` of the result, and under tap t it reads position `base + j * move + t * offset`. */
typedef struct leati_cuda_conv_gemm_class {
    int32_t size[3], first[3], base[3];
    int32_t taps[3], tap[3]; /* how many, and the first one as a tap of the weights */
    int32_t rows;            /* batch * size[0] * size[1] * size[2] */
    int32_t tile;            /* the first tile of rows, counted over all classes */
} leati_cuda_conv_gemm_class;

/* dst (pixels, columns) = the sum over taps and channels of src (pixels under the tap, channels) and weights. */
typedef struct leati_cuda_conv_gemm {
    leati_cuda_array src, weights, dst;
    leati_cuda_conv_post post;
    int32_t src_size[3], dst_size[3], move[3], offset[3], dst_step[3], tap_step[3], kernel[3];
    int32_t channels, columns, tiles_n, class_count;
    leati_cuda_conv_gemm_class classes[LEATI_CUDA_CONV_GEMM_CLASSES];
} leati_cuda_conv_gemm;

/* The gradient with respect to the weights (taps * channels, filters) and the bias.  blockIdx.y is the range of
 * `split_pixels` output pixels, a multiple of the chunk.  With one range, the results are final; with more, they are
 * sums in `partial`, as leati_cuda_conv_weights has them. */
typedef struct leati_cuda_conv_gemm_weights {
    leati_cuda_window_shape shape;
    leati_cuda_array src, diff_dst, diff_weights, diff_bias;
    float *partial;
    int32_t splits, split_pixels, tiles_n;
} leati_cuda_conv_gemm_weights;

#endif
