/* SPDX-License-Identifier: Apache-2.0 */
/* Pearson's and the concordance correlation of targets and predictions along an axis.
 * Source: keras.src.metrics.correlation_metrics.  Room: nn. */
#include "engine/graph/build.h"
#include "nn/losses/types.h"
#include "nn/metrics/types.h"

static leati_value square(leati_graph *g, leati_value x) {
    return leati_function_of(g, x, LEATI_FN_SQUARE);
}

/* Returns the bit of the axis for leati_reduce_of; 0 if the graph failed. */
static uint32_t axis_bit(leati_graph *g, const leati_measure_options *options, leati_value y_pred) {
    int rank = leati_graph_desc(g, y_pred)->rank;
    int64_t axis = options->axis + (options->axis < 0 ? rank : 0);
    if (axis >= 0 && axis < rank) return UINT32_C(1) << axis;
    leati_graph_fail(g, LEAT_ESHAPE, "axis %lld is out of range for a prediction of rank %d",
                     (long long)options->axis, rank);
    return 0;
}

static leati_value mean(leati_graph *g, leati_value x, uint32_t axis, bool keep) {
    return leati_reduce_of(g, LEATI_REDUCE_MEAN, x, axis, keep);
}

/* Returns (x - mean) / standard deviation. */
static leati_value standardized(leati_graph *g, leati_value x, uint32_t axis) {
    leati_value centered = leati_sub(g, x, mean(g, x, axis, true));
    leati_value deviation = leati_sub(g, centered, mean(g, centered, axis, true));
    leati_value variance = mean(g, square(g, deviation), axis, true);
    return leati_div(g, centered, leati_function_of(g, variance, LEATI_FN_SQRT));
}

static leati_value pearson(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                           leati_value y_pred) {
    uint32_t axis = axis_bit(g, options, y_pred);
    if (axis == 0) return LEATI_INVALID;
    leati_value product = leati_mul(g, standardized(g, y_true, axis), standardized(g, y_pred, axis));
    return mean(g, product, axis, false);
}

/* mean of 2 (t - mean p) (p - mean p) / (variance t + variance p + (mean t - mean p)^2 + epsilon) */
static leati_value concordance(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                               leati_value y_pred) {
    uint32_t axis = axis_bit(g, options, y_pred);
    if (axis == 0) return LEATI_INVALID;
    leati_value t_mean = mean(g, y_true, axis, true), p_mean = mean(g, y_pred, axis, true);
    leati_value t = leati_sub(g, y_true, t_mean), p = leati_sub(g, y_pred, p_mean);
    leati_value variances =
        leati_add(g, mean(g, square(g, t), axis, true), mean(g, square(g, p), axis, true));
    leati_value all = leati_add(g, variances, square(g, leati_sub(g, t_mean, p_mean)));
    leati_value product = leati_mul(g, leati_sub(g, y_true, p_mean), p);
    leati_value ratio =
        leati_div(g, leati_linear(g, product, 2.0f, 0.0f), leati_linear(g, all, 1.0f, LEATI_EPSILON));
    return mean(g, ratio, axis, false);
}

static const leati_field fields[] = {LEATI_METRIC_FIELD(axis, LEATI_FIELD_INT, "-1"), {.key = NULL}};

const leati_metric_type leati_metric_pearson_correlation = {
    .measure = &(const leati_measure){.name = "pearson_correlation",
                                      .class_name = "PearsonCorrelation",
                                      .fields = fields,
                                      .lower = pearson},
    .tally = &leati_tally_mean};
const leati_metric_type leati_metric_concordance_correlation = {
    .measure = &(const leati_measure){.name = "concordance_correlation",
                                      .class_name = "ConcordanceCorrelation",
                                      .fields = fields,
                                      .lower = concordance},
    .tally = &leati_tally_mean};
