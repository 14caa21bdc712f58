/* SPDX-License-Identifier: Apache-2.0 */
/* The table of losses.  A new loss is a descriptor in a file of this folder, a line in types.h and a line here. */
#include "nn/losses/types.h"

#include <string.h>

const leati_loss_type *const leati_loss_types[] = {
    &leati_loss_mean_squared_error,
    &leati_loss_mean_absolute_error,
    &leati_loss_mean_absolute_percentage_error,
    &leati_loss_mean_squared_logarithmic_error,
    &leati_loss_squared_hinge,
    &leati_loss_hinge,
    &leati_loss_categorical_hinge,
    &leati_loss_logcosh,
    &leati_loss_huber,
    &leati_loss_categorical_crossentropy,
    &leati_loss_sparse_categorical_crossentropy,
    &leati_loss_binary_crossentropy,
    &leati_loss_kullback_leibler_divergence,
    &leati_loss_poisson,
    &leati_loss_cosine_proximity,
    &leati_loss_binary_focal_crossentropy,
    &leati_loss_categorical_focal_crossentropy,
    &leati_loss_categorical_generalized_cross_entropy,
    &leati_loss_dice,
    &leati_loss_tversky,
    &leati_loss_circle,
    &leati_loss_ctc,
    NULL,
};

const char *leati_measure_name_at(const leati_measure *measure, int index) {
    if (index-- == 0) return measure->name;
    if (measure->class_name && index-- == 0) return measure->class_name;
    for (int i = 0; measure->aliases && measure->aliases[i]; ++i)
        if (index-- == 0) return measure->aliases[i];
    return NULL;
}

bool leati_measure_has_name(const leati_measure *measure, const char *name) {
    const char *known;
    for (int i = 0; (known = leati_measure_name_at(measure, i)) != NULL; ++i)
        if (strcmp(known, name) == 0) return true;
    return false;
}

const leati_loss_type *leati_loss_find(const char *name) {
    const leati_loss_type *const *type = leati_loss_types;
    while (*type && !leati_measure_has_name(&(*type)->measure, name)) ++type;
    return *type;
}

const char *leati_loss_name_at(int index) {
    for (int i = 0; leati_loss_types[i]; ++i) {
        const leati_measure *measure = &leati_loss_types[i]->measure;
        for (int k = 0; leati_measure_name_at(measure, k); ++k)
            if (index-- == 0) return leati_measure_name_at(measure, k);
    }
    return NULL;
}
