/* SPDX-License-Identifier: Apache-2.0 */
/* Reads constants (TensorProto of onnx.proto).  Their numbers stay in the file where the file has them as bytes.
 * Room: formats. */
#include "formats/onnx_import/tensor_proto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "tensor/bfloat16.h"
#include "tensor/float16.h"

enum {
    TENSOR_DIM = 1,
    TENSOR_TYPE = 2,
    TENSOR_FLOATS = 4,
    TENSOR_INT32S = 5,
    TENSOR_INT64S = 7,
    TENSOR_NAME = 8,
    TENSOR_RAW = 9,
    TENSOR_DOUBLES = 10,
    TENSOR_UINT64S = 11,
    TENSOR_EXTERNAL = 13,
    TENSOR_LOCATION = 14,
    ENTRY_KEY = 1,
    ENTRY_VALUE = 2
};

static const struct {
    int type, bytes;
    const char *name;
} types[] = {{LEATI_IMPORT_FLOAT, 4, "float"},      {LEATI_IMPORT_UINT8, 1, "uint8"},
             {LEATI_IMPORT_INT8, 1, "int8"},        {LEATI_IMPORT_UINT16, 2, "uint16"},
             {LEATI_IMPORT_INT16, 2, "int16"},      {LEATI_IMPORT_INT32, 4, "int32"},
             {LEATI_IMPORT_INT64, 8, "int64"},      {LEATI_IMPORT_BOOL, 1, "bool"},
             {LEATI_IMPORT_FLOAT16, 2, "float16"},  {LEATI_IMPORT_DOUBLE, 8, "double"},
             {LEATI_IMPORT_UINT32, 4, "uint32"},    {LEATI_IMPORT_UINT64, 8, "uint64"},
             {LEATI_IMPORT_BFLOAT16, 2, "bfloat16"}};
enum { TYPE_COUNT = sizeof types / sizeof types[0] };

static int bytes_of(int type) {
    for (int i = 0; i < TYPE_COUNT; ++i)
        if (types[i].type == type) return types[i].bytes;
    return 0;
}

const char *leati_import_type_name(int type) {
    for (int i = 0; i < TYPE_COUNT; ++i)
        if (types[i].type == type) return types[i].name;
    return type == 8 ? "string" : type >= 14 && type <= 15 ? "complex" : "of a type that leat does not have";
}

bool leati_import_is_real(int type) {
    return type == LEATI_IMPORT_FLOAT || type == LEATI_IMPORT_FLOAT16 || type == LEATI_IMPORT_DOUBLE ||
           type == LEATI_IMPORT_BFLOAT16;
}

/* ---- Elements ---- */

static uint64_t bits_of(const leati_import_tensor *tensor, int64_t index) {
    const int bytes = bytes_of(tensor->type);
    const unsigned char *at = tensor->data + (size_t)index * (size_t)bytes;
    uint64_t bits = 0;
    for (int i = bytes - 1; i >= 0; --i) bits = bits << 8 | at[i];
    return bits;
}

int64_t leati_import_integer(const leati_import_tensor *tensor, int64_t index) {
    const uint64_t bits = bits_of(tensor, index);
    switch (tensor->type) {
    case LEATI_IMPORT_INT8: return (int8_t)bits;
    case LEATI_IMPORT_INT16: return (int16_t)bits;
    case LEATI_IMPORT_INT32: return (int32_t)bits;
    case LEATI_IMPORT_BOOL: return bits != 0;
    case LEATI_IMPORT_FLOAT:
    case LEATI_IMPORT_DOUBLE:
    case LEATI_IMPORT_FLOAT16:
    case LEATI_IMPORT_BFLOAT16: {
        const double number = leati_import_number(tensor, index);
        return number > -9e18 && number < 9e18 ? (int64_t)number : number < 0 ? INT64_MIN : INT64_MAX;
    }
    default: return (int64_t)bits;
    }
}

