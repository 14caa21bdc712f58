/* SPDX-License-Identifier: Apache-2.0 */
/* Layers inside a layer.  Layer: nn. */
#include "nn/layers/rnn/wrapping.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/layers/types.h"
#include "nn/model/network.h"
#include "nn/config/object.h"
#include "nn/config/translate.h"

leat_status leati_layer_read(leati_layer **out, const json_t *value, const leat_registry *registry,
                             leat_error *err) {
    leati_object object;
    *out = NULL;
    if (!value || json_is_null(value)) return LEAT_OK;
    if (leati_item_is_model(value)) return leati_nested_read(out, value, registry, err);
    LEATI_TRY(leati_object_read(&object, value, "layer", err));
    const leati_layer_type *type = leati_layer_type_for(registry, object.name, object.config, err);
    if (!type) return LEAT_ENOTSUP;
    if (!object.config)
        return leati_fail(err, LEAT_EINVAL, "'%s': expected a \"config\", an object", object.name);
    LEATI_TRY(leati_prefix(leati_layer_create_with(out, type, object.config, registry, err), err, "%s",
                           object.name));
    if (!(*out)->name[0]) snprintf((*out)->name, sizeof(*out)->name, "%s", type->name_prefix);
    return LEAT_OK;
}

/* Whether it trains is the outer layer's to say. */
static leat_status nested_write(const leati_layer *layer, json_t **out, leat_error *err) {
    LEATI_TRY(leati_model_config(leati_layer_model(layer), out, err));
    json_object_del(json_object_get(*out, "config"), "trainable");
    return LEAT_OK;
}

leat_status leati_layer_write(const leati_layer *layer, json_t **out, leat_error *err) {
    json_t *config = NULL;
    *out = NULL;
    if (!layer) {
        *out = json_null();
        return LEAT_OK;
    }
    if (layer->type == &leati_layer_nested) return nested_write(layer, out, err);
    LEATI_TRY(leati_layer_config(layer, &config, err));
    return leati_object_write(layer->type->class_name, config, out, err);
}

leat_status leati_layers_read(leati_layers *out, const json_t *value, const leat_registry *registry,
                              leat_error *err) {
    size_t count = json_array_size(value);
    *out = (leati_layers){0};
    if (!json_is_array(value) || count > LEATI_NETWORK_MAX_MEMBERS)
        return leati_fail(err, LEAT_EINVAL, "expected a list of layers");
    out->items = leati_calloc(count + 1, sizeof *out->items);
    if (!out->items) return leati_fail_memory(err, count * sizeof *out->items, "layers");
    for (size_t i = 0; i < count; ++i) {
        leati_layer **item = &out->items[out->count];
        LEATI_TRY(
            leati_prefix(leati_layer_read(item, json_array_get(value, i), registry, err), err, "%zu", i));
        if (!*item) return leati_fail(err, LEAT_EINVAL, "%zu: expected a layer, received null", i);
        ++out->count;
    }
    return LEAT_OK;
}

leat_status leati_layers_write(const leati_layers *layers, json_t **out, leat_error *err) {
    json_t *list = json_array();
    *out = NULL;
    leat_status status = list ? LEAT_OK : leati_fail(err, LEAT_ENOMEM, "no memory for a list of layers");
    for (int32_t i = 0; status == LEAT_OK && i < layers->count; ++i) {
        json_t *item = NULL;
        status = leati_layer_write(layers->items[i], &item, err);
        if (status == LEAT_OK && json_array_append_new(list, item) != 0)
            status = leati_fail(err, LEAT_ENOMEM, "no memory for a list of layers");
    }
    if (status == LEAT_OK)
        *out = list;
    else
        json_decref(list);
    return status;
}

void leati_layers_fini(leati_layers *layers) {
    for (int32_t i = 0; i < layers->count; ++i) leati_layer_destroy(&layers->items[i]);
    leati_free(layers->items);
    *layers = (leati_layers){0};
}

void leati_layer_adopt(leati_layer *outer, leati_layer *inner) {
    inner->outer = outer;
}

/* The layer that has the weights of all that it wraps. */
static leati_layer *owner_of(leati_layer *layer) {
    while (layer->outer) layer = layer->outer;
    return layer;
}

/* The weights that `owner` has from `first` on are named within the scope. */
static leat_status put_in_scope(leati_layer *owner, int32_t first, const char *scope, leat_error *err) {
    for (int32_t i = first; scope && i < owner->weight_count; ++i) {
        char *name = owner->weights[i].name;
        size_t length = strlen(scope), own = strlen(name);
        if (length + 1 + own >= LEAT_NAME_BYTES)
            return leati_fail(err, LEAT_EINVAL, "name: expected a shorter one than '%s'", scope);
        memmove(name + length + 1, name, own + 1);
        memcpy(name, scope, length);
        name[length] = '/';
    }
    return LEAT_OK;
}

/* The outer layer may be a copy that is only compared (leati_layer_build): the inner one's own is left as it is. */
leat_status leati_layer_build_inner(leati_layer *outer, leati_layer *inner, const char *scope,
                                    int input_count, const leati_shape *inputs, leat_error *err) {
    leati_layer builder = *inner, *owner = owner_of(outer);
    int32_t first = outer->weight_count, first_state = outer->state_count, first_owned = owner->weight_count;
    builder.outer = outer;
    builder.weight_count = builder.state_count = 0;
    if (inner->type->build) LEATI_TRY(inner->type->build(&builder, input_count, inputs, err));
    if (!inner->built) {
        inner->first_outer_weight = first;
        inner->first_outer_state = first_state;
        inner->weight_count = builder.weight_count;
        inner->state_count = builder.state_count;
    }
    inner->built = true;
    return put_in_scope(owner, first_owned, scope, err);
}

void leati_layer_place_inner(const leati_layer *inner, const char *group, int index, char *out,
                             size_t bytes) {
    char own[LEAT_NAME_BYTES];
    leati_layer_place(inner, index - inner->first_outer_weight, own, sizeof own);
    snprintf(out, bytes, "%s/%s", group, own);
}

void leati_layer_lower_inner(const leati_layer *inner, leati_lowering *lowering, leati_inner_call *call) {
    leati_lowering own = *lowering; /* names, masks and penalties are the inner call's */
    leat_error err = {0};
    own.stream = leati_stream(lowering->stream, inner->name);
    own.inside = true;
    if (leati_layer_lower(inner, &own, call, &err) != LEAT_OK)
        leati_graph_fail(lowering->graph, err.code, "%s", err.message);
    memcpy(lowering->losses, own.losses, sizeof own.losses);
    lowering->loss_count = own.loss_count;
}

const leati_regularizer *leati_layer_activity(const leati_layer *layer) {
    for (const leati_field *field = layer->type->fields; field->key; ++field)
        if (field->kind == LEATI_FIELD_REGULARIZER && strcmp(field->key, "activity_regularizer") == 0)
            return (const void *)((const char *)layer->config + field->offset);
    return &layer->activity_regularizer;
}

void leati_layer_set_trainable(leati_layer *layer, bool trainable) {
    leat_model *model = leati_layer_model(layer);
    layer->trainable = trainable;
    if (model) model->trainable = trainable;
    for (const leati_field *field = layer->type->fields; field->key; ++field) {
        if (!layer->type->shares_trainable || field->kind != LEATI_FIELD_LAYER) continue;
        leati_layer *const *inner =
            (leati_layer *const *)(const void *)((char *)layer->config + field->offset);
        if (*inner) leati_layer_set_trainable(*inner, trainable);
    }
}
