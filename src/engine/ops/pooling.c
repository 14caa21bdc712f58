/* SPDX-License-Identifier: Apache-2.0 */
/* POOLING and POOLING_BWD: shapes and gradients.  Room: engine. */
#include "engine/op_semantics/geometry.h"
#include "engine/graph/graph.h"
#include "engine/ops/types.h"
#include "base/error.h"

static leat_status infer_pooling(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                 leati_desc *out, leat_error *err) {
    (void)input_count;
    leati_geometry g;
    int spatial = attrs->pooling.window.spatial;
    LEATI_TRY(leati_geometry_make(&g, &attrs->pooling.window, &in[0], err));
    for (int i = 0; i < 3; i++)
        if (g.pad_before[i] >= g.kernel[i] || g.pad_after[i] >= g.kernel[i] || g.dilation[i] != 1)
            return leati_fail(
                err, LEAT_EINVAL,
                "expected pooling without dilation, padded by less than the window, received window "
                "%lld, dilation %lld, padding %lld and %lld",
                (long long)g.kernel[i], (long long)g.dilation[i], (long long)g.pad_before[i],
                (long long)g.pad_after[i]);
    out[0] = in[0];
    for (int i = 0; i < spatial; i++) out[0].shape[1 + i] = g.out[3 - spatial + i];
    int64_t none = 0; /* A kernel that needs a workspace sets its size in output_bytes. */
    out[1] = leati_desc_make(LEAT_U8, 1, &none);
    return LEAT_OK;
}

static leat_status infer_bwd(const leati_attrs *attrs, int input_count, const leati_desc *in, leati_desc *out,
                             leat_error *err) {
    leati_desc expected[2];
    LEATI_TRY(infer_pooling(attrs, 1, in, expected, err));
    if (input_count != 4 || !leati_desc_same_shape(&in[1], &expected[0]) ||
        !leati_desc_same_shape(&in[2], &expected[0]))
        return leati_fail(err, LEAT_ESHAPE,
                          "expected dst and diff_dst with the shape of the pooling's output");
    out[0] = in[0];
    return LEAT_OK;
}

static void gradient(leati_graph *graph, const leati_node *node, const int32_t *diff_outputs,
                     const bool *wanted, int32_t *diff_inputs) {
    if (!wanted[0] || diff_outputs[0] == LEATI_NONE) return;
    leati_value inputs[] = {node->inputs[0], node->outputs[0], diff_outputs[0], node->outputs[1]};
    diff_inputs[0] = leati_graph_node(graph, LEATI_OP_POOLING_BWD, &node->attrs, 4, inputs, NULL);
}

const leati_op_descriptor leati_op_pooling = {.name = "pooling",
                                              .min_inputs = 1,
                                              .max_inputs = 1,
                                              .outputs = 2,
                                              .flags = LEATI_OP_OPTIONAL_OUTPUTS,
                                              .infer = infer_pooling,
                                              .gradient = gradient};
const leati_op_descriptor leati_op_pooling_bwd = {
    .name = "pooling_bwd", .min_inputs = 4, .max_inputs = 4, .outputs = 1, .infer = infer_bwd};
