/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the inputs of a model that are sequences and that a predictor may feed one step at a time.  Layer: nn. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/layers/carry.h"
#include "nn/layers/recurrence.h"
#include "nn/program/program.h"

static bool has_recurrence(const leat_model *model) {
    for (int32_t i = 0; i < model->member_count; ++i) {
        const leat_model *inner = leati_member_model(&model->members[i]);
        if (model->members[i].layer && leati_recurrence_of(model->members[i].layer)) return true;
        if (inner && has_recurrence(inner)) return true;
    }
    return false;
}

/* Returns the index of a call in a table of all calls of the model. */
static int32_t place_of(const leat_model *model, int32_t member, int32_t call) {
    return model->members[member].first_call + call;
}

/* True if the inputs of a call must be steps of a sequence; `wanted` says if its outputs must be. */
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
            return leati_fail(err, LEAT_ENOTSUP, "layer '%s': " LEATI_LOOKS_AT_SEVERAL, layer->name,
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
