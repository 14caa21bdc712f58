/* SPDX-License-Identifier: Apache-2.0 */
/* Reads models from Keras's JSON: Sequential (also the bare list of old versions), functional, nested.  Room: nn. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "json/json.h"
#include "nn/config/name.h"
#include "nn/config/object.h"
#include "nn/custom/registry.h"
#include "nn/keras3/translate.h"
#include "nn/layers/types.h"
#include "nn/layers/wrapping.h"
#include "nn/model/ancillary.h"
#include "nn/model/model.h"

/* What the reading depends on: the version of Keras whose defaults apply, and the custom layers. */
typedef struct read_context {
    long major, minor;
    const leat_registry *registry; /* or NULL */
} read_context;

static leat_status read_model(leat_model **out, const char *class_name, const json_t *config,
                              const read_context *r, leat_error *err);

static json_t *with_old_presets(const leati_layer_type *type, const json_t *config, const read_context *r);

static json_t *inner_with_old_presets(const json_t *value, const read_context *r);

/* Returns a model's configuration, which may be a list of layers, with the old defaults of its layers (new
 * reference). */
static json_t *model_with_old_presets(const json_t *config, const read_context *r) {
    if (!json_is_object(config)) return inner_with_old_presets(config, r);
    json_t *copy = json_copy((json_t *)(uintptr_t)config);
    const json_t *layers = json_object_get(config, "layers");
    if (!copy || !layers || json_object_set_new(copy, "layers", inner_with_old_presets(layers, r)) == 0)
        return copy;
    json_decref(copy);
    return NULL;
}

/* Returns a layer inside a layer, or a list of such layers, with the old defaults (new reference); NULL without
 * memory. */
static json_t *inner_with_old_presets(const json_t *value, const read_context *r) {
    const json_t *config = json_object_get(value, "config");
    const char *class_name = json_string_value(json_object_get(value, "class_name"));
    const leati_layer_type *type =
        class_name ? leati_registry_find(r->registry, class_name, config, NULL) : NULL;
    json_t *out = json_copy((json_t *)(uintptr_t)value);
    bool set = out != NULL;
    for (size_t i = 0; set && i < json_array_size(out); ++i)
        set = json_array_set_new(out, i, inner_with_old_presets(json_array_get(value, i), r)) == 0;
    if (set && config && leati_item_is_model(value))
        set = json_object_set_new(out, "config", model_with_old_presets(config, r)) == 0;
    else if (set && type && json_is_object(config))
        set = json_object_set_new(out, "config", with_old_presets(type, config, r)) == 0;
    if (set) return out;
    json_decref(out);
    return NULL;
}

static bool set_inner_presets(json_t *copy, const leati_field *field, const read_context *r) {
    const json_t *value = json_object_get(copy, field->key);
    if (field->kind != LEATI_FIELD_LAYER && field->kind != LEATI_FIELD_LAYERS) return true;
    return !value || json_object_set_new(copy, field->key, inner_with_old_presets(value, r)) == 0;
}

/* Returns a layer's configuration with the defaults of the version that wrote it (new reference); NULL without
 * memory. */
static json_t *with_old_presets(const leati_layer_type *type, const json_t *config, const read_context *r) {
    json_t *copy = json_copy((json_t *)(uintptr_t)config);
    for (const leati_field *field = type->fields; copy && field->key; ++field) {
        if (set_inner_presets(copy, field, r)) continue;
        json_decref(copy);
        copy = NULL;
    }
    for (const leati_old_preset *old = type->old_presets; copy && old && old->key; ++old) {
        bool applies = r->major < old->major || (r->major == old->major && r->minor < old->minor);
        if (!applies || json_object_get(copy, old->key)) continue;
        json_t *value = NULL;
        if (leati_json_parse(&value, old->preset, strlen(old->preset), NULL) == LEAT_OK &&
            json_object_set_new(copy, old->key, value) == 0)
            continue;
        json_decref(copy);
        copy = NULL;
    }
    return copy;
}

