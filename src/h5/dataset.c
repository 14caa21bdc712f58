/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes datasets of numbers.  Room: h5. */
#include "h5/private.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

static hid_t memory_type(leat_dtype dtype) {
    switch (dtype) {
    case LEAT_F32: return H5T_NATIVE_FLOAT;
    case LEAT_F64: return H5T_NATIVE_DOUBLE;
    case LEAT_I32: return H5T_NATIVE_INT32;
    case LEAT_I64: return H5T_NATIVE_INT64;
    case LEAT_U8:
    case LEAT_BOOL: return H5T_NATIVE_UINT8;
    case LEAT_I8: return H5T_NATIVE_INT8;
    case LEAT_I16: return H5T_NATIVE_INT16;
    case LEAT_U16: return H5T_NATIVE_UINT16;
    case LEAT_U32: return H5T_NATIVE_UINT32;
    case LEAT_U64: return H5T_NATIVE_UINT64;
    case LEAT_F16: break; /* HDF5 has no float16 before 1.14.4 */
    }
    return H5I_INVALID_HID;
}

static hid_t file_type(leat_dtype dtype) {
    switch (dtype) {
    case LEAT_F32: return H5T_IEEE_F32LE;
    case LEAT_F64: return H5T_IEEE_F64LE;
    case LEAT_I32: return H5T_STD_I32LE;
    case LEAT_I64: return H5T_STD_I64LE;
    case LEAT_U8:
    case LEAT_BOOL: return H5T_STD_U8LE;
    case LEAT_I8: return H5T_STD_I8LE;
    case LEAT_I16: return H5T_STD_I16LE;
    case LEAT_U16: return H5T_STD_U16LE;
    case LEAT_U32: return H5T_STD_U32LE;
    case LEAT_U64: return H5T_STD_U64LE;
    case LEAT_F16: break;
    }
    return H5I_INVALID_HID;
}

static bool dtype_of(hid_t type, leat_dtype *out) {
    size_t bytes = H5Tget_size(type);
    if (H5Tget_class(type) == H5T_FLOAT) {
        *out = bytes > 4 ? LEAT_F64 : LEAT_F32;
        return true;
    }
    if (H5Tget_class(type) != H5T_INTEGER) return false;
    *out = bytes > 4 ? LEAT_I64 : bytes == 1 && H5Tget_sign(type) == H5T_SGN_NONE ? LEAT_U8 : LEAT_I32;
    return true;
}

/* Returns true if the dataset's storage is inside the file: no external file, no virtual dataset. */
static bool stored_in_file(hid_t dataset) {
    hid_t properties = H5Dget_create_plist(dataset);
    if (properties < 0) return false;
    H5D_layout_t layout = H5Pget_layout(properties);
    bool inside = (layout == H5D_COMPACT || layout == H5D_CONTIGUOUS || layout == H5D_CHUNKED) &&
                  H5Pget_external_count(properties) == 0;
    H5Pclose(properties);
    return inside;
}

static leat_status describe(leati_h5 *file, const char *name, hid_t dataset, leat_tensor *out,
                            leat_error *err) {
    hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
    int rank = space >= 0 ? H5Sget_simple_extent_ndims(space) : -1;
    hsize_t dims[H5S_MAX_RANK] = {0};
    leat_status status = LEAT_OK;
    *out = (leat_tensor){0};
    if (rank < 0 || type < 0)
        status = leati_h5_fail(file, LEAT_EFORMAT, err, name, "the dataset is damaged");
    else if (rank > LEAT_MAX_RANK)
        status = leati_h5_fail(file, LEAT_ESHAPE, err, name, "expected at most 8 dimensions");
    else if (!dtype_of(type, &out->dtype))
        status = leati_h5_fail(file, LEAT_EDTYPE, err, name, "expected a dataset of numbers");
    else if (!stored_in_file(dataset))
        status = leati_h5_fail(file, LEAT_EFORMAT, err, name,
                               "the dataset has external or virtual storage, which is not supported");
    else
        H5Sget_simple_extent_dims(space, dims, NULL);
    out->rank = status == LEAT_OK ? rank : 0;
    for (int i = 0; i < out->rank; ++i) out->shape[i] = (int64_t)dims[i];
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    return status;
}

