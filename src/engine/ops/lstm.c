/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM and LSTM_BWD: shapes and gradients.  The cell's formulas stand in backends/ref/lstm.c.  Layer: engine. */
#include "engine/geometry.h"
#include "engine/graph.h"
#include "engine/ops/rows.h"
#include "base/error.h"
#include "base/text.h"

static leat_status expect_input(const leati_desc *got, const char *what, int rank, const int64_t *shape,
                                leat_error *err) {
    char a[128], b[128];
    leati_desc expected = leati_desc_make(LEAT_F32, rank, shape);
    if (got->rank < 0 || leati_desc_same_shape(got, &expected)) return LEAT_OK;
    return leati_fail(err, LEAT_ESHAPE, "expected %s %s, received %s", what,
                      leati_shape_text(a, sizeof a, rank, shape),
                      leati_shape_text(b, sizeof b, got->rank, got->shape));
}

static leat_status check_activation(const leati_eltwise *f, const char *what, leat_error *err) {
    if (leati_slope_known_from_dst(f)) return LEAT_OK;
    return leati_fail(err, LEAT_ENOTSUP,
                      "%s '%s' cannot be used in a recurrent cell: its derivative needs what the "
                      "cell does not keep",
                      what, leati_function_name(f->function));
}

/* The inputs that LSTM and LSTM_BWD share. */
static leat_status check_inputs(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                leati_lstm_shape *shape, leat_error *err) {
    if (in[LEATI_LSTM_X].rank != 3 || in[LEATI_LSTM_KERNEL].rank != 2 || in[LEATI_LSTM_RECURRENT].rank != 2)
        return leati_fail(err, LEAT_ESHAPE,
                          "expected x of rank 3, kernel and recurrent of rank 2, received %d, %d, %d",
                          in[LEATI_LSTM_X].rank, in[LEATI_LSTM_KERNEL].rank, in[LEATI_LSTM_RECURRENT].rank);
    *shape = leati_lstm_shape_of(attrs, &in[LEATI_LSTM_X], &in[LEATI_LSTM_RECURRENT]);
    int64_t n = shape->batch, f = shape->features, u = shape->units;
    const struct {
        const char *what;
        int rank;
        int64_t shape[3];
    } expected[LEATI_LSTM_INPUTS] = {[LEATI_LSTM_X] = {"x", 3, {n, shape->steps, f}},
                                     [LEATI_LSTM_KERNEL] = {"kernel", 2, {f, 4 * u}},
                                     [LEATI_LSTM_RECURRENT] = {"recurrent kernel", 2, {u, 4 * u}},
                                     [LEATI_LSTM_BIAS] = {"bias", 1, {4 * u}},
                                     [LEATI_LSTM_H0] = {"h0", 2, {n, u}},
                                     [LEATI_LSTM_C0] = {"c0", 2, {n, u}},
                                     [LEATI_LSTM_X_MASK] = {"x_mask", 3, {4, n, f}},
                                     [LEATI_LSTM_H_MASK] = {"h_mask", 3, {4, n, u}}};
    for (int i = 0; i < input_count && i < LEATI_LSTM_INPUTS; i++)
        LEATI_TRY(expect_input(&in[i], expected[i].what, expected[i].rank, expected[i].shape, err));
    LEATI_TRY(check_activation(&shape->activation, "activation", err));
    return check_activation(&shape->recurrent_activation, "recurrent_activation", err);
}

static leat_status infer_lstm(const leati_attrs *attrs, int input_count, const leati_desc *in,
                              leati_desc *out, leat_error *err) {
    leati_lstm_shape s;
    LEATI_TRY(check_inputs(attrs, input_count, in, &s, err));
    int64_t none = 0;
    out[0] = leati_desc_make(LEAT_F32, 3, (int64_t[]){s.batch, s.steps, s.units});
    out[1] = leati_desc_make(LEAT_F32, 2, (int64_t[]){s.batch, s.units});
    out[2] = s.training ? leati_desc_make(LEAT_F32, 3, (int64_t[]){s.steps, s.batch, 5 * s.units})
                        : leati_desc_make(LEAT_F32, 1, &none);
    return LEAT_OK;
}

