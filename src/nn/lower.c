/* SPDX-License-Identifier: Apache-2.0 */
/* A finished model, call by call: shapes from shapes, ops from values.  Layer: nn. */
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "engine/build.h"
#include "nn/network.h"

uint64_t leati_stream(uint64_t parent, const char *name) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (const char *c = name; *c; ++c) hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    return leati_mix(parent, hash);
}

/* The first of the tensors that a call makes, in a table of LEATI_LAYER_MAX_OUTPUTS for each call. */
static size_t place_of(const leat_model *model, int32_t member, int32_t call) {
    return (size_t)(model->members[member].first_call + call) * LEATI_LAYER_MAX_OUTPUTS;
}

static size_t place_of_source(const leat_model *model, const leati_source *source) {
    return place_of(model, source->layer, source->call) + (size_t)source->tensor;
}

static size_t table_size(const leat_model *model) {
    return (size_t)model->turn_count * LEATI_LAYER_MAX_OUTPUTS;
}

/* Which of the model's inputs a member is; -1 for a layer that is none. */
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

static leat_status infer_turn(const leat_model *model, const leati_turn *turn, const leati_shape *fed,
                              leati_shape *table, leat_error *err) {
    const leati_member *member = &model->members[turn->member];
    const leati_call *call = &member->calls[turn->call];
    leati_shape inputs[LEATI_MAX_INPUTS], *outputs = &table[place_of(model, turn->member, turn->call)];
    int input = input_of(model, turn->member);
    if (input >= 0) {
        if (fed[input].rank != member->layer->batch_input_shape.rank)
            return leati_prefix(leati_shape_unexpected(&fed[input], "the rank of the model's input", err),
                                err, "input '%s'", member->layer->name);
        outputs[0] = fed[input];
        return LEAT_OK;
    }
    for (int32_t i = 0; i < call->input_count; ++i)
        inputs[i] = table[place_of_source(model, &call->inputs[i])];
    leat_status status = infer_call(member, call->input_count, inputs, outputs, err);
    return leati_prefix(status, err, "layer '%s'", leati_member_name(model, turn->member));
}

leat_status leati_network_infer(const leat_model *model, const leati_shape *inputs, leati_shape *outputs,
                                leat_error *err) {
    leati_shape *table = leati_calloc(table_size(model), sizeof *table);
    leat_status status =
        table ? LEAT_OK : leati_fail_memory(err, table_size(model) * sizeof *table, "shapes");
    for (int32_t i = 0; status == LEAT_OK && i < model->turn_count; ++i)
        status = infer_turn(model, &model->turns[i], inputs, table, err);
    for (int32_t i = 0; status == LEAT_OK && i < model->output_count; ++i)
        outputs[i] = table[place_of_source(model, &model->outputs[i])];
    leati_free(table);
    return status;
}

/* ---- Ops ---- */

/* A layer that hands its input on unchanged makes a value of its own, as Keras's identity op does: a crossentropy after
 * it must not see the softmax before it. */
static leati_value own_value(leati_graph *graph, leati_value output, int count, const leati_value *inputs) {
    for (int i = 0; i < count; ++i) {
        if (output != inputs[i]) continue;
        const leati_desc desc = *leati_graph_desc(graph, output);
        return leati_reshape(graph, output, desc.rank, desc.shape);
    }
    return output;
}

static leat_status lower_calls(const leat_model *model, leati_lowering *lowering, uint64_t stream,
                               const leati_value *inputs, leati_value *outputs, leat_error *err);

static leat_status lower_turn(const leat_model *model, leati_lowering *lowering, uint64_t stream,
                              const leati_turn *turn, const leati_value *fed, leati_value *table,
                              leat_error *err) {
    const leati_member *member = &model->members[turn->member];
    const leati_call *call = &member->calls[turn->call];
    const char *name = leati_member_name(model, turn->member);
    leati_value inputs[LEATI_MAX_INPUTS], *outputs = &table[place_of(model, turn->member, turn->call)];
    int input = input_of(model, turn->member);
    uint64_t own = leati_mix(leati_stream(stream, name), (uint64_t)turn->call);
    for (int32_t i = 0; i < call->input_count; ++i)
        inputs[i] = table[place_of_source(model, &call->inputs[i])];
    if (member->model)
        return leati_prefix(lower_calls(member->model, lowering, own, inputs, outputs, err), err,
                            "layer '%s'", name);
    leati_graph_label(lowering->graph, name);
    lowering->stream = own;
    member->layer->type->lower(member->layer, lowering, input >= 0 ? 1 : call->input_count,
                               input >= 0 ? &fed[input] : inputs, outputs);
    for (int32_t i = 0; i < call->output_count; ++i)
        outputs[i] = own_value(lowering->graph, outputs[i], call->input_count, inputs);
    return leati_prefix(leati_graph_check(lowering->graph, err), err, "layer '%s'", name);
}

static leat_status lower_calls(const leat_model *model, leati_lowering *lowering, uint64_t stream,
                               const leati_value *inputs, leati_value *outputs, leat_error *err) {
    leati_value *table = leati_calloc(table_size(model), sizeof *table);
    leat_status status =
        table ? LEAT_OK : leati_fail_memory(err, table_size(model) * sizeof *table, "values");
    for (int32_t i = 0; status == LEAT_OK && i < model->turn_count; ++i)
        status = lower_turn(model, lowering, stream, &model->turns[i], inputs, table, err);
    for (int32_t i = 0; status == LEAT_OK && i < model->output_count; ++i)
        outputs[i] = table[place_of_source(model, &model->outputs[i])];
    leati_free(table);
    return status;
}

/* A weight's penalty counts once, however often its layer is called, and also where the layer is frozen. */
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

leat_status leati_model_lower(const leat_model *model, leati_lowering *lowering, const leati_value *inputs,
                              leati_value *outputs, leat_error *err) {
    LEATI_TRY(lower_calls(model, lowering, 0, inputs, outputs, err));
    if (lowering->mode != LEATI_PREDICT) add_penalties(model, lowering);
    return leati_graph_check(lowering->graph, err);
}
