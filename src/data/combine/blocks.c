/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks of a combination: which of its neighbours lie together, because their rows lie in the same blocks of a
 * part, such as chunks of HDF5.  Room: data. */
#include "data/combine/combine.h"

#include "base/memory.h"

/* If the blocks of the combination do not begin where those of a part begin, each of them reads two of the part's
 * blocks only in part.  So many times the part's block is then one block of the combination. */
enum { WIDER = 4 };

static leati_rows rows_of(const leati_combined *c, int part) {
    const leati_rows same = {0, 1, 1};
    return c->rows ? c->rows(c, part) : same;
}

static bool is_aligned(const leati_combined *c, int part, int64_t samples) {
    const leati_rows rows = rows_of(c, part);
    const int64_t block = c->parts[part].block_samples;
    return rows.offset % block == 0 && leati_mul_saturated(samples, rows.step) % block == 0 &&
           rows.span <= rows.step;
}

/* Returns the blocks of a part that `samples` neighbours need, in the worst case. */
static int64_t blocks_of(const leati_combined *c, int part, int64_t samples) {
    const leati_rows rows = rows_of(c, part);
    const int64_t block = c->parts[part].block_samples, count = leati_mul_saturated(samples - 1, rows.step);
    if (is_aligned(c, part, samples)) return leati_mul_saturated(samples, rows.step) / block;
    return (count / block) + (count % block + rows.span + block - 2) / block + 1;
}

/* Returns how many blocks of `samples` neighbours the parts keep in memory; 0: not a single one. */
static int64_t fitting(const leati_combined *c, int64_t samples) {
    int64_t least = INT64_MAX;
    for (int i = 0; i < c->part_count; ++i) {
        if (c->parts[i].block_samples <= 1) continue;
        const int64_t some = c->parts[i].blocks_at_once / blocks_of(c, i, samples);
        if (some < least) least = some;
    }
    return least;
}

void leati_combined_choose_blocks(leati_combined *c) {
    int64_t samples = 0;
    bool aligned = true;
    for (int i = 0; i < c->part_count; ++i) {
        const int64_t block = c->parts[i].block_samples, step = rows_of(c, i).step;
        if (block > 1 && (block - 1) / step + 1 > samples) samples = (block - 1) / step + 1;
    }
    if (samples <= 1) return;
    for (int i = 0; i < c->part_count; ++i)
        if (c->parts[i].block_samples > 1 && !is_aligned(c, i, samples)) aligned = false;
    if (!aligned && fitting(c, samples * WIDER) > 0) samples *= WIDER;
    c->block_samples = samples;
    c->blocks_at_once = fitting(c, samples);
    if (c->blocks_at_once < 1) c->blocks_at_once = 1;
}
