/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors of the losses, each defined in the file of its family, and functions that several losses use. */
#ifndef LEATI_NN_LOSSES_TYPES_H
#define LEATI_NN_LOSSES_TYPES_H

#include "nn/losses/loss.h"

/* All losses, NULL-terminated. */
extern const leati_loss_type *const leati_loss_types[];
/* Returns the loss with that function name, class name or alias; NULL if there is none. */
const leati_loss_type *leati_loss_find(const char *name);
/* Every name that leati_loss_find knows: index from 0; NULL at the end. */
const char *leati_loss_name_at(int index);

/* Returns a name of a measure: first its function, then its class, then its aliases.  Index from 0; NULL at the
 * end. */
const char *leati_measure_name_at(const leati_measure *measure, int index);
bool leati_measure_has_name(const leati_measure *measure, const char *name);

extern const leati_loss_type leati_loss_mean_squared_error;
extern const leati_loss_type leati_loss_mean_absolute_error;
extern const leati_loss_type leati_loss_mean_absolute_percentage_error;
extern const leati_loss_type leati_loss_mean_squared_logarithmic_error;
extern const leati_loss_type leati_loss_logcosh;
extern const leati_loss_type leati_loss_huber;
extern const leati_loss_type leati_loss_hinge;
extern const leati_loss_type leati_loss_squared_hinge;
extern const leati_loss_type leati_loss_categorical_hinge;
extern const leati_loss_type leati_loss_categorical_crossentropy;
extern const leati_loss_type leati_loss_sparse_categorical_crossentropy;
extern const leati_loss_type leati_loss_binary_crossentropy;
extern const leati_loss_type leati_loss_kullback_leibler_divergence;
extern const leati_loss_type leati_loss_poisson;
extern const leati_loss_type leati_loss_cosine_proximity;
extern const leati_loss_type leati_loss_binary_focal_crossentropy;
extern const leati_loss_type leati_loss_categorical_focal_crossentropy;
extern const leati_loss_type leati_loss_categorical_generalized_cross_entropy;
extern const leati_loss_type leati_loss_dice;
extern const leati_loss_type leati_loss_tversky;
extern const leati_loss_type leati_loss_circle;
extern const leati_loss_type leati_loss_ctc;

/* Returns 1 for each target that is not the ignored class, otherwise 0; LEATI_NONE if no class is ignored. */
leati_value leati_kept_classes(leati_graph *graph, const leati_measure_options *options, leati_value y_true);

/* Returns t (1 - s) + s / n for n classes. */
leati_value leati_smoothed_labels(leati_graph *graph, leati_value y_true, double smoothing, float classes);
/* Returns class numbers (..., 1) or (...) as one-hot rows of the shape of `like` (..., C).  An ignored class becomes a
 * row of class 0, whose loss the caller drops. */
leati_value leati_class_rows(leati_graph *graph, const leati_measure_options *options, leati_value y_true,
                             leati_value like);
/* Returns the binary crossentropy of each element, from the logits if y_pred carries them. */
leati_value leati_binary_values(leati_graph *graph, const leati_measure_options *options, leati_value labels,
                                leati_value y_pred);

/* Fills the type descriptor of a custom loss, of leati_custom_loss_bytes. */
extern const size_t leati_custom_loss_bytes;
void leati_custom_loss_fill(leati_part *part);
/* Keys of a loss or metric that an object of a part does not read. */
extern const char *const leati_measure_common_keys[];
/* Makes the callee of a custom loss whose definition is checked. */
void leati_custom_loss_prepare(leati_part_object *object);

/* The mean and the sum over the last axis. */
leati_value leati_mean_last(leati_graph *graph, leati_value x);
leati_value leati_sum_last(leati_graph *graph, leati_value x);

/* Returns sum(a b) / (|a| |b|) over an axis; a squared length is at least 1e-12. */
leati_value leati_cosine(leati_graph *graph, leati_value a, leati_value b, int64_t axis);

#endif
