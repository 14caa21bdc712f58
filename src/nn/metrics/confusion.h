/* SPDX-License-Identifier: Apache-2.0 */
/* Right and wrong answers at thresholds.  A prediction above a threshold says yes; all thresholds together cut the line into
 * pieces, and what is kept is the weight of the samples in each piece, the two kinds of target apart: state[2 * piece +
 * kind].  The counts at every threshold follow from it, exactly, however many there are. */
#ifndef LEATI_NN_METRICS_CONFUSION_H
#define LEATI_NN_METRICS_CONFUSION_H

#include "nn/metrics/metric.h"

typedef struct leati_confusion {
    double tp, fp, tn, fn;
} leati_confusion;

/* From the highest cut to the lowest: cut is the place of the last one in metric->cuts. */
typedef struct leati_confusion_walk {
    const double *state;
    int32_t cut;
    double positives, negatives; /* all there are */
    leati_confusion now;
} leati_confusion_walk;

leati_confusion_walk leati_confusion_begin(const leati_metric *metric, const double *state);
bool leati_confusion_next(leati_confusion_walk *walk);

/* leati_tally's add for it. */
leat_status leati_confusion_add(const leati_metric *metric, double *state, const leati_metric_batch *batch,
                                leat_error *err);

/* Room for the metric's cuts, and the size of its state.  They must be in ascending order before they are used. */
leat_status leati_confusion_cut(leati_metric *metric, int64_t count, leat_error *err);
void leati_confusion_sort(leati_metric *metric);

/* LEAT_EINVAL unless the thresholds of the configuration are in [0, 1]. */
leat_status leati_confusion_check(const leati_metric *metric, leat_error *err);

#endif
