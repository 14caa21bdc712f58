/* SPDX-License-Identifier: Apache-2.0 */
/* RNN and RNN_BWD: shapes and gradients of all recurrent cells.  The formulas are in backends/ref/rnn.c.  Room:
 * engine. */
#include "base/error.h"
#include "base/text.h"
#include "engine/op_semantics/geometry.h"
#include "engine/graph/graph.h"
#include "engine/ops/types.h"

static leat_status expect_input(const leati_desc *got, const char *what, const leati_desc *expected,
                                leat_error *err) {
    char a[128], b[128];
    if (got->rank < 0 || leati_desc_same_shape(got, expected)) return LEAT_OK;
    return leati_fail(err, LEAT_ESHAPE, "expected %s %s, received %s", what,
                      leati_shape_text(a, sizeof a, expected->rank, expected->shape),
                      leati_shape_text(b, sizeof b, got->rank, got->shape));
}

static leat_status check_activation(const leati_eltwise *f, const char *what, leat_error *err) {
    if (leati_slope_known_from_dst(f)) return LEAT_OK;
    return leati_fail(
        err, LEAT_ENOTSUP,
        "%s '%s' is not supported in a recurrent cell: its derivative cannot be computed from its "
        "output alone",
        what, leati_function_name(f->function));
}

#define DESC(...)                                                                                            \
    leati_desc_make(LEAT_F32, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                     \
                    (int64_t[]){__VA_ARGS__})

/* The inputs that RNN and RNN_BWD share. */
static leat_status check_inputs(const leati_attrs *attrs, int input_count, const leati_desc *in,
                                leati_rnn_shape *shape, leat_error *err) {
    if (in[LEATI_RNN_X].rank != 3 || in[LEATI_RNN_KERNEL].rank != 2 || in[LEATI_RNN_RECURRENT].rank != 2)
        return leati_fail(err, LEAT_ESHAPE,
                          "expected x of rank 3, kernel and recurrent of rank 2, received %d, %d, %d",
                          in[LEATI_RNN_X].rank, in[LEATI_RNN_KERNEL].rank, in[LEATI_RNN_RECURRENT].rank);
    *shape = leati_rnn_shape_of(attrs, &in[LEATI_RNN_X], &in[LEATI_RNN_RECURRENT]);
    int64_t n = shape->batch, f = shape->features, u = shape->units, g = shape->gates;
    const struct {
        const char *what;
        leati_desc desc;
    } expected[LEATI_RNN_INPUTS] = {[LEATI_RNN_X] = {"x", DESC(n, shape->steps, f)},
                                    [LEATI_RNN_KERNEL] = {"kernel", DESC(f, g * u)},
                                    [LEATI_RNN_RECURRENT] = {"recurrent kernel", DESC(u, g * u)},
                                    [LEATI_RNN_BIAS] = {"bias", shape->biases == 1
                                                                    ? DESC(g * u)
                                                                    : DESC(shape->biases, g * u)},
                                    [LEATI_RNN_H0] = {"h0", DESC(n, u)},
                                    [LEATI_RNN_C0] = {"c0", DESC(n, u)},
                                    [LEATI_RNN_X_MASK] = {"x_mask", DESC(g, n, f)},
                                    [LEATI_RNN_H_MASK] = {"h_mask", DESC(g, n, u)},
                                    [LEATI_RNN_STEPS] = {"steps", DESC(n, shape->steps)}};
    for (int i = 0; i < input_count && i < LEATI_RNN_INPUTS; i++)
        LEATI_TRY(expect_input(&in[i], expected[i].what, &expected[i].desc, err));
    if (shape->cell != LEATI_CELL_LSTM && input_count > LEATI_RNN_C0 && in[LEATI_RNN_C0].rank >= 0)
        return leati_fail(err, LEAT_EINVAL, "expected c0 only with an LSTM");
    LEATI_TRY(check_activation(&shape->activation, "activation", err));
    if (shape->cell == LEATI_CELL_SIMPLE) return LEAT_OK;
    return check_activation(&shape->recurrent_activation, "recurrent_activation", err);
}

static leat_status infer_rnn(const leati_attrs *attrs, int input_count, const leati_desc *in, leati_desc *out,
                             leat_error *err) {
    leati_rnn_shape s;
    LEATI_TRY(check_inputs(attrs, input_count, in, &s, err));
    out[LEATI_RNN_OUT_SEQUENCE] = DESC(s.batch, s.steps, s.units);
    out[LEATI_RNN_OUT_H_LAST] = DESC(s.batch, s.units);
    out[LEATI_RNN_OUT_C_LAST] = s.cell == LEATI_CELL_LSTM ? DESC(s.batch, s.units) : DESC(0);
    out[LEATI_RNN_OUT_WORKSPACE] = s.training ? DESC(s.steps, s.batch, s.kept) : DESC(0);
    return LEAT_OK;
}

/* Returns true if RNN_BWD needs the sequence.  An LSTM without `steps` can compute h from its workspace. */
static bool needs_sequence(leati_cell cell, bool some_steps) {
    return cell != LEATI_CELL_LSTM || some_steps;
}

