/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes, states, masks and outputs of all recurrent layers.  Source: keras.layers.RNN.  Room: nn. */
#include "nn/layers/rnn/rnn_common.h"

#include <string.h>

#include "base/error.h"
#include "nn/layers/carry.h"

double leati_dropout_rate(double rate) {
    return rate > 1 ? 1 : rate > 0 ? rate : 0; /* NaN becomes 0 */
}

leat_status leati_forget_bias_draw(const leati_initializer *initializer, int64_t units, int64_t size,
                                   leat_rng *rng, float *out, leat_error *err) {
    const int64_t before = size - 3 * units, after = 2 * units;
    LEATI_TRY(leati_initializer_draw(initializer, 1, &before, leat_rng_u64(rng), 0, out, err));
    for (int64_t i = before; i < before + units; ++i) out[i] = 1.0f;
    return leati_initializer_draw(initializer, 1, &after, leat_rng_u64(rng), 0, out + before + units, err);
}

/* ---- Shapes ---- */

static leat_status check_initial(const leati_recurrence *r, int input_count, const leati_shape *inputs,
                                 const leati_shape *states, leat_error *err) {
    if (input_count > 1 && input_count != 1 + r->state_count)
        return leati_fail(err, LEAT_EINVAL, "expected 1 input, or %d with the initial state%s, received %d",
                          1 + r->state_count, r->state_count > 1 ? "s" : "", input_count);
    for (int i = 1; i < input_count; ++i) {
        const leati_shape *expected = &states[i - 1], *received = &inputs[i];
        bool fits = received->rank == expected->rank;
        for (int j = 1; fits && j < expected->rank; ++j)
            fits = received->dims[j] < 0 || expected->dims[j] < 0 || received->dims[j] == expected->dims[j];
        if (fits) continue;
        char a[LEATI_SHAPE_TEXT_BYTES], b[LEATI_SHAPE_TEXT_BYTES];
        return leati_fail(err, LEAT_ESHAPE, "expected initial state %d of shape %s, received %s", i - 1,
                          leati_shape_show(a, expected), leati_shape_show(b, received));
    }
    return LEAT_OK;
}

leat_status leati_recurrence_infer(const leati_layer *layer, const leati_scan *scan, int input_count,
                                   const leati_shape *inputs, leati_shape *outputs, int *output_count,
                                   leat_error *err) {
    const leati_recurrence *r = layer->config;
    leati_shape output, states[LEATI_MAX_STATES];
    LEATI_TRY(scan->shapes(layer, &inputs[0], &output, states, err));
    LEATI_TRY(check_initial(r, input_count, inputs, states, err));
    outputs[0] = output;
    if (r->return_sequences) {
        outputs[0] = (leati_shape){.rank = output.rank + 1, .dims = {output.dims[0], inputs[0].dims[1]}};
        memcpy(outputs[0].dims + 2, output.dims + 1, (size_t)(output.rank - 1) * sizeof output.dims[0]);
    }
    if (!r->return_state) return LEAT_OK;
    if (1 + r->state_count > LEATI_LAYER_MAX_OUTPUTS)
        return leati_fail(err, LEAT_ENOTSUP, "return_state: expected at most %d states, the layer has %d",
                          LEATI_LAYER_MAX_OUTPUTS - 1, (int)r->state_count);
    for (int i = 0; i < r->state_count; ++i) outputs[1 + i] = states[i];
    *output_count = 1 + r->state_count;
    return LEAT_OK;
}

leat_status leati_recurrence_build(leati_layer *layer, const leati_scan *scan, const leati_shape *inputs,
                                   leat_error *err) {
    const leati_recurrence *r = layer->config;
    leati_shape output, states[LEATI_MAX_STATES];
    bool known = inputs[0].dims[0] >= 0;
    /* If the layer is built already, the input of a nested model has given the batch size. */
    if (!r->stateful || (!known && layer->built)) return LEAT_OK;
    if (!known)
        return leati_shape_unexpected(&inputs[0],
                                      "a known batch size for stateful (batch_input_shape of the first "
                                      "layer, batch_shape of the input)",
                                      err);
    LEATI_TRY(scan->shapes(layer, &inputs[0], &output, states, err));
    for (int i = 0; i < r->state_count; ++i)
        LEATI_TRY(leati_layer_add_state(layer, states[i].rank, states[i].dims, err));
    return LEAT_OK;
}

/* ---- Lowering ---- */

/* Returns a state of the model before the batch.  In training it is a copy, because the gradient reads the state
 * after it was overwritten. */
static leati_value kept_state(const leati_layer *layer, leati_lowering *lowering, int index, int64_t batch) {
    leati_graph *g = lowering->graph;
    leati_value state = leati_layer_state(layer, lowering, index);
    const leati_desc *desc = leati_graph_desc(g, state);
    if (state >= 0 && desc->shape[0] != batch)
        return leati_graph_fail(g, LEAT_EINVAL,
                                "stateful: expected batches of %lld samples, as the input's shape says, "
                                "received %lld",
                                (long long)desc->shape[0], (long long)batch);
    if (lowering->mode != LEATI_TRAIN) return state;
    return leati_graph_node(g, LEATI_OP_COPY, &(leati_attrs){0}, 1, &state, NULL);
}

