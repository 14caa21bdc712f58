/* SPDX-License-Identifier: Apache-2.0 */
/* RMSNormalization: scale x / sqrt(mean(x^2) + epsilon), with the mean of each sample over some axes.  As in Keras,
 * the outputs have no mask.
 * Source: keras.layers.RMSNormalization of current Keras; Zhang and Sennrich 2019 (arXiv 1910.07467). */
#include "base/error.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

typedef struct config {
    leati_ints axis; /* negative: from the end */
    double epsilon;
} config;

static const leati_field fields[] = {
    {.key = "axis", .kind = LEATI_FIELD_NUMBERS, .offset = offsetof(config, axis), .preset = "-1"},
    LEATI_FIELD(config, epsilon, LEATI_FIELD_FLOAT, "1e-06"),
    {.key = NULL}};

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    const config *c = layer->config;
    uint32_t axes;
    LEATI_TRY(leati_axes_find(&c->axis, &inputs[0], 1, &axes, err));
    return leati_infer_same(layer, input_count, inputs, outputs, output_count, err);
}

/* Like Keras, gives the scale the axes in the order of their numbers as they are written, and multiplies by it as if
 * they were the last axes of the input. */
static leati_shape scale_shape(const config *c, const leati_shape *input) {
    leati_shape out = {0};
    int64_t last = INT64_MIN;
    for (int n = 0; n < c->axis.count; ++n) {
        int64_t next = INT64_MAX;
        for (int i = 0; i < c->axis.count; ++i)
            if (c->axis.values[i] > last && c->axis.values[i] < next) next = c->axis.values[i];
        if (next == INT64_MAX) break;
        out.dims[out.rank++] = input->dims[next < 0 ? next + input->rank : next];
        last = next;
    }
    return out;
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const leati_shape scale = scale_shape(layer->config, &inputs[0]);
    leati_weight_spec spec = {.name = "scale", .rank = scale.rank, .initializer = &leati_ones};
    (void)input_count;
    for (int i = 0; i < scale.rank; ++i) {
        spec.dims[i] = scale.dims[i];
        int64_t size = inputs[0].dims[inputs[0].rank - scale.rank + i];
        if (spec.dims[i] < 1 || (spec.dims[i] != 1 && spec.dims[i] != size))
            return leati_shape_unexpected(&inputs[0],
                                          "an input whose last axes have the known sizes of the axes in "
                                          "axis, because Keras multiplies them by the scale",
                                          err);
    }
    return leati_layer_add_weight(layer, &spec, err);
}

static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    leati_graph *g = lowering->graph;
    const leati_eltwise power = {.function = LEATI_FN_POW, .a = -0.5f};
    const leati_desc desc = *leati_graph_desc(g, inputs[0]);
    leati_value scale = leati_layer_weight(layer, lowering, 0);
    const leati_desc weight = *leati_graph_desc(g, scale);
    int64_t dims[LEAT_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    uint32_t axes = leati_axes_of(&c->axis, desc.rank);
    (void)input_count;
    outputs[0] = inputs[0];
    if (desc.rank < weight.rank || axes == 0) return; /* a graph that has failed has no shapes */
    for (int i = 0; i < weight.rank; ++i) dims[desc.rank - weight.rank + i] = weight.shape[i];
    leati_value square = leati_function_of(g, inputs[0], LEATI_FN_SQUARE);
    leati_value mean = leati_reduce_of(g, LEATI_REDUCE_MEAN, square, axes, true);
    leati_value inverse = leati_eltwise_of(g, leati_linear(g, mean, 1, (float)c->epsilon), power);
    outputs[0] = leati_mul(g, leati_mul(g, inputs[0], inverse), leati_reshape(g, scale, desc.rank, dims));
}

LEATI_LAYER_TYPE(rms_normalization, "RMSNormalization", "rms_normalization", config, fields, LEATI_ONE_INPUT,
                 .masking = LEATI_MASK_COMPUTED, .steps = LEATI_STEPS_BY_AXIS, .infer = infer, .build = build,
                 .lower = lower);
