/* SPDX-License-Identifier: Apache-2.0 */
/* SeparableConv1D and SeparableConv2D: a convolution of each channel by itself, then a product over the channels of
 * each pixel.
 * Source: keras.layers.SeparableConv1D, keras.layers.SeparableConv2D. */
#include "base/error.h"
#include "nn/layers/convolutional/conv_common.h"
#include "nn/layers/types.h"

#define FIELDS(spatial)                                                                                      \
    {                                                                                                        \
        LEATI_INT_FIELD(leati_convolution, filters, 1, NULL), LEATI_WINDOW_FIELDS(spatial, leati_paddings),  \
            LEATI_DILATION_FIELD(spatial), LEATI_INT_FIELD(leati_convolution, depth_multiplier, 1, "1"),     \
            LEATI_WEIGHT_FIELDS(leati_convolution, kernel, "depthwise", "\"glorot_uniform\""),               \
            LEATI_WEIGHT_FIELDS(leati_convolution, pointwise, "pointwise", "\"glorot_uniform\""),            \
            LEATI_AFFINE_FIELDS(leati_convolution), {                                                        \
            .key = NULL                                                                                      \
        }                                                                                                    \
    }
static const leati_field fields1d[] = FIELDS(1);
static const leati_field fields2d[] = FIELDS(2);

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const leati_convolution *c = layer->config;
    int spatial = c->kernel_size.count;
    int64_t channels, dims[5] = {1, 1};
    (void)input_count;
    LEATI_TRY(leati_convolution_channels(c, &inputs[0], &channels, err));
    dims[spatial] = channels * c->depth_multiplier;
    dims[spatial + 1] = c->filters;
    LEATI_TRY(leati_convolution_add_kernel(layer, "depthwise_kernel", &c->kernel, channels,
                                           c->depth_multiplier, err));
    LEATI_TRY(leati_weight_config_add(layer, "pointwise_kernel", &c->pointwise, spatial + 2, dims, err));
    return leati_affine_add_bias(layer, &c->affine, c->filters, err);
}

/* Multiplies the channels of each pixel by the pointwise kernel. */
static leati_value pointwise(const leati_convolution *c, leati_graph *g, leati_value x, leati_value kernel,
                             leati_value bias) {
    leati_window window = {.spatial = c->kernel_size.count, .kernel = {1, 1}, .stride = {1, 1}};
    window.dilation[0] = window.dilation[1] = 1;
    leati_attrs attrs = {.conv = {.window = window, .groups = 1}};
    leati_value args[] = {x, kernel, bias};
    return leati_graph_node(g, LEATI_OP_CONV, &attrs, 3, args, NULL);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const leati_convolution *c = layer->config;
    leati_value x = leati_convolution_value(c, lowering, inputs[0]);
    leati_value bias = leati_affine_bias(layer, &c->affine, lowering);
    (void)input_count;
    x = leati_convolution_depthwise(c, lowering, x, leati_layer_weight(layer, lowering, 0), LEATI_NONE);
    x = pointwise(c, lowering->graph, x, leati_layer_weight(layer, lowering, 1), bias);
    leati_convolution_finish(c, lowering, x, outputs);
}

/* Members of leati_layer_type that all types of this file have in common. */
#define COMMON_MEMBERS                                                                                       \
    LEATI_ONE_INPUT, .check = leati_convolution_check, .infer = leati_convolution_infer_filters,             \
                     .build = build, .lower = lower

LEATI_LAYER_TYPE(separable_conv1d, "SeparableConv1D", "separable_conv1d", leati_convolution, fields1d,
                 COMMON_MEMBERS);
LEATI_LAYER_TYPE(separable_conv2d, "SeparableConv2D", "separable_conv2d", leati_convolution, fields2d,
                 COMMON_MEMBERS);
