/* SPDX-License-Identifier: Apache-2.0 */
/* ATTENTION and its gradient in plain C, sums in double.  Room: backends/ref.
 *
 * For each head and each query step t, with the sums over the key steps s and m_ts the factor of dropout:
 *   a_ts = scale q_t . k_s, or -1e9 where the mask is 0   log_sum_t = log sum e^a_ts   p_ts = e^(a_ts - log_sum_t)
 *   y_t = sum p_ts m_ts v_s
 * Backwards, with d_t = diff_y_t . y_t, which is sum p_ts (diff_y_t . v_s) m_ts:
 *   diff_a_ts = p_ts ((diff_y_t . v_s) m_ts - d_t), or 0 where the mask is 0
 *   diff_v_s = sum over t of p_ts m_ts diff_y_t
 *   diff_q_t = scale sum diff_a_ts k_s   diff_k_s = scale sum over t of diff_a_ts q_t */
#include "engine/op_semantics/attention.h"

#include <math.h>
#include <string.h>

#include "backends/ref/ref.h"
#include "base/error.h"
#include "engine/random.h"

/* A task with its arguments, and one row: a query step of a head of a sample. */
typedef struct rows {
    leati_attrs attrs;
    leati_attention_sizes s;
    const leati_run *run;
    const float *q, *k, *v, *mask;
    int64_t sample, head, query;
} rows;

static rows rows_of(const leati_kernel *kernel, void *const *args, const leati_run *run) {
    const leati_ref *ref = leati_ref_of(kernel);
    return (rows){.attrs = ref->attrs,
                  .s = leati_attention_sizes_of(leati_ref_in(ref, 0)),
                  .run = run,
                  .q = args[LEATI_ATTENTION_Q],
                  .k = args[LEATI_ATTENTION_K],
                  .v = args[LEATI_ATTENTION_V],
                  .mask = args[LEATI_ATTENTION_MASK]};
}

/* Return the place of the row in (N, T, H), in (N, H, T), and of a key step of the row's key head in (N, S, G). */
static int64_t place(const rows *r) {
    return (r->sample * r->s.queries + r->query) * r->s.heads + r->head;
}

static int64_t place_by_head(const rows *r) {
    return (r->sample * r->s.heads + r->head) * r->s.queries + r->query;
}

static int64_t key_place(const rows *r, int64_t key) {
    return (r->sample * r->s.keys + key) * r->s.key_heads + r->head / (r->s.heads / r->s.key_heads);
}

static double inner(const float *a, const float *b, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += (double)a[i] * (double)b[i];
    return sum;
}

static bool counts(const rows *r, int64_t key) {
    return !r->mask || r->mask[r->sample * r->s.mask_sample + r->query * r->s.mask_query + key] != 0;
}

static float score(const rows *r, int64_t key) {
    if (!counts(r, key)) return LEATI_ATTENTION_MASKED;
    const float *q = r->q + place(r) * r->s.depth, *k = r->k + key_place(r, key) * r->s.depth;
    return (float)((double)r->attrs.attention.scale * inner(q, k, r->s.depth));
}

/* Returns the factor of dropout. */
static double kept(const rows *r, int64_t key) {
    const float rate = r->attrs.attention.rate;
    const uint64_t element = (uint64_t)(place_by_head(r) * r->s.keys + key);
    uint32_t words[4];
    if (!(rate > 0)) return 1;
    leati_random_words(r->run, r->attrs.attention.stream, element / 4, words);
    return words[element % 4] >= leati_dropout_threshold(rate) ? (double)leati_dropout_scale(rate) : 0;
}

/* Writes e^(score - largest score) of the row into weights (S).  Returns the logarithm of the sum of e^score, and the
 * sum of the weights. */
static float exponentials(const rows *r, double *weights, double *sum) {
    double largest = -INFINITY;
    for (int64_t s = 0; s < r->s.keys; ++s) {
        weights[s] = (double)score(r, s);
        if (weights[s] > largest || isnan(weights[s])) largest = weights[s];
    }
    *sum = 0;
    for (int64_t s = 0; s < r->s.keys; ++s) *sum += weights[s] = exp(weights[s] - largest);
    return (float)(largest + log(*sum));
}

static void attend(const rows *r, float *y, float *log_sums, double *weights) {
    double total;
    const float log_sum = exponentials(r, weights, &total);
    if (log_sums) log_sums[place_by_head(r)] = log_sum;
    for (int64_t s = 0; s < r->s.keys; ++s) weights[s] *= kept(r, s) / total;
    for (int64_t i = 0; i < r->s.width; ++i) {
        double sum = 0;
        for (int64_t s = 0; s < r->s.keys; ++s)
            sum += weights[s] * (double)r->v[key_place(r, s) * r->s.width + i];
        y[place(r) * r->s.width + i] = (float)sum;
    }
}

