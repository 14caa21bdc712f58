/* SPDX-License-Identifier: Apache-2.0 */
/* The circle loss of current Keras, which compares the embeddings of all pairs of samples in a batch (Sun and others
 * 2020, arXiv:2002.10857).  Targets are labels; predictions should have length 1.  Room: nn. */
#include "base/memory.h"
#include "engine/graph/build.h"
#include "nn/losses/types.h"

#define EXCLUDED 1e30f /* what is subtracted from the exponent of a pair that does not count */

static leati_value positive_part(leati_graph *g, leati_value x) {
    return leati_binary_of(g, LEATI_MAX, x, leati_scalar(g, 0.0f));
}

/* Returns log sum exp over the pairs of each sample where the mask is 1; about -EXCLUDED if there is none. */
static leati_value log_sum(leati_graph *g, leati_value x, leati_value mask) {
    x = leati_add(g, leati_mul(g, x, mask), leati_linear(g, mask, EXCLUDED, -EXCLUDED));
    leati_value maximum = leati_reduce_last(g, LEATI_REDUCE_MAX, x, true);
    leati_value sum = leati_sum_last(g, leati_function_of(g, leati_sub(g, x, maximum), LEATI_FN_EXP));
    leati_value rows = leati_reduce_last(g, LEATI_REDUCE_SUM, maximum, false);
    return leati_add(g, rows, leati_function_of(g, sum, LEATI_FN_LOG));
}

/* Returns 1 for each pair of samples that have the same label, in the shape (N, N). */
static leati_value same_labels(leati_graph *g, leati_value y_true, int64_t samples) {
    leati_value column = leati_reshape(g, y_true, 2, (const int64_t[]){samples, 1});
    leati_value row = leati_reshape(g, y_true, 2, (const int64_t[]){1, samples});
    const int64_t pairs[] = {samples, samples};
    column = leati_broadcast(g, column, 2, pairs);
    return leati_binary_of(g, LEATI_EQUAL, column, leati_broadcast(g, row, 2, pairs));
}

/* Returns 1 for each pair of two samples and 0 for a sample and itself, in the shape (N, N). */
static leati_value off_diagonal(leati_graph *g, int64_t samples) {
    const leati_desc desc = leati_desc_make(LEAT_F32, 2, (const int64_t[]){samples, samples});
    int64_t count = 0;
    if (!leati_mul_i64(samples, samples, &count))
        return leati_graph_fail(g, LEAT_ESHAPE, "circle: a batch of %lld samples is too large",
                                (long long)samples);
    float *pairs = leati_calloc((size_t)count, sizeof *pairs);
    if (!pairs) return leati_graph_fail(g, LEAT_ENOMEM, "no memory for the pairs of a batch");
    for (int64_t i = 0; i < count; ++i) pairs[i] = i / samples != i % samples ? 1.0f : 0.0f;
    leati_value mask = leati_graph_constant(g, &desc, pairs);
    leati_free(pairs);
    return mask;
}

/* softplus(same + other): same is log sum exp of gamma (d - m) (d + m)+ over the pairs with one label, other that of
 * gamma (1 - m - d) (1 + m - d)+ over the pairs with two labels; d is 1 - the cosine, m the margin. */
static leati_value circle(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                          leati_value y_pred) {
    leati_desc desc = *leati_graph_desc(g, y_pred);
    float gamma = (float)options->gamma, margin = (float)options->margin;
    if (desc.rank != 2 || leati_desc_count(leati_graph_desc(g, y_true)) != desc.shape[0])
        return leati_graph_fail(g, LEAT_ESHAPE,
                                "circle: expected predictions (samples, size) and one label for each sample");
    if (leati_graph_desc(g, y_true)->dtype != LEAT_F32) y_true = leati_cast(g, y_true, LEAT_F32, 1.0f);
    if (options->totals) { /* each part computes the pairs of the whole batch */
        y_true = leati_reshape(g, y_true, 1, desc.shape);
        y_true = leati_total_rows(g, options->totals, y_true, false);
        y_pred = leati_total_rows(g, options->totals, y_pred, true);
        desc.shape[0] = options->totals->whole;
    }
    leati_value cosine = leati_matmul(g, y_pred, false, y_pred, true, LEATI_NONE);
    leati_value distance = positive_part(g, leati_linear(g, cosine, -1.0f, 1.0f));
    leati_value same = same_labels(g, y_true, desc.shape[0]), other = leati_linear(g, same, -1.0f, 1.0f);
    if (options->remove_diagonal) same = leati_mul(g, same, off_diagonal(g, desc.shape[0]));
    leati_value near = leati_mul(g, positive_part(g, leati_linear(g, distance, 1.0f, margin)),
                                 leati_linear(g, distance, gamma, -gamma * margin));
    leati_value far = leati_mul(g, positive_part(g, leati_linear(g, distance, -1.0f, 1.0f + margin)),
                                leati_linear(g, distance, -gamma, gamma * (1.0f - margin)));
    leati_value sum = leati_add(g, log_sum(g, near, same), log_sum(g, far, other));
    return leati_function_of(g, sum, LEATI_FN_SOFTPLUS);
}

static const leati_field fields[] = {{.key = "gamma",
                                      .kind = LEATI_FIELD_FLOAT,
                                      .offset = offsetof(leati_measure_options, gamma),
                                      .preset = "80.0"},
                                     {.key = "margin",
                                      .kind = LEATI_FIELD_FLOAT,
                                      .offset = offsetof(leati_measure_options, margin),
                                      .preset = "0.4"},
                                     {.key = "remove_diagonal",
                                      .kind = LEATI_FIELD_BOOL,
                                      .offset = offsetof(leati_measure_options, remove_diagonal),
                                      .preset = "true"},
                                     {.key = NULL}};

const leati_loss_type leati_loss_circle = {
    .measure = {.name = "circle", .class_name = "Circle", .fields = fields, .lower = circle},
    .sparse = true,
    .unbounded = true,
    .skips_zeros = true,
    .compares = true};
