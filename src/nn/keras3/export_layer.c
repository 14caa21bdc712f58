/* SPDX-License-Identifier: Apache-2.0 */
/* Writes layers, cells, initializers, regularizers and constraints in the form of current Keras.  Room: nn. */
#include <string.h>

#include "base/error.h"
#include "nn/activations/activation.h"
#include "nn/config/object.h"
#include "nn/keras3/export_layer.h"
#include "nn/layers/operations/operation.h"
#include "nn/layers/types.h"

static leat_status no_memory(leat_error *err) {
    return leati_fail(err, LEAT_ENOMEM, "no memory for a configuration");
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

json_t *leati_keras3_object(const char *module, const char *class_name, json_t *config) {
    return json_pack("{s:s?, s:s, s:o, s:n}", "module", module, "class_name", class_name, "config", config,
                     "registered_name");
}

json_t *leati_keras3_policy(const char *name) {
    return leati_keras3_object("keras", "DTypePolicy", json_pack("{s:s}", "name", name));
}

/* ---- Classes and keys that differ ---- */

static const struct { const char *old_name, *new_name; } classes[] = {{"ThresholdedReLU", "ReLU"}};

const char *leati_keras3_class(const char *class_name) {
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; ++i)
        if (strcmp(classes[i].old_name, class_name) == 0) return classes[i].new_name;
    return class_name;
}

/* Classes that current Keras does not have, with the way out. */
static const struct {
    const char *class_name, *advice;
} absent[] = {
    {"CuDNNGRU", "use GRU with reset_after, into which leat_model_load_weights converts the weights"},
    {"CuDNNLSTM", "use LSTM, into which leat_model_load_weights converts the weights"},
    {"LocallyConnected1D", "save the model as .h5 for Keras 2.3.1"},
    {"LocallyConnected2D", "save the model as .h5 for Keras 2.3.1"},
};

/* Keys of leat's configurations.  If `to` is NULL, current Keras does not have the key: the key is removed, or moved
 * into the calls of the layer.  A class_name of NULL means all classes. */
static const struct {
    const char *class_name, *from, *to;
} keys[] = {
    {NULL, "as_keras3", NULL},
    {NULL, "as_tf_keras", NULL},
    {NULL, "implementation", NULL},
    {NULL, "return_attention_scores", NULL},
    {NULL, "use_causal_mask", NULL},
    {NULL, "attention_mask", NULL},
    {"AdditiveAttention", "scale_initializer", NULL},
    {"Discretization", "trainable", NULL},
    {"Embedding", "input_length", NULL},
    {"InputLayer", "batch_input_shape", "batch_shape"},
    {NULL, "batch_input_shape", NULL},
    {"LeakyReLU", "alpha", "negative_slope"},
    {"SpatialDropout1D", "noise_shape", NULL},
    {"SpatialDropout1D", "trainable", NULL},
    {"SpatialDropout2D", "noise_shape", NULL},
    {"SpatialDropout2D", "trainable", NULL},
    {"SpatialDropout3D", "noise_shape", NULL},
    {"SpatialDropout3D", "trainable", NULL},
};

static leat_status rename_keys(json_t *config, const char *class_name, leat_error *err) {
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; ++i) {
        if (keys[i].class_name && strcmp(keys[i].class_name, class_name) != 0) continue;
        json_t *value = json_object_get(config, keys[i].from);
        if (value && keys[i].to && json_object_set(config, keys[i].to, value) != 0) return no_memory(err);
        json_object_del(config, keys[i].from);
    }
    return LEAT_OK;
}

/* ---- Objects ---- */

/* The module of the object that is the value of a key. */
static const struct {
    const char *key_end, *module;
} modules[] = {{"initializer", "keras.initializers"},
               {"_regularizer", "keras.regularizers"},
               {"_constraint", "keras.constraints"}};

static const char *module_of(const char *key) {
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; ++i)
        if (ends_with(key, modules[i].key_end)) return modules[i].module;
    return NULL;
}

/* The names that Keras has for VarianceScaling with certain options. */
static const struct {
    const char *class_name, *mode, *distribution;
    double scale;
} scalings[] = {
    {"GlorotUniform", "fan_avg", "uniform", 1},    {"GlorotNormal", "fan_avg", "truncated_normal", 1},
    {"GlorotNormal", "fan_avg", "normal", 1},      {"HeUniform", "fan_in", "uniform", 2},
    {"HeNormal", "fan_in", "truncated_normal", 2}, {"HeNormal", "fan_in", "normal", 2},
    {"LecunUniform", "fan_in", "uniform", 1},      {"LecunNormal", "fan_in", "truncated_normal", 1},
    {"LecunNormal", "fan_in", "normal", 1},
};

