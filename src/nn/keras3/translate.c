/* SPDX-License-Identifier: Apache-2.0 */
/* Translates layers and objects of current Keras to the form of Keras 2.3.1: no modules, types by name, and no
 * keys that 2.3.1 lacks if they have no effect.  Room: nn. */
#include "nn/keras3/translate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "nn/config/object.h"
#include "nn/keras3/own_keys.h"
#include "nn/layers/layer.h"
#include "nn/layers/types.h"

static leat_status no_memory(leat_error *err) {
    return leati_fail(err, LEAT_ENOMEM, "no memory for a configuration");
}

bool leati_is_modern(const json_t *root) {
    const char *version = json_string_value(json_object_get(root, "keras_version"));
    return version ? strtol(version, NULL, 10) >= 3 : json_object_get(root, "module") != NULL;
}

bool leati_is_late(const json_t *root) {
    const char *version = json_string_value(json_object_get(root, "keras_version"));
    if (!version || strncmp(version, "2.", 2) != 0) return false;
    return strstr(version, "-tf") || strtol(version + 2, NULL, 10) >= 4;
}

/* ---- Everywhere ---- */

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static void remove_nulls(json_t *config) {
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(config, next, key, value) {
        if (json_is_null(value)) json_object_del(config, key);
    }
}

static leat_status simplify(json_t *value, bool late, leat_error *err);

/* Simplifies one key of an object. {"class_name": "DTypePolicy", ...} becomes the policy's name. hard_sigmoid,
 * which changed in Keras 3, becomes hard_sigmoid3. */
static leat_status simplify_key(json_t *object, const char *key, json_t *value, bool late, leat_error *err) {
    const char *text = json_string_value(value);
    json_t *config = json_object_get(value, "config"), *name = json_object_get(config, "name");
    if (strcmp(leati_item_class(value), "DTypePolicy") == 0 && json_is_string(name))
        return json_object_set(object, key, name) == 0 ? LEAT_OK : no_memory(err);
    if (!late && text && ends_with(key, "activation") && strcmp(text, "hard_sigmoid") == 0)
        return json_object_set_new(object, key, json_string("hard_sigmoid3")) == 0 ? LEAT_OK : no_memory(err);
    if (ends_with(key, "initializer")) remove_nulls(config);
    if (strcmp(key, "activity_regularizer") == 0 && json_is_object(config) &&
        json_object_set_new(config, "per_sample", json_true()) != 0)
        return no_memory(err);
    return simplify(value, late, err);
}

/* Removes the keys of an object that say where Keras finds the class and how it was called.  A registered name with a
 * package remains: under this name the program may have registered an object of its own. */
static void remove_origin(json_t *object) {
    static const char *const about[] = {"module", "shared_object_id", "build_config", "compile_config"};
    const char *registered = json_string_value(json_object_get(object, "registered_name"));
    for (size_t i = 0; i < sizeof about / sizeof about[0]; ++i) json_object_del(object, about[i]);
    if (!registered || !strchr(registered, '>')) json_object_del(object, "registered_name");
}

/* Simplifies a value and everything in it.  The parser limits the depth of the recursion. */
static leat_status simplify(json_t *value, bool late, leat_error *err) {
    const char *key;
    json_t *item;
    void *next;
    size_t index;
    if (leati_item_class(value)[0]) remove_origin(value);
    if (json_is_object(value))
        json_object_foreach_safe(value, next, key, item) LEATI_TRY(simplify_key(value, key, item, late, err));
    if (json_is_array(value)) json_array_foreach(value, index, item) LEATI_TRY(simplify(item, late, err));
    return LEAT_OK;
}

/* ---- Layers ---- */

static leat_status rename_key(json_t *config, const char *from, const char *to, leat_error *err) {
    json_t *value = json_object_get(config, from);
    if (!value) return LEAT_OK;
    if (json_object_set(config, to, value) != 0) return no_memory(err);
    json_object_del(config, from);
    return LEAT_OK;
}

/* True for a key that layers of tf.keras write though it has no effect: `groups` of convolutions that have no groups,
 * the initializer of a kernel that a separable convolution does not have, shapes that attention derives from its
 * inputs. */
static bool is_silent_late(const char *key, const json_t *value) {
    static const char *const keys[] = {"kernel_initializer", "query_shape", "key_shape", "value_shape"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; ++i)
        if (strcmp(keys[i], key) == 0) return true;
    return strcmp(key, "groups") == 0 && json_integer_value(value) == 1;
}

/* Removes keys without effect that the layer does not have in leat.  The reader refuses the other unknown keys.
 * A seed is not needed, because leat's random numbers differ from Keras's; tf.keras writes groups of 1 for every
 * convolution; renorm_momentum has no effect without
 * "renorm". */
