/* SPDX-License-Identifier: Apache-2.0 */
/* The UPDATE ops: one launch for each node, over the whole slab of weights.  Room: backends/cuda. */
#include <stdio.h>

#include "backends/cuda/kernels/update.h"
#include "backends/cuda/ops/ops.h"
#include "base/error.h"
#include "base/memory.h"
#include "tensor/bfloat16.h"

enum { SCALARS, GRADIENT, WEIGHTS, FIRST_SLOT };

/* The state of a kernel. */
typedef struct update {
    leati_cuda_update_args args;
    CUfunction function;
    leati_cuda_grid grid;
    int slot_count; /* inputs behind the weights that may be slots */
    int powers;     /* the input with the powers; -1: none */
} update;

static bool aligned(const void *memory, size_t bytes) {
    return (uintptr_t)memory % bytes == 0;
}

static leat_status run_update(const leati_kernel *kernel, void *const *args, const leati_run *run,
                              leat_error *err) {
    const update *u = kernel->state;
    leati_cuda_update_args a = u->args;
    enum { quad_bytes = 4 * sizeof(float) };
    if (a.count == 0) return LEAT_OK;
    a.scalars = args[SCALARS];
    a.g = args[GRADIENT];
    a.p = args[WEIGHTS];
    if (u->powers >= 0) a.powers = args[u->powers];
    bool quads = aligned(a.g, quad_bytes) && aligned(a.p, quad_bytes) && aligned(a.powers, quad_bytes);
    for (int i = 0; i < u->slot_count; ++i) {
        a.slot[i] = args[FIRST_SLOT + i];
        quads = quads && aligned(a.slot[i], quad_bytes);
    }
    a.quads = quads;
    return leati_cuda_launch(leati_cuda_of(run->device), u->function, &u->grid, &a, err);
}

static uint32_t flags_of(const leati_task *task, int powers) {
    const leati_attrs *a = task->attrs;
    return (a->update.momentum ? LEATI_CUDA_UPDATE_MOMENTUM : 0u) |
           (a->update.nesterov ? LEATI_CUDA_UPDATE_NESTEROV : 0u) |
           (a->update.amsgrad ? LEATI_CUDA_UPDATE_AMSGRAD : 0u) |
           (a->update.decay ? LEATI_CUDA_UPDATE_DECAY : 0u) |
           (a->update.as_keras3 ? LEATI_CUDA_UPDATE_AS_KERAS3 : 0u) |
           (a->update.accumulates ? LEATI_CUDA_UPDATE_ACCUMULATES : 0u) |
           (a->update.centered ? LEATI_CUDA_UPDATE_CENTERED : 0u) |
           (task->inputs[SCALARS].dtype == LEATI_BF16 ? LEATI_CUDA_UPDATE_BF16_SCALARS : 0u) |
           (task->inputs[GRADIENT].dtype == LEATI_BF16 ? LEATI_CUDA_UPDATE_BF16_GRADIENT : 0u) |
           (powers >= 0 && task->inputs[powers].dtype == LEATI_BF16 ? LEATI_CUDA_UPDATE_BF16_POWERS : 0u);
}

static leat_status prepare(const leati_task *task, const char *name, leati_kernel *kernel, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(task->device);
    update *u = leati_calloc(1, sizeof *u);
    if (!u) return leati_fail_memory(err, sizeof *u, "a kernel");
    kernel->state = u;
    kernel->destroy = leati_cuda_free_state;
    u->powers = task->attrs->update.powers ? task->input_count - 1 : -1;
    int end = u->powers >= 0 ? u->powers : task->input_count;
    u->slot_count = end - FIRST_SLOT < LEATI_CUDA_UPDATE_SLOTS ? end - FIRST_SLOT : LEATI_CUDA_UPDATE_SLOTS;
    u->args = (leati_cuda_update_args){.count = leati_desc_count(&task->inputs[GRADIENT]),
                                       .scalars_count = (int32_t)leati_desc_count(&task->inputs[SCALARS]),
                                       .flags = flags_of(task, u->powers)};
    u->grid = leati_cuda_grid_for(cuda, (u->args.count + 3) / 4);
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda");
    LEATI_TRY(leati_cuda_kernel(cuda, LEATI_CUDA_update, name, 0, &u->function, err));
    kernel->run = run_update;
    return LEAT_OK;
}

#define PREPARE_UPDATE(lower)                                                                                \
    LEATI_CUDA_PREPARE(update_##lower) {                                                                     \
        if (!task->attrs->update.rows) return prepare(task, "leati_cuda_update_" #lower, kernel, err);       \
        snprintf(why, LEATI_REASON_BYTES, "a gradient that is a list of rows");                              \
        return LEAT_OK;                                                                                      \
    }

PREPARE_UPDATE(sgd)
PREPARE_UPDATE(rmsprop)
PREPARE_UPDATE(adagrad)
PREPARE_UPDATE(adadelta)
PREPARE_UPDATE(adam)
PREPARE_UPDATE(adamax)
PREPARE_UPDATE(nadam)
PREPARE_UPDATE(lion)
