/* SPDX-License-Identifier: Apache-2.0 */
/* A block of queries of one head, for the code that is compiled once per instruction set: which keys count for it, its
 * scores, its dropout, and its products along the keys. */
#ifndef LEATI_BACKENDS_NATIVE_ATTENTION_BLOCK_TMPL_H
#define LEATI_BACKENDS_NATIVE_ATTENTION_BLOCK_TMPL_H

#include "backends/native/attention/tile_tmpl.h"
#include "backends/native/elementwise/loops_tmpl.h"

/* Keys of a panel that are multiplied at once, for panels of as many columns as a tile: they stay in the L1 cache. */
#define ATTENTION_L1_FLOATS 8192

/* The rows of a tile, and the vectors of keys among which are all keys that count for them. */
typedef struct attention_rows {
    int64_t row, rows, first, last;
} attention_rows;

typedef struct attention_block {
    const leati_attention_job *job;
    int64_t number, count;       /* of the block among those of the job */
    int64_t head, first, rows;   /* queries first to first + rows - 1 */
    int64_t key_first, key_last; /* vectors of keys that count for any row */
    int tiles;
    attention_rows tile[(LEATI_ATTENTION_ROWS + LEATI_ROWS - 1) / LEATI_ROWS];
} attention_block;

LEATI_INLINE float *attention_scratch(const leati_attention_job *job, int64_t offset) {
    return job->scratch + offset;
}

/* Returns the number of vectors that hold `count` elements. */
LEATI_INLINE int64_t vectors_of(int64_t count) {
    return (count + LEATI_LANES - 1) / LEATI_LANES;
}

/* Return element (0, 0) of the block's part of a tensor (N, T, H, size), or of the job's part of (N, S, G, size). */
LEATI_INLINE int64_t query_place(const attention_block *b, int64_t size) {
    const leati_attention_sizes *s = &b->job->sizes;
    return ((b->job->sample * s->queries + b->first) * s->heads + b->head) * size;
}
LEATI_INLINE int64_t key_place(const leati_attention_job *job, int64_t size) {
    const leati_attention_sizes *s = &job->sizes;
    return (job->sample * s->keys * s->key_heads + job->key_head) * size;
}
LEATI_INLINE int64_t row_number(const attention_block *b) {
    return (b->job->sample * b->job->sizes.heads + b->head) * b->job->sizes.queries + b->first;
}

LEATI_INLINE const float *mask_of(const attention_block *b) {
    const leati_attention_job *job = b->job;
    if (!job->mask) return NULL;
    return job->mask + job->sample * job->sizes.mask_sample + b->first * job->sizes.mask_query;
}

LEATI_INLINE bool any_counts(const float *mask, int64_t left) {
    vf x = v_load_part(mask, left);
    return v_largest(x) > 0;
}

/* Widens the tile's range to the keys that count for a row of the mask.  If none counts, all keys have the same weight:
 * the range is then all of them. */
static void widen_to_mask(attention_rows *tile, const float *mask, int64_t keys) {
    const int64_t end = vectors_of(keys);
    int64_t first = 0, last = end;
    while (first < end && !any_counts(mask + first * LEATI_LANES, keys - first * LEATI_LANES)) first++;
    if (first == end)
        first = 0;
    else
        while (last > tile->last &&
               !any_counts(mask + (last - 1) * LEATI_LANES, keys - (last - 1) * LEATI_LANES))
            last--;
    if (first < tile->first) tile->first = first;
    if (last > tile->last) tile->last = last;
}

/* Sets the tiles of the block and their ranges of keys. */
static void find_keys(attention_block *b) {
    const leati_attention_sizes *s = &b->job->sizes;
    const even_groups tiles = even_groups_of(b->rows, LEATI_ROWS);
    const float *mask = mask_of(b);
    const int64_t end = vectors_of(s->keys);
    b->tiles = (int)tiles.count;
    b->key_first = end;
    b->key_last = 0;
    for (int i = 0; i < b->tiles; i++) {
        attention_rows *t = &b->tile[i];
        t->row = even_start(&tiles, i);
        t->rows = even_start(&tiles, i + 1) - t->row;
        t->first = mask ? end : 0;
        t->last = mask ? 0 : end;
        for (int64_t row = t->row; mask && row < (s->mask_query ? t->row + t->rows : t->row + 1); row++)
            widen_to_mask(t, mask + row * s->mask_query, s->keys);
        if (t->first < b->key_first) b->key_first = t->first;
        if (t->last > b->key_last) b->key_last = t->last;
    }
}

