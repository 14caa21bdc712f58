/* SPDX-License-Identifier: Apache-2.0 */
/* Reads attributes that hold strings, in all forms that h5py has written, and writes them.  Room: h5. */
#include "h5/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

/* Limits far above what any model has: a hostile file is refused. */
enum { most_strings = 1 << 20, most_bytes = 1 << 28 };

/* An open attribute, and its properties. */
typedef struct attribute {
    hid_t id, type, space;
    size_t count, size; /* number of elements; bytes of one element, if its length is fixed */
    bool variable, text;
} attribute;

static void close_attribute(attribute *a) {
    if (a->space >= 0) H5Sclose(a->space);
    if (a->type >= 0) H5Tclose(a->type);
    if (a->id >= 0) H5Aclose(a->id);
}

static leat_status open_attribute(leati_h5 *file, const char *object, const char *name, attribute *a,
                                  leat_error *err) {
    *a = (attribute){H5I_INVALID_HID, H5I_INVALID_HID, H5I_INVALID_HID, 0, 0, false, false};
    hid_t owner = H5I_INVALID_HID;
    LEATI_TRY(leati_h5_open_object(file, object, &owner, err));
    if (H5Aexists(owner, name) > 0) a->id = H5Aopen(owner, name, H5P_DEFAULT);
    H5Oclose(owner);
    if (a->id < 0) {
        leat_status status = leati_h5_fail(file, LEAT_ENOTFOUND, err, object, "the attribute is missing");
        return leati_prefix(status, err, "attribute '%s'", name);
    }
    a->type = H5Aget_type(a->id);
    a->space = H5Aget_space(a->id);
    hssize_t count = a->space >= 0 ? H5Sget_simple_extent_npoints(a->space) : -1;
    a->size = a->type >= 0 ? H5Tget_size(a->type) : 0;
    a->text = a->type >= 0 && H5Tget_class(a->type) == H5T_STRING;
    a->variable = a->text && H5Tis_variable_str(a->type) > 0;
    a->count = count > 0 ? (size_t)count : 0;
    size_t bytes = 0;
    if (a->type >= 0 && count >= 0 && a->count <= most_strings && leati_mul_size(a->count, a->size, &bytes) &&
        bytes <= most_bytes)
        return LEAT_OK;
    close_attribute(a);
    return leati_h5_fail(file, LEAT_EFORMAT, err, object, "an attribute is damaged or too large");
}

static char *copy_text(const char *text, size_t most) {
    size_t length = 0;
    while (length < most && text[length]) ++length;
    char *copy = leati_calloc(length + 1, 1);
    if (copy) memcpy(copy, text, length);
    return copy;
}

/* Copies strings of variable length, which HDF5 allocates. */
static leat_status read_variable(const attribute *a, char **items) {
    char **texts = leati_calloc(a->count, sizeof *texts);
    if (!texts) return LEAT_ENOMEM;
    hid_t memory = H5Tcopy(H5T_C_S1);
    H5Tset_size(memory, H5T_VARIABLE);
    H5Tset_cset(memory, H5Tget_cset(a->type));
    leat_status status = H5Aread(a->id, memory, texts) < 0 ? LEAT_EFORMAT : LEAT_OK;
    for (size_t i = 0; status == LEAT_OK && i < a->count; ++i) {
        items[i] = copy_text(texts[i] ? texts[i] : "", texts[i] ? most_bytes : 0);
        if (!items[i]) status = LEAT_ENOMEM;
    }
    if (status != LEAT_EFORMAT) H5Dvlen_reclaim(memory, a->space, H5P_DEFAULT, texts);
    H5Tclose(memory);
    leati_free(texts);
    return status;
}

static leat_status read_fixed(const attribute *a, char **items) {
    char *texts = leati_calloc(a->count, a->size);
    if (!texts) return LEAT_ENOMEM;
    leat_status status = H5Aread(a->id, a->type, texts) < 0 ? LEAT_EFORMAT : LEAT_OK;
    for (size_t i = 0; status == LEAT_OK && i < a->count; ++i) {
        items[i] = copy_text(texts + i * a->size, a->size);
        if (!items[i]) status = LEAT_ENOMEM;
    }
    leati_free(texts);
    return status;
}

static leat_status append(leati_h5_strings *out, const attribute *a) {
    if (a->count == 0) return LEAT_OK; /* numpy writes an empty list as float64 of shape (0,) */
    if (!a->text) return LEAT_EFORMAT;
    char **items = leati_realloc(out->items, out->count + a->count, sizeof *items);
    if (!items) return LEAT_ENOMEM;
    out->items = items;
    memset(items + out->count, 0, a->count * sizeof *items);
    out->count += a->count; /* if reading fails, leati_h5_strings_fini frees the strings read so far */
    char **added = items + out->count - a->count;
    return a->variable ? read_variable(a, added) : read_fixed(a, added);
}

static leat_status read_one(leati_h5 *file, const char *object, const char *name, leati_h5_strings *out,
                            leat_error *err) {
    attribute a;
    LEATI_TRY(open_attribute(file, object, name, &a, err));
    leat_status status = append(out, &a);
    close_attribute(&a);
    if (status == LEAT_OK) return LEAT_OK;
    if (status == LEAT_ENOMEM) return leati_fail_memory(err, 0, "an attribute's strings");
    status = leati_h5_fail(file, status, err, object, "expected strings");
    return leati_prefix(status, err, "attribute '%s'", name);
}

