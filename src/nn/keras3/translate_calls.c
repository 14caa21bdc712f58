/* SPDX-License-Identifier: Apache-2.0 */
/* Translates the calls in current Keras's functional models to the form of 2.3.1: [["dense_1", 0, 0, {}], ...] for
 * each call.  Arguments that are not tensors become keys of the layer.  A function that is called as a layer
 * becomes a layer.  Masks that follow from an Embedding or a Masking are removed, as in 2.3.1.  Room: nn. */
#include "nn/keras3/translate.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/config/object.h"
#include "nn/keras3/translate_operation.h"
#include "nn/keras3/translate_tf.h"
#include "nn/layers/operations/operation.h"
#include "nn/layers/types.h"

static leat_status no_memory(leat_error *err) {
    return leati_fail(err, LEAT_ENOMEM, "no memory for a configuration");
}

static bool is_class(const json_t *item, const char *name) {
    return strcmp(leati_item_class(item), name) == 0;
}

static bool is_tensor(const json_t *value) {
    return is_class(value, "__keras_tensor__");
}

static const json_t *history_of(const json_t *tensor) {
    return json_object_get(json_object_get(tensor, "config"), "keras_history");
}

static const json_t *find_item(const json_t *layers, const char *name) {
    for (size_t i = 0; name && i < json_array_size(layers); ++i)
        if (strcmp(leati_item_name(json_array_get(layers, i)), name) == 0) return json_array_get(layers, i);
    return NULL;
}

static const json_t *maker_of(const json_t *layers, const json_t *tensor) {
    return find_item(layers, json_string_value(json_array_get(history_of(tensor), 0)));
}

static const json_t *first_call(const json_t *item) {
    return json_array_get(json_object_get(item, "inbound_nodes"), 0);
}

/* In .h5 files a function has no module, but it has no keys of a layer either. (A list of calls in the form of 2.3.1 is
 * not a function's: it has been translated before.) */
bool leati_item_is_function(const json_t *item) {
    const char *module = json_string_value(json_object_get(item, "module"));
    const json_t *config = json_object_get(item, "config");
    if (module)
        return strncmp(module, "keras.src.ops.", 14) == 0 || strncmp(module, "keras.ops", 9) == 0 ||
               strncmp(module, "keras.src.activations", 21) == 0;
    const bool is_known = leati_operation_module(leati_item_class(item)) != NULL;
    return json_is_object(first_call(item)) && (is_known || json_object_get(config, "name")) &&
           !json_object_get(config, "trainable") && (is_known || !json_object_get(config, "dtype")) &&
           !leati_item_is_model(item);
}

/* ---- Masks ---- */

static const char *const mask_functions[] = {"ConvertToTensor", "NotEqual",     "Any",      "All",
                                             "LogicalAnd",      "ExpandDims",   "Cast",     "Concatenate",
                                             "BroadcastTo",     "Broadcast_to", "OnesLike", "Squeeze",
                                             "LogicalOr",       "ZerosLike"};

static bool is_mask_function(const json_t *item) {
    for (size_t i = 0; i < sizeof mask_functions / sizeof mask_functions[0]; ++i)
        if (leati_item_is_function(item) && is_class(item, mask_functions[i])) return true;
    return false;
}

/* True if a layer that makes a mask is called on this tensor. */
static bool makes_mask_of(const json_t *layers, const json_t *tensor) {
    for (size_t i = 0; i < json_array_size(layers); ++i) {
        const json_t *item = json_array_get(layers, i), *config = json_object_get(item, "config");
        bool makes = is_class(item, "Masking") || json_is_true(json_object_get(config, "mask_zero"));
        const json_t *calls = json_object_get(item, "inbound_nodes");
        for (size_t j = 0; makes && j < json_array_size(calls); ++j) {
            const json_t *input = json_array_get(json_object_get(json_array_get(calls, j), "args"), 0);
            if (json_equal(history_of(input), history_of(tensor))) return true;
        }
    }
    return false;
}

static bool is_implicit_mask(const json_t *layers, const json_t *value, int depth);

static bool are_implicit_masks(const json_t *layers, const json_t *list, int depth) {
    bool all = true;
    for (size_t i = 0; all && i < json_array_size(list); ++i) {
        const json_t *value = json_array_get(list, i);
        if (is_tensor(value)) all = is_implicit_mask(layers, value, depth);
        if (json_is_array(value)) all = are_implicit_masks(layers, value, depth);
    }
    return all;
}

