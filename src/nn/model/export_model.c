/* SPDX-License-Identifier: Apache-2.0 */
/* Writes models in the form of current Keras: lists of layers, calls, nested models.  Keys that leat keeps in a layer
 * and current Keras in each call, like use_causal_mask, become arguments of the calls.  Room: nn. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "nn/config/object.h"
#include "nn/keras3/export_layer.h"
#include "nn/layers/operations/operation.h"
#include "nn/layers/recurrence.h"
#include "nn/layers/types.h"
#include "nn/model/export.h"
#include "nn/model/export_masks.h"

static leat_status no_memory(const leat_model *model, leat_error *err) {
    return leati_fail(err, LEAT_ENOMEM, "no memory for the configuration of model '%s'", model->name);
}

/* ---- Shapes and tensors ---- */

static const char *dtype_of(const leati_member *member) {
    if (!member->layer) return "float32";
    return member->layer->mixed ? "bfloat16" : leat_dtype_name(member->layer->dtype);
}

/* Makes {"class_name": "__keras_tensor__", ...}. */
static json_t *tensor_value(const leat_model *model, const leati_source *source) {
    const leati_shape shape = leati_network_shape(model, source);
    return json_pack("{s:s, s:{s:o, s:s, s:[s, i, i]}}", "class_name", "__keras_tensor__", "config", "shape",
                     leati_shape_json(&shape), "dtype", dtype_of(&model->members[source->layer]),
                     "keras_history", leati_member_name(model, source->layer), (int)source->call,
                     (int)source->tensor);
}

