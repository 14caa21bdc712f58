/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of a finished network.  Room: nn. */
#include "nn/network/surgery.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "nn/layers/types.h"

leat_status leati_network_finish_again(leat_model *model, int32_t input_count, const leati_source *inputs,
                                       int32_t output_count, const leati_source *outputs, leat_error *err) {
    leati_source *old_inputs = model->inputs, *old_outputs = model->outputs;
    leati_scheduled_call *old_schedule = model->schedule;
    model->inputs = model->outputs = NULL;
    model->schedule = NULL;
    leati_network_forget_keys(model);
    model->input_count = model->output_count = model->schedule_count = 0;
    leat_status status = leati_network_finish(model, input_count, inputs, output_count, outputs, err);
    leati_free(old_inputs);
    leati_free(old_outputs);
    leati_free(old_schedule);
    return status;
}

/* ---- Names ---- */

/* Returns the index of the member of a name of `length` bytes; -1 if there is none. */
static int32_t find_part(const leat_model *model, const char *name, size_t length) {
    for (int32_t i = 0; i < model->member_count; ++i) {
        const char *own = leati_member_name(model, i);
        if (strlen(own) == length && memcmp(own, name, length) == 0) return i;
    }
    return -1;
}

/* Returns the number of digits at the end of a text of `length` bytes that ":" precedes; 0 if there are none. */
static size_t digits_at_end(const char *text, size_t length) {
    size_t digits = 0;
    while (digits < length && digits < 9 && text[length - digits - 1] >= '0' &&
           text[length - digits - 1] <= '9')
        ++digits;
    return digits > 0 && digits < length && text[length - digits - 1] == ':' ? digits : 0;
}

/* Returns the member of an index in Keras's model.layers, in which a Sequential has no InputLayer; negative indices
 * count from the end.  -1: the text is not an index of this model. */
static int32_t find_index(const leat_model *model, const char *text, size_t length) {
    char *end = NULL;
    const long index = strtol(text, &end, 10);
    const int32_t first = strcmp(model->class_name, "Sequential") == 0 ? 1 : 0;
    const long count = model->member_count - first;
    if (length == 0 || end != text + length || index < -count || index >= count) return -1;
    return first + (int32_t)(index < 0 ? index + count : index);
}

/* Finds a member by a name with or without the number of a call (-1: none was given). */
static int32_t find_called(const leat_model *model, const char *name, size_t length, int32_t *call) {
    int32_t member = find_part(model, name, length);
    *call = -1;
    if (member < 0) member = find_index(model, name, length);
    if (member >= 0) return member;
    const size_t digits = digits_at_end(name, length);
    if (digits == 0) return -1;
    *call = (int32_t)strtol(name + length - digits, NULL, 10);
    member = find_part(model, name, length - digits - 1);
    return member >= 0 ? member : find_index(model, name, length - digits - 1);
}

static leat_status choose_call(const leat_model *model, int32_t member, int32_t *call, leat_error *err) {
    const int32_t count = model->members[member].call_count;
    const char *name = leati_member_name(model, member);
    if (*call < 0 && count == 1) *call = 0;
    if (*call < 0)
        return leati_fail(err, LEAT_EINVAL,
                          "layer '%s' is called %d times: choose a call, from '%s:0' to '%s:%d'", name,
                          (int)count, name, name, (int)count - 1);
    if (*call < count) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "layer '%s' has no call %d: expected 0 to %d", name, (int)*call,
                      (int)count - 1);
}

static leat_status no_such_layer(const leat_model *model, const char *path, leat_error *err) {
    const char **names = leati_calloc((size_t)model->member_count + 1, sizeof *names);
    const char *nearest = NULL;
    for (int32_t i = 0; names && i < model->member_count; ++i) names[i] = leati_member_name(model, i);
    if (names) nearest = leati_nearest(path, names, (size_t)model->member_count);
    leati_free(names);
    return leati_fail(err, LEAT_ENOTFOUND,
                      "model '%s': no layer '%s'%s%s%s; expected a name, an index or "
                      "'outer/inner' for a layer of a nested model (leat summary lists "
                      "the names)",
                      model->name, path, nearest ? ": did you mean '" : "", nearest ? nearest : "",
                      nearest ? "'?" : "");
}

