/* SPDX-License-Identifier: Apache-2.0 */
/* Infers the shapes of a finished model, and lowers the model, call by call.  Room: nn. */
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "engine/graph/build.h"
#include "nn/layers/types.h"
#include "nn/network/network.h"

/* Returns the index of a call's first output in a table that has LEATI_LAYER_MAX_OUTPUTS tensors for each call. */
static size_t first_output_of(const leat_model *model, int32_t member, int32_t call) {
    return (size_t)(model->members[member].first_call + call) * LEATI_LAYER_MAX_OUTPUTS;
}

static size_t index_of_source(const leat_model *model, const leati_source *source) {
    return first_output_of(model, source->layer, source->call) + (size_t)source->tensor;
}

static size_t table_size(const leat_model *model) {
    return (size_t)model->schedule_count * LEATI_LAYER_MAX_OUTPUTS;
}

/* Returns the index of the model's input that a member is; -1 if it is not an input. */
static int input_of(const leat_model *model, int32_t member) {
    for (int32_t i = 0; i < model->input_count; ++i)
        if (model->inputs[i].layer == member) return i;
    return -1;
}

/* ---- Shapes ---- */

static leat_status infer_call(const leati_member *member, int count, const leati_shape *inputs,
                              leati_shape *outputs, leat_error *err) {
    int output_count;
    if (!member->layer) return leati_network_infer(member->model, inputs, outputs, err);
    LEATI_TRY(leati_layer_infer(member->layer, count, inputs, outputs, &output_count, err));
    return leati_layer_build(member->layer, count, inputs, err);
}

static leat_status infer_scheduled(const leat_model *model, const leati_scheduled_call *scheduled,
                                   const leati_shape *model_inputs, leati_shape *table, leat_error *err) {
    const leati_member *member = &model->members[scheduled->member];
    const leati_call *call = &member->calls[scheduled->call];
    leati_shape inputs[LEATI_MAX_INPUTS],
        *outputs = &table[first_output_of(model, scheduled->member, scheduled->call)];
    int input = input_of(model, scheduled->member);
    if (input >= 0) {
        outputs[0] = model_inputs[input]; /* as in Keras, a nested model may be called on another rank */
        return LEAT_OK;
    }
    for (int32_t i = 0; i < call->input_count; ++i)
        inputs[i] = table[index_of_source(model, &call->inputs[i])];
    leat_status status = infer_call(member, call->input_count - (call->masked ? 1 : 0), inputs, outputs, err);
    return leati_prefix(status, err, "layer '%s'", leati_member_name(model, scheduled->member));
}

leat_status leati_network_infer(const leat_model *model, const leati_shape *inputs, leati_shape *outputs,
                                leat_error *err) {
    leati_shape *table = leati_calloc(table_size(model), sizeof *table);
    leat_status status =
        table ? LEAT_OK : leati_fail_memory(err, table_size(model) * sizeof *table, "shapes");
    for (int32_t i = 0; status == LEAT_OK && i < model->schedule_count; ++i)
        status = infer_scheduled(model, &model->schedule[i], inputs, table, err);
    for (int32_t i = 0; status == LEAT_OK && i < model->output_count; ++i)
        outputs[i] = table[index_of_source(model, &model->outputs[i])];
    leati_free(table);
    return status;
}

/* ---- Ops ---- */

/* Tensors and their masks: the inputs of a call, and its outputs. */
typedef struct call_inputs {
    const leati_value *values, *masks;
} call_inputs;
typedef struct call_outputs {
    leati_value *values, *masks;
} call_outputs;

static leat_status lower_calls(const leat_model *model, leati_lowering *lowering, uint64_t stream,
                               const call_inputs *inputs, const call_outputs *outputs, leat_error *err);

/* Returns a mask: 1 where the argument `mask` of a call is not 0 (Softmax: above 0.5), else 0. */
static leati_value mask_of_argument(const leati_layer *layer, leati_graph *g, leati_value argument) {
    leati_value number = leati_cast(g, argument, LEAT_F32, 1);
    if (layer->type == &leati_layer_softmax)
        return leati_binary_of(g, LEATI_GREATER, number, leati_scalar(g, 0.5f));
    return leati_linear(g, leati_binary_of(g, LEATI_EQUAL, number, leati_scalar(g, 0)), -1, 1);
}

/* Lowers a call of a layer.  The argument `mask` takes the place of the first input's mask. */
static leat_status lower_layer(const leati_layer *layer, leati_lowering *lowering, const leati_call *call,
                               leati_layer_call *layer_call, leati_value *masks, leat_error *err) {
    lowering->masked = call->masked;
    lowering->takes_masks = false;
    if (call->masked)
        masks[0] = mask_of_argument(layer, lowering->graph, layer_call->inputs[--layer_call->input_count]);
    leat_status status = leati_layer_lower(layer, lowering, layer_call, err);
    lowering->masked = false;
    return status;
}

