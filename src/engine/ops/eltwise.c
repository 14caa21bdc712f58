/* SPDX-License-Identifier: Apache-2.0 */
/* ELTWISE and ELTWISE_BWD: element-wise functions of one variable.  Room: engine. */
#include "engine/graph/build.h"
#include "engine/op_semantics/infer.h"
#include "engine/ops/types.h"

static leat_status infer_eltwise(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                 leati_desc *out, leat_error *err) {
    (void)input_count;
    if ((unsigned)attrs->eltwise.function >= LEATI_FN_COUNT)
        return leati_fail(err, LEAT_EINVAL, "unknown function %d", (int)attrs->eltwise.function);
    LEATI_TRY(leati_expect_f32(&in[0], "src", err));
    out[0] = in[0];
    return LEAT_OK;
}

static void eltwise_gradient(leati_graph *g, const leati_node *node, const leati_value *diff_outputs,
                             const bool *wanted, leati_value *diff_inputs) {
    (void)wanted;
    leati_eltwise f = node->attrs.eltwise;
    if (f.function == LEATI_FN_LINEAR) {
        diff_inputs[0] = f.a == 1 ? diff_outputs[0] : leati_linear(g, diff_outputs[0], f.a, 0);
        return;
    }
    leati_value at = leati_eltwise_uses_dst(&f) ? node->outputs[0] : node->inputs[0];
    diff_inputs[0] = leati_eltwise_bwd(g, at, diff_outputs[0], f);
}

const leati_op_descriptor leati_op_eltwise = {.name = "eltwise",
                                              .min_inputs = 1,
                                              .max_inputs = 1,
                                              .outputs = 1,
                                              .flags = LEATI_OP_IN_PLACE,
                                              .infer = infer_eltwise,
                                              .gradient = eltwise_gradient};

static leat_status infer_eltwise_bwd(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                     leati_desc *out, leat_error *err) {
    LEATI_TRY(infer_eltwise(attrs, input_count, in, out, err));
    return leati_expect_like(&in[1], "diff_dst", &in[0], err);
}

const leati_op_descriptor leati_op_eltwise_bwd = {.name = "eltwise_bwd",
                                                  .min_inputs = 2,
                                                  .max_inputs = 2,
                                                  .outputs = 1,
                                                  .flags = LEATI_OP_IN_PLACE,
                                                  .infer = infer_eltwise_bwd};
