/* SPDX-License-Identifier: Apache-2.0 */
/* ELTWISE, ELTWISE_BWD, BINARY, CAST, DROPOUT and RANDOM_NORMAL: most of them are programs of a few
 * element-wise steps.  Room: backends/cuda. */
#include <stdio.h>

#include "backends/cuda/ops/ops.h"
#include "backends/cuda/ops/program.h"
#include "base/error.h"
#include "base/memory.h"
#include "tensor/bfloat16.h"

/* Starts a program that computes the task's output 0 from its input `first`. */
static leat_status begin(const leati_task *task, int first, leati_cuda_program **out, leat_error *err) {
    const leati_desc *whole = &task->outputs[0];
    *out = leati_cuda_program_new(whole);
    if (!*out) return leati_fail_memory(err, sizeof **out, "a kernel");
    leati_cuda_program_step(*out, LEATI_CUDA_LOAD,
                            leati_cuda_program_input(*out, whole, &task->inputs[first], first));
    return LEAT_OK;
}

/* Stores the result of the last step in output 0. */
static leat_status end(const leati_task *task, leati_cuda_program *program, leati_kernel *kernel,
                       leat_error *err) {
    leati_cuda_step *last = &program->args.steps[program->args.step_count - 1];
    last->store = (int8_t)leati_cuda_program_output(program, &task->outputs[0], task->input_count);
    return leati_cuda_program_finish(program, task->device, kernel, err);
}

LEATI_CUDA_PREPARE(eltwise) {
    leati_cuda_program *program;
    (void)why;
    LEATI_TRY(begin(task, 0, &program, err));
    leati_cuda_program_step(program, LEATI_CUDA_FUNCTION, -1)->f =
        leati_cuda_function_of(&task->attrs->eltwise);
    return end(task, program, kernel, err);
}

LEATI_CUDA_PREPARE(eltwise_bwd) {
    const leati_eltwise *f = &task->attrs->eltwise;
    leati_cuda_program *program;
    (void)why;
    LEATI_TRY(begin(task, 1, &program, err));
    int at = leati_cuda_program_input(program, &task->outputs[0], &task->inputs[0], 0);
    int what = leati_eltwise_uses_dst(f) ? LEATI_CUDA_SLOPE_FROM_DST : LEATI_CUDA_SLOPE;
    leati_cuda_program_step(program, what, at)->f = leati_cuda_function_of(f);
    return end(task, program, kernel, err);
}

LEATI_CUDA_PREPARE(dropout) {
    leati_cuda_program *program;
    (void)why;
    LEATI_TRY(begin(task, 0, &program, err));
    leati_cuda_program_dropout(program, &task->outputs[0], task->attrs);
    return end(task, program, kernel, err);
}

/* ---- BINARY ---- */

typedef struct comparison {
    leati_cuda_compare_args args;
    CUfunction function;
    leati_cuda_grid grid;
} comparison;

static leat_status run_comparison(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                  leat_error *err) {
    const comparison *c = kernel->state;
    leati_cuda_compare_args a = c->args;
    if (a.count == 0) return LEAT_OK;
    a.a = args[0];
    a.b = args[1];
    a.dst = args[2];
    return leati_cuda_launch(leati_cuda_of(run->device), c->function, &c->grid, &a, err);
}

/* Prepares a comparison of types whose numbers f32 cannot hold. */
static leat_status prepare_comparison(const leati_task *task, leati_kernel *kernel, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(task->device);
    const leati_desc *whole = &task->outputs[0];
    comparison *c = leati_calloc(1, sizeof *c);
    if (!c) return leati_fail_memory(err, sizeof *c, "a kernel");
    c->args = (leati_cuda_compare_args){.count = leati_desc_count(whole),
                                        .dtype = (int32_t)task->inputs[0].dtype,
                                        .to = (int32_t)whole->dtype,
                                        .kind = LEATI_CUDA_ADD + (int32_t)task->attrs->binary.kind};
    for (int k = 0; k < 2; ++k) c->args.axes[k] = leati_cuda_axes_of(whole, &task->inputs[k]);
    c->grid = leati_cuda_grid_for(cuda, c->args.count);
    kernel->state = c;
    kernel->destroy = leati_cuda_free_state;
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda");
    LEATI_TRY(leati_cuda_kernel(cuda, LEATI_CUDA_elementwise, "leati_cuda_compare", 0, &c->function, err));
    kernel->run = run_comparison;
    return LEAT_OK;
}

/* Returns true if f32 holds every number of the type. */
static bool fits_f32(leat_dtype dtype) {
    switch ((int)dtype) {
    case LEAT_F64:
    case LEAT_I32:
    case LEAT_I64:
    case LEAT_U32:
    case LEAT_U64: return false;
    default: return true;
    }
}

