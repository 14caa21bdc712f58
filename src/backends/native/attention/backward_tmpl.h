/* SPDX-License-Identifier: Apache-2.0 */
/* ATTENTION_BWD, for the code that is compiled once per instruction set.  Each block of queries computes its weights
 * again, and adds to diff_k and diff_v; the formulas are in backends/ref/attention.c. */
#ifndef LEATI_BACKENDS_NATIVE_ATTENTION_BACKWARD_TMPL_H
#define LEATI_BACKENDS_NATIVE_ATTENTION_BACKWARD_TMPL_H

#include "backends/native/attention/block_tmpl.h"

/* Computes diff_y . y of each row. */
static void inner_of_rows(const attention_block *b, float *lanes, float *to) {
    const leati_attention_job *job = b->job;
    const int64_t width = job->sizes.width, step = job->sizes.heads * width, at = query_place(b, width);
    const float *y = job->saved_y + at, *diff_y = job->diff_y + at;
    for (int64_t row = 0; row < b->rows; row++, y += step, diff_y += step) {
        vf sum = {0};
        for (int64_t i = 0; i < width; i += LEATI_LANES)
            sum += v_load_part(y + i, width - i) * v_load_part(diff_y + i, width - i);
        v_store(lanes + row * LEATI_LANES, sum);
    }
    sums_of_rows(lanes, leati_round_up(b->rows, LEATI_LANES), to);
}

/* Computes diff_y v', the gradient with respect to the weights. */
static void write_diff_weights(const attention_block *b) {
    static const float one = 1;
    const leati_attention_job *job = b->job;
    const leati_attention_layout *l = job->layout;
    const attention_product p = {.a = job->diff_y + query_place(b, job->sizes.width),
                                 .a_row = job->sizes.heads * job->sizes.width,
                                 .a_depth = 1,
                                 .depth = job->sizes.width,
                                 .b = attention_scratch(job, l->values),
                                 .b_panel = l->width * LEATI_LANES,
                                 .c = attention_scratch(job, l->diff_weights),
                                 .c_row = l->score_row,
                                 .columns = l->keys,
                                 .factor = &one};
    multiply_by_keys(b, &p, attend_sums);
}

/* Replaces the scores x of a row by its weights, and diff, the gradient with respect to them, by that with respect to
 * the scores. */
static void differentiate_row(const attention_block *b, const attention_rows *t, int64_t row, float *x,
                              float *diff, float inner) {
    const leati_attention_job *job = b->job;
    const int64_t first = t->first * LEATI_LANES, last = t->last * LEATI_LANES;
    const vf log_sum = v_all(job->saved_log_sums[row_number(b) + row] * ATTENTION_LOG2E), d = v_all(inner);
    if (!(job->rate > 0)) {
        for (int64_t j = first; j < last; j += LEATI_LANES) {
            vf weight = v_exp2_below(v_load(x + j) - log_sum);
            v_store(x + j, weight);
            v_store(diff + j, weight * (v_load(diff + j) - d));
        }
        return;
    }
    const float *factors = draw_factors(b, row, first, last - first) - first;
    for (int64_t j = first; j < last; j += LEATI_LANES) {
        vf weight = v_exp2_below(v_load(x + j) - log_sum), factor = v_load(factors + j);
        v_store(x + j, weight * factor);
        v_store(diff + j, weight * (v_load(diff + j) * factor - d));
    }
}

/* Like differentiate_row() where no key counts: the weights are equal, and the scores have no gradient. */
static void differentiate_uniform_row(const attention_block *b, int64_t row, float *x, float *diff) {
    const int64_t keys = b->job->sizes.keys;
    const float *factors = b->job->rate > 0 ? draw_factors(b, row, 0, keys) : NULL;
    const vf weight = v_all(1.0f / (float)keys);
    for (int64_t j = 0; j < keys; j += LEATI_LANES) {
        v_store(x + j, factors ? weight * v_load(factors + j) : weight);
        v_store(diff + j, v_all(0));
    }
}

