/* SPDX-License-Identifier: Apache-2.0 */
/* DepthwiseConv1D and DepthwiseConv2D: a convolution of each channel by itself, with depth_multiplier filters.
 * Source: keras.layers.DepthwiseConv2D; DepthwiseConv1D of current Keras. */
#include "base/error.h"
#include "nn/layers/convolutional/conv_common.h"
#include "nn/layers/types.h"

#define FIELDS(spatial)                                                                                      \
    {                                                                                                        \
        LEATI_WINDOW_FIELDS(spatial, leati_paddings), LEATI_DILATION_FIELD(spatial),                         \
            LEATI_INT_FIELD(leati_convolution, depth_multiplier, 1, "1"),                                    \
            LEATI_WEIGHT_FIELDS(leati_convolution, kernel, "depthwise", "\"glorot_uniform\""),               \
            LEATI_AFFINE_FIELDS(leati_convolution), {                                                        \
            .key = NULL                                                                                      \
        }                                                                                                    \
    }
static const leati_field fields1d[] = FIELDS(1);
static const leati_field fields2d[] = FIELDS(2);

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const leati_convolution *c = layer->config;
    leati_shape image;
    (void)input_count, (void)output_count;
    LEATI_TRY(leati_convolution_infer(c, &inputs[0], &image, err));
    int64_t *channels = &image.dims[image.rank - 1];
    if (*channels >= 0) *channels *= c->depth_multiplier;
    if (*channels > INT32_MAX) return leati_shape_unexpected(&image, "fewer than 2147483648 channels", err);
    outputs[0] = leati_image_shape_back(&image, c->data_format);
    return LEAT_OK;
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const leati_convolution *c = layer->config;
    int64_t channels;
    (void)input_count;
    LEATI_TRY(leati_convolution_channels(c, &inputs[0], &channels, err));
    LEATI_TRY(leati_convolution_add_kernel(layer, "depthwise_kernel", &c->kernel, channels,
                                           c->depth_multiplier, err));
    return leati_affine_add_bias(layer, &c->affine, channels * c->depth_multiplier, err);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const leati_convolution *c = layer->config;
    leati_value x = leati_convolution_value(c, lowering, inputs[0]);
    leati_value bias = leati_affine_bias(layer, &c->affine, lowering);
    (void)input_count;
    leati_value y = leati_convolution_depthwise(c, lowering, x, leati_layer_weight(layer, lowering, 0), bias);
    leati_convolution_finish(c, lowering, y, outputs);
}

/* Members of leati_layer_type that both types of this file have in common. */
#define COMMON_MEMBERS                                                                                       \
    LEATI_ONE_INPUT, .check = leati_convolution_check, .infer = infer, .build = build, .lower = lower

LEATI_LAYER_TYPE(depthwise_conv1d, "DepthwiseConv1D", "depthwise_conv1d", leati_convolution, fields1d,
                 COMMON_MEMBERS);
LEATI_LAYER_TYPE(depthwise_conv2d, "DepthwiseConv2D", "depthwise_conv2d", leati_convolution, fields2d,
                 COMMON_MEMBERS);
