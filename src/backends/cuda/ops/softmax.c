/* SPDX-License-Identifier: Apache-2.0 */
/* SOFTMAX, SOFTMAX_BWD and SOFTMAX_XENT.  Room: backends/cuda. */
#include "backends/cuda/kernels/softmax.h"

#include <stdio.h>

#include "backends/cuda/ops/columns.h"
#include "backends/cuda/ops/ops.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/op_semantics/infer.h"

typedef struct softmax_state {
    leati_cuda *cuda;
    CUfunction function;
    leati_cuda_grid grid;
    leati_axis_split split;
    bool logarithm;
    leati_xent xent;
    leati_desc descs[4]; /* of the arguments */
    leati_desc scale;    /* of a group */
} softmax_state;

static leati_cuda_softmax_args args_of(const softmax_state *s) {
    return (leati_cuda_softmax_args){.outer = s->split.outer,
                                     .length = s->split.length,
                                     .inner = s->split.inner,
                                     .logarithm = s->logarithm,
                                     .normalized = s->xent == LEATI_XENT_NORMALIZED,
                                     .low = s->xent == LEATI_XENT_EXACT ? 0 : LEATI_EPSILON,
                                     .high = s->xent == LEATI_XENT_EXACT ? 0 : 1 - LEATI_EPSILON};
}

static leat_status run_softmax(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    const softmax_state *s = kernel->state;
    leati_cuda_softmax_args a = args_of(s);
    (void)run;
    if (s->grid.x == 0 || a.length == 0) return LEAT_OK;
    a.src = leati_cuda_tensor_of(args[0], &s->descs[0]);
    a.dst = leati_cuda_tensor_of(args[1], &s->descs[1]);
    return leati_cuda_launch(s->cuda, s->function, &s->grid, &a, err);
}

static leat_status run_bwd(const leati_kernel *kernel, void *const *args, const leati_run *run,
                           leat_error *err) {
    const softmax_state *s = kernel->state;
    leati_cuda_softmax_args a = args_of(s);
    (void)run;
    if (s->grid.x == 0 || a.length == 0) return LEAT_OK;
    a.src = leati_cuda_tensor_of(args[0], &s->descs[0]);
    a.other = leati_cuda_tensor_of(args[1], &s->descs[1]);
    a.dst = leati_cuda_tensor_of(args[2], &s->descs[2]);
    return leati_cuda_launch(s->cuda, s->function, &s->grid, &a, err);
}

static leat_status run_xent(const leati_kernel *kernel, void *const *args, const leati_run *run,
                            leat_error *err) {
    const softmax_state *s = kernel->state;
    leati_cuda_softmax_args a = args_of(s);
    (void)run;
    if (s->grid.x == 0) return LEAT_OK;
    a.src = leati_cuda_tensor_of(args[0], &s->descs[0]);
    a.other = leati_cuda_tensor_of(args[1], &s->descs[1]);
    a.loss = leati_cuda_tensor_of(args[2], &s->descs[2]);
    a.dst = leati_cuda_tensor_of(args[3], &s->descs[3]);
    return leati_cuda_launch(s->cuda, s->function, &s->grid, &a, err);
}

/* A group: the gradient is multiplied by a scale. */
static leat_status run_scaled_xent(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                   leat_error *err) {
    const softmax_state *s = kernel->state;
    leati_cuda_softmax_args a = args_of(s);
    (void)run;
    if (s->grid.x == 0) return LEAT_OK;
    a.src = leati_cuda_tensor_of(args[0], &s->descs[0]);
    a.other = leati_cuda_tensor_of(args[1], &s->descs[1]);
    a.scale = leati_cuda_tensor_of(args[2], &s->scale);
    a.scale_step = leati_desc_count(&s->scale) > 1;
    a.dst = leati_cuda_tensor_of(args[3], &s->descs[3]);
    a.loss = leati_cuda_tensor_of(args[4], &s->descs[2]);
    return leati_cuda_launch(s->cuda, s->function, &s->grid, &a, err);
}

