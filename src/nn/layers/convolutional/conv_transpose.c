/* SPDX-License-Identifier: Apache-2.0 */
/* Conv1DTranspose to Conv3DTranspose: the gradient of a convolution with respect to its source, as a forward op.
 * The kernel is that of the convolution from the output to the input: (spatial..., filters, channels).
 * Source: keras.layers.Conv2DTranspose, keras.layers.Conv3DTranspose; Conv1DTranspose of current Keras. */
#include <string.h>

#include "base/error.h"
#include "nn/layers/convolutional/conv_common.h"
#include "nn/layers/types.h"

#define OUTPUT_PADDING_FIELD(spatial)                                                                        \
    {                                                                                                        \
        .key = "output_padding", .kind = LEATI_FIELD_TUPLE,                                                  \
        .offset = offsetof(leati_convolution, output_padding), .preset = "null", .arity = spatial,           \
        .minimum = 0, .limited = true                                                                        \
    }
#define KERNEL_FIELDS LEATI_WEIGHT_FIELDS(leati_convolution, kernel, "kernel", "\"glorot_uniform\"")

#define FIELDS(spatial)                                                                                      \
    {                                                                                                        \
        LEATI_INT_FIELD(leati_convolution, filters, 1, NULL), LEATI_WINDOW_FIELDS(spatial, leati_paddings),  \
            LEATI_DILATION_FIELD(spatial), OUTPUT_PADDING_FIELD(spatial), KERNEL_FIELDS,                     \
            LEATI_AFFINE_FIELDS(leati_convolution), {                                                        \
            .key = NULL                                                                                      \
        }                                                                                                    \
    }
static const leati_field fields1d[] = FIELDS(1);
static const leati_field fields2d[] = FIELDS(2);

/* Keras 2.3.1 does not support dilation in Conv3DTranspose, and does not write the key. */
static const leati_field fields3d[] = {LEATI_INT_FIELD(leati_convolution, filters, 1, NULL),
                                       LEATI_WINDOW_FIELDS(3, leati_paddings),
                                       {.key = "dilation_rate",
                                        .kind = LEATI_FIELD_TUPLE,
                                        .offset = offsetof(leati_convolution, dilation_rate),
                                        .preset = "1",
                                        .arity = 3,
                                        .minimum = 1,
                                        .limited = true,
                                        .later = true},
                                       OUTPUT_PADDING_FIELD(3),
                                       KERNEL_FIELDS,
                                       LEATI_AFFINE_FIELDS(leati_convolution),
                                       {.key = NULL}};

static leat_status check(leati_layer *layer, leat_error *err) {
    const leati_convolution *c = layer->config;
    for (int i = 0; i < c->output_padding.count; ++i)
        if (c->output_padding.values[i] >= c->strides.values[i])
            return leati_fail(err, LEAT_EINVAL,
                              "output_padding: expected less than strides, received %lld with a stride of "
                              "%lld",
                              (long long)c->output_padding.values[i], (long long)c->strides.values[i]);
    return leati_convolution_check(layer, err);
}

/* Infers the shape of the output as (N, spatial..., filters). */
static leat_status infer_image(const leati_convolution *c, const leati_shape *input, leati_shape *image,
                               leat_error *err) {
    leati_slide slide = leati_convolution_slide(c);
    LEATI_TRY(leati_convolution_image(c, input, image, err));
    LEATI_TRY(leati_slide_infer_transposed(&slide, &c->output_padding, image, err));
    image->dims[image->rank - 1] = c->filters;
    return LEAT_OK;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const leati_convolution *c = layer->config;
    leati_shape image;
    (void)input_count, (void)output_count;
    LEATI_TRY(infer_image(c, &inputs[0], &image, err));
    outputs[0] = leati_image_shape_back(&image, c->data_format);
    return LEAT_OK;
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const leati_convolution *c = layer->config;
    int64_t channels;
    (void)input_count;
    LEATI_TRY(leati_convolution_channels(c, &inputs[0], &channels, err));
    LEATI_TRY(leati_convolution_add_kernel(layer, "kernel", &c->kernel, c->filters, channels, err));
    return leati_affine_add_bias(layer, &c->affine, c->filters, err);
}

static leati_value transposed(const leati_convolution *c, leati_lowering *lowering, leati_value input,
                              leati_value kernel) {
    leati_graph *g = lowering->graph;
    const leati_desc *desc = leati_graph_desc(g, input);
    leati_shape shape = {.rank = desc->rank}, image;
    leati_slide slide = leati_convolution_slide(c);
    leat_error err = {0};
    memcpy(shape.dims, desc->shape, sizeof shape.dims);
    leat_status status = infer_image(c, &shape, &image, &err);
    if (status != LEAT_OK) return leati_graph_fail(g, status, "%s", err.message);
    leati_desc output = leati_desc_make(LEAT_F32, image.rank, image.dims);
    leati_attrs attrs = {.conv = {.window = leati_slide_window(&slide, &output), .groups = 1}};
    memcpy(attrs.conv.size, &image.dims[1], sizeof attrs.conv.size);
    leati_value args[] = {leati_convolution_value(c, lowering, input), kernel};
    return leati_graph_node(g, LEATI_OP_CONV_BWD_DATA, &attrs, 2, args, NULL);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const leati_convolution *c = layer->config;
    leati_value y = transposed(c, lowering, inputs[0], leati_layer_weight(layer, lowering, 0));
    leati_value bias = leati_affine_bias(layer, &c->affine, lowering);
    (void)input_count;
    if (bias != LEATI_NONE) y = leati_add(lowering->graph, y, bias);
    leati_convolution_finish(c, lowering, y, outputs);
}

/* Members of leati_layer_type that all types of this file have in common. */
#define COMMON_MEMBERS LEATI_ONE_INPUT, .check = check, .infer = infer, .build = build, .lower = lower

LEATI_LAYER_TYPE(conv1d_transpose, "Conv1DTranspose", "conv1d_transpose", leati_convolution, fields1d,
                 COMMON_MEMBERS);
LEATI_LAYER_TYPE(conv2d_transpose, "Conv2DTranspose", "conv2d_transpose", leati_convolution, fields2d,
                 COMMON_MEMBERS);
LEATI_LAYER_TYPE(conv3d_transpose, "Conv3DTranspose", "conv3d_transpose", leati_convolution, fields3d,
                 COMMON_MEMBERS);
