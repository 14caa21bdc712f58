/* SPDX-License-Identifier: Apache-2.0 */
/* Saves models and weights, in files and in memory: the suffix of the path decides the format.  Writes Keras 2.3.1's
 * .h5 files; keras3_write.c writes those of current Keras.  Room: formats. */
#include <string.h>

#include <jansson.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/os/file.h"
#include "formats/keras3.h"
#include "formats/keras_h5.h"
#include "formats/onnx/onnx.h"
#include "formats/safetensors.h"
#include "json/json.h"
#include "nn/keras3/own_keys.h"

leat_status leati_keras_h5_write_json(leati_h5 *file, const char *name, const json_t *value,
                                      leat_error *err) {
    char *text = NULL;
    LEATI_TRY(leati_json_write(value, &text, err));
    leat_status status = leati_h5_write_string(file, "/", name, text, err);
    leati_free(text);
    return status;
}

static leat_status write_training(leati_h5 *file, const leat_model *model, leat_error *err) {
    json_t *config = NULL;
    LEATI_TRY(leati_model_training_config(model, &config, err));
    leat_status status = leati_own_keys_adapt_training(config, err);
    const bool late = leati_keras3_is_late(model);
    if (status == LEAT_OK)
        status = late ? leati_keras3_write_late(file, model, config, err)
                      : leati_keras_h5_write_json(file, "training_config", config, err);
    json_decref(config);
    return late || status != LEAT_OK ? status : leati_keras_h5_write_optimizer(file, model, err);
}

/* Writes a model in the form of the Keras that it came from. */
static leat_status write_model(leati_h5 *file, const leat_model *model, bool include_optimizer,
                               leat_error *err) {
    json_t *config = NULL;
    if (model->from_keras3) return leati_keras3_write_h5(file, model, include_optimizer, err);
    LEATI_TRY(leati_model_config(model, &config, err));
    leat_status status = leati_own_keys_set_aside(config, err);
    if (status == LEAT_OK) status = leati_keras_h5_write_json(file, "model_config", config, err);
    json_decref(config);
    LEATI_TRY(status);
    LEATI_TRY(leati_h5_write_string(file, "/", "keras_version", "2.3.1", err));
    LEATI_TRY(leati_h5_write_string(file, "/", "backend", "tensorflow", err));
    LEATI_TRY(leati_keras_h5_write_weights(file, "model_weights", "2.3.1", model, err));
    return include_optimizer && model->compiled.ready ? write_training(file, model, err) : LEAT_OK;
}

typedef leat_status (*write_content)(leati_h5 *file, const leat_model *model, bool include_optimizer,
                                     leat_error *err);

/* Writes the content and closes the file.  An error of closing is the cause of errors before it, so it replaces
 * them. */
static leat_status write_and_close(leati_h5 *file, write_content content, const leat_model *model,
                                   bool include_optimizer, leat_error *err) {
    leat_status status = content(file, model, include_optimizer, err);
    leat_error unwritten = {0};
    if (leati_h5_close(&file, &unwritten) == LEAT_OK) return status;
    if (err) *err = unwritten;
    return unwritten.code;
}

/* Writes a new file beside the old one and renames the new file: a failure at any point leaves the old file
 * unchanged. */
static leat_status replace(const char *path, write_content content, const leat_model *model,
                           bool include_optimizer, leat_error *err) {
    leati_replacement replacement;
    leati_h5 *file = NULL;
    LEATI_TRY(leati_replace_begin(&replacement, path, err));
    leat_status status = leati_h5_create(&file, path, replacement.fd, err);
    if (status == LEAT_OK) status = write_and_close(file, content, model, include_optimizer, err);
    if (status == LEAT_OK) return leati_replace_commit(&replacement, err);
    leati_replace_abandon(&replacement);
    return status;
}

/* Gives the buffer's bytes to the caller. */
static void hand_over(leati_h5_buffer *buffer, void **out, size_t *bytes) {
    void *exact = leati_realloc(buffer->data, buffer->count, 1); /* gives back what the buffer has too much */
    *out = exact ? exact : buffer->data;
    *bytes = buffer->count;
}