static leat_status run_attention(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                 leat_error *err) {
    rows r = rows_of(kernel, args, run);
    float *y = args[LEATI_ATTENTION_INPUTS + LEATI_ATTENTION_Y];
    float *log_sums =
        r.attrs.attention.training ? args[LEATI_ATTENTION_INPUTS + LEATI_ATTENTION_LOG_SUMS] : NULL;
    (void)err;
    for (r.sample = 0; r.sample < r.s.batch; ++r.sample)
        for (r.head = 0; r.head < r.s.heads; ++r.head)
            for (r.query = 0; r.query < r.s.queries; ++r.query) attend(&r, y, log_sums, run->scratch);
    return LEAT_OK;
}

leat_status leati_ref_attention(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    kernel->scratch_bytes = (size_t)task->inputs[LEATI_ATTENTION_K].shape[1] * sizeof(double);
    return leati_ref_accept(task, kernel, run_attention, err);
}

/* ---- The gradient ---- */

/* The sums of a key head of a sample: diff_k (S, D) and diff_v (S, V); and diff_q (D) of a row. */
typedef struct sums {
    double *k, *v, *q;
} sums;

static void add_row(const rows *r, void *const *args, sums to) {
    const float *y = (const float *)args[LEATI_ATTENTION_BWD_Y] + place(r) * r->s.width;
    const float *diff_y = (const float *)args[LEATI_ATTENTION_BWD_DIFF_Y] + place(r) * r->s.width;
    const float log_sum = ((const float *)args[LEATI_ATTENTION_BWD_LOG_SUMS])[place_by_head(r)];
    const float *q = r->q + place(r) * r->s.depth;
    const double d = inner(diff_y, y, r->s.width), scale = (double)r->attrs.attention.scale;
    for (int64_t s = 0; s < r->s.keys; ++s) {
        const float *k = r->k + key_place(r, s) * r->s.depth, *v = r->v + key_place(r, s) * r->s.width;
        const double factor = kept(r, s);
        const double p = log_sum <= LEATI_ATTENTION_MASKED ? 1 / (double)r->s.keys
                                                           : exp((double)score(r, s) - (double)log_sum);
        for (int64_t i = 0; i < r->s.width; ++i) to.v[s * r->s.width + i] += p * factor * (double)diff_y[i];
        if (!counts(r, s)) continue;
        const double diff = scale * p * (inner(diff_y, v, r->s.width) * factor - d);
        for (int64_t i = 0; i < r->s.depth; ++i) {
            to.q[i] += diff * (double)k[i];
            to.k[s * r->s.depth + i] += diff * (double)q[i];
        }
    }
}

static void store(float *to, const double *from, int64_t count) {
    for (int64_t i = 0; to && i < count; ++i) to[i] = (float)from[i];
}

/* Adds up the rows of the heads that read one key head. */
static void backward_of_head(rows *r, void *const *args, sums to) {
    float *diff_q = args[LEATI_ATTENTION_BWD_INPUTS], *diff_k = args[LEATI_ATTENTION_BWD_INPUTS + 1],
          *diff_v = args[LEATI_ATTENTION_BWD_INPUTS + 2];
    const int64_t first = r->head, share = r->s.heads / r->s.key_heads, depth = r->s.depth,
                  width = r->s.width;
    memset(to.k, 0, (size_t)(r->s.keys * (depth + width)) * sizeof *to.k);
    for (r->head = first; r->head < first + share; ++r->head)
        for (r->query = 0; r->query < r->s.queries; ++r->query) {
            memset(to.q, 0, (size_t)depth * sizeof *to.q);
            add_row(r, args, to);
            store(diff_q ? diff_q + place(r) * depth : NULL, to.q, depth);
        }
    r->head = first;
    for (int64_t s = 0; s < r->s.keys; ++s) {
        store(diff_k ? diff_k + key_place(r, s) * depth : NULL, to.k + s * depth, depth);
        store(diff_v ? diff_v + key_place(r, s) * width : NULL, to.v + s * width, width);
    }
}

static leat_status run_bwd(const leati_kernel *kernel, void *const *args, const leati_run *run,
                           leat_error *err) {
    rows r = rows_of(kernel, args, run);
    sums to = {.k = run->scratch};
    to.v = to.k + r.s.keys * r.s.depth;
    to.q = to.v + r.s.keys * r.s.width;
    (void)err;
    for (r.sample = 0; r.sample < r.s.batch; ++r.sample)
        for (r.head = 0; r.head < r.s.heads; r.head += r.s.heads / r.s.key_heads)
            backward_of_head(&r, args, to);
    return LEAT_OK;
}

leat_status leati_ref_attention_bwd(const leati_task *task, leati_kernel *kernel, char *why,
                                    leat_error *err) {
    const leati_attention_sizes s = leati_attention_sizes_of(task->inputs);
    (void)why;
    kernel->scratch_bytes = (size_t)(s.keys * (s.depth + s.width) + s.depth) * sizeof(double);
    return leati_ref_accept(task, kernel, run_bwd, err);
}
