/* SPDX-License-Identifier: Apache-2.0 */
/* RESAMPLE and RESAMPLE_BWD.  Room: backends/cuda. */
#include "backends/cuda/kernels/resample.h"

#include <stdio.h>

#include "backends/cuda/ops/ops.h"
#include "backends/cuda/ops/window.h"
#include "base/error.h"
#include "base/memory.h"

typedef struct resample_state {
    leati_cuda *cuda;
    int vector;
    CUfunction vectors, scalars;
    leati_cuda_resample_args args;
} resample_state;

static leat_status run_resample(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                leat_error *err) {
    const resample_state *s = kernel->state;
    leati_cuda_resample_args a = s->args;
    (void)run;
    a.from.data = args[0];
    a.to.data = args[1];
    int64_t count = a.pixels * a.channels;
    if (count == 0) return LEAT_OK;
    bool vectors = s->vectors && leati_cuda_is_aligned(args[0]) && leati_cuda_is_aligned(args[1]);
    leati_cuda_grid grid = leati_cuda_grid_for(s->cuda, vectors ? count / s->vector : count);
    return leati_cuda_launch(s->cuda, vectors ? s->vectors : s->scalars, &grid, &a, err);
}

/* src: the smaller image. */
static leati_cuda_resample_args describe(const leati_task *task, const leati_desc *src) {
    const leati_attrs *attrs = task->attrs;
    const leati_desc *to = &task->outputs[0];
    int spatial = attrs->resample.spatial;
    leati_cuda_resample_args a = {.from = leati_cuda_array_of(&task->inputs[0]),
                                  .to = leati_cuda_array_of(to),
                                  .pixels = to->shape[0],
                                  .in = {1, 1, 1},
                                  .factor = {1, 1, 1},
                                  .channels = (int32_t)to->shape[spatial + 1],
                                  .halved = attrs->resample.halved};
    for (int i = 0; i < spatial; ++i) {
        int axis = 3 - spatial + i;
        a.in[axis] = (int32_t)src->shape[1 + i];
        a.factor[axis] = (int32_t)attrs->resample.factor[i];
        a.linear[axis] = attrs->resample.linear;
        a.pixels *= to->shape[1 + i];
    }
    return a;
}

static leat_status prepare(const leati_task *task, leati_kernel *kernel, const char *family,
                           const leati_desc *src, leat_error *err) {
    char name[64];
    resample_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a resampling kernel");
    kernel->state = s;
    kernel->destroy = leati_cuda_free_state;
    s->cuda = leati_cuda_of(task->device);
    s->args = describe(task, src);
    s->vector = leati_cuda_vector_of(&task->inputs[0], &task->outputs[0], s->args.channels);
    snprintf(name, sizeof name, "%s_any", family);
    LEATI_TRY(leati_cuda_kernel(s->cuda, LEATI_CUDA_resample, name, 0, &s->scalars, err));
    snprintf(name, sizeof name, "%s_%s", family, leati_cuda_is_bf16(src) ? "bf16" : "f32");
    if (s->vector > 1) LEATI_TRY(leati_cuda_kernel(s->cuda, LEATI_CUDA_resample, name, 0, &s->vectors, err));
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda");
    kernel->run = run_resample;
    return LEAT_OK;
}

LEATI_CUDA_PREPARE(resample) {
    (void)why;
    return prepare(task, kernel, "leati_cuda_resample", &task->inputs[0], err);
}

LEATI_CUDA_PREPARE(resample_bwd) {
    (void)why;
    return prepare(task, kernel, "leati_cuda_resample_bwd", &task->outputs[0], err);
}
