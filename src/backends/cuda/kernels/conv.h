/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of the kernels of convolutions (conv.cu).  Room: backends/cuda. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_CONV_H
#define LEATI_BACKENDS_CUDA_KERNELS_CONV_H

#include "backends/cuda/kernels/functions.h"
#include "backends/cuda/kernels/window.h"

/* What follows the product: bias, normalisation, addend, function, in this order. */
typedef struct leati_cuda_conv_post {
    leati_cuda_array bias, gamma, beta, mean, variance, addend;
    float epsilon;
    int32_t has_function;
    leati_cuda_function function;
} leati_cuda_conv_post;

/* A convolution computed by kernels of this file.  src is what the kernel reads at the pixels: src, or diff_dst. */
typedef struct leati_cuda_conv_direct {
    leati_cuda_window_shape shape;
    leati_cuda_array src, weights, dst;
    leati_cuda_conv_post post;
} leati_cuda_conv_direct;

/* The gradient with respect to the weights and the bias.  Each of `splits` ranges of output pixels has a sum of its
 * own in partial (splits, taps * group_channels * filters + filters), f32. */
typedef struct leati_cuda_conv_weights {
    leati_cuda_window_shape shape;
    leati_cuda_array src, diff_dst, diff_weights, diff_bias;
    float *partial;
    int32_t splits;
} leati_cuda_conv_weights;

/* Copies an image (N, spatial, C) into another of other sizes and type: to[at] = from[at - before], or 0 outside. */
typedef struct leati_cuda_conv_frame {
    leati_cuda_array from, to;
    int64_t pixels; /* of `to`, of the whole batch */
    int32_t from_size[3], to_size[3], before[3], from_channels, to_channels;
    int32_t folded; /* 1: the channels of a pixel of `to` are those of 2 x 2 pixels of `from`, and zeros */
} leati_cuda_conv_frame;

/* Packs weights (taps, channels, filters) as (to_filters, taps, to_channels) with zeros where there are more, or turns
 * such a gradient back and adds up the partial sums of the gradient with respect to the bias, (splits, filters). */
typedef struct leati_cuda_conv_packing {
    leati_cuda_array from, to, diff_bias;
    const float *partial;
    int32_t taps, channels, filters, packed_channels, packed_filters, splits, tiles;
    int32_t planes; /* 1: (to_filters, to_channels, taps) */
    /* 1: a tap and its channels are those of 2 x 2 taps, which have the sizes `kernel`; packed_across: taps of a
     * row. */
    int32_t folded, kernel[2], packed_across;
} leati_cuda_conv_packing;

/* Transposes `batch` matrices of f32 (rows, columns), and finishes the elements: the filter is the row. */
typedef struct leati_cuda_conv_planes {
    leati_cuda_array from, to;
    leati_cuda_conv_post post;
    int64_t batch;
    int32_t rows, columns;
} leati_cuda_conv_planes;

/* Finishes the product in src (pixels, src_filters). */
typedef struct leati_cuda_conv_finish {
    leati_cuda_array src, dst;
    leati_cuda_conv_post post;
    int64_t pixels;
    int32_t filters, src_filters;
} leati_cuda_conv_finish;

/* Sums the columns of src (pixels, filters) over `splits` ranges of pixels: partial (splits, filters). */
typedef struct leati_cuda_conv_column_sums {
    leati_cuda_array src;
    float *partial;
    int64_t pixels;
    int32_t filters, splits;
} leati_cuda_conv_column_sums;

#endif
