/* SPDX-License-Identifier: Apache-2.0 */
/* CAST: converts any type to any other; an f32 or bf16 result is multiplied by a scale.  Room: engine. */
#include "engine/graph/build.h"
#include "engine/op_semantics/infer.h"
#include "engine/ops/types.h"

static leat_status infer_cast(const leati_attrs *attrs, int input_count, const leati_desc *in,
                              leati_desc *out, leat_error *err) {
    (void)input_count;
    if (leati_dtype_bytes(attrs->cast.dtype) == 0)
        return leati_fail(err, LEAT_EDTYPE, "unknown data type %d", (int)attrs->cast.dtype);
    out[0] = in[0];
    out[0].dtype = attrs->cast.dtype;
    return LEAT_OK;
}

static void cast_gradient(leati_graph *g, const leati_node *node, const leati_value *diff_outputs,
                          const bool *wanted, leati_value *diff_inputs) {
    (void)wanted;
    if (leati_graph_desc(g, node->inputs[0])->dtype == LEAT_F32 && node->attrs.cast.dtype == LEAT_F32)
        diff_inputs[0] = node->attrs.cast.scale == 1
                             ? diff_outputs[0]
                             : leati_linear(g, diff_outputs[0], node->attrs.cast.scale, 0);
}

const leati_op_descriptor leati_op_cast = {.name = "cast",
                                           .min_inputs = 1,
                                           .max_inputs = 1,
                                           .outputs = 1,
                                           .infer = infer_cast,
                                           .gradient = cast_gradient};
