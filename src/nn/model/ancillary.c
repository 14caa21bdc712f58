/* SPDX-License-Identifier: Apache-2.0 */
/* Removes, where leat cannot compute it, what model.add_loss(tensor) and model.add_metric(tensor) of tf.keras 2.4 to
 * 2.15 leave in the configuration of a functional model: layers AddLoss and AddMetric, which no output needs, behind
 * operations of TensorFlow.
 * Source: tf.keras 2.15, keras/src/engine/functional.py, connect_ancillary_layers.  Room: nn. */
#include "nn/model/ancillary.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/weights/weights.h"

static const char *class_of(const json_t *item) {
    const char *name = json_string_value(json_object_get(item, "class_name"));
    return name ? name : "";
}

static bool is_loss(const json_t *item) {
    return strcmp(class_of(item), "AddLoss") == 0;
}

static bool is_ancillary(const json_t *item) {
    return is_loss(item) || strcmp(class_of(item), "AddMetric") == 0;
}

static const char *name_of(const json_t *item) {
    const char *name = json_string_value(json_object_get(item, "name"));
    return name ? name : json_string_value(json_object_get(json_object_get(item, "config"), "name"));
}

static const json_t *layers_of(const json_t *item) {
    return json_object_get(json_object_get(item, "config"), "layers");
}

/* Returns true if the model, or a model inside it, has such a layer. */
static bool has_ancillary(const json_t *model) {
    const json_t *layers = layers_of(model);
    for (size_t i = 0; i < json_array_size(layers); ++i) {
        const json_t *item = json_array_get(layers, i);
        if (is_ancillary(item) || has_ancillary(item)) return true;
    }
    return false;
}

/* Marks the layers whose names occur in a value, and the layers that these layers read.  Names are at least those of
 * all tensors, in each form that Keras has for a call. */
static void mark(const json_t *layers, const json_t *value, bool *needed) {
    const char *name = json_string_value(value), *key;
    const json_t *member;
    for (size_t i = 0; i < json_array_size(value); ++i) mark(layers, json_array_get(value, i), needed);
    json_object_foreach((json_t *)(uintptr_t)value, key, member) mark(layers, member, needed);
    for (size_t i = 0; name && i < json_array_size(layers); ++i) {
        const json_t *item = json_array_get(layers, i);
        const char *own = name_of(item);
        if (needed[i] || !own || strcmp(own, name) != 0) continue;
        needed[i] = true;
        mark(layers, json_object_get(item, "inbound_nodes"), needed);
    }
}

static leat_status filter(json_t *model, char *loss, leat_error *err);

/* Removes the layers that are not needed from the list of a functional model. */
static leat_status remove_unneeded(json_t *config, json_t *layers, char *loss, leat_error *err) {
    const size_t count = json_array_size(layers);
    bool *needed = leati_calloc(count + 1, sizeof *needed), found = false;
    if (!needed) return leati_fail_memory(err, count, "layers");
    mark(layers, json_object_get(config, "output_layers"), needed);
    mark(layers, json_object_get(config, "input_layers"), needed);
    for (size_t i = 0; i < count; ++i) {
        const json_t *item = json_array_get(layers, i);
        const char *name = name_of(item);
        if (!is_ancillary(item) || needed[i]) continue;
        found = true;
        if (is_loss(item) && !loss[0]) snprintf(loss, LEAT_NAME_BYTES, "%s", name ? name : "add_loss");
    }
    for (size_t i = count; found && i-- > 0;)
        if (!needed[i]) json_array_remove(layers, i);
    leati_free(needed);
    return LEAT_OK;
}

static leat_status filter(json_t *model, char *loss, leat_error *err) {
    json_t *config = json_object_get(model, "config"), *layers = json_object_get(config, "layers");
    if (json_object_get(config, "output_layers")) LEATI_TRY(remove_unneeded(config, layers, loss, err));
    for (size_t i = 0; i < json_array_size(layers); ++i)
        LEATI_TRY(filter(json_array_get(layers, i), loss, err));
    return LEAT_OK;
}

leat_status leati_without_ancillary(const json_t *root, json_t **out, char *loss, leat_error *err) {
    loss[0] = '\0';
    *out = NULL;
    if (!has_ancillary(root)) {
        *out = json_incref((json_t *)(uintptr_t)root);
        return LEAT_OK;
    }
    *out = json_deep_copy(root);
    if (!*out) return leati_fail(err, LEAT_ENOMEM, "no memory for a configuration");
    leat_status status = filter(*out, loss, err);
    if (status == LEAT_OK) return LEAT_OK;
    json_decref(*out);
    *out = NULL;
    return status;
}
