/* SPDX-License-Identifier: Apache-2.0 */
/* REDUCE and BROADCAST: shapes and gradients.  Room: engine. */
#include "engine/graph/build.h"
#include "engine/op_semantics/infer.h"
#include "engine/ops/types.h"

static leat_status infer_reduce(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                leati_desc *out, leat_error *err) {
    (void)input_count;
    char text[LEATI_DESC_TEXT_BYTES];
    uint32_t axes = attrs->reduce.axes;
    if ((unsigned)attrs->reduce.kind > LEATI_REDUCE_MIN)
        return leati_fail(err, LEAT_EINVAL, "kind %d is not known", (int)attrs->reduce.kind);
    LEATI_TRY(leati_expect_f32(&in[0], "src", err));
    if (axes >> in[0].rank)
        return leati_fail(err, LEAT_ESHAPE, "axes 0x%x (one bit for each) are out of range for shape %s",
                          axes, leati_desc_text(text, &in[0]));
    bool extreme = attrs->reduce.kind == LEATI_REDUCE_MAX || attrs->reduce.kind == LEATI_REDUCE_MIN;
    out[0] = (leati_desc){.dtype = LEAT_F32};
    for (int i = 0; i < in[0].rank; ++i) {
        bool reduced = axes >> i & 1u;
        if (!reduced || attrs->reduce.keep_dims) out[0].shape[out[0].rank++] = reduced ? 1 : in[0].shape[i];
    }
    if (extreme && leati_desc_count(&in[0]) == 0 && leati_desc_count(&out[0]) > 0)
        return leati_fail(err, LEAT_ESHAPE, "a maximum or minimum needs at least one element, received %s",
                          leati_desc_text(text, &in[0]));
    return LEAT_OK;
}

/* Reshapes the result, or its gradient, so that the reduced axes have length 1 and it can be broadcast to src. */
static leati_value with_kept_axes(leati_graph *g, const leati_node *node, leati_value value) {
    leati_desc kept = *leati_graph_desc(g, node->inputs[0]);
    for (int i = 0; i < kept.rank; ++i)
        if (node->attrs.reduce.axes >> i & 1u) kept.shape[i] = 1;
    return leati_reshape(g, value, kept.rank, kept.shape);
}

/* Returns the gradient of MAX and MIN: equal extreme elements share it equally, as in TensorFlow. */
static leati_value extreme_gradient(leati_graph *g, const leati_node *node, leati_value diff) {
    leati_value src = node->inputs[0];
    leati_value chosen = leati_binary_of(g, LEATI_EQUAL, src, with_kept_axes(g, node, node->outputs[0]));
    leati_value ties = leati_reduce_of(g, LEATI_REDUCE_SUM, chosen, node->attrs.reduce.axes, true);
    return leati_mul(g, chosen, leati_div(g, diff, ties));
}

static void reduce_gradient(leati_graph *g, const leati_node *node, const leati_value *diff_outputs,
                            const bool *wanted, leati_value *diff_inputs) {
    (void)wanted;
    const leati_desc *src = leati_graph_desc(g, node->inputs[0]);
    leati_value diff = with_kept_axes(g, node, diff_outputs[0]);
    if (node->attrs.reduce.kind == LEATI_REDUCE_MAX || node->attrs.reduce.kind == LEATI_REDUCE_MIN) {
        diff_inputs[0] = extreme_gradient(g, node, diff);
        return;
    }
    if (node->attrs.reduce.kind == LEATI_REDUCE_MEAN && leati_desc_count(src) > 0) {
        int64_t all = leati_desc_count(src), kept = leati_desc_count(leati_graph_desc(g, diff));
        diff = leati_linear(g, diff, (float)((double)kept / (double)all), 0);
    }
    diff_inputs[0] = leati_broadcast(g, diff, src->rank, src->shape);
}

const leati_op_descriptor leati_op_reduce = {.name = "reduce",
                                             .min_inputs = 1,
                                             .max_inputs = 1,
                                             .outputs = 1,
                                             .infer = infer_reduce,
                                             .gradient = reduce_gradient};

static leat_status infer_broadcast(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                   leati_desc *out, leat_error *err) {
    (void)input_count;
    leati_desc target = leati_desc_make(in[0].dtype, attrs->shape.rank, attrs->shape.dims);
    LEATI_TRY(leati_broadcast_shape(&in[0], &target, &out[0], err));
    return leati_expect_like(&out[0], "src, broadcast", &target, err);
}

static void broadcast_gradient(leati_graph *g, const leati_node *node, const leati_value *diff_outputs,
                               const bool *wanted, leati_value *diff_inputs) {
    (void)wanted;
    if (leati_graph_desc(g, node->inputs[0])->dtype != LEAT_F32) return;
    diff_inputs[0] = leati_sum_to(g, diff_outputs[0], leati_graph_desc(g, node->inputs[0]));
}

const leati_op_descriptor leati_op_broadcast = {.name = "broadcast",
                                                .min_inputs = 1,
                                                .max_inputs = 1,
                                                .outputs = 1,
                                                .infer = infer_broadcast,
                                                .gradient = broadcast_gradient};
