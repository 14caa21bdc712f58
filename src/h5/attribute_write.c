/* SPDX-License-Identifier: Apache-2.0 */
/* Writes attributes that hold strings.  Room: h5. */
#include "h5/private.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

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
