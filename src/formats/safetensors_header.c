/* SPDX-License-Identifier: Apache-2.0 */
/* Parses and checks the header of a safetensors file, which may come from anywhere.  Room: formats. */
#include "formats/safetensors_header.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "json/json.h"
#include "tensor/bfloat16.h"

/* The types of the format with their sizes in bytes.  A type with `readable` false cannot be a weight.  Types that are
 * not in the table (of less than a byte, or newer) have no size here. */
static const struct {
    const char *name;
    leat_dtype dtype;
    bool readable;
    size_t bytes;
} types[] = {
    {"F32", LEAT_F32, true, 4},    {"F64", LEAT_F64, true, 8},  {"F16", LEAT_F16, true, 2},
    {"BF16", LEATI_BF16, true, 2}, {"I64", LEAT_I64, false, 8}, {"I32", LEAT_I32, false, 4},
    {"I16", LEAT_I16, false, 2},   {"I8", LEAT_I8, false, 1},   {"U64", LEAT_U64, false, 8},
    {"U32", LEAT_U32, false, 4},   {"U16", LEAT_U16, false, 2}, {"U8", LEAT_U8, false, 1},
    {"BOOL", LEAT_BOOL, false, 1},
};

enum { TYPE_COUNT = sizeof types / sizeof *types };

/* ---- One tensor ---- */

/* Reads an integer that is not negative. */
static bool read_size(const json_t *value, int64_t *out) {
    *out = json_is_integer(value) ? json_integer_value(value) : -1;
    return *out >= 0;
}

static leat_status read_shape(leati_stored_tensor *out, const json_t *shape, int64_t *count,
                              leat_error *err) {
    const size_t rank = json_array_size(shape);
    *count = 1;
    if (!json_is_array(shape)) return leati_fail(err, LEAT_EFORMAT, "'shape': expected a list of integers");
    out->rank = rank <= LEAT_MAX_RANK ? (int32_t)rank : -1;
    for (size_t i = 0; i < rank; ++i) {
        int64_t size;
        if (!read_size(json_array_get(shape, i), &size))
            return leati_fail(err, LEAT_EFORMAT, "'shape': expected integers of at least 0");
        if (i < LEAT_MAX_RANK) out->shape[i] = size;
        *count = leati_mul_saturated(*count, size);
    }
    return LEAT_OK;
}

static leat_status read_offsets(leati_stored_tensor *out, const json_t *offsets, size_t room,
                                leat_error *err) {
    int64_t begin, end;
    if (json_array_size(offsets) != 2 || !read_size(json_array_get(offsets, 0), &begin) ||
        !read_size(json_array_get(offsets, 1), &end))
        return leati_fail(err, LEAT_EFORMAT, "'data_offsets': expected two integers of at least 0");
    if (begin > end || (uint64_t)end > room)
        return leati_fail(
            err, LEAT_EFORMAT,
            "'data_offsets': expected a range within the %zu bytes behind the header, found %lld to %lld",
            room, (long long)begin, (long long)end);
    out->begin = (size_t)begin, out->end = (size_t)end;
    return LEAT_OK;
}

static leat_status read_tensor(leati_stored_tensor *out, const json_t *item, size_t room, leat_error *err) {
    int64_t count;
    out->type = json_string_value(json_object_get(item, "dtype"));
    if (!out->type) return leati_fail(err, LEAT_EFORMAT, "'dtype': expected a name such as \"F32\"");
    LEATI_TRY(read_shape(out, json_object_get(item, "shape"), &count, err));
    LEATI_TRY(read_offsets(out, json_object_get(item, "data_offsets"), room, err));
    for (int i = 0; i < TYPE_COUNT; ++i) {
        if (strcmp(types[i].name, out->type) != 0) continue;
        out->dtype = types[i].dtype, out->readable = types[i].readable;
        if (leati_count_bytes(count, types[i].bytes) != out->end - out->begin)
            return leati_fail(err, LEAT_EFORMAT, "expected %lld numbers of %zu bytes, found %zu bytes",
                              (long long)count, types[i].bytes, out->end - out->begin);
    }
    return LEAT_OK;
}

