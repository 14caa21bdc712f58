/* SPDX-License-Identifier: Apache-2.0 */
/* BATCH_NORM, BATCH_NORM_APPLY, BATCH_NORM_BWD: shapes and gradients.  For each channel, which is an index of the last
 * axis, dst = (src - mean) s gamma + beta with s = 1 / sqrt(variance + epsilon).  Room: engine. */
#include "engine/graph/build.h"
#include "engine/ops/types.h"
#include "base/error.h"

static leat_status expect_channels(const leati_desc *desc, int64_t channels, const char *what,
                                   leat_error *err) {
    if (desc->rank < 0 || (desc->rank == 1 && desc->shape[0] == channels)) return LEAT_OK;
    return leati_fail(err, LEAT_ESHAPE, "expected %s (%lld), received rank %d, first dimension %lld", what,
                      (long long)channels, desc->rank, (long long)(desc->rank > 0 ? desc->shape[0] : 0));
}

static leat_status channels_of(const leati_desc *src, int64_t *channels, leat_error *err) {
    if (src->rank < 2)
        return leati_fail(err, LEAT_ESHAPE, "expected a source of rank >= 2, received rank %d", src->rank);
    *channels = src->shape[src->rank - 1];
    return LEAT_OK;
}

static leat_status infer_batch_norm(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                    leati_desc *out, leat_error *err) {
    (void)attrs;
    int64_t channels = 0;
    LEATI_TRY(channels_of(&in[0], &channels, err));
    if (leati_desc_count(&in[0]) == 0)
        return leati_fail(err, LEAT_ESHAPE,
                          "expected at least one sample to compute statistics, received none");
    if (input_count > 1) LEATI_TRY(expect_channels(&in[1], channels, "gamma", err));
    if (input_count > 2) LEATI_TRY(expect_channels(&in[2], channels, "beta", err));
    int64_t none = 0; /* A kernel that needs a workspace sets its size in output_bytes. */
    out[0] = in[0];
    out[1] = out[2] = leati_desc_make(LEAT_F32, 1, &channels);
    out[3] = leati_desc_make(LEAT_U8, 1, &none);
    return LEAT_OK;
}

static leat_status infer_apply(const leati_attrs *attrs, int input_count, const leati_desc *in,
                               leati_desc *out, leat_error *err) {
    static const char *const names[] = {"src", "gamma", "beta", "mean", "variance"};
    (void)attrs;
    int64_t channels = 0;
    LEATI_TRY(channels_of(&in[0], &channels, err));
    for (int i = 1; i < input_count; i++) LEATI_TRY(expect_channels(&in[i], channels, names[i], err));
    if (in[3].rank < 0 || in[4].rank < 0)
        return leati_fail(err, LEAT_EINVAL, "expected mean and variance, received only one of them or none");
    out[0] = in[0];
    return LEAT_OK;
}

static leat_status infer_bwd(const leati_attrs *attrs, int input_count, const leati_desc *in, leati_desc *out,
                             leat_error *err) {
    static const char *const names[] = {"src", "gamma", "mean", "variance"};
    (void)attrs;
    int64_t channels = 0;
    LEATI_TRY(channels_of(&in[0], &channels, err));
    for (int i = 1; i < 4; i++) LEATI_TRY(expect_channels(&in[i], channels, names[i], err));
    if (in[2].rank < 0 || in[3].rank < 0 || !leati_desc_same_shape(&in[4], &in[0]))
        return leati_fail(err, LEAT_ESHAPE, "expected mean, variance, and diff_dst with the shape of src");
    if (input_count > 5 && in[5].rank >= 0 && !leati_desc_same_shape(&in[5], &in[0]))
        return leati_fail(err, LEAT_ESHAPE, "expected `rectified` with the shape of src");
    if (input_count > 7 && in[7].rank >= 0 && !leati_desc_same_shape(&in[7], &in[0]))
        return leati_fail(err, LEAT_ESHAPE, "expected `more` with the shape of src");
    out[0] = out[3] = in[0];
    out[1] = out[2] = leati_desc_make(LEAT_F32, 1, &channels);
    return LEAT_OK;
}

/* Sums value over all axes except the last. */
static leati_value channel_sum(leati_graph *g, leati_value value) {
    uint32_t axes = (1u << (leati_graph_desc(g, value)->rank - 1)) - 1;
    return leati_reduce_of(g, LEATI_REDUCE_SUM, value, axes, false);
}

/* Adds to diff_src the gradient through the statistics, if other nodes read mean and variance:
 * d mean / d src = 1 / n, d variance / d src = 2 (src - mean) / n. */
