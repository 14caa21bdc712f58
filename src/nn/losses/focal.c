/* SPDX-License-Identifier: Apache-2.0 */
/* Crossentropies of current Keras that weight samples by how wrong they are: the focal crossentropies (Lin and others
 * 2017, arXiv:1708.02002) and the generalized crossentropy (Zhang, Sabuncu 2018, arXiv:1805.07836).  Room: nn. */
#include "engine/graph/build.h"
#include "nn/losses/types.h"

/* Returns x^exponent; an exponent of 0 has no gradient, also where x is 0. */
static leati_value raised(leati_graph *g, leati_value x, double exponent) {
    if (exponent == 0.0) return leati_linear(g, x, 0.0f, 1.0f);
    if (exponent == 2.0) return leati_function_of(g, x, LEATI_FN_SQUARE);
    return leati_eltwise_of(g, x, (leati_eltwise){.function = LEATI_FN_POW, .a = (float)exponent});
}

static int axis_of(const leati_graph *g, const leati_measure_options *options, leati_value y_pred) {
    int rank = leati_graph_desc(g, y_pred)->rank;
    int64_t axis = options->axis < 0 ? options->axis + rank : options->axis;
    return axis >= 0 && axis < rank ? (int)axis : -1;
}

static leati_value wrong_axis(leati_graph *g, const leati_measure_options *options, leati_value y_pred) {
    return leati_graph_fail(g, LEAT_ESHAPE,
                            "focal crossentropy: axis %d is out of range for a prediction of rank %d",
                            (int)options->axis, (int)leati_graph_desc(g, y_pred)->rank);
}

/* Returns a t + b (1 - t). */
static leati_value between(leati_graph *g, leati_value t, leati_value a, leati_value b) {
    return leati_add(g, leati_mul(g, t, a), leati_mul(g, leati_linear(g, t, -1.0f, 1.0f), b));
}

/* mean (1 - p_t)^gamma crossentropy, where p_t is the probability of the target */
static leati_value binary(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                          leati_value y_pred) {
    leati_measure_options current = *options;
    int axis = axis_of(g, options, y_pred);
    if (axis < 0) return wrong_axis(g, options, y_pred);
    current.as_keras3 = true;
    current.from_logits = false;
    leati_value t = leati_smoothed_labels(g, y_true, options->label_smoothing, 2.0f);
    if (options->from_logits) y_pred = leati_function_of(g, y_pred, LEATI_FN_SIGMOID);
    leati_value values = leati_binary_values(g, &current, t, y_pred);
    leati_value p = between(g, t, y_pred, leati_linear(g, y_pred, -1.0f, 1.0f));
    values = leati_mul(g, raised(g, leati_linear(g, p, -1.0f, 1.0f), options->gamma), values);
    float alpha = (float)options->alpha;
    if (options->apply_class_balancing)
        values = leati_mul(g, leati_linear(g, t, 2.0f * alpha - 1.0f, 1.0f - alpha), values);
    return leati_reduce_of(g, LEATI_REDUCE_MEAN, values, UINT32_C(1) << axis, false);
}

/* sum of -t log(p) alpha (1 - p)^gamma */
static leati_value categorical(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                               leati_value y_pred) {
    const leati_desc *desc = leati_graph_desc(g, y_true);
    float classes = desc->rank > 0 ? (float)desc->shape[desc->rank - 1] : 1.0f;
    int axis = axis_of(g, options, y_pred);
    if (axis < 0) return wrong_axis(g, options, y_pred);
    leati_value t = leati_smoothed_labels(g, y_true, options->label_smoothing, classes);
    if (options->from_logits) y_pred = leati_softmax_of(g, y_pred, axis);
    leati_value sum = leati_reduce_of(g, LEATI_REDUCE_SUM, y_pred, UINT32_C(1) << axis, true);
    leati_value p = leati_clip(g, leati_div(g, y_pred, sum), LEATI_EPSILON, 1.0f - LEATI_EPSILON);
    leati_value factor = raised(g, leati_linear(g, p, -1.0f, 1.0f), options->gamma);
    leati_value values = leati_mul(g, leati_mul(g, t, leati_function_of(g, p, LEATI_FN_LOG)), factor);
    values = leati_linear(g, values, -(float)options->alpha, 0.0f);
    return leati_reduce_of(g, LEATI_REDUCE_SUM, values, UINT32_C(1) << axis, false);
}

/* (1 - p^q) / q, where p is the probability of the target's class */
static leati_value generalized(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                               leati_value y_pred) {
    float q = (float)options->q;
    leati_value rows = leati_class_rows(g, options, y_true, y_pred);
    leati_value p = leati_sum_last(g, leati_mul(g, y_pred, rows));
    return leati_linear(g, raised(g, p, options->q), -1.0f / q, 1.0f / q);
}

#define OPTION(member, field_kind, value)                                                                    \
    { .key = #member, .kind = field_kind, .offset = offsetof(leati_measure_options, member), .preset = value }
#define SHARED                                                                                               \
    OPTION(alpha, LEATI_FIELD_FLOAT, "0.25"), OPTION(gamma, LEATI_FIELD_FLOAT, "2.0"),                       \
        OPTION(from_logits, LEATI_FIELD_BOOL, "false"), OPTION(label_smoothing, LEATI_FIELD_FLOAT, "0.0"),   \
        OPTION(axis, LEATI_FIELD_INT, "-1")

static const leati_field binary_fields[] = {SHARED,
                                            OPTION(apply_class_balancing, LEATI_FIELD_BOOL, "false"),
                                            {.key = NULL}};
static const leati_field categorical_fields[] = {SHARED, {.key = NULL}};
static const leati_field generalized_fields[] = {{.key = "q",
                                                  .kind = LEATI_FIELD_FLOAT,
                                                  .offset = offsetof(leati_measure_options, q),
                                                  .preset = "0.5",
                                                  .minimum = 1e-3,
                                                  .limited = true},
                                                 {.key = NULL}};

const leati_loss_type leati_loss_binary_focal_crossentropy = {
    .measure = {.name = "binary_focal_crossentropy",
                .class_name = "BinaryFocalCrossentropy",
                .fields = binary_fields,
                .lower = binary}};
const leati_loss_type leati_loss_categorical_focal_crossentropy = {
    .measure = {.name = "categorical_focal_crossentropy",
                .class_name = "CategoricalFocalCrossentropy",
                .fields = categorical_fields,
                .lower = categorical}};
const leati_loss_type leati_loss_categorical_generalized_cross_entropy = {
    .measure = {.name = "categorical_generalized_cross_entropy",
                .class_name = "CategoricalGeneralizedCrossEntropy",
                .fields = generalized_fields,
                .lower = generalized},
    .sparse = true};