leat_status leati_network_call_named(const leat_model *model, const char *path, int32_t *member,
                                     int32_t *call, leat_error *err) {
    *member = find_called(model, path, strlen(path), call);
    if (*member >= 0) return choose_call(model, *member, call, err);
    for (int32_t i = 0; i < model->member_count; ++i) {
        const char *outer = leati_member_name(model, i);
        const size_t length = strlen(outer);
        if (leati_member_model(&model->members[i]) && strncmp(path, outer, length) == 0 &&
            (path[length] == '/' || path[length] == ':'))
            return leati_fail(
                err, LEAT_ENOTSUP,
                "'%s' is inside the nested model '%s': a model can begin only at its own layers", path,
                outer);
    }
    return no_such_layer(model, path, err);
}

/* ---- Outputs of nested models ---- */

/* Infers the outputs of all calls of a nested model again. */
static leat_status infer_calls(leat_model *model, int32_t member, leat_error *err) {
    leati_member *m = &model->members[member];
    for (int32_t c = 0; c < m->call_count; ++c) {
        leati_shape shapes[LEATI_MAX_INPUTS];
        leati_call *call = &m->calls[c];
        for (int32_t i = 0; i < call->input_count; ++i)
            shapes[i] = leati_network_shape(model, &call->inputs[i]);
        LEATI_TRY(leati_network_infer(m->model, shapes, call->outputs, err));
        call->output_count = m->model->output_count;
    }
    return LEAT_OK;
}

/* Gives a nested model these outputs. */
static leat_status set_outputs(leat_model *inner, int32_t count, const leati_source *outputs,
                               leat_error *err) {
    if (count > LEATI_LAYER_MAX_OUTPUTS)
        return leati_fail(err, LEAT_ENOTSUP,
                          "expected at most %d outputs of the nested model '%s', received %d",
                          LEATI_LAYER_MAX_OUTPUTS, inner->name, (int)count);
    LEATI_TRY(leati_network_finish_again(inner, inner->input_count, inner->inputs, count, outputs, err));
    snprintf(inner->class_name, sizeof inner->class_name, "Model"); /* a Sequential has one output */
    return LEAT_OK;
}

/* Makes tensors of a nested model outputs of it; `tensors` become the model's outputs of a call. */
static leat_status expose(leat_model *model, int32_t member, int32_t call, leati_source *tensors,
                          int32_t count, leat_error *err) {
    leat_model *inner = model->members[member].model;
    leati_source outputs[2 * LEATI_LAYER_MAX_OUTPUTS];
    int32_t indices[LEATI_LAYER_MAX_OUTPUTS], total = inner->output_count;
    if (total > LEATI_LAYER_MAX_OUTPUTS) return set_outputs(inner, total, inner->outputs, err);
    memcpy(outputs, inner->outputs, (size_t)total * sizeof *outputs);
    for (int32_t i = 0; i < count; ++i) {
        int32_t at = 0;
        while (at < total && memcmp(&outputs[at], &tensors[i], sizeof *tensors) != 0) ++at;
        if (at == total) outputs[total++] = tensors[i];
        indices[i] = at;
    }
    if (total > inner->output_count) {
        LEATI_TRY(set_outputs(inner, total, outputs, err));
        LEATI_TRY(infer_calls(model, member, err));
    }
    for (int32_t i = 0; i < count; ++i) tensors[i] = (leati_source){member, call, indices[i]};
    return LEAT_OK;
}

/* Finds the tensors of a layer in the model or, by its path or by its name alone, in its nested models.  *count is 0
 * if there is no such layer. */
static leat_status search(leat_model *model, const char *path, leati_source *out, int32_t *count,
                          leat_error *err) {
    int32_t call = -1;
    const int32_t found = find_called(model, path, strlen(path), &call);
    *count = 0;
    if (found >= 0) {
        LEATI_TRY(choose_call(model, found, &call, err));
        *count = model->members[found].calls[call].output_count;
        for (int32_t i = 0; i < *count; ++i) out[i] = (leati_source){found, call, i};
        return LEAT_OK;
    }
    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        const int32_t outer = find_called(model, path, (size_t)(slash - path), &call);
        if (outer < 0 || !model->members[outer].model) continue;
        LEATI_TRY(search(model->members[outer].model, slash + 1, out, count, err));
        if (*count == 0) continue;
        LEATI_TRY(choose_call(model, outer, &call, err));
        return expose(model, outer, call, out, *count, err);
    }
    char *end = NULL;
    if (strtol(path, &end, 10) != 0 && *end == '\0')
        return LEAT_OK; /* an index is that of the outermost model */
    for (int32_t i = 0; i < model->member_count; ++i) {
        call = -1;
        if (!model->members[i].model) continue;
        LEATI_TRY(search(model->members[i].model, path, out, count, err));
        if (*count == 0) continue;
        LEATI_TRY(choose_call(model, i, &call, err));
        return expose(model, i, call, out, *count, err);
    }
    return LEAT_OK;
}

