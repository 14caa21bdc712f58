/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of each element with a parameter, LeakyReLU, ELU, ThresholdedReLU and ReLU, and Softmax over any axes.
 * Source: keras.layers.LeakyReLU, ELU, ThresholdedReLU, ReLU, Softmax. */
#include <math.h>

#include "base/error.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

/* ---- LeakyReLU and ELU ---- */

typedef struct scale_config {
    double alpha;
} scale_config;

static const leati_field leaky_relu_fields[] = {LEATI_FIELD(scale_config, alpha, LEATI_FIELD_FLOAT,
                                                            "0.30000001192092896"),
                                                {.key = NULL}};

static const leati_field elu_fields[] = {LEATI_FIELD(scale_config, alpha, LEATI_FIELD_FLOAT, "1.0"),
                                         {.key = NULL}};

static void lower_scaled(const leati_layer *layer, leati_lowering *lowering, int input_count,
                         const leati_value *inputs, leati_value *outputs) {
    const scale_config *c = layer->config;
    bool leaky = layer->type == &leati_layer_leaky_relu;
    (void)input_count;
    leati_eltwise f = {.function = leaky ? LEATI_FN_RELU : LEATI_FN_ELU, .a = (float)c->alpha, .b = INFINITY};
    outputs[0] = leati_eltwise_of(lowering->graph, inputs[0], f);
}

/* ---- ThresholdedReLU and ReLU ---- */

typedef struct threshold_config {
    double theta;
} threshold_config;

static const leati_field thresholded_relu_fields[] = {LEATI_FIELD(threshold_config, theta, LEATI_FIELD_FLOAT,
                                                                  "1.0"),
                                                      {.key = NULL}};

/* Returns the threshold for the op RELU, which puts an x equal to the threshold into the upper part.  Keras puts it
 * into the lower part, except for a threshold of 0. */
static float just_above(double threshold) {
    return threshold == 0 ? 0 : nextafterf((float)threshold, INFINITY);
}

static void lower_thresholded(const leati_layer *layer, leati_lowering *lowering, int input_count,
                              const leati_value *inputs, leati_value *outputs) {
    const threshold_config *c = layer->config;
    (void)input_count;
    leati_eltwise f = {.function = LEATI_FN_RELU, .b = INFINITY, .c = just_above(c->theta)};
    outputs[0] = leati_eltwise_of(lowering->graph, inputs[0], f);
}

typedef struct relu_config {
    double max_value; /* NAN: none */
    double negative_slope, threshold;
} relu_config;

static const leati_field relu_fields[] = {{.key = "max_value",
                                           .kind = LEATI_FIELD_OPTIONAL_FLOAT,
                                           .offset = offsetof(relu_config, max_value),
                                           .preset = "null",
                                           .limited = true},
                                          {.key = "negative_slope",
                                           .kind = LEATI_FIELD_FLOAT,
                                           .offset = offsetof(relu_config, negative_slope),
                                           .preset = "0.0",
                                           .limited = true},
                                          LEATI_FIELD(relu_config, threshold, LEATI_FIELD_FLOAT, "0.0"),
                                          {.key = NULL}};

/* If the threshold is negative: the slope below the threshold, the clipped x above 0, and 0 in between, because Keras
 * clips x to [0, max_value]. */
static leati_value clipped_above_zero(leati_graph *g, leati_value x, const relu_config *c) {
    leati_eltwise rectified = {.function = LEATI_FN_RELU, .b = (float)c->max_value};
    leati_eltwise positive = {.function = LEATI_FN_RELU, .b = INFINITY};
    leati_value y = leati_eltwise_of(g, x, rectified);
    if (c->negative_slope == 0) return y;
    leati_value below = leati_eltwise_of(g, leati_linear(g, x, -1, (float)c->threshold), positive);
    return leati_sub(g, y, leati_linear(g, below, (float)c->negative_slope, 0));
}

static void lower_relu(const leati_layer *layer, leati_lowering *lowering, int input_count,
                       const leati_value *inputs, leati_value *outputs) {
    const relu_config *c = layer->config;
    bool limited = !isnan(c->max_value);
    (void)input_count;
    if (limited && c->threshold < 0) {
        outputs[0] = clipped_above_zero(lowering->graph, inputs[0], c);
        return;
    }
    leati_eltwise f = {.function = LEATI_FN_RELU,
                       .a = (float)c->negative_slope,
                       .b = limited ? (float)c->max_value : INFINITY,
                       .c = just_above(c->threshold)};
    outputs[0] = leati_eltwise_of(lowering->graph, inputs[0], f);
}

/* ---- Softmax ---- */

