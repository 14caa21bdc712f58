/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the inputs of a model that are sequences and that a predictor may feed one step at a time.  Room: nn. */
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
static int32_t index_of_call(const leat_model *model, int32_t member, int32_t call) {
    return model->members[member].first_call + call;
}

/* True if the inputs of a call must be steps of a sequence; `needs_steps` says if its outputs must be. */
static bool takes_steps(const leati_member *member, bool needs_steps) {
    if (member->model) return needs_steps || has_recurrence(member->model);
    if (leati_recurrence_of(member->layer)) return true;
    return needs_steps && member->layer->type->steps != LEATI_STEPS_JOINED;
}

static bool may_be_sequence(const leati_member *reader, const leati_shape *shape) {
    bool indices = reader->layer && strcmp(reader->layer->type->class_name, "Embedding") == 0;
    return shape->rank > 2 || (shape->rank == 2 && indices) || !reader->layer;
}

static void mark_sources(const leat_model *model, const leati_scheduled_call *scheduled, bool *needs_steps) {
    const leati_member *member = &model->members[scheduled->member];
    const leati_call *call = &member->calls[scheduled->call];
    if (!takes_steps(member, needs_steps[index_of_call(model, scheduled->member, scheduled->call)])) return;
    for (int32_t i = 0; i < call->input_count; ++i) {
        const leati_source *from = &call->inputs[i];
        const leati_shape *shape = &model->members[from->layer].calls[from->call].outputs[from->tensor];
        if (may_be_sequence(member, shape)) needs_steps[index_of_call(model, from->layer, from->call)] = true;
    }
}

static leat_status refuse_masks(const leat_model *model, leat_error *err) {
    for (int32_t i = 0; i < model->schedule_count; ++i) {
        const leati_member *member = &model->members[model->schedule[i].member];
        if (member->calls[model->schedule[i].call].masked)
            return leati_fail(err, LEAT_ENOTSUP,
                              "streaming: layer '%s' is called with the argument 'mask', whose steps leat "
                              "cannot feed one by one",
                              member->layer->name);
    }
    return LEAT_OK;
}

static leat_status refuse(const leat_model *model, const bool *needs_steps, leat_error *err) {
    for (int32_t i = model->schedule_count; i-- > 0;) {
        const leati_scheduled_call *scheduled = &model->schedule[i];
        const leati_layer *layer = model->members[scheduled->member].layer;
        if (layer && layer->type->steps == LEATI_STEPS_JOINED && !leati_recurrence_of(layer) &&
            needs_steps[index_of_call(model, scheduled->member, scheduled->call)])
            return leati_fail(err, LEAT_ENOTSUP, "layer '%s': " LEATI_READS_SEVERAL_STEPS, layer->name,
                              layer->type->class_name);
    }
    return leati_fail(err, LEAT_EINVAL,
                      "streaming: expected a model with a recurrent layer of one direction");
}

leat_status leati_stepwise_inputs(const leat_model *model, bool *out, leat_error *err) {
    bool any = false;
    LEATI_TRY(refuse_masks(model, err));
    bool *needs_steps = leati_calloc((size_t)model->schedule_count + 1, sizeof *needs_steps);
    if (!needs_steps) return leati_fail_memory(err, (size_t)model->schedule_count, "a list of calls");
    for (int32_t i = model->schedule_count; i-- > 0;) mark_sources(model, &model->schedule[i], needs_steps);
    for (int32_t i = 0; i < model->input_count; ++i) {
        out[i] = needs_steps[index_of_call(model, model->inputs[i].layer, model->inputs[i].call)];
        any = any || out[i];
    }
    leat_status status = any ? LEAT_OK : refuse(model, needs_steps, err);
    leati_free(needs_steps);
    return status;
}
