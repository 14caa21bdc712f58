/* SPDX-License-Identifier: Apache-2.0 */
/* Loads weights into a model from .h5 files of all versions of Keras, and from safetensors files.  Room: formats. */
#include <string.h>

#include "base/error.h"
#include "base/growing.h"
#include "base/os/file.h"
#include "formats/keras3.h"
#include "formats/keras_h5.h"
#include "formats/safetensors.h"

/* Replaces the path in messages about a file in memory. */
static const char memory_label[] = "<memory>";

static const leati_growing options_type = LEATI_GROWING(leat_load_weights_options, reshape, NULL);

void leat_load_weights_options_init(leat_load_weights_options *options, size_t size) {
    leati_growing_init(&options_type, options, size);
}

/* Reads the layout of .weights.h5, whose groups are numbered in the order of the layers. */
static leat_status read_modern(leati_h5 *file, leat_model *model, const leati_matching *matching,
                               leat_error *err) {
    leati_placement placement;
    if (matching->by_name)
        return leati_fail(
            err, LEAT_EINVAL,
            "by_name: a .weights.h5 file of current Keras has its weights by order, not by name");
    LEATI_TRY(leati_placement_in_order(&placement, model, err));
    leat_status status = leati_placement_read(&placement, file, model, matching, err);
    leati_placement_fini(&placement);
    return status;
}

static leat_status read_any(leati_h5 *file, leat_model *model, const leati_matching *matching,
                            leat_error *err) {
    const char *group = NULL;
    bool modern = false;
    LEATI_TRY(leati_keras_h5_is_modern(file, &modern, err));
    if (modern) return read_modern(file, model, matching, err);
    LEATI_TRY(leati_keras_h5_find(file, &group, err));
    return leati_keras_h5_read_weights(file, group, model, matching, err);
}

/* Closes the file in every case. */
static leat_status load(leat_model *model, leati_h5 *file, const char *label, const leati_matching *matching,
                        leat_error *err) {
    leat_status status = read_any(file, model, matching, err);
    leati_model_weights_changed(model); /* some of the weights have changed even after a failure */
    leati_h5_close(&file, NULL);
    return leati_prefix(status, err, "'%s'", label);
}

/* Reads a safetensors file.  *is_one: false if the file is none, which its bytes tell. */
static leat_status load_safetensors(leat_model *model, const char *path, const leati_matching *matching,
                                    bool *is_one, leat_error *err) {
    leati_map map;
    const size_t length = strlen(path), end = strlen(".safetensors");
    LEATI_TRY(leati_map_open_guarded(&map, path, err));
    *is_one = leati_safetensors_is(map.data, map.size) ||
              (length >= end && strcmp(path + length - end, ".safetensors") == 0);
    leat_status status = *is_one ? leati_safetensors_read(model, map.data, map.size, matching, err) : LEAT_OK;
    if (status == LEAT_OK && *is_one) status = leati_map_check(&map, map.data, map.size, err);
    leati_map_close(&map);
    return leati_prefix(status, err, "'%s'", path);
}

leat_status leat_model_load_weights(leat_model *model, const char *path, bool by_name, leat_error *err) {
    leat_load_weights_options options = leat_load_weights_options_default();
    options.by_name = by_name;
    return leat_model_load_weights_using(model, path, &options, err);
}

leat_status leat_model_load_weights_using(leat_model *model, const char *path,
                                          const leat_load_weights_options *options, leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(path, err);
    leat_load_weights_options all;
    leati_h5 *file = NULL;
    LEATI_TRY(leati_growing_read(&options_type, options, &all, err));
    const leati_matching matching = {all.by_name, all.skip_mismatch, all.reshape};
    bool is_safetensors = false;
    LEATI_TRY(load_safetensors(model, path, &matching, &is_safetensors, err));
    if (is_safetensors) return LEAT_OK;
    LEATI_TRY(leati_h5_open(&file, path, err));
    return load(model, file, path, &matching, err);
}

leat_status leat_model_load_weights_memory(leat_model *model, const void *data, size_t bytes, bool by_name,
                                           leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(data, err);
    leati_h5 *file = NULL;
    const leati_matching matching = {.by_name = by_name};
    if (leati_safetensors_is(data, bytes))
        return leati_prefix(leati_safetensors_read(model, data, bytes, &matching, err), err, "'%s'",
                            memory_label);
    LEATI_TRY(leati_h5_open_bytes(&file, memory_label, data, bytes, err));
    return load(model, file, memory_label, &matching, err);
}
