/* SPDX-License-Identifier: Apache-2.0 */
/* keras.metrics: the graph makes a value per sample (nn/metrics/, or a loss's row); the running mean is kept here, on the
 * host, in double: result = sum(weight * value) / sum(weight) over everything since the last reset. */
#ifndef LEATI_NN_METRIC_H
#define LEATI_NN_METRIC_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "leat/tensor.h"
#include "nn/loss.h"

#define LEATI_METRIC_NAME_BYTES 160

typedef struct leati_metric_type {
    const char *name;       /* the function's: "binary_accuracy"; the default name of the class's objects */
    const char *class_name; /* NULL: a function only */
    const char *const *aliases; /* NULL-terminated; NULL: none */
    const leati_field *fields;  /* of leati_measure_options; NULL: none */
    bool root;                  /* the result is the square root of the mean */
    leati_measure_lower lower;
} leati_metric_type;

/* One metric of one output, as compile made it. */
typedef struct leati_metric {
    char name[LEATI_METRIC_NAME_BYTES]; /* as Keras logs it */
    int32_t output;
    bool weighted; /* from weighted_metrics: sample and class weights count */
    bool root;     /* the result is the square root of the mean */
    leati_measure_lower lower;
    leati_measure_options options;
    double total, count;
} leati_metric;

/* Starts anew: an epoch, an evaluation. */
void leati_metric_reset(leati_metric *metric);
/* Adds a batch: f32 values of any shape, and weights of the same shape or NULL (1 each). */
void leati_metric_accumulate(leati_metric *metric, const leat_tensor *values, const leat_tensor *weights);
/* The mean since the last reset; NaN before anything was added. */
double leati_metric_result(const leati_metric *metric);

/* All rows, losses included: index from 0; false at the end. */
bool leati_metric_type_at(int index, leati_metric_type *out);
/* The row with that function name, class name or alias; false where there is none. */
bool leati_metric_type_find(const char *name, leati_metric_type *out);

/* Sets name, function and options from a name or {"class_name": ..., "config": ...}.  "accuracy", "acc", "crossentropy" and
 * "ce" depend on the output's last dimension and on its loss (NULL: none), as in Keras.  The name is that of the
 * metric alone; compile adds the output's.
 * Errors: LEAT_ENOTFOUND with the nearest known name; LEAT_EINVAL, LEAT_ENOTSUP an option. */
leat_status leati_metric_read(leati_metric *out, const json_t *value, int64_t last_dimension,
                              const leati_output_loss *loss, leat_error *err);

/* A metric object as Keras 2.3.1 can read it back, from one of any version: it knows names only.  The function's name
 * where that says all; a copy of the object otherwise (new reference). */
leat_status leati_metric_write(const json_t *value, json_t **out, leat_error *err);

#endif
