/* SPDX-License-Identifier: Apache-2.0 */
/* Code that the convolutions share: a configuration, of which each layer has some keys, the sliding window, and the
 * ops after the product.  The number of spatial axes is the number of elements of kernel_size. */
#ifndef LEATI_NN_LAYERS_CONVOLUTIONAL_CONV_COMMON_H
#define LEATI_NN_LAYERS_CONVOLUTIONAL_CONV_COMMON_H

#include "nn/layers/spatial.h"

typedef struct leati_convolution {
    int64_t filters, groups, depth_multiplier;
    leati_ints kernel_size, strides, dilation_rate /* count 0: there is no such key */, output_padding;
    int32_t padding, data_format;
    leati_weight_config kernel, pointwise;
    leati_affine affine;
} leati_convolution;

/* Fields kernel_size, strides, padding and data_format for `spatial` axes. */
#define LEATI_WINDOW_FIELDS(spatial, paddings)                                                               \
    LEATI_TUPLE_FIELD(leati_convolution, kernel_size, spatial, NULL),                                        \
        LEATI_TUPLE_FIELD(leati_convolution, strides, spatial, "1"),                                         \
        LEATI_CHOICE_FIELD(leati_convolution, padding, paddings, "\"valid\""),                               \
        LEATI_DATA_FORMAT_FIELD(leati_convolution)
#define LEATI_DILATION_FIELD(spatial) LEATI_TUPLE_FIELD(leati_convolution, dilation_rate, spatial, "1")

leati_slide leati_convolution_slide(const leati_convolution *c);

/* Errors: LEAT_EINVAL strides and dilation are both above 1. */
leat_status leati_slide_check(const leati_slide *slide, leat_error *err);
/* Returns the convolution of x (N, spatial..., C). */
leati_value leati_slide_convolve(const leati_slide *slide, leati_graph *g, leati_value x, leati_value kernel,
                                 leati_value bias, int64_t groups);

/* Returns a convolution of each channel of x by itself: kernel (spatial..., C, multiplier) -> (N, spatial..., C *
 * multiplier). */
leati_value leati_slide_depthwise(const leati_slide *slide, leati_graph *g, leati_value x, leati_value kernel,
                                  leati_value bias);

/* The `check` of all convolutions.  Errors: LEAT_EINVAL strides and dilation_rate are both above 1; causal padding
 * without channels_last. */
leat_status leati_convolution_check(leati_layer *layer, leat_error *err);

/* For infer: return the shape of the input as (N, spatial..., C), and the shape after the window. */
leat_status leati_convolution_image(const leati_convolution *c, const leati_shape *input, leati_shape *image,
                                    leat_error *err);
leat_status leati_convolution_infer(const leati_convolution *c, const leati_shape *input, leati_shape *image,
                                    leat_error *err);
/* The `infer` of the layers whose window makes `filters` channels. */
leat_status leati_convolution_infer_filters(const leati_layer *layer, int input_count,
                                            const leati_shape *inputs, leati_shape *outputs,
                                            int *output_count, leat_error *err);

/* For build: returns the number of the input's channels.  Errors: LEAT_ESHAPE it is not known. */
leat_status leati_convolution_channels(const leati_convolution *c, const leati_shape *input, int64_t *out,
                                       leat_error *err);
/* For build: declares a kernel (kernel_size..., in, out). */
leat_status leati_convolution_add_kernel(leati_layer *layer, const char *name,
                                         const leati_weight_config *config, int64_t in, int64_t out,
                                         leat_error *err);

/* For lower: return the input as (N, spatial..., C), and a convolution of it with the layer's window. */
leati_value leati_convolution_value(const leati_convolution *c, leati_lowering *lowering, leati_value input);
leati_value leati_convolution_of(const leati_convolution *c, leati_lowering *lowering, leati_value x,
                                 leati_value kernel, leati_value bias, int64_t groups);
/* Like leati_slide_depthwise() with the layer's window. */
leati_value leati_convolution_depthwise(const leati_convolution *c, leati_lowering *lowering, leati_value x,
                                        leati_value kernel, leati_value bias);
/* Adds the activation, the transpose to the layer's data_format and the penalty, for y (N, spatial..., C). */
void leati_convolution_finish(const leati_convolution *c, leati_lowering *lowering, leati_value y,
                              leati_value *outputs);

#endif
