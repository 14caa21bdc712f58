/* SPDX-License-Identifier: Apache-2.0 */
/* Hinge losses.  Targets are -1 or 1; if all targets of a batch are 0 or 1, 0 stands for -1. */
#include "nn/losses/types.h"

#include "engine/graph/build.h"

static leati_value equals(leati_graph *g, leati_value x, float number) {
    return leati_binary_of(g, LEATI_EQUAL, x, leati_scalar(g, number));
}

/* Returns t + b (t - 1), where b is 1 if every target is 0 or 1: 2 t - 1 if b is 1, otherwise t. */
static leati_value signs_of(leati_graph *g, leati_value y_true) {
    leati_value bits = leati_add(g, equals(g, y_true, 0.0f), equals(g, y_true, 1.0f));
    leati_value all = leati_reduce_all(g, LEATI_REDUCE_MIN, bits);
    return leati_add(g, y_true, leati_mul(g, leati_linear(g, y_true, 1.0f, -1.0f), all));
}

/* max(1 - t p, 0) */
static leati_value margin(leati_graph *g, leati_value y_true, leati_value y_pred) {
    leati_value product = leati_mul(g, signs_of(g, y_true), y_pred);
    return leati_binary_of(g, LEATI_MAX, leati_linear(g, product, -1.0f, 1.0f), leati_scalar(g, 0.0f));
}

static leati_value hinge(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                         leati_value y_pred) {
    (void)options;
    return leati_mean_last(g, margin(g, y_true, y_pred));
}

static leati_value squared_hinge(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                                 leati_value y_pred) {
    (void)options;
    return leati_mean_last(g, leati_function_of(g, margin(g, y_true, y_pred), LEATI_FN_SQUARE));
}

/* max(0, max((1 - t) p) - sum(t p) + 1) */
static leati_value categorical(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                               leati_value y_pred) {
    (void)options;
    leati_value positive = leati_sum_last(g, leati_mul(g, y_true, y_pred));
    leati_value others = leati_mul(g, leati_linear(g, y_true, -1.0f, 1.0f), y_pred);
    leati_value negative = leati_reduce_last(g, LEATI_REDUCE_MAX, others, false);
    leati_value distance = leati_linear(g, leati_sub(g, negative, positive), 1.0f, 1.0f);
    return leati_binary_of(g, LEATI_MAX, leati_scalar(g, 0.0f), distance);
}

const leati_loss_type leati_loss_hinge = {
    .measure = {.name = "hinge", .class_name = "Hinge", .lower = hinge}};
const leati_loss_type leati_loss_squared_hinge = {
    .measure = {.name = "squared_hinge", .class_name = "SquaredHinge", .lower = squared_hinge}};
const leati_loss_type leati_loss_categorical_hinge = {
    .measure = {.name = "categorical_hinge", .class_name = "CategoricalHinge", .lower = categorical}};
