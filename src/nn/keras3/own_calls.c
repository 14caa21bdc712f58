/* SPDX-License-Identifier: Apache-2.0 */
/* Writes calls of attention layers as tf.keras writes them, and reads them.  Source: tf.keras 2.15,
 * keras/src/engine/functional.py and layers/attention.  Room: nn. */
#include "nn/keras3/own_calls.h"

#include <string.h>

#include "base/error.h"
#include "nn/config/object.h"

static leat_status no_memory(leat_error *err) {
    return leati_fail(err, LEAT_ENOMEM, "no memory for a configuration");
}

/* Arguments that are tensors, in the order of leat's inputs behind the query. */
static const char *const tensor_arguments[] = {"value", "key", "attention_mask"};
/* Arguments that are keys of leat's layers. */
static const char *const flags[] = {"use_causal_mask", "return_attention_scores"};
/* Keys of leat's layers that tf.keras does not have. */
static const char *const keys[] = {"use_causal_mask", "return_attention_scores", "attention_mask", "seed"};

/* Keys of tf.keras's layer, which needs the shapes to make its weights; null where they are not known. */
static const char *const shapes[] = {"query_shape", "value_shape", "key_shape"};
/* Says that the calls of a layer have tensors as arguments. */
static const char separate_key[] = "separate_arguments";

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static bool takes_arguments(const json_t *item) {
    return strcmp(leati_item_class(item), "MultiHeadAttention") == 0;
}

static bool is_attention(const json_t *item) {
    const char *name = leati_item_class(item);
    return takes_arguments(item) || strcmp(name, "Attention") == 0 || strcmp(name, "AdditiveAttention") == 0;
}

/* Moves the second input of a call, if there is one, to the arguments: ["value", 0, 0], without arguments of its
 * own. */
static bool move_to_arguments(json_t *call, const char *name, json_t *arguments) {
    json_t *input = json_array_get(call, 1), *tensor = json_array();
    if (!input) {
        json_decref(tensor);
        return true;
    }
    bool set = tensor != NULL;
    for (size_t i = 0; set && i < 3; ++i) set = json_array_append(tensor, json_array_get(input, i)) == 0;
    set = set && json_object_set(arguments, name, tensor) == 0;
    json_decref(tensor);
    return set && json_array_remove(call, 1) == 0;
}

static leat_status set_call_aside(const json_t *item, json_t *call, json_t *kept, leat_error *err) {
    json_t *arguments = json_array_get(json_array_get(call, 0), 3);
    bool set = arguments != NULL;
    for (size_t i = 0; set && i < COUNT(flags); ++i)
        if (json_is_true(json_object_get(kept, flags[i])))
            set = json_object_set_new(arguments, flags[i], json_true()) == 0;
    for (size_t i = 0; set && takes_arguments(item) && i < COUNT(tensor_arguments); ++i)
        set = move_to_arguments(call, tensor_arguments[i], arguments);
    if (set && takes_arguments(item)) set = json_object_set_new(kept, separate_key, json_true()) == 0;
    return set ? LEAT_OK : no_memory(err);
}

/* Moves the shapes of the first call into the configuration. */
static bool set_shapes(json_t *item, json_t *config) {
    json_t *known = json_object_get(json_object_get(item, "build_config"), "shapes_dict");
    bool set = true;
    for (size_t i = 0; set && i < COUNT(shapes); ++i) {
        json_t *shape = json_object_get(known, shapes[i]);
        if (!shape && i == 2)
            shape = json_object_get(known, shapes[1]); /* without a key, the value is the key */
        set = (shape ? json_object_set(config, shapes[i], shape)
                     : json_object_set_new(config, shapes[i], json_null())) == 0;
    }
    json_object_del(item, "build_config");
    return set;
}

leat_status leati_own_calls_set_aside(json_t *item, json_t *kept, leat_error *err) {
    json_t *config = json_object_get(item, "config"), *call;
    size_t index;
    if (!is_attention(item)) return LEAT_OK;
    for (size_t i = 0; i < COUNT(keys); ++i) {
        json_t *value = json_object_get(config, keys[i]);
        if (value && !json_is_null(value) && json_object_set(kept, keys[i], value) != 0)
            return no_memory(err);
        json_object_del(config, keys[i]);
    }
    if (takes_arguments(item) && !set_shapes(item, config)) return no_memory(err);
    json_array_foreach(json_object_get(item, "inbound_nodes"), index, call)
        LEATI_TRY(set_call_aside(item, call, kept, err));
    return LEAT_OK;
}

/* Appends ["value", 0, 0], an argument of a call, to its inputs. */
static bool move_to_inputs(json_t *call, const char *name, json_t *arguments) {
    json_t *tensor = json_object_get(arguments, name), *input;
    if (!tensor) return true;
    input = json_copy(tensor);
    bool set =
        input && json_array_append_new(input, json_object()) == 0 && json_array_append(call, input) == 0;
    json_decref(input);
    return set && json_object_del(arguments, name) == 0;
}

leat_status leati_own_calls_restore(json_t *item, const json_t *kept, leat_error *err) {
    json_t *config = json_object_get(item, "config"), *call, *input;
    size_t i, index, place;
    if (!is_attention(item)) return LEAT_OK;
    for (i = 0; i < COUNT(shapes); ++i) json_object_del(config, shapes[i]);
    for (i = 0; i < COUNT(keys); ++i) {
        json_t *value = json_object_get(kept, keys[i]);
        if (value && json_object_set(config, keys[i], value) != 0) return no_memory(err);
    }
    json_array_foreach(json_object_get(item, "inbound_nodes"), index, call) {
        json_t *arguments = json_array_get(json_array_get(call, 0), 3);
        for (i = 0; takes_arguments(item) && i < COUNT(tensor_arguments); ++i)
            if (!move_to_inputs(call, tensor_arguments[i], arguments)) return no_memory(err);
        json_array_foreach(call, place, input) for (i = 0; i < COUNT(flags); ++i)
            json_object_del(json_array_get(input, 3), flags[i]);
    }
    return LEAT_OK;
}