static leat_status infer_bwd(const leati_attrs *attrs, int input_count, const leati_desc *in, leati_desc *out,
                             leat_error *err) {
    leati_lstm_shape s;
    LEATI_TRY(check_inputs(attrs, input_count, in, &s, err));
    if (!s.training)
        return leati_fail(err, LEAT_EINVAL,
                          "expected an LSTM made with training set, its gradient was asked for");
    const int64_t sequence[] = {s.batch, s.steps, s.units}, workspace[] = {s.steps, s.batch, 5 * s.units};
    LEATI_TRY(expect_input(&in[LEATI_LSTM_SEQUENCE], "sequence", 3, sequence, err));
    LEATI_TRY(expect_input(&in[LEATI_LSTM_WORKSPACE], "workspace", 3, workspace, err));
    LEATI_TRY(expect_input(&in[LEATI_LSTM_DIFF_SEQUENCE], "diff_sequence", 3, sequence, err));
    out[4] = out[5] = leati_desc_make(LEAT_F32, 2, (int64_t[]){s.batch, s.units});
    LEATI_TRY(expect_input(&in[LEATI_LSTM_DIFF_C_LAST], "diff_c_last", 2, out[4].shape, err));
    out[0] = in[LEATI_LSTM_X];
    out[1] = in[LEATI_LSTM_KERNEL];
    out[2] = in[LEATI_LSTM_RECURRENT];
    out[3] = leati_desc_make(LEAT_F32, 1, (int64_t[]){4 * s.units});
    return LEAT_OK;
}

static void gradient(leati_graph *graph, const leati_node *node, const int32_t *diff_outputs,
                     const bool *wanted, int32_t *diff_inputs) {
    leati_value inputs[LEATI_LSTM_BWD_INPUTS], outputs[6];
    for (int i = 0; i < LEATI_LSTM_INPUTS; i++)
        inputs[i] = i < node->input_count ? node->inputs[i] : LEATI_NONE;
    inputs[LEATI_LSTM_SEQUENCE] = node->outputs[0];
    inputs[LEATI_LSTM_WORKSPACE] = node->outputs[2];
    inputs[LEATI_LSTM_DIFF_SEQUENCE] = diff_outputs[0];
    inputs[LEATI_LSTM_DIFF_C_LAST] = diff_outputs[1];
    leati_graph_node(graph, LEATI_OP_LSTM_BWD, &node->attrs, LEATI_LSTM_BWD_INPUTS, inputs, outputs);
    /* The first six inputs have a gradient each, in this order; masks of dropout have none. */
    for (int i = 0; i < 6 && i < node->input_count; i++)
        if (wanted[i]) diff_inputs[i] = outputs[i];
}

/* bias, h0, c0, x_mask, h_mask */
#define OPTIONAL_INPUTS ((1u << LEATI_LSTM_INPUTS) - (1u << LEATI_LSTM_BIAS))

const leati_op_row leati_op_lstm = {.name = "lstm",
                                    .min_inputs = 3,
                                    .max_inputs = LEATI_LSTM_INPUTS,
                                    .outputs = 3,
                                    .flags = LEATI_OP_OPTIONAL_OUTPUTS,
                                    .optional = OPTIONAL_INPUTS,
                                    .infer = infer_lstm,
                                    .gradient = gradient};
const leati_op_row leati_op_lstm_bwd = {.name = "lstm_bwd",
                                        .min_inputs = LEATI_LSTM_BWD_INPUTS,
                                        .max_inputs = LEATI_LSTM_BWD_INPUTS,
                                        .outputs = 6,
                                        .flags = LEATI_OP_OPTIONAL_OUTPUTS,
                                        .optional = OPTIONAL_INPUTS | 1u << LEATI_LSTM_DIFF_SEQUENCE |
                                                    1u << LEATI_LSTM_DIFF_C_LAST,
                                        .infer = infer_bwd};