static leat_status infer_bwd(const leati_attrs *attrs, int input_count, const leati_desc *in, leati_desc *out,
                             leat_error *err) {
    leati_rnn_shape s;
    LEATI_TRY(check_inputs(attrs, input_count, in, &s, err));
    if (!s.training)
        return leati_fail(err, LEAT_EINVAL,
                          "the gradient of an RNN needs its attribute `training`, which is not set");
    const leati_desc sequence = DESC(s.batch, s.steps, s.units), state = DESC(s.batch, s.units);
    const leati_desc workspace = DESC(s.steps, s.batch, s.kept);
    if (in[LEATI_RNN_SEQUENCE].rank < 0 && needs_sequence(s.cell, in[LEATI_RNN_STEPS].rank >= 0))
        return leati_fail(err, LEAT_EINVAL, "expected the sequence output of the RNN");
    LEATI_TRY(expect_input(&in[LEATI_RNN_SEQUENCE], "sequence", &sequence, err));
    LEATI_TRY(expect_input(&in[LEATI_RNN_WORKSPACE], "workspace", &workspace, err));
    LEATI_TRY(expect_input(&in[LEATI_RNN_DIFF_SEQUENCE], "diff_sequence", &sequence, err));
    LEATI_TRY(expect_input(&in[LEATI_RNN_DIFF_H_LAST], "diff_h_last", &state, err));
    LEATI_TRY(expect_input(&in[LEATI_RNN_DIFF_C_LAST], "diff_c_last", &state, err));
    out[LEATI_RNN_X] = in[LEATI_RNN_X];
    out[LEATI_RNN_KERNEL] = in[LEATI_RNN_KERNEL];
    out[LEATI_RNN_RECURRENT] = in[LEATI_RNN_RECURRENT];
    out[LEATI_RNN_BIAS] = s.biases == 1 ? DESC(s.gates * s.units) : DESC(s.biases, s.gates * s.units);
    out[LEATI_RNN_H0] = state;
    out[LEATI_RNN_C0] = s.cell == LEATI_CELL_LSTM ? state : DESC(0);
    return LEAT_OK;
}

static void gradient(leati_graph *graph, const leati_node *node, const int32_t *diff_outputs,
                     const bool *wanted, int32_t *diff_inputs) {
    leati_value inputs[LEATI_RNN_BWD_INPUTS], outputs[LEATI_MAX_OUTPUTS];
    for (int i = 0; i < LEATI_RNN_INPUTS; i++)
        inputs[i] = i < node->input_count ? node->inputs[i] : LEATI_NONE;
    inputs[LEATI_RNN_SEQUENCE] = needs_sequence(node->attrs.rnn.cell, inputs[LEATI_RNN_STEPS] != LEATI_NONE)
                                     ? node->outputs[LEATI_RNN_OUT_SEQUENCE]
                                     : LEATI_NONE;
    inputs[LEATI_RNN_WORKSPACE] = node->outputs[LEATI_RNN_OUT_WORKSPACE];
    inputs[LEATI_RNN_DIFF_SEQUENCE] = diff_outputs[LEATI_RNN_OUT_SEQUENCE];
    inputs[LEATI_RNN_DIFF_H_LAST] = diff_outputs[LEATI_RNN_OUT_H_LAST];
    inputs[LEATI_RNN_DIFF_C_LAST] =
        node->attrs.rnn.cell == LEATI_CELL_LSTM ? diff_outputs[LEATI_RNN_OUT_C_LAST] : LEATI_NONE;
    leati_graph_node(graph, LEATI_OP_RNN_BWD, &node->attrs, LEATI_RNN_BWD_INPUTS, inputs, outputs);
    /* Dropout masks and the mask of steps have no gradient. */
    for (int i = 0; i < LEATI_RNN_GRADIENTS && i < node->input_count; i++)
        if (wanted[i]) diff_inputs[i] = outputs[i];
}

/* The optional inputs are bias, h0, c0, x_mask, h_mask and steps. */
#define OPTIONAL_INPUTS ((1u << LEATI_RNN_INPUTS) - (1u << LEATI_RNN_BIAS))

const leati_op_descriptor leati_op_rnn = {.name = "rnn",
                                          .min_inputs = 3,
                                          .max_inputs = LEATI_RNN_INPUTS,
                                          .outputs = LEATI_RNN_OUTPUTS,
                                          .flags = LEATI_OP_OPTIONAL_OUTPUTS,
                                          .optional = OPTIONAL_INPUTS,
                                          .infer = infer_rnn,
                                          .gradient = gradient};
const leati_op_descriptor leati_op_rnn_bwd = {.name = "rnn_bwd",
                                              .min_inputs = LEATI_RNN_BWD_INPUTS,
                                              .max_inputs = LEATI_RNN_BWD_INPUTS,
                                              .outputs = LEATI_RNN_GRADIENTS,
                                              .flags = LEATI_OP_OPTIONAL_OUTPUTS,
                                              .optional = OPTIONAL_INPUTS | 1u << LEATI_RNN_SEQUENCE |
                                                          1u << LEATI_RNN_DIFF_SEQUENCE |
                                                          1u << LEATI_RNN_DIFF_H_LAST |
                                                          1u << LEATI_RNN_DIFF_C_LAST,
                                              .infer = infer_bwd};
