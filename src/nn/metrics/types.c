/* SPDX-License-Identifier: Apache-2.0 */
/* The table of metrics.  A new metric is a descriptor in a file of this folder, a line in types.h and a line here; a
 * new loss needs a line here, too. */
#include "nn/metrics/types.h"

#include <string.h>

#include "nn/losses/types.h"

/* The metric of a loss: the mean of the loss's values per sample. */
#define LOSS(name)                                                                                           \
    &(const leati_metric_type) {                                                                             \
        .measure = &leati_loss_##name.measure, .tally = &leati_tally_mean                                    \
    }

const leati_metric_type *const leati_metric_types[] = {
    &leati_metric_accuracy,
    &leati_metric_binary_accuracy,
    &leati_metric_categorical_accuracy,
    &leati_metric_sparse_categorical_accuracy,
    &leati_metric_top_k,
    &leati_metric_sparse_top_k,
    &leati_metric_root_mean_squared_error,
    &leati_metric_cosine,
    &leati_metric_true_positives,
    &leati_metric_false_positives,
    &leati_metric_true_negatives,
    &leati_metric_false_negatives,
    &leati_metric_precision,
    &leati_metric_recall,
    &leati_metric_sensitivity_at_specificity,
    &leati_metric_specificity_at_sensitivity,
    &leati_metric_auc,
    &leati_metric_mean_iou,
    &leati_metric_precision_at_recall,
    &leati_metric_recall_at_precision,
    &leati_metric_iou,
    &leati_metric_binary_iou,
    &leati_metric_one_hot_iou,
    &leati_metric_one_hot_mean_iou,
    &leati_metric_f1_score,
    &leati_metric_fbeta_score,
    &leati_metric_r2_score,
    &leati_metric_pearson_correlation,
    &leati_metric_concordance_correlation,
    LOSS(mean_squared_error),
    LOSS(mean_absolute_error),
    LOSS(mean_absolute_percentage_error),
    LOSS(mean_squared_logarithmic_error),
    LOSS(squared_hinge),
    LOSS(hinge),
    LOSS(categorical_hinge),
    LOSS(logcosh),
    LOSS(huber),
    LOSS(categorical_crossentropy),
    LOSS(sparse_categorical_crossentropy),
    LOSS(binary_crossentropy),
    LOSS(kullback_leibler_divergence),
    LOSS(poisson),
    LOSS(cosine_proximity),
    LOSS(binary_focal_crossentropy),
    LOSS(categorical_focal_crossentropy),
    LOSS(categorical_generalized_cross_entropy),
    LOSS(dice),
    LOSS(tversky),
    NULL,
};

/* LogCosh is the only class whose name as a metric differs from its name as a loss. */
static const char log_cosh_class[] = "LogCoshError";

const leati_metric_type *leati_metric_find(const char *name) {
    const leati_metric_type *const *type = leati_metric_types;
    if (strcmp(name, log_cosh_class) == 0) name = leati_loss_logcosh.measure.class_name;
    while (*type && !leati_measure_has_name((*type)->measure, name)) ++type;
    return *type;
}

const char *leati_metric_name_at(int index) {
    static const char *const more[] = {"acc", "crossentropy", "ce", log_cosh_class};
    for (int i = 0; leati_metric_types[i]; ++i) {
        const leati_measure *measure = leati_metric_types[i]->measure;
        for (int k = 0; leati_measure_name_at(measure, k); ++k)
            if (index-- == 0) return leati_measure_name_at(measure, k);
    }
    return index < (int)(sizeof more / sizeof more[0]) ? more[index] : NULL;
}
