/* SPDX-License-Identifier: Apache-2.0 */
/* Loads .keras archives: zip files of config.json, metadata.json and model.weights.h5.  Room: formats. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "formats/keras3.h"
#include "formats/vocabulary.h"
#include "json/json.h"
#include "nn/config/object.h"
#include "nn/keras3/translate.h"
#include "nn/network/network.h"
#include "zip/zip.h"

/* Room for what a file of weights has besides numbers. */
#define WEIGHTS_EXTRA_BYTES (UINT64_C(64) << 20)

/* Finds a member's bytes, at most `most`, and verifies their checksum.  The bytes of a stored member lie in the
 * archive, and *owned is NULL, unless `copy` is true; all other bytes are in *owned, which is for leati_free. */
static leat_status member_bytes(const leati_zip *zip, const char *name, uint64_t most, bool copy,
                                const void **data, size_t *size, void **owned, leat_error *err) {
    const leati_zip_member *member = leati_zip_find(zip, name);
    *owned = NULL;
    *data = NULL;
    *size = 0;
    if (!member) return leati_fail(err, LEAT_EFORMAT, "expected a member '%s', found none", name);
    *size = (size_t)member->bytes;
    *data = member->packed;
    if (member->stored && !copy) return leati_zip_check(zip, member, err);
    if (member->bytes > most)
        return leati_fail(err, LEAT_EFORMAT,
                          "'%s': expected at most %llu bytes after unpacking, the archive claims %llu", name,
                          (unsigned long long)most, (unsigned long long)member->bytes);
    *owned = leati_calloc(1, *size ? *size : 1);
    if (!*owned) return leati_fail_memory(err, *size, name);
    *data = *owned;
    leat_status status = leati_zip_read(zip, member, *owned, err);
    if (status == LEAT_OK) return LEAT_OK;
    leati_free(*owned);
    *owned = NULL;
    return status;
}

/* Parses a copy of the text: it is read twice, and another process may change the file meanwhile. */
static leat_status member_json(const leati_zip *zip, const char *name, json_t **out, leat_error *err) {
    const void *data;
    size_t size;
    void *owned;
    *out = NULL;
    LEATI_TRY(member_bytes(zip, name, LEATI_JSON_MAX_BYTES, true, &data, &size, &owned, err));
    leat_status status = leati_json_parse(out, data, size, err);
    leati_free(owned);
    return leati_prefix(status, err, "%s", name);
}

/* ---- Vocabularies ---- */

/* Sets the vocabulary of a layer that learned it by adapt(): Keras stores it as a text file of the archive. */
static leat_status read_vocabulary(const leati_zip *zip, const char *group, json_t *config, leat_error *err) {
    char name[320];
    const void *data;
    size_t size;
    void *owned;
    json_t *vocabulary = NULL;
    snprintf(name, sizeof name, "%s/vocabulary.txt", group);
    if (!json_is_null(json_object_get(config, "vocabulary")) || !leati_zip_find(zip, name)) return LEAT_OK;
    LEATI_TRY(member_bytes(zip, name, LEATI_JSON_MAX_BYTES, true, &data, &size, &owned, err));
    leat_status status = leati_vocabulary_parse(data, size, name, &vocabulary, err);
    leati_free(owned);
    if (status == LEAT_OK && json_object_set_new(config, "vocabulary", vocabulary) != 0)
        status = leati_fail(err, LEAT_ENOMEM, "no memory for a vocabulary");
    return status;
}

/* The classes that have, or may contain, vocabularies, by the names of their groups. */
static const char *const vocabulary_groups[] = {"integer_lookup", "sequential", "functional"};
enum { VOCABULARY_GROUPS = 3 };

/* Returns the index of the name of an item's group; -1 for another class. */
static int vocabulary_group(const json_t *item) {
    if (leati_item_is_model(item)) return strcmp(leati_item_class(item), "Sequential") == 0 ? 1 : 2;
    return strcmp(leati_item_class(item), "IntegerLookup") == 0 ? 0 : -1;
}

