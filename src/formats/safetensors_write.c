/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the weights of a model as safetensors.  Room: formats. */
#include <string.h>

#include <jansson.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/os/file.h"
#include "formats/safetensors_header.h"
#include "formats/safetensors.h"
#include "json/json.h"

enum { HEADER_ALIGNMENT = 8 }; /* the data begin at a multiple of this, as Python's safetensors writes them */

static const leati_weight *weight_at(const leat_model *model, int index) {
    return model->weights.entries[model->weights.order[index]];
}

/* Returns the entry of a tensor in the header; NULL without memory. */
static json_t *entry_of(const leati_desc *desc, size_t begin, size_t end) {
    json_t *shape = json_array();
    for (int i = 0; shape && i < desc->rank; ++i)
        if (json_array_append_new(shape, json_integer(desc->shape[i])) != 0) return json_decref(shape), NULL;
    if (!shape) return NULL;
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", "F32", "shape", shape, "data_offsets",
                     (json_int_t)begin, (json_int_t)end);
}

/* Adds a weight to the header; *end becomes the end of its data. */
static leat_status add_tensor(json_t *header, const leat_model *model, int index, size_t *end,
                              leat_error *err) {
    char name[LEATI_SAFETENSORS_NAME_BYTES];
    const leati_desc *desc = &weight_at(model, index)->desc;
    const size_t begin = *end;
    leati_safetensors_name(model, index, name);
    if (json_object_get(header, name))
        return leati_fail(err, LEAT_ENOTSUP, "two weights are called '%.200s'; rename one of the layers",
                          name);
    *end += leati_desc_bytes(desc);
    json_t *entry = entry_of(desc, begin, *end);
    if (entry && json_object_set_new(header, name, entry) == 0) return LEAT_OK;
    return leati_fail_memory(err, sizeof name, "the names of weights");
}

/* Makes the beginning of the file: the length of the header, the header, and blanks. */
static leat_status make_header(const leat_model *model, unsigned char **out, size_t *bytes, leat_error *err) {
    json_t *header = json_pack("{s:{s:s}}", "__metadata__", "format", "keras");
    char *text = NULL;
    size_t end = 0;
    leat_status status = header ? LEAT_OK : leati_fail_memory(err, LEATI_SAFETENSORS_NAME_BYTES, "names");
    for (int i = 0; status == LEAT_OK && i < model->weights.count; ++i)
        status = add_tensor(header, model, i, &end, err);
    if (status == LEAT_OK) status = leati_json_write(header, &text, err);
    json_decref(header);
    LEATI_TRY(status);
    const size_t length = strlen(text);
    const size_t padded = (length + HEADER_ALIGNMENT - 1) / HEADER_ALIGNMENT * HEADER_ALIGNMENT;
    *bytes = LEATI_SAFETENSORS_LENGTH_BYTES + padded;
    *out = leati_calloc(*bytes, 1);
    for (size_t i = 0; *out && i < LEATI_SAFETENSORS_LENGTH_BYTES; ++i)
        (*out)[i] = (unsigned char)((uint64_t)padded >> 8 * i);
    if (*out) memset(*out + LEATI_SAFETENSORS_LENGTH_BYTES, ' ', padded);
    if (*out) memcpy(*out + LEATI_SAFETENSORS_LENGTH_BYTES, text, length);
    leati_free(text);
    return *out ? LEAT_OK : leati_fail_memory(err, *bytes, "the names of weights");
}

static const char *data_of(const leat_model *model, int index) {
    const char *slab = leati_weights_slab(&model->weights, LEATI_SLAB_WEIGHTS);
    return slab + weight_at(model, index)->offset_bytes;
}

static leat_status write_file(const leat_model *model, leati_replacement *file, const unsigned char *header,
                              size_t bytes, leat_error *err) {
    LEATI_TRY(leati_replace_write(file, header, bytes, err));
    for (int i = 0; i < model->weights.count; ++i)
        LEATI_TRY(
            leati_replace_write(file, data_of(model, i), leati_desc_bytes(&weight_at(model, i)->desc), err));
    return LEAT_OK;
}

leat_status leati_safetensors_save(const leat_model *model, const char *path, leat_error *err) {
    leati_replacement file;
    unsigned char *header = NULL;
    size_t bytes = 0;
    LEATI_TRY(make_header(model, &header, &bytes, err));
    leat_status status = leati_replace_begin(&file, path, err);
    if (status == LEAT_OK) {
        status = write_file(model, &file, header, bytes, err);
        if (status == LEAT_OK)
            status = leati_replace_commit(&file, err);
        else
            leati_replace_abandon(&file);
    }
    leati_free(header);
    return status;
}

leat_status leati_safetensors_save_memory(const leat_model *model, void **out, size_t *bytes,
                                          leat_error *err) {
    unsigned char *header = NULL;
    size_t begin = 0, total;
    LEATI_TRY(make_header(model, &header, &begin, err));
    total = begin;
    for (int i = 0; i < model->weights.count; ++i) total += leati_desc_bytes(&weight_at(model, i)->desc);
    unsigned char *to = leati_realloc(header, total, 1);
    if (!to) return leati_free(header), leati_fail_memory(err, total, "a safetensors file");
    *out = to, *bytes = total, to += begin;
    for (int i = 0; i < model->weights.count; ++i) {
        const size_t size = leati_desc_bytes(&weight_at(model, i)->desc);
        if (size > 0) memcpy(to, data_of(model, i), size);
        to += size;
    }
    return LEAT_OK;
}