static leat_status read_layer(leat_model *model, const char *class_name, const json_t *config,
                              const read_context *r, int32_t *member, leat_error *err) {
    const leati_layer_type *type = leati_registry_find(r->registry, class_name, config, err);
    const leati_layer_reader reader = leati_layer_reader_for(r->registry);
    leati_layer *layer = NULL;
    if (!type) return LEAT_ENOTSUP;
    json_t *complete =
        json_is_object(config) ? with_old_presets(type, config, r) : json_incref((json_t *)(uintptr_t)config);
    if (config && !complete) return leati_fail(err, LEAT_ENOMEM, "no memory for a configuration");
    leat_status status = leati_layer_create(&layer, type, complete, &reader, err);
    json_decref(complete);
    return status == LEAT_OK ? leati_network_add_layer(model, &layer, member, err) : status;
}

/* Reads one item of "layers": a layer, or a model that is used as a layer. */
static leat_status read_member(leat_model *model, const json_t *item, const read_context *r, int32_t *member,
                               leat_error *err) {
    const char *class_name = json_string_value(json_object_get(item, "class_name"));
    const json_t *config = json_object_get(item, "config");
    leat_model *inner = NULL;
    if (!class_name) return leati_fail(err, LEAT_EFORMAT, "expected an object with a \"class_name\"");
    if (!leati_item_is_model(item)) return read_layer(model, class_name, config, r, member, err);
    LEATI_TRY(read_model(&inner, class_name, config, r, err));
    return leati_network_add_model(model, &inner, member, err);
}

/* Puts "layer 3 'dense_1' (Dense)" in front of a message; leaves out what the item lacks. */
static leat_status at_item(leat_status status, const json_t *item, size_t index, leat_error *err) {
    const char *class_name = json_string_value(json_object_get(item, "class_name"));
    const char *name = json_string_value(json_object_get(json_object_get(item, "config"), "name"));
    return leati_prefix(status, err, "layer %zu '%.64s' (%.64s)", index, name ? name : "",
                        class_name ? class_name : "no class_name");
}

static leat_status read_members(leat_model *model, const json_t *list, const read_context *r,
                                leat_error *err) {
    if (!json_is_array(list)) return leati_fail(err, LEAT_EFORMAT, "expected a list of layers");
    for (size_t i = 0; i < json_array_size(list); ++i) {
        const json_t *item = json_array_get(list, i);
        int32_t member;
        LEATI_TRY(at_item(read_member(model, item, r, &member, err), item, i, err));
    }
    return LEAT_OK;
}

static leat_status read_name(leat_model *model, const json_t *config, const char *preset, leat_error *err) {
    const json_t *value = json_object_get(config, "name");
    const char *name = value && !json_is_null(value) ? json_string_value(value) : preset;
    LEATI_TRY(leati_name_check(name, err));
    memcpy(model->name, name, strlen(name) + 1);
    model->trainable = !json_is_false(json_object_get(config, "trainable"));
    return LEAT_OK;
}

/* ---- Sequential ---- */

static leat_status read_shape(leati_shape *out, const json_t *list, leat_error *err) {
    size_t count = json_array_size(list);
    bool is_valid = json_is_array(list) && count >= 1 && count <= LEAT_MAX_RANK;
    *out = (leati_shape){.rank = (int32_t)count};
    for (size_t i = 0; is_valid && i < count; ++i) {
        const json_t *value = json_array_get(list, i);
        out->dims[i] = json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
        is_valid = json_is_null(value) || (out->dims[i] > 0 && out->dims[i] <= INT32_MAX);
    }
    return is_valid ? LEAT_OK
                    : leati_fail(err, LEAT_EINVAL,
                                 "build_input_shape: expected a list of numbers above 0, or null");
}

static bool knows_input(const leat_model *model) {
    if (model->member_count == 0) return false;
    const leati_member *first = &model->members[0];
    return first->model ? first->model->input_count > 0 || knows_input(first->model)
                        : first->layer->has_batch_input_shape;
}