static void remove_keys_without_effect(json_t *config, const leati_layer_type *type, bool late) {
    const char *key;
    json_t *value;
    void *next;
    json_object_foreach_safe(config, next, key, value) {
        bool common = strcmp(key, "name") == 0 || strcmp(key, "dtype") == 0 || strcmp(key, "trainable") == 0;
        bool silent = json_is_null(value) || json_is_false(value) || strcmp(key, "seed") == 0 ||
                      strcmp(key, "renorm_momentum") == 0 || (late && is_silent_late(key, value));
        if (!common && silent && !leati_layer_has_key(type, key)) json_object_del(config, key);
    }
}

/* Removes keys without effect that tf.keras writes: the options of the kernel for a separable convolution, which has
 * two other kernels, and the shapes of a MultiHeadAttention's inputs. */
static void remove_late_keys(json_t *config, const leati_layer_type *type) {
    static const char *const kernel[] = {"kernel_initializer", "kernel_regularizer", "kernel_constraint"};
    static const char *const shapes[] = {"query_shape", "key_shape", "value_shape"};
    for (size_t i = 0; i < sizeof kernel / sizeof kernel[0]; ++i) {
        if (leati_layer_has_key(type, "pointwise_initializer")) json_object_del(config, kernel[i]);
        if (leati_layer_has_key(type, "key_dim")) json_object_del(config, shapes[i]);
    }
}

/* Current Keras has a mask for each gate of an LSTM or GRU if there is recurrent dropout (2.3.1's implementation 1),
 * otherwise one for all gates (2.3.1's default). */
static leat_status set_implementation(json_t *config, const leati_layer_type *type, leat_error *err) {
    const json_t *rate = json_object_get(config, "recurrent_dropout");
    bool separate =
        leati_layer_has_key(type, "implementation") && json_is_number(rate) && json_number_value(rate) != 0.0;
    if (!separate || json_object_get(config, "implementation")) return LEAT_OK;
    return json_object_set_new(config, "implementation", json_integer(1)) == 0 ? LEAT_OK : no_memory(err);
}

static leat_status translate_item(json_t *item, bool late, leat_error *err);

/* Removes a Bidirectional's backward_layer, which Keras 2.3.1 makes from `layer`; it must be what 2.3.1 would
 * make. */
static leat_status check_backward_layer(json_t *config, bool late, leat_error *err) {
    json_t *forward = json_object_get(json_object_get(config, "layer"), "config");
    json_t *backward = json_object_get(json_object_get(config, "backward_layer"), "config");
    const char *name = json_string_value(json_object_get(forward, "name"));
    if (name && strncmp(name, "forward_", 8) == 0 &&
        json_object_set_new(forward, "name", json_string(name + 8)) != 0)
        return no_memory(err);
    if (!backward) return LEAT_OK;
    json_t *expected = json_deep_copy(forward);
    bool is_reversed = json_is_true(json_object_get(expected, "go_backwards"));
    bool set = expected && json_object_set_new(expected, "go_backwards", json_boolean(!is_reversed)) == 0;
    set = set && json_object_set(expected, "name", json_object_get(backward, "name")) == 0;
    leat_status status = set ? simplify(expected, late, err) : no_memory(err);
    if (status == LEAT_OK) status = simplify(backward, late, err);
    bool same = json_equal(expected, backward);
    json_decref(expected);
    LEATI_TRY(status);
    if (!same)
        return leati_fail(err, LEAT_ENOTSUP, "backward_layer: expected a copy of layer that goes backwards");
    json_object_del(config, "backward_layer");
    return LEAT_OK;
}

/* Translates the layers inside a layer. */
static leat_status translate_inner_layers(json_t *config, bool late, leat_error *err) {
    static const char *const keys[] = {"layer", "backward_layer", "cell"};
    size_t index;
    json_t *item;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; ++i)
        if (leati_item_class(json_object_get(config, keys[i]))[0])
            LEATI_TRY(translate_item(json_object_get(config, keys[i]), late, err));
    json_array_foreach(json_object_get(config, "cells"), index, item)
        LEATI_TRY(translate_item(item, late, err));
    return LEAT_OK;
}

/* Gives an axis that is written as a list with one element as a number, where leat has a number, and removes keys
 * without effect.  *as_before becomes true for a BatchNormalization of images, whose moving variance tf.keras computes
 * as 2.3.1 does; the key as_tf_keras says that it uses its moving averages while it is frozen. */
