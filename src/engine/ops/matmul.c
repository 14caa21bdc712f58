/* SPDX-License-Identifier: Apache-2.0 */
/* MATMUL: dst (..., M, N) = A B + bias for each element of the leading axes.  A (..., M, K) and B (..., K, N) may each
 * be stored transposed.  Room: engine. */
#include "base/error.h"
#include "engine/graph/build.h"
#include "engine/op_semantics/infer.h"
#include "engine/ops/types.h"

static leat_status fail_differing(const leati_attrs *attrs, const leati_desc *a, const leati_desc *b,
                                  const char *what, leat_error *err) {
    char left[LEATI_DESC_TEXT_BYTES], right[LEATI_DESC_TEXT_BYTES];
    return leati_fail(err, LEAT_ESHAPE, "%s differ: a %s%s, b %s%s", what, leati_desc_text(left, a),
                      attrs->matmul.transpose_a ? " transposed" : "", leati_desc_text(right, b),
                      attrs->matmul.transpose_b ? " transposed" : "");
}

static leat_status infer_matmul(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                leati_desc *out, leat_error *err) {
    (void)input_count;
    const leati_desc *a = &in[0], *b = &in[1], *bias = &in[2];
    int rows = a->rank - 2, columns = a->rank - 1;
    bool ta = attrs->matmul.transpose_a, tb = attrs->matmul.transpose_b;
    LEATI_TRY(leati_expect_f32(a, "a", err));
    LEATI_TRY(leati_expect_f32(b, "b", err));
    if (a->rank < 2) return leati_expect_rank(a, "a", 2, err);
    LEATI_TRY(leati_expect_rank(b, "b", a->rank, err));
    for (int i = 0; i < rows; ++i)
        if (a->shape[i] != b->shape[i]) return fail_differing(attrs, a, b, "leading dimensions", err);
    if (a->shape[ta ? rows : columns] != b->shape[tb ? columns : rows])
        return fail_differing(attrs, a, b, "inner sizes", err);
    out[0] = *a;
    out[0].shape[rows] = a->shape[ta ? columns : rows];
    out[0].shape[columns] = b->shape[tb ? rows : columns];
    return bias->rank < 0 ? LEAT_OK : leati_expect_shape(bias, "bias", 1, &out[0].shape[columns], err);
}

/* For C = op(A) op(B) with the gradient D with respect to C: d op(A) = D op(B)', d op(B) = op(A)' D.  The
 * transpositions are attributes of the products, so that no TRANSPOSE is needed. */
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
    uint32_t all_but_last = (1u << (leati_graph_desc(g, d)->rank - 1)) - 1;
    if (wanted[2]) diff_inputs[2] = leati_reduce_of(g, LEATI_REDUCE_SUM, d, all_but_last, false);
}

const leati_op_descriptor leati_op_matmul = {.name = "matmul",
                                             .min_inputs = 2,
                                             .max_inputs = 3,
                                             .outputs = 1,
                                             .optional = 1u << 2,
                                             .infer = infer_matmul,
                                             .gradient = matmul_gradient};
