/* SPDX-License-Identifier: Apache-2.0 */
/* LSTM_CELL and LSTM_CELL_BWD: one step of an LSTM whose products were computed by other ops, such as convolutions.
 * The formulas are in backends/ref/lstm_cell.c.  Room: engine. */
#include "base/error.h"
#include "engine/graph/build.h"
#include "engine/op_semantics/function.h"
#include "engine/op_semantics/infer.h"
#include "engine/ops/types.h"

/* Returns the description of a state, for the gates' sums z (..., 4 U). */
static leati_desc state_of(const leati_desc *z) {
    leati_desc state = *z;
    state.shape[z->rank - 1] /= 4;
    return state;
}

static leat_status check_activation(const leati_eltwise *f, const char *what, leat_error *err) {
    if (leati_slope_known_from_dst(f)) return LEAT_OK;
    return leati_fail(err, LEAT_ENOTSUP,
                      "%s '%s' is not supported in an LSTM cell: its derivative cannot be computed from its "
                      "output alone",
                      what, leati_function_name(f->function));
}

static leat_status check_sums(const leati_attrs *attrs, const leati_desc *z, const char *what,
                              leat_error *err) {
    LEATI_TRY(leati_expect_f32(z, what, err));
    LEATI_TRY(leati_expect_axis(z, z->rank - 1, err));
    if (z->shape[z->rank - 1] % 4 != 0)
        return leati_fail(err, LEAT_ESHAPE, "%s: expected a last axis of 4 gates, received %lld elements",
                          what, (long long)z->shape[z->rank - 1]);
    LEATI_TRY(check_activation(&attrs->rnn.activation, "activation", err));
    return check_activation(&attrs->rnn.recurrent_activation, "recurrent_activation", err);
}

static leat_status expect_state(const leati_desc *got, const char *what, const leati_desc *state,
                                leat_error *err) {
    return got->rank < 0 ? LEAT_OK : leati_expect_like(got, what, state, err);
}

static leat_status infer_cell(const leati_attrs *attrs, int input_count, const leati_desc *in,
                              leati_desc *out, leat_error *err) {
    static const int64_t nothing = 0;
    LEATI_TRY(check_sums(attrs, &in[0], "z", err));
    const leati_desc state = state_of(&in[0]);
    if (input_count > 1) LEATI_TRY(expect_state(&in[1], "c", &state, err));
    out[LEATI_LSTM_GATES] = attrs->rnn.training ? in[0] : leati_desc_make(LEAT_F32, 1, &nothing);
    out[LEATI_LSTM_H] = out[LEATI_LSTM_C] = state;
    return LEAT_OK;
}

static leat_status infer_bwd(const leati_attrs *attrs, int input_count, const leati_desc *in, leati_desc *out,
                             leat_error *err) {
    (void)input_count;
    LEATI_TRY(check_sums(attrs, &in[0], "gates", err));
    const leati_desc state = state_of(&in[0]);
    static const char *const names[] = {"gates", "c_before", "c", "diff_h", "diff_c"};
    for (int i = 1; i < 5; ++i) LEATI_TRY(expect_state(&in[i], names[i], &state, err));
    out[0] = in[0];
    out[1] = state;
    return LEAT_OK;
}

static void gradient(leati_graph *g, const leati_node *node, const leati_value *diff_outputs,
                     const bool *wanted, leati_value *diff_inputs) {
    leati_value before = node->input_count > 1 ? node->inputs[1] : LEATI_NONE, outputs[LEATI_MAX_OUTPUTS];
    leati_value inputs[] = {node->outputs[LEATI_LSTM_GATES], before, node->outputs[LEATI_LSTM_C],
                            diff_outputs[LEATI_LSTM_H], diff_outputs[LEATI_LSTM_C]};
    if (!node->attrs.rnn.training) {
        leati_graph_fail(g, LEAT_EINVAL,
                         "the gradient of an LSTM cell needs its attribute `training`, which is not set");
        return;
    }
    leati_graph_node(g, LEATI_OP_LSTM_CELL_BWD, &node->attrs, 5, inputs, outputs);
    for (int i = 0; i < node->input_count; ++i)
        if (wanted[i]) diff_inputs[i] = outputs[i];
}

const leati_op_descriptor leati_op_lstm_cell = {.name = "lstm_cell",
                                                .min_inputs = 1,
                                                .max_inputs = 2,
                                                .outputs = 3,
                                                .flags = LEATI_OP_IN_PLACE | LEATI_OP_OPTIONAL_OUTPUTS,
                                                .optional = 1u << 1,
                                                .infer = infer_cell,
                                                .gradient = gradient};
const leati_op_descriptor leati_op_lstm_cell_bwd = {.name = "lstm_cell_bwd",
                                                    .min_inputs = 5,
                                                    .max_inputs = 5,
                                                    .outputs = 2,
                                                    .flags = LEATI_OP_IN_PLACE | LEATI_OP_OPTIONAL_OUTPUTS,
                                                    .optional = 1u << 1 | 1u << 3 | 1u << 4,
                                                    .infer = infer_bwd};
