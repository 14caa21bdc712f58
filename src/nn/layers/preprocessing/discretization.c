/* SPDX-License-Identifier: Apache-2.0 */
/* Discretization: numbers as the indices of the intervals between boundaries.
 * Source: keras.layers.Discretization. */
#include "base/error.h"
#include "nn/layers/preprocessing/categories.h"
#include "nn/layers/types.h"
#include "tensor/number.h"

typedef struct config {
    leati_categories categories;
    leati_reals bin_boundaries;
    int64_t num_bins;
    double epsilon;
} config;

static const leati_field fields[] = {LEATI_FIELD(config, bin_boundaries, LEATI_FIELD_REALS, "null"),
                                     LEATI_FIELD(config, num_bins, LEATI_FIELD_OPTIONAL_INT, "null"),
                                     LEATI_FIELD(config, epsilon, LEATI_FIELD_FLOAT, "0.01"),
                                     LEATI_CATEGORY_FIELDS(config, leati_category_modes, "\"int\""),
                                     {.key = NULL}};

/* Counts the boundaries that are not above the number.  As in TensorFlow, NaN is above all boundaries. */
static leat_status interval_of(const leati_categories *categories, const leati_callee_run *run, int64_t i,
                               int64_t *out, leat_error *err) {
    const config *c = (const void *)categories;
    const float number = (float)leati_number_at(run->inputs[0].dtype, run->args[0], i);
    int32_t low = 0, high = c->bin_boundaries.count;
    (void)err;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (number < (float)c->bin_boundaries.values[middle])
            high = middle;
        else
            low = middle + 1;
    }
    *out = low;
    return LEAT_OK;
}

static leat_status check(leati_layer *layer, leat_error *err) {
    config *c = layer->config;
    const leati_reals *boundaries = &c->bin_boundaries;
    if (boundaries->number || !boundaries->values)
        return leati_fail(
            err, LEAT_EINVAL,
            "bin_boundaries: expected a list of numbers; a layer with num_bins has the list after "
            "adapt()");
    for (int32_t i = 1; i < boundaries->count; ++i)
        if (!(boundaries->values[i - 1] <= boundaries->values[i]))
            return leati_fail(err, LEAT_EINVAL,
                              "bin_boundaries: expected numbers in increasing order, received "
                              "%g after %g",
                              boundaries->values[i], boundaries->values[i - 1]);
    return leati_categories_set(&c->categories, boundaries->count + 1, interval_of, err);
}

LEATI_LAYER_TYPE(discretization, "Discretization", "discretization", config, fields, LEATI_ONE_INPUT,
                 LEATI_CATEGORY_TYPE, .check = check);
