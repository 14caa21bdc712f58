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

/* Sets the cuts: the thresholds, and one cut a little below 0 and one a little above 1.  Files have only the
 * thresholds between these two. */
static leat_status prepare_area(leati_metric *metric, int64_t classes, leat_error *err) {
    leati_measure_options *o = &metric->options;
    leati_reals *list = &o->thresholds;
    (void)classes;
    o->top_k = o->class_id = INT64_MIN;
    LEATI_TRY(leati_confusion_check(metric, err));
    if (list->values) o->num_thresholds = list->count + 2;
    LEATI_TRY(leati_confusion_cut(metric, o->num_thresholds, err));
    if (!list->values) LEATI_TRY(fill(list, (int32_t)o->num_thresholds - 2, err));
    qsort(list->values, (size_t)list->count, sizeof(double), ascending);
    list->number = false;
    metric->result_count = 1;
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

static void area(const leati_metric *metric, const double *state, double *out) {
    leati_confusion_walk walk = leati_confusion_begin(metric, state);
    double sum = 0.0;
    leati_confusion_next(&walk);
    for (leati_confusion low = walk.now; leati_confusion_next(&walk); low = walk.now)
        sum += piece(&metric->options, &walk.now, &low);
    out[0] = sum;
}

static const leati_tally tally_area = {.add = leati_confusion_add, .results = area};

static const leati_field area_fields[] = {LEATI_METRIC_INT_FIELD(num_thresholds, "200", 2),
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
                                          {.key = NULL}};

const leati_metric_type leati_metric_auc = {.measure = &(const leati_measure){.name = "auc",
                                                                              .class_name = "AUC",
                                                                              .fields = area_fields},
                                            .tally = &tally_area,
                                            .prepare = prepare_area};

/* ---- One rate where the other has a given value ---- */

/* Checks that the wanted value is a rate, and spreads the thresholds evenly over [0, 1]; a single threshold is
 * 0.5. */
static leat_status prepare_point(leati_metric *metric, double wanted, const char *option, leat_error *err) {
    leati_measure_options *o = &metric->options;
    int64_t count = o->num_thresholds;
    o->top_k = o->class_id = INT64_MIN;
    if (!(wanted >= 0.0 && wanted <= 1.0))
        return leati_fail(err, LEAT_EINVAL, "%s: expected a number from 0 to 1, received %g", option, wanted);
    metric->result_count = 1;
    LEATI_TRY(leati_confusion_cut(metric, count, err));
    for (int64_t i = 0; i < count; ++i)
        metric->cuts[i] = count == 1 ? 0.5f : (float)((double)i / (double)(count - 1));
    return LEAT_OK;
}

static leat_status prepare_sensitivity(leati_metric *metric, int64_t classes, leat_error *err) {
    (void)classes;
    return prepare_point(metric, metric->options.specificity, "specificity", err);
}

static leat_status prepare_specificity(leati_metric *metric, int64_t classes, leat_error *err) {
    (void)classes;
    return prepare_point(metric, metric->options.sensitivity, "sensitivity", err);
}

/* Computes in float, as Keras does: the last bit may decide which of two thresholds is nearer to the wanted rate. */
static float rate(double part, double other) {
    float whole = (float)part + (float)other;
    return whole > 0.0f ? (float)part / whole : 0.0f;
}

/* Returns the sensitivity at the threshold whose specificity is nearest to the wanted one, or the reverse.  If
 * several thresholds are equally near, the lowest counts. */
static double rate_where(const leati_metric *metric, const double *state, bool sensitivity) {
    leati_confusion_walk walk = leati_confusion_begin(metric, state);
    float nearest = INFINITY,
          wanted = (float)(sensitivity ? metric->options.specificity : metric->options.sensitivity);
    double found = 0.0;
    while (leati_confusion_next(&walk)) {
        const leati_confusion *c = &walk.now;
        float distance = fabsf((sensitivity ? rate(c->tn, c->fp) : rate(c->tp, c->fn)) - wanted);
        if (!(distance <= nearest)) continue;
        nearest = distance;
        found = sensitivity ? share(c->tp, c->fn) : share(c->tn, c->fp);
    }
    return found;
}

static void sensitivity_at(const leati_metric *metric, const double *state, double *out) {
    out[0] = rate_where(metric, state, true);
}

static void specificity_at(const leati_metric *metric, const double *state, double *out) {
    out[0] = rate_where(metric, state, false);
}

static const leati_tally tally_sensitivity = {.add = leati_confusion_add, .results = sensitivity_at};
static const leati_tally tally_specificity = {.add = leati_confusion_add, .results = specificity_at};

static const leati_field sensitivity_fields[] = {LEATI_METRIC_INT_FIELD(num_thresholds, "200", 1),
                                                 LEATI_METRIC_FIELD(specificity, LEATI_FIELD_FLOAT, NULL),
                                                 {.key = NULL}};
static const leati_field specificity_fields[] = {LEATI_METRIC_INT_FIELD(num_thresholds, "200", 1),
                                                 LEATI_METRIC_FIELD(sensitivity, LEATI_FIELD_FLOAT, NULL),
                                                 {.key = NULL}};

const leati_metric_type leati_metric_sensitivity_at_specificity = {
    .measure = &(const leati_measure){.name = "sensitivity_at_specificity",
                                      .class_name = "SensitivityAtSpecificity",
                                      .fields = sensitivity_fields},
    .tally = &tally_sensitivity,
    .prepare = prepare_sensitivity};
const leati_metric_type leati_metric_specificity_at_sensitivity = {
    .measure = &(const leati_measure){.name = "specificity_at_sensitivity",
                                      .class_name = "SpecificityAtSensitivity",
                                      .fields = specificity_fields},
    .tally = &tally_specificity,
    .prepare = prepare_specificity};
