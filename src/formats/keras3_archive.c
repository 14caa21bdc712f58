/* SPDX-License-Identifier: Apache-2.0 */
/* Loads .keras archives: zip files of config.json, metadata.json and model.weights.h5.  Room: formats. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "formats/keras3.h"
#include "json/json.h"
#include "nn/keras3/translate.h"
#include "zip/zip.h"

/* More bytes than the weights of any model; a file that claims to unpack to more is refused. */
#define MAX_MEMBER_BYTES (UINT64_C(64) << 30)

/* Finds a member's bytes.  The bytes of a stored member lie in the archive, and *owned is NULL, unless `copy` is
 * true; all other bytes are in *owned, which is for leati_free. */
static leat_status member_bytes(const leati_zip *zip, const char *name, bool copy, const void **data,
                                size_t *size, void **owned, leat_error *err) {
    const leati_zip_member *member = leati_zip_find(zip, name);
    *owned = NULL;
    *data = NULL;
    *size = 0;
    if (!member) return leati_fail(err, LEAT_EFORMAT, "expected a member '%s', found none", name);
    *size = (size_t)member->bytes;
    *data = member->packed;
    if (member->stored && !copy) return LEAT_OK;
    if (!member->stored && (member->bytes > MAX_MEMBER_BYTES || member->bytes / 1100 > member->packed_bytes))
        return leati_fail(err, LEAT_EFORMAT, "'%s': larger than a deflated member can be", name);
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
    LEATI_TRY(member_bytes(zip, name, true, &data, &size, &owned, err));
    leat_status status = leati_json_parse(out, data, size, err);
    leati_free(owned);
    return leati_prefix(status, err, "%s", name);
}

/* The content of an archive. */
typedef struct archive {
    json_t *config;      /* in the form of Keras 2.3.1 */
    json_t *compilation; /* a training_config, or NULL */
    leati_h5 *weights;
    void *unpacked; /* the bytes of `weights` if they were deflated */
} archive;

static leat_status open_config(archive *out, const leati_zip *zip, leat_error *err) {
    json_t *config = NULL, *metadata = NULL;
    LEATI_TRY(member_json(zip, "config.json", &config, err));
    leat_status status = LEAT_OK;
    if (leati_zip_find(zip, "metadata.json")) status = member_json(zip, "metadata.json", &metadata, err);
    json_t *version = json_object_get(metadata, "keras_version");
    if (version && json_object_set(config, "keras_version", version) != 0)
        status = leati_fail(err, LEAT_ENOMEM, "no memory for a configuration");
    json_decref(metadata);
    const json_t *compile_config = json_object_get(config, "compile_config");
    if (status == LEAT_OK && json_object_get(compile_config, "optimizer"))
        status = leati_translate_compilation(compile_config, leati_is_late(config), &out->compilation, err);
    if (status == LEAT_OK) status = leati_translate_model(config, &out->config, err);
    json_decref(config);
    return status;
}

static leat_status open_archive(archive *out, const leati_zip *zip, leat_error *err) {
    static const char name[] = "model.weights.h5";
    const void *data;
    size_t size;
    LEATI_TRY(open_config(out, zip, err));
    LEATI_TRY(member_bytes(zip, name, false, &data, &size, &out->unpacked, err));
    return leati_h5_open_bytes(&out->weights, name, data, size, err);
}

static void close_archive(archive *a) {
    leati_h5_close(&a->weights, NULL);
    leati_free(a->unpacked);
    json_decref(a->config);
    json_decref(a->compilation);
}

static void state_name(void *user, int index, char *out, size_t bytes) {
    (void)user;
    snprintf(out, bytes, "optimizer/vars/%d", index);
}

static leat_status read_training(const archive *a, const leati_placement *placement, leat_model *model,
                                 const leati_load *load, leat_error *err) {
    char path[64];
    int count = 0;
    if (!a->compilation) return LEAT_OK;
    LEATI_TRY(leati_prefix(leati_load_compilation(model, a->compilation, load, err), err, "compile_config"));
    if (!load->compile) return LEAT_OK;
    for (state_name(NULL, 0, path, sizeof path); leati_h5_has_object(a->weights, path); ++count)
        state_name(NULL, count + 1, path, sizeof path);
    if (count == 0 || (count < 3 && count < leati_keras3_state_count(model) - 1))
        return LEAT_OK; /* the optimizer has no slots yet: the model was never trained */
    return leati_keras3_read_state(placement, a->weights, model, count, false, state_name, NULL, err);
}

static leat_status read_model(leat_model **out, const archive *a, const leati_load *load, leat_error *err) {
    const leati_matching by_order = {0};
    leati_placement placement = {0};
    LEATI_TRY(leati_model_from_config_with(out, a->config, load->registry, err));
    LEATI_TRY(leati_placement_make(&placement, *out, a->config, err));
    leat_status status = leati_placement_read(&placement, a->weights, *out, &by_order, err);
    if (status == LEAT_OK) status = leati_load_hint(read_training(a, &placement, *out, load, err), load, err);
    leati_placement_fini(&placement);
    return status;
}

/* Closes the zip file in every case. */
static leat_status load_zip(leat_model **out, leati_zip *zip, const char *label, const leati_load *load,
                            leat_error *err) {
    archive a = {0};
    leat_status status = open_archive(&a, zip, err);
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
