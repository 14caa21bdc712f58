/* SPDX-License-Identifier: Apache-2.0 */
/* Reads single chunks of datasets that are larger than memory.  Room: h5. */
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "h5/private.h"

struct leati_h5_chunks {
    leati_h5 *file;
    char *name;
    leati_h5_type type;
    leati_h5_space space;
    leati_h5_index index;
    leati_h5_chunk_form form;
};

void leati_h5_chunks_close(leati_h5_chunks **chunks) {
    if (!*chunks) return;
    leati_free((*chunks)->name);
    leati_free((*chunks)->index.places);
    leati_free(*chunks);
    *chunks = NULL;
}

leati_h5_chunk_form leati_h5_chunks_form(const leati_h5_chunks *chunks) {
    return chunks->form;
}

static void set_form(leati_h5_chunks *c) {
    const leat_dtype dtype = leati_h5_default_dtype(c->type.dtype);
    c->form = (leati_h5_chunk_form){.dtype = dtype,
                                    .rows = (int64_t)c->index.dims[0],
                                    .bands = (int64_t)c->index.grid[0],
                                    .in_band = 1,
                                    .chunk_bytes =
                                        (size_t)c->index.bytes / c->type.bytes * leat_dtype_bytes(dtype)};
    c->form.file = c->file->path;
    c->form.name = c->name;
    c->form.row_bytes = (size_t)(c->space.count / c->space.dims[0]) * leat_dtype_bytes(dtype);
    for (int i = 1; i < c->space.rank; ++i) c->form.in_band *= (int64_t)c->index.grid[i];
}

leat_status leati_h5_chunks_open(leati_h5_chunks **out, leati_h5 *file, const char *name, leat_error *err) {
    leati_h5_dataset d;
    *out = NULL;
    LEATI_TRY(leati_h5_dataset_open(&d, file, name, err));
    leati_h5_chunks *c = leati_calloc(1, sizeof *c);
    if (c) {
        *c = (leati_h5_chunks){.file = file, .name = leati_strdup(name), .type = d.type, .space = d.space};
        (void)leati_h5_index_storage(&d.reader, &d.header, &d.type, &d.space, &c->index);
    }
    leat_status status = leati_h5_dataset_close(&d, err);
    if (status == LEAT_OK && (!c || !c->name)) status = leati_fail_memory(err, sizeof *c, "a dataset");
    if (status == LEAT_OK && c->index.chunked && c->space.count > 0) {
        set_form(c);
        *out = c;
        return LEAT_OK;
    }
    leati_h5_chunks_close(&c);
    return status;
}

/* ---- One chunk ---- */

/* Returns a chunk that is not in the file. */
static unsigned char *fill_chunk(const leati_h5_chunks *c) {
    unsigned char *data = leati_calloc((size_t)c->index.bytes, 1);
    static const unsigned char zeros[sizeof c->index.fill];
    if (!data || memcmp(c->index.fill, zeros, sizeof zeros) == 0) return data;
    for (size_t at = 0; at < c->index.bytes; at += c->type.bytes)
        memcpy(data + at, c->index.fill, c->type.bytes);
    return data;
}

/* Converts a chunk to the type of the form; frees `data` if it is replaced.  NULL: no memory. */
static unsigned char *convert_chunk(const leati_h5_chunks *c, unsigned char *data) {
    if (c->form.dtype == c->type.dtype && !c->type.swapped) return data;
    unsigned char *converted = leati_calloc(c->form.chunk_bytes, 1);
    if (converted)
        leati_h5_convert(c->form.dtype, converted, &c->type, data, (size_t)c->index.bytes / c->type.bytes);
    leati_free(data);
    return converted;
}

leat_status leati_h5_chunks_load(const leati_h5_chunks *c, int64_t number, unsigned char **out,
                                 leat_error *err) {
    const leati_h5_stored *where = &c->index.places[number];
    leati_h5_reader r;
    leati_h5_reader_init(&r, &c->file->image);
    const bool present = where->address != 0 && where->address != LEATI_H5_UNDEFINED;
    unsigned char *data =
        present ? leati_h5_load_chunk(&r, &c->index.filters, c->type.bytes, where, c->index.bytes)
                : fill_chunk(c);
    *out = data ? convert_chunk(c, data) : NULL;
    LEATI_TRY(leati_h5_report(c->file, &r, err, c->name));
    return *out ? LEAT_OK : leati_fail_memory(err, c->form.chunk_bytes, "a chunk of a dataset");
}

/* Copies with the strides of chunk and destination; the dimensions from `dense` on are contiguous in both. */
void leati_h5_chunks_copy(const leati_h5_chunks *c, int64_t number, const unsigned char *chunk, int64_t first,
                          int64_t count, unsigned char *dst) {
    const int rank = c->space.rank;
    uint64_t start[LEATI_H5_MAX_RANK], inside[LEATI_H5_MAX_RANK], at[LEATI_H5_MAX_RANK] = {0};
    uint64_t place = (uint64_t)number;
    for (int i = rank - 1; i >= 0; place /= c->index.grid[i--]) {
        start[i] = place % c->index.grid[i] * c->index.dims[i];
        const uint64_t rest = c->space.dims[i] - start[i];
        inside[i] = rest < c->index.dims[i] ? rest : c->index.dims[i];
    }
    const uint64_t skipped = (uint64_t)first - start[0];
    inside[0] = (uint64_t)count;
    int dense = rank; /* the dimensions before it are walked one element at a time */
    size_t bytes = leat_dtype_bytes(c->form.dtype), run = bytes;
    do {
        run *= (size_t)inside[--dense];
    } while (dense > 0 && inside[dense] == c->index.dims[dense] && inside[dense] == c->space.dims[dense]);
    for (int i = 0; i >= 0;) {
        uint64_t from = 0, to = 0;
        for (i = 0; i < rank; ++i) {
            from = from * c->index.dims[i] + at[i] + (i == 0 ? skipped : 0);
            to = to * (i == 0 ? inside[0] : c->space.dims[i]) + at[i] + (i == 0 ? 0 : start[i]);
        }
        memcpy(dst + to * bytes, chunk + from * bytes, run);
        for (i = dense - 1; i >= 0 && ++at[i] == inside[i]; --i) at[i] = 0;
    }
}
