/* SPDX-License-Identifier: Apache-2.0 */
/* Reads weights from safetensors files: finds the tensor of each weight, checks all, then copies them.
 * Room: formats. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "formats/safetensors_header.h"
#include "formats/safetensors.h"
#include "tensor/bfloat16.h"
#include "tensor/float16.h"

bool leati_safetensors_is(const unsigned char *data, size_t bytes) {
    uint64_t length = 0;
    if (bytes <= LEATI_SAFETENSORS_LENGTH_BYTES || data[LEATI_SAFETENSORS_LENGTH_BYTES] != '{') return false;
    for (int i = LEATI_SAFETENSORS_LENGTH_BYTES - 1; i >= 0; --i) length = length << 8 | data[i];
    return length <= bytes - LEATI_SAFETENSORS_LENGTH_BYTES;
}

const char *leati_safetensors_name(const leat_model *model, int index,
                                   char out[LEATI_SAFETENSORS_NAME_BYTES]) {
    const char *name = model->weights.names[model->weights.order[index]], *colon = strrchr(name, ':');
    snprintf(out, LEATI_SAFETENSORS_NAME_BYTES, "%.*s", colon ? (int)(colon - name) : (int)strlen(name),
             name);
    return out;
}

/* ---- Matching ---- */

static leat_status fail_missing(const leati_safetensors *file, const char *name, leat_error *err) {
    const char **names = leati_calloc(file->count + 1, sizeof *names);
    for (size_t i = 0; names && i < file->count; ++i) names[i] = file->tensors[i].name;
    const char *nearest = names ? leati_nearest(name, names, file->count) : NULL;
    leati_free(names);
    return leati_fail(
        err, LEAT_EFORMAT,
        "the file has no tensor '%.200s', which the model has as a weight%s%.200s%s; load by name to "
        "leave such weights as they are",
        name, nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'" : "");
}

/* Fails because of the shape of a tensor, unless it may be skipped: then sets *tensor to NULL. */
static leat_status check_shape(const leati_stored_tensor **tensor, const leati_desc *desc,
                               const leati_matching *matching, leat_error *err) {
    const leati_stored_tensor *found = *tensor;
    char want[128], got[128] = "more than 8 axes";
    bool same = found->rank == desc->rank;
    for (int i = 0; same && i < desc->rank; ++i) same = found->shape[i] == desc->shape[i];
    if (same) return LEAT_OK;
    if (matching->reshape && found->rank >= 0 &&
        leati_shape_count(found->rank, found->shape) == leati_desc_count(desc))
        return LEAT_OK;
    if (matching->skip_mismatch) {
        leati_log(LEAT_LOG_WARNING, "'%.200s': skipped, because the model's weight has another shape",
                  found->name);
        *tensor = NULL;
        return LEAT_OK;
    }
    if (found->rank >= 0) leati_shape_text(got, sizeof got, found->rank, found->shape);
    return leati_fail(err, LEAT_ESHAPE, "tensor '%.200s': expected shape %s, found %s", found->name,
                      leati_shape_text(want, sizeof want, desc->rank, desc->shape), got);
}

/* Finds the tensor of a weight; *out is NULL if the weight keeps its value. */
static leat_status match(const leati_safetensors *file, const leat_model *model, int index,
                         const leati_matching *matching, const leati_stored_tensor **out, leat_error *err) {
    char name[LEATI_SAFETENSORS_NAME_BYTES];
    const leati_weight *weight = model->weights.entries[model->weights.order[index]];
    *out = leati_safetensors_find(file, leati_safetensors_name(model, index, name));
    if (!*out && (matching->by_name || matching->skip_mismatch)) return LEAT_OK;
    if (!*out) return fail_missing(file, name, err);
    LEATI_TRY(check_shape(out, &weight->desc, matching, err));
    if (!*out || (*out)->readable) return LEAT_OK;
    return leati_fail(err, LEAT_EDTYPE,
                      "tensor '%.200s': expected the type F32, F64, F16 or BF16, found '%.40s'", name,
                      (*out)->type);
}

/* Fails if the file has a tensor that is no weight of the model. */
static leat_status check_rest(const leati_safetensors *file, const leat_model *model,
                              const leati_stored_tensor *const *matched, leat_error *err) {
    for (size_t i = 0; i < file->count; ++i) {
        bool used = false;
        for (int32_t k = 0; !used && k < model->weights.count; ++k) used = matched[k] == &file->tensors[i];
        if (!used)
            return leati_fail(
                err, LEAT_EFORMAT,
                "the model has no weight for tensor '%.200s' of the file; load by name to ignore it",
                file->tensors[i].name);
    }
    return LEAT_OK;
}

/* ---- Values ---- */

/* Copies the numbers of a tensor, as float32. */
static void copy(const leati_stored_tensor *tensor, float *to, int64_t count) {
    for (int64_t i = 0; i < count && tensor->dtype != LEAT_F32; ++i) {
        double wide;
        uint16_t narrow;
        if (tensor->dtype == LEAT_F64) {
            memcpy(&wide, tensor->data + (size_t)i * sizeof wide, sizeof wide);
            to[i] = (float)wide;
            continue;
        }
        memcpy(&narrow, tensor->data + (size_t)i * sizeof narrow, sizeof narrow);
        to[i] = tensor->dtype == LEAT_F16 ? leati_float16_to_float(narrow) : leati_bfloat16_to_float(narrow);
    }
    if (tensor->dtype == LEAT_F32 && count > 0) memcpy(to, tensor->data, (size_t)count * sizeof *to);
}

static void copy_all(leat_model *model, const leati_stored_tensor *const *matched) {
    char *slab = leati_weights_slab(&model->weights, LEATI_SLAB_WEIGHTS);
    for (int32_t i = 0; i < model->weights.count; ++i) {
        const leati_weight *weight = model->weights.entries[model->weights.order[i]];
        if (matched[i])
            copy(matched[i], (float *)(void *)(slab + weight->offset_bytes), leati_desc_count(&weight->desc));
    }
    leati_model_weights_changed(model);
}

leat_status leati_safetensors_read(leat_model *model, const unsigned char *data, size_t bytes,
                                   const leati_matching *matching, leat_error *err) {
    leati_safetensors file;
    LEATI_TRY(leati_safetensors_parse(&file, data, bytes, err));
    const size_t count = (size_t)model->weights.count;
    const leati_stored_tensor **matched = leati_calloc(count + 1, sizeof *matched);
    leat_status status = matched ? LEAT_OK : leati_fail_memory(err, count * sizeof *matched, "weights");
    for (int i = 0; status == LEAT_OK && i < model->weights.count; ++i)
        status = match(&file, model, i, matching, &matched[i], err);
    if (status == LEAT_OK && !matching->by_name && !matching->skip_mismatch)
        status = check_rest(&file, model, matched, err);
    if (status == LEAT_OK) copy_all(model, matched);
    leati_free(matched);
    leati_safetensors_fini(&file);
    return status;
}
