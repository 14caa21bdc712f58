/* SPDX-License-Identifier: Apache-2.0 */
/* GATHER and GATHER_BWD: rows of a table by index, and the sum of the gradients of each row.  Room: engine. */
#include "engine/graph/graph.h"
#include "engine/op_semantics/index.h"
#include "engine/op_semantics/infer.h"
#include "engine/ops/types.h"

static leat_status infer_gather(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                leati_desc *out, leat_error *err) {
    (void)attrs, (void)input_count;
    LEATI_TRY(leati_expect_f32(&in[0], "table", err));
    LEATI_TRY(leati_expect_rank(&in[0], "table", 2, err));
    if (in[1].rank >= LEAT_MAX_RANK)
        return leati_fail(err, LEAT_ESHAPE, "indices have at most %d dimensions", LEAT_MAX_RANK - 1);
    out[0] = in[1];
    out[0].dtype = LEAT_F32;
    out[0].shape[out[0].rank++] = in[0].shape[1];
    return LEAT_OK;
}

static void gradient(leati_graph *g, const leati_node *node, const leati_value *diff_outputs,
                     const bool *wanted, leati_value *diff_inputs) {
    leati_attrs attrs = {.gather = {.rows = leati_graph_desc(g, node->inputs[0])->shape[0]}};
    leati_value inputs[] = {node->inputs[1], diff_outputs[0]};
    if (wanted[0]) diff_inputs[0] = leati_graph_node(g, LEATI_OP_GATHER_BWD, &attrs, 2, inputs, NULL);
}

leat_status leati_index_fail_number(const leati_desc *indices, double number, int64_t i, int64_t limit,
                                    leat_error *err) {
    const int64_t samples = indices->rank > 0 ? indices->shape[0] : 1,
                  each = leati_desc_count(indices) / samples;
    return leati_fail_sample(
        err, LEAT_EINVAL, i / each,
        "expected an index from 0 to %lld, received %.15g at place %lld of sample %lld of the batch",
        (long long)limit - 1, number, (long long)(i % each), (long long)(i / each));
}

leat_status leati_index_fail(const leati_desc *indices, const void *data, int64_t i, int64_t limit,
                             leat_error *err) {
    return leati_index_fail_number(indices, leati_number_at(indices->dtype, data, i), i, limit, err);
}

const leati_op_descriptor leati_op_gather = {.name = "gather",
                                             .min_inputs = 2,
                                             .max_inputs = 2,
                                             .outputs = 1,
                                             .infer = infer_gather,
                                             .gradient = gradient};

static leat_status infer_bwd(const leati_attrs *attrs, int input_count, const leati_desc *in, leati_desc *out,
                             leat_error *err) {
    (void)input_count;
    leati_desc like = in[0];
    LEATI_TRY(leati_expect_f32(&in[1], "diff_dst", err));
    if (attrs->gather.rows < 0 || in[1].rank != in[0].rank + 1)
        return leati_fail(err, LEAT_ESHAPE,
                          "expected diff_dst with one row for each index, and a table with at least 0 rows");
    int64_t columns = in[1].shape[in[0].rank];
    like.dtype = LEAT_F32;
    like.shape[like.rank++] = columns;
    LEATI_TRY(leati_expect_like(&in[1], "diff_dst", &like, err));
    out[0] = leati_desc_make(LEAT_F32, 2, (int64_t[]){attrs->gather.rows, columns});
    return LEAT_OK;
}

const leati_op_descriptor leati_op_gather_bwd = {
    .name = "gather_bwd", .min_inputs = 2, .max_inputs = 2, .outputs = 1, .infer = infer_bwd};