/* Reads the vocabularies of all layers of a configuration that is not translated yet.  Like the groups of weights,
 * those of assets are numbered by class.  The parser limits the depth of the recursion. */
static leat_status read_vocabularies(const leati_zip *zip, const char *group, const json_t *config,
                                     leat_error *err) {
    const json_t *layers = json_object_get(config, "layers");
    size_t counts[VOCABULARY_GROUPS] = {0};
    for (size_t i = 0; i < json_array_size(layers); ++i) {
        const json_t *item = json_array_get(layers, i);
        json_t *own = json_object_get(item, "config");
        const int index = vocabulary_group(item);
        char inner[256], number[24] = "";
        if (index < 0 || !json_is_object(own)) continue;
        if (counts[index] > 0) snprintf(number, sizeof number, "_%zu", counts[index]);
        ++counts[index];
        int length = snprintf(inner, sizeof inner, "%s/layers/%s%s", group, vocabulary_groups[index], number);
        if (length < 0 || (size_t)length >= sizeof inner) continue; /* refused when the weights are placed */
        LEATI_TRY(index > 0 ? read_vocabularies(zip, inner, own, err)
                            : read_vocabulary(zip, inner, own, err));
    }
    return LEAT_OK;
}

/* ---- Archives ---- */

/* The content of an archive. */
typedef struct archive {
    json_t *config;      /* in the form of Keras 2.3.1 */
    json_t *compilation; /* a training_config, or NULL */
    const leati_zip *zip;
    leati_h5 *weights;
    void *unpacked; /* the bytes of `weights` if they were deflated */
} archive;

static leat_status open_config(archive *out, const leati_zip *zip, leat_error *err) {
    json_t *config = NULL, *metadata = NULL;
    LEATI_TRY(member_json(zip, "config.json", &config, err));
    leat_status status = LEAT_OK;
    if (leati_zip_find(zip, "metadata.json")) status = member_json(zip, "metadata.json", &metadata, err);
    json_t *version = json_object_get(metadata, "keras_version");
    if (version && json_is_object(config) && json_object_set(config, "keras_version", version) != 0)
        status = leati_fail(err, LEAT_ENOMEM, "no memory for a configuration");
    const json_t *compile_config = json_object_get(config, "compile_config");
    if (status == LEAT_OK && json_object_get(compile_config, "optimizer"))
        status = leati_translate_compilation(compile_config, leati_is_late(config), &out->compilation, err);
    const json_t *outputs = json_object_get(json_object_get(config, "config"), "output_layers");
    if (status == LEAT_OK) status = leati_flatten_compilation(out->compilation, outputs, err);
    if (status == LEAT_OK)
        status = leati_translate_kept(out->compilation, json_object_get(metadata, LEATI_KEPT_KEY), err);
    json_decref(metadata);
    if (status == LEAT_OK) status = read_vocabularies(zip, "assets", json_object_get(config, "config"), err);
    if (status == LEAT_OK) status = leati_translate_model(config, &out->config, err);
    json_decref(config);
    return status;
}

/* Returns the most bytes that a deflated file of the model's weights may unpack to: eight times the weights, for the
 * variables of the optimizer. */
static uint64_t most_weight_bytes(const leat_model *model) {
    uint64_t bytes = WEIGHTS_EXTRA_BYTES;
    for (int i = 0; i < model->weights.count; ++i)
        bytes += 8 * (uint64_t)leati_desc_bytes(&model->weights.entries[i]->desc);
    return bytes;
}

static leat_status open_weights(archive *a, const leat_model *model, leat_error *err) {
    static const char name[] = "model.weights.h5";
    const void *data;
    size_t size;
    LEATI_TRY(member_bytes(a->zip, name, most_weight_bytes(model), false, &data, &size, &a->unpacked, err));
    return leati_h5_open_bytes(&a->weights, name, data, size, err);
}

static void close_archive(archive *a) {
    leati_h5_close(&a->weights, NULL);
    leati_free(a->unpacked);
    json_decref(a->config);
    json_decref(a->compilation);
}

