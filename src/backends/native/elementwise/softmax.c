/* SPDX-License-Identifier: Apache-2.0 */
/* SOFTMAX, SOFTMAX_BWD, SOFTMAX_XENT, ARGMAX, IN_TOP_K: threads share the rows.  Room: backends/native. */
#include <stdio.h>

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

leat_status leati_native_in_top_k(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    leati_range_state *s;
    LEATI_TRY(prepare(task, 1, &s, kernel, why, err));
    if (s) s->job.softmax.target_dtype = task->inputs[1].dtype;
    return LEAT_OK;
}
