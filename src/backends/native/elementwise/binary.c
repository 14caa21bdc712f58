/* SPDX-License-Identifier: Apache-2.0 */
/* BINARY and DROPOUT: element-wise ops whose operands may be broadcast along any axes.  Room: backends/native. */
#include <stdio.h>

#include "backends/native/ops.h"
#include "backends/native/elementwise/ranges.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "tensor/bfloat16.h"

/* Sets the strides of an operand along the axes of dst, in elements; 0 where the operand is broadcast. */
static void strides_of(const leati_desc *operand, const leati_desc *dst, int64_t steps[LEAT_MAX_RANK]) {
    int shift = dst->rank - operand->rank;
    int64_t step = 1;
    for (int axis = dst->rank - 1; axis >= 0; axis--) {
        int64_t size = axis < shift ? 1 : operand->shape[axis - shift];
        steps[axis] = size == 1 ? 0 : step;
        step *= size;
    }
}

/* Sets the axes of the loop: those of dst, where neighbouring axes that are contiguous in both operands are joined
 * into one. */
static void join_axes(leati_binary_args *job, const leati_desc *dst, const leati_desc *a,
                      const leati_desc *b) {
    int64_t stride[2][LEAT_MAX_RANK];
    strides_of(a, dst, stride[0]);
    strides_of(b, dst, stride[1]);
    job->axes = 0;
    for (int i = 0; i < dst->rank; i++) {
        int last = job->axes - 1;
        int64_t size = dst->shape[i];
        if (size == 1) continue;
        if (last >= 0 && job->stride[0][last] == size * stride[0][i] &&
            job->stride[1][last] == size * stride[1][i]) {
            job->dim[last] *= size;
        } else {
            last = job->axes++;
            job->dim[last] = size;
        }
        for (int k = 0; k < 2; k++) job->stride[k][last] = stride[k][i];
    }
    if (job->axes > 0) return;
    job->axes = 1; /* one element */
    job->dim[0] = 1;
    job->stride[0][0] = job->stride[1][0] = 1;
}

leat_status leati_native_binary(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    leati_range_state *s;
    if (task->inputs[0].dtype != LEAT_F32 && task->inputs[0].dtype != LEATI_BF16) {
        snprintf(why, LEATI_REASON_BYTES, "the operands are not float32");
        return LEAT_OK;
    }
    LEATI_TRY(leati_range_prepare(&s, task, kernel, err));
    join_axes(&s->job.binary, &task->outputs[0], &task->inputs[0], &task->inputs[1]);
    if (!leati_range_take_bf16(s, task, why)) kernel->run = NULL;
    leati_range_share(s, task, leati_task_bytes(task));
    return LEAT_OK;
}

/* DROPOUT where several elements share one draw: the factors are drawn into the scratch, then multiplied with src
 * by broadcasting. */
static leat_status run_shared(const leati_kernel *kernel, void *const *args, const leati_run *run,
                              leat_error *err) {
    const leati_range_state *s = kernel->state;
    void *const operands[] = {args[0], run->scratch, args[1]};
    leati_range_job job = {.op = LEATI_OP_DROPOUT,
                           .attrs = &s->attrs,
                           .out = {run->scratch},
                           .random = {leati_mix(run->seed, run->step)}};
    s->draw(&job, 0, s->draws);
    return leati_range_run(kernel, operands, run, err);
}

static void share_draws(leati_range_state *s, const leati_task *task, leati_kernel *kernel) {
    leati_desc drawn = task->inputs[0];
    for (int i = 0; i < drawn.rank; i++)
        if (task->attrs->dropout.shared >> i & 1u) drawn.shape[i] = 1;
    join_axes(&s->job.binary, &task->outputs[0], &task->inputs[0], &drawn);
    s->job.op = LEATI_OP_BINARY;
    s->job.binary.dropout = true;
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
        leati_range_share(s, task, 8 * leati_task_bytes(task)); /* a draw costs more than moving an element */
    return LEAT_OK;
}
