/* SPDX-License-Identifier: Apache-2.0 */
/* MATMUL: dst (M, N) = A B + bias, A (M, K) and B (K, N) each stored so or transposed.  Layer: engine. */
#include "engine/build.h"
#include "engine/infer.h"
#include "engine/ops/rows.h"

static leat_status infer_matmul(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                leati_desc *out, leat_error *err) {
    (void)input_count;
    const leati_desc *a = &in[0], *b = &in[1], *bias = &in[2];
    LEATI_TRY(leati_expect_f32(a, "a", err));
    LEATI_TRY(leati_expect_f32(b, "b", err));
    LEATI_TRY(leati_expect_rank(a, "a", 2, err));
    LEATI_TRY(leati_expect_rank(b, "b", 2, err));
    bool ta = attrs->matmul.transpose_a, tb = attrs->matmul.transpose_b;
    if (a->shape[ta ? 0 : 1] != b->shape[tb ? 1 : 0]) {
        char left[LEATI_DESC_TEXT_BYTES], right[LEATI_DESC_TEXT_BYTES];
        return leati_fail(err, LEAT_ESHAPE, "inner sizes differ: a %s%s, b %s%s", leati_desc_text(left, a),
                          ta ? " transposed" : "", leati_desc_text(right, b), tb ? " transposed" : "");
    }
    out[0] =
        (leati_desc){.dtype = LEAT_F32, .rank = 2, .shape = {a->shape[ta ? 1 : 0], b->shape[tb ? 0 : 1]}};
    return bias->rank < 0 ? LEAT_OK : leati_expect_shape(bias, "bias", 1, &out[0].shape[1], err);
}

/* With C = op(A) op(B): dop(A) = D op(B)', dop(B) = op(A)' D, each written so that no transposition is made. */
static void matmul_gradient(leati_graph *g, const leati_node *node, const leati_value *diff_outputs,
                            const bool *wanted, leati_value *diff_inputs) {
    leati_value a = node->inputs[0], b = node->inputs[1], d = diff_outputs[0];
    bool ta = node->attrs.matmul.transpose_a, tb = node->attrs.matmul.transpose_b;
    if (wanted[0])
        diff_inputs[0] =
            ta ? leati_matmul(g, b, tb, d, true, LEATI_NONE) : leati_matmul(g, d, false, b, !tb, LEATI_NONE);
    if (wanted[1])
        diff_inputs[1] =
            tb ? leati_matmul(g, d, true, a, ta, LEATI_NONE) : leati_matmul(g, a, !ta, d, false, LEATI_NONE);
    if (wanted[2]) diff_inputs[2] = leati_reduce_of(g, LEATI_REDUCE_SUM, d, 1, false);
}

const leati_op_row leati_op_matmul = {.name = "matmul",
                                      .min_inputs = 2,
                                      .max_inputs = 3,
                                      .outputs = 1,
                                      .optional = 1u << 2,
                                      .infer = infer_matmul,
                                      .gradient = matmul_gradient};
