/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the whole curve over thresholds: the area under the curve, and one rate where the other rate has a given
 * value.
 * Source: keras/metrics.py, 2.3.1; for the area under the precision-recall curve, Davis and Goadrich 2006. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/losses/types.h"
#include "nn/metrics/confusion.h"
#include "nn/metrics/types.h"

enum { CURVE_ROC, CURVE_PR };
enum { SUM_INTERPOLATION, SUM_MINORING, SUM_MAJORING };

static const char *const curves[] = {"ROC", "PR", NULL};
static const char *const summations[] = {"interpolation", "minoring", "majoring", NULL};

/* ---- The area ---- */

static const leati_tally tally_labels;

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static leat_status fill(leati_reals *list, int32_t count, leat_error *err) {
    list->values = leati_calloc((size_t)count + 1, sizeof(double));
    if (!list->values) return leati_fail_memory(err, ((size_t)count + 1) * sizeof(double), "thresholds");
    list->count = count;
    for (int32_t i = 0; i < count; ++i) list->values[i] = ((double)i + 1.0) / ((double)count + 1.0);
    return LEAT_OK;
}

/* Checks the options of labels against the last dimension of the output (below 0: not known; 0: there is no output yet,
 * and the metric is only written). */
static leat_status check_labels(const leati_measure_options *o, int64_t classes, leat_error *err) {
    double sum = 0.0;
    if (o->multi_label && classes < 0)
        return leati_fail(err, LEAT_EINVAL, "multi_label: expected an output whose last dimension is known");
    if (o->num_labels != INT64_MIN && !o->multi_label)
        return leati_fail(err, LEAT_EINVAL, "num_labels: expected None unless multi_label is true");
    if (o->num_labels != INT64_MIN && classes != 0 && o->num_labels != classes)
        return leati_fail(err, LEAT_EINVAL,
                          "num_labels: expected %lld, the last dimension of the output, received %lld",
                          (long long)classes, (long long)o->num_labels);
    if (!o->label_weights.values) return LEAT_OK;
    if (classes != 0 && o->label_weights.count != classes)
        return leati_fail(
            err, LEAT_EINVAL,
            "label_weights: expected %lld numbers, one for each label of the output, received %d",
            (long long)classes, (int)o->label_weights.count);
    for (int32_t i = 0; i < o->label_weights.count; ++i) {
        sum += o->label_weights.values[i];
        if (!(o->label_weights.values[i] >= 0.0))
            return leati_fail(err, LEAT_EINVAL, "label_weights: expected numbers of at least 0, received %g",
                              o->label_weights.values[i]);
    }
    return sum > 0.0 ? LEAT_OK
                     : leati_fail(err, LEAT_EINVAL, "label_weights: expected a number above 0, received 0");
}

/* Sets the cuts: the thresholds, and one cut a little below 0 and one a little above 1.  Files have only the
 * thresholds between these two. */
static leat_status prepare_area(leati_metric *metric, int64_t classes, leat_error *err) {
    leati_measure_options *o = &metric->options;
    leati_reals *list = &o->thresholds;
    LEATI_TRY(check_labels(o, classes, err));
    o->top_k = o->class_id = INT64_MIN;
    LEATI_TRY(leati_confusion_check(metric, err));
    if (list->values) o->num_thresholds = list->count + 2;
    LEATI_TRY(leati_confusion_cut(metric, o->num_thresholds, err));
    if (!list->values) LEATI_TRY(fill(list, (int32_t)o->num_thresholds - 2, err));
    qsort(list->values, (size_t)list->count, sizeof(double), ascending);
    list->number = false;
    metric->result_count = 1;
    if (o->multi_label) {
        if (classes > INT32_MAX / metric->state_count)
            return leati_fail(err, LEAT_ENOTSUP, "multi_label: too many labels: %lld", (long long)classes);
        metric->tally = &tally_labels;
        metric->state_count *= classes;
    }
    metric->cuts[0] = 0.0f - LEATI_EPSILON;
    for (int32_t i = 0; i < list->count; ++i) metric->cuts[i + 1] = (float)list->values[i];
    metric->cuts[metric->cut_count - 1] = 1.0f + LEATI_EPSILON;
    return LEAT_OK;
}

static double share(double part, double other) {
    return part > 0.0 ? part / (part + other) : 0.0;
}

/* Returns the area between two thresholds; `low` has the counts of the higher one.  True positives are interpolated
 * linearly in all positive predictions. */