static leat_status translate_late_layer(json_t *config, const leati_layer_type *type, bool *as_before,
                                        leat_error *err) {
    json_t *axes = json_object_get(config, "axis");
    remove_late_keys(config, type);
    if (!json_is_array(axes) || json_array_size(axes) != 1) return LEAT_OK;
    if (type == &leati_layer_batch_normalization && json_integer_value(json_array_get(axes, 0)) == 3)
        *as_before = true;
    if (*as_before && json_object_set_new(config, "as_tf_keras", json_true()) != 0) return no_memory(err);
    for (const leati_field *field = type->fields; field->key; ++field)
        if (strcmp(field->key, "axis") == 0 && field->kind == LEATI_FIELD_INT &&
            json_object_set(config, "axis", json_array_get(axes, 0)) != 0)
            return no_memory(err);
    return LEAT_OK;
}

/* Refuses ragged and sparse tensors.  An optional input is left required: leat needs all inputs. */
static leat_status translate_input(json_t *config, leat_error *err) {
    bool ragged = json_is_true(json_object_get(config, "ragged"));
    json_object_del(config, "optional");
    if (!ragged && !json_is_true(json_object_get(config, "sparse")))
        return rename_key(config, "batch_shape", "batch_input_shape", err);
    return leati_fail(err, LEAT_ENOTSUP,
                      "an Input with %s=True, which leat does not have: expected dense tensors; in Keras, "
                      "build the model without this argument, load the weights into it, and %s",
                      ragged ? "ragged" : "sparse",
                      ragged ? "pad the sequences (mask_zero of Embedding)" : "feed dense arrays");
}

/* Handles a layer with enable_lora().  In an archive its kernel has the product of the LoRA weights, which are not
 * there; an .h5 file, whose layers have no module, has them apart. */
static leat_status remove_lora(const json_t *item, json_t *config, leat_error *err) {
    const json_t *rank = json_object_get(config, "lora_rank");
    if (rank && !json_is_null(rank) && !json_object_get(item, "module"))
        return leati_fail(
            err, LEAT_ENOTSUP,
            "lora_rank: an .h5 file has LoRA weights apart from the kernel, which leat cannot read: "
            "save the model in Keras as .keras, which has the kernel with them");
    json_object_del(config, "lora_rank");
    json_object_del(config, "lora_alpha");
    return LEAT_OK;
}

static leat_status translate_layer(json_t *item, bool late, leat_error *err) {
    json_t *config = json_object_get(item, "config");
    const leati_layer_type *type = leati_layer_find(leati_item_class(item));
    if (!type || !json_is_object(config)) return LEAT_OK;
    LEATI_TRY(translate_inner_layers(config, late, err));
    if (type == &leati_layer_input)
        LEATI_TRY(leati_prefix(translate_input(config, err), err, "layer '%s'", leati_item_name(item)));
    LEATI_TRY(remove_lora(item, config, err));
    if (type == &leati_layer_leaky_relu) LEATI_TRY(rename_key(config, "negative_slope", "alpha", err));
    if (type == &leati_layer_bidirectional) LEATI_TRY(check_backward_layer(config, late, err));
    bool translated = json_object_get(config, "as_keras3") != NULL;
    bool as_before = late && (type == &leati_layer_time_distributed ||
                              type == &leati_layer_multi_head_attention || leati_layer_merges(type) ||
                              leati_layer_has_key(type, "zero_output_for_mask")); /* as in 2.3.1 */
    if (late) LEATI_TRY(translate_late_layer(config, type, &as_before, err));
    if (!translated && leati_layer_has_key(type, "as_keras3") &&
        json_object_set_new(config, "as_keras3", json_boolean(!as_before)) != 0)
        return no_memory(err);
    LEATI_TRY(set_implementation(config, type, err));
    remove_keys_without_effect(config, type, late);
    return LEAT_OK;
}

static leat_status translate_layers(json_t *config, bool functional, bool late, leat_error *err) {
    json_t *layers = json_is_array(config) ? config : json_object_get(config, "layers"), *item;
    size_t index;
    json_array_foreach(layers, index, item) {
        leat_status status = translate_item(item, late, err);
        if (status != LEAT_OK)
            return leati_prefix(status, err, "layer %zu '%.64s' (%.64s)", index, leati_item_name(item),
                                leati_item_class(item));
    }
    return functional ? leati_translate_calls(config, err) : LEAT_OK;
}

/* Returns the type of a layer of KerasHub, or of KerasNLP, its former name; NULL if leat does not have the layer.  A
 * class without the package is the user's own. */
