/* SPDX-License-Identifier: Apache-2.0 */
/* keras.losses.  The descriptor of a loss (nn/losses/types.h) lowers targets and predictions to a value per sample; all
 * losses reduce these values to one number in the same way.  Losses are metrics too (nn/metrics/metric.h). */
#ifndef LEATI_NN_LOSSES_LOSS_H
#define LEATI_NN_LOSSES_LOSS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "engine/graph/graph.h"
#include "leat/error.h"
#include "nn/config/field.h"

/* What losses and metrics can be told.  Lists belong to it: leati_fields_fini with the row's fields. */
typedef struct leati_measure_options {
    bool from_logits;
    double label_smoothing;
    double delta;            /* Huber */
    double threshold;        /* BinaryAccuracy */
    int64_t axis;            /* CosineSimilarity, SparseCategoricalCrossentropy */
    int64_t k;               /* TopKCategoricalAccuracy */
    leati_reals thresholds;  /* the confusion family, AUC */
    int64_t top_k, class_id; /* Precision, Recall; INT64_MIN: none */
    int64_t num_thresholds;  /* AUC, SensitivityAtSpecificity and its mirror */
    double specificity, sensitivity;
    int32_t curve, summation; /* AUC: places in the lists of metrics/auc.c */
    int64_t num_classes;      /* MeanIoU */
} leati_measure_options;

/* Adds the ops.  y_true is f32, or an integer where the row says so; y_pred is what the model made, so that a
 * crossentropy can look at the op that made it. */
typedef leati_value (*leati_measure_lower)(leati_graph *graph, const leati_measure_options *options,
                                           leati_value y_true, leati_value y_pred);

/* What a loss and a metric have in common: names, options, and a value per sample. */
typedef struct leati_measure {
    const char *name;           /* of the function: "mean_squared_error"; the default name of the objects */
    const char *class_name;     /* "MeanSquaredError"; NULL: there is only a function */
    const char *const *aliases; /* NULL-terminated; NULL: none */
    const leati_field *fields;  /* of leati_measure_options; NULL: none */
    leati_measure_lower lower;  /* a value per sample; NULL: a metric that takes predictions and targets */
} leati_measure;

typedef struct leati_loss_type {
    leati_measure measure;
    bool sparse; /* targets are class numbers: (..., 1) for an output (..., C) */
} leati_loss_type;

typedef enum leati_reduction {
    LEATI_REDUCTION_SUM_OVER_BATCH_SIZE = 0,
    LEATI_REDUCTION_SUM,
    LEATI_REDUCTION_NONE /* ends in a mean, as Keras's total loss does */
} leati_reduction;

/* The loss of one output. */
typedef struct leati_output_loss {
    const leati_loss_type *type; /* NULL: the output has none, and no target */
    leati_measure_options options;
    leati_reduction reduction;
    double weight; /* from loss_weights */
    bool temporal; /* sample weights are (N, T), not (N) */
} leati_output_loss;

/* Sets type, options and reduction from a name, {"class_name": ..., "config": ...}, or null.
 * Errors: LEAT_ENOTFOUND with the nearest known name; LEAT_EINVAL, LEAT_ENOTSUP an option. */
leat_status leati_loss_read(leati_output_loss *out, const json_t *value, leat_error *err);

/* A loss object as Keras 2.3.1 writes it, from one of any version: {"class_name": ..., "config": {"reduction": ..., "name":
 * ..., options}}, or the function's name where 2.3.1 has no such class.  A function's name stays one where current Keras knows it
 * too, and is written as the object otherwise, which means the same (new reference). */
leat_status leati_loss_write(const json_t *value, json_t **out, leat_error *err);

/* Reads a row's options (fields NULL: it has none) from a configuration (NULL: defaults).  Names, types and reductions are
 * left to the caller. */
leat_status leati_measure_options_read(leati_measure_options *out, const leati_field *fields,
                                       const json_t *config, leat_error *err);

/* Whether a batch's targets can be what the loss takes: class numbers must be in [0, classes) (-1: any).  Others
 * pass unread.
 * Errors: LEAT_EINVAL names the first that is not, and its sample. */
leat_status leati_loss_check_targets(const leati_output_loss *loss, const leat_tensor *targets,
                                     int64_t classes, leat_error *err);

/* One number from targets and predictions: sum(weights * values) / number of values (or what the reduction says).
 * weights is (N), (N, T) or LEATI_NONE. */
leati_value leati_loss_lower(const leati_output_loss *loss, leati_graph *graph, leati_value y_true,
                             leati_value y_pred, leati_value weights);

/* Weights of samples or time steps, repeated over the further axes of values.  Fails where they do not fit. */
leati_value leati_weights_like(leati_graph *graph, leati_value weights, leati_value values);

#endif