/* Returns the number of blocks of the heads that read the job's key head. */
LEATI_INLINE int64_t count_blocks(const leati_attention_job *job) {
    return job->sizes.heads / job->sizes.key_heads * job->layout->blocks;
}

static attention_block block_of(const leati_attention_job *job, int64_t number) {
    const leati_attention_sizes *s = &job->sizes;
    const leati_attention_layout *l = job->layout;
    const int64_t first = number % l->blocks * l->block_rows, left = s->queries - first;
    attention_block b = {.job = job,
                         .number = number,
                         .count = count_blocks(job),
                         .head = s->heads / s->key_heads * job->key_head + number / l->blocks,
                         .first = first,
                         .rows = left < l->block_rows ? left : l->block_rows};
    find_keys(&b);
    return b;
}

/* Prefetches rows first to last - 1 of a matrix with `columns` columns. */
LEATI_INLINE void prefetch_rows(const float *from, int64_t step, int64_t first, int64_t last,
                                int64_t columns) {
    for (int64_t i = first; i < last; i++)
        for (int64_t j = 0; j < columns; j += 64 / (int64_t)sizeof(float))
            __builtin_prefetch(from + i * step + j, 0, 2);
}

/* Prefetches share `share` of the block's `shares` shares of the operands of the next key head. */
static void prefetch_next(const attention_block *b, int64_t share, int64_t shares) {
    const leati_attention_job *job = b->job;
    const leati_attention_sizes *s = &job->sizes;
    const int64_t heads = s->heads / s->key_heads, number = b->number * shares + share,
                  count = b->count * shares;
    const int64_t key = s->keys * number / count, key_end = s->keys * (number + 1) / count,
                  query = s->queries * number / count, query_end = s->queries * (number + 1) / count;
    leati_attention_job next = *job;
    if (++next.key_head == s->key_heads) next.key_head = 0, next.sample++;
    const int64_t head = next.key_head * heads, place = next.sample * s->queries * s->heads + head;
    prefetch_rows(job->k + key_place(&next, s->depth), s->key_heads * s->depth, key, key_end, s->depth);
    prefetch_rows(job->v + key_place(&next, s->width), s->key_heads * s->width, key, key_end, s->width);
    prefetch_rows(job->q + place * s->depth, s->heads * s->depth, query, query_end, heads * s->depth);
    if (!job->diff_y) return;
    prefetch_rows(job->diff_y + place * s->width, s->heads * s->width, query, query_end, heads * s->width);
    prefetch_rows(job->saved_y + place * s->width, s->heads * s->width, query, query_end, heads * s->width);
}

/* Computes the tiles of a product (queries, keys), each for its own range of keys. */
static void multiply_by_keys(const attention_block *b, const attention_product *p,
                             const attention_tile (*tiles)[LEATI_ROWS + 1]) {
    const even_groups across = even_groups_of(vectors_of(b->job->sizes.keys), ATTENTION_VECTORS);
    for (int64_t g = 0; g < across.count; g++)
        for (int i = 0; i < b->tiles; i++) {
            const attention_rows *t = &b->tile[i];
            int64_t first = even_start(&across, g), last = even_start(&across, g + 1);
            if (first < t->first) first = t->first;
            if (last > t->last) last = t->last;
            if (first < last) tiles[last - first][t->rows](p, t->row, first);
            if (g == 0 && tiles == attend_scores && b->job->goes_on) prefetch_next(b, i, b->tiles);
        }
}

/* Computes p->c = factor a b, where a (queries, keys) are numbers of the keys that count, and p->depth is not set.
 * Some keys at a time, which begin at the same keys for all rows, so that no row depends on its block. */