static void differentiate_block(const attention_block *b, const float *inner) {
    const leati_attention_job *job = b->job;
    const leati_attention_layout *l = job->layout;
    for (int i = 0; i < b->tiles; i++) {
        const attention_rows *t = &b->tile[i];
        for (int64_t row = t->row; row < t->row + t->rows; row++) {
            float *x = attention_scratch(job, l->scores) + row * l->score_row,
                  *diff = attention_scratch(job, l->diff_weights) + row * l->score_row;
            if (job->saved_log_sums[row_number(b) + row] <= LEATI_ATTENTION_MASKED)
                differentiate_uniform_row(b, row, x, diff);
            else
                differentiate_row(b, t, row, x, diff, inner[row]);
            for (int64_t j = b->key_first; j < b->key_last; j++) {
                if (j >= t->first && j < t->last) continue;
                v_store(x + j * LEATI_LANES, v_all(0));
                v_store(diff + j * LEATI_LANES, v_all(0));
            }
        }
    }
}

/* Adds factor a' b to c (N, S, G, size): a (rows, keys) are numbers of the block, b (N, T, H, size) has its rows. */
static void add_to_keys(const attention_block *b, const float *a, const float *rows, int64_t size,
                        float factor, float *panels, float *c) {
    const leati_attention_job *job = b->job;
    const leati_attention_sizes *s = &job->sizes;
    const int64_t first = b->key_first * LEATI_LANES, last = b->key_last * LEATI_LANES;
    if (!c) return;
    pack_rows(rows + query_place(b, size), s->heads * size, b->rows, size, panels);
    const attention_product p = {.a = a + first,
                                 .a_row = 1,
                                 .a_depth = job->layout->score_row,
                                 .depth = b->rows,
                                 .b = panels,
                                 .b_panel = b->rows * LEATI_LANES,
                                 .c = c + key_place(job, size) + first * s->key_heads * size,
                                 .c_row = s->key_heads * size,
                                 .columns = size,
                                 .factor = &factor,
                                 .add = true};
    attend_product(&p, (last < s->keys ? last : s->keys) - first);
}

static void differentiate_queries(const attention_block *b) {
    const leati_attention_job *job = b->job;
    const leati_attention_layout *l = job->layout;
    const attention_product p = {.a = attention_scratch(job, l->diff_weights),
                                 .a_row = l->score_row,
                                 .a_depth = 1,
                                 .b = attention_scratch(job, l->key_panels),
                                 .b_panel = job->sizes.keys * LEATI_LANES,
                                 .c = job->diff_q + query_place(b, job->sizes.depth),
                                 .c_row = job->sizes.heads * job->sizes.depth,
                                 .columns = job->sizes.depth,
                                 .factor = &job->scale};
    if (job->diff_q) multiply_along_keys(b, &p);
}

static void differentiate_block_of_queries(const attention_block *b) {
    const leati_attention_job *job = b->job;
    const leati_attention_layout *l = job->layout;
    float *inner = attention_scratch(job, l->of_rows), *scores = attention_scratch(job, l->scores),
          *diff_weights = attention_scratch(job, l->diff_weights);
    write_scores(b, NULL);
    write_diff_weights(b);
    inner_of_rows(b, attention_scratch(job, l->lanes_of_rows), inner);
    differentiate_block(b, inner);
    add_to_keys(b, scores, job->diff_y, job->sizes.width, 1, attention_scratch(job, l->diff_y_panels),
                job->diff_v);
    add_to_keys(b, diff_weights, job->q, job->sizes.depth, job->scale,
                attention_scratch(job, l->query_panels), job->diff_k);
    differentiate_queries(b);
}

/* Writes zeros to the job's part of (N, S, G, size). */
static void clear_keys(const leati_attention_job *job, float *to, int64_t size) {
    const leati_attention_sizes *s = &job->sizes;
    for (int64_t i = 0; to && i < s->keys; i++)
        memset(to + key_place(job, size) + i * s->key_heads * size, 0, (size_t)size * sizeof *to);
}

static void attention_backward(const leati_attention_job *job) {
    const leati_attention_sizes *s = &job->sizes;
    const leati_attention_layout *l = job->layout;
    const float *k = job->k + key_place(job, s->depth), *v = job->v + key_place(job, s->width);
    pack_keys(job);
    pack_across(v, s->key_heads * s->width, s->keys, s->width, 1, attention_scratch(job, l->values));
    pack_rows(k, s->key_heads * s->depth, s->keys, s->depth, attention_scratch(job, l->key_panels));
    clear_keys(job, job->diff_k, s->depth);
    clear_keys(job, job->diff_v, s->width);
    clear_lanes(job);
    for (int64_t i = 0; i < count_blocks(job); i++) {
        attention_block b = block_of(job, i);
        differentiate_block_of_queries(&b);
    }
}

#endif
