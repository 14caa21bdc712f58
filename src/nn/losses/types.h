/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the losses, for the tables in nn/losses/loss.c and nn/metrics/metric.c, and what several of them use. */
#ifndef LEATI_NN_LOSSES_TYPES_H
#define LEATI_NN_LOSSES_TYPES_H

#include "nn/losses/loss.h"

#define LEATI_EPSILON 1e-7f /* keras.backend.epsilon() */

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

/* The mean and the sum over the last axis. */
leati_value leati_mean_last(leati_graph *graph, leati_value x);
leati_value leati_sum_last(leati_graph *graph, leati_value x);

/* sum(a b) / (|a| |b|) over an axis; 1e-12 is the least squared length. */
leati_value leati_cosine(leati_graph *graph, leati_value a, leati_value b, int64_t axis);

#endif
