/* SPDX-License-Identifier: Apache-2.0 */
/* BINARY and DROPOUT: element-wise with operands that repeat along any axes.  Layer: backends/native. */
#include <stdio.h>

#include "backends/native/ops.h"
#include "backends/native/elementwise/ranges.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "tensor/bfloat16.h"

/* Row-major steps of an operand along the axes of dst, 0 where it repeats. */
static void steps_of(const leati_desc *operand, const leati_desc *dst, int64_t steps[LEAT_MAX_RANK]) {
    int shift = dst->rank - operand->rank;
    int64_t step = 1;
    for (int axis = dst->rank - 1; axis >= 0; axis--) {
        int64_t size = axis < shift ? 1 : operand->shape[axis - shift];
        steps[axis] = size == 1 ? 0 : step;
        step *= size;
    }
}

/* The axes of dst; those along which both operands go on where the next one ends are one. */
static void walk(leati_range_job *job, const leati_desc *dst, const leati_desc *a, const leati_desc *b) {
    int64_t by[2][LEAT_MAX_RANK];
    steps_of(a, dst, by[0]);
    steps_of(b, dst, by[1]);
    job->axes = 0;
    for (int i = 0; i < dst->rank; i++) {
        int last = job->axes - 1;
        int64_t size = dst->shape[i];
        if (size == 1) continue;
        if (last >= 0 && job->by[0][last] == size * by[0][i] && job->by[1][last] == size * by[1][i]) {
            job->dim[last] *= size;
        } else {
            last = job->axes++;
            job->dim[last] = size;
        }
        for (int k = 0; k < 2; k++) job->by[k][last] = by[k][i];
    }
    if (job->axes > 0) return;
    job->axes = 1; /* one element */
    job->dim[0] = 1;
    job->by[0][0] = job->by[1][0] = 1;
}

leat_status leati_native_binary(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    leati_range_state *s;
    if (task->inputs[0].dtype != LEAT_F32 && task->inputs[0].dtype != LEATI_BF16) {
        snprintf(why, LEATI_REASON_BYTES, "not f32");
        return LEAT_OK;
    }
    LEATI_TRY(leati_range_prepare(&s, task, kernel, err));
    walk(&s->job, &task->outputs[0], &task->inputs[0], &task->inputs[1]);
    if (!leati_range_take_bf16(s, task, why)) kernel->run = NULL;
    leati_range_share(s, task, leati_task_bytes(task));
    return LEAT_OK;
}

/* One draw for several elements: the factors go to the scratch, which the product then repeats. */
static leat_status run_shared(const leati_kernel *kernel, void *const *args, const leati_run *run,
                              leat_error *err) {
    const leati_range_state *s = kernel->state;
    void *const operands[] = {args[0], run->scratch, args[1]};
    leati_range_job job = {.attrs = &s->attrs, .out = {run->scratch}, .key = leati_mix(run->seed, run->step)};
    s->draw(&job, 0, s->draws);
    return leati_range_run(kernel, operands, run, err);
}

static void share_draws(leati_range_state *s, const leati_task *task, leati_kernel *kernel) {
    leati_desc drawn = task->inputs[0];
    for (int i = 0; i < drawn.rank; i++)
        if (task->attrs->dropout.shared >> i & 1u) drawn.shape[i] = 1;
    walk(&s->job, &task->outputs[0], &task->inputs[0], &drawn);
    s->job.keep = true;
    s->draw = s->range;
    s->draws = leati_desc_count(&drawn);
    s->range = leati_native_isa_of()->ranges[LEATI_OP_BINARY];
    s->reads = s->writes = 2;
    kernel->scratch_bytes = (size_t)s->draws * sizeof(float);
    kernel->run = run_shared;
    leati_range_share(s, task, leati_task_bytes(task));
}

leat_status leati_native_dropout(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    leati_range_state *s;
    (void)why;
    LEATI_TRY(leati_range_prepare(&s, task, kernel, err));
    if (task->attrs->dropout.shared)
        share_draws(s, task, kernel);
    else
        leati_range_share(s, task, 8 * leati_task_bytes(task)); /* the draws cost more than the memory */
    return LEAT_OK;
}
