/* SPDX-License-Identifier: Apache-2.0 */
/* GlobalMaxPooling2D and GlobalAveragePooling2D: (N, H, W, C) -> (N, C).
 * Source: keras.layers.GlobalMaxPooling2D, keras.layers.GlobalAveragePooling2D. */
#include "base/error.h"
#include "nn/layers/image.h"
#include "nn/layers/types.h"

typedef struct config {
    int32_t data_format;
} config;

static const leati_field fields[] = {LEATI_DATA_FORMAT_ROW(config), {.key = NULL}};

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    leati_shape image;
    (void)input_count, (void)output_count;
    LEATI_TRY(leati_image_shape(&inputs[0], 2, c->data_format, &image, err));
    outputs[0] = (leati_shape){.rank = 2, .dims = {image.dims[0], image.dims[3]}};
    return LEAT_OK;
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    uint32_t axes = c->data_format == LEATI_CHANNELS_FIRST ? 1u << 2 | 1u << 3 : 1u << 1 | 1u << 2;
    bool max = layer->type == &leati_layer_global_max_pooling2d;
    (void)input_count;
    outputs[0] =
        leati_reduce_of(lowering->graph, max ? LEATI_REDUCE_MAX : LEATI_REDUCE_MEAN, inputs[0], axes, false);
}

const leati_layer_type leati_layer_global_max_pooling2d = {.class_name = "GlobalMaxPooling2D",
                                                           .name_prefix = "global_max_pooling2d",
                                                           .config_bytes = sizeof(config),
                                                           .fields = fields,
                                                           .min_inputs = 1,
                                                           .max_inputs = 1,
                                                           .infer = infer,
                                                           .lower = lower};

const leati_layer_type leati_layer_global_average_pooling2d = {.class_name = "GlobalAveragePooling2D",
                                                               .name_prefix = "global_average_pooling2d",
                                                               .config_bytes = sizeof(config),
                                                               .fields = fields,
                                                               .min_inputs = 1,
                                                               .max_inputs = 1,
                                                               .infer = infer,
                                                               .lower = lower};
