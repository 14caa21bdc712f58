/* SPDX-License-Identifier: Apache-2.0 */
/* ATTENTION and ATTENTION_BWD: softmax(scale q k') v of each head, without the matrix of scores in memory.
 * backends/ref/attention.c has the formulas.  Source: Vaswani et al. 2017; Dao et al. 2022 (FlashAttention).
 * Room: engine. */
#include "engine/op_semantics/attention.h"

#include "base/error.h"
#include "engine/graph/build.h"
#include "engine/op_semantics/infer.h"
#include "engine/ops/types.h"

static leat_status check_operands(const leati_attrs *attrs, const leati_desc *in, leat_error *err) {
    static const char *const names[] = {"q", "k", "v"};
    for (int i = 0; i < 3; ++i) {
        LEATI_TRY(leati_expect_f32(&in[i], names[i], err));
        LEATI_TRY(leati_expect_rank(&in[i], names[i], 4, err));
    }
    if (!(attrs->attention.rate >= 0 && attrs->attention.rate < 1))
        return leati_fail(err, LEAT_EINVAL, "expected a rate in [0, 1), received %g",
                          (double)attrs->attention.rate);
    const leati_attention_sizes s = leati_attention_sizes_of(in);
    LEATI_TRY(leati_expect_shape(&in[LEATI_ATTENTION_K], "k", 4,
                                 (int64_t[]){s.batch, s.keys, s.key_heads, s.depth}, err));
    LEATI_TRY(leati_expect_shape(&in[LEATI_ATTENTION_V], "v", 4,
                                 (int64_t[]){s.batch, s.keys, s.key_heads, s.width}, err));
    if (s.keys < 1) return leati_fail(err, LEAT_ESHAPE, "k: expected at least 1 step");
    if (s.key_heads < 1 || s.heads % s.key_heads != 0)
        return leati_fail(err, LEAT_ESHAPE, "q: expected a multiple of %lld key heads, received %lld heads",
                          (long long)s.key_heads, (long long)s.heads);
    return LEAT_OK;
}

static leat_status check_mask(const leati_desc *in, leat_error *err) {
    const leati_desc *mask = &in[LEATI_ATTENTION_MASK];
    const leati_attention_sizes s = leati_attention_sizes_of(in);
    if (mask->rank < 0) return LEAT_OK;
    LEATI_TRY(leati_expect_rank(mask, "mask", 3, err));
    int64_t dims[] = {mask->shape[0] == 1 ? 1 : s.batch, mask->shape[1] == 1 ? 1 : s.queries, s.keys};
    return leati_expect_shape(mask, "mask", 3, dims, err);
}

static leat_status infer_attention(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                   leati_desc *out, leat_error *err) {
    static const int64_t nothing = 0;
    (void)input_count;
    LEATI_TRY(check_operands(attrs, in, err));
    LEATI_TRY(check_mask(in, err));
    const leati_attention_sizes s = leati_attention_sizes_of(in);
    out[LEATI_ATTENTION_Y] = leati_desc_make(LEAT_F32, 4, (int64_t[]){s.batch, s.queries, s.heads, s.width});
    out[LEATI_ATTENTION_LOG_SUMS] =
        attrs->attention.training ? leati_desc_make(LEAT_F32, 3, (int64_t[]){s.batch, s.heads, s.queries})
                                  : leati_desc_make(LEAT_F32, 1, &nothing);
    return LEAT_OK;
}

static leat_status infer_bwd(const leati_attrs *attrs, int input_count, const leati_desc *in, leati_desc *out,
                             leat_error *err) {
    leati_desc forward[LEATI_MAX_OUTPUTS];
    LEATI_TRY(infer_attention(attrs, input_count, in, forward, err));
    LEATI_TRY(leati_expect_like(&in[LEATI_ATTENTION_BWD_Y], "y", &forward[LEATI_ATTENTION_Y], err));
    LEATI_TRY(leati_expect_like(&in[LEATI_ATTENTION_BWD_LOG_SUMS], "log_sums",
                                &forward[LEATI_ATTENTION_LOG_SUMS], err));
    LEATI_TRY(leati_expect_like(&in[LEATI_ATTENTION_BWD_DIFF_Y], "diff_y", &forward[LEATI_ATTENTION_Y], err));
    for (int i = 0; i < 3; ++i) out[i] = in[i];
    return LEAT_OK;
}

/* The mask says which pairs count; no gradient flows into it. */
static void gradient(leati_graph *g, const leati_node *node, const leati_value *diff_outputs,
                     const bool *wanted, leati_value *diff_inputs) {
    leati_value inputs[LEATI_ATTENTION_BWD_INPUTS], outputs[LEATI_MAX_OUTPUTS];
    if (!node->attrs.attention.training) {
        leati_graph_fail(g, LEAT_EINVAL,
                         "the gradient of attention needs its attribute `training`, which is not set");
        return;
    }
    if (diff_outputs[LEATI_ATTENTION_LOG_SUMS] != LEATI_NONE) {
        leati_graph_fail(g, LEAT_ENOTSUP, "op attention: the gradient of its second output is not supported");
        return;
    }
    for (int i = 0; i < LEATI_ATTENTION_INPUTS; ++i) inputs[i] = node->inputs[i];
    inputs[LEATI_ATTENTION_BWD_Y] = node->outputs[LEATI_ATTENTION_Y];
    inputs[LEATI_ATTENTION_BWD_LOG_SUMS] = node->outputs[LEATI_ATTENTION_LOG_SUMS];
    inputs[LEATI_ATTENTION_BWD_DIFF_Y] = diff_outputs[LEATI_ATTENTION_Y];
    leati_graph_node(g, LEATI_OP_ATTENTION_BWD, &node->attrs, LEATI_ATTENTION_BWD_INPUTS, inputs, outputs);
    for (int i = 0; i < LEATI_ATTENTION_MASK; ++i)
        if (wanted[i]) diff_inputs[i] = outputs[i];
}

const leati_op_descriptor leati_op_attention = {.name = "attention",
                                                .min_inputs = LEATI_ATTENTION_INPUTS,
                                                .max_inputs = LEATI_ATTENTION_INPUTS,
                                                .outputs = 2,
                                                .flags = LEATI_OP_RANDOM,
                                                .optional = 1u << LEATI_ATTENTION_MASK,
                                                .infer = infer_attention,
                                                .gradient = gradient};
const leati_op_descriptor leati_op_attention_bwd = {.name = "attention_bwd",
                                                    .min_inputs = LEATI_ATTENTION_BWD_INPUTS,
                                                    .max_inputs = LEATI_ATTENTION_BWD_INPUTS,
                                                    .outputs = 3,
                                                    .flags = LEATI_OP_RANDOM | LEATI_OP_OPTIONAL_OUTPUTS,
                                                    .optional = 1u << LEATI_ATTENTION_MASK,
                                                    .infer = infer_bwd};