static bool has_text(const json_t *config, const char *key, const char *text) {
    const char *value = json_string_value(json_object_get(config, key));
    return value && strcmp(value, text) == 0;
}

/* Returns Keras's name for an initializer, whose configuration loses the options that the name implies. */
static const char *name_of_scaling(const char *class_name, json_t *config) {
    if (strcmp(class_name, "VarianceScaling") != 0) return class_name;
    for (size_t i = 0; i < sizeof scalings / sizeof scalings[0]; ++i) {
        if (json_number_value(json_object_get(config, "scale")) != scalings[i].scale ||
            !has_text(config, "mode", scalings[i].mode) ||
            !has_text(config, "distribution", scalings[i].distribution))
            continue;
        json_object_del(config, "scale");
        json_object_del(config, "mode");
        json_object_del(config, "distribution");
        return scalings[i].class_name;
    }
    return class_name;
}

/* Returns Keras's name for a regularizer, whose configuration loses a factor of 0. */
static const char *name_of_penalty(const char *class_name, json_t *config) {
    const json_t *l1 = json_object_get(config, "l1"), *l2 = json_object_get(config, "l2");
    if (strcmp(class_name, "L1L2") != 0 || (json_number_value(l1) == 0) == (json_number_value(l2) == 0))
        return class_name;
    bool is_l2 = json_number_value(l1) == 0;
    json_object_del(config, is_l2 ? "l1" : "l2");
    return is_l2 ? "L2" : "L1";
}

/* Replaces the name of a custom function by an object that names it. */
static leat_status complete_function(json_t *config, const char *key, json_t *name, leat_error *err) {
    json_t *object = json_pack("{s:s, s:s, s:O, s:s}", "module", "builtins", "class_name", "function",
                               "config", name, "registered_name", "function");
    return json_object_set_new(config, key, object) == 0 ? LEAT_OK : no_memory(err);
}

/* Replaces {"class_name": ..., "config": ...} by the same object with its module.  A custom object has no module: Keras
 * finds it by its registered name. */
static leat_status complete_object(json_t *config, const char *key, json_t *value, leat_error *err) {
    json_t *inner = json_object_get(value, "config");
    json_object_del(inner, "per_sample");
    if (json_object_get(value, "registered_name")) return LEAT_OK;
    const char *class_name = name_of_penalty(name_of_scaling(leati_item_class(value), inner), inner);
    json_t *object = leati_keras3_object(module_of(key), class_name, json_incref(inner));
    return json_object_set_new(config, key, object) == 0 ? LEAT_OK : no_memory(err);
}

static leat_status complete_activation(json_t *config, const char *key, json_t *value, leat_error *err) {
    const char *name = json_string_value(value);
    leati_activation known;
    if (leati_activation_from_name(&known, name, NULL) != LEAT_OK || strchr(name, '>'))
        return complete_function(config, key, value, err);
    if (strcmp(name, "hard_sigmoid") == 0)
        return leati_fail(err, LEAT_ENOTSUP,
                          "%s: current Keras has no function like hard_sigmoid of Keras 2.3.1, which is "
                          "0.2 x + 0.5 between 0 and 1; save the model as .h5 for Keras 2.3.1",
                          key);
    if (strcmp(name, "hard_sigmoid3") != 0) return LEAT_OK;
    return json_object_set_new(config, key, json_string("hard_sigmoid")) == 0 ? LEAT_OK : no_memory(err);
}

static leat_status complete_values(json_t *config, leat_error *err) {
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(config, next, key, value) {
        if (leati_item_class(value)[0] && module_of(key))
            LEATI_TRY(complete_object(config, key, value, err));
        else if (json_is_string(value) && ends_with(key, "activation"))
            LEATI_TRY(complete_activation(config, key, value, err));
        else if (json_is_string(value) && module_of(key))
            LEATI_TRY(complete_function(config, key, value, err));
    }
    return LEAT_OK;
}

/* ---- Layers ---- */

static leat_status export_item(json_t *item, json_t **out, leat_error *err);

static leat_status replace_item(json_t *config, const char *key, leat_error *err) {
    json_t *exported = NULL, *item = json_object_get(config, key);
    if (!leati_item_class(item)[0] || json_object_get(item, "registered_name")) return LEAT_OK;
    LEATI_TRY(export_item(item, &exported, err));
    return json_object_set_new(config, key, exported) == 0 ? LEAT_OK : no_memory(err);
}