static leat_status read_sequential(leat_model *model, const json_t *config, const read_context *r,
                                   leat_error *err) {
    const json_t *layers = json_is_array(config) ? config : json_object_get(config, "layers");
    const json_t *built_shape = json_object_get(config, "build_input_shape");
    leati_shape shape = {0};
    LEATI_TRY(read_name(model, config, "sequential_1", err));
    LEATI_TRY(read_members(model, layers, r, err));
    bool is_unconnected = !knows_input(model) && (!built_shape || json_is_null(built_shape));
    if (is_unconnected && model->member_count > 0)
        return LEAT_OK; /* connected later, when the shape of a call is known */
    if (!knows_input(model)) LEATI_TRY(read_shape(&shape, built_shape, err));
    return leati_sequential_connect(model, &shape, err);
}

/* ---- Functional ---- */

/* The calls of a layer that are not made yet. */
typedef struct pending {
    const json_t *calls; /* inbound_nodes */
    size_t next;
} pending;

static int64_t integer_at(const json_t *list, size_t index) {
    const json_t *value = json_array_get(list, index);
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
}

/* Reads a tensor: ["dense_1", 0, 0] or ["dense_1", 0, 0, {}].  The calls of a nested model count from 1: in Keras,
 * call 0 is the model's own graph.  *known is false if the tensor is not made yet. */
static leat_status read_source(const leat_model *model, const json_t *item, leati_source *out, bool *known,
                               leat_error *err) {
    const char *name = json_string_value(json_array_get(item, 0));
    int64_t call = integer_at(item, 1), tensor = integer_at(item, 2);
    if (!name || call < 0 || tensor < 0 || call > INT32_MAX || tensor > INT32_MAX ||
        json_array_size(item) > 4)
        return leati_fail(err, LEAT_EFORMAT, "expected a tensor as [\"layer\", call, output]");
    int32_t layer = leati_network_find(model, name);
    if (layer < 0) return leati_fail(err, LEAT_EFORMAT, "there is no layer '%s'", name);
    if (model->members[layer].model && --call < 0)
        return leati_fail(err, LEAT_EFORMAT, "expected the calls of the model '%s' to count from 1", name);
    *out = (leati_source){layer, (int32_t)call, (int32_t)tensor};
    *known = leati_network_has(model, out);
    if (!*known && call < model->members[layer].call_count)
        return leati_fail(err, LEAT_EFORMAT, "layer '%s' has no output %lld", name, (long long)tensor);
    return LEAT_OK;
}

/* The arguments of a call that are not inputs. */
typedef struct call_arguments {
    bool inference;     /* training=False */
    bool reverse;       /* reverse=True, of a ReversibleEmbedding: a call with the input twice */
    const json_t *mask; /* the tensor of `mask`; NULL: none */
} call_arguments;

/* Reads the arguments of a call: `training`, which must not be true, `mask` and `reverse`. */
static leat_status read_arguments(const json_t *item, call_arguments *out, leat_error *err) {
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)json_array_get(item, 3), key, value) {
        bool training = strcmp(key, "training") == 0;
        if (strcmp(key, "mask") == 0 && json_is_array(value)) {
            out->mask = value;
            continue;
        }
        if (strcmp(key, "reverse") == 0 && json_is_true(value)) {
            out->reverse = true;
            continue;
        }
        bool off = json_is_false(value) || (json_is_integer(value) && json_integer_value(value) == 0);
        if (!training)
            return leati_fail(err, LEAT_ENOTSUP, "called with the argument '%s', which leat does not support",
                              key);
        if (!off && !json_is_null(value))
            return leati_fail(
                err, LEAT_ENOTSUP,
                "called with training=True, as in fit, also for predictions, which leat does not "
                "support; in Keras, call the layer without the argument, load the weights into "
                "the new model, and save it again");
        out->inference = out->inference || off;
    }
    return LEAT_OK;
}