typedef struct softmax_config {
    leati_ints axis; /* negative: from the end */
} softmax_config;

static const leati_field softmax_fields[] = {LEATI_FIELD(softmax_config, axis, LEATI_FIELD_NUMBERS, "-1"),
                                             {.key = NULL}};

static leat_status infer_softmax(const leati_layer *layer, int input_count, const leati_shape *inputs,
                                 leati_shape *outputs, int *output_count, leat_error *err) {
    const softmax_config *c = layer->config;
    uint32_t axes;
    if (inputs[0].rank < 2) return leati_shape_unexpected(&inputs[0], "an input of rank 2 or more", err);
    LEATI_TRY(leati_axes_find(&c->axis, &inputs[0], 0, &axes, err));
    return leati_infer_same(layer, input_count, inputs, outputs, output_count, err);
}

/* Returns true if the mask says for each element if it counts: its sizes are those of x, or 1. */
static bool masks_elements(const leati_graph *g, leati_value x, leati_value mask) {
    const leati_desc *shape = leati_graph_desc(g, x), *sizes = leati_graph_desc(g, mask);
    bool fits = shape->rank == sizes->rank;
    for (int i = 0; fits && i < shape->rank; ++i)
        fits = sizes->shape[i] == 1 || sizes->shape[i] == shape->shape[i];
    return fits;
}

/* Makes the elements that do not count very small.  Returns the mask, by which the result is to be multiplied;
 * LEATI_NONE: all elements count.  Keras 2.3.1 passes the mask on without using it; so does current Keras, except that
 * the mask of the call is no mask of steps. */
static leati_value apply_mask(leati_lowering *lowering, leati_value *x) {
    leati_graph *g = lowering->graph;
    const leati_value mask = lowering->input_masks[0];
    if (!lowering->masked) lowering->output_masks[0] = mask;
    if (mask == LEATI_NONE || !lowering->as_keras3) return LEATI_NONE;
    if (!masks_elements(g, *x, mask))
        *x = leati_graph_fail(
            g, LEAT_ENOTSUP,
            "Softmax: its input has a mask of steps, which current Keras takes for a mask of "
            "the classes, and refuses; use Activation('softmax')");
    leati_value kept = leati_mul(g, *x, mask);
    *x = leati_add(g, kept, leati_linear(g, mask, 1e9f, -1e9f));
    return mask;
}

/* For a matrix, Keras uses the last axis, whatever the configuration says. */
static void lower_softmax(const leati_layer *layer, leati_lowering *lowering, int input_count,
                          const leati_value *inputs, leati_value *outputs) {
    const softmax_config *c = layer->config;
    int rank = leati_graph_desc(lowering->graph, inputs[0])->rank;
    leati_value x = inputs[0];
    (void)input_count;
    const leati_value mask = apply_mask(lowering, &x);
    outputs[0] = leati_softmax_over(lowering->graph, x, rank == 2 ? 2 : leati_axes_of(&c->axis, rank));
    if (mask != LEATI_NONE) outputs[0] = leati_mul(lowering->graph, outputs[0], mask);
}

/* Members of leati_layer_type that all types of this file have in common. */
#define COMMON_MEMBERS LEATI_ONE_INPUT, .masking = LEATI_MASK_PASSED

LEATI_LAYER_TYPE(leaky_relu, "LeakyReLU", "leaky_re_lu", scale_config, leaky_relu_fields,
                 .steps = LEATI_STEPS_BY_NUMBER, .infer = leati_infer_same, .lower = lower_scaled,
                 COMMON_MEMBERS);
LEATI_LAYER_TYPE(elu, "ELU", "elu", scale_config, elu_fields, .steps = LEATI_STEPS_BY_NUMBER,
                 .infer = leati_infer_same, .lower = lower_scaled, COMMON_MEMBERS);
LEATI_LAYER_TYPE(thresholded_relu, "ThresholdedReLU", "thresholded_re_lu", threshold_config,
                 thresholded_relu_fields, .steps = LEATI_STEPS_BY_NUMBER, .infer = leati_infer_same,
                 .lower = lower_thresholded, COMMON_MEMBERS);
LEATI_LAYER_TYPE(relu, "ReLU", "re_lu", relu_config, relu_fields, .steps = LEATI_STEPS_BY_NUMBER,
                 .infer = leati_infer_same, .lower = lower_relu, COMMON_MEMBERS);
LEATI_LAYER_TYPE(softmax, "Softmax", "softmax", softmax_config, softmax_fields, LEATI_ONE_INPUT,
                 .masking = LEATI_MASK_COMPUTED, .steps = LEATI_STEPS_BY_AXIS, .infer = infer_softmax,
                 .lower = lower_softmax);
