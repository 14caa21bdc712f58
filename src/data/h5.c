/* SPDX-License-Identifier: Apache-2.0 */
/* The source of HDF5 files: contiguous datasets are mapped; of those in chunks, small ones are read into memory once,
 * and the chunks of large ones when samples need them.  Files are read without libhdf5, so that there is no lock and no
 * need of worker processes.  Room: data. */
#include "h5/h5.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/os/file.h"
#include "data/call.h"
#include "data/h5_cache.h"
#include "data/kinds.h"

/* The default of the option `memory`, in bytes. */
#define MEMORY ((size_t)1 << 30)

/* Blocks that are shuffled together; more of them would hardly mix better. */
enum { MOST_BLOCKS = 1024 };

typedef struct file {
    const char *path; /* borrowed while the source is opened */
    leati_map map;    /* zeroed: no dataset is mapped */
    leati_h5 *h5;
    void *arrays[LEAT_BATCH_MAX_TENSORS];
    int count;
    size_t memory, whole;     /* bytes: for all datasets in chunks, and those that were read at once */
    leati_chunk_cache *cache; /* NULL: all datasets are mapped or in memory */
    leati_h5_chunk_form forms[LEAT_BATCH_MAX_TENSORS]; /* of the datasets in the cache */
    int cached;
} file;

static void release(void *owner) {
    file *f = owner;
    leati_chunk_cache_destroy(&f->cache);
    (void)leati_h5_close(&f->h5, NULL);
    for (int i = 0; i < f->count; ++i) leati_free(f->arrays[i]);
    leati_map_close(&f->map);
    leati_free(f);
}

/* Reads a dataset that is not contiguous, as `tensor` describes it. */
static leat_status read_whole(leati_array *out, file *f, const char *name, leat_tensor tensor,
                              leat_error *err) {
    out->dtype = tensor.dtype;
    out->swapped = false;
    out->bytes = leat_tensor_bytes(&tensor);
    tensor.data = leati_calloc_aligned(out->bytes);
    if (!tensor.data) return leati_fail_memory(err, out->bytes, "a dataset in chunks");
    f->arrays[f->count++] = tensor.data;
    f->whole += out->bytes;
    out->data = tensor.data;
    return leati_h5_read(f->h5, name, &tensor, err);
}

/* Returns the bytes of `memory` that the datasets leave which were read at once.  A dataset without chunks is read
 * even if it is larger. */
static size_t left_of(const file *f, size_t memory) {
    return f->whole < memory ? memory - f->whole : 0;
}

static leat_status use_chunks(leati_array *out, file *f, leati_h5_chunks *chunks, leat_error *err) {
    if (!f->cache) {
        const leat_status status = leati_chunk_cache_create(&f->cache, left_of(f, f->memory), err);
        if (status != LEAT_OK) {
            leati_h5_chunks_close(&chunks);
            return status;
        }
    }
    f->forms[f->cached++] = leati_h5_chunks_form(chunks);
    out->dtype = f->forms[f->cached - 1].dtype;
    out->swapped = false;
    return leati_chunk_cache_add(f->cache, chunks, &out->reader, err);
}

static leat_status read_chunked(leati_array *out, file *f, const char *name, leat_error *err) {
    leati_h5_chunks *chunks = NULL;
    leat_tensor tensor;
    if (f->count + f->cached == LEAT_BATCH_MAX_TENSORS)
        return leati_fail(err, LEAT_EINVAL, "expected at most %d datasets, received more",
                          LEAT_BATCH_MAX_TENSORS);
    LEATI_TRY(leati_h5_describe(f->h5, name, &tensor, err));
    if (leat_tensor_bytes(&tensor) > left_of(f, f->memory / 2))
        LEATI_TRY(leati_h5_chunks_open(&chunks, f->h5, name, err));
    return chunks ? use_chunks(out, f, chunks, err) : read_whole(out, f, name, tensor, err);
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
        if (!f->map.path) LEATI_TRY(leati_map_open_guarded(&f->map, f->path, err));
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
        const leat_status status = add_dataset(columns, f, list, part, settings, err);
        if (status == LEAT_ENOTFOUND)
            return leati_prefix(status, err, "inputs= and targets= name datasets, and h5ls -r lists them");
        if (status != LEAT_OK) return status;
        list = comma ? comma + 1 : NULL;
    }
    return LEAT_OK;
}

