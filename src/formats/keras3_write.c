/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the files of current Keras: .keras archives, .weights.h5 and .h5 files.  Source: keras.src.saving.saving_lib,
 * keras.src.legacy.saving.legacy_h5_format.  Room: formats. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "formats/keras3.h"
#include "formats/keras_h5.h"
#include "json/json.h"
#include "nn/keras3/translate.h"
#include "nn/layers/preprocessing/integer_lookup.h"
#include "nn/model/export.h"
#include "nn/optimizers/types.h"

/* ---- The layout of .weights.h5 ---- */

leat_status leati_placement_of(leati_placement *out, const leat_model *model, leat_error *err) {
    json_t *config = NULL;
    *out = (leati_placement){0};
    LEATI_TRY(leati_model_config(model, &config, err));
    leat_status status = leati_placement_make(out, model, config, err);
    json_decref(config);
    return status;
}

leat_status leati_placement_in_order(leati_placement *out, const leat_model *model, leat_error *err) {
    json_t *order = NULL;
    *out = (leati_placement){0};
    LEATI_TRY(leati_model_layer_order(model, &order, err));
    leat_status status = leati_placement_make(out, model, order, err);
    json_decref(order);
    return status;
}

static leat_tensor weight_view(const leat_model *model, const leati_weight *weight) {
    char *slab = leati_weights_slab(&model->weights, LEATI_SLAB_WEIGHTS);
    return leat_tensor_view(weight->desc.dtype, weight->desc.rank, weight->desc.shape,
                            slab + weight->offset_bytes);
}

static leat_status write_groups(leati_h5 *file, const leati_placement *placement, leat_error *err) {
    for (int32_t i = 0; i < placement->group_count; ++i) {
        const leati_placed_group *group = &placement->groups[i];
        LEATI_TRY(leati_h5_write_group(file, group->path, err));
        LEATI_TRY(leati_h5_write_string(file, group->path, "name", group->name, err));
    }
    return LEAT_OK;
}

static leat_status write_optimizer(leati_h5 *file, const leati_placement *placement, const leat_model *model,
                                   leat_error *err) {
    static const char inner[] = "optimizer/inner_optimizer/vars";
    const bool scaled = model->compiled.optimizer->scale.growth_steps > 0;
    char name[LEAT_NAME_BYTES];
    leati_keras3_optimizer_name(model->compiled.optimizer, name);
    LEATI_TRY(leati_h5_write_group(file, "optimizer/vars", err));
    LEATI_TRY(
        leati_h5_write_string(file, "optimizer/vars", "name", scaled ? "loss_scale_optimizer" : name, err));
    LEATI_TRY(leati_keras3_write_state(placement, file, model, leati_keras3_state_path, NULL, err));
    if (!scaled) return LEAT_OK;
    LEATI_TRY(leati_h5_write_group(file, inner, err));
    LEATI_TRY(leati_h5_write_string(file, inner, "name", name, err));
    return leati_keras3_write_inner_state(placement, file, model, err);
}

static leat_status write_weights(leati_h5 *file, const leati_placement *placement, const leat_model *model,
                                 bool include_optimizer, leat_error *err) {
    LEATI_TRY(write_groups(file, placement, err));
    for (int32_t i = 0; i < placement->count; ++i) {
        const leati_placed_weight *item = &placement->items[i];
        leat_tensor tensor = weight_view(model, item->weight);
        LEATI_TRY(leati_h5_write(file, item->path, &tensor, err));
        if (item->copy[0]) LEATI_TRY(leati_h5_write(file, item->copy, &tensor, err));
    }
    for (int32_t i = 0; i < placement->factors_count; ++i) {
        leat_tensor factors;
        if (leati_integer_lookup_factors(placement->factors[i].layer, &factors))
            LEATI_TRY(leati_h5_write(file, placement->factors[i].path, &factors, err));
    }
    return include_optimizer && model->compiled.ready ? write_optimizer(file, placement, model, err)
                                                      : LEAT_OK;
}

leat_status leati_keras3_write_weights(leati_h5 *file, const leat_model *model, bool include_optimizer,
                                       leat_error *err) {
    leati_placement placement;
    LEATI_TRY(leati_placement_in_order(&placement, model, err));
    leat_status status = write_weights(file, &placement, model, include_optimizer, err);
    leati_placement_fini(&placement);
    return status;
}

/* ---- .h5 ---- */

/* The variables of an optimizer are datasets with any names; the attribute weight_names gives their order. */
typedef struct h5_state {
    char optimizer[LEAT_NAME_BYTES];
    size_t count;
    char (*names)[2 * LEAT_NAME_BYTES]; /* "adam/slot_2" */
} h5_state;

