/* SPDX-License-Identifier: Apache-2.0 */
/* CONV, CONV_BWD_DATA, CONV_BWD_WEIGHTS: shapes and gradients.  Room: engine. */
#include "engine/op_semantics/geometry.h"
#include "engine/graph/graph.h"
#include "engine/ops/types.h"
#include "base/error.h"
#include "base/text.h"

static leati_desc weights_desc(const leati_geometry *g, const leati_window *w) {
    leati_desc desc = {.dtype = LEAT_F32, .rank = w->spatial + 2};
    for (int i = 0; i < w->spatial; i++) desc.shape[i] = w->kernel[i];
    desc.shape[w->spatial] = g->channels / g->groups;
    desc.shape[w->spatial + 1] = g->filters;
    return desc;
}

static leati_desc image_desc(const leati_geometry *g, int spatial, const int64_t *size, int64_t channels) {
    leati_desc desc = {.dtype = LEAT_F32, .rank = spatial + 2};
    desc.shape[0] = g->batch;
    for (int i = 0; i < spatial; i++) desc.shape[1 + i] = size[3 - spatial + i];
    desc.shape[spatial + 1] = channels;
    return desc;
}

static leat_status expect_shape(const leati_desc *got, const leati_desc *expected, const char *what,
                                leat_error *err) {
    char a[128], b[128];
    if (leati_desc_same_shape(got, expected)) return LEAT_OK;
    return leati_fail(err, LEAT_ESHAPE, "expected %s %s, received %s", what,
                      leati_shape_text(a, sizeof a, expected->rank, expected->shape),
                      leati_shape_text(b, sizeof b, got->rank, got->shape));
}

static leat_status expect_bias(const leati_desc *bias, int64_t filters, leat_error *err) {
    leati_desc expected = leati_desc_make(LEAT_F32, 1, &filters);
    return expect_shape(bias, &expected, "bias", err);
}

static leat_status infer_conv(const leati_attrs *attrs, int input_count, const leati_desc *in,
                              leati_desc *out, leat_error *err) {
    leati_geometry g;
    LEATI_TRY(leati_conv_geometry(&g, LEATI_OP_CONV, attrs, in, err));
    leati_desc weights = weights_desc(&g, &attrs->conv.window);
    LEATI_TRY(expect_shape(&in[1], &weights, "weights", err));
    if (input_count > 2 && in[2].rank >= 0) LEATI_TRY(expect_bias(&in[2], g.filters, err));
    out[0] = image_desc(&g, attrs->conv.window.spatial, g.out, g.filters);
    return LEAT_OK;
}

static leat_status infer_bwd_data(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                  leati_desc *out, leat_error *err) {
    (void)input_count;
    leati_geometry g;
    int spatial = attrs->conv.window.spatial;
    LEATI_TRY(leati_conv_geometry(&g, LEATI_OP_CONV_BWD_DATA, attrs, in, err));
    leati_desc weights = weights_desc(&g, &attrs->conv.window),
               dst = image_desc(&g, spatial, g.out, g.filters);
    LEATI_TRY(expect_shape(&in[1], &weights, "weights", err));
    LEATI_TRY(expect_shape(&in[0], &dst, "diff_dst", err));
    out[0] = image_desc(&g, spatial, g.in, g.channels);
    return LEAT_OK;
}

static leat_status infer_bwd_weights(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                     leati_desc *out, leat_error *err) {
    (void)input_count;
    leati_geometry g;
    LEATI_TRY(leati_conv_geometry(&g, LEATI_OP_CONV_BWD_WEIGHTS, attrs, in, err));
    leati_desc dst = image_desc(&g, attrs->conv.window.spatial, g.out, g.filters);
    LEATI_TRY(expect_shape(&in[1], &dst, "diff_dst", err));
    out[0] = weights_desc(&g, &attrs->conv.window);
    out[1] = leati_desc_make(LEAT_F32, 1, &g.filters);
    return LEAT_OK;
}

static void gradient(leati_graph *graph, const leati_node *node, const int32_t *diff_outputs,
                     const bool *wanted, int32_t *diff_inputs) {
    leati_attrs attrs = node->attrs;
    leati_value src = node->inputs[0], weights = node->inputs[1];
    bool has_bias = node->input_count > 2 && node->inputs[2] >= 0;
    if (wanted[0]) {
        const leati_desc *desc = leati_graph_desc(graph, src);
        for (int i = 0; i < attrs.conv.window.spatial; i++) attrs.conv.size[i] = desc->shape[1 + i];
        leati_value inputs[] = {diff_outputs[0], weights};
        diff_inputs[0] = leati_graph_node(graph, LEATI_OP_CONV_BWD_DATA, &attrs, 2, inputs, NULL);
    }
    if (wanted[1] || (has_bias && wanted[2])) {
        leati_value inputs[] = {src, diff_outputs[0]}, outputs[2];
        leati_graph_node(graph, LEATI_OP_CONV_BWD_WEIGHTS, &attrs, 2, inputs, outputs);
        if (wanted[1]) diff_inputs[1] = outputs[0];
        if (has_bias && wanted[2]) diff_inputs[2] = outputs[1];
    }
}

/* CONV_BWD_DATA is linear in diff_dst and in the weights.  Its gradient with respect to diff_dst is the forward
 * convolution; with respect to the weights it is CONV_BWD_WEIGHTS, with the incoming gradient as src. */
static void bwd_data_gradient(leati_graph *graph, const leati_node *node, const int32_t *diff_outputs,
                              const bool *wanted, int32_t *diff_inputs) {
    leati_value inputs[] = {diff_outputs[0], node->inputs[1], LEATI_NONE}, outputs[2];
    if (wanted[0]) diff_inputs[0] = leati_graph_node(graph, LEATI_OP_CONV, &node->attrs, 3, inputs, NULL);
    inputs[1] = node->inputs[0];
    if (wanted[1])
        diff_inputs[1] = leati_graph_node(graph, LEATI_OP_CONV_BWD_WEIGHTS, &node->attrs, 2, inputs, outputs);
}

const leati_op_descriptor leati_op_conv = {.name = "conv",
                                           .min_inputs = 2,
                                           .max_inputs = 3,
                                           .outputs = 1,
                                           .optional = 1u << 2,
                                           .infer = infer_conv,
                                           .gradient = gradient};
const leati_op_descriptor leati_op_conv_bwd_data = {.name = "conv_bwd_data",
                                                    .min_inputs = 2,
                                                    .max_inputs = 2,
                                                    .outputs = 1,
                                                    .infer = infer_bwd_data,
                                                    .gradient = bwd_data_gradient};
const leati_op_descriptor leati_op_conv_bwd_weights = {.name = "conv_bwd_weights",
                                                       .min_inputs = 2,
                                                       .max_inputs = 2,
                                                       .outputs = 2,
                                                       .flags = LEATI_OP_OPTIONAL_OUTPUTS,
                                                       .infer = infer_bwd_weights};
