/* SPDX-License-Identifier: Apache-2.0 */
/* Distances that are not losses: the root of the mean squared error, and the cosine (the loss is its negative). */
#include "nn/metrics/types.h"

#include "engine/graph/build.h"
#include "nn/losses/types.h"

static leati_value square(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                          leati_value y_pred) {
    (void)options;
    return leati_function_of(g, leati_sub(g, y_pred, y_true), LEATI_FN_SQUARE);
}

static leati_value cosine(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                          leati_value y_pred) {
    return leati_cosine(g, y_true, y_pred, options->axis);
}

static const char *const cosine_aliases[] = {"cosine_proximity", "cosine", NULL};

static const leati_field cosine_fields[] = {
    {.key = "axis", .kind = LEATI_FIELD_INT, .offset = offsetof(leati_measure_options, axis), .preset = "-1"},
    {.key = NULL},
};

const leati_metric_type leati_metric_root_mean_squared_error = {
    .measure = &(const leati_measure){.name = "root_mean_squared_error",
                                      .class_name = "RootMeanSquaredError",
                                      .lower = square},
    .tally = &leati_tally_root};
const leati_metric_type leati_metric_cosine = {.measure =
                                                   &(const leati_measure){.name = "cosine_similarity",
                                                                          .class_name = "CosineSimilarity",
                                                                          .aliases = cosine_aliases,
                                                                          .fields = cosine_fields,
                                                                          .lower = cosine},
                                               .tally = &leati_tally_mean};