static void h5_state_path(void *user, int index, char *out, size_t bytes) {
    const h5_state *state = user;
    snprintf(out, bytes, "optimizer_weights/%s", state->names[index]);
}

static leat_status write_state_names(leati_h5 *file, const h5_state *state, leat_error *err) {
    static const char group[] = "optimizer_weights";
    const char **names = leati_calloc(state->count, sizeof *names);
    if (!names) return leati_fail_memory(err, state->count * sizeof *names, "the names of variables");
    for (size_t i = 0; i < state->count; ++i) {
        const char *kind = i == 0 ? "iteration" : "variable";
        snprintf(state->names[i], sizeof *state->names, "%s/%s_%zu", state->optimizer, kind, i);
        names[i] = state->names[i];
    }
    leat_status status = leati_h5_write_group(file, group, err);
    if (status == LEAT_OK)
        status = leati_h5_write_strings(file, group, "weight_names", names, state->count, err);
    leati_free(names);
    return status;
}

static leat_status write_h5_state(leati_h5 *file, const leat_model *model, bool late, leat_error *err) {
    h5_state state = {
        .count = (size_t)(late ? leati_keras3_late_state_count(model) : leati_keras3_state_count(model))};
    leati_placement placement = {0};
    leati_keras3_optimizer_name(model->compiled.optimizer, state.optimizer);
    state.names = leati_calloc(state.count, sizeof *state.names);
    leat_status status =
        state.names ? LEAT_OK
                    : leati_fail_memory(err, state.count * sizeof *state.names, "the names of variables");
    if (status == LEAT_OK) status = write_state_names(file, &state, err);
    if (status == LEAT_OK && !late) status = leati_placement_of(&placement, model, err);
    if (status == LEAT_OK)
        status = leati_keras3_write_state(late ? NULL : &placement, file, model, h5_state_path, &state, err);
    leati_placement_fini(&placement);
    leati_free(state.names);
    return status;
}

/* Adds LEATI_KEPT_KEY to an object if the model computes in the arithmetic of 2.3.1. */
static leat_status add_kept(json_t *object, const leat_model *model, leat_error *err) {
    json_t *kept = NULL;
    LEATI_TRY(leati_keras3_kept(model, &kept, err));
    if (!kept || json_object_set_new(object, LEATI_KEPT_KEY, kept) == 0) return LEAT_OK;
    return leati_fail(err, LEAT_ENOMEM, "no memory for a training_config");
}

static leat_status write_h5_training(leati_h5 *file, const leat_model *model, leat_error *err) {
    json_t *config = NULL;
    LEATI_TRY(leati_keras3_compilation(model, LEATI_KERAS3_H5, &config, err));
    leat_status status = add_kept(config, model, err);
    if (status == LEAT_OK) status = leati_keras_h5_write_json(file, "training_config", config, err);
    json_decref(config);
    return status == LEAT_OK ? write_h5_state(file, model, false, err) : status;
}

bool leati_keras3_is_late(const leat_model *model) {
    const leati_optimizer *optimizer = model->compiled.optimizer;
    return optimizer->adds_rows && !optimizer->object && !optimizer->scale.wraps &&
           leati_optimizer_batches(optimizer) == 1 && optimizer->type != &leati_optimizer_adafactor;
}

/* Makes the optimizer's object of tf.keras, which registers its classes under names of their own (new reference). */
static leat_status late_optimizer(const leat_model *model, json_t **out, leat_error *err) {
    LEATI_TRY(leati_keras3_optimizer(model->compiled.optimizer, LEATI_KERAS3_H5, out, err));
    json_t *config = json_object_get(*out, "config");
    json_object_del(config, "loss_scale_factor");
    json_object_del(config, "gradient_accumulation_steps");
    const char *class_name = json_string_value(json_object_get(*out, "class_name"));
    const bool set = json_object_set_new(config, "jit_compile", json_false()) == 0 &&
                     json_object_set_new(config, "is_legacy_optimizer", json_false()) == 0 &&
                     json_object_set_new(*out, "class_name", json_sprintf("Custom>%s", class_name)) == 0;
    return set ? LEAT_OK : leati_fail(err, LEAT_ENOMEM, "no memory for an optimizer");
}

leat_status leati_keras3_write_late(leati_h5 *file, const leat_model *model, json_t *training_config,
                                    leat_error *err) {
    static const char key[] = "optimizer_config";
    json_t *object = NULL;
    leat_status status = late_optimizer(model, &object, err);
    json_t *kept = json_pack("{s:O}", key, json_object_get(training_config, key));
    bool set = kept && json_object_set(training_config, LEATI_KEPT_KEY, kept) == 0 && object &&
               json_object_set(training_config, key, object) == 0;
    json_decref(kept);
    json_decref(object);
    LEATI_TRY(status);
    if (!set) return leati_fail(err, LEAT_ENOMEM, "no memory for a training_config");
    LEATI_TRY(leati_keras_h5_write_json(file, "training_config", training_config, err));
    return write_h5_state(file, model, true, err);
}

