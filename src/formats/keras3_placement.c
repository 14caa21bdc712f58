/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the dataset of each weight in files of current Keras.  Groups are named after classes and numbered in the
 * order of the list of layers; the layer's type gives the paths inside a group.  Source:
 * keras.src.saving.saving_lib.  Room: formats. */
#include "formats/keras3.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/config/object.h"
#include "nn/keras3/export_layer.h"
#include "nn/layers/preprocessing/integer_lookup.h"
#include "nn/layers/types.h"
#include "nn/network/network.h"

enum { prefix_bytes = 128 };

/* The name of the list in archives of tf.keras 2.12 to 2.14.  In 2.12, a layer that has weights counts twice. */
static const char early_list[] = "_layer_checkpoint_dependencies";

/* Returns the array with at least twice its capacity, and sets *capacity; NULL, and leaves both, without memory. */
static void *grow(void *array, int32_t *capacity, size_t item_bytes, leat_error *err) {
    int32_t larger = *capacity ? 2 * *capacity : 16;
    void *grown = leati_realloc(array, (size_t)larger, item_bytes);
    if (grown)
        *capacity = larger;
    else
        leati_fail_memory(err, (size_t)larger * item_bytes, "the paths of a model's parts");
    return grown;
}

static leat_status add(leati_placement *out, const char *group, const char *path, const leati_weight *weight,
                       leat_error *err) {
    if (out->count == out->capacity) {
        void *grown = grow(out->items, &out->capacity, sizeof *out->items, err);
        if (!grown) return LEAT_ENOMEM;
        out->items = grown;
    }
    leati_placed_weight *item = &out->items[out->count];
    item->weight = weight;
    item->copy[0] = '\0';
    int length = snprintf(item->path, sizeof item->path, "%s%s", group, path);
    if (length < 0 || (size_t)length >= sizeof item->path)
        return leati_fail(err, LEAT_ENOTSUP,
                          "the path of a weight is too long: too many models inside models");
    ++out->count;
    return LEAT_OK;
}

static leat_status add_group(leati_placement *out, const char *path, const char *name, leat_error *err) {
    if (out->group_count == out->group_capacity) {
        void *grown = grow(out->groups, &out->group_capacity, sizeof *out->groups, err);
        if (!grown) return LEAT_ENOMEM;
        out->groups = grown;
    }
    leati_placed_group *group = &out->groups[out->group_count++];
    snprintf(group->path, sizeof group->path, "%svars", path);
    snprintf(group->name, sizeof group->name, "%s", name);
    return LEAT_OK;
}

static leat_status add_factors(leati_placement *out, const char *path, leati_layer *layer, leat_error *err) {
    leat_tensor factors;
    if (!leati_integer_lookup_factors(layer, &factors)) return LEAT_OK;
    if (out->factors_count == out->factors_capacity) {
        void *grown = grow(out->factors, &out->factors_capacity, sizeof *out->factors, err);
        if (!grown) return LEAT_ENOMEM;
        out->factors = grown;
    }
    leati_placed_factors *item = &out->factors[out->factors_count++];
    snprintf(item->path, sizeof item->path, "%svars/idf_weights", path);
    item->layer = layer;
    return LEAT_OK;
}

static leat_status add_layer(leati_placement *out, const char *group, leati_layer *layer, leat_error *err) {
    LEATI_TRY(add_factors(out, group, layer, err));
    for (int32_t i = 0; i < layer->weight_count; ++i) {
        char path[prefix_bytes];
        leati_layer_weight_path(layer, i, path, sizeof path);
        LEATI_TRY(add(out, group, path, &layer->weights[i], err));
    }
    if (layer->type != &leati_layer_spectral_normalization || layer->weight_count == 0) return LEAT_OK;
    leati_placed_weight *kernel = &out->items[out->count - layer->weight_count];
    snprintf(kernel->copy, sizeof kernel->copy, "%svars/0", group);
    return LEAT_OK;
}

/* Returns the name of a layer's group.  If the model has the layer, its type gives the name: it may be a custom
 * layer. */