/* True for a mask that leat's layers compute by themselves: x != 0 for the input x of an Embedding or Masking, and
 * functions of such masks. */
static bool is_implicit_mask(const json_t *layers, const json_t *value, int depth) {
    const json_t *maker = maker_of(layers, value), *args = json_object_get(first_call(maker), "args");
    if (!is_mask_function(maker) || depth > 64) return false;
    if (is_class(maker, "OnesLike") || is_class(maker, "ZerosLike"))
        return true; /* for an input without a mask */
    return is_class(maker, "NotEqual") ? makes_mask_of(layers, json_array_get(args, 0))
                                       : are_implicit_masks(layers, args, depth + 1);
}

static bool is_one_of(const char *text, const char *const *names) {
    for (; *names; ++names)
        if (strcmp(*names, text) == 0) return true;
    return false;
}

/* True for a named argument that is a mask of the steps of a sequence, which 2.3.1 computes by itself. */
static bool is_implicit_mask_argument(const json_t *layers, const char *key, const json_t *value) {
    bool mask = strcmp(key, "mask") == 0 || (strlen(key) > 5 && strcmp(key + strlen(key) - 5, "_mask") == 0);
    if (!mask || strcmp(key, "attention_mask") == 0) return false;
    if (is_tensor(value)) return is_implicit_mask(layers, value, 0);
    return json_is_array(value) && are_implicit_masks(layers, value, 0);
}

/* ---- Functions that only make implicit masks ---- */

/* Adds the names of the layers that make the tensors in a value to the object `names`. */
static leat_status add_makers(const json_t *layers, const json_t *value, json_t *names, leat_error *err) {
    size_t index;
    json_t *item;
    const char *key;
    const json_t *maker = is_tensor(value) ? maker_of(layers, value) : NULL;
    if (maker && json_object_set_new(names, leati_item_name(maker), json_true()) != 0) return no_memory(err);
    if (json_is_array(value))
        json_array_foreach(value, index, item) LEATI_TRY(add_makers(layers, item, names, err));
    if (json_is_object(value) && !maker)
        json_object_foreach((json_t *)(uintptr_t)value, key, item)
            LEATI_TRY(add_makers(layers, item, names, err));
    return LEAT_OK;
}

/* Adds the names of the layers on whose tensors an item is called. */
static leat_status add_makers_of_item(const json_t *layers, const json_t *item, json_t *names,
                                      leat_error *err) {
    size_t index;
    json_t *node, *value;
    const char *key;
    json_array_foreach(json_object_get(item, "inbound_nodes"), index, node) {
        LEATI_TRY(add_makers(layers, json_object_get(node, "args"), names, err));
        json_object_foreach(json_object_get(node, "kwargs"), key, value) {
            if (!is_implicit_mask_argument(layers, key, value))
                LEATI_TRY(add_makers(layers, value, names, err));
        }
    }
    return LEAT_OK;
}

/* Finds the items that the model needs: all but functions of masks that nothing but masks is made of. */
static leat_status find_needed(const json_t *config, json_t *names, leat_error *err) {
    const json_t *layers = json_object_get(config, "layers"),
                 *ends = json_object_get(config, "output_layers");
    size_t before = 1, index;
    json_t *item;
    json_array_foreach(ends, index, item) {
        const char *name = json_string_value(json_array_get(item, 0));
        if (name && json_object_set_new(names, name, json_true()) != 0) return no_memory(err);
    }
    for (before = 0; before != json_object_size(names);) {
        before = json_object_size(names);
        json_array_foreach(layers, index, item) {
            if (!is_mask_function(item) || json_object_get(names, leati_item_name(item)))
                LEATI_TRY(add_makers_of_item(layers, item, names, err));
        }
    }
    return LEAT_OK;
}

/* ---- Calls ---- */

