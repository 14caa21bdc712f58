/* SPDX-License-Identifier: Apache-2.0 */
/* keras.losses.  The descriptor of a loss (nn/losses/types.h) lowers targets and predictions to a value per sample;
 * all losses reduce these values to one number in the same way.  Losses are metrics too (nn/metrics/metric.h). */
#ifndef LEATI_NN_LOSSES_LOSS_H
#define LEATI_NN_LOSSES_LOSS_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "engine/graph/graph.h"
#include "leat/error.h"
#include "nn/config/field.h"
#include "nn/losses/totals.h"
#include "nn/parts/part.h"

/* The options of all losses and metrics; a type's fields say which of them it has.  leati_fields_fini with these
 * fields frees the lists. */
typedef struct leati_measure_options {
    bool from_logits;
    double label_smoothing;
    double delta;            /* Huber */
    double threshold;        /* BinaryAccuracy, BinaryIoU, F1Score; NAN: none */
    int64_t axis;            /* CosineSimilarity, crossentropies */
    int64_t ignore_class;    /* SparseCategoricalCrossentropy; INT64_MIN: none */
    int64_t k;               /* TopKCategoricalAccuracy */
    leati_reals thresholds;  /* the confusion family, AUC */
    int64_t top_k, class_id; /* Precision, Recall; INT64_MIN: none */
    int64_t num_thresholds;  /* AUC, SensitivityAtSpecificity, SpecificityAtSensitivity */
    double specificity, sensitivity;
    bool multi_label;                  /* AUC: a curve for each label */
    int64_t num_labels;                /* AUC: INT64_MIN: those of the output */
    leati_reals label_weights;         /* AUC */
    int32_t curve, summation;          /* AUC: indices into the lists of metrics/auc.c */
    int64_t num_classes;               /* MeanIoU */
    double alpha, beta, gamma;         /* focal crossentropies, Tversky; FBetaScore */
    double q, margin;                  /* CategoricalGeneralizedCrossEntropy; Circle */
    bool apply_class_balancing;        /* BinaryFocalCrossentropy */
    bool remove_diagonal;              /* Circle */
    leati_ints axes;                   /* Dice, Tversky: the axes that are summed; count -1: all */
    double precision, recall;          /* RecallAtPrecision, PrecisionAtRecall */
    int32_t average;                   /* F1Score, FBetaScore: index into the names of metrics/f_score.c */
    int32_t class_aggregation;         /* R2Score: index into the names of metrics/r2.c */
    int64_t num_regressors;            /* R2Score */
    json_t *target_class_ids;          /* IoU and its kin; owned */
    bool sparse_y_true, sparse_y_pred; /* IoU and its kin: class numbers; false: a number for each class */
    bool as_keras3;            /* the arithmetic of current Keras; set by compile, not by a configuration */
    leati_totals *totals;      /* sums over the batch, of a part; set for a call of `lower`; NULL: none */
    leati_part_object *object; /* owned: a custom loss or metric; NULL: one of leat's */
} leati_measure_options;

/* Adds the ops of a loss or a metric.  y_true is f32, or an integer if the type is sparse; y_pred is the output of
 * the model, so that a crossentropy can recognize the op that produced it. */
typedef leati_value (*leati_measure_lower)(leati_graph *graph, const leati_measure_options *options,
                                           leati_value y_true, leati_value y_pred);

/* The common part of a loss and a metric: names, options and the ops for a value per sample. */
typedef struct leati_measure {
    const char *name;       /* name of the function, "mean_squared_error", and default name of the objects */
    const char *class_name; /* "MeanSquaredError"; NULL: there is only a function */
    const char *const *aliases; /* NULL-terminated; NULL: none */
    const leati_field *fields;  /* members of leati_measure_options; NULL: none */
    leati_measure_lower lower;  /* NULL: a metric whose tally needs predictions and targets */
} leati_measure;