/* Exports the layers inside a layer: "layer", "cell", "cells". */
static leat_status export_inner_items(json_t *config, leat_error *err) {
    json_t *cells = json_object_get(config, "cells");
    LEATI_TRY(replace_item(config, "layer", err));
    LEATI_TRY(replace_item(config, "cell", err));
    for (size_t i = 0; i < json_array_size(cells); ++i) {
        json_t *exported = NULL;
        LEATI_TRY(export_item(json_array_get(cells, i), &exported, err));
        if (json_array_set_new(cells, i, exported) != 0) return no_memory(err);
    }
    return LEAT_OK;
}

/* Sets the name and the direction of one layer of a Bidirectional. */
static leat_status set_direction(json_t *item, const char *prefix, const char *name, bool backwards,
                                 leat_error *err) {
    json_t *config = json_object_get(item, "config");
    bool set = json_object_set_new(config, "name", json_sprintf("%s_%s", prefix, name)) == 0 &&
               json_object_set_new(config, "go_backwards", json_boolean(backwards)) == 0;
    return set ? LEAT_OK : no_memory(err);
}

/* Writes a Bidirectional's backward_layer, which 2.3.1 makes from `layer`. */
static leat_status add_backward_layer(json_t *config, leat_error *err) {
    json_t *forward = json_object_get(config, "layer"), *backward = json_deep_copy(forward);
    const bool reversed = json_is_true(json_object_get(json_object_get(forward, "config"), "go_backwards"));
    if (!backward || json_object_set_new(config, "backward_layer", backward) != 0) return no_memory(err);
    const char *name = leati_item_name(backward);
    char text[LEAT_NAME_BYTES];
    memcpy(text, name, strlen(name) + 1);
    LEATI_TRY(set_direction(forward, "forward", text, reversed, err));
    return set_direction(backward, "backward", text, !reversed, err);
}

/* True if the layer inside a TimeDistributed of 2.3.1 makes a mask, which current Keras would lose. */
static bool loses_mask(const char *class_name, const json_t *config) {
    const json_t *inner = json_object_get(config, "layer");
    bool is_masking = strcmp(leati_item_class(inner), "Masking") == 0;
    bool masks = json_is_true(json_object_get(json_object_get(inner, "config"), "mask_zero"));
    return strcmp(class_name, "TimeDistributed") == 0 && (is_masking || masks) &&
           !json_is_true(json_object_get(config, "as_keras3"));
}

static leat_status check_class(const char *class_name, const json_t *config, leat_error *err) {
    if (loses_mask(class_name, config))
        return leati_fail(
            err, LEAT_ENOTSUP,
            "layer: current Keras loses the mask that a layer inside TimeDistributed makes; save "
            "the model as .h5 for Keras 2.3.1");
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; ++i)
        if (strcmp(absent[i].class_name, class_name) == 0)
            return leati_fail(err, LEAT_ENOTSUP, "current Keras has no layer %s; %s", class_name,
                              absent[i].advice);
    const char *interpolation = json_string_value(json_object_get(config, "interpolation"));
    if (strcmp(class_name, "UpSampling2D") == 0 && interpolation && strcmp(interpolation, "nearest") != 0 &&
        !json_is_true(json_object_get(config, "as_keras3")))
        return leati_fail(err, LEAT_ENOTSUP,
                          "interpolation: current Keras samples '%s' at other points than Keras 2.3.1; save "
                          "the model as .h5 for Keras 2.3.1",
                          interpolation);
    if (strcmp(class_name, "ReLU") == 0 && json_number_value(json_object_get(config, "threshold")) < 0)
        return leati_fail(
            err, LEAT_ENOTSUP,
            "threshold: current Keras expects at least 0; save the model as .h5 for Keras 2.3.1");
    if (json_integer_value(json_object_get(config, "num_constants")) > 0)
        return leati_fail(err, LEAT_ENOTSUP,
                          "num_constants: current Keras has no constants of recurrent layers");
    return LEAT_OK;
}

/* Gives a ThresholdedReLU the keys of ReLU, in the order of ReLU. */
static leat_status adapt_threshold(json_t *config, leat_error *err) {
    bool set = json_object_set_new(config, "max_value", json_null()) == 0 &&
               json_object_set_new(config, "negative_slope", json_real(0)) == 0 &&
               json_object_set(config, "threshold", json_object_get(config, "theta")) == 0;
    json_object_del(config, "theta");
    return set ? LEAT_OK : no_memory(err);
}

