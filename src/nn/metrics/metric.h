/* SPDX-License-Identifier: Apache-2.0 */
/* keras.metrics.  The graph computes a value per sample (nn/metrics/, nn/losses/), or gives predictions and targets.
 * On the host, the tally of a metric accumulates these over batches in an array of doubles, the state, and computes
 * the results from the state.  Samples are added one by one in their order, so that results do not depend on the
 * batch size. */
#ifndef LEATI_NN_METRICS_METRIC_H
#define LEATI_NN_METRICS_METRIC_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "leat/tensor.h"
#include "nn/losses/loss.h"

#define LEATI_METRIC_NAME_BYTES 160

typedef struct leati_metric leati_metric;

/* The tensors of one batch that a metric needs, all f32 and of one shape. */
typedef struct leati_metric_batch {
    const leat_tensor *values;  /* a value per sample; predictions if the metric has no lower */
    const leat_tensor *targets; /* NULL if the metric has a lower */
    const leat_tensor *weights; /* NULL: all weights are 1 */
} leati_metric_batch;

/* Accumulates batches in state_count doubles, which begin as 0, and computes result_count results from them. */
typedef struct leati_tally {
    leat_status (*add)(const leati_metric *metric, double *state, const leati_metric_batch *batch,
                       leat_error *err);
    void (*results)(const leati_metric *metric, const double *state, double *out);
} leati_tally;

typedef struct leati_metric_type {
    const leati_measure *measure; /* the metric's own, or that of a loss that is also a metric */
    const leati_tally *tally;
    /* Checks the options and sets state_count, result_count and cuts; NULL: the metric is a mean.  last_dimension is
     * the last dimension of the output, below 0 if it is not known, 0 if the metric is only written. */
    leat_status (*prepare)(leati_metric *metric, int64_t last_dimension, leat_error *err);
} leati_metric_type;

/* One metric of one output of a compiled model. */
struct leati_metric {
    char name[LEATI_METRIC_NAME_BYTES]; /* the name in Keras's logs */
    int32_t output;
    bool weighted;                   /* from weighted_metrics: sample and class weights apply */
    bool class_numbers;              /* targets are class numbers (..., 1), as of a sparse crossentropy */
    const struct leati_layer *added; /* the AddMetric layer whose values it adds up; NULL: none */
    bool is_object; /* from a class, not a function's name: two objects of one name are two metrics */
    leati_measure_lower lower;
    const leati_tally *tally;
    const leati_field *fields;
    leati_measure_options options;
    int64_t state_count;
    int32_t result_count;
    int32_t cut_count;
    float *cuts; /* owned: thresholds in ascending order; NULL: the metric has none */
};

/* Frees the metric's memory and zeroes it; a zeroed metric is allowed. */
void leati_metric_fini(leati_metric *metric);

/* Adds a batch to the state.  Errors: LEAT_EINVAL a value that cannot be counted. */
leat_status leati_metric_add(const leati_metric *metric, double *state, const leati_metric_batch *batch,
                             leat_error *err);
/* Computes the results so far, metric->result_count of them.  A mean is NaN before anything was added. */
void leati_metric_results(const leati_metric *metric, const double *state, double *out);
/* Writes the name of a result: the metric's name; if there are several results, "<name>@<threshold>"
 * or "<name>@<index of the class>". */
void leati_metric_result_name(const leati_metric *metric, int index, char *out, size_t bytes);

/* Sets name, function and options from a name or {"class_name": ..., "config": ...}.  "accuracy", "acc",
 * "crossentropy" and "ce" depend on the output's last dimension and on its loss (NULL: none), as in Keras.  The name
 * does not contain the output's name; compile adds it.  The caller frees *out by leati_metric_fini; *out is zeroed on
 * failure.  `parts` has the custom metrics and losses.
 * Errors: LEAT_ENOTFOUND with the nearest known name; LEAT_EINVAL, LEAT_ENOTSUP an option. */
leat_status leati_metric_read_with(leati_metric *out, const json_t *value, int64_t last_dimension,
                                   const leati_output_loss *loss, const leati_part *parts, leat_error *err);
/* Like leati_metric_read_with, without custom metrics. */
static inline leat_status leati_metric_read(leati_metric *out, const json_t *value, int64_t last_dimension,
                                            const leati_output_loss *loss, leat_error *err) {
    return leati_metric_read_with(out, value, last_dimension, loss, NULL, err);
}

/* Writes a metric to a file (new reference).  A metric that is not a mean becomes the object that Keras 2.3.1 writes,
 * with all its options.  Another object becomes the function's name if it has no other options than the defaults,
 * because 2.3.1 reads only names; otherwise a copy.  Other names are copied.  A custom metric is written as
 * leati_part_object_write does. */
leat_status leati_metric_write_with(const json_t *value, const leati_part *parts, json_t **out,
                                    leat_error *err);
static inline leat_status leati_metric_write(const json_t *value, json_t **out, leat_error *err) {
    return leati_metric_write_with(value, NULL, out, err);
}

#endif
