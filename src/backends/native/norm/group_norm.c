/* SPDX-License-Identifier: Apache-2.0 */
/* GROUP_NORM and GROUP_NORM_BWD: threads share the rows.  Room: backends/native. */
#include "engine/op_semantics/group_norm.h"

#include <stdio.h>

#include "backends/native/simd/isa.h"
#include "backends/native/norm/jobs.h"
#include "backends/native/ops.h"
#include "backends/native/elementwise/ranges.h"
#include "backends/native/share.h"
#include "base/error.h"
#include "base/memory.h"

typedef struct norm_state {
    leati_group_shape shape;
    float epsilon;
    const leati_native_isa *isa;
    int threads;
    size_t scratch_bytes; /* scratch of one thread: 4 doubles and 4 floats per channel */
} norm_state;

static leati_group_norm_job job_of(const norm_state *s, void *scratch, int t) {
    leati_group_norm_job job = {.shape = s->shape, .epsilon = s->epsilon};
    job.sums = (double *)(void *)((char *)scratch + (size_t)t * s->scratch_bytes);
    job.channel_mean = (float *)(void *)(job.sums + 4 * s->shape.channels);
    job.channel_scale = job.channel_mean + s->shape.channels;
    return job;
}

static void run_forward_part(const leati_kernel *kernel, void *const *args, const leati_run *run, int t) {
    const norm_state *s = kernel->state;
    leati_group_norm_job job = job_of(s, run->scratch, t);
    job.src = args[0];
    job.gamma = args[1];
    job.beta = args[2];
    job.dst = args[3];
    job.mean = args[4];
    job.inverse = args[5];
    s->isa->group_norm_forward(&job, s->shape.rows * t / s->threads, s->shape.rows * (t + 1) / s->threads);
}

static leat_status run_forward(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    const norm_state *s = kernel->state;
    (void)err;
    leati_share(s->threads, run_forward_part, kernel, args, run);
    return LEAT_OK;
}

static void run_backward_part(const leati_kernel *kernel, void *const *args, const leati_run *run, int t) {
    const norm_state *s = kernel->state;
    leati_group_norm_job job = job_of(s, run->scratch, t);
    job.src = args[0];
    job.gamma = args[1];
    job.mean = args[2];
    job.inverse = args[3];
    job.diff_dst = args[4];
    job.dst = args[5];
    s->isa->group_norm_backward(&job, s->shape.rows * t / s->threads, s->shape.rows * (t + 1) / s->threads);
}

static leat_status run_backward(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                leat_error *err) {
    const norm_state *s = kernel->state;
    int64_t channels = s->shape.channels;
    float *diff_gamma = args[6], *diff_beta = args[7];
    (void)err;
    leati_share(s->threads, run_backward_part, kernel, args, run);
    for (int64_t c = 0; c < channels; c++) {
        double gamma_sum = 0, beta_sum = 0;
        for (int t = 0; t < s->threads; t++) {
            const double *sums = job_of(s, run->scratch, t).sums;
            gamma_sum += sums[2 * channels + c];
            beta_sum += sums[3 * channels + c];
        }
        diff_gamma[c] = (float)gamma_sum;
        diff_beta[c] = (float)beta_sum;
    }
    return LEAT_OK;
}

static leat_status prepare(const leati_task *task, leati_kernel *kernel, leat_error *err) {
    norm_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a normalisation");
    leati_range_state work = {0};
    leati_range_share(&work, task, 2 * leati_task_bytes(task));
    s->shape = leati_group_shape_of(task->attrs, &task->inputs[0]);
    s->epsilon = task->attrs->group_norm.epsilon;
    s->isa = leati_native_isa_of();
    s->threads = work.threads;
    s->scratch_bytes = (size_t)s->shape.channels * 4 * (sizeof(double) + sizeof(float)) + 64;
    s->scratch_bytes -= s->scratch_bytes % 64;
    kernel->scratch_bytes = (size_t)s->threads * s->scratch_bytes;
    kernel->state = s;
    kernel->destroy = leati_free;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native %s", s->isa->name);
    return LEAT_OK;
}

leat_status leati_native_group_norm(const leati_task *task, leati_kernel *kernel, char *why,
                                    leat_error *err) {
    (void)why;
    kernel->run = run_forward;
    return prepare(task, kernel, err);
}

leat_status leati_native_group_norm_bwd(const leati_task *task, leati_kernel *kernel, char *why,
                                        leat_error *err) {
    (void)why;
    kernel->run = run_backward;
    return prepare(task, kernel, err);
}
