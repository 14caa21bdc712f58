/* SPDX-License-Identifier: Apache-2.0 */
/* DROPOUT and RANDOM_NORMAL.  The mask is a function of the run, the stream and the element (engine/random.h), so the
 * gradient of DROPOUT is the same op.  Room: engine. */
#include "engine/graph/build.h"
#include "engine/op_semantics/infer.h"
#include "engine/ops/types.h"

static leat_status infer_dropout(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                 leati_desc *out, leat_error *err) {
    (void)input_count;
    LEATI_TRY(leati_expect_f32(&in[0], "src", err));
    if (!(attrs->dropout.rate >= 0 && attrs->dropout.rate < 1))
        return leati_fail(err, LEAT_EINVAL, "expected a rate in [0, 1), received %g",
                          (double)attrs->dropout.rate);
    if (attrs->dropout.shared >> in[0].rank)
        return leati_fail(err, LEAT_ESHAPE, "shared axes 0x%x of %d dimensions", attrs->dropout.shared,
                          in[0].rank);
    out[0] = in[0];
    return LEAT_OK;
}

static void dropout_gradient(leati_graph *g, const leati_node *node, const leati_value *diff_outputs,
                             const bool *wanted, leati_value *diff_inputs) {
    (void)wanted;
    diff_inputs[0] = leati_graph_node(g, LEATI_OP_DROPOUT, &node->attrs, 1, diff_outputs, NULL);
}

const leati_op_descriptor leati_op_dropout = {.name = "dropout",
                                              .min_inputs = 1,
                                              .max_inputs = 1,
                                              .outputs = 1,
                                              .flags = LEATI_OP_IN_PLACE | LEATI_OP_RANDOM,
                                              .infer = infer_dropout,
                                              .gradient = dropout_gradient};

static leat_status infer_normal(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                leati_desc *out, leat_error *err) {
    (void)attrs, (void)input_count;
    LEATI_TRY(leati_expect_f32(&in[0], "like", err));
    out[0] = in[0];
    return LEAT_OK;
}

/* There is no gradient: the numbers depend only on the shape of the input. */
const leati_op_descriptor leati_op_random_normal = {.name = "random_normal",
                                                    .min_inputs = 1,
                                                    .max_inputs = 1,
                                                    .outputs = 1,
                                                    .flags = LEATI_OP_RANDOM,
                                                    .infer = infer_normal};
