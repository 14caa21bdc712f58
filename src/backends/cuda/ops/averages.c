/* SPDX-License-Identifier: Apache-2.0 */
/* MOVING_AVERAGE: one launch for all averages of a group.  Room: backends/cuda. */
#include <stdio.h>

#include "backends/cuda/kernels/elementwise.h"
#include "backends/cuda/ops/ops.h"
#include "base/error.h"
#include "base/memory.h"
#include "tensor/bfloat16.h"

/* The state of a kernel. */
typedef struct averages {
    leati_cuda_averages_args args;
    CUfunction function;
    leati_cuda_grid grid;
    int count;
    int state_arg[LEATI_CUDA_MOST_AVERAGES], value_arg[LEATI_CUDA_MOST_AVERAGES];
} averages;

static leat_status run_averages(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                leat_error *err) {
    const averages *s = kernel->state;
    leati_cuda_averages_args a = s->args;
    if (s->grid.x == 0) return LEAT_OK;
    for (int k = 0; k < s->count; ++k) {
        a.averages[k].state = args[s->state_arg[k]];
        a.averages[k].value = args[s->value_arg[k]];
    }
    return leati_cuda_launch(leati_cuda_of(run->device), s->function, &s->grid, &a, err);
}

/* Returns true if the group has averages of linear functions only, of types that the kernel knows. */
static bool is_known(const leati_group *group, char *why) {
    int count = 0;
    for (int m = 0; m < group->length; ++m) count += group->members[m].op == LEATI_OP_MOVING_AVERAGE;
    bool known = count <= LEATI_CUDA_MOST_AVERAGES;
    for (int k = 0; k < group->input_count; ++k)
        known = known && (group->inputs[k].dtype == LEAT_F32 || group->inputs[k].dtype == LEATI_BF16);
    if (!known) snprintf(why, LEATI_REASON_BYTES, "too many averages, or their types");
    return known;
}

/* Adds the average of member m. */
static void add(const leati_group *group, int m, averages *s) {
    const leati_group_member *member = &group->members[m];
    leati_cuda_average *average = &s->args.averages[s->count];
    int32_t state = member->operands[0], value = member->operands[1];
    *average = (leati_cuda_average){.momentum = member->attrs->moving_average.momentum, .a = 1};
    if (value < 0) {
        const leati_group_member *linear = &group->members[-1 - value];
        average->a = linear->attrs->eltwise.a;
        average->b = linear->attrs->eltwise.b;
        value = linear->operands[0];
    }
    average->count = leati_desc_count(&group->inputs[state]);
    average->dtype = (int32_t)group->inputs[value].dtype;
    s->state_arg[s->count] = state;
    s->value_arg[s->count++] = value;
}

leat_status leati_cuda_prepare_averages(const leati_group *group, leati_kernel *kernel, char *why,
                                        leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(group->device);
    if (!is_known(group, why)) return LEAT_OK;
    averages *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a kernel");
    kernel->state = s;
    kernel->destroy = leati_cuda_free_state;
    int64_t longest = 0;
    for (int m = 0; m < group->length; ++m) {
        if (group->members[m].op != LEATI_OP_MOVING_AVERAGE) continue;
        add(group, m, s);
        int64_t count = s->args.averages[s->count - 1].count;
        if (count > longest) longest = count;
    }
    s->grid = leati_cuda_grid_for(cuda, longest);
    s->grid.y = (unsigned)s->count;
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda, %d averages in one", s->count);
    LEATI_TRY(leati_cuda_kernel(cuda, LEATI_CUDA_elementwise, "leati_cuda_averages", 0, &s->function, err));
    kernel->run = run_averages;
    return LEAT_OK;
}

LEATI_CUDA_PREPARE(moving_average) {
    leati_group group = {.length = 1, .input_count = 2, .device = task->device};
    group.members[0] = (leati_group_member){.op = task->op, .attrs = task->attrs, .operands = {0, 1}};
    group.inputs[0] = task->inputs[0];
    group.inputs[1] = task->inputs[1];
    LEATI_TRY(leati_cuda_prepare_averages(&group, kernel, why, err));
    if (kernel->run) snprintf(kernel->implementation, sizeof kernel->implementation, "cuda");
    return LEAT_OK;
}