static int compare_keys(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Makes the list of the keys of an object, sorted as Keras sorts those of a dictionary of tensors. */
static leat_status sorted_keys(const json_t *object, json_t **out, leat_error *err) {
    size_t count = json_object_size(object), i = 0;
    const char **keys = leati_calloc(count + 1, sizeof *keys), *key;
    json_t *item;
    *out = NULL;
    if (!keys) return leati_fail_memory(err, count * sizeof *keys, "names");
    json_object_foreach((json_t *)(uintptr_t)object, key, item) keys[i++] = key;
    qsort(keys, count, sizeof *keys, compare_keys);
    *out = json_array();
    bool set = *out != NULL;
    for (i = 0; set && i < count; ++i) set = json_array_append_new(*out, json_string(keys[i])) == 0;
    leati_free(keys);
    if (set) return LEAT_OK;
    json_decref(*out);
    *out = NULL;
    return no_memory(err);
}

/* Appends [name, call, output, {}].  The calls of a model count from 1, because in 2.3.1 call 0 is the model's own
 * graph. */
static leat_status append_tensor(const json_t *layers, const json_t *tensor, json_t *out, leat_error *err) {
    const json_t *history = history_of(tensor), *maker = maker_of(layers, tensor);
    const json_t *call = json_array_get(history, 1), *output = json_array_get(history, 2);
    if (!json_is_integer(call) || !json_is_integer(output) || !maker)
        return leati_fail(err, LEAT_EFORMAT,
                          "expected a tensor of a layer of this model in \"keras_history\"");
    json_int_t number = json_integer_value(call);
    if (leati_item_is_model(maker) && number < INT32_MAX) ++number;
    json_t *source = json_pack("[s, I, I, {}]", leati_item_name(maker), number, json_integer_value(output));
    return json_array_append_new(out, source) == 0 ? LEAT_OK : no_memory(err);
}

/* Appends all tensors of an argument, which may be nested lists. */
static leat_status append_all(const json_t *layers, const json_t *value, json_t *out, leat_error *err) {
    if (is_tensor(value)) return append_tensor(layers, value, out, err);
    if (json_is_null(value)) return LEAT_OK;
    if (!json_is_array(value)) {
        const char *class_name = leati_item_class(value);
        return leati_fail(
            err, LEAT_ENOTSUP,
            "called on a value that is not a tensor%s%s%s: expected only outputs of layers; compute the "
            "value inside a custom layer",
            class_name[0] ? " (" : "", class_name, class_name[0] ? ")" : "");
    }
    for (size_t i = 0; i < json_array_size(value); ++i)
        LEATI_TRY(append_all(layers, json_array_get(value, i), out, err));
    return LEAT_OK;
}

/* Makes the list of the names by which a nested model, which is translated already, takes a dictionary: its own keys,
 * or those of its Inputs; the sorted keys of the dictionary where these are others. */
static leat_status order_of_keys(const json_t *item, const json_t *object, json_t **out, leat_error *err) {
    const json_t *config = json_object_get(item, "config"), *ends = json_object_get(config, "input_layers");
    const json_t *keys = json_object_get(config, LEATI_INPUT_KEYS);
    json_t *names = json_array();
    bool named = names && json_array_size(ends) > 0;
    for (size_t i = 0; names && i < json_array_size(ends); ++i) {
        json_t *name = keys ? json_array_get(keys, i) : json_array_get(json_array_get(ends, i), 0);
        named = named && json_is_string(name) && json_object_get(object, json_string_value(name)) &&
                json_array_append(names, name) == 0;
    }
    *out = named ? names : NULL;
    if (named) return LEAT_OK;
    json_decref(names);
    return sorted_keys(object, out, err);
}

/* Appends the inputs of a call; a model may be called on dictionaries, in lists, too. */
static leat_status append_inputs(const json_t *layers, const json_t *item, const json_t *value, json_t *out,
                                 leat_error *err) {
    json_t *keys, *key, *part;
    size_t index;
    leat_status status = LEAT_OK;
    if (!leati_item_is_model(item) || is_tensor(value)) return append_all(layers, value, out, err);
    if (json_is_array(value)) {
        json_array_foreach(value, index, part) LEATI_TRY(append_inputs(layers, item, part, out, err));
        return LEAT_OK;
    }
    if (!json_is_object(value) || leati_item_class(value)[0]) return append_all(layers, value, out, err);
    LEATI_TRY(order_of_keys(item, value, &keys, err));
    json_array_foreach(keys, index, key) {
        if (status == LEAT_OK)
            status = append_inputs(layers, item, json_object_get(value, json_string_value(key)), out, err);
    }
    json_decref(keys);
    return status;
}

/* Named arguments that become inputs, in the order of leat's inputs. */
static const char *const tensor_arguments[] = {"inputs", "x",   "sequences",      "sequence",      "query",
                                               "value",  "key", "attention_mask", "initial_state", NULL};
/* Named arguments that become keys of the layer. */
static const char *const key_arguments[] = {"use_causal_mask", "return_attention_scores", NULL};

/* Prepares the inputs for a mask over pairs of steps, which is the fourth input.  If the call has no key, the value is
 * used as the key. */
static leat_status prepare_mask(json_t *item, json_t *out, leat_error *err) {
    if (json_array_size(out) == 2 && json_array_append(out, json_array_get(out, 1)) != 0)
        return no_memory(err);
    bool set = json_object_set_new(json_object_get(item, "config"), "attention_mask", json_true()) == 0;
    return set ? LEAT_OK : no_memory(err);
}

static leat_status append_mask(const json_t *layers, json_t *item, const json_t *mask, json_t *out,
                               leat_error *err) {
    LEATI_TRY(prepare_mask(item, out, err));
    return append_all(layers, mask, out, err);
}

/* True for a class that is not leat's.  The reader knows the custom layers; it refuses other classes by name, and
 * arguments that a custom layer cannot have. */
static bool is_foreign(const json_t *item) {
    return !leati_layer_find(leati_item_class(item)) && !leati_item_is_model(item) &&
           !leati_item_is_function(item);
}

/* Keeps a mask that is a tensor of the model as an argument of the call: {"mask": ["name", 0, 0]}. */
static leat_status keep_mask(const json_t *layers, const json_t *value, json_t *arguments, leat_error *err) {
    json_t *list = json_array();
    leat_status status = list ? append_tensor(layers, value, list, err) : no_memory(err);
    json_t *source = json_array_get(list, 0);
    bool set = status == LEAT_OK && json_array_remove(source, 3) == 0 &&
               json_object_set(arguments, "mask", source) == 0;
    json_decref(list);
    return status != LEAT_OK || set ? status : no_memory(err);
}

/* True for a dictionary of masks, of which there are none. */
static bool has_no_mask(const json_t *value) {
    const char *key;
    json_t *item;
    bool none = json_is_object(value) && !is_tensor(value);
    json_object_foreach((json_t *)(uintptr_t)value, key, item) none = none && json_is_null(item);
    return none;
}

/* Handles an argument that is not an input.  `training` is ignored: in current Keras, fit, evaluate and predict call
 * a functional model with their own value, which replaces that of each call. */
static leat_status other_argument(const json_t *layers, json_t *item, const char *key, json_t *value,
                                  json_t *out, leat_error *err) {
    json_t *arguments = json_array_get(json_array_get(out, 0), 3);
    if (is_one_of(key, tensor_arguments) || strcmp(key, "training") == 0) return LEAT_OK;
    if (json_is_null(value) || json_is_false(value)) return LEAT_OK;
    if (strcmp(key, "mask") == 0 && has_no_mask(value)) return LEAT_OK;
    if (is_one_of(key, key_arguments))
        return json_object_set(json_object_get(item, "config"), key, value) == 0 ? LEAT_OK : no_memory(err);
    if (is_implicit_mask_argument(layers, key, value)) return LEAT_OK;
    if (arguments && strcmp(key, "mask") == 0 && is_tensor(value) && !is_foreign(item))
        return keep_mask(layers, value, arguments, err);
    if (is_foreign(item)) /* without an input, the reader refuses the class, or the call of a custom layer */
        return !arguments || json_object_set(arguments, key, value) == 0 ? LEAT_OK : no_memory(err);
    return leati_fail(err, LEAT_ENOTSUP, "called with the argument '%s', which leat does not support", key);
}

/* ---- Calls of a layer whose type names the arguments ---- */

/* Appends the tensors of a call in the order of the type's arguments.  Sets a key for each tensor that is optional. */
static leat_status append_named(const json_t *layers, const leati_layer_type *type, const json_t *node,
                                json_t *keys, json_t *out, leat_error *err) {
    const json_t *args = json_object_get(node, "args"), *kwargs = json_object_get(node, "kwargs");
    size_t count = 0;
    for (; type->arguments[count]; ++count) {
        const char *name = type->arguments[count];
        const json_t *value =
            count < json_array_size(args) ? json_array_get(args, count) : json_object_get(kwargs, name);
        if (!value || json_is_null(value)) continue;
        if (!is_tensor(value))
            return leati_fail(err, LEAT_ENOTSUP,
                              "called with the argument '%s', for which leat expects a tensor of the model",
                              name);
        LEATI_TRY(append_tensor(layers, value, out, err));
        if (leati_layer_has_key(type, name) && json_object_set_new(keys, name, json_true()) != 0)
            return no_memory(err);
    }
    if (json_array_size(args) > count)
        return leati_fail(err, LEAT_ENOTSUP,
                          "called with %zu arguments without a name, of which leat knows %zu",
                          json_array_size(args), count);
    return LEAT_OK;
}

/* Sets a key for each argument that is an option of the call. */
static leat_status read_options(const leati_layer_type *type, const json_t *kwargs, json_t *keys,
                                leat_error *err) {
    static const char *const none[] = {NULL};
    const char *const *options = type->call_options ? type->call_options : none, *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)kwargs, key, value) {
        bool ignored = strcmp(key, "training") == 0 || json_is_null(value) || json_is_false(value);
        bool option = is_one_of(key, options) && !is_tensor(value);
        if (is_one_of(key, type->arguments) || (ignored && !option)) continue;
        if (!option)
            return leati_fail(err, LEAT_ENOTSUP,
                              "called with the argument '%s'%s, which leat does not support", key,
                              is_tensor(value) ? ", a tensor" : "");
        if (json_object_set(keys, key, value) != 0) return no_memory(err);
    }
    return LEAT_OK;
}

