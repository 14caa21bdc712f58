/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites functions of keras.ops that a functional model calls as layers to the layer Operation.  Room: nn. */
#include "nn/keras3/translate_operation.h"

#include <string.h>

#include "base/error.h"
#include "nn/config/object.h"
#include "nn/layers/operations/operations.h"

static leat_status no_memory(leat_error *err) {
    return leati_fail(err, LEAT_ENOMEM, "no memory for a configuration");
}

/* Replaces the tensors in a value by {"input": i}, and appends them to `tensors`.  Returns a new reference; NULL
 * without memory.  The parser limits the depth of the recursion. */
static json_t *without_tensors(const json_t *value, json_t *tensors) {
    json_t *out, *item;
    const char *key;
    size_t index;
    if (strcmp(leati_item_class(value), "__keras_tensor__") == 0) {
        json_int_t number = (json_int_t)json_array_size(tensors);
        if (json_array_append(tensors, (json_t *)(uintptr_t)value) != 0) return NULL;
        return json_pack("{s:I}", "input", number);
    }
    if (!json_is_array(value) && !json_is_object(value)) return json_incref((json_t *)(uintptr_t)value);
    out = json_is_array(value) ? json_array() : json_object();
    bool set = out != NULL;
    if (json_is_array(value))
        json_array_foreach(value, index, item) set =
            set && json_array_append_new(out, without_tensors(item, tensors)) == 0;
    if (json_is_object(value))
        json_object_foreach((json_t *)(uintptr_t)value, key, item) set =
            set && json_object_set_new(out, key, without_tensors(item, tensors)) == 0;
    if (set) return out;
    json_decref(out);
    return NULL;
}

/* Takes the constants of a call out: {"args": ..., "kwargs": ...} with {"input": i} for the tensors.  Replaces the call
 * by one that has only the tensors. */
static leat_status take_constants(json_t *node, json_t **constants, leat_error *err) {
    json_t *tensors = json_array();
    json_t *args = tensors ? without_tensors(json_object_get(node, "args"), tensors) : NULL;
    json_t *kwargs = args ? without_tensors(json_object_get(node, "kwargs"), tensors) : NULL;
    *constants = json_pack("{s:o?, s:o?}", "args", args, "kwargs", kwargs);
    bool set = *constants && args && kwargs && json_object_set(node, "args", tensors) == 0 &&
               json_object_set_new(node, "kwargs", json_object()) == 0;
    json_decref(tensors);
    return set ? LEAT_OK : no_memory(err);
}

/* Takes the constants of all calls, which must agree. */
static leat_status take_all_constants(json_t *item, json_t **constants, leat_error *err) {
    json_t *nodes = json_object_get(item, "inbound_nodes"), *node;
    size_t index;
    *constants = NULL;
    json_array_foreach(nodes, index, node) {
        json_t *own = NULL;
        leat_status status = take_constants(node, &own, err);
        if (status == LEAT_OK && *constants && !json_equal(own, *constants))
            status =
                leati_fail(err, LEAT_ENOTSUP,
                           "called several times with different constants; call the function keras.ops.%s "
                           "instead of one object of its class",
                           leati_item_class(item));
        if (!*constants) *constants = json_incref(own);
        json_decref(own);
        if (status != LEAT_OK) return status;
    }
    return *constants ? LEAT_OK : leati_fail(err, LEAT_EFORMAT, "inbound_nodes: expected at least one call");
}

/* Makes the configuration of the layer Operation. */
static json_t *config_of(const json_t *item, const json_t *constants) {
    json_t *options = json_copy(json_object_get(item, "config"));
    if (!options) return NULL;
    json_object_del(options, "name");
    if (!leati_operation_has(leati_operation_find(leati_item_class(item)), "dtype"))
        json_object_del(options, "dtype");
    json_object_del(options, "trainable");
    json_object_del(options, "as_keras3");
    return json_pack("{s:s, s:s, s:o, s:O, s:O}", "name", leati_item_name(item), "function",
                     leati_item_class(item), "options", options, "args", json_object_get(constants, "args"),
                     "kwargs", json_object_get(constants, "kwargs"));
}

leat_status leati_translate_operation(json_t *item, leat_error *err) {
    json_t *constants = NULL;
    if (!leati_operation_find(leati_item_class(item)))
        return leati_operation_unknown(leati_item_class(item), err);
    leat_status status = take_all_constants(item, &constants, err);
    if (status == LEAT_OK && (json_object_set_new(item, "config", config_of(item, constants)) != 0 ||
                              json_object_set_new(item, "class_name", json_string("Operation")) != 0))
        status = no_memory(err);
    json_decref(constants);
    return status;
}