leat_status leati_network_outputs_of(leat_model *model, const char *path, leati_source *out, int32_t *count,
                                     leat_error *err) {
    LEATI_TRY(search(model, path, out, count, err));
    return *count > 0 ? LEAT_OK : no_such_layer(model, path, err);
}

/* ---- Inputs ---- */

static bool same_source(const leati_source *a, const leati_source *b) {
    return a->layer == b->layer && a->call == b->call && a->tensor == b->tensor;
}

leat_status leati_network_begin_at(leat_model *model, leati_source *source, const char *name,
                                   leat_error *err) {
    const leati_member *from = &model->members[source->layer];
    if (from->layer && leati_layer_is_input(from->layer)) return LEAT_OK;
    const leati_shape shape = leati_network_shape(model, source);
    int32_t added = -1;
    LEATI_TRY(leati_network_add_input(model, name, &shape, &added, err));
    const leati_source input = {.layer = added};
    for (int32_t i = 0; i < model->member_count; ++i)
        for (int32_t c = 0; c < model->members[i].call_count; ++c) {
            const leati_call *call = &model->members[i].calls[c];
            for (int32_t j = 0; j < call->input_count; ++j)
                if (same_source(&call->inputs[j], source)) call->inputs[j] = input;
        }
    *source = input;
    return LEAT_OK;
}

/* ---- Outputs that nothing reads ---- */

static void mark_read(const leat_model *model, int32_t member, bool *read) {
    for (int32_t i = 0; i < model->member_count; ++i)
        for (int32_t c = 0; c < model->members[i].call_count; ++c) {
            const leati_call *call = &model->members[i].calls[c];
            for (int32_t j = 0; j < call->input_count; ++j)
                if (call->inputs[j].layer == member) read[call->inputs[j].tensor] = true;
        }
    for (int32_t i = 0; i < model->output_count; ++i)
        if (model->outputs[i].layer == member) read[model->outputs[i].tensor] = true;
}

static void renumber(leat_model *model, int32_t member, const int32_t *new_index) {
    for (int32_t i = 0; i < model->member_count; ++i)
        for (int32_t c = 0; c < model->members[i].call_count; ++c) {
            const leati_call *call = &model->members[i].calls[c];
            for (int32_t j = 0; j < call->input_count; ++j)
                if (call->inputs[j].layer == member)
                    call->inputs[j].tensor = new_index[call->inputs[j].tensor];
        }
    for (int32_t i = 0; i < model->output_count; ++i)
        if (model->outputs[i].layer == member) model->outputs[i].tensor = new_index[model->outputs[i].tensor];
}

static leat_status drop_unread_of(leat_model *model, int32_t member, leat_error *err) {
    leat_model *inner = model->members[member].model;
    leati_source outputs[LEATI_LAYER_MAX_OUTPUTS];
    bool read[LEATI_LAYER_MAX_OUTPUTS] = {false};
    int32_t new_index[LEATI_LAYER_MAX_OUTPUTS] = {0}, kept = 0;
    mark_read(model, member, read);
    for (int32_t i = 0; i < inner->output_count; ++i) {
        new_index[i] = kept;
        if (read[i]) outputs[kept++] = inner->outputs[i];
    }
    if (kept > 0 && kept < inner->output_count) {
        LEATI_TRY(set_outputs(inner, kept, outputs, err));
        renumber(model, member, new_index);
        LEATI_TRY(infer_calls(model, member, err));
    }
    return leati_network_drop_unread(inner, err);
}

leat_status leati_network_drop_unread(leat_model *model, leat_error *err) {
    for (int32_t i = 0; i < model->member_count; ++i)
        if (model->members[i].model) LEATI_TRY(drop_unread_of(model, i, err));
    return LEAT_OK;
}