/* Fails if a key that the first call of a layer has set is not that of this call. */
static leat_status check_keys(const json_t *config, const char *const *names, const json_t *keys,
                              leat_error *err) {
    for (; names && *names; ++names) {
        const json_t *first = json_object_get(config, *names), *value = json_object_get(keys, *names);
        if (first == value || (first && value && json_equal(first, value))) continue;
        return leati_fail(err, LEAT_ENOTSUP,
                          "two calls have different values of the argument '%s', which leat does not support",
                          *names);
    }
    return LEAT_OK;
}

/* Translates a call: tensors become inputs, all else becomes keys of the layer.  A reversed call has its input
 * twice. */
static leat_status translate_named_call(const json_t *layers, json_t *item, const leati_layer_type *type,
                                        const json_t *node, json_t *out, leat_error *err) {
    json_t *keys = json_object(), *config = json_object_get(item, "config");
    leat_status status = keys ? append_named(layers, type, node, keys, out, err) : no_memory(err);
    if (status == LEAT_OK) status = read_options(type, json_object_get(node, "kwargs"), keys, err);
    if (status == LEAT_OK && type == &leati_layer_reversible_embedding) {
        bool reverse = json_is_true(json_object_get(keys, "reverse"));
        if (reverse && json_array_append(out, json_array_get(out, 0)) != 0) status = no_memory(err);
    } else if (status == LEAT_OK && node == first_call(item)) {
        if (json_object_update(config, keys) != 0) status = no_memory(err);
    } else if (status == LEAT_OK) {
        status = check_keys(config, type->arguments, keys, err);
        if (status == LEAT_OK) status = check_keys(config, type->call_options, keys, err);
    }
    json_decref(keys);
    return status;
}

