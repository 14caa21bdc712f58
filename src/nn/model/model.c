/* SPDX-License-Identifier: Apache-2.0 */
/* Public functions of a finished model: its inputs and outputs, and freezing layers.  Room: nn. */
#include "nn/model/model.h"

#include <fnmatch.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "nn/custom/registry.h"
#include "nn/layers/wrapping.h"

void leat_string_free(char *string) {
    leati_free(string);
}

int leat_model_input_count(const leat_model *model) {
    return model ? model->input_count : 0;
}

int leat_model_output_count(const leat_model *model) {
    return model ? model->output_count : 0;
}

const char *leat_model_input_name(const leat_model *model, int index) {
    return model && index >= 0 && index < model->input_count ? leati_model_input_name(model, index) : NULL;
}

const char *leat_model_output_name(const leat_model *model, int index) {
    return model && index >= 0 && index < model->output_count ? leati_model_output_name(model, index) : NULL;
}

leat_tensor leat_model_input_shape(const leat_model *model, int index) {
    if (!model || index < 0 || index >= model->input_count) return (leat_tensor){0};
    leati_shape shape = leati_model_input_shape(model, index);
    leat_dtype dtype = model->members[model->inputs[index].layer].layer->dtype;
    return leat_tensor_view(dtype, shape.rank, shape.dims, NULL);
}

leat_tensor leat_model_output_shape(const leat_model *model, int index) {
    if (!model || index < 0 || index >= model->output_count) return (leat_tensor){0};
    leati_shape shape = leati_model_output_shape(model, index);
    return leat_tensor_view(LEAT_F32, shape.rank, shape.dims, NULL);
}

leat_status leat_model_input_shape_into(const leat_model *model, int index, leat_tensor *out,
                                        leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = (leat_tensor){0};
    LEATI_GIVEN(model, err);
    if (index < 0 || index >= model->input_count)
        return leati_fail_index(err, "input", index, model->input_count);
    *out = leat_model_input_shape(model, index);
    return LEAT_OK;
}

leat_status leat_model_output_shape_into(const leat_model *model, int index, leat_tensor *out,
                                         leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = (leat_tensor){0};
    LEATI_GIVEN(model, err);
    if (index < 0 || index >= model->output_count)
        return leati_fail_index(err, "output", index, model->output_count);
    *out = leat_model_output_shape(model, index);
    return LEAT_OK;
}

leat_status leat_model_use(leat_model *model, const leat_registry *registry, leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(registry, err);
    const leati_part *before = model->parts;
    model->parts = leati_part_hold(leati_registry_parts(registry));
    leati_part_release(&before);
    return LEAT_OK;
}

/* ---- Freezing ---- */

/* Finds a layer or nested model by name, in this model before its nested models. */
static bool find_member(leat_model *model, const char *name, leat_model **owner, int32_t *index) {
    *owner = model;
    *index = leati_network_find(model, name);
    bool found = *index >= 0;
    for (int32_t i = 0; !found && i < model->member_count; ++i) {
        leat_model *inner = leati_member_model(&model->members[i]);
        found = inner && find_member(inner, name, owner, index);
    }
    return found;
}

static void set_trainable(leati_member *member, bool trainable) {
    if (member->layer)
        leati_layer_set_trainable(member->layer, trainable);
    else
        member->model->trainable = trainable;
}

static leat_status no_such_layer(const leat_model *model, const char *name, leat_error *err) {
    const char **names = leati_calloc((size_t)model->member_count, sizeof *names);
    const char *nearest = NULL;
    for (int32_t i = 0; names && i < model->member_count; ++i) names[i] = leati_member_name(model, i);
    if (names) nearest = leati_nearest(name, names, (size_t)model->member_count);
    leati_free(names);
    if (nearest)
        return leati_fail(err, LEAT_ENOTFOUND, "model '%s': no layer '%s'; did you mean '%s'?", model->name,
                          name, nearest);
    return leati_fail(err, LEAT_ENOTFOUND, "model '%s': no layer '%s'", model->name, name);
}

leat_status leat_model_set_trainable(leat_model *model, const char *layer, bool trainable, leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(layer, err);
    leat_model *owner = NULL;
    int32_t index = -1;
    if (!find_member(model, layer, &owner, &index)) return no_such_layer(model, layer, err);
    leati_member *member = &owner->members[index];
    bool before = member->layer ? member->layer->trainable : member->model->trainable;
    set_trainable(member, trainable);
    leat_status status = leati_weights_reorder(model, err);
    if (status != LEAT_OK) set_trainable(member, before);
    return status;
}

/* A pattern, and the value that the layers it matches get. */
typedef struct matching {
    const char *pattern;
    leati_text path; /* of the model that is searched: "outer/inner/" */
    bool trainable;
} matching;

static bool matches(matching *m, const char *name) {
    const size_t length = m->path.length;
    if (fnmatch(m->pattern, name, 0) == 0) return true;
    if (length == 0) return false;
    leati_text_add(&m->path, "%s", name);
    if (m->path.failed) return false;
    const bool found = fnmatch(m->pattern, m->path.data, 0) == 0;
    m->path.length = length;
    m->path.data[length] = '\0';
    return found;
}

/* Marks a frozen nested model as trainable and freezes its layers, so that the same weights are trained as before. */
static void push_down(leat_model *model) {
    if (model->trainable) return;
    model->trainable = true;
    for (int32_t i = 0; i < model->member_count; ++i) set_trainable(&model->members[i], false);
}

static int visit(matching *m, leat_model *model, bool all, bool changes);

static int visit_inside(matching *m, leat_model *inner, bool all, bool changes) {
    const size_t length = m->path.length;
    leati_text_add(&m->path, "%s/", inner->name);
    if (m->path.failed) return 0;
    const int count = visit(m, inner, all, changes);
    if (m->path.failed) return count;
    m->path.length = length;
    m->path.data[length] = '\0';
    return count;
}

/* Counts the layers of a model that match (all: every layer), and sets them if `changes` is true. */
static int visit(matching *m, leat_model *model, bool all, bool changes) {
    int count = 0;
    if (changes && m->trainable && !model->trainable && visit(m, model, all, false) > 0) push_down(model);
    for (int32_t i = 0; i < model->member_count; ++i) {
        leati_member *member = &model->members[i];
        const bool chosen = all || matches(m, leati_member_name(model, i));
        if (member->model) {
            count += visit_inside(m, member->model, chosen, changes);
        } else if (chosen && !leati_layer_is_input(member->layer)) {
            if (changes) leati_layer_set_trainable(member->layer, m->trainable);
            ++count;
        }
    }
    return count;
}

leat_status leat_model_set_trainable_matching(leat_model *model, const char *pattern, bool trainable,
                                              int *count, leat_error *err) {
    if (count) *count = 0;
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(pattern, err);
    matching m = {.pattern = pattern, .trainable = trainable};
    const int found = visit(&m, model, false, true);
    const bool failed = m.path.failed;
    leati_text_fini(&m.path);
    if (failed) return leati_fail_memory(err, 0, "the path of a layer");
    if (found == 0)
        return leati_fail(err, LEAT_ENOTFOUND,
                          "model '%s': no layer matches the pattern '%s' (leat summary lists the names)",
                          model->name, pattern);
    LEATI_TRY(leati_weights_reorder(model, err));
    if (count) *count = found;
    return LEAT_OK;
}
