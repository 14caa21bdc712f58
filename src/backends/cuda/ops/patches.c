/* SPDX-License-Identifier: Apache-2.0 */
/* PATCHES and PATCHES_BWD.  Room: backends/cuda. */
#include "backends/cuda/kernels/patches.h"

#include <stdio.h>

#include "backends/cuda/ops/ops.h"
#include "backends/cuda/ops/window.h"
#include "base/error.h"
#include "base/memory.h"

typedef struct patches_state {
    leati_cuda *cuda;
    int vector;
    bool backward;
    CUfunction vectors, scalars;
    leati_cuda_patches_args args;
} patches_state;

static leat_status run_patches(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    const patches_state *s = kernel->state;
    leati_cuda_patches_args a = s->args;
    (void)run;
    a.image.data = args[s->backward];
    a.patches.data = args[!s->backward];
    int64_t count = a.shape.channels * (s->backward ? a.shape.in_pixels : a.shape.out_pixels * a.shape.taps);
    if (count == 0) return LEAT_OK;
    bool vectors = s->vectors && leati_cuda_is_aligned(args[0]) && leati_cuda_is_aligned(args[1]);
    leati_cuda_grid grid = leati_cuda_grid_for(s->cuda, vectors ? count / s->vector : count);
    return leati_cuda_launch(s->cuda, vectors ? s->vectors : s->scalars, &grid, &a, err);
}

static leat_status prepare(const leati_task *task, leati_kernel *kernel, bool backward, leat_error *err) {
    char name[64];
    leati_geometry g;
    const leati_desc *image = backward ? &task->outputs[0] : &task->inputs[0];
    const leati_desc *patches = backward ? &task->inputs[0] : &task->outputs[0];
    const char *family = backward ? "leati_cuda_patches_bwd" : "leati_cuda_patches";
    patches_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a patches kernel");
    kernel->state = s;
    kernel->destroy = leati_cuda_free_state;
    s->cuda = leati_cuda_of(task->device);
    s->backward = backward;
    LEATI_TRY(leati_geometry_make(&g, &task->attrs->conv.window, image, err));
    s->vector = leati_cuda_vector_of(image, patches, g.channels);
    s->args = (leati_cuda_patches_args){.shape = leati_cuda_shape_of(&g),
                                        .image = leati_cuda_array_of(image),
                                        .patches = leati_cuda_array_of(patches)};
    snprintf(name, sizeof name, "%s_any", family);
    LEATI_TRY(leati_cuda_kernel(s->cuda, LEATI_CUDA_patches, name, 0, &s->scalars, err));
    snprintf(name, sizeof name, "%s_%s", family, leati_cuda_is_bf16(image) ? "bf16" : "f32");
    if (s->vector > 1) LEATI_TRY(leati_cuda_kernel(s->cuda, LEATI_CUDA_patches, name, 0, &s->vectors, err));
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda");
    kernel->run = run_patches;
    return LEAT_OK;
}

LEATI_CUDA_PREPARE(patches) {
    (void)why;
    return prepare(task, kernel, false, err);
}

LEATI_CUDA_PREPARE(patches_bwd) {
    (void)why;
    return prepare(task, kernel, true, err);
}