static leat_status write_to_memory(write_content content, const leat_model *model, bool include_optimizer,
                                   void **out, size_t *bytes, leat_error *err) {
    leati_h5_buffer buffer = {0};
    leati_h5 *file = NULL;
    LEATI_TRY(leati_h5_create_in_memory(&file, "<memory>", &buffer, err));
    leat_status status = write_and_close(file, content, model, include_optimizer, err);
    if (status == LEAT_OK)
        hand_over(&buffer, out, bytes);
    else
        leati_free(buffer.data);
    return status;
}

static leat_status save_archive(const leat_model *model, const char *path, bool include_optimizer,
                                leat_error *err) {
    leati_zip_writer zip;
    LEATI_TRY(leati_zip_create(&zip, path, err));
    leat_status status = leati_keras3_write_archive(&zip, model, include_optimizer, err);
    if (status == LEAT_OK) return leati_zip_finish(&zip, err);
    leati_zip_abandon(&zip);
    return status;
}

static leat_status archive_to_memory(const leat_model *model, bool include_optimizer, void **out,
                                     size_t *bytes, leat_error *err) {
    leati_zip_writer zip;
    leati_zip_create_in_memory(&zip);
    leat_status status = leati_keras3_write_archive(&zip, model, include_optimizer, err);
    if (status == LEAT_OK) return leati_zip_finish_in_memory(&zip, out, bytes, err);
    leati_zip_abandon(&zip);
    return status;
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

static leat_status check_format(leat_model_format format, leat_error *err) {
    if (format == LEAT_MODEL_FORMAT_H5 || format == LEAT_MODEL_FORMAT_KERAS) return LEAT_OK;
    return leati_fail(
        err, LEAT_EINVAL,
        "format: expected LEAT_MODEL_FORMAT_H5 (%d), LEAT_MODEL_FORMAT_KERAS (%d) or another one that the "
        "function can write, received %d",
        (int)LEAT_MODEL_FORMAT_H5, (int)LEAT_MODEL_FORMAT_KERAS, (int)format);
}

leat_status leat_model_save(const leat_model *model, const char *path, bool include_optimizer,
                            leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(path, err);
    LEATI_TRY(leati_weights_fetch(&model->weights, err));
    if (ends_with(path, ".onnx")) return leati_onnx_save(model, path, err);
    return ends_with(path, ".keras") ? save_archive(model, path, include_optimizer, err)
                                     : replace(path, write_model, model, include_optimizer, err);
}

leat_status leat_model_save_memory(const leat_model *model, leat_model_format format, bool include_optimizer,
                                   void **out, size_t *bytes, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(bytes, err);
    *bytes = 0;
    LEATI_GIVEN(model, err);
    LEATI_TRY(leati_weights_fetch(&model->weights, err));
    if (format == LEAT_MODEL_FORMAT_ONNX) return leati_onnx_save_memory(model, out, bytes, err);
    LEATI_TRY(check_format(format, err));
    return format == LEAT_MODEL_FORMAT_KERAS
               ? archive_to_memory(model, include_optimizer, out, bytes, err)
               : write_to_memory(write_model, model, include_optimizer, out, bytes, err);
}

static leat_status write_weights(leati_h5 *file, const leat_model *model, bool include_optimizer,
                                 leat_error *err) {
    (void)include_optimizer;
    return leati_keras_h5_write_weights(file, "/", "2.3.1", model, err);
}

leat_status leat_model_save_weights(const leat_model *model, const char *path, leat_error *err) {
    LEATI_GIVEN(model, err);
    LEATI_GIVEN(path, err);
    LEATI_TRY(leati_weights_fetch(&model->weights, err));
    if (ends_with(path, ".safetensors")) return leati_safetensors_save(model, path, err);
    bool current = ends_with(path, ".weights.h5");
    return replace(path, current ? leati_keras3_write_weights : write_weights, model, current, err);
}

leat_status leat_model_save_weights_memory(const leat_model *model, leat_model_format format, void **out,
                                           size_t *bytes, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(bytes, err);
    *bytes = 0;
    LEATI_GIVEN(model, err);
    LEATI_TRY(leati_weights_fetch(&model->weights, err));
    if (format == LEAT_MODEL_FORMAT_SAFETENSORS) return leati_safetensors_save_memory(model, out, bytes, err);
    LEATI_TRY(check_format(format, err));
    bool current = format == LEAT_MODEL_FORMAT_KERAS;
    return write_to_memory(current ? leati_keras3_write_weights : write_weights, model, current, out, bytes,
                           err);
}

void leat_bytes_free(void *bytes) {
    leati_free(bytes);
}
