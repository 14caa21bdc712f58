/* SPDX-License-Identifier: Apache-2.0 */
/* Loads models and weights from files and from memory: recognises the format, reads Keras's .h5 files.
 * Room: formats. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/error.h"
#include "base/os/file.h"
#include "base/memory.h"
#include "formats/keras3.h"
#include "formats/keras_h5.h"
#include "formats/load.h"
#include "formats/onnx_import/onnx_import.h"
#include "json/json.h"
#include "nn/keras3/translate.h"
#include "nn/model/export.h"

/* The first bytes of an HDF5 file.  (HDF5 allows a block of other data before them, which Keras never writes.) */
static const unsigned char h5_signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};

typedef enum file_kind { FILE_H5, FILE_JSON, FILE_KERAS_ZIP, FILE_ONNX, FILE_UNKNOWN } file_kind;

/* Replaces the path in messages about a file in memory. */
static const char memory_label[] = "<memory>";

static file_kind kind_of(const unsigned char *data, size_t bytes) {
    size_t start = 0;
    while (start < bytes && data[start] && strchr(" \t\r\n", data[start])) ++start;
    if (bytes >= sizeof h5_signature && memcmp(data, h5_signature, sizeof h5_signature) == 0) return FILE_H5;
    if (bytes >= 4 && memcmp(data, "PK\3\4", 4) == 0) return FILE_KERAS_ZIP;
    if (leati_onnx_is(data, bytes)) return FILE_ONNX;
    return start < bytes && data[start] == '{' ? FILE_JSON : FILE_UNKNOWN;
}

static leat_status kind_of_file(const char *path, file_kind *kind, leat_error *err) {
    leati_map map;
    LEATI_TRY(leati_map_open(&map, path, err));
    *kind = kind_of(map.data, map.size);
    leati_map_close(&map);
    return LEAT_OK;
}

/* Constants are copied from where they lie in the file, which is not read twice. */
static leat_status load_onnx_file(leat_model **out, const char *path, leat_error *err) {
    leati_map map;
    LEATI_TRY(leati_map_open_guarded(&map, path, err));
    leat_status status = leati_onnx_load(out, path, map.data, map.size, err);
    if (status == LEAT_OK) status = leati_map_check(&map, map.data, map.size, err);
    leati_map_close(&map);
    if (status != LEAT_OK) leat_model_destroy(out);
    return status;
}

static leat_status load_json(leat_model **out, const void *data, size_t bytes, const leati_load *load,
                             leat_error *err) {
    json_t *config = NULL;
    LEATI_TRY(leati_json_parse(&config, data, bytes, err));
    leat_status status = leati_model_from_config_with(out, config, load->registry, err);
    json_decref(config);
    return status;
}

static leat_status load_json_file(leat_model **out, const char *path, const leati_load *load,
                                  leat_error *err) {
    leati_map map;
    LEATI_TRY(leati_map_open(&map, path, err));
    void *copy = leati_memdup(map.data,
                              map.size); /* the text is read twice, and another process may change the file */
    leat_status status = copy ? load_json(out, copy, map.size, load, err)
                              : leati_fail_memory(err, map.size, "an architecture");
    leati_free(copy);
    leati_map_close(&map);
    return status;
}

/* Parses an attribute of the root that is a JSON text. */
static leat_status read_json(leati_h5 *file, const char *name, json_t **out, leat_error *err) {
    char *text = NULL;
    *out = NULL;
    LEATI_TRY(leati_h5_read_string(file, "/", name, &text, err));
    leat_status status = leati_json_parse(out, text, strlen(text), err);
    leati_free(text);
    return leati_prefix(status, err, "attribute '%s'", name);
}

/* Adds the attribute keras_version of the root to the configuration: the version of Keras decides the form, and the
 * defaults of layers.  A version that is no string is ignored.  Errors: LEAT_ENOMEM. */
static leat_status add_version(leati_h5 *file, json_t *config, leat_error *err) {
    char *version = NULL;
    if (!json_is_object(config) || json_object_get(config, "keras_version")) return LEAT_OK;
    leat_status status = leati_h5_read_string(file, "/", "keras_version", &version, err);
    if (status == LEAT_OK && json_object_set_new(config, "keras_version", json_string(version)) != 0)
        status = leati_fail(err, LEAT_ENOMEM, "no memory for the version of Keras");
    leati_free(version);
    return status == LEAT_ENOMEM ? status : LEAT_OK;
}

