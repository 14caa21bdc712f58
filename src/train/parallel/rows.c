/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers tensors of a batch.  Room: train. */
#include "train/parallel/rows.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "train/parallel/parts.h"

/* Returns the largest number of samples of a rank: the size of a block. */
static int64_t most_samples(const leati_parts *r) {
    int64_t most = 0;
    for (int rank = 0; rank < r->p->dist->size; ++rank) {
        const int64_t count = leati_samples_of(r->p, rank, r->samples);
        if (count > most) most = count;
    }
    return most;
}

leat_status leati_rows_begin(leati_rows *rows, const leati_parts *r, const leat_tensor *part,
                             leat_error *err) {
    leat_tensor one = *part;
    one.shape[0] = 1;
    rows->bytes = leat_tensor_bytes(&one);
    rows->block = (size_t)most_samples(r) * rows->bytes;
    const size_t bytes = (1 + (size_t)r->p->dist->size) * rows->block;
    if (bytes > rows->memory_bytes) {
        leati_free(rows->memory);
        rows->memory_bytes = 0;
        rows->memory = leati_calloc_aligned(bytes);
        if (!rows->memory) return leati_fail_memory(err, bytes, "samples of all ranks");
        rows->memory_bytes = bytes;
    }
    rows->mine = leat_tensor_view(part->dtype, part->rank, part->shape, rows->memory);
    rows->mine.shape[0] = 0;
    return LEAT_OK;
}

void leati_rows_append(leati_rows *rows, const leat_tensor *part, int64_t count) {
    if (count == 0) return;
    memcpy(rows->memory + (size_t)rows->mine.shape[0] * rows->bytes, part->data, (size_t)count * rows->bytes);
    rows->mine.shape[0] += count;
}

/* Blocks are as large as the largest: their samples move together. */
leat_status leati_rows_gather(leati_rows *rows, const leati_parts *r, leat_tensor *whole, leat_error *err) {
    const leati_parallel *p = r->p;
    char *all = rows->memory + rows->block;
    size_t at = 0;
    LEATI_TRY(leati_dist_all_gather(p->dist, rows->memory, rows->block, all, err));
    for (int rank = 0; rank < p->dist->size; ++rank) {
        const size_t bytes = (size_t)leati_samples_of(p, rank, r->samples) * rows->bytes;
        memmove(all + at, all + (size_t)rank * rows->block, bytes);
        at += bytes;
    }
    *whole = rows->mine;
    whole->data = all;
    whole->shape[0] = r->samples;
    return LEAT_OK;
}

void leati_rows_fini(leati_rows *rows) {
    leati_free(rows->memory);
    *rows = (leati_rows){0};
}