/* Makes a call, unless one of its inputs is not made yet. */
static leat_status try_call(leat_model *model, int32_t member, const json_t *call, bool *made,
                            leat_error *err) {
    leati_source sources[LEATI_MAX_INPUTS];
    size_t count = json_array_size(call);
    call_arguments arguments = {0};
    if (!json_is_array(call) || count == 0)
        return leati_fail(err, LEAT_EFORMAT, "inbound_nodes: expected lists of tensors");
    if (count > LEATI_MAX_INPUTS)
        return leati_fail(
            err, LEAT_ENOTSUP,
            "layer '%s': has %zu inputs, and leat's layers have at most %d; in Keras, join them in "
            "groups of at most 64, then the groups, and save the model again",
            leati_member_name(model, member), count, LEATI_MAX_INPUTS);
    *made = true;
    for (size_t i = 0; i < count && *made; ++i) {
        LEATI_TRY(read_source(model, json_array_get(call, i), &sources[i], made, err));
        LEATI_TRY(leati_prefix(read_arguments(json_array_get(call, i), &arguments, err), err, "layer '%s'",
                               leati_member_name(model, member)));
    }
    if (*made && arguments.reverse) {
        const leati_layer *layer = model->members[member].layer;
        if (!layer || layer->type != &leati_layer_reversible_embedding || count != 1)
            return leati_fail(err, LEAT_ENOTSUP,
                              "layer '%s': called with the argument 'reverse', which leat supports for one "
                              "input of a ReversibleEmbedding",
                              leati_member_name(model, member));
        sources[count++] = sources[0];
    }
    if (arguments.mask && count == LEATI_MAX_INPUTS)
        return leati_fail(err, LEAT_ENOTSUP, "expected at most %d inputs and no mask", LEATI_MAX_INPUTS);
    if (*made && arguments.mask) LEATI_TRY(read_source(model, arguments.mask, &sources[count], made, err));
    if (!*made) return LEAT_OK;
    if (arguments.mask)
        LEATI_TRY(leati_network_call_masked(model, member, (int32_t)count + 1, sources, err));
    else
        LEATI_TRY(leati_network_call(model, member, (int32_t)count, sources, err));
    leati_member *called = &model->members[member];
    called->calls[called->call_count - 1].inference = arguments.inference;
    return LEAT_OK;
}

/* Makes all calls that can be made, in one iteration over the layers. */
static leat_status make_possible_calls(leat_model *model, pending *waiting, bool *progress, bool *done,
                                       leat_error *err) {
    *progress = false;
    *done = true;
    for (int32_t i = 0; i < model->member_count; ++i) {
        pending *p = &waiting[i];
        bool made = true;
        while (made && p->next < json_array_size(p->calls)) {
            leat_status status = try_call(model, i, json_array_get(p->calls, p->next), &made, err);
            if (status != LEAT_OK) return status;
            if (made) ++p->next;
            *progress = *progress || made;
        }
        if (!made) *done = false;
    }
    return LEAT_OK;
}

static leat_status call_all(leat_model *model, const json_t *layers, leat_error *err) {
    pending *waiting = leati_calloc((size_t)model->member_count + 1, sizeof *waiting);
    bool progress = true, done = false;
    leat_status status = waiting ? LEAT_OK : leati_fail_memory(err, sizeof *waiting, "calls");
    for (int32_t i = 0; status == LEAT_OK && i < model->member_count; ++i)
        waiting[i].calls = json_object_get(json_array_get(layers, (size_t)i), "inbound_nodes");
    while (status == LEAT_OK && !done && progress)
        status = make_possible_calls(model, waiting, &progress, &done, err);
    for (int32_t i = 0; status == LEAT_OK && !done && i < model->member_count; ++i)
        if (waiting[i].next < json_array_size(waiting[i].calls))
            status = leati_fail(err, LEAT_EFORMAT, "layer '%s' is called on a tensor that is never made",
                                leati_member_name(model, i));
    leati_free(waiting);
    return status;
}

