/* SPDX-License-Identifier: Apache-2.0 */
/* SOFTMAX, SOFTMAX_BWD, and SOFTMAX_XENT, the crossentropy of logits: shapes and gradients.  Room: engine. */
#include "engine/graph/build.h"
#include "engine/op_semantics/infer.h"
#include "engine/ops/types.h"

static leat_status infer_softmax(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                 leati_desc *out, leat_error *err) {
    (void)input_count;
    LEATI_TRY(leati_expect_f32(&in[0], "src", err));
    LEATI_TRY(leati_expect_axis(&in[0], attrs->softmax.axis, err));
    out[0] = in[0];
    return LEAT_OK;
}

static void softmax_gradient(leati_graph *g, const leati_node *node, const leati_value *diff_outputs,
                             const bool *wanted, leati_value *diff_inputs) {
    (void)wanted;
    leati_value inputs[2] = {node->outputs[0], diff_outputs[0]};
    diff_inputs[0] = leati_graph_node(g, LEATI_OP_SOFTMAX_BWD, &node->attrs, 2, inputs, NULL);
}

const leati_op_descriptor leati_op_softmax = {.name = "softmax",
                                              .min_inputs = 1,
                                              .max_inputs = 1,
                                              .outputs = 1,
                                              .flags = LEATI_OP_IN_PLACE,
                                              .infer = infer_softmax,
                                              .gradient = softmax_gradient};

static leat_status infer_softmax_bwd(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                     leati_desc *out, leat_error *err) {
    LEATI_TRY(infer_softmax(attrs, input_count, in, out, err));
    return leati_expect_like(&in[1], "diff_dst", &in[0], err);
}

const leati_op_descriptor leati_op_softmax_bwd = {.name = "softmax_bwd",
                                                  .min_inputs = 2,
                                                  .max_inputs = 2,
                                                  .outputs = 1,
                                                  .flags = LEATI_OP_IN_PLACE,
                                                  .infer = infer_softmax_bwd};

static leat_status infer_xent(const leati_attrs *attrs, int input_count, const leati_desc *in,
                              leati_desc *out, leat_error *err) {
    (void)attrs;
    (void)input_count;
    LEATI_TRY(leati_expect_f32(&in[0], "logits", err));
    LEATI_TRY(leati_expect_axis(&in[0], in[0].rank - 1, err));
    LEATI_TRY(leati_expect_like(&in[1], "labels", &in[0], err));
    out[0] = leati_desc_make(LEAT_F32, in[0].rank - 1, in[0].shape);
    out[1] = in[0];
    return LEAT_OK;
}

/* Returns the logarithms of which the loss is the negative sum, weighted by the labels. */
static leati_value xent_logarithms(leati_graph *g, leati_value logits, leati_xent kind) {
    if (kind == LEATI_XENT_EXACT) return leati_log_softmax(g, logits, -1);
    leati_value p = leati_clip(g, leati_softmax_of(g, logits, -1), LEATI_EPSILON, 1.0f - LEATI_EPSILON);
    leati_value logarithms = leati_function_of(g, p, LEATI_FN_LOG);
    return kind == LEATI_XENT_NORMALIZED ? leati_log_softmax(g, logarithms, -1) : logarithms;
}

/* The gradient with respect to the logits is output 1, which is softmax - labels (TensorFlow's definition, also for
 * labels that do not sum to 1) unless the probabilities are clipped, times the gradient with respect to the loss. */
static void xent_gradient(leati_graph *g, const leati_node *node, const leati_value *diff_outputs,
                          const bool *wanted, leati_value *diff_inputs) {
    if (diff_outputs[1] != LEATI_NONE) {
        leati_graph_fail(g, LEAT_ENOTSUP,
                         "op softmax_xent: the gradient of its second output is not supported");
        return;
    }
    leati_value diff = leati_expand_last(g, diff_outputs[0]);
    if (wanted[0]) diff_inputs[0] = leati_mul(g, node->outputs[1], diff);
    if (wanted[1]) {
        leati_value log = xent_logarithms(g, node->inputs[0], node->attrs.xent.kind);
        diff_inputs[1] = leati_mul(g, leati_linear(g, log, -1, 0), diff);
    }
}

const leati_op_descriptor leati_op_softmax_xent = {.name = "softmax_xent",
                                                   .min_inputs = 2,
                                                   .max_inputs = 2,
                                                   .outputs = 2,
                                                   .flags = LEATI_OP_OPTIONAL_OUTPUTS,
                                                   .infer = infer_xent,
                                                   .gradient = xent_gradient};