static const leati_layer_type *type_in_hub(const json_t *item) {
    static const char *const packages[] = {"keras_hub>", "keras_nlp>"};
    const char *registered = json_string_value(json_object_get(item, "registered_name"));
    const char *full = registered && strchr(registered, '>') ? registered : leati_item_class(item);
    for (size_t i = 0; i < sizeof packages / sizeof packages[0]; ++i) {
        if (strncmp(full, packages[i], strlen(packages[i])) != 0) continue;
        const char *name = full + strlen(packages[i]);
        char text[LEAT_NAME_BYTES];
        snprintf(text, sizeof text, "%s%s", packages[0], name);
        return strcmp(name, leati_layer_reversible_embedding.class_name) == 0
                   ? &leati_layer_reversible_embedding /* KerasHub's class adds nothing to it */
                   : leati_layer_find(text);
    }
    return NULL;
}

static leat_status translate_item(json_t *item, bool late, leat_error *err) {
    const leati_layer_type *in_hub = type_in_hub(item);
    if (in_hub && json_object_set_new(item, "class_name", json_string(in_hub->class_name)) != 0)
        return no_memory(err);
    /* .h5 files have the name of the class in Python. */
    if (strcmp(leati_item_class(item), "GroupedQueryAttention") == 0 &&
        json_object_set_new(item, "class_name", json_string(leati_layer_group_query_attention.class_name)) !=
            0)
        return no_memory(err);
    /* A Pipeline has the layers of a Sequential. */
    if (strcmp(leati_item_class(item), "Pipeline") == 0 && !late &&
        json_is_array(json_object_get(json_object_get(item, "config"), "layers")) &&
        json_object_set_new(item, "class_name", json_string("Sequential")) != 0)
        return no_memory(err);
    if (!leati_item_is_model(item)) return translate_layer(item, late, err);
    return translate_layers(json_object_get(item, "config"),
                            strcmp(leati_item_class(item), "Sequential") != 0, late, err);
}

/* ---- The batch size ---- */

/* True if a model may compute with the batch size of its configuration: a stateful layer has states for it, and an
 * operation may have it in a shape. */
static bool needs_batch_size(const json_t *value) {
    const json_t *item;
    const char *key;
    size_t index;
    if (json_is_true(json_object_get(value, "stateful")) || leati_item_is_function(value)) return true;
    json_array_foreach(value, index, item) if (needs_batch_size(item)) return true;
    json_object_foreach((json_t *)(uintptr_t)value, key, item) if (needs_batch_size(item)) return true;
    return false;
}

static leat_status remove_size(json_t *config, const char *key, leat_error *err) {
    json_t *shape = json_object_get(config, key);
    bool set = !json_is_integer(json_array_get(shape, 0)) || json_array_set_new(shape, 0, json_null()) == 0;
    return set ? LEAT_OK : no_memory(err);
}

/* Keras stores the size of the first batch that a Sequential model without an Input has seen, and takes batches of
 * other sizes.  A custom layer may have keys of its own that are called batch_shape or build_input_shape. */
static leat_status remove_batch_size(json_t *value, leat_error *err) {
    json_t *item, *config = json_object_get(value, "config");
    const char *key;
    size_t index;
    if (strcmp(leati_item_class(value), leati_layer_input.class_name) == 0)
        LEATI_TRY(remove_size(config, "batch_shape", err));
    if (leati_item_is_model(value)) LEATI_TRY(remove_size(config, "build_input_shape", err));
    LEATI_TRY(remove_size(config, "batch_input_shape", err)); /* tf.keras gives it to the first layer */
    json_array_foreach(value, index, item) LEATI_TRY(remove_batch_size(item, err));
    json_object_foreach(value, key, item) LEATI_TRY(remove_batch_size(item, err));
    return LEAT_OK;
}

/* ---- Wholes ---- */

/* Returns a JSON type's name for messages. */
static const char *type_name(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a string";
    case JSON_INTEGER:
    case JSON_REAL: return "a number";
    case JSON_TRUE:
    case JSON_FALSE: return "true or false";
    case JSON_NULL: return "null";
    case JSON_OBJECT: break;
    }
    return "an object";
}

