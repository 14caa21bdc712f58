/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that only move elements: CONCAT, SLICE, PAD, TRANSPOSE, RESHAPE, REVERSE, COPY, STORE.  They take any type (PAD
 * only f32) and have a gradient for f32.  Room: engine. */
#include <stdio.h>

#include "engine/graph/build.h"
#include "engine/op_semantics/infer.h"
#include "engine/ops/types.h"

static bool differentiable(const leati_graph *g, const leati_node *node) {
    return leati_graph_desc(g, node->inputs[0])->dtype == LEAT_F32;
}

static leat_status infer_concat(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                leati_desc *out, leat_error *err) {
    int axis = attrs->concat.axis;
    LEATI_TRY(leati_expect_axis(&in[0], axis, err));
    out[0] = in[0];
    for (int i = 1; i < input_count; ++i) {
        leati_desc like = in[0];
        if (in[i].rank == like.rank) like.shape[axis] = in[i].shape[axis];
        char what[16];
        snprintf(what, sizeof what, "input %d", i);
        LEATI_TRY(leati_expect_like(&in[i], what, &like, err));
        out[0].shape[axis] += in[i].shape[axis];
    }
    return LEAT_OK;
}

static void concat_gradient(leati_graph *g, const leati_node *node, const leati_value *diff_outputs,
                            const bool *wanted, leati_value *diff_inputs) {
    int axis = node->attrs.concat.axis;
    int64_t start = 0;
    if (!differentiable(g, node)) return;
    for (int i = 0; i < node->input_count; ++i) {
        int64_t size = leati_graph_desc(g, node->inputs[i])->shape[axis];
        if (wanted[i]) diff_inputs[i] = leati_slice_axis(g, diff_outputs[0], axis, start, size);
        start += size;
    }
}

const leati_op_descriptor leati_op_concat = {.name = "concat",
                                             .min_inputs = 1,
                                             .max_inputs = LEATI_MAX_CONCAT,
                                             .outputs = 1,
                                             .infer = infer_concat,
                                             .gradient = concat_gradient};

static leat_status infer_slice(const leati_attrs *attrs, int input_count, const leati_desc *in,
                               leati_desc *out, leat_error *err) {
    (void)input_count;
    out[0] = in[0];
    for (int i = 0; i < in[0].rank; ++i) {
        int64_t start = attrs->slice.start[i], size = attrs->slice.size[i];
        if (start < 0 || size < 0 || start > in[0].shape[i] || size > in[0].shape[i] - start) {
            char text[LEATI_DESC_TEXT_BYTES];
            return leati_fail(err, LEAT_ESHAPE,
                              "axis %d: a slice of %lld elements from %lld is out of range for %s", i,
                              (long long)size, (long long)start, leati_desc_text(text, &in[0]));
        }
        out[0].shape[i] = size;
    }
    return LEAT_OK;
}

static void slice_gradient(leati_graph *g, const leati_node *node, const leati_value *diff_outputs,
                           const bool *wanted, leati_value *diff_inputs) {
    (void)wanted;
    const leati_desc *src = leati_graph_desc(g, node->inputs[0]);
    int64_t after[LEAT_MAX_RANK] = {0};
    if (!differentiable(g, node)) return;
    for (int i = 0; i < src->rank; ++i)
        after[i] = src->shape[i] - node->attrs.slice.start[i] - node->attrs.slice.size[i];
    diff_inputs[0] = leati_pad(g, diff_outputs[0], node->attrs.slice.start, after, 0);
}

const leati_op_descriptor leati_op_slice = {.name = "slice",
                                            .min_inputs = 1,
                                            .max_inputs = 1,
                                            .outputs = 1,
                                            .infer = infer_slice,
                                            .gradient = slice_gradient};

static leat_status infer_pad(const leati_attrs *attrs, int input_count, const leati_desc *in, leati_desc *out,
                             leat_error *err) {
    (void)input_count;
    LEATI_TRY(leati_expect_f32(&in[0], "src", err));
    out[0] = in[0];
    for (int i = 0; i < in[0].rank; ++i) {
        int64_t before = attrs->pad.before[i], after = attrs->pad.after[i];
        if (before < 0 || after < 0 || before > INT64_MAX / 4 || after > INT64_MAX / 4)
            return leati_fail(err, LEAT_EINVAL,
                              "axis %d: %lld elements before and %lld after cannot be added", i,
                              (long long)before, (long long)after);
        out[0].shape[i] += before + after;
    }
    return LEAT_OK;
}

static void pad_gradient(leati_graph *g, const leati_node *node, const leati_value *diff_outputs,
                         const bool *wanted, leati_value *diff_inputs) {
    (void)wanted;
    const leati_desc *src = leati_graph_desc(g, node->inputs[0]);
    leati_attrs attrs = {0};
    for (int i = 0; i < src->rank; ++i) {
        attrs.slice.start[i] = node->attrs.pad.before[i];
        attrs.slice.size[i] = src->shape[i];
    }
    diff_inputs[0] = leati_graph_node(g, LEATI_OP_SLICE, &attrs, 1, diff_outputs, NULL);
}

const leati_op_descriptor leati_op_pad = {.name = "pad",
                                          .min_inputs = 1,
                                          .max_inputs = 1,
                                          .outputs = 1,
                                          .infer = infer_pad,
                                          .gradient = pad_gradient};