/* Reads a list of tensors, or a single tensor. */
static leat_status read_sources(const leat_model *model, const json_t *config, const char *key,
                                leati_source **out, int32_t *count, leat_error *err) {
    const json_t *list = json_object_get(config, key);
    bool alone = json_is_string(json_array_get(list, 0));
    size_t items = alone ? 1 : json_array_size(list);
    *out = leati_calloc(items + 1, sizeof **out);
    *count = (int32_t)items;
    if (!*out) return leati_fail_memory(err, items * sizeof **out, key);
    if (!json_is_array(list) || items > INT32_MAX)
        return leati_fail(err, LEAT_EFORMAT, "%s: expected a list of tensors", key);
    for (size_t i = 0; i < items; ++i) {
        bool known = false;
        LEATI_TRY(
            leati_prefix(read_source(model, alone ? list : json_array_get(list, i), &(*out)[i], &known, err),
                         err, "%s", key));
        if (!known)
            return leati_fail(err, LEAT_EFORMAT, "%s: number %zu is a tensor that is never made", key, i);
    }
    return LEAT_OK;
}

/* Takes the keys of a dictionary of inputs or outputs, which nn/keras3 has put beside the list; other values are
 * ignored. */
static void take_keys(json_t **out, const json_t *config, const char *key, int32_t count) {
    json_t *keys = json_object_get(config, key);
    if (json_array_size(keys) != (size_t)count) return;
    for (int32_t i = 0; i < count; ++i)
        if (!json_is_string(json_array_get(keys, (size_t)i))) return;
    *out = json_incref(keys);
}

static leat_status read_functional(leat_model *model, const json_t *config, const read_context *r,
                                   leat_error *err) {
    const json_t *layers = json_object_get(config, "layers");
    leati_source *inputs = NULL, *outputs = NULL;
    int32_t input_count = 0, output_count = 0;
    LEATI_TRY(read_name(model, config, "model_1", err));
    LEATI_TRY(read_members(model, layers, r, err));
    LEATI_TRY(call_all(model, layers, err));
    leat_status status = read_sources(model, config, "input_layers", &inputs, &input_count, err);
    if (status == LEAT_OK)
        status = read_sources(model, config, "output_layers", &outputs, &output_count, err);
    if (status == LEAT_OK)
        status = leati_network_finish_added(model, input_count, inputs, output_count, outputs, err);
    if (status == LEAT_OK) {
        take_keys(&model->input_keys, config, LEATI_INPUT_KEYS, model->input_count);
        take_keys(&model->output_keys, config, LEATI_OUTPUT_KEYS, model->output_count);
    }
    leati_free(inputs);
    leati_free(outputs);
    return status;
}

/* ---- Whole models ---- */

static leat_status read_model(leat_model **out, const char *class_name, const json_t *config,
                              const read_context *r, leat_error *err) {
    bool sequential = strcmp(class_name, "Sequential") == 0;
    if (!json_is_object(config) && !(sequential && json_is_array(config)))
        return leati_fail(err, LEAT_EFORMAT, "%s: expected a configuration, an object", class_name);
    leat_status status = leati_network_create(out, sequential ? "Sequential" : "Model", err);
    if (status == LEAT_OK)
        status = sequential ? read_sequential(*out, config, r, err) : read_functional(*out, config, r, err);
    if (status != LEAT_OK) leat_model_destroy(out);
    return status;
}

leat_status leati_model_read_inner(leat_model **out, const json_t *item, const leat_registry *registry,
                                   leat_error *err) {
    const read_context r = {2, 3, registry}; /* inner_with_old_presets has added older defaults */
    const char *class_name = json_string_value(json_object_get(item, "class_name"));
    *out = NULL;
    LEATI_TRY(leati_prefix(read_model(out, class_name, json_object_get(item, "config"), &r, err), err, "%s",
                           class_name));
    leati_network_forget_keys(*out); /* its calls have lists */
    return LEAT_OK;
}

static read_context read_version(const json_t *root, const leat_registry *registry) {
    const char *text = json_string_value(json_object_get(root, "keras_version"));
    read_context r = {2, 3, registry};
    char *end = NULL;
    if (!text) return r;
    r.major = strtol(text, &end, 10);
    r.minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    return r;
}

