/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, writes, builds and lowers layers inside a layer.  Room: nn. */
#include "nn/layers/wrapping.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/config/object.h"
#include "nn/layers/types.h"

static const leati_layer_type *find_type(const leati_layer_reader *reader, const leati_object *object,
                                         leat_error *err) {
    if (reader) return reader->find_type(reader, object->name, object->config, err);
    const leati_layer_type *type = leati_layer_find(object->name);
    if (!type) leati_layer_unknown(object->name, err);
    return type;
}

leat_status leati_layer_read(leati_layer **out, const json_t *value, const leati_layer_reader *reader,
                             leat_error *err) {
    leati_object object;
    *out = NULL;
    if (!value || json_is_null(value)) return LEAT_OK;
    if (leati_item_is_model(value))
        return reader ? reader->read_model(reader, out, value, err)
                      : leati_fail(err, LEAT_ENOTSUP, "a model is not supported in place of this layer");
    LEATI_TRY(leati_object_read(&object, value, "layer", err));
    const leati_layer_type *type = find_type(reader, &object, err);
    if (!type) return LEAT_ENOTSUP;
    if (!object.config)
        return leati_fail(err, LEAT_EINVAL, "'%s': expected a \"config\", an object", object.name);
    LEATI_TRY(
        leati_prefix(leati_layer_create(out, type, object.config, reader, err), err, "%s", object.name));
    if (!(*out)->name[0]) snprintf((*out)->name, sizeof(*out)->name, "%s", type->name_prefix);
    return LEAT_OK;
}

leat_status leati_layer_write(const leati_layer *layer, json_t **out, leat_error *err) {
    json_t *config = NULL;
    *out = NULL;
    if (!layer) {
        *out = json_null();
        return LEAT_OK;
    }
    if (layer->type->write) return layer->type->write(layer, out, err);
    LEATI_TRY(leati_layer_config(layer, &config, err));
    return leati_object_write(layer->type->class_name, config, out, err);
}

leat_status leati_layers_read(leati_layers *out, const json_t *value, const leati_layer_reader *reader,
                              leat_error *err) {
    size_t count = json_array_size(value);
    *out = (leati_layers){0};
    if (!json_is_array(value) || count > LEATI_LAYERS_MAX)
        return leati_fail(err, LEAT_EINVAL, "expected a list of layers");
    out->items = leati_calloc(count + 1, sizeof *out->items);
    if (!out->items) return leati_fail_memory(err, count * sizeof *out->items, "layers");
    for (size_t i = 0; i < count; ++i) {
        leati_layer **item = &out->items[out->count];
        LEATI_TRY(leati_prefix(leati_layer_read(item, json_array_get(value, i), reader, err), err, "%zu", i));
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

/* Returns the outermost layer, which has the weights of all layers inside. */
static leati_layer *owner_of(leati_layer *layer) {
    while (layer->outer) layer = layer->outer;
    return layer;
}

/* Puts "<scope>/" in front of the names of the weights from `first` on. */
static leat_status put_in_scope(leati_layer *owner, int32_t first, const char *scope, leat_error *err) {
    for (int32_t i = first; scope && i < owner->weight_count; ++i) {
        char *name = owner->weights[i].name;
        size_t scope_length = strlen(scope), name_length = strlen(name);
        if (scope_length + 1 + name_length >= LEAT_NAME_BYTES)
            return leati_fail(err, LEAT_EINVAL, "name: expected a shorter name than '%s'", scope);
        memmove(name + scope_length + 1, name, name_length + 1);
        memcpy(name, scope, scope_length);
        name[scope_length] = '/';
    }
    return LEAT_OK;
}

/* The outer layer may be a copy that leati_layer_build only compares; so the inner layer changes only when it is
 * not built yet. */
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

void leati_layer_inner_weight_path(const leati_layer *inner, const char *group, int index, char *out,
                                   size_t bytes) {
    char path[LEAT_NAME_BYTES];
    leati_layer_weight_path(inner, index - inner->first_outer_weight, path, sizeof path);
    snprintf(out, bytes, "%s/%s", group, path);
}

void leati_layer_lower_inner(const leati_layer *inner, leati_lowering *lowering, leati_inner_call *call) {
    leati_lowering inner_lowering = *lowering; /* the inner call has its own stream, masks and penalties */
    const leati_layer_call layer_call = {.input_count = call->input_count,
                                         .output_count = call->output_count,
                                         .inputs = call->inputs,
                                         .masks = call->masks,
                                         .outputs = call->outputs,
                                         .output_masks = call->output_masks};
    leat_error err = {0};
    inner_lowering.stream = leati_stream(lowering->stream, inner->name);
    inner_lowering.inside = true;
    if (leati_layer_lower(inner, &inner_lowering, &layer_call, &err) != LEAT_OK)
        leati_graph_fail(lowering->graph, (leat_status)err.code, "%s", err.message);
    memcpy(lowering->losses, inner_lowering.losses, sizeof inner_lowering.losses);
    lowering->loss_count = inner_lowering.loss_count;
}

void leati_layer_set_trainable(leati_layer *layer, bool trainable) {
    layer->trainable = trainable;
    if (layer->type->set_trainable) layer->type->set_trainable(layer, trainable);
    for (const leati_field *field = layer->type->fields; field->key; ++field) {
        if (!layer->type->shares_trainable || field->kind != LEATI_FIELD_LAYER) continue;
        leati_layer *const *inner =
            (leati_layer *const *)(const void *)((char *)layer->config + field->offset);
        if (*inner) leati_layer_set_trainable(*inner, trainable);
    }
}

/* ---- Fields of a configuration ---- */

static leat_status read_layer(const leati_field *field, const json_t *value, const void *context,
                              void *member, leat_error *err) {
    return leati_prefix(leati_layer_read(member, value, context, err), err, "%s", field->key);
}

static leat_status write_layer(const leati_field *field, const void *member, json_t **out, leat_error *err) {
    (void)field;
    return leati_layer_write(*(leati_layer *const *)member, out, err);
}

static void fini_layer(void *member) {
    leati_layer_destroy(member);
}

static leat_status read_layers(const leati_field *field, const json_t *value, const void *context,
                               void *member, leat_error *err) {
    return leati_prefix(leati_layers_read(member, value, context, err), err, "%s", field->key);
}

static leat_status write_layers(const leati_field *field, const void *member, json_t **out, leat_error *err) {
    (void)field;
    return leati_layers_write(member, out, err);
}

static void fini_layers(void *member) {
    leati_layers_fini(member);
}

const leati_field_kind leati_field_layer = {.read = read_layer, .write = write_layer, .fini = fini_layer};
const leati_field_kind leati_field_layers = {.read = read_layers, .write = write_layers, .fini = fini_layers};