static leat_status open_dataset(leati_h5 *file, const char *name, hid_t *out, leat_error *err) {
    LEATI_TRY(leati_h5_open_object(file, name, out, err));
    if (H5Iget_type(*out) == H5I_DATASET) return LEAT_OK;
    H5Oclose(*out);
    return leati_h5_fail(file, LEAT_EFORMAT, err, name, "expected a dataset");
}

leat_status leati_h5_describe(leati_h5 *file, const char *name, leat_tensor *out, leat_error *err) {
    leati_h5_enter();
    hid_t dataset = H5I_INVALID_HID;
    leat_status status = open_dataset(file, name, &dataset, err);
    if (status == LEAT_OK) {
        status = describe(file, name, dataset, out, err);
        H5Oclose(dataset);
    }
    leati_h5_leave();
    return status;
}

static leat_status check_shape(leati_h5 *file, const char *name, const leat_tensor *want,
                               const leat_tensor *found, leat_error *err) {
    bool same = want->rank == found->rank;
    for (int i = 0; same && i < want->rank; ++i) same = want->shape[i] == found->shape[i];
    if (same) return LEAT_OK;
    char expected[128], received[128];
    return leati_fail(err, LEAT_ESHAPE, "'%s': '%s': expected shape %s, found %s", file->path, name,
                      leati_shape_text(expected, sizeof expected, want->rank, want->shape),
                      leati_shape_text(received, sizeof received, found->rank, found->shape));
}

static leat_status check_dtype(leati_h5 *file, const char *name, leat_dtype dtype, leat_error *err) {
    if (dtype != LEAT_F16) return LEAT_OK;
    return leati_fail(err, LEAT_EDTYPE, "'%s': '%s': HDF5 has no float16; convert the array to float32",
                      file->path, name);
}

leat_status leati_h5_read(leati_h5 *file, const char *name, const leat_tensor *tensor, leat_error *err) {
    LEATI_TRY(check_dtype(file, name, tensor->dtype, err));
    leati_h5_enter();
    hid_t dataset = H5I_INVALID_HID;
    leat_tensor found;
    leat_status status = open_dataset(file, name, &dataset, err);
    if (status == LEAT_OK) {
        status = describe(file, name, dataset, &found, err);
        if (status == LEAT_OK) status = check_shape(file, name, tensor, &found, err);
        if (status == LEAT_OK &&
            H5Dread(dataset, memory_type(tensor->dtype), H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor->data) < 0)
            status = leati_h5_fail(file, LEAT_EFORMAT, err, name, "cannot read the numbers");
        H5Oclose(dataset);
    }
    leati_h5_leave();
    return status;
}

leat_status leati_h5_write(leati_h5 *file, const char *name, const leat_tensor *tensor, leat_error *err) {
    hsize_t dims[LEAT_MAX_RANK] = {0};
    for (int i = 0; i < tensor->rank; ++i) dims[i] = (hsize_t)tensor->shape[i];
    leat_status status = LEAT_OK;
    LEATI_TRY(check_dtype(file, name, tensor->dtype, err));
    leati_h5_enter();
    hid_t links = H5Pcreate(H5P_LINK_CREATE);
    hid_t space = tensor->rank ? H5Screate_simple(tensor->rank, dims, NULL) : H5Screate(H5S_SCALAR);
    H5Pset_create_intermediate_group(links, 1);
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(creation, false); /* no times, so that equal numbers give equal bytes */
    hid_t dataset =
        H5Dcreate2(file->file, name, file_type(tensor->dtype), space, links, creation, H5P_DEFAULT);
    if (dataset < 0 ||
        H5Dwrite(dataset, memory_type(tensor->dtype), H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor->data) < 0)
        status = leati_h5_fail(file, LEAT_EIO, err, name, "cannot write the numbers");
    if (dataset >= 0) H5Dclose(dataset);
    H5Sclose(space);
    H5Pclose(creation);
    H5Pclose(links);
    leati_h5_leave();
    return status;
}