/* Reads the configuration and translates it into the form of Keras 2.3.1. */
static leat_status read_config(leati_h5 *file, json_t **out, leat_error *err) {
    json_t *config = NULL;
    *out = NULL;
    if (!leati_h5_has_attribute(file, "/", "model_config"))
        return leati_fail(err, LEAT_EFORMAT,
                          "the file has weights only (no attribute 'model_config'): expected a whole model; "
                          "open the file of the "
                          "architecture first, such as model.json, and give this file as the weights");
    LEATI_TRY(read_json(file, "model_config", &config, err));
    leat_status status = add_version(file, config, err);
    if (status == LEAT_OK) status = leati_prefix(leati_translate_model(config, out, err), err, "model");
    json_decref(config);
    return status;
}

/* Returns true if the optimizer's state of a file lists each slot for all weights, then the next slot. */
static bool is_in_blocks(const leati_h5_strings *names) {
    const char *first = names->items[0], *end = strstr(first, "/iter:0");
    return end && end[sizeof "/iter:0" - 1] == '\0';
}

/* Makes lists of the arguments of compile that have the structure of the outputs in Keras's configuration. */
static leat_status flatten_arguments(leati_h5 *file, json_t *translated, leat_error *err) {
    json_t *config = NULL;
    if (!translated) return LEAT_OK;
    LEATI_TRY(read_json(file, "model_config", &config, err));
    const json_t *outputs = json_object_get(json_object_get(config, "config"), "output_layers");
    leat_status status = leati_flatten_compilation(translated, outputs, err);
    json_decref(config);
    return status;
}

static leat_status compile_as(leati_h5 *file, leat_model *model, const json_t *model_config,
                              const leati_load *load, leat_error *err) {
    const bool late = leati_is_late(model_config), modern = late || leati_is_modern(model_config);
    json_t *config = NULL, *translated = NULL;
    LEATI_TRY(read_json(file, "training_config", &config, err));
    leat_status status = modern ? leati_translate_compilation(config, late, &translated, err) : LEAT_OK;
    if (status == LEAT_OK && model->output_count > 1) status = flatten_arguments(file, translated, err);
    if (status == LEAT_OK)
        status =
            leati_translate_kept(modern ? translated : config, json_object_get(config, LEATI_KEPT_KEY), err);
    if (status == LEAT_OK) status = leati_load_compilation(model, modern ? translated : config, load, err);
    json_decref(config);
    json_decref(translated);
    return leati_prefix(status, err, "training_config");
}

/* Gives the path of an optimizer's variable in an .h5 file of current Keras, which lists the names in the order of the
 * variables. */
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
    const int count = (int)names.count;
    if (status == LEAT_OK && leati_keras3_has_state(model, count, leati_is_late(config)))
        status = leati_keras3_read_state(&placement, file, model, count, is_in_blocks(&names), state_name,
                                         &names, err);
    leati_placement_fini(&placement);
    leati_h5_strings_fini(&names);
    return status;
}

/* Reads what leati_keras3_write_late wrote. */
static leat_status read_late_state(leati_h5 *file, leat_model *model, leat_error *err) {
    leati_h5_strings names;
    LEATI_TRY(leati_h5_read_strings(file, "optimizer_weights", "weight_names", &names, err));
    leat_status status =
        leati_keras3_read_state(NULL, file, model, (int)names.count, false, state_name, &names, err);
    leati_h5_strings_fini(&names);
    return status;
}

static leat_status read_state(leati_h5 *file, leat_model *model, const json_t *config, bool modern,
                              leat_error *err) {
    char name[LEAT_NAME_BYTES], path[2 * LEAT_NAME_BYTES];
    bool is_late = false;
    if (modern) return read_modern_state(file, model, config, err);
    leati_keras3_optimizer_name(model->compiled.optimizer, name);
    snprintf(path, sizeof path, "optimizer_weights/%s/iteration_0", name);
    LEATI_TRY(leati_h5_exists(file, path, &is_late, err));
    return is_late ? read_late_state(file, model, err) : leati_keras_h5_read_optimizer(file, model, err);
}

static leat_status read_training(leati_h5 *file, leat_model *model, const json_t *config,
                                 const leati_load *load, leat_error *err) {
    bool modern = leati_is_modern(config) || leati_is_late(config);
    if (!leati_h5_has_attribute(file, "/", "training_config")) return LEAT_OK;
    leat_status status = compile_as(file, model, config, load, err);
    if (status == LEAT_OK && load->compile) status = read_state(file, model, config, modern, err);
    return leati_load_hint(status, load, err);
}