double leati_import_number(const leati_import_tensor *tensor, int64_t index) {
    const uint64_t bits = bits_of(tensor, index);
    switch (tensor->type) {
    case LEATI_IMPORT_FLOAT: return (double)leati_proto_float(bits);
    case LEATI_IMPORT_DOUBLE: return leati_proto_double(bits);
    case LEATI_IMPORT_FLOAT16: return (double)leati_float16_to_float((uint16_t)bits);
    case LEATI_IMPORT_BFLOAT16: return (double)leati_bfloat16_to_float((uint16_t)bits);
    case LEATI_IMPORT_UINT64: return (double)bits;
    default: return (double)leati_import_integer(tensor, index);
    }
}

/* ---- Parsing ---- */

typedef struct parts {
    leati_proto_field raw;
    bool has_raw;
    const char *location;
    uint64_t offset, length;
    bool has_length;
} parts;

static leat_status read_dims(const leati_proto_field *field, leati_import_tensor *out, leat_error *err) {
    leati_proto list = leati_proto_of(field->data, field->bytes);
    uint64_t value = field->value;
    bool more = field->wire == LEATI_WIRE_VARINT || leati_proto_varint(&list, &value);
    while (more) {
        if (out->rank >= LEAT_MAX_RANK || value > INT32_MAX)
            return leati_fail(err, out->rank >= LEAT_MAX_RANK ? LEAT_ENOTSUP : LEAT_EFORMAT,
                              "expected a constant of at most %d axes, each up to 2147483647", LEAT_MAX_RANK);
        out->dims[out->rank++] = (int64_t)value;
        more = field->wire == LEATI_WIRE_BYTES && leati_proto_varint(&list, &value);
    }
    return LEAT_OK;
}

static leat_status read_entry(leati_import_file *file, const leati_proto_field *entry, parts *p,
                              leat_error *err) {
    leati_proto message = leati_proto_of(entry->data, entry->bytes);
    leati_proto_field field;
    const char *key = "", *value = "";
    while (leati_proto_next(&message, &field)) {
        if (field.wire != LEATI_WIRE_BYTES) continue;
        if (field.number == ENTRY_KEY) LEATI_TRY(leati_import_text(file, &field, &key, err));
        if (field.number == ENTRY_VALUE) LEATI_TRY(leati_import_text(file, &field, &value, err));
    }
    if (strcmp(key, "location") == 0) p->location = value;
    if (strcmp(key, "offset") == 0) p->offset = strtoull(value, NULL, 10);
    if (strcmp(key, "length") == 0) {
        p->length = strtoull(value, NULL, 10);
        p->has_length = true;
    }
    return LEAT_OK;
}

static leat_status read_field(leati_import_file *file, const leati_proto_field *field,
                              leati_import_tensor *out, parts *p, leat_error *err) {
    const bool is_bytes = field->wire == LEATI_WIRE_BYTES;
    switch (field->number) {
    case TENSOR_DIM: return read_dims(field, out, err);
    case TENSOR_TYPE: out->type = field->value <= INT32_MAX ? (int)field->value : 0; break;
    case TENSOR_NAME: return is_bytes ? leati_import_text(file, field, &out->name, err) : LEAT_OK;
    case TENSOR_RAW:
        p->raw = *field;
        p->has_raw = is_bytes;
        break;
    case TENSOR_EXTERNAL: return is_bytes ? read_entry(file, field, p, err) : LEAT_OK;
    default: break;
    }
    return LEAT_OK;
}

/* Returns the number of the field that has the elements of a type where they are not raw bytes, and the bytes of a
 * fixed-size element; 0: a varint. */
static int typed_field(int type, int *fixed) {
    *fixed = 0;
    switch (type) {
    case LEATI_IMPORT_FLOAT: *fixed = 4; return TENSOR_FLOATS;
    case LEATI_IMPORT_DOUBLE: *fixed = 8; return TENSOR_DOUBLES;
    case LEATI_IMPORT_INT64: return TENSOR_INT64S;
    case LEATI_IMPORT_UINT32:
    case LEATI_IMPORT_UINT64: return TENSOR_UINT64S;
    default: return TENSOR_INT32S;
    }
}