LEATI_CUDA_PREPARE(binary) {
    const leati_attrs *attrs = task->attrs;
    bool post = attrs->post.kinds != 0;
    leati_cuda_program *program;
    if (!fits_f32(task->inputs[0].dtype)) {
        if (!post) return prepare_comparison(task, kernel, err);
        snprintf(why, LEATI_REASON_BYTES, "a function of a comparison");
        return LEAT_OK;
    }
    LEATI_TRY(begin(task, 0, &program, err));
    int other = leati_cuda_program_input(program, &task->outputs[0], &task->inputs[1], 1);
    leati_cuda_program_step(program, LEATI_CUDA_ADD + (int)attrs->binary.kind, other);
    if (post)
        leati_cuda_program_step(program, LEATI_CUDA_FUNCTION, -1)->f =
            leati_cuda_function_of(&attrs->post.function);
    return end(task, program, kernel, err);
}

/* ---- CAST ---- */

typedef struct conversion {
    leati_cuda_convert_args args;
    CUfunction function;
    leati_cuda_grid grid;
} conversion;

static leat_status run_conversion(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                  leat_error *err) {
    const conversion *c = kernel->state;
    leati_cuda_convert_args a = c->args;
    if (a.count == 0) return LEAT_OK;
    a.src = args[0];
    a.dst = args[1];
    return leati_cuda_launch(leati_cuda_of(run->device), c->function, &c->grid, &a, err);
}

/* Prepares a conversion to another type than f32 and bf16, without a scale. */
static leat_status prepare_conversion(const leati_task *task, leati_kernel *kernel, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(task->device);
    conversion *c = leati_calloc(1, sizeof *c);
    if (!c) return leati_fail_memory(err, sizeof *c, "a kernel");
    c->args = (leati_cuda_convert_args){.count = leati_desc_count(&task->inputs[0]),
                                        .from = (int32_t)task->inputs[0].dtype,
                                        .to = (int32_t)task->outputs[0].dtype};
    c->grid = leati_cuda_grid_for(cuda, c->args.count);
    kernel->state = c;
    kernel->destroy = leati_cuda_free_state;
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda");
    LEATI_TRY(leati_cuda_kernel(cuda, LEATI_CUDA_elementwise, "leati_cuda_convert", 0, &c->function, err));
    kernel->run = run_conversion;
    return LEAT_OK;
}

LEATI_CUDA_PREPARE(cast) {
    leat_dtype to = task->outputs[0].dtype;
    float scale = task->attrs->cast.scale;
    leati_cuda_program *program;
    (void)why;
    if (to != LEAT_F32 && to != LEATI_BF16) return prepare_conversion(task, kernel, err);
    LEATI_TRY(begin(task, 0, &program, err));
    if (scale != 1) {
        leati_eltwise times = {.function = LEATI_FN_LINEAR, .a = scale};
        leati_cuda_program_step(program, LEATI_CUDA_FUNCTION, -1)->f = leati_cuda_function_of(&times);
    }
    return end(task, program, kernel, err);
}

/* ---- RANDOM_NORMAL ---- */

typedef struct normal {
    leati_cuda_normal_args args;
    CUfunction function;
    leati_cuda_grid grid;
} normal;

static leat_status run_normal(const leati_kernel *kernel, void *const *args, const leati_run *run,
                              leat_error *err) {
    const normal *n = kernel->state;
    leati_cuda_normal_args a = n->args;
    if (a.count == 0) return LEAT_OK;
    a.dst = args[1];
    a.clock = run->clock;
    return leati_cuda_launch(leati_cuda_of(run->device), n->function, &n->grid, &a, err);
}

LEATI_CUDA_PREPARE(random_normal) {
    leati_cuda *cuda = leati_cuda_of(task->device);
    normal *n = leati_calloc(1, sizeof *n);
    (void)why;
    if (!n) return leati_fail_memory(err, sizeof *n, "a kernel");
    n->args = (leati_cuda_normal_args){.dtype = (int32_t)task->outputs[0].dtype,
                                       .mean = task->attrs->random_normal.mean,
                                       .stddev = task->attrs->random_normal.stddev,
                                       .stream = task->attrs->random_normal.stream,
                                       .count = leati_desc_count(&task->outputs[0])};
    n->grid = leati_cuda_grid_for(cuda, (n->args.count + 3) / 4);
    kernel->state = n;
    kernel->destroy = leati_cuda_free_state;
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda");
    LEATI_TRY(
        leati_cuda_kernel(cuda, LEATI_CUDA_elementwise, "leati_cuda_random_normal", 0, &n->function, err));
    kernel->run = run_normal;
    return LEAT_OK;
}
