/* SPDX-License-Identifier: Apache-2.0 */
/* Writes datasets of numbers.  Room: h5. */
#include "h5/private.h"

#include "base/error.h"

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

static leat_status check_dtype(leati_h5 *file, const char *name, leat_dtype dtype, leat_error *err) {
    if (dtype != LEAT_F16) return LEAT_OK;
    return leati_fail(err, LEAT_EDTYPE, "'%s': '%s': HDF5 has no float16; convert the array to float32",
                      file->path, name);
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
