/* SPDX-License-Identifier: Apache-2.0 */
/* PReLU: x if it is positive, else alpha x; alpha has the shape of a sample, with 1 along shared_axes.
 * Source: keras.layers.PReLU; He et al. 2015, equation 1. */
#include "base/error.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

typedef struct config {
    leati_weight_config alpha;
    leati_ints shared_axes; /* axis 0 is the batch, which cannot be shared */
} config;

static const leati_field fields[] = {LEATI_WEIGHT_FIELDS(config, alpha, "alpha", "\"zeros\""),
                                     {.key = "shared_axes",
                                      .kind = LEATI_FIELD_LIST,
                                      .offset = offsetof(config, shared_axes),
                                      .preset = "null",
                                      .minimum = 1,
                                      .limited = true},
                                     {.key = NULL}};

static leat_status alpha_shape(const config *c, const leati_shape *input, int64_t *dims, leat_error *err) {
    for (int i = 1; i < input->rank; ++i) dims[i - 1] = input->dims[i];
    for (int i = 0; i < c->shared_axes.count; ++i) {
        if (c->shared_axes.values[i] < 1 || c->shared_axes.values[i] >= input->rank)
            return leati_shape_unexpected(input, "an input that has all of shared_axes", err);
        dims[c->shared_axes.values[i] - 1] = 1;
    }
    return LEAT_OK;
}

static leat_status infer(const leati_layer *layer, int input_count, const leati_shape *inputs,
                         leati_shape *outputs, int *output_count, leat_error *err) {
    int64_t dims[LEAT_MAX_RANK];
    LEATI_TRY(alpha_shape(layer->config, &inputs[0], dims, err));
    return leati_infer_same(layer, input_count, inputs, outputs, output_count, err);
}

static leat_status build(leati_layer *layer, int input_count, const leati_shape *inputs, leat_error *err) {
    const config *c = layer->config;
    int64_t dims[LEAT_MAX_RANK];
    (void)input_count;
    if (inputs[0].rank < 1) return leati_shape_unexpected(&inputs[0], "an input with a batch dimension", err);
    LEATI_TRY(alpha_shape(c, &inputs[0], dims, err));
    return leati_weight_config_add(layer, "alpha", &c->alpha, inputs[0].rank - 1, dims, err);
}

/* Computes max(x, 0) + alpha min(x, 0); alpha is broadcast along the batch. */
static void lower(const leati_layer *layer, leati_lowering *lowering, int input_count,
                  const leati_value *inputs, leati_value *outputs) {
    leati_graph *g = lowering->graph;
    leati_value positive = leati_function_of(g, inputs[0], LEATI_FN_RELU);
    leati_value negative = leati_function_of(g, leati_linear(g, inputs[0], -1, 0), LEATI_FN_RELU);
    (void)input_count;
    outputs[0] = leati_sub(g, positive, leati_mul(g, leati_layer_weight(layer, lowering, 0), negative));
}

LEATI_LAYER_TYPE(prelu, "PReLU", "p_re_lu", config, fields, LEATI_ONE_INPUT, .masking = LEATI_MASK_PASSED,
                 .infer = infer, .build = build, .lower = lower);
