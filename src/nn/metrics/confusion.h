/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of right and wrong predictions at several thresholds.  A prediction above a threshold is positive.  The
 * thresholds divide the number line into pieces; state[2 * piece + (target is positive)] is the weight of the samples
 * in a piece.  The exact counts at each threshold follow from the state. */
#ifndef LEATI_NN_METRICS_CONFUSION_H
#define LEATI_NN_METRICS_CONFUSION_H

#include "nn/metrics/metric.h"

typedef struct leati_confusion {
    double tp, fp, tn, fn;
} leati_confusion;

/* Iterates over the cuts from the highest to the lowest; `cut` is the index of the current one in metric->cuts. */
typedef struct leati_confusion_walk {
    const double *state;
    int32_t cut;
    double positives, negatives; /* weight of all samples of either kind */
    leati_confusion now;
} leati_confusion_walk;

leati_confusion_walk leati_confusion_begin(const leati_metric *metric, const double *state);
bool leati_confusion_next(leati_confusion_walk *walk);

/* The function `add` of a leati_tally. */
leat_status leati_confusion_add(const leati_metric *metric, double *state, const leati_metric_batch *batch,
                                leat_error *err);

/* Adds the counts of each label to a state of its own, one after the other. */
leat_status leati_confusion_add_labels(const leati_metric *metric, double *state,
                                       const leati_metric_batch *batch, leat_error *err);

/* Allocates the metric's cuts and sets the size of its state.  The cuts must be in ascending order before samples are
 * added. */
leat_status leati_confusion_cut(leati_metric *metric, int64_t count, leat_error *err);
void leati_confusion_sort(leati_metric *metric);

/* Errors: LEAT_EINVAL a threshold of the configuration is not in [0, 1]. */
leat_status leati_confusion_check(const leati_metric *metric, leat_error *err);
/* Checks class_id and top_k against the number of classes (below 1: not known).  Errors: LEAT_EINVAL. */
leat_status leati_confusion_check_class(const leati_metric *metric, int64_t classes, leat_error *err);

#endif