/* Returns the bytes of the chunks that `samples` neighbours need, in the cache. */
static size_t chunk_bytes_of(const file *f, int64_t samples) {
    size_t bytes = 0;
    for (int i = 0; i < f->cached; ++i) {
        const leati_h5_chunk_form *form = &f->forms[i];
        bytes += (size_t)((samples - 1) / form->rows + 1) * (size_t)form->in_band * form->chunk_bytes;
    }
    return bytes;
}

/* Returns the samples of the largest chunk. */
static int64_t block_of(const file *f) {
    int64_t rows = 1;
    for (int i = 0; i < f->cached; ++i)
        if (f->forms[i].rows > rows) rows = f->forms[i].rows;
    return rows;
}

/* Checks that the cache has room for the chunks of one sample. */
static leat_status check_memory(const file *f, leat_error *err) {
    const size_t least = f->cached > 0 ? chunk_bytes_of(f, 1) : 0, left = left_of(f, f->memory);
    if (least <= left) return LEAT_OK;
    return leati_fail(
        err, LEAT_EINVAL,
        "'%s': the chunks that contain one sample take %zu bytes when they are unpacked, and memory= "
        "leaves %zu: give memory=%zuM or more, or write smaller chunks (h5repack -l CHUNK=...)",
        f->path, least, left, ((least + f->whole) >> 20) + 1);
}

static leat_status open_file(leati_columns *columns, file *f, const leati_settings *settings,
                             leat_error *err) {
    LEATI_TRY(leati_h5_open(&f->h5, f->path, err));
    LEATI_TRY(add_datasets(columns, f, settings->inputs, "x", LEAT_PART_INPUT, settings, err));
    LEATI_TRY(add_datasets(columns, f, settings->targets, "y", LEAT_PART_TARGET, settings, err));
    LEATI_TRY(add_datasets(columns, f, settings->sample_weights, "sample_weight", LEAT_PART_SAMPLE_WEIGHT,
                           settings, err));
    return f->cache ? check_memory(f, err) : leati_h5_close(&f->h5, err);
}

/* Says which samples lie together, so that LEAT_SHUFFLE_BLOCKS reads each chunk once in a pass.  Half of the cache is
 * for the chunks that are being mixed, so that the next ones can come while the last of them are still in use. */
static void set_blocks(leat_sequence *out, const file *f) {
    if (!f->cache) return;
    const int64_t rows = block_of(f);
    const size_t fitting = left_of(f, f->memory) / 2 / chunk_bytes_of(f, rows);
    out->block_samples = rows;
    out->blocks_at_once = fitting < 1 ? 1 : fitting > MOST_BLOCKS ? MOST_BLOCKS : (int64_t)fitting;
}

leat_status leati_open_h5(leat_sequence *out, const leati_spec *spec, const char *text,
                          const leati_settings *settings, const leat_source_options *options,
                          leat_error *err) {
    leati_columns *columns = NULL;
    const char *memory = leati_spec_value(spec, "memory");
    size_t bytes = MEMORY;
    (void)text;
    if (memory) LEATI_TRY(leati_read_bytes(&bytes, "memory=", memory, err));
    file *f = leati_calloc(1, sizeof *f);
    if (!f) return leati_fail_memory(err, sizeof *f, "a source");
    f->path = spec->paths[0];
    f->memory = bytes;
    leat_status status = leati_columns_create(&columns, options, f, release, err);
    if (status != LEAT_OK) {
        release(f);
        return status;
    }
    status = leati_columns_set_path(columns, f->path, err);
    if (status == LEAT_OK) status = open_file(columns, f, settings, err);
    if (status != LEAT_OK) {
        leati_columns_destroy(columns);
        return status;
    }
    LEATI_TRY(leati_columns_finish(out, columns, err));
    set_blocks(out, f);
    return LEAT_OK;
}
