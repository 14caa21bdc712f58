/* SPDX-License-Identifier: Apache-2.0 */
/* leat_model_load, leat_model_save and their like: which format a file has, and what goes into it.  Layer: formats. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/error.h"
#include "base/os/file.h"
#include "base/memory.h"
#include "formats/keras3.h"
#include "formats/keras_h5.h"
#include "json/json.h"
#include "nn/config/translate.h"

/* An HDF5 file starts with this, at least when Keras wrote it. */
static const unsigned char h5_signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

typedef enum file_kind { FILE_H5, FILE_JSON, FILE_KERAS_ZIP, FILE_UNKNOWN } file_kind;

static leat_status kind_of(const char *path, file_kind *kind, leat_error *err) {
    leati_map map;
    LEATI_TRY(leati_map_open(&map, path, err));
    size_t start = 0;
    while (start < map.size && strchr(" \t\r\n", map.data[start]) && map.data[start]) ++start;
    if (map.size >= sizeof h5_signature && memcmp(map.data, h5_signature, sizeof h5_signature) == 0)
        *kind = FILE_H5;
    else if (map.size >= 4 && memcmp(map.data, "PK\3\4", 4) == 0)
        *kind = FILE_KERAS_ZIP;
    else if (start < map.size && map.data[start] == '{')
        *kind = FILE_JSON;
    else
        *kind = FILE_UNKNOWN;
    leati_map_close(&map);
    return LEAT_OK;
}

static leat_status load_json(leat_model **out, const char *path, const leat_registry *registry,
                             leat_error *err) {
    leati_map map;
    LEATI_TRY(leati_map_open(&map, path, err));
    char *text = leati_calloc(map.size + 1, 1);
    leat_status status = LEAT_OK;
    if (!text)
        status = leati_fail_memory(err, map.size, "an architecture");
    else
        memcpy(text, map.data, map.size);
    if (status == LEAT_OK) status = leat_model_from_json_with(out, text, registry, err);
    leati_free(text);
    leati_map_close(&map);
    return status;
}

/* A JSON attribute of the root. */
static leat_status read_json(leati_h5 *file, const char *name, json_t **out, leat_error *err) {
    char *text = NULL;
    *out = NULL;
    LEATI_TRY(leati_h5_read_string(file, "/", name, &text, err));
    leat_status status = leati_json_parse(out, text, strlen(text), err);
    leati_free(text);
    return leati_prefix(status, err, "attribute '%s'", name);
}

/* Defaults of layers are those of the version that wrote the file, which only the root knows. */
static void add_version(leati_h5 *file, json_t *config) {
    char *version = NULL;
    if (json_is_object(config) && !json_object_get(config, "keras_version") &&
        leati_h5_read_string(file, "/", "keras_version", &version, NULL) == LEAT_OK)
        json_object_set_new(config, "keras_version", json_string(version));
    leati_free(version);
}

/* The configuration in 2.3.1's form. */
static leat_status read_config(leati_h5 *file, json_t **out, leat_error *err) {
    json_t *config = NULL;
    *out = NULL;
    if (!leati_h5_has_attribute(file, "/", "model_config"))
        return leati_fail(err, LEAT_EFORMAT,
                          "no 'model_config': a file of weights; load the architecture first, then "
                          "these with leat_model_load_weights");
    LEATI_TRY(read_json(file, "model_config", &config, err));
    add_version(file, config);
    leat_status status = leati_prefix(leati_translate_model(config, out, err), err, "model");
    json_decref(config);
    return status;
}

static leat_status compile_as(leati_h5 *file, leat_model *model, bool modern, leat_error *err) {
    json_t *config = NULL, *translated = NULL;
    LEATI_TRY(read_json(file, "training_config", &config, err));
    leat_status status = modern ? leati_translate_compilation(config, &translated, err) : LEAT_OK;
    if (status == LEAT_OK) status = leati_model_compile_config(model, modern ? translated : config, err);
    json_decref(config);
    json_decref(translated);
    return leati_prefix(status, err, "training_config");
}

/* In current Keras, the optimizer's state goes by its own list of names, which lie in the order of its variables. */
static void state_name(void *user, int index, char *out, size_t bytes) {
    const leati_h5_strings *names = user;
    snprintf(out, bytes, "optimizer_weights/%s", names->items[index]);
}

static leat_status read_modern_state(leati_h5 *file, leat_model *model, const json_t *config,
                                     leat_error *err) {
    leati_placement placement = {0};
    leati_h5_strings names;
    if (!leati_h5_has_attribute(file, "optimizer_weights", "weight_names") &&
        !leati_h5_has_attribute(file, "optimizer_weights", "weight_names0"))
        return LEAT_OK;
    LEATI_TRY(leati_h5_read_strings(file, "optimizer_weights", "weight_names", &names, err));
    leat_status status = leati_placement_make(&placement, model, config, err);
    if (status == LEAT_OK && names.count > 2)
        status = leati_keras3_read_state(&placement, file, model, (int)names.count, state_name, &names, err);
    leati_placement_fini(&placement);
    leati_h5_strings_fini(&names);
    return status;
}

static leat_status read_training(leati_h5 *file, leat_model *model, const json_t *config, leat_error *err) {
    bool modern = leati_is_modern(config);
    if (!leati_h5_has_attribute(file, "/", "training_config")) return LEAT_OK;
    LEATI_TRY(compile_as(file, model, modern, err));
    return modern ? read_modern_state(file, model, config, err)
                  : leati_keras_h5_read_optimizer(file, model, err);
}