static leat_status lower_scheduled(const leat_model *model, leati_lowering *lowering, uint64_t stream,
                                   const leati_scheduled_call *scheduled, const call_inputs *model_inputs,
                                   const call_outputs *table, leat_error *err) {
    const leati_member *member = &model->members[scheduled->member];
    const leati_call *call = &member->calls[scheduled->call];
    const char *name = leati_member_name(model, scheduled->member);
    leati_value values[LEATI_MAX_INPUTS], masks[LEATI_MAX_INPUTS];
    size_t first = first_output_of(model, scheduled->member, scheduled->call);
    call_inputs inputs = {values, masks};
    const call_outputs outputs = {&table->values[first], &table->masks[first]};
    int input = input_of(model, scheduled->member), count = input >= 0 ? 1 : call->input_count;
    const bool inference = lowering->inference;
    uint64_t call_stream = leati_mix(leati_stream(stream, name), (uint64_t)scheduled->call);
    for (int32_t i = 0; i < call->input_count; ++i) {
        values[i] = table->values[index_of_source(model, &call->inputs[i])];
        masks[i] = table->masks[index_of_source(model, &call->inputs[i])];
    }
    lowering->inference = inference || call->inference;
    if (input >= 0) inputs = (call_inputs){&model_inputs->values[input], &model_inputs->masks[input]};
    if (member->model) {
        leat_status done = lower_calls(member->model, lowering, call_stream, &inputs, &outputs, err);
        lowering->inference = inference;
        return leati_prefix(done, err, "layer '%s'", name);
    }
    leati_graph_label(lowering->graph, name);
    lowering->stream = call_stream;
    leati_layer_call layer_call = {.input_count = count,
                                   .output_count = call->output_count,
                                   .inputs = inputs.values,
                                   .masks = inputs.masks,
                                   .outputs = outputs.values,
                                   .output_masks = outputs.masks};
    leat_status status = lower_layer(member->layer, lowering, call, &layer_call, masks, err);
    for (int32_t i = 0; lowering->takes_masks && i < call->input_count; ++i)
        table->masks[index_of_source(model, &call->inputs[i])] = LEATI_NONE;
    lowering->inference = inference;
    return leati_prefix(status, err, "layer '%s'", name);
}

static leat_status lower_calls(const leat_model *model, leati_lowering *lowering, uint64_t stream,
                               const call_inputs *inputs, const call_outputs *outputs, leat_error *err) {
    size_t size = table_size(model);
    leati_value *memory = leati_calloc(2 * size, sizeof *memory);
    if (!memory) return leati_fail_memory(err, 2 * size * sizeof *memory, "values");
    const call_outputs table = {memory, memory + size};
    leat_status status = LEAT_OK;
    for (int32_t i = 0; status == LEAT_OK && i < model->schedule_count; ++i)
        status = lower_scheduled(model, lowering, stream, &model->schedule[i], inputs, &table, err);
    for (int32_t i = 0; status == LEAT_OK && i < model->output_count; ++i) {
        outputs->values[i] = table.values[index_of_source(model, &model->outputs[i])];
        outputs->masks[i] = table.masks[index_of_source(model, &model->outputs[i])];
    }
    leati_free(memory);
    return status;
}

/* Adds each weight's penalty once, even if its layer is called several times or is frozen. */
static void add_penalties(const leat_model *model, leati_lowering *lowering) {
    leati_graph_label(lowering->graph, "regularization");
    for (int32_t i = 0; i < model->weights.count; ++i) {
        const leati_weight *weight = model->weights.entries[i];
        if (weight->regularizer.kind == LEATI_REGULARIZER_NONE) continue;
        leati_value w =
            leati_graph_state(lowering->graph, LEATI_SLAB_WEIGHTS, weight->offset_bytes, &weight->desc);
        leati_lowering_add_loss(lowering, leati_regularizer_lower(&weight->regularizer, lowering->graph, w));
    }
}

leat_status leati_network_lower(const leat_model *model, leati_lowering *lowering, const leati_value *inputs,
                                const leati_value *masks, leati_value *outputs, leati_value *output_masks,
                                leat_error *err) {
    const call_inputs in = {inputs, masks};
    const call_outputs out = {outputs, output_masks};
    return lower_calls(model, lowering, lowering->stream, &in, &out, err);
}

leat_status leati_model_lower(const leat_model *model, leati_lowering *lowering, const leati_value *inputs,
                              leati_value *outputs, leati_value *output_masks, leat_error *err) {
    size_t count = (size_t)model->input_count;
    leati_value *masks = leati_calloc(count, sizeof *masks);
    if (!masks) return leati_fail_memory(err, count * sizeof *masks, "masks");
    for (size_t i = 0; i < count; ++i) masks[i] = LEATI_NONE;
    lowering->stream = 0;
    leat_status status = leati_network_lower(model, lowering, inputs, masks, outputs, output_masks, err);
    leati_free(masks);
    LEATI_TRY(status);
    if (lowering->mode != LEATI_PREDICT) add_penalties(model, lowering);
    return leati_graph_check(lowering->graph, err);
}