leat_status leati_translate_model(const json_t *root, json_t **out, leat_error *err) {
    const bool late = leati_is_late(root), any = late || leati_is_modern(root);
    *out = NULL;
    if (!json_is_object(root))
        return leati_fail(
            err, LEAT_EFORMAT,
            "expected the configuration of a model, an object with \"class_name\" and \"config\", "
            "received %s",
            root ? type_name(root) : "nothing");
    const bool restores = !any && leati_own_keys_present(root);
    *out = any || restores ? json_deep_copy(root) : json_incref((json_t *)(uintptr_t)root);
    if (!*out) return no_memory(err);
    if (!any && !restores) return LEAT_OK;
    leat_status status = restores ? leati_own_keys_restore(*out, err) : LEAT_OK;
    if (any && !json_object_get(*out, "keras_version") &&
        json_object_set_new(*out, "keras_version", json_string("3.0")) != 0)
        status = no_memory(err);
    if (status == LEAT_OK && any && !needs_batch_size(*out)) status = remove_batch_size(*out, err);
    if (status == LEAT_OK && any && leati_item_is_model(*out)) status = translate_item(*out, late, err);
    if (status == LEAT_OK && any) status = simplify(*out, late, err);
    if (status == LEAT_OK) return LEAT_OK;
    json_decref(*out);
    *out = NULL;
    return status;
}

/* Renames and removes options of optimizers of tf.keras up to 2.10. */
static leat_status translate_old_options(json_t *config, const char *class_name, leat_error *err) {
    if (strcmp(class_name, "Nadam") == 0) LEATI_TRY(rename_key(config, "decay", "schedule_decay", err));
    if (strcmp(class_name, "Adagrad") == 0) json_object_del(config, "initial_accumulator_value");
    return LEAT_OK;
}

/* Returns the arithmetic of an optimizer of tf.keras.  The optimizers from 2.11 on are those of current Keras, except
 * for repeated indices; the older ones are those of 2.3.1, except for RMSprop with momentum. */
static const char *arithmetic_of(const char *class_name, const json_t *config) {
    bool has_momentum = json_number_value(json_object_get(config, "momentum")) > 0;
    bool is_new = json_object_get(config, "use_ema") != NULL;
    return is_new || (strcmp(class_name, "RMSprop") == 0 && has_momentum) ? "tf.keras" : "keras2";
}

/* Translates the optimizer of tf.keras: no package in the name of the class, a mark for clipnorm, which limits each
 * gradient there, and the arithmetic. */
static leat_status translate_late_optimizer(json_t *optimizer, leat_error *err) {
    static const char package[] = "Custom>";
    const char *name = leati_item_class(optimizer);
    json_t *config = json_object_get(optimizer, "config");
    if (!json_is_object(optimizer) || !json_is_object(config)) return LEAT_OK;
    if (strncmp(name, package, sizeof package - 1) == 0) name += sizeof package - 1;
    const char *arithmetic = arithmetic_of(name, config);
    if (!json_object_get(config, "use_ema")) LEATI_TRY(translate_old_options(config, name, err));
    bool set = json_object_set_new(optimizer, "arithmetic", json_string(arithmetic)) == 0;
    if (set && json_object_get(config, "clipnorm") && !json_object_get(config, "global_clipnorm"))
        set = json_object_set_new(config, "global_clipnorm", json_null()) == 0;
    return set && json_object_set_new(optimizer, "class_name", json_string(name)) == 0 ? LEAT_OK
                                                                                       : no_memory(err);
}

/* Translates a compilation of tf.keras, whose losses are those of current Keras.  In an archive, which only 2.12 and
 * later write, an optimizer may be a name, "adam": it is a new optimizer with its defaults. */
static leat_status translate_late_compilation(json_t *compilation, leat_error *err) {
    const char *name = json_string_value(json_object_get(compilation, "optimizer_config"));
    if (json_object_set_new(compilation, "arithmetic", json_string("keras3")) != 0) return no_memory(err);
    if (name &&
        json_object_set_new(compilation, "optimizer_config",
                            json_pack("{s:s, s:{s:b}}", "class_name", name, "config", "use_ema", 0)) != 0)
        return no_memory(err);
    return translate_late_optimizer(json_object_get(compilation, "optimizer_config"), err);
}

leat_status leati_translate_compilation(const json_t *compile_config, bool late, json_t **out,
                                        leat_error *err) {
    *out = json_deep_copy(compile_config);
    leat_status status = *out ? rename_key(*out, "optimizer", "optimizer_config", err) : no_memory(err);
    if (status == LEAT_OK) status = simplify(*out, late, err);
    if (status == LEAT_OK && late) status = translate_late_compilation(*out, err);
    if (status == LEAT_OK) return LEAT_OK;
    json_decref(*out);
    *out = NULL;
    return status;
}

leat_status leati_translate_kept(json_t *training_config, const json_t *kept, leat_error *err) {
    static const char *const keys[] = {"arithmetic", "optimizer_config"};
    for (size_t i = 0; training_config && i < sizeof keys / sizeof keys[0]; ++i) {
        json_t *value = json_object_get(kept, keys[i]);
        if (value && json_object_set(training_config, keys[i], value) != 0) return no_memory(err);
    }
    return LEAT_OK;
}
