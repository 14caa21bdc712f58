/* SPDX-License-Identifier: Apache-2.0 */
/* Losses that measure the distance between two numbers: squared, absolute, percentage and logarithmic errors,
 * log-cosh and Huber.  Room: nn. */
#include "nn/losses/types.h"

#include <math.h>

#include "engine/graph/build.h"

leati_value leati_mean_last(leati_graph *graph, leati_value x) {
    return leati_reduce_last(graph, LEATI_REDUCE_MEAN, x, false);
}

leati_value leati_sum_last(leati_graph *graph, leati_value x) {
    return leati_reduce_last(graph, LEATI_REDUCE_SUM, x, false);
}

static leati_value squared(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                           leati_value y_pred) {
    (void)options;
    return leati_mean_last(g, leati_function_of(g, leati_sub(g, y_pred, y_true), LEATI_FN_SQUARE));
}

static leati_value absolute(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                            leati_value y_pred) {
    (void)options;
    return leati_mean_last(g, leati_function_of(g, leati_sub(g, y_pred, y_true), LEATI_FN_ABS));
}

/* 100 mean |(t - p) / max(|t|, epsilon)| */
static leati_value percentage(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                              leati_value y_pred) {
    (void)options;
    leati_value scale = leati_clip(g, leati_function_of(g, y_true, LEATI_FN_ABS), LEATI_EPSILON, INFINITY);
    leati_value ratio = leati_div(g, leati_sub(g, y_true, y_pred), scale);
    return leati_linear(g, leati_mean_last(g, leati_function_of(g, ratio, LEATI_FN_ABS)), 100.0f, 0.0f);
}

static leati_value log_of_one_more(leati_graph *g, leati_value x) {
    leati_value positive = leati_clip(g, x, LEATI_EPSILON, INFINITY);
    return leati_function_of(g, leati_linear(g, positive, 1.0f, 1.0f), LEATI_FN_LOG);
}

static leati_value logarithmic(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                               leati_value y_pred) {
    (void)options;
    leati_value difference = leati_sub(g, log_of_one_more(g, y_pred), log_of_one_more(g, y_true));
    return leati_mean_last(g, leati_function_of(g, difference, LEATI_FN_SQUARE));
}

/* log cosh x = x + softplus(-2 x) - log 2 */
static leati_value log_cosh(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                            leati_value y_pred) {
    (void)options;
    leati_value x = leati_sub(g, y_pred, y_true);
    leati_value tail = leati_function_of(g, leati_linear(g, x, -2.0f, 0.0f), LEATI_FN_SOFTPLUS);
    return leati_mean_last(g, leati_linear(g, leati_add(g, x, tail), 1.0f, -0.69314718f));
}

/* Huber's loss: q^2 / 2 + delta (|x| - q) with q = min(|x|, delta).  Keras 2.3.1 takes no mean over the last axis;
 * current Keras does. */
static leati_value huber(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                         leati_value y_pred) {
    float delta = (float)options->delta;
    leati_value size = leati_function_of(g, leati_sub(g, y_pred, y_true), LEATI_FN_ABS);
    leati_value quadratic = leati_binary_of(g, LEATI_MIN, size, leati_scalar(g, delta));
    leati_value linear = leati_linear(g, leati_sub(g, size, quadratic), delta, 0.0f);
    leati_value half = leati_linear(g, leati_function_of(g, quadratic, LEATI_FN_SQUARE), 0.5f, 0.0f);
    leati_value values = leati_add(g, half, linear);
    return options->as_keras3 ? leati_mean_last(g, values) : values;
}

static const char *const squared_aliases[] = {"mse", "MSE", NULL};
static const char *const absolute_aliases[] = {"mae", "MAE", NULL};
static const char *const percentage_aliases[] = {"mape", "MAPE", NULL};
static const char *const log_cosh_aliases[] = {"log_cosh", NULL};
static const char *const logarithmic_aliases[] = {"msle", "MSLE", NULL};
static const char *const huber_aliases[] = {"huber", NULL}; /* Keras 3's name */

static const leati_field huber_fields[] = {
    {.key = "delta",
     .kind = LEATI_FIELD_FLOAT,
     .offset = offsetof(leati_measure_options, delta),
     .preset = "1.0"},
    {.key = NULL},
};

const leati_loss_type leati_loss_mean_squared_error = {.measure = {.name = "mean_squared_error",
                                                                   .class_name = "MeanSquaredError",
                                                                   .aliases = squared_aliases,
                                                                   .lower = squared}};
const leati_loss_type leati_loss_mean_absolute_error = {.measure = {.name = "mean_absolute_error",
                                                                    .class_name = "MeanAbsoluteError",
                                                                    .aliases = absolute_aliases,
                                                                    .lower = absolute}};
const leati_loss_type leati_loss_mean_absolute_percentage_error = {
    .measure = {.name = "mean_absolute_percentage_error",
                .class_name = "MeanAbsolutePercentageError",
                .aliases = percentage_aliases,
                .lower = percentage}};
const leati_loss_type leati_loss_mean_squared_logarithmic_error = {
    .measure = {.name = "mean_squared_logarithmic_error",
                .class_name = "MeanSquaredLogarithmicError",
                .aliases = logarithmic_aliases,
                .lower = logarithmic}};
const leati_loss_type leati_loss_logcosh = {
    .measure = {.name = "logcosh", .class_name = "LogCosh", .aliases = log_cosh_aliases, .lower = log_cosh}};
const leati_loss_type leati_loss_huber = {.measure = {.name = "huber_loss",
                                                      .class_name = "Huber",
                                                      .aliases = huber_aliases,
                                                      .fields = huber_fields,
                                                      .lower = huber}};
