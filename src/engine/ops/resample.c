/* SPDX-License-Identifier: Apache-2.0 */
/* RESAMPLE and RESAMPLE_BWD: shapes and gradients.  Room: engine. */
#include "base/memory.h"
#include "engine/graph/graph.h"
#include "engine/op_semantics/infer.h"
#include "engine/ops/types.h"

static leat_status check(const leati_attrs *attrs, const leati_desc *desc, leat_error *err) {
    int spatial = attrs->resample.spatial;
    LEATI_TRY(leati_expect_f32(desc, "src", err));
    if (spatial < 1 || spatial > 3)
        return leati_fail(err, LEAT_EINVAL, "expected 1 to 3 spatial axes, received %d", spatial);
    LEATI_TRY(leati_expect_rank(desc, "src", spatial + 2, err));
    for (int i = 0; i < spatial; ++i)
        if (attrs->resample.factor[i] < 1 || attrs->resample.factor[i] > INT32_MAX)
            return leati_fail(err, LEAT_EINVAL, "expected factors of at least 1, received %lld on axis %d",
                              (long long)attrs->resample.factor[i], i);
    return LEAT_OK;
}

static leat_status infer_resample(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                  leati_desc *out, leat_error *err) {
    (void)input_count;
    LEATI_TRY(check(attrs, &in[0], err));
    out[0] = in[0];
    for (int i = 0; i < attrs->resample.spatial; ++i)
        if (!leati_mul_i64(out[0].shape[1 + i], attrs->resample.factor[i], &out[0].shape[1 + i]))
            return leati_fail(err, LEAT_ESHAPE, "spatial axis %d: its new length is too large", i);
    return LEAT_OK;
}

static void gradient(leati_graph *g, const leati_node *node, const leati_value *diff_outputs,
                     const bool *wanted, leati_value *diff_inputs) {
    (void)wanted;
    diff_inputs[0] = leati_graph_node(g, LEATI_OP_RESAMPLE_BWD, &node->attrs, 1, diff_outputs, NULL);
}

const leati_op_descriptor leati_op_resample = {.name = "resample",
                                               .min_inputs = 1,
                                               .max_inputs = 1,
                                               .outputs = 1,
                                               .infer = infer_resample,
                                               .gradient = gradient};

static leat_status infer_bwd(const leati_attrs *attrs, int input_count, const leati_desc *in, leati_desc *out,
                             leat_error *err) {
    (void)input_count;
    LEATI_TRY(check(attrs, &in[0], err));
    out[0] = in[0];
    for (int i = 0; i < attrs->resample.spatial; ++i) {
        if (in[0].shape[1 + i] % attrs->resample.factor[i] != 0)
            return leati_fail(err, LEAT_ESHAPE,
                              "spatial axis %d: its length %lld is not a multiple of the factor %lld", i,
                              (long long)in[0].shape[1 + i], (long long)attrs->resample.factor[i]);
        out[0].shape[1 + i] /= attrs->resample.factor[i];
    }
    return LEAT_OK;
}

const leati_op_descriptor leati_op_resample_bwd = {
    .name = "resample_bwd", .min_inputs = 1, .max_inputs = 1, .outputs = 1, .infer = infer_bwd};
