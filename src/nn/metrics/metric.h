/* SPDX-License-Identifier: Apache-2.0 */
/* keras.metrics: the graph makes a value per sample (nn/metrics/, or a loss's row), or leaves predictions and targets; what
 * is gathered of them over batches is a row of doubles on the host, which a tally adds to and draws the results from.
 * Samples are added one by one in their order, so that results do not depend on where batches begin. */
#ifndef LEATI_NN_METRICS_METRIC_H
#define LEATI_NN_METRICS_METRIC_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "leat/tensor.h"
#include "nn/losses/loss.h"

#define LEATI_METRIC_NAME_BYTES 160

typedef struct leati_metric leati_metric;

/* What a batch gives a metric, all of one shape and f32. */
typedef struct leati_metric_batch {
    const leat_tensor *values;  /* per sample; predictions where the metric has no lower */
    const leat_tensor *targets; /* NULL where it has one */
    const leat_tensor *weights; /* NULL: 1 each */
} leati_metric_batch;

/* How batches are gathered into state_count doubles, zero at first, and what comes of them: result_count numbers. */
typedef struct leati_tally {
    leat_status (*add)(const leati_metric *metric, double *state, const leati_metric_batch *batch,
                       leat_error *err);
    void (*results)(const leati_metric *metric, const double *state, double *out);
} leati_tally;

typedef struct leati_metric_type {
    const leati_measure *measure; /* of the metric itself, or of a loss that is a metric too */
    const leati_tally *tally;
    /* Checks the options and sets state_count, result_count and cuts; NULL: the metric is a mean.  last_dimension is the last
     * dimension of the output, below 1 if it is not known. */
    leat_status (*prepare)(leati_metric *metric, int64_t last_dimension, leat_error *err);
} leati_metric_type;

/* One metric of one output, as compile made it. */
struct leati_metric {
    char name[LEATI_METRIC_NAME_BYTES]; /* as Keras logs it */
    int32_t output;
    bool weighted;  /* from weighted_metrics: sample and class weights count */
    bool is_object; /* of a class, not a function's name: a second one of the same name is another */
    leati_measure_lower lower;
    const leati_tally *tally;
    const leati_field *fields;
    leati_measure_options options;
    int64_t state_count;
    int32_t result_count;
    int32_t cut_count;
    float *cuts; /* owned: thresholds in ascending order, of metrics that have such */
};

/* Frees what it owns and zeroes it; zeroed is fine. */
void leati_metric_fini(leati_metric *metric);

/* Adds a batch to the state.  Errors: LEAT_EINVAL a value that cannot be counted. */
leat_status leati_metric_add(const leati_metric *metric, double *state, const leati_metric_batch *batch,
                             leat_error *err);
/* The results so far: metric->result_count of them.  A mean is NaN before anything was added. */
void leati_metric_results(const leati_metric *metric, const double *state, double *out);
/* The name of one of them: the metric's; with several, "<name>@<threshold>". */
void leati_metric_result_name(const leati_metric *metric, int index, char *out, size_t bytes);

/* Sets name, function and options from a name or {"class_name": ..., "config": ...}.  "accuracy", "acc", "crossentropy" and
 * "ce" depend on the output's last dimension and on its loss (NULL: none), as in Keras.  The name is that of the
 * metric alone; compile adds the output's.  *out is to be finished with leati_metric_fini, and zeroed on failure.
 * Errors: LEAT_ENOTFOUND with the nearest known name; LEAT_EINVAL, LEAT_ENOTSUP an option. */
leat_status leati_metric_read(leati_metric *out, const json_t *value, int64_t last_dimension,
                              const leati_output_loss *loss, leat_error *err);

/* A metric as it goes into files (new reference).  One that is no mean: the object that Keras 2.3.1 writes, with all its
 * options.  Another object: the function's name where that says all, for 2.3.1 reads names only; a copy otherwise.
 * Other names stay. */
leat_status leati_metric_write(const json_t *value, json_t **out, leat_error *err);

#endif