static leati_value through_statistics(leati_graph *graph, const leati_node *node, const int32_t *diff_outputs,
                                      leati_value diff_src) {
    leati_value src = node->inputs[0];
    const leati_desc *desc = leati_graph_desc(graph, src);
    float share = (float)desc->shape[desc->rank - 1] / (float)leati_desc_count(desc);
    leati_desc full = *desc;
    for (int i = 1; i <= 2; i++) {
        if (diff_outputs[i] == LEATI_NONE) continue;
        leati_value per_channel = leati_linear(graph, diff_outputs[i], i == 1 ? share : 2 * share, 0);
        leati_value part = i == 1 ? leati_broadcast(graph, per_channel, full.rank, full.shape)
                                  : leati_mul(graph, leati_sub(graph, src, node->outputs[1]), per_channel);
        diff_src = diff_src == LEATI_NONE ? part : leati_add(graph, diff_src, part);
    }
    return diff_src;
}

static void gradient_batch_norm(leati_graph *graph, const leati_node *node, const int32_t *diff_outputs,
                                const bool *wanted, int32_t *diff_inputs) {
    leati_value gamma = node->input_count > 1 ? node->inputs[1] : LEATI_NONE;
    leati_value outputs[4] = {LEATI_NONE, LEATI_NONE, LEATI_NONE, LEATI_NONE};
    if (diff_outputs[0] != LEATI_NONE) {
        leati_value inputs[] = {node->inputs[0], gamma,      node->outputs[1], node->outputs[2],
                                diff_outputs[0], LEATI_NONE, LEATI_NONE,       LEATI_NONE};
        leati_graph_node(graph, LEATI_OP_BATCH_NORM_BWD, &node->attrs, 8, inputs, outputs);
    }
    if (wanted[0]) diff_inputs[0] = through_statistics(graph, node, diff_outputs, outputs[0]);
    for (int i = 1; i < node->input_count && i < 3; i++)
        if (wanted[i]) diff_inputs[i] = outputs[i];
}

static void gradient_apply(leati_graph *graph, const leati_node *node, const int32_t *diff_outputs,
                           const bool *wanted, int32_t *diff_inputs) {
    leati_value diff = diff_outputs[0], gamma = node->inputs[1], mean = node->inputs[3];
    leati_eltwise power = {LEATI_FN_POW, -0.5f, 0, 0};
    leati_value shifted = leati_linear(graph, node->inputs[4], 1, node->attrs.batch_norm.epsilon);
    leati_value scale = leati_eltwise_of(graph, shifted, power);
    leati_value factor = gamma == LEATI_NONE ? scale : leati_mul(graph, gamma, scale);
    if (wanted[0]) diff_inputs[0] = leati_mul(graph, diff, factor);
    if (wanted[2] || wanted[3]) {
        leati_value sum = channel_sum(graph, diff);
        if (wanted[2]) diff_inputs[2] = sum;
        if (wanted[3]) diff_inputs[3] = leati_linear(graph, leati_mul(graph, sum, factor), -1, 0);
    }
    if (wanted[1] || wanted[4]) {
        leati_value centred = leati_sub(graph, node->inputs[0], mean);
        leati_value sum = channel_sum(graph, leati_mul(graph, diff, centred));
        if (wanted[1]) diff_inputs[1] = leati_mul(graph, sum, scale);
        leati_value by_variance = leati_div(graph, leati_mul(graph, sum, factor), shifted);
        if (wanted[4]) diff_inputs[4] = leati_linear(graph, by_variance, -0.5f, 0);
    }
}

const leati_op_descriptor leati_op_batch_norm = {.name = "batch_norm",
                                                 .min_inputs = 1,
                                                 .max_inputs = 3,
                                                 .outputs = 4,
                                                 .optional = 1u << 1 | 1u << 2,
                                                 .infer = infer_batch_norm,
                                                 .gradient = gradient_batch_norm};
const leati_op_descriptor leati_op_batch_norm_apply = {.name = "batch_norm_apply",
                                                       .min_inputs = 5,
                                                       .max_inputs = 5,
                                                       .outputs = 1,
                                                       .optional = 1u << 1 | 1u << 2,
                                                       .infer = infer_apply,
                                                       .gradient = gradient_apply};
const leati_op_descriptor leati_op_batch_norm_bwd = {.name = "batch_norm_bwd",
                                                     .min_inputs = 5,
                                                     .max_inputs = 8,
                                                     .outputs = 4,
                                                     .flags = LEATI_OP_OPTIONAL_OUTPUTS,
                                                     .optional = 1u << 1 | 1u << 5 | 1u << 6 | 1u << 7,
                                                     .infer = infer_bwd};