/* Removes keys of newer or older versions that have no effect, and adds the keys whose absence has. */
static leat_status adapt_keys(json_t *config, const char *class_name, leat_error *err) {
    json_object_del(config, "num_constants");
    if (strcmp(class_name, "ThresholdedReLU") == 0) LEATI_TRY(adapt_threshold(config, err));
    if (json_is_false(json_object_get(config, "rms_scaling"))) json_object_del(config, "rms_scaling");
    json_t *policy = json_object_get(config, "dtype");
    bool is_input = strcmp(class_name, "InputLayer") == 0;
    if (is_input) {
        bool set = json_object_set_new(config, "ragged", json_false()) == 0 &&
                   json_object_set_new(config, "optional", json_false()) == 0;
        return set ? LEAT_OK : no_memory(err);
    }
    if (json_is_string(policy) &&
        json_object_set_new(config, "dtype", leati_keras3_policy(json_string_value(policy))) != 0)
        return no_memory(err);
    return LEAT_OK;
}

static leat_status export_config(const char *class_name, json_t *config, leat_error *err) {
    LEATI_TRY(check_class(class_name, config, err));
    LEATI_TRY(export_inner_items(config, err));
    if (strcmp(class_name, "Bidirectional") == 0) LEATI_TRY(add_backward_layer(config, err));
    LEATI_TRY(rename_keys(config, class_name, err));
    LEATI_TRY(complete_values(config, err));
    return adapt_keys(config, class_name, err);
}

/* Removes the keys that are arguments of the layer's calls. */
static void remove_arguments(json_t *config, const leati_layer_type *type) {
    for (const char *const *name = type->arguments; name && *name; ++name)
        if (name != type->arguments) json_object_del(config, *name);
    for (const char *const *name = type->call_options; name && *name; ++name) json_object_del(config, *name);
}

/* Returns the module of a layer class; NULL for a custom layer, which Keras finds by its registered name. */
static const char *module_of_class(const char *class_name) {
    static const char *const convnext[] = {"LayerScale", "StochasticDepth"};
    for (size_t i = 0; i < sizeof convnext / sizeof convnext[0]; ++i)
        if (strcmp(convnext[i], class_name) == 0) return "keras.src.applications.convnext";
    const leati_layer_type *type = leati_layer_find(class_name);
    return !type ? NULL : type->module ? type->module : "keras.layers";
}

/* Wraps an exported configuration, whose reference is consumed. */
static leat_status wrap(const char *class_name, const char *module, json_t *config, json_t **out,
                        leat_error *err) {
    const char *name = leati_keras3_class(class_name);
    bool is_public = module && strcmp(module, "keras.layers") == 0;
    const char *mark = strrchr(name, '>'); /* the end of a custom layer's package */
    *out = leati_keras3_object(module, mark ? mark + 1 : name, config);
    if (*out && (is_public || json_object_set_new(*out, "registered_name", json_string(name)) == 0))
        return LEAT_OK;
    json_decref(*out);
    *out = NULL;
    return no_memory(err);
}

/* Exports a layer or a cell inside a layer. */
static leat_status export_item(json_t *item, json_t **out, leat_error *err) {
    const char *class_name = leati_item_class(item);
    json_t *config = json_object_get(item, "config");
    LEATI_TRY(leati_prefix(export_config(class_name, config, err), err, "%.64s", class_name));
    return wrap(class_name, module_of_class(class_name), json_incref(config), out, err);
}

/* Exports a function of keras.ops, whose arguments are in its calls. */
static leat_status export_operation(const leati_layer *layer, json_t **out, leat_error *err) {
    const leati_operation_config *c = layer->config;
    json_t *config = json_pack("{s:s}", "name", layer->name);
    bool set = config && (!c->options || json_object_update_missing(config, c->options) == 0);
    *out = json_pack("{s:o, s:s, s:o, s:s}", "module",
                     json_sprintf("keras.src.%s", leati_operation_module(c->function)), "class_name",
                     c->function, "config", config, "registered_name", c->function);
    if (set && *out) return LEAT_OK;
    json_decref(*out);
    *out = NULL;
    return no_memory(err);
}

leat_status leati_keras3_layer(const leati_layer *layer, json_t *inner, json_t **out, leat_error *err) {
    const char *class_name = layer->type->class_name;
    bool is_custom = leati_layer_find(class_name) != layer->type;
    json_t *config = NULL;
    if (layer->type == &leati_layer_operation) return export_operation(layer, out, err);
    leat_status status = leati_layer_config(layer, &config, err);
    if (status == LEAT_OK && inner && json_object_set(config, "layer", inner) != 0) status = no_memory(err);
    json_decref(inner);
    if (status == LEAT_OK) remove_arguments(config, layer->type);
    if (status == LEAT_OK) status = export_config(class_name, config, err);
    if (status == LEAT_OK)
        return wrap(class_name, is_custom ? NULL : module_of_class(class_name), config, out, err);
    json_decref(config);
    *out = NULL;
    return leati_prefix(status, err, "layer '%s' (%s)", layer->name, class_name);
}
