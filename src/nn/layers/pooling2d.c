/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPooling2D and AveragePooling2D, the latter over the pixels inside the image.
 * Source: keras.layers.MaxPooling2D, keras.layers.AveragePooling2D. */
#include "base/error.h"
#include "nn/layers/image.h"
#include "nn/layers/types.h"

typedef struct config {
    leati_ints pool_size, strides;
    int32_t padding, data_format;
} config;

static const leati_field fields[] = {LEATI_TUPLE_ROW(config, pool_size, 2, "2"),
                                     LEATI_PADDING_ROW(config),
                                     LEATI_TUPLE_ROW(config, strides, 2, "null"),
                                     LEATI_DATA_FORMAT_ROW(config),
                                     {.key = NULL}};

static leati_slide slide_of(const config *c) {
    return (leati_slide){&c->pool_size, &c->strides, NULL, c->padding};
}

static leat_status check(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    (void)err;
    if (c->strides.count < 0) c->strides = c->pool_size;
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
    outputs[0] = leati_image_shape_back(&image, c->data_format);
    return LEAT_OK;
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_slide slide = slide_of(c);
    leati_graph *g = lowering->graph;
    leati_value x = leati_image_value(g, inputs[0], c->data_format);
    bool max = layer->type == &leati_layer_max_pooling2d;
    leati_attrs attrs = {.pooling = {.window = leati_slide_window(&slide, leati_graph_desc(g, x)),
                                     .kind = max ? LEATI_POOL_MAX : LEATI_POOL_AVERAGE}};
    (void)input_count;
    leati_value y = leati_graph_node(g, LEATI_OP_POOLING, &attrs, 1, &x, NULL);
    outputs[0] = leati_image_value_back(g, y, c->data_format);
}

const leati_layer_type leati_layer_max_pooling2d = {.class_name = "MaxPooling2D",
                                                    .name_prefix = "max_pooling2d",
                                                    .config_bytes = sizeof(config),
                                                    .fields = fields,
                                                    .min_inputs = 1,
                                                    .max_inputs = 1,
                                                    .check = check,
                                                    .infer = infer,
                                                    .lower = lower};

const leati_layer_type leati_layer_average_pooling2d = {.class_name = "AveragePooling2D",
                                                        .name_prefix = "average_pooling2d",
                                                        .config_bytes = sizeof(config),
                                                        .fields = fields,
                                                        .min_inputs = 1,
                                                        .max_inputs = 1,
                                                        .check = check,
                                                        .infer = infer,
                                                        .lower = lower};
