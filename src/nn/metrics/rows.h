/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the metrics that are no losses, for the table in nn/metric.c. */
#ifndef LEATI_NN_METRICS_ROWS_H
#define LEATI_NN_METRICS_ROWS_H

#include "nn/metric.h"

extern const leati_metric_type leati_metric_accuracy;
extern const leati_metric_type leati_metric_binary_accuracy;
extern const leati_metric_type leati_metric_categorical_accuracy;
extern const leati_metric_type leati_metric_sparse_categorical_accuracy;
extern const leati_metric_type leati_metric_top_k;
extern const leati_metric_type leati_metric_sparse_top_k;
extern const leati_metric_type leati_metric_root_mean_squared_error;
extern const leati_metric_type leati_metric_cosine;

#endif
