/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the counts at given thresholds, with one result for each threshold: the counts, precision, recall.
 * Source: keras/metrics.py, 2.3.1. */
#include "base/error.h"
#include "nn/metrics/confusion.h"
#include "nn/metrics/types.h"

/* A threshold that all predictions in the top k exceed. */
#define ANY_PREDICTION (-1e10f)

static leat_status prepare(leati_metric *metric, int64_t classes, leat_error *err) {
    const leati_reals *thresholds = &metric->options.thresholds;
    LEATI_TRY(leati_confusion_check_class(metric, classes, err));
    LEATI_TRY(leati_confusion_check(metric, err));
    metric->result_count = thresholds->count > 0 ? thresholds->count : 1;
    LEATI_TRY(leati_confusion_cut(metric, metric->result_count, err));
    metric->cuts[0] = metric->options.top_k == INT64_MIN ? 0.5f : ANY_PREDICTION;
    for (int32_t i = 0; i < thresholds->count; ++i) metric->cuts[i] = (float)thresholds->values[i];
    leati_confusion_sort(metric);
    return LEAT_OK;
}

/* The metrics of counts have neither top_k nor class_id. */
static leat_status prepare_count(leati_metric *metric, int64_t classes, leat_error *err) {
    metric->options.top_k = metric->options.class_id = INT64_MIN;
    return prepare(metric, classes, err);
}

/* Returns the counts at threshold `index` of the configuration. */
static leati_confusion at(const leati_metric *metric, const double *state, int32_t index) {
    const leati_reals *thresholds = &metric->options.thresholds;
    float threshold = thresholds->count > 0 ? (float)thresholds->values[index] : metric->cuts[0];
    leati_confusion_walk walk = leati_confusion_begin(metric, state);
    while (leati_confusion_next(&walk) && metric->cuts[walk.cut] > threshold) continue;
    return walk.now;
}

static double ratio(double part, double other) {
    return part + other > 0.0 ? part / (part + other) : 0.0;
}

#define RESULTS(lower, value)                                                                                \
    static void lower(const leati_metric *metric, const double *state, double *out) {                        \
        for (int32_t i = 0; i < metric->result_count; ++i) {                                                 \
            leati_confusion c = at(metric, state, i);                                                        \
            out[i] = value;                                                                                  \
        }                                                                                                    \
    }                                                                                                        \
    static const leati_tally tally_##lower = {.add = leati_confusion_add, .results = lower};

RESULTS(true_positives, c.tp)
RESULTS(false_positives, c.fp)
RESULTS(true_negatives, c.tn)
RESULTS(false_negatives, c.fn)
RESULTS(precision, ratio(c.tp, c.fp))
RESULTS(recall, ratio(c.tp, c.fn))

static const leati_field count_fields[] = {LEATI_METRIC_FIELD(thresholds, LEATI_FIELD_REALS, "null"),
                                           {.key = NULL}};

static const leati_field rate_fields[] = {LEATI_METRIC_FIELD(thresholds, LEATI_FIELD_REALS, "null"),
                                          LEATI_METRIC_FIELD(top_k, LEATI_FIELD_OPTIONAL_INT, "null"),
                                          LEATI_METRIC_FIELD(class_id, LEATI_FIELD_OPTIONAL_INT, "null"),
                                          {.key = NULL}};

#define COUNT(lower, upper)                                                                                  \
    const leati_metric_type leati_metric_##lower = {                                                         \
        .measure = &(const leati_measure){.name = #lower, .class_name = #upper, .fields = count_fields},     \
        .tally = &tally_##lower,                                                                             \
        .prepare = prepare_count};

COUNT(true_positives, TruePositives)
COUNT(false_positives, FalsePositives)
COUNT(true_negatives, TrueNegatives)
COUNT(false_negatives, FalseNegatives)

const leati_metric_type leati_metric_precision = {.measure = &(const leati_measure){.name = "precision",
                                                                                    .class_name = "Precision",
                                                                                    .fields = rate_fields},
                                                  .tally = &tally_precision,
                                                  .prepare = prepare};
const leati_metric_type leati_metric_recall = {.measure = &(const leati_measure){.name = "recall",
                                                                                 .class_name = "Recall",
                                                                                 .fields = rate_fields},
                                               .tally = &tally_recall,
                                               .prepare = prepare};