static double precision_recall_piece(const leati_confusion *high, const leati_confusion *low) {
    double dtp = high->tp - low->tp, p = low->tp + low->fp, p_high = high->tp + high->fp;
    double slope = p_high > p ? dtp / (p_high - p) : 0.0;
    double intercept = low->tp - slope * p;
    double logarithm = p_high > 0.0 && p > 0.0 ? log(p_high / p) : 0.0;
    double all = low->tp + low->fn;
    return all > 0.0 ? slope * (dtp + intercept * logarithm) / all : 0.0;
}

static double height(int32_t summation, double a, double b) {
    if (summation == SUM_INTERPOLATION) return (a + b) / 2.0;
    return summation == SUM_MINORING ? fmin(a, b) : fmax(a, b);
}

static double piece(const leati_measure_options *o, const leati_confusion *high, const leati_confusion *low) {
    double recall = share(high->tp, high->fn), recall_low = share(low->tp, low->fn);
    if (o->curve == CURVE_PR) {
        if (o->summation == SUM_INTERPOLATION) return precision_recall_piece(high, low);
        return (recall - recall_low) *
               height(o->summation, share(high->tp, high->fp), share(low->tp, low->fp));
    }
    double width = share(high->fp, high->tn) - share(low->fp, low->tn);
    return width * height(o->summation, recall, recall_low);
}

static double area_of(const leati_metric *metric, const double *state) {
    leati_confusion_walk walk = leati_confusion_begin(metric, state);
    double sum = 0.0;
    leati_confusion_next(&walk);
    for (leati_confusion low = walk.now; leati_confusion_next(&walk); low = walk.now)
        sum += piece(&metric->options, &walk.now, &low);
    return sum;
}

static void area(const leati_metric *metric, const double *state, double *out) {
    out[0] = area_of(metric, state);
}

/* Computes the mean of the areas of all labels, weighted by label_weights. */
static void area_of_labels(const leati_metric *metric, const double *state, double *out) {
    const leati_reals *weights = &metric->options.label_weights;
    const int64_t stride = 2 * ((int64_t)metric->cut_count + 1), labels = metric->state_count / stride;
    double sum = 0.0, total = 0.0;
    for (int64_t i = 0; i < labels; ++i) {
        const double weight = weights->values ? weights->values[i] : 1.0;
        sum += weight * area_of(metric, state + i * stride);
        total += weight;
    }
    out[0] = sum / total;
}

static const leati_tally tally_area = {.add = leati_confusion_add, .results = area};

static const leati_tally tally_labels = {.add = leati_confusion_add_labels, .results = area_of_labels};

static const leati_field area_fields[] = {LEATI_METRIC_INT_FIELD(num_thresholds, "200", 2),
                                          {.key = "from_logits",
                                           .kind = LEATI_FIELD_BOOL,
                                           .offset = offsetof(leati_measure_options, from_logits),
                                           .preset = "false",
                                           .later = true},
                                          {.key = "curve",
                                           .kind = LEATI_FIELD_CHOICE,
                                           .offset = offsetof(leati_measure_options, curve),
                                           .choices = curves,
                                           .preset = "\"ROC\""},
                                          {.key = "summation_method",
                                           .kind = LEATI_FIELD_CHOICE,
                                           .offset = offsetof(leati_measure_options, summation),
                                           .choices = summations,
                                           .preset = "\"interpolation\""},
                                          LEATI_METRIC_FIELD(thresholds, LEATI_FIELD_REALS, "null"),
                                          {.key = "multi_label",
                                           .kind = LEATI_FIELD_BOOL,
                                           .offset = offsetof(leati_measure_options, multi_label),
                                           .preset = "false",
                                           .later = true},
                                          {.key = "num_labels",
                                           .kind = LEATI_FIELD_OPTIONAL_INT,
                                           .offset = offsetof(leati_measure_options, num_labels),
                                           .preset = "null",
                                           .later = true},
                                          {.key = "label_weights",
                                           .kind = LEATI_FIELD_REALS,
                                           .offset = offsetof(leati_measure_options, label_weights),
                                           .preset = "null",
                                           .later = true},
                                          {.key = NULL}};

const leati_metric_type leati_metric_auc = {.measure = &(const leati_measure){.name = "auc",
                                                                              .class_name = "AUC",
                                                                              .fields = area_fields},
                                            .tally = &tally_area,
                                            .prepare = prepare_area};

/* ---- One rate where the other has a given value ---- */

/* Checks that the wanted value is a rate, and spreads the thresholds evenly over [0, 1]; a single threshold is
 * 0.5. */
