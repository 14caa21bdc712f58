/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics whose value for a batch is no sum or mean over its samples, such as Dice, and custom metrics with a state:
 * the ranks gather the predictions and targets of the batch, and each computes the metric of the whole batch (decision
 * 0706).  Room: train. */
#ifndef LEATI_TRAIN_PARALLEL_WHOLE_METRICS_H
#define LEATI_TRAIN_PARALLEL_WHOLE_METRICS_H

#include "train/parallel/rows.h"
#include "train/step/trainer.h"

/* Of one metric: predictions or values, targets, weights. */
enum { LEATI_WHOLE_TENSORS = 3 };

typedef struct leati_whole_metric {
    leati_rows rows[LEATI_WHOLE_TENSORS];
    leat_tensor whole[LEATI_WHOLE_TENSORS]; /* of the batch, after leati_whole_metrics_gather */
    bool has[LEATI_WHOLE_TENSORS];
    bool is_begun; /* in this batch */
    leati_plan
        *plan; /* computes the values of the metric, for batches of `samples`; NULL: there is none yet */
    int64_t samples;
    leati_value values, weights; /* outputs of the plan; LEATI_NONE: no weights */
} leati_whole_metric;

typedef struct leati_whole_metrics {
    const leat_model *model;
    leati_whole_metric *of; /* (metric_count), owned; NULL: all metrics add up */
    bool is_used[LEATI_PROGRAM_MAX_METRICS];
    leati_metric_batch batches[LEATI_PROGRAM_MAX_METRICS]; /* of those that are used */
    leat_tensor results[LEATI_PROGRAM_MAX_METRICS][2];     /* values and weights of `batches` */
    leati_arena *arena;
} leati_whole_metrics;

/* Begins a batch. */
void leati_whole_metrics_begin(leati_whole_metrics *metrics, const leat_model *model);
/* Takes `count` samples of this rank from a step that has run; count 0: only learns the shapes.
 * Errors: LEAT_ENOMEM. */
leat_status leati_whole_metrics_take(leati_whole_metrics *metrics, const struct leati_parts *run,
                                     const leati_compiled_step *step, int64_t count, leat_error *err);
/* Gathers the batch.  All ranks make this call.  Errors: those of the communicator, and of the metrics. */
leat_status leati_whole_metrics_gather(leati_whole_metrics *metrics, const struct leati_parts *run,
                                       leat_error *err);
void leati_whole_metrics_fini(leati_whole_metrics *metrics);

#endif