static const char *group_name(const leat_model *model, const json_t *item) {
    if (leati_item_is_model(item))
        return strcmp(leati_item_class(item), "Sequential") == 0 ? "sequential" : "functional";
    int32_t member = leati_network_find(model, leati_item_name(item));
    const leati_layer *layer = member < 0 ? NULL : model->members[member].layer;
    const leati_layer_type *type = layer ? layer->type : leati_layer_find(leati_item_class(item));
    const leati_layer_type *current = type ? leati_layer_find(leati_keras3_class(type->class_name)) : NULL;
    if (current && leati_layer_find(type->class_name) == type) type = current;
    if (type == &leati_layer_input) return "input_layer";
    if (type == &leati_layer_conv_lstm2d)
        return "conv_lstm2d"; /* Keras's rule for names would give conv_lst_m2d */
    return type ? type->name_prefix : "";
}

static leat_status add_model(leati_placement *out, const char *group, const leat_model *model,
                             const json_t *config, leat_error *err);

/* Adds one item of the list of layers; `before` is the number of items before it whose groups have the same name. */
static leat_status add_item(leati_placement *out, const char *group, const leat_model *model,
                            const json_t *item, int before, leat_error *err) {
    char inner[256], number[16] = "";
    int32_t index = leati_network_find(model, leati_item_name(item));
    if (index < 0) return LEAT_OK; /* an InputLayer, or a layer that no output needs */
    if (before > 0) snprintf(number, sizeof number, "_%d", before);
    int length =
        snprintf(inner, sizeof inner, "%s%s/%s%s/", group, out->list, group_name(model, item), number);
    if (length < 0 || (size_t)length >= sizeof inner)
        return leati_fail(err, LEAT_ENOTSUP,
                          "the path of a weight is too long: too many models inside models");
    LEATI_TRY(add_group(out, inner, leati_item_name(item), err));
    const leati_member *member = &model->members[index];
    const leat_model *nested = leati_member_model(member);
    const json_t *config = json_object_get(item, "config");
    if (!nested) return add_layer(out, inner, member->layer, err);
    if (member->layer) { /* TimeDistributed around a model */
        config = json_object_get(json_object_get(config, "layer"), "config");
        snprintf(inner + length, sizeof inner - (size_t)length, "layer/");
    }
    return add_model(out, inner, nested, config, err);
}

static bool has_weights(const leat_model *model, const json_t *item) {
    int32_t index = leati_network_find(model, leati_item_name(item));
    const leati_member *member = index < 0 ? NULL : &model->members[index];
    const leat_model *nested = member ? leati_member_model(member) : NULL;
    return nested ? nested->weights.count > 0 : member && member->layer->weight_count > 0;
}

static leat_status add_model(leati_placement *out, const char *group, const leat_model *model,
                             const json_t *config, leat_error *err) {
    const json_t *layers = json_is_array(config) ? config : json_object_get(config, "layers");
    size_t count = json_array_size(layers);
    const char **names = leati_calloc(count + 1, sizeof *names);
    leat_status status = names ? LEAT_OK : leati_fail_memory(err, count * sizeof *names, "names");
    for (size_t i = 0; status == LEAT_OK && i < count; ++i) {
        int before = 0;
        names[i] = group_name(model, json_array_get(layers, i));
        for (size_t j = 0; j < i; ++j)
            if (strcmp(names[j], names[i]) == 0)
                before += out->twice && has_weights(model, json_array_get(layers, j)) ? 2 : 1;
        status = add_item(out, group, model, json_array_get(layers, i), before, err);
    }
    leati_free(names);
    return status;
}

static leat_status make(leati_placement *out, const char *list, bool twice, const leat_model *model,
                        const json_t *config, leat_error *err) {
    *out = (leati_placement){.list = list, .twice = twice};
    leat_status status = add_group(out, "", model->name, err);
    if (status == LEAT_OK) status = add_model(out, "", model, json_object_get(config, "config"), err);
    if (status == LEAT_OK && out->count != model->weights.count)
        status = leati_fail(err, LEAT_EFORMAT,
                            "expected the paths of %d weights, found %d: some layers have no name",
                            (int)model->weights.count, (int)out->count);
    if (status != LEAT_OK) leati_placement_fini(out);
    return status;
}

leat_status leati_placement_make(leati_placement *out, const leat_model *model, const json_t *config,
                                 leat_error *err) {
    return make(out, "layers", false, model, config, err);
}

