/* SPDX-License-Identifier: Apache-2.0 */
/* data_format, padding and sliding windows.  Layer: nn. */
#include "nn/layers/image.h"

#include <stdio.h>

#include "base/error.h"

const char *const leati_data_formats[] = {"channels_last", "channels_first", NULL};
const char *const leati_paddings[] = {"valid", "same", NULL};

leat_status leati_image_shape(const leati_shape *shape, int32_t data_format, leati_shape *out,
                              leat_error *err) {
    bool first = data_format == LEATI_CHANNELS_FIRST;
    if (shape->rank != 4)
        return leati_shape_unexpected(shape,
                                      first ? "an image (batch, channels, rows, columns)"
                                            : "an image (batch, rows, columns, channels)",
                                      err);
    *out = *shape;
    if (first) {
        out->dims[1] = shape->dims[2];
        out->dims[2] = shape->dims[3];
        out->dims[3] = shape->dims[1];
    }
    return LEAT_OK;
}

leati_shape leati_image_shape_back(const leati_shape *shape, int32_t data_format) {
    leati_shape out = *shape;
    if (data_format == LEATI_CHANNELS_FIRST) {
        out.dims[1] = shape->dims[3];
        out.dims[2] = shape->dims[1];
        out.dims[3] = shape->dims[2];
    }
    return out;
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

/* The extent of a window with its gaps. */
static int64_t extent(const leati_slide *slide, int axis) {
    int64_t dilation = slide->dilation ? slide->dilation->values[axis] : 1;
    return (slide->kernel->values[axis] - 1) * dilation + 1;
}

static int64_t length(const leati_slide *slide, int axis, int64_t in) {
    int64_t stride = slide->strides->values[axis];
    int64_t free = slide->padding == LEATI_PADDING_SAME ? in : in - extent(slide, axis) + 1;
    return (free + stride - 1) / stride;
}

leat_status leati_slide_infer(const leati_slide *slide, leati_shape *image, leat_error *err) {
    static const char *const names[] = {"rows", "columns"};
    for (int axis = 0; axis < 2; ++axis) {
        int64_t in = image->dims[axis + 1];
        if (in < 0) continue;
        if (slide->padding == LEATI_PADDING_VALID && in < extent(slide, axis)) {
            char expected[64];
            snprintf(expected, sizeof expected, "at least %lld %s for the window",
                     (long long)extent(slide, axis), names[axis]);
            return leati_shape_unexpected(image, expected, err);
        }
        image->dims[axis + 1] = length(slide, axis, in);
    }
    return LEAT_OK;
}

leati_window leati_slide_window(const leati_slide *slide, const leati_desc *image) {
    leati_window window = {.spatial = 2};
    for (int axis = 0; axis < 2; ++axis) {
        int64_t in = image->rank == 4 ? image->shape[axis + 1] : 0, stride = slide->strides->values[axis];
        int64_t missing = (length(slide, axis, in) - 1) * stride + extent(slide, axis) - in;
        if (slide->padding == LEATI_PADDING_VALID || missing < 0) missing = 0;
        window.kernel[axis] = slide->kernel->values[axis];
        window.stride[axis] = stride;
        window.dilation[axis] = slide->dilation ? slide->dilation->values[axis] : 1;
        window.pad_before[axis] = missing / 2;
        window.pad_after[axis] = missing - missing / 2;
    }
    return window;
}