typedef struct leati_loss_type {
    leati_measure measure;
    bool sparse;      /* targets are class numbers: (..., 1) for an output (..., C) */
    bool label_lists; /* targets are lists of class numbers (N, length), filled up with 0 */
    bool unbounded;   /* the class numbers are labels: the size of the output does not limit them */
    bool skips_zeros; /* means do not count values that are 0 */
    bool compares;    /* samples of the batch with each other: the value of one depends on all */
} leati_loss_type;

typedef enum leati_reduction {
    LEATI_REDUCTION_SUM_OVER_BATCH_SIZE = 0,
    LEATI_REDUCTION_SUM,
    LEATI_REDUCTION_MEAN_WITH_SAMPLE_WEIGHT, /* divided by the sum of the weights, not by the number of values */
    LEATI_REDUCTION_NONE                     /* computed as a mean, like Keras's total loss */
} leati_reduction;

/* The loss of one output. */
typedef struct leati_output_loss {
    const leati_loss_type *type; /* NULL: the output has no loss and no target */
    leati_measure_options options;
    leati_reduction reduction;
    double weight; /* the entry of loss_weights */
    bool temporal; /* sample weights are (N, T), not (N) */
} leati_output_loss;

/* Sets type, options and reduction from a name, {"class_name": ..., "config": ...}, or null.  `parts` has the custom
 * losses.  The caller frees *out by leati_loss_fini.
 * Errors: LEAT_ENOTFOUND with the nearest known name; LEAT_EINVAL, LEAT_ENOTSUP an option. */
leat_status leati_loss_read_with(leati_output_loss *out, const json_t *value, const leati_part *parts,
                                 leat_error *err);
/* Like leati_loss_read_with, without custom losses. */
static inline leat_status leati_loss_read(leati_output_loss *out, const json_t *value, leat_error *err) {
    return leati_loss_read_with(out, value, NULL, err);
}
/* Frees the loss's memory; a zeroed loss is allowed. */
void leati_loss_fini(leati_output_loss *loss);

/* Writes a loss as Keras 2.3.1 does, whatever version of Keras the value is from (new reference): an object
 * {"class_name": ..., "config": {"reduction": ..., "name": ..., options}}, or the function's name if 2.3.1 has no
 * such class.  A function's name is kept if current Keras knows it too; otherwise the object is written, which means
 * the same.  A custom loss is written as leati_part_object_write does. */
leat_status leati_loss_write_with(const json_t *value, const leati_part *parts, json_t **out,
                                  leat_error *err);
static inline leat_status leati_loss_write(const json_t *value, json_t **out, leat_error *err) {
    return leati_loss_write_with(value, NULL, out, err);
}

/* Reads the options of a type (fields NULL: it has none) from a configuration (NULL: defaults).  The caller reads the
 * name, the dtype and the reduction. */
leat_status leati_measure_options_read(leati_measure_options *out, const leati_field *fields,
                                       const json_t *config, leat_error *err);

/* Checks that the targets of a batch are class numbers in [0, classes) if the loss needs class numbers (classes -1:
 * not checked).  The targets of other losses are not read.
 * Errors: LEAT_EINVAL names the first wrong number and its sample. */
leat_status leati_loss_check_targets(const leati_output_loss *loss, const leat_tensor *targets,
                                     int64_t classes, leat_error *err);

/* Returns sum(weights * values) / number of values, or another reduction of the loss.  weights is (N), (N, T) or
 * LEATI_NONE.
 * @param totals  Of a part of a batch: then the results of the parts add up to the loss of the batch.  NULL: a whole
 *                batch. */
leati_value leati_loss_lower(const leati_output_loss *loss, leati_graph *graph, leati_value y_true,
                             leati_value y_pred, leati_value weights, leati_totals *totals);

/* Broadcasts the weights of samples or time steps along the other axes of values.  The graph fails if the shapes do
 * not fit. */
leati_value leati_weights_like(leati_graph *graph, leati_value weights, leati_value values);

#endif
