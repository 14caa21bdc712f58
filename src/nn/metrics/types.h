/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors of the metrics that are not losses, each defined in the file of its family, and what several
 * metrics use. */
#ifndef LEATI_NN_METRICS_TYPES_H
#define LEATI_NN_METRICS_TYPES_H

#include "nn/metrics/metric.h"

/* All metrics, NULL-terminated: metrics that are not losses, then one for each loss. */
extern const leati_metric_type *const leati_metric_types[];
/* Returns the metric with that function name, class name or alias; NULL if there is none. */
const leati_metric_type *leati_metric_find(const char *name);
/* Every name that leati_metric_read knows: index from 0; NULL at the end.  A name may occur twice. */
const char *leati_metric_name_at(int index);

extern const leati_metric_type leati_metric_accuracy;
extern const leati_metric_type leati_metric_binary_accuracy;
extern const leati_metric_type leati_metric_categorical_accuracy;
extern const leati_metric_type leati_metric_sparse_categorical_accuracy;
extern const leati_metric_type leati_metric_top_k;
extern const leati_metric_type leati_metric_sparse_top_k;
extern const leati_metric_type leati_metric_root_mean_squared_error;
extern const leati_metric_type leati_metric_cosine;
extern const leati_metric_type leati_metric_true_positives;
extern const leati_metric_type leati_metric_false_positives;
extern const leati_metric_type leati_metric_true_negatives;
extern const leati_metric_type leati_metric_false_negatives;
extern const leati_metric_type leati_metric_precision;
extern const leati_metric_type leati_metric_recall;
extern const leati_metric_type leati_metric_sensitivity_at_specificity;
extern const leati_metric_type leati_metric_specificity_at_sensitivity;
extern const leati_metric_type leati_metric_auc;
extern const leati_metric_type leati_metric_mean_iou;
extern const leati_metric_type leati_metric_precision_at_recall;
extern const leati_metric_type leati_metric_recall_at_precision;
extern const leati_metric_type leati_metric_iou;
extern const leati_metric_type leati_metric_binary_iou;
extern const leati_metric_type leati_metric_one_hot_iou;
extern const leati_metric_type leati_metric_one_hot_mean_iou;
extern const leati_metric_type leati_metric_f1_score;
extern const leati_metric_type leati_metric_fbeta_score;
extern const leati_metric_type leati_metric_r2_score;
extern const leati_metric_type leati_metric_pearson_correlation;
extern const leati_metric_type leati_metric_concordance_correlation;

/* Makes a custom metric, or the metric of a custom loss, without its name. */
leat_status leati_custom_metric_read(leati_metric *out, const leati_part *part, const leati_object *object,
                                     int64_t last_dimension, leat_error *err);
/* Fills the type descriptor of a custom metric, of leati_custom_metric_bytes, which begins with a leati_measure. */
extern const size_t leati_custom_metric_bytes;
void leati_custom_metric_fill(leati_part *part);

/* The tallies of sum(weight * value) / sum(weight) and of its square root. */
extern const leati_tally leati_tally_mean;
extern const leati_tally leati_tally_root;

/* Fields of a metric's options. */
#define LEATI_METRIC_FIELD(member, field_kind, value)                                                        \
    { .key = #member, .kind = field_kind, .offset = offsetof(leati_measure_options, member), .preset = value }
#define LEATI_METRIC_INT_FIELD(member, value, least)                                                         \
    {                                                                                                        \
        .key = #member, .kind = LEATI_FIELD_INT, .offset = offsetof(leati_measure_options, member),          \
        .preset = value, .minimum = least, .limited = true                                                   \
    }

#endif