static leat_status read_all(leati_h5 *file, const char *object, const char *name, leati_h5_strings *out,
                            leat_error *err) {
    char part[128];
    snprintf(part, sizeof part, "%s0", name);
    bool unsplit = H5Aexists_by_name(file->file, object, name, H5P_DEFAULT) > 0;
    if (unsplit || H5Aexists_by_name(file->file, object, part, H5P_DEFAULT) <= 0)
        return read_one(file, object, name, out, err);
    for (int i = 0; H5Aexists_by_name(file->file, object, part, H5P_DEFAULT) > 0; ++i) {
        LEATI_TRY(read_one(file, object, part, out, err));
        snprintf(part, sizeof part, "%s%d", name, i + 1);
    }
    return LEAT_OK;
}

leat_status leati_h5_read_strings(leati_h5 *file, const char *object, const char *name, leati_h5_strings *out,
                                  leat_error *err) {
    *out = (leati_h5_strings){0};
    leati_h5_enter();
    leat_status status = read_all(file, object, name, out, err);
    H5Eclear2(H5E_DEFAULT);
    leati_h5_leave();
    if (status != LEAT_OK) leati_h5_strings_fini(out);
    return status;
}

void leati_h5_strings_fini(leati_h5_strings *strings) {
    for (size_t i = 0; i < strings->count; ++i) leati_free(strings->items[i]);
    leati_free(strings->items);
    *strings = (leati_h5_strings){0};
}

leat_status leati_h5_read_string(leati_h5 *file, const char *object, const char *name, char **out,
                                 leat_error *err) {
    *out = NULL;
    leati_h5_strings strings;
    leati_h5_enter();
    strings = (leati_h5_strings){0};
    leat_status status = read_one(file, object, name, &strings, err);
    if (status == LEAT_OK && strings.count != 1)
        status = leati_h5_fail(file, LEAT_EFORMAT, err, object, "expected one string in an attribute");
    leati_h5_leave();
    if (status == LEAT_OK && strings.count == 1) {
        *out = strings.items[0];
        strings.items[0] = NULL;
    }
    leati_h5_strings_fini(&strings);
    return status;
}

/* Writes one attribute; the caller closes `type` and `space`. */
static leat_status write_attribute(leati_h5 *file, const char *object, const char *name, hid_t type,
                                   hid_t space, const void *data, leat_error *err) {
    leat_status status = LEAT_OK;
    hid_t id =
        H5Acreate_by_name(file->file, object, name, type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (id < 0 || (data && H5Awrite(id, type, data) < 0)) {
        status = leati_h5_fail(file, LEAT_EIO, err, object, "cannot write an attribute");
        leati_prefix(status, err, "attribute '%s'", name);
    }
    if (id >= 0) H5Aclose(id);
    return status;
}

/* The string is always marked as ASCII, as h5py marks bytes: Keras 2.3.1 calls decode() on the value, which works
 * for bytes only. */
leat_status leati_h5_write_string(leati_h5 *file, const char *object, const char *name, const char *value,
                                  leat_error *err) {
    leati_h5_enter();
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_ASCII);
    leat_status status = write_attribute(file, object, name, type, space, &value, err);
    H5Sclose(space);
    H5Tclose(type);
    leati_h5_leave();
    return status;
}

static leat_status write_empty(leati_h5 *file, const char *object, const char *name, leat_error *err) {
    hid_t space = H5Screate_simple(1, (hsize_t[]){0}, NULL);
    leat_status status = write_attribute(file, object, name, H5T_IEEE_F64LE, space, NULL, err);
    H5Sclose(space);
    return status;
}

static leat_status write_fixed(leati_h5 *file, const char *object, const char *name,
                               const char *const *values, size_t count, size_t width, leat_error *err) {
    char *texts = leati_calloc(count, width);
    if (!texts) return leati_fail_memory(err, count * width, "an attribute");
    for (size_t i = 0; i < count; ++i) memcpy(texts + i * width, values[i], strlen(values[i]));
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, (hsize_t[]){count}, NULL);
    H5Tset_size(type, width);
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    leat_status status = write_attribute(file, object, name, type, space, texts, err);
    H5Sclose(space);
    H5Tclose(type);
    leati_free(texts);
    return status;
}

static size_t longest(const char *const *values, size_t count) {
    size_t width = 1;
    for (size_t i = 0; i < count; ++i)
        if (strlen(values[i]) > width) width = strlen(values[i]);
    return width;
}

static leat_status write_parts(leati_h5 *file, const char *object, const char *name,
                               const char *const *values, size_t count, size_t width, leat_error *err) {
    size_t values_per_part = LEATI_H5_HEADER_LIMIT / width;
    if (values_per_part == 0)
        return leati_h5_fail(file, LEAT_EINVAL, err, object, "a name is too long for an attribute");
    for (size_t start = 0, part = 0; start < count; start += values_per_part, ++part) {
        char part_name[128];
        snprintf(part_name, sizeof part_name, "%s%zu", name, part);
        size_t length = count - start < values_per_part ? count - start : values_per_part;
        LEATI_TRY(write_fixed(file, object, part_name, values + start, length, width, err));
    }
    return LEAT_OK;
}

leat_status leati_h5_write_strings(leati_h5 *file, const char *object, const char *name,
                                   const char *const *values, size_t count, leat_error *err) {
    size_t width = longest(values, count), bytes = 0;
    bool fits = leati_mul_size(width, count, &bytes) && bytes <= LEATI_H5_HEADER_LIMIT;
    leati_h5_enter();
    leat_status status = count == 0 ? write_empty(file, object, name, err)
                         : fits     ? write_fixed(file, object, name, values, count, width, err)
                                    : write_parts(file, object, name, values, count, width, err);
    leati_h5_leave();
    return status;
}