static leat_status translate_call(const json_t *layers, json_t *item, const json_t *node, json_t *out,
                                  leat_error *err) {
    json_t *kwargs = json_object_get(node, "kwargs"), *value;
    const leati_layer_type *type =
        leati_item_is_function(item) ? NULL : leati_layer_find(leati_item_class(item));
    const char *key;
    if (type && type->arguments) return translate_named_call(layers, item, type, node, out, err);
    LEATI_TRY(append_inputs(layers, item, json_object_get(node, "args"), out, err));
    for (size_t i = 0; tensor_arguments[i]; ++i) {
        value = json_object_get(kwargs, tensor_arguments[i]);
        if (!value || json_is_null(value)) continue;
        bool mask = strcmp(tensor_arguments[i], "attention_mask") == 0;
        LEATI_TRY(mask ? append_mask(layers, item, value, out, err)
                       : append_inputs(layers, item, value, out, err));
    }
    json_object_foreach(kwargs, key, value) LEATI_TRY(other_argument(layers, item, key, value, out, err));
    return LEAT_OK;
}

/* ---- Calls of tf.keras up to 2.15: [["query", 0, 0, {"value": ["value", 0, 0], "use_causal_mask": true}]] ---- */

static json_t *arguments_of(const json_t *call) {
    if (json_is_object(call)) return json_object_get(call, "kwargs");
    return json_array_get(json_array_get(call, 0), 3);
}