static leat_status prepare_point(leati_metric *metric, double wanted, const char *option, int64_t classes,
                                 leat_error *err) {
    leati_measure_options *o = &metric->options;
    int64_t count = o->num_thresholds;
    o->top_k = INT64_MIN;
    LEATI_TRY(leati_confusion_check_class(metric, classes, err));
    if (!(wanted >= 0.0 && wanted <= 1.0))
        return leati_fail(err, LEAT_EINVAL, "%s: expected a number from 0 to 1, received %g", option, wanted);
    metric->result_count = 1;
    LEATI_TRY(leati_confusion_cut(metric, count, err));
    for (int64_t i = 0; i < count; ++i)
        metric->cuts[i] = count == 1 ? 0.5f : (float)((double)i / (double)(count - 1));
    return LEAT_OK;
}

#define PREPARE(rate)                                                                                        \
    static leat_status prepare_##rate(leati_metric *metric, int64_t classes, leat_error *err) {              \
        return prepare_point(metric, metric->options.rate, #rate, classes, err);                             \
    }

PREPARE(specificity)
PREPARE(sensitivity)
PREPARE(recall)
PREPARE(precision)

/* Computes in float, as Keras does: the last bit may decide which of two thresholds is nearer to the wanted rate. */
static float rate(double part, double other) {
    float whole = (float)part + (float)other;
    return whole > 0.0f ? (float)part / whole : 0.0f;
}

static float sensitivity_of(const leati_confusion *c) {
    return rate(c->tp, c->fn);
}

static float specificity_of(const leati_confusion *c) {
    return rate(c->tn, c->fp);
}

static float precision_of(const leati_confusion *c) {
    return rate(c->tp, c->fp);
}

typedef float (*rate_of)(const leati_confusion *counts);

/* Returns a rate at the threshold where another rate is nearest to the wanted one.  If several thresholds are equally
 * near, the lowest counts. */
static double at_nearest(const leati_metric *metric, const double *state, rate_of result, rate_of given,
                         double wanted) {
    leati_confusion_walk walk = leati_confusion_begin(metric, state);
    float nearest = INFINITY, found = 0.0f;
    while (leati_confusion_next(&walk)) {
        float distance = fabsf(given(&walk.now) - (float)wanted);
        if (!(distance <= nearest)) continue;
        nearest = distance;
        found = result(&walk.now);
    }
    return (double)found;
}

/* Returns the largest rate over the thresholds where another rate is at least the wanted one; 0 if there are none. */
static double largest_under(const leati_metric *metric, const double *state, rate_of result, rate_of given,
                            double wanted) {
    leati_confusion_walk walk = leati_confusion_begin(metric, state);
    float largest = 0.0f;
    while (leati_confusion_next(&walk))
        if (given(&walk.now) >= (float)wanted) largest = fmaxf(largest, result(&walk.now));
    return (double)largest;
}

/* Keras 2.3.1 takes the nearest rate, current Keras the best threshold that reaches the rate. */
#define POINT(prefix, result, given, wanted, always)                                                         \
    static void prefix(const leati_metric *metric, const double *state, double *out) {                       \
        bool nearest = !(always) && !metric->options.as_keras3;                                              \
        out[0] =                                                                                             \
            (nearest ? at_nearest : largest_under)(metric, state, result, given, metric->options.wanted);    \
    }                                                                                                        \
    static const leati_tally tally_##prefix = {.add = leati_confusion_add, .results = prefix};               \
    static const leati_field prefix##_fields[] = {LEATI_METRIC_INT_FIELD(num_thresholds, "200", 1),          \
                                                  LEATI_METRIC_FIELD(wanted, LEATI_FIELD_FLOAT, NULL),       \
                                                  {.key = "class_id",                                        \
                                                   .kind = LEATI_FIELD_OPTIONAL_INT,                         \
                                                   .offset = offsetof(leati_measure_options, class_id),      \
                                                   .preset = "null",                                         \
                                                   .later = true},                                           \
                                                  {.key = NULL}};

POINT(sensitivity_at, sensitivity_of, specificity_of, specificity, false)
POINT(specificity_at, specificity_of, sensitivity_of, sensitivity, false)
POINT(precision_at, precision_of, sensitivity_of, recall, true)
POINT(recall_at, sensitivity_of, precision_of, precision, true)

#define POINT_TYPE(type, class, prefix, wanted)                                                              \
    const leati_metric_type leati_metric_##type = {                                                          \
        .measure = &(const leati_measure){.name = #type, .class_name = #class, .fields = prefix##_fields},   \
        .tally = &tally_##prefix,                                                                            \
        .prepare = prepare_##wanted};

POINT_TYPE(sensitivity_at_specificity, SensitivityAtSpecificity, sensitivity_at, specificity)
POINT_TYPE(specificity_at_sensitivity, SpecificityAtSensitivity, specificity_at, sensitivity)
POINT_TYPE(precision_at_recall, PrecisionAtRecall, precision_at, recall)
POINT_TYPE(recall_at_precision, RecallAtPrecision, recall_at, precision)