/* ---- All tensors ---- */

static int compare_places(const void *a, const void *b) {
    const leati_stored_tensor *left = a, *right = b;
    if (left->begin != right->begin) return left->begin < right->begin ? -1 : 1;
    return left->end < right->end ? -1 : left->end > right->end;
}

/* Checks that the tensors, sorted by place, fill the bytes. */
static leat_status check_places(const leati_safetensors *file, size_t room, leat_error *err) {
    size_t end = 0;
    for (size_t i = 0; i < file->count; ++i) {
        const leati_stored_tensor *tensor = &file->tensors[i];
        if (tensor->begin != end)
            return leati_fail(err, LEAT_EFORMAT,
                              "tensor '%.200s': expected its data at byte %zu, where those before it end; "
                              "they begin at %zu",
                              tensor->name, end, tensor->begin);
        end = tensor->end;
    }
    if (end == room) return LEAT_OK;
    return leati_fail(err, LEAT_EFORMAT, "the tensors end at byte %zu of the %zu bytes behind the header",
                      end, room);
}

static leat_status read_tensors(leati_safetensors *out, const unsigned char *data, size_t room,
                                leat_error *err) {
    const char *name;
    json_t *item;
    out->tensors = leati_calloc(json_object_size(out->json) + 1, sizeof *out->tensors);
    if (!out->tensors)
        return leati_fail_memory(err, json_object_size(out->json) * sizeof *out->tensors, "tensors");
    json_object_foreach(out->json, name, item) {
        if (strcmp(name, "__metadata__") == 0) continue;
        leati_stored_tensor *tensor = &out->tensors[out->count++];
        tensor->name = name;
        LEATI_TRY(leati_prefix(read_tensor(tensor, item, room, err), err, "tensor '%.200s'", name));
        tensor->data = data + tensor->begin;
    }
    qsort(out->tensors, out->count, sizeof *out->tensors, compare_places);
    return check_places(out, room, err);
}

/* Reads the length of the header.  Returns false if the file is too short for it. */
static bool header_length(const unsigned char *data, size_t bytes, size_t *length) {
    uint64_t value = 0;
    if (bytes < LEATI_SAFETENSORS_LENGTH_BYTES) return false;
    for (int i = LEATI_SAFETENSORS_LENGTH_BYTES - 1; i >= 0; --i) value = value << 8 | data[i];
    *length = (size_t)value;
    return value <= bytes - LEATI_SAFETENSORS_LENGTH_BYTES;
}

leat_status leati_safetensors_parse(leati_safetensors *out, const unsigned char *data, size_t bytes,
                                    leat_error *err) {
    size_t length = 0;
    *out = (leati_safetensors){0};
    if (!header_length(data, bytes, &length))
        return leati_fail(
            err, LEAT_EFORMAT,
            "expected a safetensors file, found %zu bytes, which are too few for a header of %zu bytes",
            bytes, length);
    const unsigned char *header = data + LEATI_SAFETENSORS_LENGTH_BYTES;
    leat_status status = leati_json_parse(&out->json, (const char *)header, length, err);
    if (status == LEAT_OK && !json_is_object(out->json))
        status = leati_fail(err, LEAT_EFORMAT, "expected an object of tensors by name");
    status = leati_prefix(status, err, "the header");
    const size_t room = bytes - LEATI_SAFETENSORS_LENGTH_BYTES - length;
    if (status == LEAT_OK) status = read_tensors(out, header + length, room, err);
    if (status != LEAT_OK) leati_safetensors_fini(out);
    return status;
}

void leati_safetensors_fini(leati_safetensors *file) {
    json_decref(file->json);
    leati_free(file->tensors);
    *file = (leati_safetensors){0};
}

const leati_stored_tensor *leati_safetensors_find(const leati_safetensors *file, const char *name) {
    for (size_t i = 0; i < file->count; ++i)
        if (strcmp(file->tensors[i].name, name) == 0) return &file->tensors[i];
    return NULL;
}
