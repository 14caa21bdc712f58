/* SPDX-License-Identifier: Apache-2.0 */
/* BATCH_NORM, BATCH_NORM_APPLY and BATCH_NORM_BWD over all axes but the last.  First each thread sums over its part
 * of the rows; then the threads write dst in pieces.  Room: backends/native. */
#include <math.h>
#include <stdio.h>

#include "backends/native/simd/isa.h"
#include "backends/native/norm/jobs.h"
#include "backends/native/ops.h"
#include "backends/native/elementwise/ranges.h"
#include "backends/native/share.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/exchange.h"
#include "tensor/bfloat16.h"

#define PIECE_BYTES ((int64_t)256 * 1024) /* bytes of src per piece that is written */

typedef struct norm_state {
    int64_t rows, channels;
    float epsilon;
    leati_eltwise f;
    bool has_f, bf16, synchronized;
    int dst, addend; /* indices of arguments; addend is -1 where there is none */
    int threads;     /* also the number of parts that are summed separately */
    int64_t pieces;  /* pieces that are written, a multiple of threads */
    const leati_native_isa *isa;
} norm_state;

/* One run: its job, and its scratch. */
typedef struct norm_run {
    const norm_state *s;
    leati_batch_norm_job job;
    double *sums;                      /* (threads, 2, channels) */
    double *whole;                     /* (1 + 2 channels): the number of rows, and two sums per channel */
    float *partial;                    /* (threads, 2, channels) */
    float *scale, *shift, *src_factor; /* (channels) */
    void (*sum)(const leati_batch_norm_job *job, int64_t first, int64_t last);
    void (*write)(const leati_batch_norm_job *job, int64_t first, int64_t last);
} norm_run;

static size_t scratch_bytes(const norm_state *s) {
    return sizeof(double) +
           (size_t)s->channels * (((size_t)s->threads + 1) * 2 * sizeof(double) +
                                  (size_t)s->threads * 2 * sizeof(float) + 3 * sizeof(float));
}

static norm_run run_of(const norm_state *s, const leati_run *run) {
    norm_run r = {.s = s, .sums = run->scratch};
    r.whole = r.sums + s->threads * 2 * s->channels;
    r.partial = (float *)(void *)(r.whole + 1 + 2 * s->channels);
    r.scale = r.partial + s->threads * 2 * s->channels;
    r.shift = r.scale + s->channels;
    r.src_factor = r.shift + s->channels;
    r.job = (leati_batch_norm_job){.channels = s->channels,
                                   .scale = r.scale,
                                   .shift = r.shift,
                                   .src_factor = r.src_factor,
                                   .bf16 = s->bf16};
    if (s->has_f) r.job.f = &s->f;
    return r;
}

static int64_t first_of(const norm_state *s, int64_t part, int64_t parts) {
    return s->rows * part / parts;
}

static void sum_part(void *of, int64_t part, int member) {
    const norm_run *r = of;
    leati_batch_norm_job job = r->job;
    (void)member;
    job.sums = r->sums + part * 2 * r->s->channels;
    job.partial = r->partial + part * 2 * r->s->channels;
    r->sum(&job, first_of(r->s, part, r->s->threads), first_of(r->s, part + 1, r->s->threads));
}

/* Writes one piece.  The pieces of each summed part are taken from its end, because the caches still hold the rows
 * that were summed last. */
static void write_piece(void *of, int64_t task, int member) {
    const norm_run *r = of;
    int64_t threads = r->s->threads, pieces = r->s->pieces;
    int64_t piece = (task % threads + 1) * (pieces / threads) - 1 - task / threads;
    (void)member;
    r->write(&r->job, first_of(r->s, piece, pieces), first_of(r->s, piece + 1, pieces));
}

static void share_sums(norm_run *r, const leati_run *run) {
    leati_thread_pool_share(run->pool, r->s->threads, r->s->threads, sum_part, r);
}

static void share_writing(norm_run *r, const leati_run *run) {
    leati_thread_pool_share(run->pool, r->s->threads, r->s->pieces, write_piece, r);
}

/* Combines the moments of the parts into the moments of all rows. */
static void join_parts(const norm_run *r) {
    const norm_state *s = r->s;
    r->whole[0] = (double)s->rows;
    for (int64_t c = 0; c < s->channels; c++) {
        double sum = 0, squares = 0;
        for (int t = 0; t < s->threads; t++) {
            double rows = (double)(first_of(s, t + 1, s->threads) - first_of(s, t, s->threads));
            sum += r->sums[2 * t * s->channels + c] * rows;
        }
        sum /= (double)s->rows;
        for (int t = 0; t < s->threads; t++) {
            double rows = (double)(first_of(s, t + 1, s->threads) - first_of(s, t, s->threads));
            const double *part = r->sums + 2 * t * s->channels + c;
            squares += part[s->channels] + (*part - sum) * (*part - sum) * rows;
        }
        r->whole[1 + c] = sum;
        r->whole[1 + s->channels + c] = squares;
    }
}

