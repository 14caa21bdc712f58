/* SPDX-License-Identifier: Apache-2.0 */
/* Writes .npy and .npz files.  Room: data. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/os/file.h"
#include "data/npy.h"
#include "leat/npz.h"
#include "zip/zip.h"

leat_status leat_npy_write(const char *path, const leat_tensor *tensor, leat_error *err) {
    LEATI_GIVEN(path, err);
    LEATI_GIVEN(tensor, err);
    char header[LEATI_NPY_HEADER_BYTES];
    leati_replacement file;
    LEATI_TRY(leati_array_check(tensor, path, err));
    size_t bytes = leati_npy_header(header, tensor);
    LEATI_TRY(leati_replace_begin(&file, path, err));
    leat_status status = leati_replace_write(&file, header, bytes, err);
    if (status == LEAT_OK) status = leati_replace_write(&file, tensor->data, leat_tensor_bytes(tensor), err);
    if (status == LEAT_OK) return leati_replace_commit(&file, err);
    leati_replace_abandon(&file);
    return status;
}

enum { member_name_bytes = 1024 };

static leat_status add(leati_zip_writer *writer, const char *const *names, int index,
                       const leat_tensor *tensor, leat_error *err) {
    char header[LEATI_NPY_HEADER_BYTES], member[member_name_bytes];
    const char *name = names[index];
    if (!name) return leati_fail(err, LEAT_EINVAL, "names[%d] is NULL", index);
    if (name[0] == '\0' || strlen(name) + sizeof ".npy" > sizeof member)
        return leati_fail(err, LEAT_EINVAL, "the name of array %d is empty or too long", index);
    for (int i = 0; i < index; ++i)
        if (strcmp(names[i], name) == 0)
            return leati_fail(err, LEAT_EINVAL, "two arrays have the name '%s'", name);
    LEATI_TRY(leati_array_check(tensor, name, err));
    snprintf(member, sizeof member, "%s.npy", name);
    const leati_piece pieces[] = {{header, leati_npy_header(header, tensor)},
                                  {tensor->data, leat_tensor_bytes(tensor)}};
    return leati_zip_add(writer, member, pieces, 2, err);
}

leat_status leat_npz_write(const char *path, const char *const *names, const leat_tensor *tensors, int count,
                           leat_error *err) {
    LEATI_GIVEN(path, err);
    LEATI_GIVEN(names, err);
    LEATI_GIVEN(tensors, err);
    if (count < 0) return leati_fail(err, LEAT_EINVAL, "expected at least 0 arrays, received %d", count);
    leati_zip_writer writer;
    LEATI_TRY(leati_zip_create(&writer, path, err));
    leat_status status = LEAT_OK;
    for (int i = 0; i < count && status == LEAT_OK; ++i) status = add(&writer, names, i, &tensors[i], err);
    if (status == LEAT_OK) return leati_zip_finish(&writer, err);
    leati_zip_abandon(&writer);
    return leati_prefix(status, err, "'%s'", path);
}
