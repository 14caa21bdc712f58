/* SPDX-License-Identifier: Apache-2.0 */
/* The source of HDF5 files: contiguous datasets are mapped, others are read into memory once.  Files are read without
 * libhdf5, so that there is no lock and no need of worker processes.  Room: data. */
#include "h5/h5.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/os/file.h"
#include "data/kinds.h"

typedef struct file {
    leati_map map;
    leati_h5 *h5; /* closed when the source is open */
    void *arrays[LEAT_BATCH_MAX_TENSORS];
    int count;
} file;

static void release(void *owner) {
    file *f = owner;
    (void)leati_h5_close(&f->h5, NULL);
    for (int i = 0; i < f->count; ++i) leati_free(f->arrays[i]);
    leati_map_close(&f->map);
    leati_free(f);
}

/* Reads a dataset that is stored in chunks. */
static leat_status read_chunked(leati_array *out, file *f, const char *name, leat_error *err) {
    leat_tensor tensor;
    LEATI_TRY(leati_h5_describe(f->h5, name, &tensor, err));
    const int64_t count = leat_tensor_count(&tensor);
    out->dtype = tensor.dtype;
    out->swapped = false;
    out->bytes = leati_count_bytes(count, leat_dtype_bytes(tensor.dtype));
    if (f->count == LEAT_BATCH_MAX_TENSORS)
        return leati_fail(err, LEAT_EINVAL, "expected at most %d datasets, received more",
                          LEAT_BATCH_MAX_TENSORS);
    tensor.data = leati_calloc_huge(out->bytes);
    if (!tensor.data) return leati_fail_memory(err, out->bytes, "a dataset in chunks");
    f->arrays[f->count++] = tensor.data;
    out->data = tensor.data;
    return leati_h5_read(f->h5, name, &tensor, err);
}

static leat_status add_dataset(leati_columns *columns, file *f, char *name, leat_batch_part part,
                               const leati_settings *settings, leat_error *err) {
    leati_h5_place place;
    leati_array array = {0};
    LEATI_TRY(leati_spec_decode(name, err));
    LEATI_TRY(leati_h5_locate(f->h5, name, &place, err));
    array.dtype = place.dtype;
    array.swapped = place.swapped;
    array.rank = place.rank;
    memcpy(array.shape, place.shape, sizeof array.shape);
    if (leati_array_count(&array) > 0 && place.offset >= 0) {
        array.data = f->map.data + place.offset;
        array.bytes = leati_count_bytes(leati_array_count(&array), leat_dtype_bytes(array.dtype));
        array.map = &f->map;
    } else if (leati_array_count(&array) > 0) {
        LEATI_TRY(read_chunked(&array, f, name, err));
    }
    return leati_columns_add(columns, part, NULL, &array, &settings->columns, name, err);
}

/* Adds the datasets of a list, whose commas become zero bytes.  Without a list, adds the one that is named
 * `fallback`; an input must exist. */
static leat_status add_datasets(leati_columns *columns, file *f, char *list, const char *fallback,
                                leat_batch_part part, const leati_settings *settings, leat_error *err) {
    char single[16] = "";
    if (!list) {
        bool exists = true;
        if (part != LEAT_PART_INPUT) LEATI_TRY(leati_h5_exists(f->h5, fallback, &exists, err));
        if (!exists) return LEAT_OK;
        memcpy(single, fallback, strlen(fallback) + 1);
        list = single;
    }
    while (list) {
        char *comma = strchr(list, ',');
        if (comma) *comma = '\0';
        LEATI_TRY(add_dataset(columns, f, list, part, settings, err));
        list = comma ? comma + 1 : NULL;
    }
    return LEAT_OK;
}

static leat_status open_file(leati_columns *columns, file *f, const char *path,
                             const leati_settings *settings, leat_error *err) {
    LEATI_TRY(leati_map_open_guarded(&f->map, path, err));
    LEATI_TRY(leati_h5_open(&f->h5, path, err));
    LEATI_TRY(add_datasets(columns, f, settings->inputs, "x", LEAT_PART_INPUT, settings, err));
    LEATI_TRY(add_datasets(columns, f, settings->targets, "y", LEAT_PART_TARGET, settings, err));
    LEATI_TRY(add_datasets(columns, f, settings->sample_weights, "sample_weight", LEAT_PART_SAMPLE_WEIGHT,
                           settings, err));
    return leati_h5_close(&f->h5, err);
}

leat_status leati_open_h5(leat_sequence *out, const leati_spec *spec, const char *text,
                          const leati_settings *settings, const leat_source_options *options,
                          leat_error *err) {
    leati_columns *columns = NULL;
    (void)text;
    file *f = leati_calloc(1, sizeof *f);
    if (!f) return leati_fail_memory(err, sizeof *f, "a source");
    leat_status status = leati_columns_create(&columns, options, f, release, err);
    if (status != LEAT_OK) {
        release(f);
        return status;
    }
    status = open_file(columns, f, spec->paths[0], settings, err);
    if (status == LEAT_OK) return leati_columns_finish(out, columns, err);
    leati_columns_destroy(columns);
    return status;
}
