/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on class indices, without a gradient: ONE_HOT, ARGMAX, IN_TOP_K.  Room: engine. */
#include "engine/op_semantics/infer.h"
#include "engine/ops/types.h"
#include "tensor/number.h"

static leat_status infer_one_hot(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                 leati_desc *out, leat_error *err) {
    (void)input_count;
    if (attrs->one_hot.depth < 1)
        return leati_fail(err, LEAT_EINVAL, "expected a depth of at least 1, received %lld",
                          (long long)attrs->one_hot.depth);
    if (in[0].rank >= LEAT_MAX_RANK)
        return leati_fail(err, LEAT_ESHAPE, "indices have at most %d dimensions", LEAT_MAX_RANK - 1);
    out[0] = in[0];
    out[0].dtype = LEAT_F32;
    out[0].shape[out[0].rank++] = attrs->one_hot.depth;
    return LEAT_OK;
}

const leati_op_descriptor leati_op_one_hot = {
    .name = "one_hot", .min_inputs = 1, .max_inputs = 1, .outputs = 1, .infer = infer_one_hot};

static leat_status infer_argmax(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                leati_desc *out, leat_error *err) {
    (void)input_count;
    LEATI_TRY(leati_expect_f32(&in[0], "src", err));
    LEATI_TRY(leati_expect_axis(&in[0], attrs->argmax.axis, err));
    if (in[0].shape[attrs->argmax.axis] < 1 || in[0].shape[attrs->argmax.axis] > INT32_MAX) {
        char text[LEATI_DESC_TEXT_BYTES];
        return leati_fail(err, LEAT_ESHAPE, "axis %d of %s is empty or too long for an index of type int32",
                          attrs->argmax.axis, leati_desc_text(text, &in[0]));
    }
    out[0] = (leati_desc){.dtype = LEAT_I32};
    for (int i = 0; i < in[0].rank; ++i)
        if (i != attrs->argmax.axis) out[0].shape[out[0].rank++] = in[0].shape[i];
    return LEAT_OK;
}

const leati_op_descriptor leati_op_argmax = {
    .name = "argmax", .min_inputs = 1, .max_inputs = 1, .outputs = 1, .infer = infer_argmax};

static leat_status infer_in_top_k(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                  leati_desc *out, leat_error *err) {
    (void)input_count;
    LEATI_TRY(leati_expect_f32(&in[0], "predictions", err));
    LEATI_TRY(leati_expect_rank(&in[0], "predictions", 2, err));
    leati_desc like = leati_desc_make(in[1].dtype, 1, in[0].shape);
    LEATI_TRY(leati_expect_like(&in[1], "targets", &like, err));
    if (leat_dtype_bytes(in[1].dtype) == 0 || !leati_dtype_is_integer(in[1].dtype))
        return leati_fail(err, LEAT_EDTYPE, "targets: expected an integer type, received %s",
                          leati_dtype_name(in[1].dtype));
    if (attrs->top_k.k < 1)
        return leati_fail(err, LEAT_EINVAL, "expected k of at least 1, received %lld",
                          (long long)attrs->top_k.k);
    out[0] = leati_desc_make(LEAT_F32, 1, in[0].shape);
    return LEAT_OK;
}

const leati_op_descriptor leati_op_in_top_k = {
    .name = "in_top_k", .min_inputs = 2, .max_inputs = 2, .outputs = 1, .infer = infer_in_top_k};
