/* SPDX-License-Identifier: Apache-2.0 */
/* CALL and CALL_BWD: the functions of custom layers.  CALL_BWD has one output for all gradients, because a custom layer
 * may have more inputs and weights than a node may have outputs.  Room: engine. */
#include "engine/graph/build.h"
#include "engine/graph/callee.h"
#include "engine/op_semantics/infer.h"
#include "engine/ops/types.h"

void leati_graph_call(leati_graph *g, const leati_callee *callee, bool training, uint64_t stream,
                      int input_count, const leati_value *inputs, leati_value *outputs) {
    leati_attrs attrs = {.call = {.callee = callee, .training = training, .stream = stream}};
    leati_value all[LEATI_MAX_OUTPUTS];
    for (int i = 0; i < LEATI_MAX_OUTPUTS; ++i) all[i] = LEATI_INVALID;
    leati_graph_node(g, LEATI_OP_CALL, &attrs, input_count, inputs, all);
    for (int i = 0; i < callee->output_count; ++i) outputs[i] = all[i];
}

static leat_status infer_call(const leati_attrs *attrs, int input_count, const leati_desc *in,
                              leati_desc *out, leat_error *err) {
    const leati_callee *callee = attrs->call.callee;
    for (int i = 0; i < input_count && !callee->any_types; ++i)
        LEATI_TRY(leati_expect_f32(&in[i], "an input", err));
    for (int i = 0; i < LEATI_CALLEE_MAX_OUTPUTS; ++i)
        out[i] = (leati_desc){.dtype = LEAT_F32, .rank = 1, .shape = {0}};
    return callee->infer(callee, input_count, in, out, err);
}

leat_status leati_callee_infer_like(const leati_callee *callee, int input_count, const leati_desc *inputs,
                                    leati_desc *outputs, leat_error *err) {
    (void)callee, (void)input_count, (void)err;
    outputs[0] = inputs[0];
    return LEAT_OK;
}

/* Offsets are multiples of 16 elements, so that each gradient is aligned to 64 bytes like other buffers. */
int64_t leati_callee_place(uint32_t wanted, const leati_desc *inputs, int i) {
    int64_t place = 0;
    for (int before = 0; before < i; ++before)
        if (wanted >> before & 1u) place += (leati_desc_count(&inputs[before]) + 15) / 16 * 16;
    return place;
}

static void gradient(leati_graph *g, const leati_node *node, const leati_value *diff_outputs,
                     const bool *wanted, leati_value *diff_inputs) {
    const leati_callee *callee = node->attrs.call.callee;
    leati_attrs attrs = node->attrs;
    leati_value inputs[LEATI_MAX_INPUTS] = {0};
    leati_desc descs[LEATI_CALLEE_MAX_INPUTS];
    int count = node->input_count, used = 0;
    if (!callee->backward) {
        leati_graph_fail(g, LEAT_ENOTSUP,
                         "'%s' has no gradient: neither it nor the layers before it can be trained",
                         node->label ? node->label : "");
        return;
    }
    for (int i = 0; i < count; ++i) {
        descs[i] = *leati_graph_desc(g, node->inputs[i]);
        inputs[used++] = node->inputs[i];
        if (wanted[i]) attrs.call.wanted |= 1u << i;
    }
    for (int i = 0; i < callee->output_count; ++i) inputs[used++] = node->outputs[i];
    for (int i = 0; i < callee->output_count; ++i) {
        const leati_desc out = *leati_graph_desc(g, node->outputs[i]);
        inputs[used++] =
            diff_outputs[i] == LEATI_NONE ? leati_full(g, out.rank, out.shape, 0) : diff_outputs[i];
    }
    leati_value all = leati_graph_node(g, LEATI_OP_CALL_BWD, &attrs, used, inputs, NULL);
    for (int i = 0; i < count; ++i) {
        if (!wanted[i]) continue;
        int64_t place = leati_callee_place(attrs.call.wanted, descs, i);
        leati_value part = leati_slice_axis(g, all, 0, place, leati_desc_count(&descs[i]));
        diff_inputs[i] = leati_reshape(g, part, descs[i].rank, descs[i].shape);
    }
}

const leati_op_descriptor leati_op_call = {.name = "call",
                                           .min_inputs = 1,
                                           .max_inputs = LEATI_CALLEE_MAX_INPUTS,
                                           .outputs = LEATI_CALLEE_MAX_OUTPUTS,
                                           .flags = LEATI_OP_RANDOM,
                                           .infer = infer_call,
                                           .gradient = gradient};

static leat_status infer_bwd(const leati_attrs *attrs, int input_count, const leati_desc *in, leati_desc *out,
                             leat_error *err) {
    const leati_callee *callee = attrs->call.callee;
    int count = input_count - 2 * callee->output_count;
    if (count < 1 || attrs->call.wanted >> count)
        return leati_fail(err, LEAT_EINVAL,
                          "expected the inputs, the outputs and the gradients of the outputs");
    for (int i = 0; i < callee->output_count; ++i) {
        const leati_desc *output = &in[count + i], *diff = &in[count + callee->output_count + i];
        LEATI_TRY(leati_expect_like(diff, "diff_output", output, err));
    }
    const int64_t length = leati_callee_place(attrs->call.wanted, in, count);
    out[0] = leati_desc_make(LEAT_F32, 1, &length);
    return LEAT_OK;
}

const leati_op_descriptor leati_op_call_bwd = {.name = "call_bwd",
                                               .min_inputs = 3,
                                               .max_inputs = LEATI_MAX_INPUTS,
                                               .outputs = 1,
                                               .flags = LEATI_OP_RANDOM,
                                               .infer = infer_bwd};