/* Reads a configuration in the form of 2.3.1. */
static leat_status read_root(leat_model **out, const json_t *root, const leat_registry *registry,
                             leat_error *err) {
    const char *class_name = json_string_value(json_object_get(root, "class_name"));
    read_context r = read_version(root, registry);
    *out = NULL;
    if (class_name && !leati_item_is_model(root) && json_is_object(json_object_get(root, "config")))
        return leati_fail(err, LEAT_ENOTSUP,
                          "expected a model with \"class_name\" Sequential, Model or Functional, received "
                          "%.64s, a class of "
                          "your own or of a package, which leat cannot build: in Keras, save "
                          "keras.Model(model.inputs, model.outputs)",
                          class_name);
    if (!class_name || !leati_item_is_model(root))
        return leati_fail(
            err, LEAT_EFORMAT,
            "expected a model with \"class_name\" Sequential, Model or Functional, received %s%.64s",
            class_name ? "" : "none", class_name ? class_name : "");
    LEATI_TRY(
        leati_prefix(read_model(out, class_name, json_object_get(root, "config"), &r, err), err, "model"));
    leat_status status = LEAT_OK;
    (*out)->as_keras3 = r.major >= 3;
    if ((*out)->input_count == 0)
        status = leati_fail(
            err, LEAT_EINVAL,
            "model '%s': the shape of its input is missing: expected batch_input_shape in the first "
            "layer, an InputLayer, or build_input_shape",
            (*out)->name);
    if (status == LEAT_OK)
        status = leati_prefix(leati_weights_layout(*out, err), err, "model '%s'", (*out)->name);
    if (status != LEAT_OK) leat_model_destroy(out);
    return status;
}

leat_status leati_model_from_config(leat_model **out, const json_t *root, leat_error *err) {
    return leati_model_from_config_with(out, root, NULL, err);
}

static leat_status read_config(leat_model **out, const json_t *root, const leat_registry *registry,
                               leat_error *err) {
    json_t *translated = NULL;
    *out = NULL;
    LEATI_TRY(leati_prefix(leati_translate_model(root, &translated, err), err, "model"));
    leat_status status = read_root(out, translated, registry, err);
    if (status == LEAT_OK) (*out)->parts = leati_part_hold(leati_registry_parts(registry));
    if (status == LEAT_OK) (*out)->from_keras3 = leati_is_modern(translated);
    if (status == LEAT_OK && (leati_is_modern(translated) || leati_is_late(translated)))
        status = leati_model_store_layer_order(*out, translated, err);
    json_decref(translated);
    if (status != LEAT_OK) leat_model_destroy(out);
    return status;
}

/* Reads a model with what add_loss and add_metric of tf.keras left in it; if leat cannot compute that, reads the model
 * without it, and keeps the reason. */
leat_status leati_model_from_config_with(leat_model **out, const json_t *root, const leat_registry *registry,
                                         leat_error *err) {
    json_t *rest = NULL;
    char added_loss[LEAT_NAME_BYTES];
    leat_error reason = {0};
    *out = NULL;
    LEATI_TRY(leati_without_ancillary(root, &rest, added_loss, err));
    leat_status status = read_config(out, root, registry, rest == root ? err : &reason);
    if (status != LEAT_OK && rest != root) {
        status = read_config(out, rest, registry, err);
        if (status == LEAT_OK) memcpy((*out)->added_loss, added_loss, sizeof added_loss);
        if (status == LEAT_OK)
            snprintf((*out)->added_reason, sizeof(*out)->added_reason, "%s", reason.message);
    }
    json_decref(rest);
    return status;
}

leat_status leat_model_from_json(leat_model **out, const char *json, leat_error *err) {
    return leat_model_from_json_with(out, json, NULL, err);
}

leat_status leat_model_from_json_with(leat_model **out, const char *json, const leat_registry *registry,
                                      leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(json, err);
    json_t *root = NULL;
    LEATI_TRY(leati_json_parse(&root, json, strlen(json), err));
    leat_status status = leati_model_from_config_with(out, root, registry, err);
    json_decref(root);
    return status;
}