/* The lists of layers agree by name in a file of current Keras, which sorts them its own way. */
static leat_status read_rest(leati_h5 *file, leat_model *model, const json_t *config, leat_error *err) {
    const char *group = NULL;
    LEATI_TRY(leati_keras_h5_find(file, &group, err));
    LEATI_TRY(leati_is_modern(config) ? leati_keras_h5_read_all(file, group, model, err)
                                      : leati_keras_h5_read_weights(file, group, model, false, err));
    return read_training(file, model, config, err);
}

static leat_status read_model(leati_h5 *file, leat_model **out, const leat_registry *registry,
                              leat_error *err) {
    json_t *config = NULL;
    LEATI_TRY(read_config(file, &config, err));
    leat_status status = leati_model_from_config_with(out, config, registry, err);
    if (status == LEAT_OK) status = read_rest(file, *out, config, err);
    json_decref(config);
    return status;
}

static leat_status load_h5(leat_model **out, const char *path, const leat_registry *registry,
                           leat_error *err) {
    leati_h5 *file = NULL;
    LEATI_TRY(leati_h5_open(&file, path, err));
    leat_status status = leati_prefix(read_model(file, out, registry, err), err, "'%s'", path);
    leati_h5_close(&file, NULL);
    if (status != LEAT_OK) leat_model_destroy(out);
    return status;
}

leat_status leat_model_load(leat_model **out, const char *path, leat_error *err) {
    return leat_model_load_with(out, path, NULL, err);
}

leat_status leat_model_load_with(leat_model **out, const char *path, const leat_registry *registry,
                                 leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(path, err);
    file_kind kind = FILE_UNKNOWN;
    LEATI_TRY(kind_of(path, &kind, err));
    switch (kind) {
    case FILE_H5: return load_h5(out, path, registry, err);
    case FILE_JSON: return leati_prefix(load_json(out, path, registry, err), err, "'%s'", path);
    case FILE_KERAS_ZIP: return leati_keras3_load(out, path, registry, err);
    case FILE_UNKNOWN: break;
    }
    return leati_fail(err, LEAT_EFORMAT, "'%s': expected a Keras .h5 or .keras file, or a JSON architecture",
                      path);
}

leat_status leat_model_load_weights(leat_model *model, const char *path, bool by_name, leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(path, err);
    leati_h5 *file = NULL;
    const char *group = NULL;
    LEATI_TRY(leati_h5_open(&file, path, err));
    leat_status status = leati_keras_h5_find(file, &group, err);
    if (status == LEAT_OK) status = leati_keras_h5_read_weights(file, group, model, by_name, err);
    leati_model_weights_changed(model); /* some of them, even where it failed */
    leati_h5_close(&file, NULL);
    return leati_prefix(status, err, "'%s'", path);
}

static leat_status write_json(leati_h5 *file, const char *name, const json_t *value, leat_error *err) {
    char *text = NULL;
    LEATI_TRY(leati_json_write(value, &text, err));
    leat_status status = leati_h5_write_string(file, "/", name, text, err);
    leati_free(text);
    return status;
}

static leat_status write_training(leati_h5 *file, const leat_model *model, leat_error *err) {
    json_t *config = NULL;
    LEATI_TRY(leati_model_training_config(model, &config, err));
    leat_status status = write_json(file, "training_config", config, err);
    json_decref(config);
    LEATI_TRY(status);
    return leati_keras_h5_write_optimizer(file, model, err);
}

static leat_status write_model(leati_h5 *file, const leat_model *model, bool include_optimizer,
                               leat_error *err) {
    json_t *config = NULL;
    LEATI_TRY(leati_model_config(model, &config, err));
    leat_status status = write_json(file, "model_config", config, err);
    json_decref(config);
    LEATI_TRY(status);
    LEATI_TRY(leati_h5_write_string(file, "/", "keras_version", "2.3.1", err));
    LEATI_TRY(leati_h5_write_string(file, "/", "backend", "tensorflow", err));
    LEATI_TRY(leati_keras_h5_write_weights(file, "model_weights", model, err));
    return include_optimizer && model->compiled.ready ? write_training(file, model, err) : LEAT_OK;
}

/* Writes beside the file and renames: a failure at any point leaves the old file as it was. */
typedef leat_status (*write_content)(leati_h5 *file, const leat_model *model, bool include_optimizer,
                                     leat_error *err);

static leat_status replace(const char *path, write_content content, const leat_model *model,
                           bool include_optimizer, leat_error *err) {
    leati_replacement replacement;
    leati_h5 *file = NULL;
    LEATI_TRY(leati_replace_begin(&replacement, path, err));
    leat_status status = leati_h5_create(&file, path, replacement.fd, err);
    if (status == LEAT_OK) status = content(file, model, include_optimizer, err);
    leat_error unwritten = {0};
    if (leati_h5_close(&file, &unwritten) != LEAT_OK) { /* the cause of what failed before, if anything did */
        status = unwritten.code;
        if (err) *err = unwritten;
    }
    if (status == LEAT_OK) return leati_replace_commit(&replacement, err);
    leati_replace_abandon(&replacement);
    return status;
}

leat_status leat_model_save(const leat_model *model, const char *path, bool include_optimizer,
                            leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(path, err);
    return replace(path, write_model, model, include_optimizer, err);
}

static leat_status write_weights(leati_h5 *file, const leat_model *model, bool include_optimizer,
                                 leat_error *err) {
    (void)include_optimizer;
    return leati_keras_h5_write_weights(file, "/", model, err);
}

leat_status leat_model_save_weights(const leat_model *model, const char *path, leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(path, err);
    return replace(path, write_weights, model, false, err);
}
