/* SPDX-License-Identifier: Apache-2.0 */
/* Losses of current Keras that measure the overlap of targets and predictions, for segmentation: Dice (Milletari and
 * others 2016, arXiv:1606.04797) and Tversky (Salehi and others 2017, arXiv:1706.05721).  Without `axis`, the sums are
 * those of the whole batch, and the loss is a single number.  Room: nn. */
#include "engine/graph/build.h"
#include "nn/losses/types.h"

/* Sets *out to the axes that are summed, as bits; false: the graph failed. */
static bool axes_of(leati_graph *g, const leati_measure_options *options, leati_value y_pred, uint32_t *out) {
    int rank = leati_graph_desc(g, y_pred)->rank;
    *out = (UINT32_C(1) << rank) - 1;
    if (options->axes.count < 0) return true;
    *out = 0;
    for (int32_t i = 0; i < options->axes.count; ++i) {
        int64_t axis = options->axes.values[i] + (options->axes.values[i] < 0 ? rank : 0);
        if (axis < 0 || axis >= rank) {
            leati_graph_fail(g, LEAT_ESHAPE, "axis %lld is out of range for a prediction of rank %d",
                             (long long)options->axes.values[i], rank);
            return false;
        }
        *out |= UINT32_C(1) << axis;
    }
    return true;
}

/* Sums over the samples are those of the whole batch. */
static leati_value sum(leati_graph *g, const leati_measure_options *options, leati_value x, uint32_t axes) {
    leati_value part = leati_reduce_of(g, LEATI_REDUCE_SUM, x, axes, false);
    return axes & 1 ? leati_total(g, options->totals, part) : part;
}

/* 1 - 2 sum(t p) / (sum(t) + sum(p) + epsilon) */
static leati_value dice(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                        leati_value y_pred) {
    uint32_t axes;
    if (!axes_of(g, options, y_pred, &axes)) return LEATI_INVALID;
    leati_value both = sum(g, options, leati_mul(g, y_true, y_pred), axes);
    leati_value all = leati_add(g, sum(g, options, y_true, axes), sum(g, options, y_pred, axes));
    leati_value share = leati_div(g, both, leati_linear(g, all, 1.0f, LEATI_EPSILON));
    return leati_linear(g, share, -2.0f, 1.0f);
}

/* 1 - both / (both + alpha missed + beta wrong + epsilon): both is sum(t p), missed sum(t (1 - p)), wrong
 * sum(p (1 - t)) */
static leati_value tversky(leati_graph *g, const leati_measure_options *options, leati_value y_true,
                           leati_value y_pred) {
    uint32_t axes;
    if (!axes_of(g, options, y_pred, &axes)) return LEATI_INVALID;
    leati_value both = sum(g, options, leati_mul(g, y_true, y_pred), axes);
    leati_value missed = sum(g, options, leati_mul(g, leati_linear(g, y_pred, -1.0f, 1.0f), y_true), axes);
    leati_value wrong = sum(g, options, leati_mul(g, y_pred, leati_linear(g, y_true, -1.0f, 1.0f)), axes);
    leati_value all = leati_add(g, both, leati_linear(g, missed, (float)options->alpha, 0.0f));
    all = leati_add(g, all, leati_linear(g, wrong, (float)options->beta, LEATI_EPSILON));
    return leati_linear(g, leati_div(g, both, all), -1.0f, 1.0f);
}

#define AXES                                                                                                 \
    {                                                                                                        \
        .key = "axis", .kind = LEATI_FIELD_NUMBERS, .offset = offsetof(leati_measure_options, axes),         \
        .preset = "null"                                                                                     \
    }

static const leati_field dice_fields[] = {AXES, {.key = NULL}};
static const leati_field tversky_fields[] = {{.key = "alpha",
                                              .kind = LEATI_FIELD_FLOAT,
                                              .offset = offsetof(leati_measure_options, alpha),
                                              .preset = "0.5"},
                                             {.key = "beta",
                                              .kind = LEATI_FIELD_FLOAT,
                                              .offset = offsetof(leati_measure_options, beta),
                                              .preset = "0.5"},
                                             AXES,
                                             {.key = NULL}};

const leati_loss_type leati_loss_dice = {
    .measure = {.name = "dice", .class_name = "Dice", .fields = dice_fields, .lower = dice}};
const leati_loss_type leati_loss_tversky = {
    .measure = {.name = "tversky", .class_name = "Tversky", .fields = tversky_fields, .lower = tversky}};
