/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the attention kernels that exist once per instruction set (forward_tmpl.h, backward_tmpl.h). */
#ifndef LEATI_BACKENDS_NATIVE_ATTENTION_JOBS_H
#define LEATI_BACKENDS_NATIVE_ATTENTION_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/native/share.h"
#include "engine/op_semantics/attention.h"

#define LEATI_ATTENTION_ROWS   48   /* of a block of queries, at most */
#define LEATI_ATTENTION_FLOATS 8192 /* scores of a block with more than LEATI_ATTENTION_FEW rows, at most */
#define LEATI_ATTENTION_FEW    24

/* The scratch of one thread, as offsets in floats.  A panel is one vector wide: panel j of a matrix has its columns
 * j * lanes to (j + 1) * lanes - 1, row after row, and zeros beyond the last column. */
typedef struct leati_attention_layout {
    int64_t block_rows, blocks;          /* queries of a block, and blocks of a head */
    int64_t keys, depth, width;          /* S, D and V, rounded up to whole vectors */
    int64_t score_row;                   /* floats from a row of scores to the next one */
    int64_t keys_across;                 /* k', (depth, S) in panels */
    int64_t values;                      /* v, (S, V) in panels; backward: v', (width, S) in panels */
    int64_t scores;                      /* (block_rows, score_row) */
    int64_t lanes_of_rows, of_rows;      /* a vector for each row of a block; 3 numbers for each row */
    int64_t factors;                     /* of dropout, of a row */
    int64_t key_panels;                  /* backward: k, (S, D) in panels */
    int64_t diff_weights;                /* backward: (block_rows, score_row) */
    int64_t query_panels, diff_y_panels; /* backward: of a block, (block_rows, D) and (block_rows, V) */
    int64_t floats;
} leati_attention_layout;

/* The queries of the heads that read one key head of a sample, or some of their blocks.  Pointers without a comment are
 * arguments of the op; NULL where absent. */
typedef struct leati_attention_job {
    leati_attention_sizes sizes;
    const leati_attention_layout *layout;
    float scale, rate;
    uint64_t key, stream; /* of the random generator, for dropout */
    int64_t sample, key_head;
    int64_t part, parts; /* forward: every parts-th block, from block number `part` on */
    bool goes_on;        /* the thread computes the next key head next: its operands are prefetched */
    float *scratch;
    const float *q, *k, *v, *mask, *saved_y, *saved_log_sums, *diff_y;
    float *y, *log_sums, *diff_q, *diff_k, *diff_v;
} leati_attention_job;

static inline leati_attention_layout leati_attention_layout_of(const leati_attention_sizes *s, int64_t lanes,
                                                               bool backward) {
    leati_attention_layout l = {.keys = leati_round_up(s->keys, lanes),
                                .depth = leati_round_up(s->depth, lanes),
                                .width = leati_round_up(s->width, lanes)};
    l.score_row = l.keys + lanes; /* not a power of two, so that rows do not share the sets of a cache */
    int64_t most = (backward ? 2 : 1) * LEATI_ATTENTION_FLOATS / l.score_row;
    most = most < LEATI_ATTENTION_FEW    ? LEATI_ATTENTION_FEW
           : most > LEATI_ATTENTION_ROWS ? LEATI_ATTENTION_ROWS
                                         : most;
    l.blocks = (s->queries + most - 1) / most;
    l.block_rows = l.blocks > 0 ? (s->queries + l.blocks - 1) / l.blocks : 0;
    const int64_t rows = leati_round_up(l.block_rows, lanes);
    const int64_t floats[] = {l.keys * l.depth,
                              l.keys * l.width,
                              l.block_rows * l.score_row,
                              rows * lanes,
                              3 * rows,
                              leati_round_up(l.keys + 4, 4 * lanes) + 4 * lanes,
                              backward ? s->keys * l.depth : 0,
                              backward ? l.block_rows * l.score_row : 0,
                              backward ? l.block_rows * l.depth : 0,
                              backward ? l.block_rows * l.width : 0};
    int64_t *const offsets[] = {&l.keys_across,  &l.values,       &l.scores,     &l.lanes_of_rows,
                                &l.of_rows,      &l.factors,      &l.key_panels, &l.diff_weights,
                                &l.query_panels, &l.diff_y_panels};
    for (int i = 0; i < (int)(sizeof floats / sizeof floats[0]); i++) {
        *offsets[i] = l.floats;
        l.floats += leati_round_up(floats[i], 16);
    }
    return l;
}

#endif