static json_t *tensor_list(const leat_model *model, const leati_source *sources, int32_t count) {
    json_t *list = json_array();
    for (int32_t i = 0; list && i < count; ++i) {
        if (json_array_append_new(list, tensor_value(model, &sources[i])) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

/* ---- Calls ---- */

typedef enum argument_style {
    ARGUMENTS_LIST,     /* several inputs are one argument, a list */
    ARGUMENTS_SEPARATE, /* query, value and key are arguments */
    ARGUMENTS_STATES    /* further inputs are the argument initial_state */
} argument_style;

static argument_style style_of(const leati_layer *layer) {
    if (!layer) return ARGUMENTS_LIST;
    if (layer->type == &leati_layer_multi_head_attention || layer->type == &leati_layer_group_query_attention)
        return ARGUMENTS_SEPARATE;
    bool recurrent = leati_recurrence_of(layer) || layer->type == &leati_layer_bidirectional;
    return recurrent ? ARGUMENTS_STATES : ARGUMENTS_LIST;
}

static bool has_true_key(const json_t *config, const char *key) {
    return json_is_true(json_object_get(config, key));
}

/* Makes the keyword arguments that leat keeps as keys of the layer. */
static json_t *key_arguments(const json_t *config) {
    static const char *const names[] = {"use_causal_mask", "return_attention_scores"};
    json_t *kwargs = json_object();
    for (size_t i = 0; kwargs && i < sizeof names / sizeof names[0]; ++i) {
        if (!has_true_key(config, names[i])) continue;
        if (json_object_set_new(kwargs, names[i], json_true()) == 0) continue;
        json_decref(kwargs);
        kwargs = NULL;
    }
    return kwargs;
}

/* Returns the number of states of a cell in a StackedRNNCells. */
static int32_t states_of_cell(const json_t *cell) {
    return strcmp(leati_item_class(cell), "LSTMCell") == 0 ? 2 : 1;
}

static const json_t *stacked_cells(const json_t *config) {
    return json_object_get(json_object_get(json_object_get(config, "cell"), "config"), "cells");
}

/* Makes the argument initial_state of `count` tensors: one tensor or a list; for stacked cells, a list with the tensor
 * or the list of each cell. */
static json_t *states_value(const leat_model *model, const json_t *config, const leati_source *states,
                            int32_t count) {
    const json_t *cells = stacked_cells(config);
    json_t *list = json_array();
    int32_t first = 0;
    if (!cells) json_decref(list);
    if (!cells) return count == 1 ? tensor_value(model, states) : tensor_list(model, states, count);
    for (size_t i = 0; list && i < json_array_size(cells); ++i) {
        int32_t own = states_of_cell(json_array_get(cells, i));
        json_t *value = first + own > count ? NULL
                        : own == 1          ? tensor_value(model, &states[first])
                                            : tensor_list(model, &states[first], own);
        first += own;
        if (json_array_append_new(list, value) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

/* Makes the call of a layer whose type names the arguments. */
static json_t *named_call(const leat_model *model, const leati_layer_type *type, const json_t *config,
                          const leati_call *call) {
    json_t *args = json_array(), *kwargs = json_object();
    const bool reversed = type == &leati_layer_reversible_embedding && call->input_count == 2;
    bool set = args && kwargs;
    int32_t next = 0;
    for (int i = 0; type->arguments[i] && next < call->input_count; ++i) {
        const char *name = type->arguments[i];
        if (i > 0 && leati_layer_has_key(type, name) && !has_true_key(config, name)) continue;
        json_t *value = tensor_value(model, &call->inputs[next++]);
        set = set && (i == 0 ? json_array_append_new(args, value) == 0
                             : json_object_set_new(kwargs, name, value) == 0);
    }
    for (const char *const *name = type->call_options; set && name && *name; ++name) {
        json_t *value = json_object_get(config, *name);
        set = !value || json_object_set(kwargs, *name, value) == 0;
    }
    if (call->inference) set = set && json_object_set_new(kwargs, "training", json_false()) == 0;
    if (reversed) set = set && json_object_set_new(kwargs, "reverse", json_true()) == 0;
    json_t *value = set ? json_pack("{s:O, s:O}", "args", args, "kwargs", kwargs) : NULL;
    json_decref(args);
    json_decref(kwargs);
    return value;
}

/* Makes the call of a layer whose inputs are in the list `args`: {"args": ..., "kwargs": ...}. */
static json_t *call_value(const leat_model *model, const leati_member *member, const json_t *config,
                          const leati_call *call) {
    argument_style style = style_of(member->layer);
    if (member->layer && member->layer->type->arguments)
        return named_call(model, member->layer->type, config, call);
    json_t *args = json_array(), *kwargs = key_arguments(config);
    int32_t count = call->input_count;
    bool set = args && kwargs;
    if (call->inference) set = set && json_object_set_new(kwargs, "training", json_false()) == 0;
    if (call->masked) {
        --count;
        set = set && json_object_set_new(kwargs, "mask", tensor_value(model, &call->inputs[count])) == 0;
    }
    if (style == ARGUMENTS_SEPARATE && has_true_key(config, "attention_mask")) {
        --count;
        set = set &&
              json_object_set_new(kwargs, "attention_mask", tensor_value(model, &call->inputs[count])) == 0;
    }
    if (style == ARGUMENTS_STATES && count > 1) {
        json_t *states = states_value(model, config, call->inputs + 1, count - 1);
        set = set && json_object_set_new(kwargs, "initial_state", states) == 0;
        count = 1;
    }
    if (style == ARGUMENTS_LIST && count > 1)
        set = set && json_array_append_new(args, tensor_list(model, call->inputs, count)) == 0;
    else
        for (int32_t i = 0; set && i < count; ++i)
            set = json_array_append_new(args, tensor_value(model, &call->inputs[i])) == 0;
    json_t *value = set ? json_pack("{s:O, s:O}", "args", args, "kwargs", kwargs) : NULL;
    json_decref(args);
    json_decref(kwargs);
    return value;
}

/* Returns a value of an Operation with the call's tensors in the place of {"input": i} (new reference). */
static json_t *with_tensors(const leat_model *model, const leati_call *call, const json_t *value) {
    const json_t *input = json_is_object(value) ? json_object_get(value, "input") : NULL;
    json_t *out, *item;
    const char *key;
    size_t index;
    if (input && json_integer_value(input) >= 0 && json_integer_value(input) < call->input_count)
        return tensor_value(model, &call->inputs[json_integer_value(input)]);
    if (!json_is_array(value) && !json_is_object(value)) return json_incref((json_t *)(uintptr_t)value);
    out = json_is_array(value) ? json_array() : json_object();
    bool set = out != NULL;
    if (json_is_array(value))
        json_array_foreach(value, index, item) set =
            set && json_array_append_new(out, with_tensors(model, call, item)) == 0;
    if (json_is_object(value))
        json_object_foreach((json_t *)(uintptr_t)value, key, item) set =
            set && json_object_set_new(out, key, with_tensors(model, call, item)) == 0;
    if (set) return out;
    json_decref(out);
    return NULL;
}

/* Makes the call of a function of keras.ops, with its constants. */
static json_t *operation_call(const leat_model *model, const leati_layer *layer, const leati_call *call) {
    const leati_operation_config *c = layer->config;
    json_t *args = c->args ? with_tensors(model, call, c->args) : json_array();
    json_t *kwargs = c->kwargs ? with_tensors(model, call, c->kwargs) : json_object();
    return json_pack("{s:o, s:o}", "args", args, "kwargs", kwargs);
}

static bool is_operation(const leati_member *member) {
    return member->layer && member->layer->type == &leati_layer_operation;
}

static json_t *calls_value(const leat_model *model, const leati_member *member, const json_t *config) {
    json_t *list = json_array();
    bool is_input = member->layer && leati_layer_is_input(member->layer);
    for (int32_t i = 0; list && !is_input && i < member->call_count; ++i) {
        json_t *call = is_operation(member) ? operation_call(model, member->layer, &member->calls[i])
                                            : call_value(model, member, config, &member->calls[i]);
        if (json_array_append_new(list, call) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

/* ---- Build configurations ---- */

static json_t *input_shapes(const leat_model *model, const leati_source *sources, int32_t count) {
    json_t *list = json_array();
    for (int32_t i = 0; list && i < count; ++i) {
        const leati_shape shape = leati_network_shape(model, &sources[i]);
        if (json_array_append_new(list, leati_shape_json(&shape)) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

static int32_t inputs_but_mask(const leati_call *call) {
    return call->input_count - (call->masked ? 1 : 0);
}

/* Makes {"query_shape": [...], ...} of the separate arguments of an attention layer's call. */
static json_t *attention_shapes(const leat_model *model, const leati_call *call) {
    static const char *const names[] = {"query_shape", "value_shape", "key_shape"};
    json_t *shapes = json_object();
    bool set = shapes != NULL;
    for (int32_t i = 0; set && i < call->input_count && i < 3; ++i) {
        const leati_shape shape = leati_network_shape(model, &call->inputs[i]);
        set = json_object_set_new(shapes, names[i], leati_shape_json(&shape)) == 0;
    }
    if (set) return shapes;
    json_decref(shapes);
    return NULL;
}

static json_t *named_shapes(const leat_model *model, const leati_call *call, argument_style style) {
    json_t *shapes = style == ARGUMENTS_SEPARATE ? attention_shapes(model, call) : json_object();
    bool set = shapes != NULL;
    if (set && style == ARGUMENTS_STATES) {
        const leati_shape shape = leati_network_shape(model, &call->inputs[0]);
        const leati_shape first = leati_network_shape(model, &call->inputs[1]);
        int32_t states_count = inputs_but_mask(call) - 1;
        json_t *states = states_count == 1 ? leati_shape_json(&first)
                                           : input_shapes(model, call->inputs + 1, states_count);
        set = json_object_set_new(shapes, "sequences_shape", leati_shape_json(&shape)) == 0 &&
              json_object_set_new(shapes, "initial_state_shape", states) == 0;
    }
    if (set) return json_pack("{s:o}", "shapes_dict", shapes);
    json_decref(shapes);
    return NULL;
}

/* Makes the shapes of the first `count` arguments of a call that has them all. */
static json_t *argument_shapes(const leat_model *model, const leati_call *call, const char *const *arguments,
                               int32_t count) {
    json_t *shapes = json_object();
    bool set = shapes != NULL;
    for (int32_t i = 0; set && i < count; ++i) {
        const leati_shape shape = leati_network_shape(model, &call->inputs[i]);
        char key[LEAT_NAME_BYTES];
        snprintf(key, sizeof key, "%s_shape", arguments[i]);
        set = json_object_set_new(shapes, key, leati_shape_json(&shape)) == 0;
    }
    if (set) return json_pack("{s:o}", "shapes_dict", shapes);
    json_decref(shapes);
    return NULL;
}

/* Makes the build_config of a layer whose type names the arguments. */
static json_t *named_build_config(const leat_model *model, const leati_member *member, const json_t *config) {
    const leati_call *call = &member->calls[0];
    const leati_layer_type *type = member->layer->type;
    const leati_shape shape = leati_network_shape(model, &call->inputs[0]);
    bool all = type->build_arguments > 1;
    for (int32_t i = 1; i < type->build_arguments; ++i)
        all = all &&
              (!leati_layer_has_key(type, type->arguments[i]) || has_true_key(config, type->arguments[i]));
    return all ? argument_shapes(model, call, type->arguments, type->build_arguments)
               : json_pack("{s:o}", "input_shape", leati_shape_json(&shape));
}

/* Makes the build_config of a layer or a nested model from its first call. */
static json_t *build_config(const leat_model *model, const leati_member *member, const json_t *config) {
    const leati_call *call = &member->calls[0];
    if (member->layer && member->layer->type->arguments) return named_build_config(model, member, config);
    argument_style style = style_of(member->layer);
    if (inputs_but_mask(call) == 1 && style != ARGUMENTS_SEPARATE) {
        const leati_shape shape = leati_network_shape(model, &call->inputs[0]);
        return json_pack("{s:o}", "input_shape", leati_shape_json(&shape));
    }
    if (style != ARGUMENTS_LIST) return named_shapes(model, call, style);
    return json_pack("{s:o}", "input_shape",
                     member->layer ? input_shapes(model, call->inputs, call->input_count) : json_null());
}

bool leati_add_attention_shapes(const leat_model *model, const leati_member *member, json_t *item) {
    const bool separate =
        member->layer && member->call_count > 0 && style_of(member->layer) == ARGUMENTS_SEPARATE;
    return !separate ||
           json_object_set_new(item, "build_config",
                               build_config(model, member, json_object_get(item, "config"))) == 0;
}

/* ---- Models ---- */

static leat_status whole_model(const leat_model *model, leati_keras3_form form, json_t **out,
                               leat_error *err);

/* Makes the item of a member in the list of layers. */
static leat_status member_item(const leati_member *member, leati_keras3_form form, json_t **out,
                               leat_error *err) {
    json_t *inner = NULL;
    if (member->model) return whole_model(member->model, form, out, err);
    const leat_model *nested = leati_layer_model(member->layer);
    if (nested) LEATI_TRY(whole_model(nested, LEATI_KERAS3_ARCHIVE, &inner, err));
    return leati_keras3_layer(member->layer, inner, out, err);
}

static bool is_built(const leati_member *member) {
    return member->call_count > 0 && member->calls[0].input_count > 0;
}

/* Removes the default of score_mode: Keras 3.15 takes the text "dot" in an .h5 file for the function of that name. */
static void remove_score_mode(json_t *item) {
    json_t *config = json_object_get(item, "config");
    const char *mode = json_string_value(json_object_get(config, "score_mode"));
    if (mode && strcmp(mode, "dot") == 0) json_object_del(config, "score_mode");
}

/* Writes an item of the list of layers of an .h5 file.  There, the class has its name in Python.  A function of
 * keras.ops keeps its module, without which Keras does not find it. */
static bool adapt_to_h5(const leati_member *member, json_t *item) {
    if (is_operation(member)) return true;
    json_object_del(item, "module");
    json_object_del(item, "registered_name");
    remove_score_mode(item);
    if (member->layer && member->layer->type->module)
        return json_object_set_new(item, "class_name", json_string(member->layer->type->class_name)) == 0;
    if (!member->layer || member->layer->type != &leati_layer_group_query_attention) return true;
    return json_object_set_new(item, "class_name", json_string("GroupedQueryAttention")) == 0;
}

/* Adds what a list of layers says about its items beside their configurations. */
static bool complete_item(const leat_model *model, int32_t index, bool functional, leati_keras3_form form,
                          const json_t *config, json_t *item) {
    const leati_member *member = &model->members[index];
    bool set = true, custom = json_is_null(json_object_get(item, "module"));
    if (form == LEATI_KERAS3_H5) {
        set = adapt_to_h5(member, item);
    } else if (is_built(member) && !custom && !is_operation(member) && !stacked_cells(config)) {
        set = json_object_set_new(item, "build_config", build_config(model, member, config)) == 0;
    }
    if (!functional) return set;
    return set && json_object_set_new(item, "name", json_string(leati_member_name(model, index))) == 0 &&
           json_object_set_new(item, "inbound_nodes", calls_value(model, member, config)) == 0;
}

static leat_status add_members(const leat_model *model, bool functional, leati_keras3_form form, json_t *list,
                               leat_error *err) {
    for (int32_t i = 0; i < model->member_count; ++i) {
        const leati_member *member = &model->members[i];
        json_t *item = NULL, *config = NULL;
        if (member->added) continue; /* current Keras has no AddLoss */
        LEATI_TRY(member_item(member, form, &item, err));
        leat_status status = member->layer ? leati_layer_config(member->layer, &config, err) : LEAT_OK;
        bool set = status == LEAT_OK && complete_item(model, i, functional, form, config, item);
        json_decref(config);
        if (!set) json_decref(item);
        LEATI_TRY(status);
        if (!set || json_array_append_new(list, item) != 0) return no_memory(model, err);
    }
    return LEAT_OK;
}

/* In input_layers and output_layers, Keras counts the calls of a nested Functional from 1, and all others from 0. */
static json_t *history_value(const leat_model *model, const leati_source *source) {
    const leat_model *nested = model->members[source->layer].model;
    bool from_1 = nested && strcmp(nested->class_name, "Sequential") != 0;
    return json_pack("[s, i, i]", leati_member_name(model, source->layer), (int)source->call + from_1,
                     (int)source->tensor);
}

/* Makes input_layers or output_layers: one tensor, a list of several, or a dictionary of these keys. */
static json_t *ends_value(const leat_model *model, const leati_source *sources, int32_t count,
                          const json_t *keys) {
    json_t *object = keys ? json_object() : NULL;
    for (int32_t i = 0; object && i < count; ++i) {
        const char *key = json_string_value(json_array_get(keys, (size_t)i));
        if (json_object_set_new(object, key, history_value(model, &sources[i])) == 0) continue;
        json_decref(object);
        object = NULL;
    }
    if (keys) return object;
    if (count == 1) return history_value(model, sources);
    json_t *list = json_array();
    for (int32_t i = 0; list && i < count; ++i) {
        if (json_array_append_new(list, history_value(model, &sources[i])) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

static bool add_ends(const leat_model *model, json_t *config) {
    return json_object_set_new(config, "input_layers",
                               ends_value(model, model->inputs, model->input_count, model->input_keys)) ==
               0 &&
           json_object_set_new(config, "output_layers",
                               ends_value(model, model->outputs, model->output_count, model->output_keys)) ==
               0;
}

/* Adds what a Sequential has beside its layers. */
static bool add_policy_and_shape(const leat_model *model, json_t *config) {
    if (json_object_set_new(config, "dtype", leati_keras3_policy("float32")) != 0) return false;
    if (model->input_count == 0) return true; /* the shape is not known yet */
    const leati_shape shape = leati_model_input_shape(model, 0);
    return json_object_set_new(config, "build_input_shape", leati_shape_json(&shape)) == 0;
}

/* Makes the value of "config". */
static leat_status model_config(const leat_model *model, leati_keras3_form form, json_t **out,
                                leat_error *err) {
    bool functional = strcmp(model->class_name, "Sequential") != 0;
    json_t *layers = json_array();
    *out = json_object();
    leat_status status =
        layers && *out ? add_members(model, functional, form, layers, err) : no_memory(model, err);
    bool set = status == LEAT_OK && json_object_set_new(*out, "name", json_string(model->name)) == 0 &&
               json_object_set_new(*out, "trainable", json_boolean(model->trainable)) == 0 &&
               json_object_set(*out, "layers", layers) == 0 &&
               (functional ? add_ends(model, *out) : add_policy_and_shape(model, *out));
    json_decref(layers);
    if (status == LEAT_OK && !set) status = no_memory(model, err);
    if (status == LEAT_OK) return LEAT_OK;
    json_decref(*out);
    *out = NULL;
    return status;
}

static leat_status whole_model(const leat_model *model, leati_keras3_form form, json_t **out,
                               leat_error *err) {
    bool functional = strcmp(model->class_name, "Sequential") != 0;
    json_t *config = NULL;
    *out = NULL;
    LEATI_TRY(model_config(model, form, &config, err));
    *out = leati_keras3_object(functional ? "keras.src.models.functional" : "keras",
                               functional ? "Functional" : "Sequential", config);
    if (*out && (!functional || json_object_set_new(*out, "registered_name", json_string("Functional")) == 0))
        return LEAT_OK;
    json_decref(*out);
    *out = NULL;
    return no_memory(model, err);
}

leat_status leati_keras3_model(const leat_model *model, leati_keras3_form form, json_t **out,
                               leat_error *err) {
    *out = NULL;
    if (model->compiled.ready && leati_network_has_added(model))
        return leati_fail(
            err, LEAT_ENOTSUP,
            "current Keras has no add_loss and add_metric of tensors, which this model has: save the "
            "model as .h5, which leat reads, or without its compilation, which leaves them out");
    LEATI_TRY(leati_keras3_check_masks(model, err));
    LEATI_TRY(whole_model(model, form, out, err));
    bool set = true;
    if (form == LEATI_KERAS3_H5) {
        json_object_del(*out, "module");
        json_object_del(*out, "registered_name");
    } else if (model->input_count > 0) {
        const leati_shape shape = leati_model_input_shape(model, 0);
        json_t *value = model->input_count == 1 ? leati_shape_json(&shape) : json_null();
        set = json_object_set_new(*out, "build_config", json_pack("{s:o}", "input_shape", value)) == 0;
    }
    if (set) return LEAT_OK;
    json_decref(*out);
    *out = NULL;
    return no_memory(model, err);
}