/* Moves a named tensor to the inputs. */
static leat_status move_tensor(json_t *item, json_t *arguments, const char *key, json_t *out,
                               leat_error *err) {
    const json_t *value = json_object_get(arguments, key);
    if (!json_is_string(json_array_get(value, 0))) return LEAT_OK;
    if (strcmp(key, "attention_mask") == 0) LEATI_TRY(prepare_mask(item, out, err));
    if (json_array_append(out, (json_t *)(uintptr_t)value) != 0) return no_memory(err);
    json_object_del(arguments, key);
    return LEAT_OK;
}

/* Makes inputs and keys of a layer from the arguments that leat has; the reader refuses the other arguments. */
static leat_status translate_old_call(json_t *item, const json_t *call, json_t *out, leat_error *err) {
    if (!json_is_object(arguments_of(call)))
        return json_array_extend(out, (json_t *)(uintptr_t)call) == 0 ? LEAT_OK : no_memory(err);
    json_t *inputs = json_deep_copy(call);
    leat_status status = inputs && json_array_extend(out, inputs) == 0 ? LEAT_OK : no_memory(err);
    for (size_t i = 0; status == LEAT_OK && i < json_array_size(inputs); ++i) {
        json_t *arguments = json_array_get(json_array_get(inputs, i), 3);
        for (const char *const *key = key_arguments; status == LEAT_OK && *key; ++key) {
            const json_t *value = json_object_get(arguments, *key);
            if (json_is_true(value) &&
                json_object_set_new(json_object_get(item, "config"), *key, json_true()) != 0)
                status = no_memory(err);
            if (json_is_boolean(value) || json_is_null(value)) json_object_del(arguments, *key);
        }
        for (const char *const *key = tensor_arguments; i == 0 && status == LEAT_OK && *key; ++key)
            status = move_tensor(item, arguments, *key, out, err);
    }
    json_decref(inputs);
    return status;
}

/* Checks that all calls of a layer have the same arguments, since the layer has the key only once. */
static leat_status check_agreement(const json_t *item, leat_error *err) {
    const json_t *nodes = json_object_get(item, "inbound_nodes");
    for (size_t i = 0; i < json_array_size(nodes); ++i)
        for (const char *const *key = key_arguments; *key; ++key) {
            const json_t *first = arguments_of(first_call(item));
            const json_t *arguments = arguments_of(json_array_get(nodes, i));
            if (json_is_true(json_object_get(first, *key)) != json_is_true(json_object_get(arguments, *key)))
                return leati_fail(err, LEAT_ENOTSUP,
                                  "called with '%s' and without it, which leat does not support", *key);
        }
    return LEAT_OK;
}

/* Appends the translated calls of a layer to `out`. */
static leat_status translate_item_calls(const json_t *layers, json_t *item, json_t *out, leat_error *err) {
    const json_t *nodes = json_object_get(item, "inbound_nodes");
    LEATI_TRY(check_agreement(item, err));
    for (size_t i = 0; i < json_array_size(nodes); ++i) {
        const json_t *node = json_array_get(nodes, i);
        json_t *inputs = json_array();
        leat_status status = inputs ? LEAT_OK : no_memory(err);
        bool is_old_form = json_is_array(node); /* the form of tf.keras up to 2.15 */
        if (status == LEAT_OK)
            status = is_old_form ? translate_old_call(item, node, inputs, err)
                                 : translate_call(layers, item, node, inputs, err);
        bool set = status == LEAT_OK && json_array_append(out, inputs) == 0;
        json_decref(inputs);
        LEATI_TRY(status);
        if (!set) return no_memory(err);
    }
    return LEAT_OK;
}

/* ---- Inputs and outputs of the model ---- */

static leat_status flatten(const json_t *value, json_t *out, leat_error *err);

/* Appends the tensors of an object in the order of their names, like Keras's inputs in a dictionary. */
static leat_status flatten_object(const json_t *value, json_t *out, leat_error *err) {
    json_t *keys, *key;
    size_t index;
    leat_status status = LEAT_OK;
    LEATI_TRY(sorted_keys(value, &keys, err));
    json_array_foreach(keys, index, key) {
        if (status == LEAT_OK) status = flatten(json_object_get(value, json_string_value(key)), out, err);
    }
    json_decref(keys);
    return status;
}

