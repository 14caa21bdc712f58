/* SPDX-License-Identifier: Apache-2.0 */
/* RANK_SUM: adds up a tensor over the ranks of a run; without other ranks, the tensor itself.  Since the losses of the
 * ranks are added, too, the gradient of a rank's tensor is the sum of the gradients of all ranks.  Room: engine. */
#include "engine/graph/build.h"
#include "engine/op_semantics/infer.h"
#include "engine/ops/types.h"

static leat_status infer(const leati_attrs *attrs, int input_count, const leati_desc *in, leati_desc *out,
                         leat_error *err) {
    (void)attrs;
    (void)input_count;
    LEATI_TRY(leati_expect_f32(&in[0], "src", err));
    out[0] = in[0];
    return LEAT_OK;
}

static void gradient(leati_graph *g, const leati_node *node, const leati_value *diff_outputs,
                     const bool *wanted, leati_value *diff_inputs) {
    (void)node;
    if (wanted[0]) diff_inputs[0] = leati_rank_sum(g, diff_outputs[0]);
}

const leati_op_descriptor leati_op_rank_sum = {
    .name = "rank_sum", .min_inputs = 1, .max_inputs = 1, .outputs = 1, .infer = infer, .gradient = gradient};
