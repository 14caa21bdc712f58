/* SPDX-License-Identifier: Apache-2.0 */
/* ZeroPadding and Cropping over 1 to 3 spatial axes: add zeros around an image, or remove its border.
 * Source: keras.layers.ZeroPadding1D to 3D, keras.layers.Cropping1D to 3D. */
#include "base/error.h"
#include "nn/layers/spatial.h"
#include "nn/layers/types.h"

typedef struct config {
    leati_ints margins; /* before and after, for each axis */
    int32_t data_format;
} config;

#define MARGINS(title, kind_, count, default_)                                                               \
    {                                                                                                        \
        .key = title, .kind = kind_, .offset = offsetof(config, margins), .preset = default_,                \
        .arity = count, .minimum = 0, .limited = true                                                        \
    }
/* In 1D, Keras has a pair of numbers and no data_format; current Keras has a data_format for ZeroPadding1D. */
#define FIELDS1D(name_)                                                                                      \
    {                                                                                                        \
        MARGINS(name_, LEATI_FIELD_TUPLE, 2, "1"), {                                                         \
            .key = NULL                                                                                      \
        }                                                                                                    \
    }
#define FIELDS(name_, spatial, preset_)                                                                      \
    {                                                                                                        \
        MARGINS(name_, LEATI_FIELD_PAIRS, spatial, preset_), LEATI_DATA_FORMAT_FIELD(config), {              \
            .key = NULL                                                                                      \
        }                                                                                                    \
    }
static const leati_field padding1d[] = {MARGINS("padding", LEATI_FIELD_TUPLE, 2, "1"),
                                        LEATI_LATER_DATA_FORMAT_FIELD(config),
                                        {.key = NULL}};
static const leati_field padding2d[] = FIELDS("padding", 2, "1"), padding3d[] = FIELDS("padding", 3, "1");
static const leati_field cropping1d[] = FIELDS1D("cropping"), cropping2d[] = FIELDS("cropping", 2, "0"),
                         cropping3d[] = FIELDS("cropping", 3, "1");

/* sign: 1 adds the margins, -1 removes them */
static leat_status infer(const leati_layer *layer, int sign, const leati_shape *input, leati_shape *output,
                         leat_error *err) {
    const config *c = layer->config;
    const int spatial = c->margins.count / 2;
    leati_shape image;
    LEATI_TRY(leati_image_shape(input, spatial, c->data_format, &image, err));
    for (int axis = 0; axis < spatial; ++axis) {
        int64_t *dim = &image.dims[axis + 1];
        int64_t both = c->margins.values[2 * axis] + c->margins.values[2 * axis + 1];
        if (*dim < 0) continue;
        *dim += sign * both;
        if (*dim < 1 && sign < 0)
            return leati_shape_unexpected(input, "an input that is larger than what is cropped", err);
        if (*dim > INT32_MAX)
            return leati_shape_unexpected(&image, "fewer than 2147483648 elements along an axis", err);
    }
    *output = leati_image_shape_back(&image, c->data_format);
    return LEAT_OK;
}

static leat_status infer_padding(const leati_layer *layer, int input_count, const leati_shape *inputs,
                                 leati_shape *outputs, int *output_count, leat_error *err) {
    (void)input_count, (void)output_count;
    return infer(layer, 1, &inputs[0], &outputs[0], err);
}

static leat_status infer_cropping(const leati_layer *layer, int input_count, const leati_shape *inputs,
                                  leati_shape *outputs, int *output_count, leat_error *err) {
    (void)input_count, (void)output_count;
    return infer(layer, -1, &inputs[0], &outputs[0], err);
}

static void lower_padding(const leati_layer *layer, leati_lowering *lowering, int input_count,
                          const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    int64_t before[LEAT_MAX_RANK] = {0}, after[LEAT_MAX_RANK] = {0};
    (void)input_count;
    for (int i = 0; i < c->margins.count; i += 2) {
        before[leati_image_first_axis(c->data_format) + i / 2] = c->margins.values[i];
        after[leati_image_first_axis(c->data_format) + i / 2] = c->margins.values[i + 1];
    }
    outputs[0] = leati_pad(lowering->graph, inputs[0], before, after, 0.0f);
}

static void lower_cropping(const leati_layer *layer, leati_lowering *lowering, int input_count,
                           const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    const leati_desc *desc = leati_graph_desc(lowering->graph, inputs[0]);
    leati_attrs attrs = {0};
    (void)input_count;
    for (int i = 0; i < desc->rank; ++i) attrs.slice.size[i] = desc->shape[i];
    for (int i = 0; i < c->margins.count; i += 2) {
        int axis = leati_image_first_axis(c->data_format) + i / 2;
        attrs.slice.start[axis] = c->margins.values[i];
        attrs.slice.size[axis] -= c->margins.values[i] + c->margins.values[i + 1];
    }
    outputs[0] = leati_graph_node(lowering->graph, LEATI_OP_SLICE, &attrs, 1, inputs, NULL);
}

/* Members of leati_layer_type that all types of this file have in common. */
#define COMMON_MEMBERS LEATI_ONE_INPUT

LEATI_LAYER_TYPE(zero_padding1d, "ZeroPadding1D", "zero_padding1d", config, padding1d, .infer = infer_padding,
                 .lower = lower_padding, COMMON_MEMBERS);
LEATI_LAYER_TYPE(zero_padding2d, "ZeroPadding2D", "zero_padding2d", config, padding2d, .infer = infer_padding,
                 .lower = lower_padding, COMMON_MEMBERS);
LEATI_LAYER_TYPE(zero_padding3d, "ZeroPadding3D", "zero_padding3d", config, padding3d, .infer = infer_padding,
                 .lower = lower_padding, COMMON_MEMBERS);
LEATI_LAYER_TYPE(cropping1d, "Cropping1D", "cropping1d", config, cropping1d, .infer = infer_cropping,
                 .lower = lower_cropping, COMMON_MEMBERS);
LEATI_LAYER_TYPE(cropping2d, "Cropping2D", "cropping2d", config, cropping2d, .infer = infer_cropping,
                 .lower = lower_cropping, COMMON_MEMBERS);
LEATI_LAYER_TYPE(cropping3d, "Cropping3D", "cropping3d", config, cropping3d, .infer = infer_cropping,
                 .lower = lower_cropping, COMMON_MEMBERS);