/* Appends one tensor, or all tensors of nested lists and objects. */
static leat_status flatten(const json_t *value, json_t *out, leat_error *err) {
    if (json_is_object(value)) return flatten_object(value, out, err);
    if (json_is_string(json_array_get(value, 0)))
        return json_array_append(out, (json_t *)(uintptr_t)value) == 0 ? LEAT_OK : no_memory(err);
    for (size_t i = 0; i < json_array_size(value); ++i)
        LEATI_TRY(flatten(json_array_get(value, i), out, err));
    return LEAT_OK;
}

/* Returns the number of a nested model's call as leat counts: the first call is 1.  In input_layers and output_layers,
 * Keras counts the calls of a Functional from 1, too, but those of a Sequential from 0. */
static json_int_t number_of_call(const json_t *maker, json_int_t number) {
    bool from_0 = strcmp(leati_item_class(maker), "Sequential") == 0 || number == 0;
    return from_0 && number < INT32_MAX ? number + 1 : number;
}

/* Keeps the keys of a dictionary of tensors under a key of their own, in their order. */
static leat_status keep_keys(json_t *config, const char *key, const char *kept, leat_error *err) {
    const json_t *ends = json_object_get(config, key);
    json_t *keys, *value;
    const char *name;
    size_t index;
    if (!json_is_object(ends)) return LEAT_OK;
    LEATI_TRY(sorted_keys(ends, &keys, err));
    bool all = true;
    json_array_foreach(keys, index, value) {
        name = json_string_value(value);
        all = all && strlen(name) < LEAT_NAME_BYTES &&
              json_is_string(json_array_get(json_object_get(ends, name), 0));
    }
    bool set = !all || json_object_set(config, kept, keys) == 0;
    json_decref(keys);
    return set ? LEAT_OK : no_memory(err);
}

static leat_status translate_ends(json_t *config, const char *key, const json_t *layers, leat_error *err) {
    json_t *list = json_array(), *end;
    size_t index;
    leat_status status = list ? flatten(json_object_get(config, key), list, err) : no_memory(err);
    if (status == LEAT_OK) json_array_foreach(list, index, end) {
            const json_t *maker = find_item(layers, json_string_value(json_array_get(end, 0)));
            json_t *number = json_array_get(end, 1);
            if (maker && leati_item_is_model(maker) && json_is_array(first_call(maker)) == 0)
                json_integer_set(number, number_of_call(maker, json_integer_value(number)));
        }
    if (status == LEAT_OK && json_object_set(config, key, list) != 0) status = no_memory(err);
    json_decref(list);
    return status;
}

static leat_status at_layer(leat_status status, const json_t *item, leat_error *err) {
    return leati_prefix(status, err, "layer '%.64s' (%.64s)", leati_item_name(item), leati_item_class(item));
}

/* Translates one item: its calls become lists of tensors in `calls`; a function becomes the layer *out. */
static leat_status translate_one(const json_t *layers, json_t *item, json_t **out, json_t *calls,
                                 leat_error *err) {
    bool function = leati_item_is_function(item);
    *out = function ? json_deep_copy(item) : json_incref(item);
    if (!*out) return no_memory(err);
    leat_status status = function ? leati_translate_operation(*out, err) : LEAT_OK;
    return status == LEAT_OK ? translate_item_calls(layers, *out, calls, err) : status;
}

/* Appends the translated item and its calls to the lists, unless the model does not need it. */
static leat_status append_one(const json_t *layers, json_t *item, const json_t *needed, json_t *kept,
                              json_t *all_calls, leat_error *err) {
    if (is_mask_function(item) && !json_object_get(needed, leati_item_name(item))) return LEAT_OK;
    json_t *translated = NULL, *calls = json_array();
    leat_status status = calls ? translate_one(layers, item, &translated, calls, err) : no_memory(err);
    status = at_layer(status, item, err);
    if (status == LEAT_OK &&
        (json_array_append(kept, translated) != 0 || json_array_append(all_calls, calls) != 0))
        status = no_memory(err);
    json_decref(translated);
    json_decref(calls);
    return status;
}

/* ---- Arguments of compile ---- */

