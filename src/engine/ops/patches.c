/* SPDX-License-Identifier: Apache-2.0 */
/* PATCHES, PATCHES_BWD: shapes and gradients.  Both ops are linear, and each is the gradient of the other.  Room:
 * engine. */
#include "base/error.h"
#include "base/memory.h"
#include "engine/op_semantics/geometry.h"
#include "engine/graph/graph.h"
#include "engine/op_semantics/infer.h"
#include "engine/ops/types.h"

static leat_status infer_patches(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                 leati_desc *out, leat_error *err) {
    leati_geometry g;
    (void)input_count;
    LEATI_TRY(leati_expect_f32(&in[0], "src", err));
    LEATI_TRY(leati_geometry_make(&g, &attrs->conv.window, &in[0], err));
    const int64_t dims[] = {leati_shape_count(3, g.out), g.batch, leati_mul_saturated(g.taps, g.channels)};
    out[0] = leati_desc_make(LEAT_F32, 3, dims);
    return LEAT_OK;
}

static leat_status infer_patches_bwd(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                     leati_desc *out, leat_error *err) {
    (void)input_count;
    LEATI_TRY(leati_expect_f32(&in[0], "diff_dst", err));
    LEATI_TRY(leati_expect_rank(&in[0], "diff_dst", 3, err));
    leati_geometry g;
    leati_desc src = leati_patches_source(attrs, &in[0]);
    LEATI_TRY(leati_geometry_make(&g, &attrs->conv.window, &src, err));
    const int64_t dims[] = {leati_shape_count(3, g.out), g.batch, leati_mul_saturated(g.taps, g.channels)};
    LEATI_TRY(leati_expect_shape(&in[0], "diff_dst", 3, dims, err));
    out[0] = src;
    return LEAT_OK;
}

static void patches_gradient(leati_graph *graph, const leati_node *node, const int32_t *diff_outputs,
                             const bool *wanted, int32_t *diff_inputs) {
    leati_attrs attrs = node->attrs;
    const leati_desc *src = leati_graph_desc(graph, node->inputs[0]);
    for (int i = 0; i < attrs.conv.window.spatial; i++) attrs.conv.size[i] = src->shape[1 + i];
    if (wanted[0])
        diff_inputs[0] = leati_graph_node(graph, LEATI_OP_PATCHES_BWD, &attrs, 1, diff_outputs, NULL);
}

static void patches_bwd_gradient(leati_graph *graph, const leati_node *node, const int32_t *diff_outputs,
                                 const bool *wanted, int32_t *diff_inputs) {
    if (wanted[0])
        diff_inputs[0] = leati_graph_node(graph, LEATI_OP_PATCHES, &node->attrs, 1, diff_outputs, NULL);
}

const leati_op_descriptor leati_op_patches = {.name = "patches",
                                              .min_inputs = 1,
                                              .max_inputs = 1,
                                              .outputs = 1,
                                              .infer = infer_patches,
                                              .gradient = patches_gradient};
const leati_op_descriptor leati_op_patches_bwd = {.name = "patches_bwd",
                                                  .min_inputs = 1,
                                                  .max_inputs = 1,
                                                  .outputs = 1,
                                                  .infer = infer_patches_bwd,
                                                  .gradient = patches_bwd_gradient};
