/* SPDX-License-Identifier: Apache-2.0 */
/* Where one step of a sequence at a time gives what all of them give, by what each layer says (leati_steps).
 * Layer: nn. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/program/carry.h"
#include "nn/layers/rnn/rnn_common.h"

#define LOOKS_AT_SEVERAL "streaming: %s looks at several steps of a sequence at once"

/* ---- Calls ---- */

static bool is_behind_time(const json_t *axis, int rank) {
    int64_t value = json_integer_value(axis);
    return json_is_integer(axis) && (value < 0 ? value + rank : value) >= 2;
}

static leat_status axes_are_behind_time(const leati_layer *layer, int rank, bool *out, leat_error *err) {
    json_t *config = NULL;
    LEATI_TRY(leati_layer_config(layer, &config, err));
    const json_t *axis = json_object_get(config, "axis");
    *out = json_is_array(axis) || is_behind_time(axis, rank);
    for (size_t i = 0; i < json_array_size(axis); ++i)
        *out = *out && is_behind_time(json_array_get(axis, i), rank);
    json_decref(config);
    return LEAT_OK;
}

static leat_status check_recurrent(const leati_layer *layer, int input_count, bool *makes_step,
                                   leat_error *err) {
    const leati_recurrence *r = leati_recurrence_of(layer);
    *makes_step = r->return_sequences;
    if (r->go_backwards)
        return leati_fail(err, LEAT_ENOTSUP,
                          "streaming: go_backwards begins with the last step, which is not known yet");
    if (input_count == 1) return LEAT_OK;
    return leati_fail(err, LEAT_ENOTSUP, "streaming: initial states as inputs are those of a whole sequence");
}

leat_status leati_stepwise_check(const leati_layer *layer, const leati_lowering *lowering, int input_count,
                                 const leati_value *inputs, bool *makes_step, leat_error *err) {
    int rank = leati_graph_desc(lowering->graph, inputs[0])->rank;
    *makes_step = false;
    for (int i = 0; i < input_count; ++i) {
        if (!leati_carry_is_step(lowering, inputs[i])) continue;
        *makes_step = true;
        rank = leati_graph_desc(lowering->graph, inputs[i])->rank;
    }
    if (!*makes_step) return LEAT_OK;
    leati_steps steps = layer->type->steps;
    bool allowed = steps == LEATI_STEPS_BY_NUMBER || (steps == LEATI_STEPS_APART && rank > 2);
    if (leati_recurrence_of(layer)) return check_recurrent(layer, input_count, makes_step, err);
    if (steps == LEATI_STEPS_BY_AXIS && rank > 2) LEATI_TRY(axes_are_behind_time(layer, rank, &allowed, err));
    if (allowed) return LEAT_OK;
    return leati_fail(err, LEAT_ENOTSUP, LOOKS_AT_SEVERAL, layer->type->class_name);
}

leat_status leati_stepwise_mark(const leati_layer *layer, leati_lowering *lowering, leati_value output,
                                leat_error *err) {
    const leati_desc *desc = leati_graph_desc(lowering->graph, output);
    leati_carry_mark(lowering, output);
    if (output < 0 || (desc->rank > 1 && desc->shape[1] == 1)) return LEAT_OK;
    return leati_fail(err, LEAT_ENOTSUP, "streaming: %s joins one step of a sequence with several",
                      layer->type->class_name);
}

/* ---- Inputs ---- */

static bool has_recurrence(const leat_model *model) {
    for (int32_t i = 0; i < model->member_count; ++i) {
        const leat_model *inner = leati_member_model(&model->members[i]);
        if (model->members[i].layer && leati_recurrence_of(model->members[i].layer)) return true;
        if (inner && has_recurrence(inner)) return true;
    }
    return false;
}

/* A call's place in a table of the model's calls. */
static int32_t place_of(const leat_model *model, int32_t member, int32_t call) {
    return model->members[member].first_call + call;
}

/* Whether the inputs of a call are steps of a sequence, where its outputs are (`wanted`). */
static bool takes_steps(const leati_member *member, bool wanted) {
    if (member->model) return wanted || has_recurrence(member->model);
    if (leati_recurrence_of(member->layer)) return true;
    return wanted && member->layer->type->steps != LEATI_STEPS_JOINED;
}

static bool may_be_sequence(const leati_member *reader, const leati_shape *shape) {
    bool indices = reader->layer && strcmp(reader->layer->type->class_name, "Embedding") == 0;
    return shape->rank > 2 || (shape->rank == 2 && indices) || !reader->layer;
}

static void mark_sources(const leat_model *model, const leati_scheduled_call *turn, bool *wanted) {
    const leati_member *member = &model->members[turn->member];
    const leati_call *call = &member->calls[turn->call];
    if (!takes_steps(member, wanted[place_of(model, turn->member, turn->call)])) return;
    for (int32_t i = 0; i < call->input_count; ++i) {
        const leati_source *from = &call->inputs[i];
        const leati_shape *shape = &model->members[from->layer].calls[from->call].outputs[from->tensor];
        if (may_be_sequence(member, shape)) wanted[place_of(model, from->layer, from->call)] = true;
    }
}

static leat_status refuse(const leat_model *model, const bool *wanted, leat_error *err) {
    for (int32_t i = model->schedule_count; i-- > 0;) {
        const leati_scheduled_call *turn = &model->schedule[i];
        const leati_layer *layer = model->members[turn->member].layer;
        if (layer && layer->type->steps == LEATI_STEPS_JOINED && !leati_recurrence_of(layer) &&
            wanted[place_of(model, turn->member, turn->call)])
            return leati_fail(err, LEAT_ENOTSUP, "layer '%s': " LOOKS_AT_SEVERAL, layer->name,
                              layer->type->class_name);
    }
    return leati_fail(err, LEAT_EINVAL,
                      "streaming: expected a model with a recurrent layer of one direction");
}

leat_status leati_stepwise_inputs(const leat_model *model, bool *out, leat_error *err) {
    bool any = false;
    bool *wanted = leati_calloc((size_t)model->schedule_count + 1, sizeof *wanted);
    if (!wanted) return leati_fail_memory(err, (size_t)model->schedule_count, "a list of calls");
    for (int32_t i = model->schedule_count; i-- > 0;) mark_sources(model, &model->schedule[i], wanted);
    for (int32_t i = 0; i < model->input_count; ++i) {
        out[i] = wanted[place_of(model, model->inputs[i].layer, model->inputs[i].call)];
        any = any || out[i];
    }
    leat_status status = any ? LEAT_OK : refuse(model, wanted, err);
    leati_free(wanted);
    return status;
}
