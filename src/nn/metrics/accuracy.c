/* SPDX-License-Identifier: Apache-2.0 */
/* The share of right predictions: equal values, values above a threshold, the largest or the k largest elements of a
 * row. */
#include "nn/metrics/types.h"

#include "engine/graph/build.h"

static leati_value equal(leati_graph *g, leati_value a, leati_value b) {
    return leati_binary_of(g, LEATI_EQUAL, a, b);
}

static int last_axis(const leati_graph *g, leati_value x) {
    return leati_graph_desc(g, x)->rank - 1;
}

static leati_value as_float(leati_graph *g, leati_value x) {
    return leati_graph_desc(g, x)->dtype == LEAT_F32 ? x : leati_cast(g, x, LEAT_F32, 1.0f);
}

static leati_value accuracy(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                            leati_value y_pred) {
    (void)options;
    return equal(g, y_true, y_pred);
}

/* Rounds to the nearest integer, halves to even, for |x| < 2^22: the sum with 1.5 * 2^23 has no bits for the
 * fraction. */
static leati_value rounded(leati_graph *g, leati_value x) {
    return leati_linear(g, leati_linear(g, x, 1.0f, 12582912.0f), 1.0f, -12582912.0f);
}

/* Keras 2.3.1 rounds at the threshold 0.5, so that a prediction below -0.5 or above 1.5 is of no class; later Kerases
 * compare with each threshold. */
static leati_value binary(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                          leati_value y_pred) {
    leati_value bits =
        options->threshold == 0.5 && !options->as_keras3
            ? rounded(g, y_pred)
            : leati_binary_of(g, LEATI_GREATER, y_pred, leati_scalar(g, (float)options->threshold));
    return leati_reduce_last(g, LEATI_REDUCE_MEAN, equal(g, y_true, bits), false);
}

static leati_value class_of(leati_graph *g, leati_value x) {
    return as_float(g, leati_argmax(g, x, last_axis(g, x)));
}

static leati_value categorical(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                               leati_value y_pred) {
    (void)options;
    return equal(g, class_of(g, y_true), class_of(g, y_pred));
}

/* Reshapes class numbers (..., 1) to (...). */
static leati_value numbers_of(leati_graph *g, leati_value y_true, leati_value y_pred) {
    leati_desc desc = *leati_graph_desc(g, y_true);
    if (desc.rank != leati_graph_desc(g, y_pred)->rank) return y_true;
    if (desc.shape[desc.rank - 1] != 1) {
        return leati_graph_fail(g, LEAT_ESHAPE, "expected one class number per row, received %lld",
                                (long long)desc.shape[desc.rank - 1]);
    }
    return leati_reshape(g, y_true, desc.rank - 1, desc.shape);
}

static leati_value sparse_categorical(leati_graph *g, const leati_measure_options *options,
                                      leati_value y_true, leati_value y_pred) {
    (void)options;
    return equal(g, as_float(g, numbers_of(g, y_true, y_pred)), class_of(g, y_pred));
}

/* Computes for each row of y_pred (..., C) if its class, of (...), is among the k largest elements. */
static leati_value rows_in_top_k(leati_graph *g, leati_value y_pred, leati_value classes, int64_t k) {
    const leati_desc pred = *leati_graph_desc(g, y_pred), shape = *leati_graph_desc(g, classes);
    if (pred.rank == 2) return leati_in_top_k(g, y_pred, classes, k);
    const int64_t columns = pred.rank > 0 ? pred.shape[pred.rank - 1] : 1;
    const int64_t rows[] = {columns > 0 ? leati_desc_count(&pred) / columns : 0, columns};
    leati_value flat =
        leati_in_top_k(g, leati_reshape(g, y_pred, 2, rows), leati_reshape(g, classes, 1, rows), k);
    return leati_reshape(g, flat, shape.rank, shape.shape);
}

static leati_value top_k(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                         leati_value y_pred) {
    return rows_in_top_k(g, y_pred, leati_argmax(g, y_true, last_axis(g, y_true)), options->k);
}

static leati_value sparse_top_k(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                                leati_value y_pred) {
    leati_value numbers = numbers_of(g, y_true, y_pred);
    if (leati_graph_desc(g, numbers)->dtype == LEAT_F32) numbers = leati_cast(g, numbers, LEAT_I32, 1.0f);
    return rows_in_top_k(g, y_pred, numbers, options->k);
}

static const leati_field binary_fields[] = {
    {.key = "threshold",
     .kind = LEATI_FIELD_FLOAT,
     .offset = offsetof(leati_measure_options, threshold),
     .preset = "0.5"},
    {.key = NULL},
};

static const leati_field top_k_fields[] = {
    {.key = "k",
     .kind = LEATI_FIELD_INT,
     .offset = offsetof(leati_measure_options, k),
     .preset = "5",
     .minimum = 1,
     .limited = true},
    {.key = NULL},
};

const leati_metric_type leati_metric_accuracy = {.measure = &(const leati_measure){.name = "accuracy",
                                                                                   .class_name = "Accuracy",
                                                                                   .lower = accuracy},
                                                 .tally = &leati_tally_mean};
const leati_metric_type leati_metric_binary_accuracy = {.measure =
                                                            &(const leati_measure){.name = "binary_accuracy",
                                                                                   .class_name =
                                                                                       "BinaryAccuracy",
                                                                                   .fields = binary_fields,
                                                                                   .lower = binary},
                                                        .tally = &leati_tally_mean};
const leati_metric_type leati_metric_categorical_accuracy = {
    .measure = &(const leati_measure){.name = "categorical_accuracy",
                                      .class_name = "CategoricalAccuracy",
                                      .lower = categorical},
    .tally = &leati_tally_mean};
const leati_metric_type leati_metric_sparse_categorical_accuracy = {
    .measure = &(const leati_measure){.name = "sparse_categorical_accuracy",
                                      .class_name = "SparseCategoricalAccuracy",
                                      .lower = sparse_categorical},
    .tally = &leati_tally_mean};
const leati_metric_type leati_metric_top_k = {.measure =
                                                  &(const leati_measure){.name = "top_k_categorical_accuracy",
                                                                         .class_name =
                                                                             "TopKCategoricalAccuracy",
                                                                         .fields = top_k_fields,
                                                                         .lower = top_k},
                                              .tally = &leati_tally_mean};
const leati_metric_type leati_metric_sparse_top_k = {
    .measure = &(const leati_measure){.name = "sparse_top_k_categorical_accuracy",
                                      .class_name = "SparseTopKCategoricalAccuracy",
                                      .fields = top_k_fields,
                                      .lower = sparse_top_k},
    .tally = &leati_tally_mean};
