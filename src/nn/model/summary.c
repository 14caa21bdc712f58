/* SPDX-License-Identifier: Apache-2.0 */
/* model.summary(): writes Keras 2.3.1's table.  Source: keras/utils/layer_utils.py, print_summary.  Room: nn. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "nn/model/summary.h"
#include "nn/network/network.h"

enum { LINE_BYTES = 512, FIELD_BYTES = LEATI_SUMMARY_FIELD_BYTES };

/* The length of a line, and the columns' ends: of a chain of layers, and of a graph, which shows the connections. */
typedef struct style {
    int length, count;
    int ends[4];
} style;

static const style chain = {65, 3, {29, 55, 65}};
static const style graph = {98, 4, {32, 53, 65, 98}};

static void rule(leati_text *text, const style *s, char c) {
    char line[LINE_BYTES];
    memset(line, c, (size_t)s->length);
    line[s->length] = '\0';
    leati_text_add(text, "%s\n", line);
}

/* Writes a line.  As in Keras, a field is cut at the end of its column, where the next field follows after one
 * blank. */
static void row(leati_text *text, const style *s, const char *const *fields) {
    char line[LINE_BYTES + FIELD_BYTES] = "";
    for (int i = 0; i < s->count; ++i) {
        size_t used = strlen(line), end = (size_t)s->ends[i];
        if (i > 0) line[used - 1] = ' ';
        snprintf(line + used, sizeof line - used, "%s", fields[i]);
        used = strlen(line);
        while (used < end) line[used++] = ' ';
        line[end] = '\0';
    }
    leati_text_add(text, "%s\n", line);
}

/* Writes a number as "1,234,567". */
static const char *grouped(char out[32], int64_t number) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRId64, number), used = 0;
    for (int i = 0; i < length; ++i) {
        if (i > 0 && (length - i) % 3 == 0) out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = '\0';
    return out;
}

static int64_t count_layer(const leati_layer *layer) {
    int64_t count = 0;
    for (int32_t i = 0; i < layer->weight_count; ++i) count += leati_desc_count(&layer->weights[i].desc);
    return count;
}

int64_t leati_summary_params(const leati_member *member) {
    int64_t count = member->layer ? count_layer(member->layer) : 0;
    const leat_model *inner = leati_member_model(member);
    for (int32_t i = 0; inner && i < inner->member_count; ++i)
        count += leati_summary_params(&inner->members[i]);
    return count;
}

/* Writes "(None, 10)", or "[(None, 10), (None, 4)]" for several shapes. */
static void shapes_text(leati_text *out, int32_t count, const leati_shape *shapes) {
    char text[LEATI_SHAPE_TEXT_BYTES];
    for (int32_t i = 0; i < count; ++i)
        leati_text_add(out, "%s%s%s",
                       i > 0       ? ", "
                       : count > 1 ? "["
                                   : "",
                       leati_shape_show(text, &shapes[i]), count > 1 && i + 1 == count ? "]" : "");
}

/* Writes the output shapes of a nested model's own graph, which counts as a call. */
static void own_shapes_text(leati_text *out, const leat_model *model) {
    leati_shape shapes[LEATI_LAYER_MAX_OUTPUTS] = {{0}};
    int32_t count =
        model->output_count < LEATI_LAYER_MAX_OUTPUTS ? model->output_count : LEATI_LAYER_MAX_OUTPUTS;
    for (int32_t i = 0; i < count; ++i) shapes[i] = leati_model_output_shape(model, i);
    shapes_text(out, count, shapes);
}

/* Writes the output shape of all calls, or "multiple"; returns false without memory. */
static bool output_text(char out[FIELD_BYTES], const leati_member *member) {
    leati_text first = {0};
    bool same = true;
    if (member->model) own_shapes_text(&first, member->model);
    bool complete = !first.failed;
    for (int32_t i = 0; i < member->call_count; ++i) {
        leati_text next = {0};
        shapes_text(&next, member->calls[i].output_count, member->calls[i].outputs);
        if (next.failed) complete = false;
        if (first.data && next.data && strcmp(first.data, next.data) != 0) same = false;
        if (first.data)
            leati_text_fini(&next);
        else
            first = next;
    }
    snprintf(out, FIELD_BYTES, "%s", !same ? "multiple" : first.data ? first.data : "");
    leati_text_fini(&first);
    return complete;
}

