/* SPDX-License-Identifier: Apache-2.0 */
/* BINARY: two operands, broadcast by NumPy's rule.  Room: engine. */
#include "engine/graph/build.h"
#include "engine/op_semantics/infer.h"
#include "engine/ops/types.h"

static bool is_comparison(leati_binary kind) {
    return kind == LEATI_EQUAL || kind == LEATI_GREATER || kind == LEATI_GREATER_EQUAL;
}

/* The operands of a comparison have one type, which may be any; its result is f32. */
static leat_status infer_binary(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                leati_desc *out, leat_error *err) {
    (void)input_count;
    if ((unsigned)attrs->binary.kind > LEATI_GREATER_EQUAL)
        return leati_fail(err, LEAT_EINVAL, "kind %d is not known", (int)attrs->binary.kind);
    if (!is_comparison(attrs->binary.kind)) LEATI_TRY(leati_expect_f32(&in[0], "a", err));
    LEATI_TRY(leati_expect_dtype(&in[1], "b", in[0].dtype, err));
    LEATI_TRY(leati_broadcast_shape(&in[0], &in[1], &out[0], err));
    out[0].dtype = LEAT_F32;
    return LEAT_OK;
}

/* Returns the gradient with respect to operand `side` (0 or 1), in the shape of the result; d is the gradient with
 * respect to the result.  MAX and MIN pass the gradient of an equal pair to the first operand, as in TensorFlow. */
static leati_value operand_gradient(leati_graph *g, const leati_node *node, leati_value d, int side) {
    leati_value a = node->inputs[0], b = node->inputs[1];
    switch (node->attrs.binary.kind) {
    case LEATI_SUB: return side == 0 ? d : leati_linear(g, d, -1, 0);
    case LEATI_MUL: return leati_mul(g, d, side == 0 ? b : a);
    case LEATI_DIV:
        if (side == 0) return leati_div(g, d, b);
        return leati_linear(g, leati_div(g, leati_mul(g, d, node->outputs[0]), b), -1, 0);
    case LEATI_MAX:
        return leati_mul(g, d,
                         side == 0 ? leati_binary_of(g, LEATI_GREATER_EQUAL, a, b)
                                   : leati_binary_of(g, LEATI_GREATER, b, a));
    case LEATI_MIN:
        return leati_mul(g, d,
                         side == 0 ? leati_binary_of(g, LEATI_GREATER_EQUAL, b, a)
                                   : leati_binary_of(g, LEATI_GREATER, a, b));
    default: return d; /* ADD */
    }
}

static void binary_gradient(leati_graph *g, const leati_node *node, const leati_value *diff_outputs,
                            const bool *wanted, leati_value *diff_inputs) {
    if (is_comparison(node->attrs.binary.kind)) return;
    for (int side = 0; side < 2; ++side)
        if (wanted[side])
            diff_inputs[side] = leati_sum_to(g, operand_gradient(g, node, diff_outputs[0], side),
                                             leati_graph_desc(g, node->inputs[side]));
}

const leati_op_descriptor leati_op_binary = {.name = "binary",
                                             .min_inputs = 2,
                                             .max_inputs = 2,
                                             .outputs = 1,
                                             .flags = LEATI_OP_IN_PLACE,
                                             .infer = infer_binary,
                                             .gradient = binary_gradient};
