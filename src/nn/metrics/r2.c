/* SPDX-License-Identifier: Apache-2.0 */
/* R2Score of current Keras: the share of the targets' variance that predictions explain, for each column of the output,
 * or averaged.  Source: keras.src.metrics.regression_metrics.  Room: nn. */
#include <math.h>

#include "base/error.h"
#include "nn/metrics/types.h"

static const char *const aggregations[] = {"uniform_average", "variance_weighted_average", NULL};
enum { UNIFORM, BY_VARIANCE, EACH_COLUMN };

/* Entries of the state: SAMPLES once, then (columns, 4). */
enum { SAMPLES, FIRST };
enum { SUM, SQUARES, RESIDUAL, COUNT, ENTRIES };

static leat_status prepare(leati_metric *metric, int64_t columns, leat_error *err) {
    if (columns < 1) columns = 1; /* only the configuration is of interest */
    if (columns > INT32_MAX) return leati_fail(err, LEAT_EINVAL, "expected at most %d columns", INT32_MAX);
    metric->state_count = FIRST + ENTRIES * columns;
    metric->result_count = metric->options.class_aggregation == EACH_COLUMN ? (int32_t)columns : 1;
    return LEAT_OK;
}

static leat_status add(const leati_metric *metric, double *state, const leati_metric_batch *batch,
                       leat_error *err) {
    const leat_tensor *values = batch->values;
    const float *p = values->data, *t = batch->targets->data,
                *w = batch->weights ? batch->weights->data : NULL;
    int64_t columns = (metric->state_count - FIRST) / ENTRIES, count = leat_tensor_count(values);
    if (values->rank != 2 || values->shape[1] != columns)
        return leati_fail(err, LEAT_ESHAPE,
                          "expected an output of shape (samples, columns), received rank %d",
                          (int)values->rank);
    for (int64_t i = 0; i < count; ++i) {
        double *entry = state + FIRST + ENTRIES * (i % columns), weight = w ? (double)w[i] : 1.0;
        double target = (double)t[i], error = target - (double)p[i];
        entry[SUM] += weight * target;
        entry[SQUARES] += weight * target * target;
        entry[RESIDUAL] += weight * error * error;
        entry[COUNT] += weight;
    }
    state[SAMPLES] += (double)count;
    return LEAT_OK;
}

/* Returns the score for a number of regressors.  Like Keras, counts each column of a sample as a sample. */
static double adjusted(const leati_metric *metric, const double *state, double score) {
    double regressors = (double)metric->options.num_regressors, rest = state[SAMPLES] - regressors - 1.0;
    if (regressors == 0.0 || !(rest > 0.0)) return score;
    return 1.0 - (1.0 - score) * (state[SAMPLES] - 1.0) / rest;
}

static void results(const leati_metric *metric, const double *state, double *out) {
    int64_t columns = (metric->state_count - FIRST) / ENTRIES;
    int32_t aggregation = metric->options.class_aggregation;
    double sum = 0.0, weighted = 0.0, variances = 0.0;
    for (int64_t c = 0; c < columns; ++c) {
        const double *entry = state + FIRST + ENTRIES * c;
        double variance = entry[SQUARES] - entry[SUM] * (entry[SUM] / entry[COUNT]);
        double score = 1.0 - entry[RESIDUAL] / variance;
        if (isinf(score)) score = 0.0;
        sum += score;
        weighted += variance * score;
        variances += variance;
        if (aggregation == EACH_COLUMN) out[c] = adjusted(metric, state, score);
    }
    if (aggregation == UNIFORM) out[0] = adjusted(metric, state, sum / (double)columns);
    if (aggregation == BY_VARIANCE) out[0] = adjusted(metric, state, weighted / variances);
}

static const leati_tally tally = {.add = add, .results = results};
static const leati_field fields[] = {{.key = "class_aggregation",
                                      .kind = LEATI_FIELD_CHOICE,
                                      .offset = offsetof(leati_measure_options, class_aggregation),
                                      .preset = "\"uniform_average\"",
                                      .choices = aggregations,
                                      .nullable = true},
                                     LEATI_METRIC_INT_FIELD(num_regressors, "0", 0),
                                     {.key = NULL}};

const leati_metric_type leati_metric_r2_score = {.measure = &(const leati_measure){.name = "r2_score",
                                                                                   .class_name = "R2Score",
                                                                                   .fields = fields},
                                                 .tally = &tally,
                                                 .prepare = prepare};
