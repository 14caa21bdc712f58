/* SPDX-License-Identifier: Apache-2.0 */
/* SOFTMAX, SOFTMAX_BWD, SOFTMAX_XENT, ARGMAX, IN_TOP_K: threads share the rows.  Room: backends/native. */
#include <stdio.h>
#include <string.h>

#include "backends/native/ops.h"
#include "backends/native/elementwise/ranges.h"
#include "base/error.h"
#include "engine/op_semantics/infer.h"

#define WORK 4 /* cost of an element relative to moving its bytes: two passes over memory, and a function */

/* Prepares a loop over the first input as (rows, classes, columns), where the middle dimension is the axis. */
static leat_status prepare(const leati_task *task, int axis, leati_range_state **out, leati_kernel *kernel,
                           char *why, leat_error *err) {
    leati_axis_split split = leati_split_at(&task->inputs[0], axis);
    *out = NULL;
    if (split.length == 0) {
        snprintf(why, LEATI_REASON_BYTES, "an empty axis");
        return LEAT_OK;
    }
    LEATI_TRY(leati_range_prepare(out, task, kernel, err));
    (*out)->count = split.outer;
    (*out)->unit = 1;
    (*out)->job.softmax.classes = split.length;
    (*out)->job.softmax.columns = split.inner;
    (*out)->written = task->output_count;
    leati_range_share(*out, task, WORK * leati_task_bytes(task));
    return LEAT_OK;
}

#define ALONG(op, axis)                                                                                      \
    leat_status leati_native_##op(const leati_task *task, leati_kernel *kernel, char *why,                   \
                                  leat_error *err) {                                                         \
        leati_range_state *s;                                                                                \
        return prepare(task, axis, &s, kernel, why, err);                                                    \
    }
ALONG(softmax, task->attrs->softmax.axis)
ALONG(softmax_bwd, task->attrs->softmax.axis)
ALONG(softmax_xent, task->inputs[0].rank - 1)
ALONG(argmax, task->attrs->argmax.axis)

/* A group: args are the logits, the labels, the factor of the gradient, the gradient and the loss. */
static leat_status run_scaled_xent(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                   leat_error *err) {
    void *const swapped[] = {args[0], args[1], args[2], args[4], args[3]};
    return leati_range_run(kernel, swapped, run, err);
}

leat_status leati_native_scaled_xent(const leati_group *group, leati_kernel *kernel, char *why,
                                     leat_error *err) {
    const leati_desc outputs[] = {group->outputs[1], group->outputs[0]};
    const leati_task task = {.op = LEATI_OP_SOFTMAX_XENT,
                             .attrs = group->members[0].attrs,
                             .input_count = 3,
                             .output_count = 2,
                             .inputs = group->inputs,
                             .outputs = outputs,
                             .threads = group->threads,
                             .deterministic = group->deterministic};
    leati_range_state *s;
    bool floats = true;
    for (int i = 0; i < 3; i++) floats = floats && group->inputs[i].dtype == LEAT_F32;
    if (!floats || outputs[0].dtype != LEAT_F32 || outputs[1].dtype != LEAT_F32) {
        snprintf(why, LEATI_REASON_BYTES, "bfloat16");
        return LEAT_OK;
    }
    LEATI_TRY(prepare(&task, group->inputs[0].rank - 1, &s, kernel, why, err));
    if (!s) return LEAT_OK;
    s->job.softmax.scaled = true;
    s->job.softmax.scale_step = leati_desc_count(&group->inputs[2]) > 1;
    kernel->run = run_scaled_xent;
    size_t length = strlen(kernel->implementation);
    snprintf(kernel->implementation + length, sizeof kernel->implementation - length, ", 2 ops in one");
    return LEAT_OK;
}

leat_status leati_native_in_top_k(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    leati_range_state *s;
    LEATI_TRY(prepare(task, 1, &s, kernel, why, err));
    if (s) s->job.softmax.target_dtype = task->inputs[1].dtype;
    return LEAT_OK;
}
