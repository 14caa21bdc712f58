/* SPDX-License-Identifier: Apache-2.0 */
/* GROUP_NORM, GROUP_NORM_BWD: shapes and gradient.  dst = (src - mean) inverse gamma + beta, where
 * inverse = 1 / sqrt(variance + epsilon); mean and variance are those of one group of one row.  Room: engine. */
#include "engine/op_semantics/group_norm.h"
#include "base/error.h"
#include "engine/graph/graph.h"
#include "engine/op_semantics/infer.h"
#include "engine/ops/types.h"

static leat_status check_sizes(const leati_attrs *attrs, const leati_desc *src, leat_error *err) {
    int64_t channels = attrs->group_norm.channels, groups = attrs->group_norm.groups, inner = 1;
    LEATI_TRY(leati_expect_f32(src, "src", err));
    if (attrs->group_norm.samples < 0 || attrs->group_norm.samples >= src->rank)
        return leati_fail(err, LEAT_ESHAPE,
                          "expected a rank above the number of sample axes (%d), received rank %d",
                          attrs->group_norm.samples, src->rank);
    for (int i = attrs->group_norm.samples; i < src->rank; i++) inner *= src->shape[i];
    if (channels < 1 || groups < 1 || channels % groups != 0 || inner % channels != 0 || inner == 0)
        return leati_fail(err, LEAT_ESHAPE,
                          "a sample of %lld elements does not consist of %lld channels in %lld groups",
                          (long long)inner, (long long)channels, (long long)groups);
    return LEAT_OK;
}

static leat_status expect_channels(const leati_desc *desc, const char *what, int64_t channels,
                                   leat_error *err) {
    return desc->rank < 0 ? LEAT_OK : leati_expect_shape(desc, what, 1, &channels, err);
}

static leat_status infer_group_norm(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                    leati_desc *out, leat_error *err) {
    (void)input_count;
    LEATI_TRY(check_sizes(attrs, &in[0], err));
    LEATI_TRY(expect_channels(&in[1], "gamma", attrs->group_norm.channels, err));
    LEATI_TRY(expect_channels(&in[2], "beta", attrs->group_norm.channels, err));
    leati_group_shape shape = leati_group_shape_of(attrs, &in[0]);
    int64_t moments[] = {shape.rows, shape.groups};
    out[0] = in[0];
    out[1] = out[2] = leati_desc_make(LEAT_F32, 2, moments);
    return LEAT_OK;
}

static leat_status infer_bwd(const leati_attrs *attrs, int input_count, const leati_desc *in, leati_desc *out,
                             leat_error *err) {
    (void)input_count;
    LEATI_TRY(check_sizes(attrs, &in[0], err));
    LEATI_TRY(expect_channels(&in[1], "gamma", attrs->group_norm.channels, err));
    leati_group_shape shape = leati_group_shape_of(attrs, &in[0]);
    int64_t moments[] = {shape.rows, shape.groups};
    LEATI_TRY(leati_expect_shape(&in[2], "mean", 2, moments, err));
    LEATI_TRY(leati_expect_shape(&in[3], "inverse", 2, moments, err));
    LEATI_TRY(leati_expect_like(&in[4], "diff_dst", &in[0], err));
    out[0] = in[0];
    out[1] = out[2] = leati_desc_make(LEAT_F32, 1, &shape.channels);
    return LEAT_OK;
}

static void gradient(leati_graph *graph, const leati_node *node, const int32_t *diff_outputs,
                     const bool *wanted, int32_t *diff_inputs) {
    if (diff_outputs[1] != LEATI_NONE || diff_outputs[2] != LEATI_NONE) {
        leati_graph_fail(graph, LEAT_ENOTSUP, "op group_norm: the gradient of its moments is not supported");
        return;
    }
    leati_value outputs[3];
    leati_value inputs[] = {node->inputs[0], node->inputs[1], node->outputs[1], node->outputs[2],
                            diff_outputs[0]};
    leati_graph_node(graph, LEATI_OP_GROUP_NORM_BWD, &node->attrs, 5, inputs, outputs);
    for (int i = 0; i < 3; i++)
        if (wanted[i]) diff_inputs[i] = outputs[i];
}

const leati_op_descriptor leati_op_group_norm = {.name = "group_norm",
                                                 .min_inputs = 3,
                                                 .max_inputs = 3,
                                                 .outputs = 3,
                                                 .optional = 1u << 1 | 1u << 2,
                                                 .infer = infer_group_norm,
                                                 .gradient = gradient};
const leati_op_descriptor leati_op_group_norm_bwd = {.name = "group_norm_bwd",
                                                     .min_inputs = 5,
                                                     .max_inputs = 5,
                                                     .outputs = 3,
                                                     .optional = 1u << 1,
                                                     .infer = infer_bwd};
