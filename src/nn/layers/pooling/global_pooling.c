/* SPDX-License-Identifier: Apache-2.0 */
/* GlobalMaxPooling and GlobalAveragePooling: (N, spatial..., C) -> (N, C), or (N, 1..., C) with keepdims.  The
 * average of a sequence is over the steps that count in its mask.
 * Source: keras.layers.GlobalMaxPooling1D to 3D, keras.layers.GlobalAveragePooling1D to 3D. */
#include "base/error.h"
#include "nn/layers/spatial.h"
#include "nn/layers/types.h"

typedef struct config {
    int32_t data_format;
    bool keepdims;
} config;

static const leati_field fields[] = {LEATI_DATA_FORMAT_FIELD(config),
                                     {.key = "keepdims",
                                      .kind = LEATI_FIELD_BOOL,
                                      .offset = offsetof(config, keepdims),
                                      .preset = "false",
                                      .later = true},
                                     {.key = NULL}};

static int spatial_of(const leati_layer_type *type) {
    if (type == &leati_layer_global_max_pooling1d || type == &leati_layer_global_average_pooling1d) return 1;
    return type == &leati_layer_global_max_pooling3d || type == &leati_layer_global_average_pooling3d ? 3 : 2;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    const int spatial = spatial_of(layer->type);
    leati_shape image;
    (void)input_count, (void)output_count;
    LEATI_TRY(leati_image_shape(&inputs[0], spatial, c->data_format, &image, err));
    outputs[0] = (leati_shape){.rank = 2, .dims = {image.dims[0], image.dims[spatial + 1]}};
    if (!c->keepdims) return LEAT_OK;
    for (int i = 1; i <= spatial; ++i) image.dims[i] = 1;
    outputs[0] = leati_image_shape_back(&image, c->data_format);
    return LEAT_OK;
}

static leati_value reduce(const leati_layer *layer, leati_graph *g, leati_reduce kind, leati_value x) {
    const config *c = layer->config;
    uint32_t axes = leati_image_axes(spatial_of(layer->type), c->data_format);
    return leati_reduce_of(g, kind, x, axes, c->keepdims);
}

static void lower_max(const leati_layer *layer, leati_lowering *lowering, int input_count,
                      const leati_value *inputs, leati_value *outputs) {
    (void)input_count;
    outputs[0] = reduce(layer, lowering->graph, LEATI_REDUCE_MAX, inputs[0]);
}

static void lower_average(const leati_layer *layer, leati_lowering *lowering, int input_count,
                          const leati_value *inputs, leati_value *outputs) {
    (void)input_count;
    outputs[0] = reduce(layer, lowering->graph, LEATI_REDUCE_MEAN, inputs[0]);
}

/* Computes sum(mask x) / sum(mask) over the steps; if no step of a sequence counts, the result is NaN, as in
 * Keras. */
static void lower_masked(const leati_layer *layer, leati_lowering *lowering, int input_count,
                         const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    leati_value mask = lowering->input_masks[0];
    if (mask == LEATI_NONE) {
        lower_average(layer, lowering, input_count, inputs, outputs);
        return;
    }
    const leati_desc *desc = leati_graph_desc(g, mask);
    bool first = c->data_format == LEATI_CHANNELS_FIRST;
    int64_t batch = desc->shape[0], steps = desc->shape[1];
    mask = leati_reshape(g, mask, 3, (int64_t[]){batch, first ? 1 : steps, first ? steps : 1});
    leati_value sum = reduce(layer, g, LEATI_REDUCE_SUM, leati_mul(g, inputs[0], mask));
    outputs[0] = leati_div(g, sum, reduce(layer, g, LEATI_REDUCE_SUM, mask));
}

/* Members of leati_layer_type that all types of this file have in common. */
#define COMMON_MEMBERS LEATI_ONE_INPUT, .infer = infer

LEATI_LAYER_TYPE(global_max_pooling1d, "GlobalMaxPooling1D", "global_max_pooling1d", config, fields,
                 .lower = lower_max, COMMON_MEMBERS);
LEATI_LAYER_TYPE(global_max_pooling2d, "GlobalMaxPooling2D", "global_max_pooling2d", config, fields,
                 .lower = lower_max, COMMON_MEMBERS);
LEATI_LAYER_TYPE(global_max_pooling3d, "GlobalMaxPooling3D", "global_max_pooling3d", config, fields,
                 .lower = lower_max, COMMON_MEMBERS);
LEATI_LAYER_TYPE(global_average_pooling1d, "GlobalAveragePooling1D", "global_average_pooling1d", config,
                 fields, .masking = LEATI_MASK_COMPUTED, .lower = lower_masked, COMMON_MEMBERS);
LEATI_LAYER_TYPE(global_average_pooling2d, "GlobalAveragePooling2D", "global_average_pooling2d", config,
                 fields, .lower = lower_average, COMMON_MEMBERS);
LEATI_LAYER_TYPE(global_average_pooling3d, "GlobalAveragePooling3D", "global_average_pooling3d", config,
                 fields, .lower = lower_average, COMMON_MEMBERS);
