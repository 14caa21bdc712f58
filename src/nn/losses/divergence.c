/* SPDX-License-Identifier: Apache-2.0 */
/* The Kullback-Leibler divergence, the Poisson loss and the cosine between two vectors.  Room: nn. */
#include "nn/losses/types.h"

#include "engine/graph/build.h"

/* sum t log(t / p), both clipped to [epsilon, 1] */
static leati_value divergence(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                              leati_value y_pred) {
    (void)options;
    leati_value t = leati_clip(g, y_true, LEATI_EPSILON, 1.0f),
                p = leati_clip(g, y_pred, LEATI_EPSILON, 1.0f);
    return leati_sum_last(g, leati_mul(g, t, leati_function_of(g, leati_div(g, t, p), LEATI_FN_LOG)));
}

/* mean p - t log(p + epsilon) */
static leati_value poisson(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                           leati_value y_pred) {
    (void)options;
    leati_value log = leati_function_of(g, leati_linear(g, y_pred, 1.0f, LEATI_EPSILON), LEATI_FN_LOG);
    return leati_mean_last(g, leati_sub(g, y_pred, leati_mul(g, y_true, log)));
}

static leati_value unit_length(leati_graph *g, leati_value x, int axis) {
    leati_value square = leati_function_of(g, x, LEATI_FN_SQUARE);
    leati_value sum = leati_reduce_of(g, LEATI_REDUCE_SUM, square, 1u << axis, true);
    leati_value length =
        leati_function_of(g, leati_binary_of(g, LEATI_MAX, sum, leati_scalar(g, 1e-12f)), LEATI_FN_SQRT);
    return leati_div(g, x, length);
}

leati_value leati_cosine(leati_graph *graph, leati_value a, leati_value b, int64_t axis) {
    int rank = leati_graph_desc(graph, b)->rank;
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank || leati_graph_desc(graph, a)->rank != rank) {
        return leati_graph_fail(graph, LEAT_ESHAPE,
                                "cosine: axis %d is out of range for a prediction of rank %d", (int)axis,
                                rank);
    }
    leati_value product =
        leati_mul(graph, unit_length(graph, a, (int)axis), unit_length(graph, b, (int)axis));
    return leati_reduce_of(graph, LEATI_REDUCE_SUM, product, 1u << axis, false);
}

static leati_value proximity(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                             leati_value y_pred) {
    return leati_linear(g, leati_cosine(g, y_true, y_pred, options->axis), -1.0f, 0.0f);
}

static const char *const divergence_aliases[] = {"kld", "KLD", "kl_divergence",
                                                 NULL}; /* kl_divergence is Keras 3's name */
static const char *const proximity_aliases[] = {"cosine", "cosine_similarity", NULL};

static const leati_field proximity_fields[] = {
    {.key = "axis", .kind = LEATI_FIELD_INT, .offset = offsetof(leati_measure_options, axis), .preset = "-1"},
    {.key = NULL},
};

const leati_loss_type leati_loss_kullback_leibler_divergence = {
    .measure = {.name = "kullback_leibler_divergence",
                .class_name = "KLDivergence",
                .aliases = divergence_aliases,
                .lower = divergence}};
const leati_loss_type leati_loss_poisson = {
    .measure = {.name = "poisson", .class_name = "Poisson", .lower = poisson}};
const leati_loss_type leati_loss_cosine_proximity = {.measure = {.name = "cosine_proximity",
                                                                 .class_name = "CosineSimilarity",
                                                                 .aliases = proximity_aliases,
                                                                 .fields = proximity_fields,
                                                                 .lower = proximity}};
