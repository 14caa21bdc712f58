/* SPDX-License-Identifier: Apache-2.0 */
/* ZeroPadding2D: zeros around an image.  Source: keras.layers.ZeroPadding2D. */
#include "base/error.h"
#include "nn/layers/image.h"
#include "nn/layers/types.h"

typedef struct config {
    leati_ints padding; /* top, bottom, left, right */
    int32_t data_format;
} config;

static const leati_field fields[] = {{.key = "padding",
                                      .kind = LEATI_FIELD_PAIRS,
                                      .offset = offsetof(config, padding),
                                      .preset = "1",
                                      .arity = 2,
                                      .minimum = 0,
                                      .limited = true},
                                     LEATI_DATA_FORMAT_ROW(config),
                                     {.key = NULL}};

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    leati_shape image;
    (void)input_count, (void)output_count;
    LEATI_TRY(leati_image_shape(&inputs[0], 2, c->data_format, &image, err));
    for (int axis = 0; axis < 2; ++axis) {
        int64_t *dim = &image.dims[axis + 1];
        if (*dim >= 0) *dim += c->padding.values[2 * axis] + c->padding.values[2 * axis + 1];
        if (*dim > INT32_MAX)
            return leati_shape_unexpected(&image, "fewer than 2147483648 rows and columns", err);
    }
    outputs[0] = leati_image_shape_back(&image, c->data_format);
    return LEAT_OK;
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    int first = c->data_format == LEATI_CHANNELS_FIRST ? 2 : 1;
    int64_t before[LEAT_MAX_RANK] = {0}, after[LEAT_MAX_RANK] = {0};
    (void)input_count;
    for (int axis = 0; axis < 2; ++axis) {
        before[first + axis] = c->padding.values[2 * axis];
        after[first + axis] = c->padding.values[2 * axis + 1];
    }
    outputs[0] = leati_pad(lowering->graph, inputs[0], before, after, 0.0f);
}

const leati_layer_type leati_layer_zero_padding2d = {.class_name = "ZeroPadding2D",
                                                     .name_prefix = "zero_padding2d",
                                                     .config_bytes = sizeof(config),
                                                     .fields = fields,
                                                     .min_inputs = 1,
                                                     .max_inputs = 1,
                                                     .infer = infer,
                                                     .lower = lower};
