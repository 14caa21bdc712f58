/* SPDX-License-Identifier: Apache-2.0 */
/* REDUCE: axes that are neighbours and alike are one.  Threads share the outermost axis where it is kept; where a few
 * columns are reduced over many rows, rows.  Layer: backends/native. */
#include <stdio.h>

#include "backends/native/ops.h"
#include "backends/native/elementwise/ranges.h"
#include "backends/native/share.h"
#include "base/error.h"
#include "base/memory.h"

/* Neighbouring axes of one fate, at most LEAT_MAX_RANK. */
typedef struct axis_group {
    int64_t size;
    bool reduced;
} axis_group;

static int groups_of(const leati_task *task, axis_group groups[LEAT_MAX_RANK]) {
    const leati_desc *src = &task->inputs[0];
    int count = 0;
    for (int i = 0; i < src->rank; i++) {
        bool reduced = task->attrs->reduce.axes >> i & 1;
        if (src->shape[i] == 1) continue;
        if (count > 0 && groups[count - 1].reduced == reduced)
            groups[count - 1].size *= src->shape[i];
        else
            groups[count++] = (axis_group){src->shape[i], reduced};
    }
    return count;
}

/* Takes the outermost group for rows, the innermost for the leaf, and makes axes of those between. */
static void describe(leati_range_state *s, const leati_task *task) {
    leati_range_job *job = &s->job;
    axis_group groups[LEAT_MAX_RANK];
    int count = groups_of(task, groups), first = 0;
    s->count = job->reduced = job->columns = job->inside = 1;
    if (count > 0 && !groups[0].reduced) s->count = groups[first++].size;
    if (count > first && !groups[count - 1].reduced) job->columns = job->inside = groups[--count].size;
    if (count > first) job->reduced = groups[--count].size;
    job->step = job->reduced * job->columns;
    for (int i = count - 1; i >= first; i--) {
        job->dim[i - first] = groups[i].size;
        job->by[0][i - first] = job->step;
        job->by[1][i - first] = groups[i].reduced ? 0 : job->inside;
        job->step *= groups[i].size;
        if (!groups[i].reduced) job->inside *= groups[i].size;
    }
    job->axes = count - first;
    job->divisor = 1;
    if (task->attrs->reduce.kind == LEATI_REDUCE_MEAN)
        job->divisor = (double)(s->count * job->step) / (double)(s->count * job->inside);
}

static void run_rows_part(const leati_kernel *kernel, void *const *args, const leati_run *run, int t) {
    const leati_range_state *s = kernel->state;
    double *sums = run->scratch;
    leati_range_job job = s->job;
    job.in[0] = args[0];
    job.out[0] = args[1];
    job.sums = sums + t * job.inside;
    s->range(&job, s->count * t / s->threads, s->count * (t + 1) / s->threads);
}

static leat_status run_rows(const leati_kernel *kernel, void *const *args, const leati_run *run,
                            leat_error *err) {
    const leati_range_state *s = kernel->state;
    (void)err;
    leati_share(s->threads, run_rows_part, kernel, args, run);
    return LEAT_OK;
}

static void reduce_part(const leati_kernel *kernel, void *const *args, const leati_run *run, int t) {
    const leati_range_state *s = kernel->state;
    int64_t columns = s->job.columns, first = s->job.reduced * t / s->threads;
    double *sums = run->scratch;
    float *parts = (float *)(void *)(sums + s->threads * columns);
    leati_range_job job = s->job;
    job.in[0] = (const float *)args[0] + first * columns;
    job.out[0] = parts + t * columns;
    job.reduced = s->job.reduced * (t + 1) / s->threads - first;
    job.divisor = 1;
    job.sums = sums + t * columns;
    s->range(&job, 0, 1);
}

/* One row of (reduced, columns): each thread reduces a part of it to a row in the scratch, then one reduces those. */
static leat_status run_parts(const leati_kernel *kernel, void *const *args, const leati_run *run,
                             leat_error *err) {
    const leati_range_state *s = kernel->state;
    int64_t columns = s->job.columns;
    double *sums = run->scratch;
    float *parts = (float *)(void *)(sums + s->threads * columns);
    (void)err;
    leati_share(s->threads, reduce_part, kernel, args, run);
    leati_range_job job = s->job;
    job.in[0] = parts;
    job.out[0] = args[1];
    job.reduced = s->threads;
    job.sums = sums;
    s->range(&job, 0, 1);
    return LEAT_OK;
}

leat_status leati_native_reduce(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    leati_range_state *s;
    if (leati_desc_count(&task->inputs[0]) == 0) {
        snprintf(why, LEATI_REASON_BYTES, "nothing to reduce");
        return LEAT_OK;
    }
    LEATI_TRY(leati_range_prepare(&s, task, kernel, err));
    describe(s, task);
    leati_range_share(s, task, leati_task_bytes(task));
    bool parts = s->count == 1 && s->job.axes == 0 && s->job.columns > 1 && s->job.reduced >= 64 * s->threads;
    if (s->count < s->threads && !parts) s->threads = 1;
    if (s->threads == 1) parts = false;
    kernel->run = parts ? run_parts : run_rows;
    size_t sums = (size_t)s->threads * (size_t)s->job.inside;
    kernel->scratch_bytes = sums * (sizeof(double) + (parts ? sizeof(float) : 0));
    return LEAT_OK;
}
