/* SPDX-License-Identifier: Apache-2.0 */
/* F1Score and FBetaScore of current Keras: the weighted harmonic mean of precision and recall, for each class, or
 * averaged.  Source: keras.src.metrics.f_score_metrics.  Room: nn. */
#include <math.h>

#include "base/error.h"
#include "nn/metrics/types.h"

#define EPSILON 1e-7

static const char *const averages[] = {"micro", "macro", "weighted", NULL};
enum { MICRO, MACRO, WEIGHTED, EACH_CLASS };

/* Columns of the state (classes, 4). */
enum { TP, FP, FN, ACTUAL, COLUMNS };

static leat_status prepare_beta(leati_metric *metric, int64_t classes, leat_error *err) {
    const leati_measure_options *o = &metric->options;
    if (!(o->beta > 0.0))
        return leati_fail(err, LEAT_EINVAL, "beta: expected a number above 0, received %g", o->beta);
    if (!isnan(o->threshold) && !(o->threshold > 0.0 && o->threshold <= 1.0))
        return leati_fail(err, LEAT_EINVAL,
                          "threshold: expected null or a number above 0 and up to 1, received %g",
                          o->threshold);
    if (classes < 1) classes = 1; /* only the configuration is of interest */
    if (classes > INT32_MAX) return leati_fail(err, LEAT_EINVAL, "expected at most %d classes", INT32_MAX);
    metric->state_count = COLUMNS * classes;
    metric->result_count = o->average == EACH_CLASS ? (int32_t)classes : 1;
    return LEAT_OK;
}

static leat_status prepare_one(leati_metric *metric, int64_t classes, leat_error *err) {
    metric->options.beta = 1.0;
    return prepare_beta(metric, classes, err);
}

static void add_row(const leati_metric *metric, double *state, const float *p, const float *t, const float *w,
                    int64_t classes) {
    float threshold = (float)metric->options.threshold, maximum = p[0];
    for (int64_t c = 1; c < classes; ++c) maximum = fmaxf(maximum, p[c]);
    for (int64_t c = 0; c < classes; ++c, state += COLUMNS) {
        bool yes = isnan(threshold) ? p[c] >= maximum && fabsf(p[c]) > 1e-9f : p[c] > threshold;
        double weight = w ? (double)w[c] : 1.0, target = (double)t[c];
        state[TP] += yes ? weight * target : 0.0;
        state[FP] += yes ? weight * (1.0 - target) : 0.0;
        state[FN] += yes ? 0.0 : weight * target;
        state[ACTUAL] += weight * target;
    }
}

static leat_status add(const leati_metric *metric, double *state, const leati_metric_batch *batch,
                       leat_error *err) {
    const leat_tensor *values = batch->values;
    const float *p = values->data, *t = batch->targets->data,
                *w = batch->weights ? batch->weights->data : NULL;
    int64_t classes = metric->state_count / COLUMNS;
    if (values->rank != 2 || values->shape[1] != classes)
        return leati_fail(err, LEAT_ESHAPE,
                          "expected an output of shape (samples, classes), received rank %d",
                          (int)values->rank);
    for (int64_t i = 0; i < values->shape[0] * classes; i += classes)
        add_row(metric, state, p + i, t + i, w ? w + i : NULL, classes);
    return LEAT_OK;
}

static double score_of(const double *row, double beta) {
    double precision = row[TP] / (row[TP] + row[FP] + EPSILON);
    double recall = row[TP] / (row[TP] + row[FN] + EPSILON);
    return (1.0 + beta * beta) * precision * recall / (beta * beta * precision + recall + EPSILON);
}

static void results(const leati_metric *metric, const double *state, double *out) {
    const leati_measure_options *o = &metric->options;
    int64_t classes = metric->state_count / COLUMNS;
    double all[COLUMNS] = {0}, sum = 0.0, weighted = 0.0;
    for (int64_t c = 0; c < classes; ++c, state += COLUMNS) {
        double score = score_of(state, o->beta);
        for (int i = 0; i < COLUMNS; ++i) all[i] += state[i];
        sum += score;
        weighted += score * state[ACTUAL];
        if (o->average == EACH_CLASS) out[c] = score;
    }
    if (o->average == MICRO) out[0] = score_of(all, o->beta);
    if (o->average == MACRO) out[0] = sum / (double)classes;
    if (o->average == WEIGHTED) out[0] = weighted / (all[ACTUAL] + EPSILON);
}

static const leati_tally tally = {.add = add, .results = results};

#define AVERAGE                                                                                              \
    {                                                                                                        \
        .key = "average", .kind = LEATI_FIELD_CHOICE, .offset = offsetof(leati_measure_options, average),    \
        .preset = "null", .choices = averages, .nullable = true                                              \
    }

static const leati_field one_fields[] = {AVERAGE,
                                         LEATI_METRIC_FIELD(threshold, LEATI_FIELD_OPTIONAL_FLOAT, "null"),
                                         {.key = NULL}};
static const leati_field beta_fields[] = {AVERAGE,
                                          LEATI_METRIC_FIELD(beta, LEATI_FIELD_FLOAT, "1.0"),
                                          LEATI_METRIC_FIELD(threshold, LEATI_FIELD_OPTIONAL_FLOAT, "null"),
                                          {.key = NULL}};
static const char *const beta_aliases[] = {"f_beta_score", NULL};

const leati_metric_type leati_metric_f1_score = {.measure = &(const leati_measure){.name = "f1_score",
                                                                                   .class_name = "F1Score",
                                                                                   .fields = one_fields},
                                                 .tally = &tally,
                                                 .prepare = prepare_one};
const leati_metric_type leati_metric_fbeta_score = {.measure =
                                                        &(const leati_measure){.name = "fbeta_score",
                                                                               .class_name = "FBetaScore",
                                                                               .aliases = beta_aliases,
                                                                               .fields = beta_fields},
                                                    .tally = &tally,
                                                    .prepare = prepare_beta};
