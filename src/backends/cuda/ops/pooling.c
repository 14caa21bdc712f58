/* SPDX-License-Identifier: Apache-2.0 */
/* POOLING and POOLING_BWD.  The workspace of maximum pooling has one byte for each output element: the tap of the
 * maximum.  Room: backends/cuda. */
#include "backends/cuda/kernels/pooling.h"

#include <stdio.h>

#include "backends/cuda/ops/ops.h"
#include "backends/cuda/ops/window.h"
#include "base/error.h"
#include "base/memory.h"

enum { most_taps = 255 };

typedef struct pooling_state {
    leati_cuda *cuda;
    int vector;
    CUfunction vectors, scalars;
    bool by_rows; /* the backward kernel `vectors` is that for rows of pixels */
    leati_cuda_pooling_args forward;
    leati_cuda_pooling_bwd_args backward;
    bool has_taps;
} pooling_state;

static leat_status run_pooling(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    const pooling_state *s = kernel->state;
    leati_cuda_pooling_args a = s->forward;
    (void)run;
    a.src.data = args[0];
    a.dst.data = args[1];
    a.tap = s->has_taps ? args[2] : NULL;
    int64_t count = a.shape.out_pixels * a.shape.channels;
    if (count == 0 || (!a.dst.data && !a.tap)) return LEAT_OK;
    bool vectors = s->vectors && leati_cuda_is_aligned(args[0]) && leati_cuda_is_aligned(args[1]) &&
                   leati_cuda_is_aligned(a.tap);
    leati_cuda_grid grid = leati_cuda_grid_for(s->cuda, vectors ? count / s->vector : count);
    return leati_cuda_launch(s->cuda, vectors ? s->vectors : s->scalars, &grid, &a, err);
}

/* Returns a grid of blocks that compute whole rows of pixels. */
static leati_cuda_grid rows_of(const pooling_state *s) {
    enum { threads = 256, blocks_per_multiprocessor = 8 };
    int64_t rows = (int64_t)s->backward.shape.batch * s->backward.shape.in[1];
    int64_t most = (int64_t)s->cuda->multiprocessors * blocks_per_multiprocessor;
    return (leati_cuda_grid){.x = (unsigned)(rows < most ? rows : most), .threads = threads};
}

static leat_status run_backward(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                leat_error *err) {
    const pooling_state *s = kernel->state;
    leati_cuda_pooling_bwd_args a = s->backward;
    (void)run;
    a.src.data = args[0];
    a.diff_dst.data = args[2];
    a.tap = s->has_taps ? args[3] : NULL;
    a.diff_src.data = args[4];
    int64_t count = a.shape.in_pixels * a.shape.channels;
    if (count == 0) return LEAT_OK;
    bool vectors = s->vectors && leati_cuda_is_aligned(args[0]) && leati_cuda_is_aligned(args[2]) &&
                   leati_cuda_is_aligned(args[4]) && leati_cuda_is_aligned(a.tap);
    leati_cuda_grid grid = leati_cuda_grid_for(s->cuda, vectors ? count / s->vector : count);
    if (vectors && s->by_rows) grid = rows_of(s);
    return leati_cuda_launch(s->cuda, vectors ? s->vectors : s->scalars, &grid, &a, err);
}

/* Finds the kernel <name>_any and, if a vector is longer than one element, that of the type of `type`. */
static leat_status find(pooling_state *s, const char *name, const leati_desc *type, leat_error *err) {
    char full[64];
    snprintf(full, sizeof full, "%s_any", name);
    LEATI_TRY(leati_cuda_kernel(s->cuda, LEATI_CUDA_pooling, full, 0, &s->scalars, err));
    snprintf(full, sizeof full, "%s_%s", name, leati_cuda_is_bf16(type) ? "bf16" : "f32");
    return s->vector > 1 ? leati_cuda_kernel(s->cuda, LEATI_CUDA_pooling, full, 0, &s->vectors, err)
                         : LEAT_OK;
}

static leat_status make_state(const leati_task *task, leati_kernel *kernel, leati_geometry *g,
                              leat_error *err) {
    pooling_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a pooling kernel");
    kernel->state = s;
    kernel->destroy = leati_cuda_free_state;
    s->cuda = leati_cuda_of(task->device);
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda");
    return leati_geometry_make(g, &task->attrs->pooling.window, &task->inputs[0], err);
}

LEATI_CUDA_PREPARE(pooling) {
    leati_geometry g;
    (void)why;
    LEATI_TRY(make_state(task, kernel, &g, err));
    pooling_state *s = kernel->state;
    bool average = task->attrs->pooling.kind == LEATI_POOL_AVERAGE;
    s->has_taps = !average && g.taps <= most_taps && !(task->unused >> 1 & 1u);
    s->vector = leati_cuda_vector_of(&task->inputs[0], &task->outputs[0], g.channels);
    s->forward = (leati_cuda_pooling_args){.shape = leati_cuda_shape_of(&g),
                                           .src = leati_cuda_array_of(&task->inputs[0]),
                                           .dst = leati_cuda_array_of(&task->outputs[0]),
                                           .average = average};
    LEATI_TRY(find(s, "leati_cuda_pooling", &task->inputs[0], err));
    if (s->has_taps) kernel->output_bytes[1] = (size_t)(g.out_pixels * g.channels);
    kernel->run = run_pooling;
    return LEAT_OK;
}

/* Returns true if the kernel for rows of pixels is right for the windows. */
static bool suits_rows(const leati_cuda_window_shape *shape) {
    bool flat = shape->in[0] == 1 && shape->kernel[0] == 1 && shape->pad[0] == 0;
    for (int i = 1; i < 3; ++i) flat = flat && shape->kernel[i] <= 2 * shape->stride[i];
    return flat;
}

LEATI_CUDA_PREPARE(pooling_bwd) {
    leati_geometry g;
    (void)why;
    LEATI_TRY(make_state(task, kernel, &g, err));
    pooling_state *s = kernel->state;
    bool ours = task->forward && task->forward->run == run_pooling;
    s->has_taps = ours && ((const pooling_state *)task->forward->state)->has_taps;
    s->vector = leati_cuda_vector_of(&task->inputs[2], &task->outputs[0], g.channels);
    if (task->inputs[0].dtype != task->inputs[2].dtype) s->vector = 1;
    s->backward = (leati_cuda_pooling_bwd_args){.shape = leati_cuda_shape_of(&g),
                                                .src = leati_cuda_array_of(&task->inputs[0]),
                                                .diff_dst = leati_cuda_array_of(&task->inputs[2]),
                                                .diff_src = leati_cuda_array_of(&task->outputs[0]),
                                                .average = task->attrs->pooling.kind == LEATI_POOL_AVERAGE};
    LEATI_TRY(find(s, "leati_cuda_pooling_bwd", &task->inputs[2], err));
    if (s->has_taps && s->vector > 1 && suits_rows(&s->backward.shape)) {
        const char *name = leati_cuda_is_bf16(&task->inputs[2]) ? "leati_cuda_pooling_bwd_rows_bf16"
                                                                : "leati_cuda_pooling_bwd_rows_f32";
        LEATI_TRY(leati_cuda_kernel(s->cuda, LEATI_CUDA_pooling, name, 0, &s->vectors, err));
        s->by_rows = true;
    }
    kernel->run = run_backward;
    return LEAT_OK;
}
