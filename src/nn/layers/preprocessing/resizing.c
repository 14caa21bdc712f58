/* SPDX-License-Identifier: Apache-2.0 */
/* Resizing and CenterCrop: images of another size.  An image that is smaller than the crop is resized, with its aspect
 * ratio.  Source: keras.layers.Resizing, keras.layers.CenterCrop. */
#include <string.h>

#include "base/error.h"
#include "nn/layers/operations/operations.h"
#include "nn/layers/operations/resample.h"
#include "nn/layers/spatial.h"
#include "nn/layers/types.h"

typedef struct config {
    int64_t height, width;
    int32_t interpolation, fill_mode, data_format;
    bool crop_to_aspect_ratio, pad_to_aspect_ratio, antialias;
    double fill_value;
} config;

static const char *const fill_modes[] = {"constant", NULL};

#define SIZE_FIELD(name)                                                                                     \
    { .key = #name, .kind = LEATI_FIELD_INT, .offset = offsetof(config, name), .minimum = 1, .limited = true }
static const leati_field resizing_fields[] = {
    SIZE_FIELD(height),
    SIZE_FIELD(width),
    LEATI_CHOICE_FIELD(config, interpolation, leati_interpolations, "\"bilinear\""),
    LEATI_FIELD(config, crop_to_aspect_ratio, LEATI_FIELD_BOOL, "false"),
    LEATI_FIELD(config, pad_to_aspect_ratio, LEATI_FIELD_BOOL, "false"),
    LEATI_CHOICE_FIELD(config, fill_mode, fill_modes, "\"constant\""),
    LEATI_FIELD(config, fill_value, LEATI_FIELD_FLOAT, "0.0"),
    LEATI_FIELD(config, antialias, LEATI_FIELD_BOOL, "false"),
    LEATI_DATA_FORMAT_FIELD(config),
    {.key = NULL}};
static const leati_field crop_fields[] = {SIZE_FIELD(height),
                                          SIZE_FIELD(width),
                                          LEATI_DATA_FORMAT_FIELD(config),
                                          {.key = NULL}};

static leat_status check(leati_layer *layer, leat_error *err) {
    const config *c = layer->config;
    if (c->height > INT32_MAX || c->width > INT32_MAX)
        return leati_fail(err, LEAT_EINVAL, "height, width: expected at most %d", INT32_MAX);
    if (c->crop_to_aspect_ratio && c->pad_to_aspect_ratio)
        return leati_fail(err, LEAT_EINVAL,
                          "pad_to_aspect_ratio: expected false, because crop_to_aspect_ratio is true");
    return LEAT_OK;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    leati_shape image;
    (void)input_count, (void)output_count;
    LEATI_TRY(leati_image_shape(&inputs[0], 2, c->data_format, &image, err));
    image.dims[1] = c->height;
    image.dims[2] = c->width;
    outputs[0] = leati_image_shape_back(&image, c->data_format);
    return LEAT_OK;
}

static leati_value as_float(leati_graph *g, leati_value x) {
    return leati_graph_desc(g, x)->dtype == LEAT_F32 ? x : leati_cast(g, x, LEAT_F32, 1);
}

/* Images of bytes stay bytes: their values are rounded, and limited to 0 to 255. */
static leati_value as_bytes(leati_graph *g, leati_value x, leat_dtype dtype) {
    return dtype == LEAT_U8 ? leati_clip(g, leati_operation_round(g, x), 0, 255) : x;
}

static void lower_resizing(const leati_layer *layer, leati_lowering *lowering, int input_count,
                           const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    (void)input_count;
    const leati_resize resize = {.interpolation = c->interpolation,
                                 .antialias = c->antialias,
                                 .crop = c->crop_to_aspect_ratio,
                                 .pad = c->pad_to_aspect_ratio,
                                 .fill = c->fill_value,
                                 .height = c->height,
                                 .width = c->width};
    leat_dtype dtype = leati_graph_desc(g, inputs[0])->dtype;
    leati_value x = leati_image_value(g, as_float(g, inputs[0]), c->data_format);
    x = as_bytes(g, leati_resize_image(g, x, &resize), dtype);
    outputs[0] = leati_image_value_back(g, x, c->data_format);
}

static void lower_crop(const leati_layer *layer, leati_lowering *lowering, int input_count,
                       const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    (void)input_count;
    leati_value x = leati_image_value(g, as_float(g, inputs[0]), c->data_format);
    const leati_desc desc = *leati_graph_desc(g, x);
    if (desc.shape[1] >= c->height && desc.shape[2] >= c->width) {
        x = leati_slice_axis(g, x, 1, (desc.shape[1] - c->height) / 2, c->height);
        x = leati_slice_axis(g, x, 2, (desc.shape[2] - c->width) / 2, c->width);
    } else {
        const leati_resize resize = {.crop = true, .height = c->height, .width = c->width};
        x = leati_resize_image(g, x, &resize);
    }
    outputs[0] = leati_image_value_back(g, x, c->data_format);
}

/* Members of leati_layer_type that all types of this file have in common. */
#define COMMON_MEMBERS LEATI_ONE_INPUT, .check = check, .infer = infer

LEATI_LAYER_TYPE(resizing, "Resizing", "resizing", config, resizing_fields, .lower = lower_resizing,
                 COMMON_MEMBERS);
LEATI_LAYER_TYPE(center_crop, "CenterCrop", "center_crop", config, crop_fields, .lower = lower_crop,
                 COMMON_MEMBERS);