/* Counts the variables of the optimizer. */
static leat_status count_state(leati_h5 *weights, int *count, leat_error *err) {
    char path[64];
    bool exists = false;
    for (*count = 0;; ++*count) {
        leati_keras3_state_path(NULL, *count, path, sizeof path);
        LEATI_TRY(leati_h5_exists(weights, path, &exists, err));
        if (!exists) return LEAT_OK;
    }
}

/* Current Keras puts the optimizer of a model with the policy mixed_float16 into a LossScaleOptimizer by itself.  The
 * compilation does not name it, but the optimizer's variables are those of both, and those of the inner one are there a
 * second time. */
static leat_status name_loss_scale(const archive *a, leat_error *err) {
    json_t *optimizer = json_object_get(a->compilation, "optimizer_config");
    const char *class_name = json_string_value(json_object_get(optimizer, "class_name"));
    bool scales = false;
    if (leati_is_late(a->config) || (class_name && strcmp(class_name, "LossScaleOptimizer") == 0))
        return LEAT_OK;
    LEATI_TRY(leati_h5_exists(a->weights, "optimizer/inner_optimizer", &scales, err));
    if (!scales) return LEAT_OK;
    json_t *whole = json_pack("{s:s, s:{s:O}}", "class_name", "LossScaleOptimizer", "config",
                              "inner_optimizer", optimizer);
    return json_object_set_new(a->compilation, "optimizer_config", whole) == 0
               ? LEAT_OK
               : leati_fail(err, LEAT_ENOMEM, "no memory for a configuration");
}

static leat_status read_training(const archive *a, const leati_placement *placement, leat_model *model,
                                 const leati_load *load, leat_error *err) {
    int count = 0;
    if (!a->compilation) return LEAT_OK;
    LEATI_TRY(name_loss_scale(a, err));
    LEATI_TRY(leati_prefix(leati_load_compilation(model, a->compilation, load, err), err, "compile_config"));
    if (!load->compile) return LEAT_OK;
    LEATI_TRY(count_state(a->weights, &count, err));
    if (!leati_keras3_has_state(model, count, leati_is_late(a->config))) return LEAT_OK;
    return leati_keras3_read_state(placement, a->weights, model, count, false, leati_keras3_state_path, NULL,
                                   err);
}

static leat_status read_model(leat_model **out, archive *a, const leati_load *load, leat_error *err) {
    const leati_matching by_order = {0};
    leati_placement placement = {0};
    LEATI_TRY(leati_model_from_config_with(out, a->config, load->registry, err));
    LEATI_TRY(open_weights(a, *out, err));
    LEATI_TRY(leati_placement_find(&placement, a->weights, *out, a->config, err));
    leat_status status = leati_placement_read(&placement, a->weights, *out, &by_order, err);
    if (status == LEAT_OK) status = leati_load_hint(read_training(a, &placement, *out, load, err), load, err);
    leati_placement_fini(&placement);
    return status;
}

/* Closes the zip file in every case. */
static leat_status load_zip(leat_model **out, leati_zip *zip, const char *label, const leati_load *load,
                            leat_error *err) {
    archive a = {.zip = zip};
    leat_status status = open_config(&a, zip, err);
    if (status == LEAT_OK) status = read_model(out, &a, load, err);
    close_archive(&a);
    leati_zip_close(zip);
    if (status != LEAT_OK) leat_model_destroy(out);
    return leati_prefix(status, err, "'%s'", label);
}

leat_status leati_keras3_load(leat_model **out, const char *path, const leati_load *load, leat_error *err) {
    leati_zip zip;
    *out = NULL;
    LEATI_TRY(leati_zip_open(&zip, path, err));
    return load_zip(out, &zip, path, load, err);
}

leat_status leati_keras3_load_bytes(leat_model **out, const char *label, const void *data, size_t size,
                                    const leati_load *load, leat_error *err) {
    leati_zip zip;
    *out = NULL;
    LEATI_TRY(leati_zip_open_bytes(&zip, data, size, label, err));
    return load_zip(out, &zip, label, load, err);
}
