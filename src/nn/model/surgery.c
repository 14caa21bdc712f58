/* SPDX-License-Identifier: Apache-2.0 */
/* New models from the layers of another one: builders that begin with a model, cut and pop.  Room: nn. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/config/name.h"
#include "nn/model/builder.h"
#include "nn/network/surgery.h"

/* ---- Builders ---- */

/* Clones the model, as a functional model that may be changed. */
static leat_status clone_to_change(leat_model **out, const leat_model *model, leat_error *err) {
    LEATI_TRY(leat_model_clone(out, model, true, err));
    (*out)->added_loss[0] = '\0';     /* as in Keras, losses of the whole do not belong to a part */
    json_decref((*out)->layer_order); /* the order of the old layers */
    (*out)->layer_order = NULL;
    return LEAT_OK;
}

leat_status leat_builder_create_from(leat_builder **out, const leat_model *model, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(model, err);
    leat_builder *builder = leati_calloc(1, sizeof *builder);
    if (!builder) return leati_fail_memory(err, sizeof *builder, "a builder");
    leat_status status = clone_to_change(&builder->model, model, err);
    if (status != LEAT_OK) {
        leat_builder_destroy(&builder);
        return status;
    }
    snprintf(builder->model->class_name, sizeof builder->model->class_name, "Model");
    builder->from_model = true;
    *out = builder;
    return LEAT_OK;
}

leat_node *leat_builder_layer(leat_builder *builder, const char *name) {
    leati_source sources[LEATI_LAYER_MAX_OUTPUTS];
    leat_error err = {0};
    int32_t count = 0;
    if (!builder || builder->failure.code != LEAT_OK) return NULL;
    if (!name) {
        leati_fail(&builder->failure, LEAT_EINVAL, "the name of a layer is NULL");
        return NULL;
    }
    if (leati_network_outputs_of(builder->model, name, sources, &count, &err) == LEAT_OK)
        return leati_builder_node(builder, sources[0]);
    builder->failure = err;
    return NULL;
}

/* Returns a node for an input or output of the model that the builder was made from. */
static leat_node *node_at(leat_builder *builder, const char *what, const leati_source *sources, int count,
                          int index) {
    if (!builder || builder->failure.code != LEAT_OK) return NULL;
    if (index >= 0 && index < count) return leati_builder_node(builder, sources[index]);
    leati_fail_index(&builder->failure, what, index, count);
    return NULL;
}

leat_node *leat_builder_input(leat_builder *builder, int index) {
    return builder ? node_at(builder, "input", builder->model->inputs, builder->model->input_count, index)
                   : NULL;
}

leat_node *leat_builder_output(leat_builder *builder, int index) {
    return builder ? node_at(builder, "output", builder->model->outputs, builder->model->output_count, index)
                   : NULL;
}

/* ---- Cut ---- */

/* The inputs or the outputs of a cut model. */
typedef struct side {
    leati_source items[LEATI_NETWORK_MAX_OUTPUTS];
    int32_t count;
} side;

static leat_status append(side *s, const leati_source *source, const char *what, leat_error *err) {
    if (s->count == LEATI_NETWORK_MAX_OUTPUTS)
        return leati_fail(err, LEAT_ENOTSUP, "expected at most %d %s of a model", LEATI_NETWORK_MAX_OUTPUTS,
                          what);
    s->items[s->count++] = *source;
    return LEAT_OK;
}

static leat_status copy_side(side *s, const leati_source *sources, int32_t count, const char *what,
                             leat_error *err) {
    for (int32_t i = 0; i < count; ++i) LEATI_TRY(append(s, &sources[i], what, err));
    return LEAT_OK;
}

static leat_status check_names(const char *const *names, int count, const char *what, leat_error *err) {
    if (count < 0)
        return leati_fail(err, LEAT_EINVAL, "%s: expected at least 0 names, received %d", what, count);
    if (count > 0 && !names)
        return leati_fail(err, LEAT_EINVAL, "%s is NULL, expected %d names", what, count);
    for (int i = 0; i < count; ++i)
        if (!names[i]) return leati_fail(err, LEAT_EINVAL, "%s: name %d is NULL", what, i);
    return LEAT_OK;
}

static leat_status find_outputs(leat_model *model, const char *const *names, int count, side *out,
                                leat_error *err) {
    for (int i = 0; i < count; ++i) {
        leati_source sources[LEATI_LAYER_MAX_OUTPUTS];
        int32_t made = 0;
        LEATI_TRY(leati_network_outputs_of(model, names[i], sources, &made, err));
        LEATI_TRY(copy_side(out, sources, made, "outputs", err));
    }
    return count > 0 ? LEAT_OK : copy_side(out, model->outputs, model->output_count, "outputs", err);
}

