/* SPDX-License-Identifier: Apache-2.0 */
/* UpSampling over 1 to 3 spatial axes: repeats each element, or interpolates an image bilinearly, like TensorFlow
 * 2.1, or with half-pixel centers, like current Keras, which also has other interpolations.  Source:
 * keras.layers.UpSampling1D to 3D. */
#include "base/error.h"
#include "nn/layers/operations/resample.h"
#include "nn/layers/spatial.h"
#include "nn/layers/types.h"

/* In the order of leati_interpolations, without "area". */
static const char *const interpolations[] = {"bilinear", "nearest", "bicubic", "lanczos3", "lanczos5", NULL};

typedef struct config {
    leati_ints size;
    int64_t steps; /* size of UpSampling1D, which Keras writes as a number */
    int32_t data_format, interpolation;
    bool as_keras3; /* set for files of current Keras */
} config;

static const leati_field fields1d[] = {{.key = "size",
                                        .kind = LEATI_FIELD_INT,
                                        .offset = offsetof(config, steps),
                                        .preset = "2",
                                        .minimum = 1,
                                        .limited = true},
                                       {.key = NULL}};
static const leati_field fields2d[] = {LEATI_TUPLE_FIELD(config, size, 2, "2"),
                                       LEATI_DATA_FORMAT_FIELD(config),
                                       LEATI_CHOICE_FIELD(config, interpolation, interpolations,
                                                          "\"nearest\""),
                                       LEATI_AS_KERAS3_FIELD(config),
                                       {.key = NULL}};
static const leati_field fields3d[] = {LEATI_TUPLE_FIELD(config, size, 3, "2"),
                                       LEATI_DATA_FORMAT_FIELD(config),
                                       {.key = NULL}};

static leat_status check1d(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    (void)err;
    c->size = (leati_ints){.count = 1, .values = {c->steps}};
    return LEAT_OK;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    leati_shape image;
    (void)input_count, (void)output_count;
    LEATI_TRY(leati_image_shape(&inputs[0], c->size.count, c->data_format, &image, err));
    for (int i = 0; i < c->size.count; ++i) {
        if (image.dims[i + 1] >= 0) image.dims[i + 1] *= c->size.values[i]; /* each size is below 2^31 */
        if (image.dims[i + 1] > INT32_MAX)
            return leati_shape_unexpected(&image, "fewer than 2147483648 elements along an axis", err);
    }
    outputs[0] = leati_image_shape_back(&image, c->data_format);
    return LEAT_OK;
}

/* Interpolates with the kernels of Resizing. */
static leati_value resized(leati_graph *g, leati_value x, const config *c) {
    const int64_t *dims = leati_graph_desc(g, x)->shape;
    const leati_resize resize = {.interpolation = c->interpolation,
                                 .height = dims[1] * c->size.values[0],
                                 .width = dims[2] * c->size.values[1]};
    return leati_resize_image(g, x, &resize);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    bool linear = c->size.count == 2 && c->interpolation == LEATI_RESIZE_BILINEAR;
    bool own = c->size.count != 2 || linear || c->interpolation == LEATI_RESIZE_NEAREST;
    leati_attrs attrs = {
        .resample = {.linear = linear, .halved = c->as_keras3 && linear, .spatial = c->size.count}};
    leati_value x = leati_image_value(lowering->graph, inputs[0], c->data_format);
    (void)input_count;
    for (int i = 0; i < c->size.count; ++i) attrs.resample.factor[i] = c->size.values[i];
    leati_value y = own ? leati_graph_node(lowering->graph, LEATI_OP_RESAMPLE, &attrs, 1, &x, NULL)
                        : resized(lowering->graph, x, c);
    outputs[0] = leati_image_value_back(lowering->graph, y, c->data_format);
}

/* Members of leati_layer_type that all types of this file have in common. */
#define COMMON_MEMBERS LEATI_ONE_INPUT, .infer = infer, .lower = lower

LEATI_LAYER_TYPE(up_sampling1d, "UpSampling1D", "up_sampling1d", config, fields1d, .check = check1d,
                 COMMON_MEMBERS);
LEATI_LAYER_TYPE(up_sampling2d, "UpSampling2D", "up_sampling2d", config, fields2d, COMMON_MEMBERS);
LEATI_LAYER_TYPE(up_sampling3d, "UpSampling3D", "up_sampling3d", config, fields3d, COMMON_MEMBERS);