/* Gets the states of a call: from[i] before the call, to[i] where the call stores them. */
static void carried_states(const leati_layer *layer, const leati_scan *scan, leati_lowering *lowering,
                           leati_value x, leati_value *from, leati_value *to) {
    const leati_recurrence *r = layer->config;
    const leati_desc desc = *leati_graph_desc(lowering->graph, x);
    leati_shape input = {.rank = desc.rank}, output, states[LEATI_MAX_STATES];
    leat_error err = {0};
    if (!lowering->carry) {
        for (int i = 0; i < r->state_count; ++i) {
            from[i] = kept_state(layer, lowering, i, desc.shape[0]);
            to[i] = leati_layer_state(layer, lowering, i);
        }
        return;
    }
    memcpy(input.dims, desc.shape, sizeof input.dims);
    if (scan->shapes(layer, &input, &output, states, &err) != LEAT_OK) {
        leati_graph_fail(lowering->graph, err.code, "%s", err.message);
        return;
    }
    for (int i = 0; i < r->state_count; ++i) {
        const leati_desc state = leati_desc_make(LEAT_F32, states[i].rank, states[i].dims);
        from[i] = to[i] = leati_carry_state(layer, lowering, r->stateful, i, &state);
    }
}

static leati_value last_step(leati_graph *g, leati_value sequence) {
    const leati_desc desc = *leati_graph_desc(g, sequence);
    int64_t dims[LEAT_MAX_RANK] = {desc.shape[0]};
    if (desc.rank < 3) return LEATI_INVALID;
    leati_value last = leati_slice_axis(g, sequence, 1, desc.shape[1] - 1, 1);
    memcpy(dims + 1, desc.shape + 2, (size_t)(desc.rank - 2) * sizeof dims[0]);
    return leati_reshape(g, last, desc.rank - 1, dims);
}

/* Returns the output of a step; for a step that does not count, the output of the step before, which may be of an
 * earlier run. */
static leati_value output_or_previous(const leati_layer *layer, leati_lowering *lowering, leati_value mask,
                                      leati_value output) {
    const leati_recurrence *r = layer->config;
    leati_graph *g = lowering->graph;
    const leati_desc desc = *leati_graph_desc(g, output);
    int64_t dims[LEAT_MAX_RANK] = {desc.shape[0]};
    for (int i = 1; i < desc.rank; ++i) dims[i] = 1;
    leati_value counts = leati_reshape(g, mask, desc.rank, dims);
    leati_value before = leati_carry_state(layer, lowering, r->stateful, r->state_count, &desc);
    leati_value now = leati_add(g, leati_mul(g, counts, output),
                                leati_mul(g, leati_linear(g, counts, -1.0f, 1.0f), before));
    leati_graph_store(g, before, now);
    return now;
}

/* Sets the outputs of the steps that do not count to 0. */
static void zero_masked(leati_graph *g, leati_scan_call *call) {
    const leati_desc desc = *leati_graph_desc(g, call->sequence);
    int64_t dims[LEAT_MAX_RANK] = {0};
    leati_value steps = call->go_backwards ? leati_reverse(g, call->mask, 1) : call->mask;
    if (desc.rank < 2) return;
    for (int i = 0; i < desc.rank; ++i) dims[i] = i < 2 ? desc.shape[i] : 1;
    call->sequence = leati_mul(g, call->sequence, leati_reshape(g, steps, desc.rank, dims));
    call->last = LEATI_NONE;
}

void leati_recurrence_lower(const leati_layer *layer, const leati_scan *scan, leati_lowering *lowering,
                            int input_count, const leati_value *inputs, leati_value *outputs) {
    const leati_recurrence *r = layer->config;
    leati_graph *g = lowering->graph;
    const bool ignores_mask = r->as_keras3 && input_count > 1 && !lowering->masked;
    const leati_value mask = ignores_mask ? LEATI_NONE : lowering->input_masks[0];
    const bool step = leati_carry_is_step(lowering, inputs[0]), carries = r->stateful || step;
    const bool zeros = r->zero_output_for_mask && mask != LEATI_NONE;
    leati_value to[LEATI_MAX_STATES] = {0};
    leati_scan_call call = {.x = inputs[0],
                            .mask = mask,
                            .go_backwards = r->go_backwards,
                            .sequence = LEATI_INVALID,
                            .last = LEATI_NONE};
    for (int i = 0; i < r->state_count; ++i) {
        call.initial[i] = input_count > 1 ? inputs[1 + i] : LEATI_NONE;
        call.states[i] = to[i] = LEATI_INVALID;
    }
    if (carries) {
        leati_value from[LEATI_MAX_STATES] = {0};
        carried_states(layer, scan, lowering, inputs[0], from, to);
        if (input_count == 1) memcpy(call.initial, from, (size_t)r->state_count * sizeof from[0]);
    }
    scan->run(layer, lowering, &call);
    if (zeros) zero_masked(g, &call);
    if (r->return_sequences)
        outputs[0] = call.sequence;
    else
        outputs[0] = call.last == LEATI_NONE ? last_step(g, call.sequence) : call.last;
    if (step && mask != LEATI_NONE && !zeros)
        outputs[0] = output_or_previous(layer, lowering, mask, outputs[0]);
    for (int i = 0; carries && i < r->state_count; ++i) leati_graph_store(g, to[i], call.states[i]);
    for (int i = 0; r->return_state && i < r->state_count; ++i) outputs[1 + i] = call.states[i];
    lowering->output_masks[0] = r->return_sequences ? lowering->input_masks[0] : LEATI_NONE;
    leati_lowering_add_activity(lowering, &r->activity_regularizer, r->return_state ? 1 + r->state_count : 1,
                                outputs);
}