/* Reads weights by name from files of current Keras, which lists the layers in another order than Keras 2.3.1. */
static leat_status read_rest(leati_h5 *file, leat_model *model, const json_t *config, const leati_load *load,
                             leat_error *err) {
    const leati_matching by_order = {0};
    const char *group = NULL;
    LEATI_TRY(leati_keras_h5_find(file, &group, err));
    bool by_name = leati_is_modern(config) || leati_is_late(config);
    LEATI_TRY(by_name ? leati_keras_h5_read_all(file, group, model, err)
                      : leati_keras_h5_read_weights(file, group, model, &by_order, err));
    return read_training(file, model, config, load, err);
}

static leat_status read_model(leati_h5 *file, leat_model **out, const leati_load *load, leat_error *err) {
    json_t *config = NULL;
    LEATI_TRY(read_config(file, &config, err));
    leat_status status = leati_model_from_config_with(out, config, load->registry, err);
    if (status == LEAT_OK) status = read_rest(file, *out, config, load, err);
    json_decref(config);
    return status;
}

/* Closes the file in every case. */
static leat_status load_h5(leat_model **out, leati_h5 *file, const char *label, const leati_load *load,
                           leat_error *err) {
    leat_status status = leati_prefix(read_model(file, out, load, err), err, "'%s'", label);
    leati_h5_close(&file, NULL);
    if (status != LEAT_OK) leat_model_destroy(out);
    return status;
}

static leat_status fail_kind(const char *label, leat_error *err) {
    return leati_fail(err, LEAT_EFORMAT,
                      "'%s': expected a Keras .h5 or .keras file, an ONNX file, or a JSON architecture",
                      label);
}

static leat_status load_path(leat_model **out, const char *path, const leati_load *load, leat_error *err) {
    leati_h5 *file = NULL;
    file_kind kind = FILE_UNKNOWN;
    LEATI_TRY(kind_of_file(path, &kind, err));
    switch (kind) {
    case FILE_H5: LEATI_TRY(leati_h5_open(&file, path, err)); return load_h5(out, file, path, load, err);
    case FILE_JSON: return leati_prefix(load_json_file(out, path, load, err), err, "'%s'", path);
    case FILE_KERAS_ZIP: return leati_keras3_load(out, path, load, err);
    case FILE_ONNX: return leati_prefix(load_onnx_file(out, path, err), err, "'%s'", path);
    case FILE_UNKNOWN: break;
    }
    return fail_kind(path, err);
}

static leat_status load_bytes(leat_model **out, const void *data, size_t bytes, const leati_load *load,
                              leat_error *err) {
    leati_h5 *file = NULL;
    switch (kind_of(data, bytes)) {
    case FILE_H5:
        LEATI_TRY(leati_h5_open_bytes(&file, memory_label, data, bytes, err));
        return load_h5(out, file, memory_label, load, err);
    case FILE_JSON: return leati_prefix(load_json(out, data, bytes, load, err), err, "'%s'", memory_label);
    case FILE_KERAS_ZIP: return leati_keras3_load_bytes(out, memory_label, data, bytes, load, err);
    case FILE_ONNX:
        return leati_prefix(leati_onnx_load(out, NULL, data, bytes, err), err, "'%s'", memory_label);
    case FILE_UNKNOWN: break;
    }
    return fail_kind(memory_label, err);
}

leat_status leat_model_load(leat_model **out, const char *path, leat_error *err) {
    return leat_model_load_with(out, path, NULL, err);
}

leat_status leat_model_load_with(leat_model **out, const char *path, const leat_registry *registry,
                                 leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(path, err);
    const leati_load load = {.registry = registry, .compile = true, .hints = true};
    return load_path(out, path, &load, err);
}

leat_status leat_model_load_memory(leat_model **out, const void *data, size_t bytes,
                                   const leat_registry *registry, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(data, err);
    const leati_load load = {.registry = registry, .compile = true, .hints = true};
    return load_bytes(out, data, bytes, &load, err);
}

leat_status leat_model_load_using(leat_model **out, const char *path, const leat_model_load_options *options,
                                  leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(path, err);
    leati_load load;
    LEATI_TRY(leati_load_read(&load, options, err));
    return load_path(out, path, &load, err);
}

leat_status leat_model_load_memory_using(leat_model **out, const void *data, size_t bytes,
                                         const leat_model_load_options *options, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(data, err);
    leati_load load;
    LEATI_TRY(leati_load_read(&load, options, err));
    return load_bytes(out, data, bytes, &load, err);
}
