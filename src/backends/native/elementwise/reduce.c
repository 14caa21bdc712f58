/* SPDX-License-Identifier: Apache-2.0 */
/* REDUCE: neighbouring axes that are all reduced, or all kept, are joined into one.  Threads share the outermost
 * axis where that is kept; where a few columns are reduced over many rows, they share the rows.
 * Room: backends/native. */
#include <stdio.h>

#include "backends/native/ops.h"
#include "backends/native/elementwise/ranges.h"
#include "backends/native/share.h"
#include "base/error.h"
#include "base/memory.h"

/* Neighbouring axes that are all reduced or all kept, joined. */
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

/* Describes the loop: the outermost group, if kept, becomes the rows; the innermost kept group the columns, the
 * innermost reduced group `reduced`; the groups between become axes. */
static void describe(leati_range_state *s, const leati_task *task) {
    leati_reduce_args *r = &s->job.reduce;
    axis_group groups[LEAT_MAX_RANK];
    int count = groups_of(task, groups), first = 0;
    s->count = r->reduced = r->columns = r->dst_row = 1;
    if (count > 0 && !groups[0].reduced) s->count = groups[first++].size;
    if (count > first && !groups[count - 1].reduced) r->columns = r->dst_row = groups[--count].size;
    if (count > first) r->reduced = groups[--count].size;
    r->src_row = r->reduced * r->columns;
    for (int i = count - 1; i >= first; i--) {
        r->dim[i - first] = groups[i].size;
        r->src_stride[i - first] = r->src_row;
        r->dst_stride[i - first] = groups[i].reduced ? 0 : r->dst_row;
        r->src_row *= groups[i].size;
        if (!groups[i].reduced) r->dst_row *= groups[i].size;
    }
    r->axes = count - first;
    r->divisor = 1;
    if (task->attrs->reduce.kind == LEATI_REDUCE_MEAN)
        r->divisor = (double)(s->count * r->src_row) / (double)(s->count * r->dst_row);
}

static void run_rows_part(const leati_kernel *kernel, void *const *args, const leati_run *run, int t) {
    const leati_range_state *s = kernel->state;
    double *sums = run->scratch;
    leati_range_job job = s->job;
    job.in[0] = args[0];
    job.out[0] = args[1];
    job.reduce.sums = sums + t * job.reduce.dst_row;
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
    int64_t columns = s->job.reduce.columns, first = s->job.reduce.reduced * t / s->threads;
    double *sums = run->scratch;
    float *parts = (float *)(void *)(sums + s->threads * columns);
    leati_range_job job = s->job;
    job.in[0] = (const float *)args[0] + first * columns;
    job.out[0] = parts + t * columns;
    job.reduce.reduced = s->job.reduce.reduced * (t + 1) / s->threads - first;
    job.reduce.divisor = 1;
    job.reduce.sums = sums + t * columns;
    s->range(&job, 0, 1);
}

/* REDUCE of one row (reduced, columns) by all threads: each reduces its part to (columns) in the scratch, then one
 * thread reduces these partial results. */
static leat_status run_parts(const leati_kernel *kernel, void *const *args, const leati_run *run,
                             leat_error *err) {
    const leati_range_state *s = kernel->state;
    int64_t columns = s->job.reduce.columns;
    double *sums = run->scratch;
    float *parts = (float *)(void *)(sums + s->threads * columns);
    (void)err;
    leati_share(s->threads, reduce_part, kernel, args, run);
    leati_range_job job = s->job;
    job.in[0] = parts;
    job.out[0] = args[1];
    job.reduce.reduced = s->threads;
    job.reduce.sums = sums;
    s->range(&job, 0, 1);
    return LEAT_OK;
}

leat_status leati_native_reduce(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    leati_range_state *s;
    if (leati_desc_count(&task->inputs[0]) == 0) {
        snprintf(why, LEATI_REASON_BYTES, "an empty tensor");
        return LEAT_OK;
    }
    LEATI_TRY(leati_range_prepare(&s, task, kernel, err));
    describe(s, task);
    leati_range_share(s, task, leati_task_bytes(task));
    bool parts = s->count == 1 && s->job.reduce.axes == 0 && s->job.reduce.columns > 1 &&
                 s->job.reduce.reduced >= 64 * s->threads;
    if (s->count < s->threads && !parts) s->threads = 1;
    if (s->threads == 1) parts = false;
    kernel->run = parts ? run_parts : run_rows;
    size_t sums = (size_t)s->threads * (size_t)s->job.reduce.dst_row;
    kernel->scratch_bytes = sums * (sizeof(double) + (parts ? sizeof(float) : 0));
    return LEAT_OK;
}
