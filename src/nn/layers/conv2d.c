/* SPDX-License-Identifier: Apache-2.0 */
/* Conv2D and DepthwiseConv2D: one family, told apart by their kernels.  A depthwise kernel (H, W, C, multiplier) is, as
 * memory, that of a convolution with C groups: output channel c * multiplier + m sees input channel c.
 * Source: keras.layers.Conv2D, keras.layers.DepthwiseConv2D. */
#include "base/error.h"
#include "nn/layers/image.h"
#include "nn/layers/types.h"

typedef struct config {
    int64_t filters;          /* Conv2D */
    int64_t depth_multiplier; /* DepthwiseConv2D */
    leati_ints kernel_size, strides, dilation_rate;
    int32_t padding, data_format;
    leati_part kernel;
    leati_affine affine;
} config;

#define WINDOW_ROWS                                                                                          \
    LEATI_TUPLE_ROW(config, kernel_size, 2, NULL), LEATI_TUPLE_ROW(config, strides, 2, "1"),                 \
        LEATI_PADDING_ROW(config), LEATI_DATA_FORMAT_ROW(config),                                            \
        LEATI_TUPLE_ROW(config, dilation_rate, 2, "1")

static const leati_field conv_fields[] = {LEATI_INT_ROW(config, filters, 1, NULL),
                                          WINDOW_ROWS,
                                          LEATI_PART_ROWS(config, kernel, "kernel", "\"glorot_uniform\""),
                                          LEATI_AFFINE_ROWS(config),
                                          {.key = NULL}};

static const leati_field depthwise_fields[] = {WINDOW_ROWS,
                                               LEATI_INT_ROW(config, depth_multiplier, 1, "1"),
                                               LEATI_PART_ROWS(config, kernel, "depthwise",
                                                               "\"glorot_uniform\""),
                                               LEATI_AFFINE_ROWS(config),
                                               {.key = NULL}};

static bool is_depthwise(const leati_layer *layer) {
    return layer->type == &leati_layer_depthwise_conv2d;
}

static leati_slide slide_of(const config *c) {
    return (leati_slide){&c->kernel_size, &c->strides, &c->dilation_rate, c->padding};
}

static leat_status check(leati_layer *layer, leat_error *err) {
    const config *c = layer->config;
    bool strided = c->strides.values[0] > 1 || c->strides.values[1] > 1;
    bool dilated = c->dilation_rate.values[0] > 1 || c->dilation_rate.values[1] > 1;
    if (strided && dilated)
        return leati_fail(err, LEAT_EINVAL,
                          "expected strides or dilation_rate to be 1, received both above 1");
    return LEAT_OK;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    leati_slide slide = slide_of(c);
    leati_shape image;
    (void)input_count, (void)output_count;
    LEATI_TRY(leati_image_shape(&inputs[0], 2, c->data_format, &image, err));
    LEATI_TRY(leati_slide_infer(&slide, &image, err));
    if (!is_depthwise(layer))
        image.dims[3] = c->filters;
    else if (image.dims[3] >= 0)
        image.dims[3] *= c->depth_multiplier;
    if (image.dims[3] > INT32_MAX)
        return leati_shape_unexpected(&image, "fewer than 2147483648 channels", err);
    outputs[0] = leati_image_shape_back(&image, c->data_format);
    return LEAT_OK;
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const config *c = layer->config;
    leati_shape image;
    (void)input_count;
    LEATI_TRY(leati_image_shape(&inputs[0], 2, c->data_format, &image, err));
    int64_t channels = image.dims[3];
    if (channels < 1) return leati_shape_unexpected(&inputs[0], "an image whose channels are known", err);
    int64_t last = is_depthwise(layer) ? c->depth_multiplier : c->filters;
    int64_t units = is_depthwise(layer) ? channels * c->depth_multiplier : c->filters;
    int64_t dims[] = {c->kernel_size.values[0], c->kernel_size.values[1], channels, last};
    LEATI_TRY(
        leati_part_add(layer, is_depthwise(layer) ? "depthwise_kernel" : "kernel", &c->kernel, 4, dims, err));
    return leati_affine_add_bias(layer, &c->affine, units, err);
}

static leati_value convolve(const leati_layer *layer, leati_lowering *lowering, leati_value x) {
    const config *c = layer->config;
    leati_slide slide = slide_of(c);
    leati_graph *g = lowering->graph;
    leati_value kernel = leati_layer_weight(layer, lowering, 0);
    leati_attrs attrs = {.conv = {.window = leati_slide_window(&slide, leati_graph_desc(g, x)), .groups = 1}};
    if (is_depthwise(layer)) {
        const int64_t *dims = leati_graph_desc(g, kernel)->shape;
        int64_t channels = dims[2], filters = dims[2] * dims[3];
        attrs.conv.groups = channels;
        kernel = leati_reshape(g, kernel, 4, (int64_t[]){dims[0], dims[1], 1, filters});
    }
    leati_value args[] = {x, kernel, leati_affine_bias(layer, &c->affine, lowering)};
    return leati_graph_node(g, LEATI_OP_CONV, &attrs, 3, args, NULL);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    const leati_activation *activation = &c->affine.activation;
    leati_graph *g = lowering->graph;
    leati_value y = convolve(layer, lowering, leati_image_value(g, inputs[0], c->data_format));
    /* Softmax is over the last axis of what the layer gives; all others may stay beside the convolution. */
    bool after = activation->kind == LEATI_ACTIVATION_SOFTMAX;
    (void)input_count;
    if (!after) y = leati_activation_lower(activation, g, y);
    y = leati_image_value_back(g, y, c->data_format);
    outputs[0] = after ? leati_activation_lower(activation, g, y) : y;
    leati_lowering_add_activity(lowering, &c->affine.activity_regularizer, 1, outputs);
}

const leati_layer_type leati_layer_conv2d = {.class_name = "Conv2D",
                                             .name_prefix = "conv2d",
                                             .config_bytes = sizeof(config),
                                             .fields = conv_fields,
                                             .min_inputs = 1,
                                             .max_inputs = 1,
                                             .check = check,
                                             .infer = infer,
                                             .build = build,
                                             .lower = lower};

const leati_layer_type leati_layer_depthwise_conv2d = {.class_name = "DepthwiseConv2D",
                                                       .name_prefix = "depthwise_conv2d",
                                                       .config_bytes = sizeof(config),
                                                       .fields = depthwise_fields,
                                                       .min_inputs = 1,
                                                       .max_inputs = 1,
                                                       .check = check,
                                                       .infer = infer,
                                                       .build = build,
                                                       .lower = lower};