static bool is_end(const json_t *value) {
    return json_is_string(json_array_get(value, 0));
}

/* True for a list or a dictionary of tensors, or a tensor. */
static bool is_flat(const json_t *outputs) {
    const json_t *item;
    const char *key;
    bool flat = true;
    if (is_end(outputs)) return true;
    for (size_t i = 0; i < json_array_size(outputs); ++i) flat = flat && is_end(json_array_get(outputs, i));
    json_object_foreach((json_t *)(uintptr_t)outputs, key, item) flat = flat && is_end(item);
    return flat;
}

/* Appends the part of a value that belongs to each output, which is null where the value is absent or null.  Sets *fits
 * to false where the structure is another one. */
static leat_status append_parts(const json_t *outputs, json_t *value, json_t *out, bool *fits,
                                leat_error *err) {
    json_t *keys, *key;
    size_t index;
    leat_status status = LEAT_OK;
    if (json_is_null(value)) value = NULL;
    if (is_end(outputs)) {
        json_t *part = value ? json_incref(value) : json_null();
        return json_array_append_new(out, part) == 0 ? LEAT_OK : no_memory(err);
    }
    if (value)
        *fits = *fits && (json_is_array(outputs)
                              ? json_is_array(value) && json_array_size(value) == json_array_size(outputs)
                              : json_is_object(value));
    if (!*fits) return LEAT_OK;
    for (size_t i = 0; i < json_array_size(outputs); ++i)
        LEATI_TRY(append_parts(json_array_get(outputs, i), json_array_get(value, i), out, fits, err));
    if (!json_is_object(outputs)) return LEAT_OK;
    LEATI_TRY(sorted_keys(outputs, &keys, err));
    json_array_foreach(keys, index, key) {
        const char *name = json_string_value(key);
        if (status == LEAT_OK)
            status =
                append_parts(json_object_get(outputs, name), json_object_get(value, name), out, fits, err);
    }
    json_decref(keys);
    return status;
}

leat_status leati_flatten_compilation(json_t *training_config, const json_t *outputs, leat_error *err) {
    static const char *const keys[] = {"loss", "loss_weights", "metrics", "weighted_metrics"};
    if (!training_config || is_flat(outputs)) return LEAT_OK;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; ++i) {
        json_t *value = json_object_get(training_config, keys[i]), *list;
        bool fits = true;
        if (!json_is_array(value) && (!json_is_object(value) || leati_item_class(value)[0])) continue;
        list = json_array();
        leat_status status = list ? append_parts(outputs, value, list, &fits, err) : no_memory(err);
        if (status == LEAT_OK && fits && json_object_set(training_config, keys[i], list) != 0)
            status = no_memory(err);
        json_decref(list);
        LEATI_TRY(status);
    }
    return LEAT_OK;
}

/* ---- Models ---- */

leat_status leati_translate_calls(json_t *config, leat_error *err) {
    json_t *layers = json_object_get(config, "layers"), *all_calls = json_array(), *kept = json_array(),
           *needed = json_object(), *item;
    leat_status status = all_calls && kept && needed ? LEAT_OK : no_memory(err);
    size_t index;
    if (status == LEAT_OK) status = keep_keys(config, "input_layers", LEATI_INPUT_KEYS, err);
    if (status == LEAT_OK) status = keep_keys(config, "output_layers", LEATI_OUTPUT_KEYS, err);
    if (status == LEAT_OK) status = translate_ends(config, "input_layers", layers, err);
    if (status == LEAT_OK) status = translate_ends(config, "output_layers", layers, err);
    if (status == LEAT_OK) status = leati_translate_tf(layers, err);
    if (status == LEAT_OK) status = find_needed(config, needed, err);
    if (status == LEAT_OK) json_array_foreach(layers, index, item) {
            status = append_one(layers, item, needed, kept, all_calls, err);
            if (status != LEAT_OK) break;
        }
    /* Replaces the calls only now, because the loop above looks up calls in Keras's form. */
    if (status == LEAT_OK) json_array_foreach(kept, index, item) {
            if (json_object_set(item, "inbound_nodes", json_array_get(all_calls, index)) != 0)
                status = no_memory(err);
        }
    if (status == LEAT_OK && json_object_set(config, "layers", kept) != 0) status = no_memory(err);
    json_decref(all_calls);
    json_decref(kept);
    json_decref(needed);
    return status;
}