/* Sets the grid, and returns who computes a line.  Each thread of a warp or block keeps at most 8 elements in
 * registers; for longer lines there is a kernel that reads them again. */
static const char *choose_team(softmax_state *s) {
    enum { kept = 8, warps = 4, warp_elements = 32 * kept, most_threads = 1024 };
    int64_t lines = s->split.outer * s->split.inner, length = s->split.length;
    bool few = lines <= s->cuda->multiprocessors;
    unsigned threads = 64;
    if (s->split.inner > 1) {
        s->grid = (leati_cuda_grid){.x = (unsigned)((lines + 127) / 128), .threads = 128};
        return "thread";
    }
    if (length <= warp_elements / (few ? 2 : 1)) {
        s->grid = (leati_cuda_grid){.x = (unsigned)((lines + warps - 1) / warps), .threads = warps * 32};
        return "warp";
    }
    while (threads < most_threads && (int64_t)threads * kept / (few ? 2 : 1) < length) threads *= 2;
    s->grid = (leati_cuda_grid){.x = (unsigned)lines, .threads = threads};
    return length <= (int64_t)threads * kept ? "block" : "long";
}

static leat_status prepare(const leati_task *task, leati_kernel *kernel, const char *name, int axis,
                           leat_error *err) {
    softmax_state *s = leati_calloc(1, sizeof *s);
    char full[96];
    if (!s) return leati_fail_memory(err, sizeof *s, "a softmax");
    kernel->state = s;
    kernel->destroy = leati_cuda_free_state;
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda");
    s->cuda = leati_cuda_of(task->device);
    s->split = leati_split_at(&task->inputs[0], axis);
    for (int i = 0; i < task->input_count + task->output_count; ++i)
        s->descs[i] = i < task->input_count ? task->inputs[i] : task->outputs[i - task->input_count];
    const char *by = choose_team(s);
    snprintf(full, sizeof full, "leati_cuda_%s_%s", name, by);
    return leati_cuda_kernel(s->cuda, LEATI_CUDA_softmax, full, 0, &s->function, err);
}

static void set_logarithm(const leati_task *task, const leati_kernel *kernel) {
    ((softmax_state *)kernel->state)->logarithm = task->attrs->softmax.log;
}

LEATI_CUDA_PREPARE(softmax) {
    (void)why;
    LEATI_TRY(prepare(task, kernel, "softmax", task->attrs->softmax.axis, err));
    set_logarithm(task, kernel);
    kernel->run = run_softmax;
    return LEAT_OK;
}

LEATI_CUDA_PREPARE(softmax_bwd) {
    (void)why;
    LEATI_TRY(prepare(task, kernel, "softmax_bwd", task->attrs->softmax.axis, err));
    set_logarithm(task, kernel);
    kernel->run = run_bwd;
    return LEAT_OK;
}

LEATI_CUDA_PREPARE(softmax_xent) {
    (void)why;
    LEATI_TRY(prepare(task, kernel, "softmax_xent", task->inputs[0].rank - 1, err));
    ((softmax_state *)kernel->state)->xent = task->attrs->xent.kind;
    kernel->run = run_xent;
    return LEAT_OK;
}

leat_status leati_cuda_prepare_xent(const leati_group *group, leati_kernel *kernel, leat_error *err) {
    const leati_desc outputs[] = {group->outputs[1], group->outputs[0]};
    const leati_task task = {.op = LEATI_OP_SOFTMAX_XENT,
                             .input_count = 2,
                             .output_count = 2,
                             .inputs = group->inputs,
                             .outputs = outputs,
                             .device = group->device};
    LEATI_TRY(prepare(&task, kernel, "softmax_xent", task.inputs[0].rank - 1, err));
    softmax_state *s = kernel->state;
    s->scale = group->inputs[2];
    s->xent = group->members[0].attrs->xent.kind;
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda, 2 ops in one");
    kernel->run = run_scaled_xent;
    return LEAT_OK;
}