static void put(unsigned char *data, int64_t index, int bytes, uint64_t value) {
    for (int i = 0; i < bytes; ++i)
        data[(size_t)index * (size_t)bytes + (size_t)i] = (unsigned char)(value >> 8 * i);
}

/* Copies the elements of float_data, int32_data, ... */
static leat_status read_elements(leati_import_file *file, leati_proto message, leati_import_tensor *out,
                                 leat_error *err) {
    leati_proto_field field;
    uint64_t value;
    int fixed;
    const int number = typed_field(out->type, &fixed), bytes = bytes_of(out->type);
    int64_t filled = 0;
    if ((uint64_t)out->count > (uint64_t)(message.end - message.at))
        return leati_fail(err, LEAT_EFORMAT, "constant '%.64s': expected %lld elements, the file has fewer",
                          out->name, (long long)out->count);
    unsigned char *data = leati_arena_get(file->arena, (size_t)out->count + 1, (size_t)bytes);
    if (!data) return leati_import_no_memory(file, err);
    while (leati_proto_next(&message, &field)) {
        if (field.number != number) continue;
        if (field.wire != LEATI_WIRE_BYTES) {
            if (filled < out->count) put(data, filled, bytes, field.value);
            ++filled;
            continue;
        }
        leati_proto list = leati_proto_of(field.data, field.bytes);
        while (fixed ? leati_proto_fixed(&list, fixed, &value) : leati_proto_varint(&list, &value)) {
            if (filled < out->count) put(data, filled, bytes, value);
            ++filled;
        }
    }
    out->data = data;
    if (filled == out->count) return LEAT_OK;
    return leati_fail(err, LEAT_EFORMAT, "constant '%.64s': expected %lld elements, found %lld", out->name,
                      (long long)out->count, (long long)filled);
}

static leat_status place(leati_import_file *file, leati_proto message, const parts *p,
                         leati_import_tensor *out, leat_error *err) {
    static const unsigned char nothing[8];
    const size_t bytes = leati_count_bytes(out->count, (size_t)bytes_of(out->type));
    if (bytes == SIZE_MAX)
        return leati_fail(err, LEAT_EFORMAT, "constant '%.64s': its shape is too large", out->name);
    if (p->location) {
        if (p->has_length && p->length != bytes)
            return leati_fail(err, LEAT_EFORMAT,
                              "constant '%.64s': expected %zu bytes of external data, found %llu", out->name,
                              bytes, (unsigned long long)p->length);
        return leati_import_external_find(file, p->location, p->offset, bytes, &out->data, err);
    }
    out->data = nothing;
    if (!p->has_raw) return out->count > 0 ? read_elements(file, message, out, err) : LEAT_OK;
    if (p->raw.bytes != bytes)
        return leati_fail(err, LEAT_EFORMAT, "constant '%.64s': expected %zu bytes, found %zu", out->name,
                          bytes, p->raw.bytes);
    if (bytes > 0) out->data = p->raw.data;
    return LEAT_OK;
}

leat_status leati_import_tensor_read(leati_import_file *file, leati_proto message, leati_import_tensor *out,
                                     leat_error *err) {
    const leati_proto all = message;
    leati_proto_field field;
    parts p = {0};
    *out = (leati_import_tensor){.name = ""};
    while (leati_proto_next(&message, &field)) LEATI_TRY(read_field(file, &field, out, &p, err));
    if (message.malformed)
        return leati_fail(err, LEAT_EFORMAT, "a constant: malformed or truncated protocol buffer");
    if (bytes_of(out->type) == 0)
        return leati_fail(err, LEAT_ENOTSUP, "constant '%.64s' is %s", out->name,
                          leati_import_type_name(out->type));
    out->count = leati_shape_count(out->rank, out->dims);
    return place(file, all, &p, out, err);
}
