/* SPDX-License-Identifier: Apache-2.0 */
/* Reads datasets of numbers, converted to the type of the tensor.  Room: h5. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "h5/private.h"
#include "tensor/convert.h"

leat_status leati_h5_dataset_close(leati_h5_dataset *d, leat_error *err) {
    leati_h5_header_fini(&d->header);
    return leati_h5_report(d->file, &d->reader, err, d->name);
}

/* Reads the messages of a dataset; false with the reader's error. */
static bool read_messages(leati_h5_dataset *d) {
    leati_h5_reader *r = &d->reader;
    const leati_h5_message *type = leati_h5_message_of(&d->header, LEATI_H5_DATATYPE);
    const leati_h5_message *space = leati_h5_message_of(&d->header, LEATI_H5_DATASPACE);
    if (!type || !space) return leati_h5_refused(r, "expected a dataset");
    if (leati_h5_message_of(&d->header, LEATI_H5_EXTERNAL_FILES))
        return leati_h5_refused(r, "the dataset has external storage, which is not supported");
    return leati_h5_message_usable(r, type) && leati_h5_message_usable(r, space) &&
           leati_h5_parse_type(r, type->data, type->bytes, &d->type) &&
           leati_h5_parse_space(r, space->data, space->bytes, &d->space);
}

leat_status leati_h5_dataset_open(leati_h5_dataset *d, leati_h5 *file, const char *name, leat_error *err) {
    uint64_t address;
    *d = (leati_h5_dataset){.file = file, .name = name};
    leati_h5_reader_init(&d->reader, &file->image);
    bool found = leati_h5_find_object(&d->reader, name, &address);
    bool exists = address != LEATI_H5_UNDEFINED;
    bool done = found && exists && leati_h5_read_header(&d->reader, address, &d->header) && read_messages(d);
    leat_status status = LEAT_OK;
    if (done && d->space.rank > LEAT_MAX_RANK)
        status = leati_fail(err, LEAT_ESHAPE, "'%s': '%s': expected at most %d dimensions, found %d",
                            file->path, name, LEAT_MAX_RANK, d->space.rank);
    else if (done && d->type.class != LEATI_H5_NUMBER)
        status = leati_fail(err, LEAT_EDTYPE, "'%s': '%s': expected a dataset of numbers", file->path, name);
    if (done && status == LEAT_OK) return LEAT_OK;
    leat_status problem = leati_h5_dataset_close(d, err);
    if (problem != LEAT_OK) return problem;
    if (exists) return status;
    return leati_fail(err, LEAT_ENOTFOUND, "'%s': '%s': the object does not exist", file->path, name);
}

leat_dtype leati_h5_default_dtype(leat_dtype stored) {
    switch (stored) {
    case LEAT_F16:
    case LEAT_F32: return LEAT_F32;
    case LEAT_F64: return LEAT_F64;
    case LEAT_U8: return LEAT_U8;
    case LEAT_I64:
    case LEAT_U64: return LEAT_I64;
    default: return LEAT_I32;
    }
}

leat_status leati_h5_describe(leati_h5 *file, const char *name, leat_tensor *out, leat_error *err) {
    leati_h5_dataset d;
    *out = (leat_tensor){0};
    LEATI_TRY(leati_h5_dataset_open(&d, file, name, err));
    out->dtype = leati_h5_default_dtype(d.type.dtype);
    out->rank = d.space.rank;
    for (int i = 0; i < out->rank; ++i) out->shape[i] = (int64_t)d.space.dims[i];
    return leati_h5_dataset_close(&d, err);
}