/* Gives "a/query_dense/vars/0" the form "a/_query_dense/vars/0", which tf.keras writes, if the file has only that.
 * Sets *all to false if the file has neither. */
static leat_status find_item(leati_placed_weight *item, leati_h5 *file, bool *all, leat_error *err) {
    bool exists = false;
    const char *part = strstr(item->path, "/vars/");
    char path[sizeof item->path];
    LEATI_TRY(leati_h5_exists(file, item->path, &exists, err));
    if (exists) return LEAT_OK;
    while (part && part > item->path && part[-1] != '/') --part;
    int length =
        part ? snprintf(path, sizeof path, "%.*s_%s", (int)(part - item->path), item->path, part) : -1;
    if (length >= 0 && (size_t)length < sizeof path) LEATI_TRY(leati_h5_exists(file, path, &exists, err));
    if (exists)
        memcpy(item->path, path, sizeof path);
    else
        *all = false;
    return LEAT_OK;
}

/* Makes a placement; *all is true if the file has all weights. */
static leat_status try_placement(leati_placement *out, leati_h5 *file, const char *list, bool twice,
                                 const leat_model *model, const json_t *config, bool *all, leat_error *err) {
    LEATI_TRY(make(out, list, twice, model, config, err));
    leat_status status = LEAT_OK;
    *all = true;
    for (int32_t i = 0; status == LEAT_OK && i < out->count; ++i)
        status = find_item(&out->items[i], file, all, err);
    if (status != LEAT_OK) leati_placement_fini(out);
    return status;
}

leat_status leati_placement_find(leati_placement *out, leati_h5 *file, const leat_model *model,
                                 const json_t *config, leat_error *err) {
    bool is_early = false, all = false;
    LEATI_TRY(leati_h5_exists(file, early_list, &is_early, err));
    const char *list = is_early ? early_list : "layers";
    LEATI_TRY(try_placement(out, file, list, is_early, model, config, &all, err));
    if (all || !is_early) return LEAT_OK;
    leati_placement_fini(out);
    return try_placement(out, file, list, false, model, config, &all, err);
}

void leati_placement_fini(leati_placement *placement) {
    leati_free(placement->items);
    leati_free(placement->groups);
    leati_free(placement->factors);
    *placement = (leati_placement){0};
}

/* Writes the path that tf.keras has for a dataset that current Keras names otherwise, to `out`: the groups inside a
 * MultiHeadAttention begin with a '_' there.  Returns false if the path has no such group. */
static bool late_path(const char *path, char out[prefix_bytes * 2 + 2]) {
    const char *vars = strstr(path, "_dense/vars/"), *group = vars;
    while (group && group > path && group[-1] != '/') --group;
    if (!group || group == path) return false;
    snprintf(out, prefix_bytes * 2 + 2, "%.*s_%s", (int)(group - path), path, group);
    return true;
}

leat_status leati_placement_read(const leati_placement *placement, leati_h5 *file, leat_model *model,
                                 const leati_matching *matching, leat_error *err) {
    char *slab = leati_weights_slab(&model->weights, LEATI_SLAB_WEIGHTS);
    for (int32_t i = 0; i < placement->count; ++i) {
        const leati_weight *weight = placement->items[i].weight;
        leat_tensor tensor = leat_tensor_view(weight->desc.dtype, weight->desc.rank, weight->desc.shape,
                                              slab + weight->offset_bytes);
        char late[prefix_bytes * 2 + 2];
        const char *path = placement->items[i].path;
        if (!leati_h5_has_object(file, path) && late_path(path, late) && leati_h5_has_object(file, late))
            path = late;
        LEATI_TRY(leati_keras_h5_read_matching(file, path, &tensor, matching, err));
    }
    for (int32_t i = 0; i < placement->factors_count; ++i) {
        leat_tensor factors;
        leati_layer *layer = placement->factors[i].layer;
        if (!leati_integer_lookup_factors(layer, &factors)) continue;
        LEATI_TRY(leati_keras_h5_read_matching(file, placement->factors[i].path, &factors, matching, err));
        LEATI_TRY(leati_integer_lookup_update(layer, err));
    }
    return LEAT_OK;
}