static leat_status infer_transpose(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                   leati_desc *out, leat_error *err) {
    (void)input_count;
    uint32_t seen = 0;
    out[0] = in[0];
    for (int i = 0; i < in[0].rank; ++i) {
        int32_t from = attrs->transpose.perm[i];
        if (from < 0 || from >= in[0].rank || (seen >> from & 1u))
            return leati_fail(err, LEAT_EINVAL, "not a permutation of %d axes: %d comes at place %d",
                              in[0].rank, from, i);
        seen |= 1u << from;
        out[0].shape[i] = in[0].shape[from];
    }
    return LEAT_OK;
}

static void transpose_gradient(leati_graph *g, const leati_node *node, const leati_value *diff_outputs,
                               const bool *wanted, leati_value *diff_inputs) {
    (void)wanted;
    int32_t inverse[LEAT_MAX_RANK] = {0};
    if (!differentiable(g, node)) return;
    for (int i = 0; i < leati_graph_desc(g, node->inputs[0])->rank; ++i)
        inverse[node->attrs.transpose.perm[i]] = i;
    diff_inputs[0] = leati_transpose(g, diff_outputs[0], inverse);
}

const leati_op_descriptor leati_op_transpose = {.name = "transpose",
                                                .min_inputs = 1,
                                                .max_inputs = 1,
                                                .outputs = 1,
                                                .infer = infer_transpose,
                                                .gradient = transpose_gradient};

static leat_status infer_reshape(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                 leati_desc *out, leat_error *err) {
    (void)input_count;
    out[0] = leati_desc_make(in[0].dtype, attrs->shape.rank, attrs->shape.dims);
    for (int i = 0; i < out[0].rank; ++i)
        if (out[0].shape[i] < 0)
            return leati_fail(err, LEAT_ESHAPE, "dimension %d of the new shape is %lld", i,
                              (long long)out[0].shape[i]);
    if (leati_desc_count(&out[0]) == leati_desc_count(&in[0])) return LEAT_OK;
    char from[LEATI_DESC_TEXT_BYTES], to[LEATI_DESC_TEXT_BYTES];
    return leati_fail(err, LEAT_ESHAPE, "%s cannot be reshaped to %s: their numbers of elements differ",
                      leati_desc_text(from, &in[0]), leati_desc_text(to, &out[0]));
}

static void reshape_gradient(leati_graph *g, const leati_node *node, const leati_value *diff_outputs,
                             const bool *wanted, leati_value *diff_inputs) {
    (void)wanted;
    const leati_desc *src = leati_graph_desc(g, node->inputs[0]);
    if (differentiable(g, node)) diff_inputs[0] = leati_reshape(g, diff_outputs[0], src->rank, src->shape);
}

const leati_op_descriptor leati_op_reshape = {.name = "reshape",
                                              .min_inputs = 1,
                                              .max_inputs = 1,
                                              .outputs = 1,
                                              .flags = LEATI_OP_VIEW,
                                              .infer = infer_reshape,
                                              .gradient = reshape_gradient};

static leat_status infer_reverse(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                 leati_desc *out, leat_error *err) {
    (void)input_count;
    LEATI_TRY(leati_expect_axis(&in[0], attrs->reverse.axis, err));
    out[0] = in[0];
    return LEAT_OK;
}

static void reverse_gradient(leati_graph *g, const leati_node *node, const leati_value *diff_outputs,
                             const bool *wanted, leati_value *diff_inputs) {
    (void)wanted;
    if (differentiable(g, node)) diff_inputs[0] = leati_reverse(g, diff_outputs[0], node->attrs.reverse.axis);
}

const leati_op_descriptor leati_op_reverse = {.name = "reverse",
                                              .min_inputs = 1,
                                              .max_inputs = 1,
                                              .outputs = 1,
                                              .infer = infer_reverse,
                                              .gradient = reverse_gradient};

static leat_status infer_copy(const leati_attrs *attrs, int input_count, const leati_desc *in,
                              leati_desc *out, leat_error *err) {
    (void)attrs;
    (void)input_count;
    (void)err;
    out[0] = in[0];
    return LEAT_OK;
}

static void copy_gradient(leati_graph *g, const leati_node *node, const leati_value *diff_outputs,
                          const bool *wanted, leati_value *diff_inputs) {
    (void)wanted;
    if (differentiable(g, node)) diff_inputs[0] = diff_outputs[0];
}

const leati_op_descriptor leati_op_copy = {.name = "copy",
                                           .min_inputs = 1,
                                           .max_inputs = 1,
                                           .outputs = 1,
                                           .infer = infer_copy,
                                           .gradient = copy_gradient};

/* The value may have another shape than the state, with the same number of elements. */
static leat_status infer_store(const leati_attrs *attrs, int input_count, const leati_desc *in,
                               leati_desc *out, leat_error *err) {
    (void)attrs;
    (void)input_count;
    (void)out;
    LEATI_TRY(leati_expect_dtype(&in[0], "value", in[1].dtype, err));
    if (leati_desc_count(&in[0]) == leati_desc_count(&in[1])) return LEAT_OK;
    return leati_expect_like(&in[0], "value", &in[1], err);
}

const leati_op_descriptor leati_op_store = {
    .name = "store", .min_inputs = 2, .max_inputs = 2, .outputs = 0, .writes = 1u << 1, .infer = infer_store};