/* Replaces a tensor by an InputLayer, also among the outputs. */
static leat_status begin_at(leat_model *model, leati_source source, const char *name, side *inputs,
                            side *outputs, leat_error *err) {
    const leati_source before = source;
    LEATI_TRY(leati_network_begin_at(model, &source, name, err));
    for (int32_t i = 0; i < outputs->count; ++i)
        if (memcmp(&outputs->items[i], &before, sizeof before) == 0) outputs->items[i] = source;
    for (int32_t i = 0; i < inputs->count; ++i)
        if (memcmp(&inputs->items[i], &source, sizeof source) == 0) return LEAT_OK;
    return append(inputs, &source, "inputs", err);
}

/* Makes inputs of the tensors that a layer reads. */
static leat_status begin_with(leat_model *model, const char *name, side *inputs, side *outputs,
                              leat_error *err) {
    int32_t member, call;
    LEATI_TRY(leati_network_call_named(model, name, &member, &call, err));
    const leati_source self = {.layer = member};
    const leati_layer *layer = model->members[member].layer;
    if (layer && leati_layer_is_input(layer)) return begin_at(model, self, name, inputs, outputs, err);
    const int32_t count = model->members[member].calls[call].input_count;
    for (int32_t i = 0; i < count; ++i) {
        char suffix[32] = "_input", input_name[LEAT_NAME_BYTES];
        if (count > 1) snprintf(suffix, sizeof suffix, "_input_%d", (int)i + 1);
        leati_name_append(input_name, leati_member_name(model, member), suffix);
        LEATI_TRY(
            begin_at(model, model->members[member].calls[call].inputs[i], input_name, inputs, outputs, err));
    }
    return LEAT_OK;
}

static leat_status cut(leat_model *model, const char *const *inputs, int input_count,
                       const char *const *outputs, int output_count, leat_error *err) {
    side in = {.count = 0}, out = {.count = 0};
    LEATI_TRY(check_names(inputs, input_count, "inputs", err));
    LEATI_TRY(check_names(outputs, output_count, "outputs", err));
    LEATI_TRY(find_outputs(model, outputs, output_count, &out, err));
    for (int i = 0; i < input_count; ++i) LEATI_TRY(begin_with(model, inputs[i], &in, &out, err));
    if (input_count == 0) LEATI_TRY(copy_side(&in, model->inputs, model->input_count, "inputs", err));
    snprintf(model->class_name, sizeof model->class_name, "Model");
    LEATI_TRY(leati_network_finish_again(model, in.count, in.items, out.count, out.items, err));
    if (output_count > 0) LEATI_TRY(leati_network_drop_unread(model, err));
    return leati_weights_layout(model, err);
}

leat_status leat_model_cut(leat_model **out, const leat_model *model, const char *const *inputs,
                           int input_count, const char *const *outputs, int output_count, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(model, err);
    leat_model *made = NULL;
    leat_status status = clone_to_change(&made, model, err);
    if (status == LEAT_OK) status = cut(made, inputs, input_count, outputs, output_count, err);
    if (status != LEAT_OK) {
        leat_model_destroy(&made);
        return leati_prefix(status, err, "cut");
    }
    *out = made;
    return LEAT_OK;
}

/* ---- Pop ---- */

static leat_status pop(leat_model *model, int count, leat_error *err) {
    const int32_t layers = model->member_count - 1; /* without the InputLayer */
    if (strcmp(model->class_name, "Sequential") != 0)
        return leati_fail(err, LEAT_EINVAL,
                          "model '%s': expected a Sequential, received a functional model: leat_model_cut "
                          "ends such a model at a layer",
                          model->name);
    if (count < 1 || count >= layers)
        return leati_fail(err, LEAT_EINVAL,
                          "model '%s': expected a number of layers to remove from 1 to %d, received %d",
                          model->name, (int)layers - 1, count);
    const leati_source input = model->inputs[0], last = {.layer = layers - count};
    LEATI_TRY(leati_network_finish_again(model, 1, &input, 1, &last, err));
    return leati_weights_layout(model, err);
}

leat_status leat_model_pop(leat_model **out, const leat_model *model, int count, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(model, err);
    leat_model *made = NULL;
    leat_status status = clone_to_change(&made, model, err);
    if (status == LEAT_OK) status = pop(made, count, err);
    if (status != LEAT_OK) {
        leat_model_destroy(&made);
        return leati_prefix(status, err, "pop");
    }
    *out = made;
    return LEAT_OK;
}
