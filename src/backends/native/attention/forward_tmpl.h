/* SPDX-License-Identifier: Apache-2.0 */
/* ATTENTION, for the code that is compiled once per instruction set.  The scores of a block of queries stay in the
 * cache: they become weights, which are divided by their sum when they have been multiplied with v. */
#ifndef LEATI_BACKENDS_NATIVE_ATTENTION_FORWARD_TMPL_H
#define LEATI_BACKENDS_NATIVE_ATTENTION_FORWARD_TMPL_H

#include "backends/native/attention/block_tmpl.h"

/* Replaces the scores of a block by 2^(score - largest).  largest: of each row; lanes: a vector for each row, which
 * receives the row's sum. */
static void exponentiate(const attention_block *b, const float *largest, float *lanes) {
    const leati_attention_layout *l = b->job->layout;
    float *scores = attention_scratch(b->job, l->scores);
    for (int i = 0; i < b->tiles; i++) {
        const attention_rows *t = &b->tile[i];
        for (int64_t row = t->row; row < t->row + t->rows; row++) {
            float *x = scores + row * l->score_row;
            const vf top = v_all(largest[row]);
            vf sum = {0};
            for (int64_t j = t->first * LEATI_LANES; j < t->last * LEATI_LANES; j += LEATI_LANES) {
                vf weight = v_exp2_below(v_load(x + j) - top);
                v_store(x + j, weight);
                sum += weight;
            }
            v_store(lanes + row * LEATI_LANES, sum);
        }
    }
}

static void drop_weights(const attention_block *b) {
    const leati_attention_layout *l = b->job->layout;
    for (int i = 0; i < b->tiles; i++) {
        const attention_rows *t = &b->tile[i];
        const int64_t first = t->first * LEATI_LANES, count = t->last * LEATI_LANES - first;
        for (int64_t row = t->row; row < t->row + t->rows; row++) {
            const float *factors = draw_factors(b, row, first, count);
            float *x = attention_scratch(b->job, l->scores) + row * l->score_row + first;
            for (int64_t j = 0; j < count; j += LEATI_LANES)
                v_store(x + j, v_load(x + j) * v_load(factors + j));
        }
    }
}

/* Writes the logarithms of the sums of the rows. */
static void write_log_sums(const attention_block *b, const float *largest, const float *sums) {
    float *to = b->job->log_sums + row_number(b);
    for (int64_t row = 0; row < b->rows; row += LEATI_LANES) {
        const vf top = v_load(largest + row);
        const vf log_sum = top * ATTENTION_LN2 + v_log(v_load(sums + row));
        v_store_part(to + row,
                     v_select((vi)(top <= v_all(ATTENTION_MASKED)), v_all(LEATI_ATTENTION_MASKED), log_sum),
                     b->rows - row);
    }
}

static void attend_block(const attention_block *b) {
    const leati_attention_job *job = b->job;
    const leati_attention_layout *l = job->layout;
    const int64_t padded = leati_round_up(l->block_rows, LEATI_LANES);
    float *lanes = attention_scratch(job, l->lanes_of_rows), *largest = attention_scratch(job, l->of_rows),
          *sums = largest + padded, *inverse = sums + padded;
    write_scores(b, lanes);
    largest_of_rows(lanes, padded, largest);
    exponentiate(b, largest, lanes);
    sums_of_rows(lanes, padded, sums);
    if (job->log_sums) write_log_sums(b, largest, sums);
    for (int64_t row = 0; row < padded; row += LEATI_LANES) v_store(inverse + row, 1.0f / v_load(sums + row));
    if (job->rate > 0) drop_weights(b);
    const attention_product p = {.a = attention_scratch(job, l->scores),
                                 .a_row = l->score_row,
                                 .a_depth = 1,
                                 .b = attention_scratch(job, l->values),
                                 .b_panel = job->sizes.keys * LEATI_LANES,
                                 .c = job->y + query_place(b, job->sizes.width),
                                 .c_row = job->sizes.heads * job->sizes.width,
                                 .columns = job->sizes.width,
                                 .factor = inverse,
                                 .factor_step = 1};
    multiply_along_keys(b, &p);
}

static void attention_forward(const leati_attention_job *job) {
    const leati_attention_sizes *s = &job->sizes;
    pack_keys(job);
    pack_rows(job->v + key_place(job, s->width), s->key_heads * s->width, s->keys, s->width,
              attention_scratch(job, job->layout->values));
    clear_lanes(job);
    for (int64_t i = job->part; i < count_blocks(job); i += job->parts) {
        attention_block b = block_of(job, i);
        attend_block(&b);
    }
}

#endif