leat_status leati_h5_locate(leati_h5 *file, const char *name, leati_h5_place *out, leat_error *err) {
    leati_h5_dataset d;
    uint64_t address = LEATI_H5_UNDEFINED;
    *out = (leati_h5_place){.offset = -1};
    LEATI_TRY(leati_h5_dataset_open(&d, file, name, err));
    out->dtype = d.type.dtype;
    out->swapped = d.type.swapped;
    out->rank = d.space.rank;
    for (int i = 0; i < out->rank; ++i) out->shape[i] = (int64_t)d.space.dims[i];
    (void)leati_h5_find_contiguous(&d.reader, &d.header, &d.type, &d.space, &address);
    if (address != LEATI_H5_UNDEFINED) out->offset = (int64_t)address;
    return leati_h5_dataset_close(&d, err);
}

static leat_status check_shape(const leati_h5_dataset *d, const leat_tensor *want, leat_error *err) {
    int64_t found[LEAT_MAX_RANK] = {0};
    bool same = want->rank == d->space.rank;
    for (int i = 0; i < d->space.rank; ++i) found[i] = (int64_t)d->space.dims[i];
    for (int i = 0; same && i < want->rank; ++i) same = want->shape[i] == found[i];
    if (same) return LEAT_OK;
    char expected[128], received[128];
    return leati_fail(err, LEAT_ESHAPE, "'%s': '%s': expected shape %s, found %s", d->file->path, d->name,
                      leati_shape_text(expected, sizeof expected, want->rank, want->shape),
                      leati_shape_text(received, sizeof received, d->space.rank, found));
}

static void swap_bytes(unsigned char *data, size_t element, size_t count) {
    for (size_t i = 0; i < count; ++i, data += element)
        for (size_t k = 0; k < element / 2; ++k) {
            unsigned char kept = data[k];
            data[k] = data[element - 1 - k];
            data[element - 1 - k] = kept;
        }
}

void leati_h5_convert(leat_dtype dtype, void *dst, const leati_h5_type *type, unsigned char *elements,
                      size_t count) {
    if (type->swapped) swap_bytes(elements, type->bytes, count);
    leati_convert(dtype == LEAT_BOOL ? LEAT_U8 : dtype, dst, type->dtype, elements, count);
}

/* Returns true if the tensor's memory can receive the elements as they are in the file. */
static bool same_type(const leati_h5_dataset *d, const leat_tensor *tensor) {
    leat_dtype want = tensor->dtype == LEAT_BOOL ? LEAT_U8 : tensor->dtype;
    return d->type.dtype == want && !d->type.swapped;
}

static leat_status read_elements(leati_h5_dataset *d, const leat_tensor *tensor, leat_error *err) {
    size_t count = (size_t)d->space.count, bytes = 0;
    if (!leati_mul_size(count, d->type.bytes, &bytes)) return leati_fail_memory(err, SIZE_MAX, "a dataset");
    if (same_type(d, tensor)) {
        if (bytes > 0) memset(tensor->data, 0, bytes);
        leati_h5_read_elements(&d->reader, &d->header, &d->type, &d->space, tensor->data);
        return LEAT_OK;
    }
    unsigned char *elements = leati_calloc_aligned(bytes);
    if (!elements) return leati_fail_memory(err, bytes, "a dataset of another type");
    if (leati_h5_read_elements(&d->reader, &d->header, &d->type, &d->space, elements))
        leati_h5_convert(tensor->dtype, tensor->data, &d->type, elements, count);
    leati_free(elements);
    return LEAT_OK;
}

leat_status leati_h5_read(leati_h5 *file, const char *name, const leat_tensor *tensor, leat_error *err) {
    leati_h5_dataset d;
    if (tensor->dtype == LEAT_F16)
        return leati_fail(err, LEAT_EDTYPE, "'%s': '%s': HDF5 has no float16; convert the array to float32",
                          file->path, name);
    LEATI_TRY(leati_h5_dataset_open(&d, file, name, err));
    leat_status status = check_shape(&d, tensor, err);
    if (status == LEAT_OK) status = read_elements(&d, tensor, err);
    leat_status problem = leati_h5_dataset_close(&d, status == LEAT_OK ? err : NULL);
    return status == LEAT_OK ? problem : status;
}
