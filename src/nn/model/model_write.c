/* SPDX-License-Identifier: Apache-2.0 */
/* Writes models to Keras 2.3.1's JSON; export_model.c writes that of current Keras.  A Sequential begins with its
 * InputLayer: Keras 2 accepts it, and Keras 3 misreads the shape without it.  Room: nn. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "json/json.h"
#include "nn/keras3/own_keys.h"
#include "nn/keras3/translate.h"
#include "nn/layers/types.h"
#include "nn/model/export.h"
#include "nn/model/model.h"

static leat_status no_memory(const leat_model *model, leat_error *err) {
    return leati_fail(err, LEAT_ENOMEM, "no memory for the configuration of model '%s'", model->name);
}

/* Writes a tensor, with the arguments of the call that reads it (NULL: none).  The calls of a nested model count from
 * 1: in Keras, call 0 is the model's own graph. */
static json_t *source_value(const leat_model *model, const leati_source *source, json_t *arguments) {
    const leati_member *member = &model->members[source->layer];
    json_int_t call = source->call + (member->model ? 1 : 0);
    json_t *value =
        json_pack("[s, I, i]", leati_member_name(model, source->layer), call, (int)source->tensor);
    if (value && arguments && json_array_append(value, arguments) != 0) {
        json_decref(value);
        return NULL;
    }
    return value;
}

static json_t *sources_value(const leat_model *model, int32_t count, const leati_source *sources,
                             json_t *arguments) {
    json_t *list = json_array();
    for (int32_t i = 0; list && i < count; ++i) {
        if (json_array_append_new(list, source_value(model, &sources[i], arguments)) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

static json_t *calls_value(const leat_model *model, const leati_member *member) {
    json_t *list = json_array();
    bool is_input = member->layer && leati_layer_is_input(member->layer);
    for (int32_t i = 0; list && !is_input && i < member->call_count; ++i) {
        const leati_call *call = &member->calls[i];
        int32_t count = call->input_count - (call->masked ? 1 : 0);
        json_t *arguments = call->inference ? json_pack("{s:b}", "training", 0) : json_object();
        bool set = arguments != NULL;
        if (member->layer && member->layer->type == &leati_layer_reversible_embedding && count == 2) {
            count = 1; /* a reversed call has its input twice */
            set = set && json_object_set_new(arguments, "reverse", json_true()) == 0;
        }
        if (call->masked)
            set = set && json_object_set_new(arguments, "mask",
                                             source_value(model, &call->inputs[count], NULL)) == 0;
        json_t *sources = set ? sources_value(model, count, call->inputs, arguments) : NULL;
        json_decref(arguments);
        if (json_array_append_new(list, sources) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

static leat_status inner_config(const leat_model *model, json_t **out, leat_error *err);

static leat_status member_value(const leat_model *model, int32_t index, bool functional, json_t **out,
                                leat_error *err) {
    const leati_member *member = &model->members[index];
    const char *class_name = member->layer ? member->layer->type->class_name : member->model->class_name;
    json_t *config = NULL, *value = json_object();
    leat_status status = value ? LEAT_OK : no_memory(model, err);
    if (status == LEAT_OK)
        status = member->layer ? leati_layer_config(member->layer, &config, err)
                               : inner_config(member->model, &config, err);
    bool set = status == LEAT_OK && json_object_set_new(value, "class_name", json_string(class_name)) == 0;
    set = set && json_object_set(value, "config", config) == 0;
    if (set && functional)
        set = json_object_set_new(value, "name", json_string(leati_member_name(model, index))) == 0 &&
              json_object_set_new(value, "inbound_nodes", calls_value(model, member)) == 0;
    if (set && functional) set = leati_add_attention_shapes(model, member, value);
    json_decref(config);
    if (status == LEAT_OK && !set) status = no_memory(model, err);
    if (status != LEAT_OK) {
        json_decref(value);
        value = NULL;
    }
    *out = value;
    return status;
}

static leat_status add_members(const leat_model *model, bool functional, json_t *list, leat_error *err) {
    for (int32_t i = 0; i < model->member_count; ++i) {
        json_t *value = NULL;
        LEATI_TRY(member_value(model, i, functional, &value, err));
        if (json_array_append_new(list, value) != 0) return no_memory(model, err);
    }
    return LEAT_OK;
}

/* Makes the value of "config". */
static leat_status inner_config(const leat_model *model, json_t **out, leat_error *err) {
    bool functional = strcmp(model->class_name, "Sequential") != 0, set;
    json_t *config = json_object(), *layers = json_array();
    leat_status status =
        config && layers ? add_members(model, functional, layers, err) : no_memory(model, err);
    set = status == LEAT_OK && json_object_set_new(config, "name", json_string(model->name)) == 0;
    if (set && !model->trainable) set = json_object_set_new(config, "trainable", json_false()) == 0;
    set = set && json_object_set(config, "layers", layers) == 0;
    if (set && functional)
        set = json_object_set_new(config, "input_layers",
                                  sources_value(model, model->input_count, model->inputs, NULL)) == 0 &&
              json_object_set_new(config, "output_layers",
                                  sources_value(model, model->output_count, model->outputs, NULL)) == 0;
    if (set && model->input_keys) set = json_object_set(config, LEATI_INPUT_KEYS, model->input_keys) == 0;
    if (set && model->output_keys) set = json_object_set(config, LEATI_OUTPUT_KEYS, model->output_keys) == 0;
    json_decref(layers);
    if (status == LEAT_OK && !set) status = no_memory(model, err);
    if (status != LEAT_OK) {
        json_decref(config);
        config = NULL;
    }
    *out = config;
    return status;
}

leat_status leati_model_config(const leat_model *model, json_t **out, leat_error *err) {
    json_t *config = NULL;
    *out = NULL;
    LEATI_TRY(inner_config(model, &config, err));
    *out = json_pack("{s:s, s:o}", "class_name", model->class_name, "config", config);
    return *out ? LEAT_OK : no_memory(model, err);
}

leat_status leat_model_to_json(const leat_model *model, char **out, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(model, err);
    json_t *root = NULL;
    bool set = true;
    if (model->from_keras3) {
        LEATI_TRY(leati_keras3_model(model, LEATI_KERAS3_ARCHIVE, &root, err));
    } else {
        LEATI_TRY(leati_model_config(model, &root, err));
        set = leati_own_keys_set_aside(root, err) == LEAT_OK &&
              json_object_set_new(root, "keras_version", json_string("2.3.1")) == 0 &&
              json_object_set_new(root, "backend", json_string("tensorflow")) == 0;
    }
    leat_status status = set ? leati_json_write(root, out, err) : no_memory(model, err);
    json_decref(root);
    return status;
}
