/* SPDX-License-Identifier: Apache-2.0 */
/* Moves leat's own keys of layers beside the configurations of the layers, and back.  Room: nn. */
#include "nn/keras3/own_keys.h"

#include <string.h>

#include "base/error.h"
#include "nn/config/object.h"
#include "nn/keras3/own_calls.h"
#include "nn/keras3/translate.h"

static leat_status no_memory(leat_error *err) {
    return leati_fail(err, LEAT_ENOMEM, "no memory for a configuration");
}

/* The keys that say by which Keras's rules a layer computes. */
static const char *const own_keys[] = {"as_keras3", "as_tf_keras"};

/* Options of current Keras that tf.keras does not have, and the values that compute as tf.keras does. */
static const struct {
    const char *class_name, *key, *value;
} later[] = {
    {"Resizing", "antialias", "false"},           {"Resizing", "data_format", "\"channels_last\""},
    {"Resizing", "fill_mode", "\"constant\""},    {"Resizing", "fill_value", "0.0"},
    {"Resizing", "pad_to_aspect_ratio", "false"}, {"LayerNormalization", "rms_scaling", "false"},
    {"MultiHeadAttention", "use_gate", "false"},  {"MultiHeadAttention", "sliding_window", "null"},
};

static leat_status remove_later(json_t *config, const char *class_name, leat_error *err) {
    for (size_t i = 0; i < sizeof later / sizeof later[0]; ++i) {
        if (strcmp(class_name, later[i].class_name) != 0) continue;
        json_t *value = json_loads(later[i].value, JSON_DECODE_ANY, NULL);
        if (!value) return no_memory(err);
        if (json_equal(json_object_get(config, later[i].key), value)) json_object_del(config, later[i].key);
        json_decref(value);
    }
    return LEAT_OK;
}

/* True for an object that may be a layer. */
static bool is_item(const json_t *value) {
    return leati_item_class(value)[0] && json_is_object(json_object_get(value, "config"));
}

static leat_status set_item_aside(json_t *item, leat_error *err) {
    json_t *config = json_object_get(item, "config"), *kept = json_object();
    bool set = kept != NULL;
    for (size_t i = 0; set && i < sizeof own_keys / sizeof own_keys[0]; ++i) {
        json_t *value = json_object_get(config, own_keys[i]);
        if (!value) continue;
        set = json_object_set(kept, own_keys[i], value) == 0;
        json_object_del(config, own_keys[i]);
    }
    leat_status status = set ? leati_own_calls_set_aside(item, kept, err) : LEAT_OK;
    if (set && json_object_size(kept) > 0) set = json_object_set(item, LEATI_KEPT_KEY, kept) == 0;
    json_decref(kept);
    LEATI_TRY(status);
    return set ? remove_later(config, leati_item_class(item), err) : no_memory(err);
}

static leat_status restore_item(json_t *item, leat_error *err) {
    json_t *config = json_object_get(item, "config"), *kept = json_object_get(item, LEATI_KEPT_KEY);
    for (size_t i = 0; i < sizeof own_keys / sizeof own_keys[0]; ++i) {
        json_t *value = json_object_get(kept, own_keys[i]);
        if (value && json_object_set(config, own_keys[i], value) != 0) return no_memory(err);
    }
    LEATI_TRY(leati_own_calls_restore(item, kept, err));
    json_object_del(item, LEATI_KEPT_KEY);
    return LEAT_OK;
}

/* Calls a function for every item in a JSON value. */
static leat_status for_each_item(json_t *value, leat_status (*change)(json_t *item, leat_error *err),
                                 leat_error *err) {
    const char *key;
    json_t *inner;
    size_t index;
    json_object_foreach(value, key, inner) LEATI_TRY(for_each_item(inner, change, err));
    json_array_foreach(value, index, inner) LEATI_TRY(for_each_item(inner, change, err));
    return is_item(value) ? change(value, err) : LEAT_OK;
}

leat_status leati_own_keys_set_aside(json_t *config, leat_error *err) {
    return for_each_item(config, set_item_aside, err);
}

leat_status leati_own_keys_restore(json_t *config, leat_error *err) {
    return for_each_item(config, restore_item, err);
}

/* Renames the loss in a value: a name, or names in a list or an object. */
static bool rename_loss(json_t *parent, const char *key, size_t index, const json_t *value) {
    static const char before[] = "cosine_proximity", after[] = "cosine_similarity";
    const char *name = json_string_value(value), *inner_key;
    json_t *inner;
    size_t i;
    void *next;
    json_object_foreach_safe((json_t *)(uintptr_t)value, next, inner_key, inner) {
        if (!rename_loss((json_t *)(uintptr_t)value, inner_key, 0, inner)) return false;
    }
    json_array_foreach(value, i, inner) {
        if (!rename_loss((json_t *)(uintptr_t)value, NULL, i, inner)) return false;
    }
    if (!name || strcmp(name, before) != 0) return true;
    return (key ? json_object_set_new(parent, key, json_string(after))
                : json_array_set_new(parent, index, json_string(after))) == 0;
}

leat_status leati_own_keys_adapt_training(json_t *training_config, leat_error *err) {
    json_t *optimizer = json_object_get(json_object_get(training_config, "optimizer_config"), "config");
    const char *arithmetic = json_string_value(json_object_get(training_config, "arithmetic"));
    if (!json_is_true(json_object_get(optimizer, "use_ema"))) {
        json_object_del(optimizer, "ema_momentum");
        json_object_del(optimizer, "ema_overwrite_frequency");
    }
    if (!arithmetic || strcmp(arithmetic, "keras3") != 0) return LEAT_OK;
    return rename_loss(training_config, "loss", 0, json_object_get(training_config, "loss")) ? LEAT_OK
                                                                                             : no_memory(err);
}

bool leati_own_keys_present(const json_t *config) {
    const char *key;
    json_t *inner;
    size_t index;
    json_object_foreach((json_t *)(uintptr_t)config, key,
                        inner) if (leati_own_keys_present(inner)) return true;
    json_array_foreach(config, index, inner) if (leati_own_keys_present(inner)) return true;
    return is_item(config) && json_is_object(json_object_get(config, LEATI_KEPT_KEY));
}