/* Computes the statistics of the batch; those of all ranks, if the node is synchronized. */
static leat_status set_moments(const norm_run *r, const leati_run *run, float *mean, float *variance,
                               leat_error *err) {
    const norm_state *s = r->s;
    join_parts(r);
    if (s->synchronized && run->exchange)
        LEATI_TRY(leati_exchange_moments(run->exchange, r->whole, s->channels, err));
    for (int64_t c = 0; c < s->channels; c++) {
        mean[c] = (float)r->whole[1 + c];
        variance[c] = (float)(r->whole[1 + s->channels + c] / r->whole[0]);
    }
    return LEAT_OK;
}

static void write_normalised(norm_run *r, void *const *args, const float *mean, const float *variance,
                             const leati_run *run) {
    const norm_state *s = r->s;
    const float *gamma = args[1], *beta = args[2];
    for (int64_t c = 0; c < s->channels; c++) {
        r->scale[c] = (gamma ? gamma[c] : 1.0f) / sqrtf(variance[c] + s->epsilon);
        r->shift[c] = beta ? beta[c] : 0.0f;
    }
    r->job.src = args[0];
    r->job.mean = mean;
    r->job.addend = s->addend < 0 ? NULL : args[s->addend];
    r->job.dst = args[s->dst];
    r->write = s->isa->batch_norm_write;
    share_writing(r, run);
}

static leat_status run_forward(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    const norm_state *s = kernel->state;
    norm_run r = run_of(s, run);
    float *mean = args[s->dst + 1], *variance = args[s->dst + 2];
    r.job.src = args[0];
    r.sum = s->isa->batch_norm_moments;
    share_sums(&r, run);
    LEATI_TRY(set_moments(&r, run, mean, variance, err));
    write_normalised(&r, args, mean, variance, run);
    return LEAT_OK;
}

static leat_status run_apply(const leati_kernel *kernel, void *const *args, const leati_run *run,
                             leat_error *err) {
    norm_run r = run_of(kernel->state, run);
    (void)err;
    write_normalised(&r, args, args[3], args[4], run);
    return LEAT_OK;
}

/* Sets the gradients with respect to gamma and beta (either may be NULL), and r->whole; backends/ref/batch_norm.c has
 * the formula. */
static void join_sums(const norm_run *r, const float *variance, float *diff_gamma, float *diff_beta) {
    const norm_state *s = r->s;
    r->whole[0] = (double)s->rows;
    for (int64_t c = 0; c < s->channels; c++) {
        double inverse = 1 / sqrt((double)variance[c] + (double)s->epsilon), sum = 0, product = 0;
        for (int t = 0; t < s->threads; t++) {
            sum += r->sums[2 * t * s->channels + c];
            product += r->sums[(2 * t + 1) * s->channels + c];
        }
        if (diff_beta) diff_beta[c] = (float)sum;
        if (diff_gamma) diff_gamma[c] = (float)(product * inverse);
        r->whole[1 + c] = sum;
        r->whole[1 + s->channels + c] = product;
    }
}

/* Sets the per-channel factors of the gradient with respect to src; they follow from the sums of all ranks, if the node
 * is synchronized. */
static leat_status set_factors(const norm_run *r, const leati_run *run, const float *gamma,
                               const float *variance, leat_error *err) {
    const norm_state *s = r->s;
    if (s->synchronized && run->exchange)
        LEATI_TRY(leati_exchange_sum(run->exchange, r->whole, 1 + 2 * s->channels, err));
    for (int64_t c = 0; c < s->channels; c++) {
        const double inverse = 1 / sqrt((double)variance[c] + (double)s->epsilon), n = r->whole[0];
        const double scale = (gamma ? (double)gamma[c] : 1) * inverse;
        const double sum = r->whole[1 + c], product = r->whole[1 + s->channels + c];
        r->scale[c] = (float)scale;
        r->shift[c] = (float)(sum / n);
        r->src_factor[c] = (float)(scale * inverse * inverse * product / n);
    }
    return LEAT_OK;
}

