/* SPDX-License-Identifier: Apache-2.0 */
/* CTC, the probability of a list of labels over all its alignments to the time steps (Graves and others 2006): shapes
 * and gradient.  Room: engine. */
#include "base/error.h"
#include "engine/graph/build.h"
#include "engine/op_semantics/infer.h"
#include "engine/ops/types.h"

/* The workspace has, for each step, doubles: two for each of the 2 L + 1 states, and one more. */
static leat_status infer(const leati_attrs *attrs, int input_count, const leati_desc *in, leati_desc *out,
                         leat_error *err) {
    (void)attrs;
    (void)input_count;
    LEATI_TRY(leati_expect_f32(&in[0], "logits", err));
    LEATI_TRY(leati_expect_f32(&in[1], "labels", err));
    if (in[0].rank != 3 || in[1].rank != 2 || in[0].shape[0] != in[1].shape[0])
        return leati_fail(err, LEAT_ESHAPE,
                          "expected logits (samples, steps, classes) and labels (samples, length)");
    if (in[0].shape[1] < 1 || in[0].shape[2] < 1 || in[1].shape[1] > INT32_MAX)
        return leati_fail(err, LEAT_ESHAPE, "expected at least one step and one class, and fewer labels");
    const int64_t floats[] = {in[0].shape[1], 2 * (2 * (2 * in[1].shape[1] + 1) + 1)};
    out[0] = leati_desc_make(LEAT_F32, 1, in[0].shape);
    out[1] = in[0];
    out[2] = leati_desc_make(LEAT_F32, 2, floats);
    return LEAT_OK;
}

static void gradient(leati_graph *g, const leati_node *node, const leati_value *diff_outputs,
                     const bool *wanted, leati_value *diff_inputs) {
    if (diff_outputs[0] == LEATI_NONE || diff_outputs[1] != LEATI_NONE) {
        leati_graph_fail(g, LEAT_ENOTSUP, "op ctc: only the gradient of its first output is supported");
        return;
    }
    leati_value diff = leati_expand_last(g, leati_expand_last(g, diff_outputs[0]));
    if (wanted[0]) diff_inputs[0] = leati_mul(g, node->outputs[1], diff);
}

const leati_op_descriptor leati_op_ctc = {
    .name = "ctc", .min_inputs = 2, .max_inputs = 2, .outputs = 3, .infer = infer, .gradient = gradient};