static void multiply_along_keys(const attention_block *b, const attention_product *p) {
    const int64_t keys = b->job->sizes.keys;
    const even_groups across = even_groups_of(vectors_of(p->columns), ATTENTION_VECTORS);
    int64_t step =
        across.count ? ATTENTION_L1_FLOATS / ((across.size + (across.larger > 0)) * LEATI_LANES) : keys;
    step -= step % LEATI_LANES;
    for (int64_t start = 0; start < keys; start += step)
        for (int64_t g = 0; g < across.count; g++)
            for (int i = 0; i < b->tiles; i++) {
                const attention_rows *t = &b->tile[i];
                const int64_t vector = even_start(&across, g), vectors = even_start(&across, g + 1) - vector;
                int64_t first = t->first * LEATI_LANES, last = t->last * LEATI_LANES;
                attention_product part = *p;
                part.add = first < start;
                if (first < start) first = start;
                if (last > start + step) last = start + step;
                if (last > keys) last = keys;
                if (first >= last) continue;
                part.a += first;
                part.b += first * LEATI_LANES;
                part.depth = last - first;
                attend_sums[vectors][t->rows](&part, t->row, vector);
            }
}

/* Packs k' such that scores are multiples of log 2. */
static void pack_keys(const leati_attention_job *job) {
    const leati_attention_sizes *s = &job->sizes;
    pack_across(job->k + key_place(job, s->depth), s->key_heads * s->depth, s->keys, s->depth,
                job->scale * ATTENTION_LOG2E, attention_scratch(job, job->layout->keys_across));
}

/* Writes the scores, as multiples of log 2.  largest: NULL, or a vector for each row, for its largest scores. */
static void write_scores(const attention_block *b, float *largest) {
    const leati_attention_job *job = b->job;
    const leati_attention_layout *l = job->layout;
    const attention_product p = {.a = job->q + query_place(b, job->sizes.depth),
                                 .a_row = job->sizes.heads * job->sizes.depth,
                                 .a_depth = 1,
                                 .depth = job->sizes.depth,
                                 .b = attention_scratch(job, l->keys_across),
                                 .b_panel = l->depth * LEATI_LANES,
                                 .c = attention_scratch(job, l->scores),
                                 .c_row = l->score_row,
                                 .columns = job->sizes.keys,
                                 .mask = mask_of(b),
                                 .mask_row = job->sizes.mask_query,
                                 .largest = largest};
    for (int64_t i = 0; largest && i < b->rows * LEATI_LANES; i += LEATI_LANES)
        v_store(largest + i, v_all(-INFINITY));
    multiply_by_keys(b, &p, attend_scores);
}

/* Sets the vectors of all rows to 1.  Those of the rows that a block lacks are folded like the others, without an
 * effect; a 0 would be a division by 0. */
static void clear_lanes(const leati_attention_job *job) {
    const int64_t rows = leati_round_up(job->layout->block_rows, LEATI_LANES);
    float *lanes = attention_scratch(job, job->layout->lanes_of_rows);
    for (int64_t i = 0; i < rows * LEATI_LANES; i += LEATI_LANES) v_store(lanes + i, v_all(1));
}

/* Draws the factors of dropout of the weights of row `row`, beginning with a key.  Returns where the first one is. */
static const float *draw_factors(const attention_block *b, int64_t row, int64_t key, int64_t count) {
    const leati_attention_job *job = b->job;
    float *factors = attention_scratch(job, job->layout->factors);
    const uint32_t threshold = (uint32_t)leati_dropout_threshold(job->rate);
    const float scale = leati_dropout_scale(job->rate);
    const uint64_t element = (uint64_t)((row_number(b) + row) * job->sizes.keys + key);
    const int64_t skipped = (int64_t)(element % 4);
    for (int64_t i = 0; i < skipped + count; i += 4 * LEATI_LANES)
        draw(job->key, job->stream, (element - (uint64_t)skipped + (uint64_t)i) / 4, threshold, scale,
             factors + i);
    return factors + skipped;
}

#endif