static leat_status run_backward(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                leat_error *err) {
    const norm_state *s = kernel->state;
    void *const *out = args + s->dst;
    norm_run r = run_of(s, run);
    r.job.src = args[0];
    r.job.mean = args[2];
    r.job.diff_dst = args[4];
    r.job.rectified = s->dst > 5 ? args[5] : NULL;
    r.job.dst = out[0];
    r.job.diff = out[3];
    r.sum = s->isa->batch_norm_sums;
    r.write = s->isa->batch_norm_diff;
    share_sums(&r, run);
    join_sums(&r, args[3], out[1], out[2]);
    LEATI_TRY(set_factors(&r, run, args[1], args[3], err));
    if (r.job.diff) {
        r.job.diff_dst = r.job.diff;
        r.job.rectified = NULL;
    }
    if (r.job.dst) share_writing(&r, run);
    return LEAT_OK;
}

static bool is_bf16(const leati_desc *desc) {
    return desc->rank >= 0 && desc->dtype == LEATI_BF16;
}

/* True if the task's types are supported: the images (src, dst and the like) are all bf16 and the other tensors
 * f32, and nothing but max(x, 0) is fused. */
static bool fits(const leati_task *task) {
    bool backward = task->op == LEATI_OP_BATCH_NORM_BWD, adds = task->attrs->post.kinds & LEATI_POST_ADD;
    int addend = adds ? leati_op_inputs(task) + LEATI_POST_ADDEND : 0;
    for (int i = 0; i < task->input_count; i++) {
        bool image = i == 0 || (backward ? i == 4 || i == 5 : i == addend);
        if (task->inputs[i].rank >= 0 && is_bf16(&task->inputs[i]) != image) return false;
    }
    for (int i = 0; i < task->output_count; i++) {
        bool image = i == 0 || (backward && i == 3);
        if (!(task->unused >> i & 1u) && is_bf16(&task->outputs[i]) != image) return false;
    }
    const leati_eltwise *f = &task->attrs->post.function;
    bool plain = f->function == LEATI_FN_RELU && f->a == 0 && f->c == 0 && isinf(f->b);
    return plain || !(task->attrs->post.kinds & LEATI_POST_FUNCTION);
}

static bool any_bf16(const leati_task *task) {
    bool any = false;
    for (int i = 0; i < task->input_count; i++) any = any || is_bf16(&task->inputs[i]);
    for (int i = 0; i < task->output_count; i++) any = any || is_bf16(&task->outputs[i]);
    return any;
}

static leat_status prepare(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    const leati_desc *src = &task->inputs[0];
    int64_t count = leati_desc_count(src), bytes = (int64_t)leati_desc_bytes(src);
    leati_range_state work = {0};
    bool bf16 = any_bf16(task);
    bool sums = task->op == LEATI_OP_BATCH_NORM_BWD && task->input_count > 7 && task->inputs[7].rank >= 0;
    if (count == 0 || sums || (bf16 && !fits(task))) {
        snprintf(why, LEATI_REASON_BYTES,
                 count == 0 ? "an empty tensor"
                 : sums     ? "a sum of two gradients"
                            : "an unsupported mix of bfloat16 and float32, or fused function");
        kernel->run = NULL;
        return LEAT_OK;
    }
    norm_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "batch normalisation");
    leati_range_share(&work, task, leati_task_bytes(task));
    s->channels = src->shape[src->rank - 1];
    s->rows = count / s->channels;
    s->epsilon = task->attrs->batch_norm.epsilon;
    s->synchronized = task->attrs->batch_norm.synchronized;
    s->f = task->attrs->post.function;
    s->has_f = task->attrs->post.kinds & LEATI_POST_FUNCTION;
    s->dst = task->input_count;
    s->addend = task->attrs->post.kinds & LEATI_POST_ADD ? leati_op_inputs(task) + LEATI_POST_ADDEND : -1;
    s->threads = s->rows < work.threads ? (int)s->rows : work.threads;
    s->pieces = s->threads * (1 + bytes / s->threads / PIECE_BYTES);
    s->isa = leati_native_isa_of();
    s->bf16 = bf16;
    kernel->scratch_bytes = scratch_bytes(s);
    kernel->state = s;
    kernel->destroy = leati_free;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native %s", s->isa->name);
    return LEAT_OK;
}

leat_status leati_native_batch_norm(const leati_task *task, leati_kernel *kernel, char *why,
                                    leat_error *err) {
    kernel->run = run_forward;
    return prepare(task, kernel, why, err);
}

leat_status leati_native_batch_norm_apply(const leati_task *task, leati_kernel *kernel, char *why,
                                          leat_error *err) {
    kernel->run = run_apply;
    return prepare(task, kernel, why, err);
}

leat_status leati_native_batch_norm_bwd(const leati_task *task, leati_kernel *kernel, char *why,
                                        leat_error *err) {
    kernel->run = run_backward;
    return prepare(task, kernel, why, err);
}
