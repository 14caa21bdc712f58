/* SPDX-License-Identifier: Apache-2.0 */
/* MaxPooling and AveragePooling over 1 to 3 spatial axes; an average does not count the padding.
 * Source: keras.layers.MaxPooling1D to 3D, keras.layers.AveragePooling1D to 3D. */
#include "base/error.h"
#include "nn/layers/spatial.h"
#include "nn/layers/types.h"

typedef struct config {
    leati_ints pool_size, strides;
    int32_t padding, data_format;
} config;

#define FIELDS(spatial)                                                                                      \
    {                                                                                                        \
        LEATI_TUPLE_FIELD(config, pool_size, spatial, "2"), LEATI_PADDING_FIELD(config),                     \
            LEATI_TUPLE_FIELD(config, strides, spatial, "null"), LEATI_DATA_FORMAT_FIELD(config), {          \
            .key = NULL                                                                                      \
        }                                                                                                    \
    }
static const leati_field fields1d[] = FIELDS(1), fields2d[] = FIELDS(2), fields3d[] = FIELDS(3);

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
    LEATI_TRY(leati_image_shape(&inputs[0], c->pool_size.count, c->data_format, &image, err));
    LEATI_TRY(leati_slide_infer(&slide, &image, err));
    outputs[0] = leati_image_shape_back(&image, c->data_format);
    return LEAT_OK;
}

static void lower(const leati_layer *layer, leati_lowering *lowering, leati_pooling kind,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_slide slide = slide_of(c);
    leati_graph *g = lowering->graph;
    leati_value x = leati_image_value(g, inputs[0], c->data_format);
    leati_attrs attrs = {
        .pooling = {.window = leati_slide_window(&slide, leati_graph_desc(g, x)), .kind = kind}};
    leati_value y = leati_graph_node(g, LEATI_OP_POOLING, &attrs, 1, &x, NULL);
    outputs[0] = leati_image_value_back(g, y, c->data_format);
}

static void lower_max(const leati_layer *layer, leati_lowering *lowering, int input_count,
                      const leati_value *inputs, leati_value *outputs) {
    (void)input_count;
    lower(layer, lowering, LEATI_POOL_MAX, inputs, outputs);
}

static void lower_average(const leati_layer *layer, leati_lowering *lowering, int input_count,
                          const leati_value *inputs, leati_value *outputs) {
    (void)input_count;
    lower(layer, lowering, LEATI_POOL_AVERAGE, inputs, outputs);
}

/* Members of leati_layer_type that all types of this file have in common. */
#define COMMON_MEMBERS LEATI_ONE_INPUT, .check = check, .infer = infer

LEATI_LAYER_TYPE(max_pooling1d, "MaxPooling1D", "max_pooling1d", config, fields1d, .lower = lower_max,
                 COMMON_MEMBERS);
LEATI_LAYER_TYPE(max_pooling2d, "MaxPooling2D", "max_pooling2d", config, fields2d, .lower = lower_max,
                 COMMON_MEMBERS);
LEATI_LAYER_TYPE(max_pooling3d, "MaxPooling3D", "max_pooling3d", config, fields3d, .lower = lower_max,
                 COMMON_MEMBERS);
LEATI_LAYER_TYPE(average_pooling1d, "AveragePooling1D", "average_pooling1d", config, fields1d,
                 .lower = lower_average, COMMON_MEMBERS);
LEATI_LAYER_TYPE(average_pooling2d, "AveragePooling2D", "average_pooling2d", config, fields2d,
                 .lower = lower_average, COMMON_MEMBERS);
LEATI_LAYER_TYPE(average_pooling3d, "AveragePooling3D", "average_pooling3d", config, fields3d,
                 .lower = lower_average, COMMON_MEMBERS);