leat_status leati_keras3_write_h5(leati_h5 *file, const leat_model *model, bool include_optimizer,
                                  leat_error *err) {
    json_t *config = NULL;
    LEATI_TRY(leati_keras3_model(model, LEATI_KERAS3_H5, &config, err));
    leat_status status = leati_keras_h5_write_json(file, "model_config", config, err);
    json_decref(config);
    LEATI_TRY(status);
    LEATI_TRY(leati_h5_write_string(file, "/", "keras_version", LEATI_KERAS3_VERSION, err));
    LEATI_TRY(leati_h5_write_string(file, "/", "backend", "tensorflow", err));
    LEATI_TRY(leati_keras_h5_write_weights(file, "model_weights", LEATI_KERAS3_VERSION, model, err));
    LEATI_TRY(leati_h5_write_group(file, "model_weights/top_level_model_weights", err));
    LEATI_TRY(
        leati_h5_write_strings(file, "model_weights/top_level_model_weights", "weight_names", NULL, 0, err));
    return include_optimizer && model->compiled.ready ? write_h5_training(file, model, err) : LEAT_OK;
}

/* ---- .keras ---- */

static leat_status add_json(leati_zip_writer *zip, const char *name, const json_t *value, leat_error *err) {
    char *text = NULL;
    LEATI_TRY(leati_json_write(value, &text, err));
    const leati_piece piece = {text, strlen(text)};
    leat_status status = leati_zip_add(zip, name, &piece, 1, err);
    leati_free(text);
    return status;
}

/* Keras also writes the date, which it never reads.  Without the date, equal models are equal files. */
static leat_status add_metadata(leati_zip_writer *zip, const leat_model *model, bool compiled,
                                leat_error *err) {
    json_t *metadata = json_pack("{s:s}", "keras_version", LEATI_KERAS3_VERSION);
    leat_status status = metadata ? LEAT_OK : leati_fail(err, LEAT_ENOMEM, "no memory for metadata.json");
    if (status == LEAT_OK && compiled) status = add_kept(metadata, model, err);
    if (status == LEAT_OK) status = add_json(zip, "metadata.json", metadata, err);
    json_decref(metadata);
    return status;
}

static leat_status add_config(leati_zip_writer *zip, const leat_model *model, bool compiled,
                              leat_error *err) {
    json_t *config = NULL, *compilation = NULL;
    LEATI_TRY(leati_keras3_model(model, LEATI_KERAS3_ARCHIVE, &config, err));
    leat_status status = LEAT_OK;
    if (compiled) status = leati_keras3_compilation(model, LEATI_KERAS3_ARCHIVE, &compilation, err);
    if (status == LEAT_OK && compiled && json_object_set(config, "compile_config", compilation) != 0)
        status = leati_fail(err, LEAT_ENOMEM, "no memory for config.json");
    if (status == LEAT_OK) status = add_json(zip, "config.json", config, err);
    json_decref(compilation);
    json_decref(config);
    return status;
}

static leat_status add_weights(leati_zip_writer *zip, const leat_model *model, bool compiled,
                               leat_error *err) {
    static const char name[] = "model.weights.h5";
    leati_h5_buffer buffer = {0};
    leati_h5 *file = NULL;
    leat_error unwritten = {0};
    LEATI_TRY(leati_h5_create_in_memory(&file, name, &buffer, err));
    leati_placement placement;
    leat_status status = leati_placement_of(&placement, model, err);
    if (status == LEAT_OK) status = write_weights(file, &placement, model, compiled, err);
    leati_placement_fini(&placement);
    if (leati_h5_close(&file, &unwritten) != LEAT_OK) {
        if (err) *err = unwritten;
        status = (leat_status)unwritten.code;
    }
    const leati_piece piece = {buffer.data, buffer.count};
    if (status == LEAT_OK) status = leati_zip_add(zip, name, &piece, 1, err);
    leati_free(buffer.data);
    return status;
}

leat_status leati_keras3_write_archive(leati_zip_writer *zip, const leat_model *model, bool include_optimizer,
                                       leat_error *err) {
    bool compiled = include_optimizer && model->compiled.ready;
    LEATI_TRY(add_metadata(zip, model, compiled, err));
    LEATI_TRY(add_config(zip, model, compiled, err));
    return add_weights(zip, model, compiled, err);
}