/* True if the model is a chain: no two calls have one depth, no call has several inputs, no layer is called twice. */
static bool is_chain(const leat_model *model) {
    if (strcmp(model->class_name, "Sequential") == 0) return true;
    for (int32_t i = 0; i < model->schedule_count; ++i) {
        const leati_scheduled_call *turn = &model->schedule[i];
        const leati_call *call = &model->members[turn->member].calls[turn->call];
        if (model->members[turn->member].call_count > 1 || call->input_count > 1) return false;
        for (int32_t j = 0; j < i; ++j) {
            const leati_scheduled_call *other = &model->schedule[j];
            if (model->members[other->member].calls[other->call].depth == call->depth) return false;
        }
    }
    return true;
}

void leati_summary_source(char out[LEATI_SUMMARY_FIELD_BYTES], const leat_model *model,
                          const leati_source *source) {
    const leati_member *member = &model->members[source->layer];
    snprintf(out, FIELD_BYTES, "%s[%d][%d]", leati_member_name(model, source->layer),
             (int)source->call + (member->model ? 1 : 0), (int)source->tensor);
}

static void member_rows(leati_text *text, const style *s, const leat_model *model, int32_t index) {
    const leati_member *member = &model->members[index];
    char name[FIELD_BYTES], shape[FIELD_BYTES], count[32], connection[FIELD_BYTES] = "";
    const char *fields[] = {name, shape, count, connection};
    bool first = true;
    snprintf(name, sizeof name, "%s (%s)", leati_member_name(model, index),
             member->layer ? member->layer->type->class_name : member->model->class_name);
    if (!output_text(shape, member)) text->failed = true;
    snprintf(count, sizeof count, "%" PRId64, leati_summary_params(member));
    for (int32_t i = 0; s->count == 4 && i < member->call_count; ++i) {
        for (int32_t j = 0; j < member->calls[i].input_count; ++j) {
            leati_summary_source(connection, model, &member->calls[i].inputs[j]);
            row(text, s, fields);
            name[0] = shape[0] = count[0] = '\0';
            first = false;
        }
    }
    if (first) row(text, s, fields);
}

static int64_t count_trainable(const leat_model *model) {
    int64_t count = 0;
    for (int32_t i = 0; model->trainable && i < model->member_count; ++i) {
        const leati_layer *layer = model->members[i].layer;
        const leat_model *inner = leati_member_model(&model->members[i]);
        if (inner) count += count_trainable(inner);
        for (int32_t j = 0; layer && layer->trainable && j < layer->weight_count; ++j)
            if (layer->weights[j].trainable) count += leati_desc_count(&layer->weights[j].desc);
    }
    return count;
}

int64_t leati_summary_trainable_params(const leat_model *model) {
    int64_t count = 0;
    if (!model->compiled.ready) return count_trainable(model);
    for (int32_t i = 0; i < model->weights.trainable_count; ++i)
        count += leati_desc_count(&model->weights.entries[i]->desc);
    return count;
}

int32_t leati_summary_first(const leat_model *model) {
    return strcmp(model->class_name, "Sequential") == 0 && model->member_count > 1 ? 1 : 0;
}

static void totals(leati_text *text, const leat_model *model) {
    int64_t trainable = leati_summary_trainable_params(model), all = 0;
    char number[32];
    for (int32_t i = 0; i < model->member_count; ++i) all += leati_summary_params(&model->members[i]);
    leati_text_add(text, "Total params: %s\n", grouped(number, all));
    leati_text_add(text, "Trainable params: %s\n", grouped(number, trainable));
    leati_text_add(text, "Non-trainable params: %s\n", grouped(number, all - trainable));
    int32_t mixed = leati_model_count_mixed(model);
    if (mixed > 0) leati_text_add(text, "Layers of policy " LEATI_MIXED_BFLOAT16 ": %d\n", (int)mixed);
}

leat_status leat_model_summary(const leat_model *model, char **out, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(model, err);
    static const char *const header[] = {"Layer (type)", "Output Shape", "Param #", "Connected to"};
    const style *s = is_chain(model) ? &chain : &graph;
    leati_text text = {0};
    leati_text_add(&text, "Model: \"%s\"\n", model->name);
    rule(&text, s, '_');
    row(&text, s, header);
    rule(&text, s, '=');
    for (int32_t i = leati_summary_first(model); i < model->member_count; ++i) {
        member_rows(&text, s, model, i);
        rule(&text, s, i + 1 == model->member_count ? '=' : '_');
    }
    totals(&text, model);
    rule(&text, s, '_');
    *out = text.failed ? NULL : text.data;
    if (!text.failed) return LEAT_OK;
    leati_text_fini(&text);
    return leati_fail_memory(err, 0, "a summary");
}
