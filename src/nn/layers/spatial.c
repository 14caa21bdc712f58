/* SPDX-License-Identifier: Apache-2.0 */
/* data_format, padding and sliding windows.  Room: nn. */
#include "nn/layers/spatial.h"

#include <stdio.h>

#include "base/error.h"

const char *const leati_data_formats[] = {"channels_last", "channels_first", NULL};
const char *const leati_paddings[] = {"valid", "same", NULL};
const char *const leati_causal_paddings[] = {"valid", "same", "causal", NULL};

/* [spatial axes - 1][data_format]: channels last, channels first */
static const char *const image_names[3][2] = {
    {"a sequence (batch, steps, channels)", "a sequence (batch, channels, steps)"},
    {"an image (batch, rows, columns, channels)", "an image (batch, channels, rows, columns)"},
    {"a volume (batch, planes, rows, columns, channels)",
     "a volume (batch, channels, planes, rows, columns)"},
};
static const char *const axis_names[3][3] = {{"steps"}, {"rows", "columns"}, {"planes", "rows", "columns"}};

leat_status leati_image_shape(const leati_shape *shape, int spatial, int32_t data_format, leati_shape *out,
                              leat_error *err) {
    bool first = data_format == LEATI_CHANNELS_FIRST;
    if (shape->rank != spatial + 2)
        return leati_shape_unexpected(shape, image_names[spatial - 1][first], err);
    *out = *shape;
    if (!first) return LEAT_OK;
    for (int i = 1; i <= spatial; ++i) out->dims[i] = shape->dims[i + 1];
    out->dims[spatial + 1] = shape->dims[1];
    return LEAT_OK;
}

leati_shape leati_image_shape_back(const leati_shape *shape, int32_t data_format) {
    leati_shape out = *shape;
    if (data_format != LEATI_CHANNELS_FIRST) return out;
    for (int i = 2; i < shape->rank; ++i) out.dims[i] = shape->dims[i - 1];
    out.dims[1] = shape->dims[shape->rank - 1];
    return out;
}

int leati_image_first_axis(int32_t data_format) {
    return data_format == LEATI_CHANNELS_FIRST ? 2 : 1;
}

uint32_t leati_image_axes(int spatial, int32_t data_format) {
    return ((UINT32_C(1) << spatial) - 1) << leati_image_first_axis(data_format);
}

leati_value leati_image_value(leati_graph *graph, leati_value x, int32_t data_format) {
    int32_t perm[LEAT_MAX_RANK] = {0}, rank = leati_graph_desc(graph, x)->rank;
    if (data_format != LEATI_CHANNELS_FIRST || rank < 3) return x;
    for (int32_t i = 2; i < rank; ++i) perm[i - 1] = i;
    perm[rank - 1] = 1;
    return leati_transpose(graph, x, perm);
}

leati_value leati_image_value_back(leati_graph *graph, leati_value x, int32_t data_format) {
    int32_t perm[LEAT_MAX_RANK] = {0}, rank = leati_graph_desc(graph, x)->rank;
    if (data_format != LEATI_CHANNELS_FIRST || rank < 3) return x;
    for (int32_t i = 2; i < rank; ++i) perm[i] = i - 1;
    perm[1] = rank - 1;
    return leati_transpose(graph, x, perm);
}

/* Returns the length that a window covers, with the gaps of its dilation. */
static int64_t extent(const leati_slide *slide, int axis) {
    int64_t dilation = slide->dilation ? slide->dilation->values[axis] : 1;
    return (slide->kernel->values[axis] - 1) * dilation + 1;
}

static int64_t length(const leati_slide *slide, int axis, int64_t in) {
    int64_t stride = slide->strides->values[axis];
    int64_t free = slide->padding == LEATI_PADDING_VALID ? in - extent(slide, axis) + 1 : in;
    return (free + stride - 1) / stride;
}

leat_status leati_slide_infer(const leati_slide *slide, leati_shape *image, leat_error *err) {
    int spatial = slide->kernel->count;
    for (int axis = 0; axis < spatial; ++axis) {
        int64_t in = image->dims[axis + 1];
        if (in < 0) continue;
        if (slide->padding == LEATI_PADDING_VALID && in < extent(slide, axis)) {
            char expected[64];
            snprintf(expected, sizeof expected, "at least %lld %s for the window",
                     (long long)extent(slide, axis), axis_names[spatial - 1][axis]);
            return leati_shape_unexpected(image, expected, err);
        }
        image->dims[axis + 1] = length(slide, axis, in);
    }
    return LEAT_OK;
}

/* Returns the output length of a transposed convolution for the input length `in`, like Keras's deconv_length. */
static int64_t transposed_length(const leati_slide *slide, const leati_ints *output_padding, int axis,
                                 int64_t in) {
    int64_t stride = slide->strides->values[axis], reach = extent(slide, axis);
    bool valid = slide->padding == LEATI_PADDING_VALID;
    if (!output_padding || output_padding->count < 0)
        return in * stride + (valid && reach > stride ? reach - stride : 0);
    int64_t pads = valid ? 0 : reach / 2;
    return (in - 1) * stride + reach - 2 * pads + output_padding->values[axis];
}

leat_status leati_slide_infer_transposed(const leati_slide *slide, const leati_ints *output_padding,
                                         leati_shape *image, leat_error *err) {
    int spatial = slide->kernel->count;
    for (int axis = 0; axis < spatial; ++axis) {
        int64_t in = image->dims[axis + 1];
        const char *name = axis_names[spatial - 1][axis];
        if (in < 0) continue;
        int64_t out = transposed_length(slide, output_padding, axis, in);
        if (out > INT32_MAX)
            return leati_shape_unexpected(image, "an image whose output sizes are below 2147483648", err);
        if (out < 0 || length(slide, axis, out) != in)
            return leati_fail(
                err, LEAT_ESHAPE,
                "expected an output_padding whose output gives %lld %s after the window, received one "
                "whose output has %lld %s",
                (long long)in, name, (long long)out, name);
        image->dims[axis + 1] = out;
    }
    return LEAT_OK;
}

/* Computes the padding of an axis of `in` elements. */
static void pad_axis(const leati_slide *slide, int axis, int64_t in, leati_window *window) {
    int64_t missing = (length(slide, axis, in) - 1) * slide->strides->values[axis] + extent(slide, axis) - in;
    if (missing < 0) missing = 0;
    if (slide->padding == LEATI_PADDING_CAUSAL) {
        window->pad_before[axis] = extent(slide, axis) - 1;
    } else if (slide->padding == LEATI_PADDING_SAME) {
        window->pad_before[axis] = missing / 2;
        window->pad_after[axis] = missing - missing / 2;
    }
}

leati_window leati_slide_window(const leati_slide *slide, const leati_desc *image) {
    leati_window window = {.spatial = slide->kernel->count};
    for (int axis = 0; axis < window.spatial; ++axis) {
        window.kernel[axis] = slide->kernel->values[axis];
        window.stride[axis] = slide->strides->values[axis];
        window.dilation[axis] = slide->dilation ? slide->dilation->values[axis] : 1;
        pad_axis(slide, axis, image->rank == window.spatial + 2 ? image->shape[axis + 1] : 0, &window);
    }
    return window;
}
