/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of a few single pixels, such as those of a squeeze-and-excite block: they are dense layers, and the
 * kernels of MATMUL compute them.  Batch of 1, 576 channels, 144 filters, one Zen 3 core: 21 us by the products of
 * conv.c, whose tiles have six rows.  Room: backends/native. */
#include <stdio.h>

#include "backends/native/conv/conv.h"
#include "backends/native/ops.h"
#include "base/error.h"

/* Returns why the task is declined, or NULL. */
static const char *reason_against(const leati_task *task, const leati_geometry *g) {
    for (int i = 0; i < task->input_count; i++)
        if (leati_conv_is_bf16(&task->inputs[i])) return "bfloat16";
    if (leati_conv_is_bf16(&task->outputs[0])) return "bfloat16";
    if (g->groups > 1 || !leati_conv_is_dense(g)) return "more than a few pixels, or groups";
    if (g->out_pixels == 0) return "an empty tensor";
    return task->attrs->post.kinds & LEATI_POST_NORM ? "not fused" : NULL;
}

static leati_desc matrix(const leati_desc *of, int64_t rows, int64_t columns) {
    return of->rank < 0 ? *of : leati_desc_make(LEAT_F32, 2, (int64_t[]){rows, columns});
}

leat_status leati_native_conv_dense(const leati_task *task, leati_kernel *kernel, char *why,
                                    leat_error *err) {
    leati_geometry g;
    LEATI_TRY(leati_conv_geometry(&g, task->op, task->attrs, task->inputs, err));
    const char *reason = reason_against(task, &g);
    if (reason) {
        snprintf(why, LEATI_REASON_BYTES, "%s", reason);
        return LEAT_OK;
    }
    leati_attrs attrs = {.post = task->attrs->post};
    leati_desc inputs[LEATI_MAX_INPUTS], output = matrix(&task->outputs[0], g.out_pixels, g.filters);
    for (int i = 0; i < task->input_count; i++) inputs[i] = task->inputs[i];
    inputs[0] = matrix(&inputs[0], g.out_pixels, g.channels);
    inputs[1] = matrix(&inputs[1], g.channels, g.filters);
    const int addend = leati_op_inputs(task) + LEATI_POST_ADDEND;
    if (attrs.post.kinds & LEATI_POST_ADD) inputs[addend] = output;
    leati_task dense = *task;
    dense.op = LEATI_OP_MATMUL;
    dense.attrs = &attrs;
    dense.inputs = inputs;
    dense.outputs = &output;
    dense.weights_format = LEATI_WEIGHTS_F32;
    LEATI_TRY(leati_native_matmul(&dense, kernel, why, err));
    return kernel->run ? LEAT_OK : leati_native_dense(&dense, kernel, why, err);
}
