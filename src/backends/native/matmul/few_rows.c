/* SPDX-License-Identifier: Apache-2.0 */
/* MATMUL of one row or a few rows: the matrix is read as it is, because packing it would cost as much as the
 * product.  dense.c serves the other sizes.  Room: backends/native. */
#include <stdio.h>

#include "backends/native/matmul/jobs.h"
#include "backends/native/simd/isa.h"
#include "backends/native/ops.h"
#include "backends/native/share.h"
#include "base/error.h"
#include "base/memory.h"

/* Bytes of the matrix at most for one thread.  Several threads read parts of a matrix of LEATI_SHARED_WEIGHTS
 * elements (dense.c). */
#define MAX_BYTES 1048576

typedef struct matvec_state {
    leati_matvec_job job;
    leati_eltwise f;
    void (*matvec)(const leati_matvec_job *job);
} matvec_state;

static leat_status run_matvec(const leati_kernel *kernel, void *const *args, const leati_run *run,
                              leat_error *err) {
    const matvec_state *s = kernel->state;
    leati_matvec_job job = s->job;
    (void)run, (void)err;
    job.a = args[0];
    job.b = args[1];
    job.bias = args[2];
    job.dst = args[3];
    s->matvec(&job);
    return LEAT_OK;
}

static leat_status prepare_matvec(const leati_task *task, leati_kernel *kernel, leat_error *err) {
    const leati_native_isa *isa = leati_native_isa_of();
    matvec_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a matrix product");
    s->matvec = isa->matvec;
    s->job.k = leati_desc_count(&task->inputs[0]);
    s->job.n = task->outputs[0].shape[1];
    s->job.transposed = task->attrs->matmul.transpose_b;
    if (task->attrs->post.kinds) {
        s->f = task->attrs->post.function;
        s->job.f = &s->f;
    }
    kernel->state = s;
    kernel->destroy = leati_free;
    kernel->run = run_matvec;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native %s", isa->name);
    return LEAT_OK;
}

typedef struct rows_state {
    leati_rows_job job;
    int addend, dst; /* indices of arguments; addend is 0 where there is none */
    leati_eltwise f;
    const leati_native_isa *isa;
    int threads;
} rows_state;

static inline leati_rows_job job_of(const rows_state *s, void *const *args) {
    leati_rows_job job = s->job;
    job.a = args[0];
    job.b = args[1];
    job.bias = args[2];
    job.addend = s->addend ? args[s->addend] : NULL;
    job.c = args[s->dst];
    return job;
}

static leat_status run_rows(const leati_kernel *kernel, void *const *args, const leati_run *run,
                            leat_error *err) {
    const rows_state *s = kernel->state;
    leati_rows_job job = job_of(s, args);
    (void)run, (void)err;
    s->isa->few_rows(&job);
    return LEAT_OK;
}

typedef struct streamed_run {
    const rows_state *s;
    leati_rows_job job;
} streamed_run;

static void run_columns(void *of, int64_t task, int member) {
    const streamed_run *r = of;
    const int64_t unit = r->s->isa->lanes, units = leati_ceil_div(r->job.n, unit), tasks = r->s->threads;
    const int64_t last = units * (task + 1) / tasks * unit;
    (void)member;
    r->s->isa->streamed_rows(&r->job, units * task / tasks * unit, last < r->job.n ? last : r->job.n);
}

static leat_status run_streamed(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                leat_error *err) {
    const rows_state *s = kernel->state;
    streamed_run r = {.s = s, .job = job_of(s, args)};
    (void)err;
    leati_thread_pool_share(run->pool, s->threads, s->threads, run_columns, &r);
    return LEAT_OK;
}

static leat_status prepare_rows(const leati_task *task, bool streamed, leati_kernel *kernel,
                                leat_error *err) {
    const leati_native_isa *isa = leati_native_isa_of();
    rows_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a matrix product");
    s->isa = isa;
    s->threads = task->threads;
    s->job.m = task->outputs[0].shape[0];
    s->job.n = task->outputs[0].shape[1];
    s->job.k = task->inputs[0].shape[1];
    s->job.transposed = task->attrs->matmul.transpose_b;
    s->dst = task->input_count;
    if (task->attrs->post.kinds & LEATI_POST_ADD)
        s->addend = task->input_count - LEATI_POST_INPUTS + LEATI_POST_ADDEND;
    if (task->attrs->post.kinds & LEATI_POST_FUNCTION) {
        s->f = task->attrs->post.function;
        s->job.f = &s->f;
    }
    kernel->state = s;
    kernel->destroy = leati_free;
    kernel->run = streamed ? run_streamed : run_rows;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native %s", isa->name);
    return LEAT_OK;
}

static bool is_small(const leati_task *task) {
    const size_t most = task->threads > 1 ? LEATI_SHARED_WEIGHTS * sizeof(float) : MAX_BYTES;
    return leati_desc_bytes(&task->inputs[1]) <= most || task->measured;
}

static bool is_few_rows(const leati_task *task) {
    const leati_desc *dst = &task->outputs[0];
    return !task->attrs->matmul.transpose_a && !task->attrs->matmul.transpose_b &&
           dst->shape[0] <= LEATI_FEW_ROWS && dst->shape[1] % leati_native_isa_of()->panel == 0 &&
           is_small(task);
}

/* True for a large matrix that does not stay packed until the next run. */
static bool is_streamed(const leati_task *task) {
    if (task->attrs->matmul.transpose_a || task->outputs[0].shape[0] > LEATI_FEW_ROWS || is_small(task))
        return false;
    return !task->weights_stay || leati_desc_bytes(&task->inputs[1]) > LEATI_PACKED_BYTES;
}

leat_status leati_native_matmul(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    if (task->attrs->post.kinds & LEATI_POST_NORM) {
        snprintf(why, LEATI_REASON_BYTES, "a normalization, which is folded into packed weights");
        return LEAT_OK;
    }
    LEATI_TRY(leati_native_narrow_dense(task, kernel, err));
    if (kernel->run) return LEAT_OK;
    if (task->outputs[0].rank > 2) {
        snprintf(why, LEATI_REASON_BYTES, "a batch of matrices");
        return LEAT_OK;
    }
    bool adds = task->attrs->post.kinds & LEATI_POST_ADD;
    if (task->outputs[0].shape[0] == 1 && !adds && is_small(task)) return prepare_matvec(task, kernel, err);
    if (is_few_rows(task) || is_streamed(task)) return prepare_rows(task, is_streamed(task), kernel, err);
    snprintf(why, LEATI_REASON_BYTES, "more than a few rows, or a matrix that stays packed");
    return LEAT_OK;
}
