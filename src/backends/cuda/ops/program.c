/* SPDX-License-Identifier: Apache-2.0 */
/* Builds and launches programs of element-wise steps.  Room: backends/cuda. */
#include "backends/cuda/ops/program.h"

#include <stdio.h>

#include "base/error.h"
#include "base/memory.h"
#include "engine/random.h"
#include "tensor/bfloat16.h"

#define FUNCTION_AGREES(upper, lower, formula, dst)                                                          \
    _Static_assert((int)LEATI_CUDA_##upper == (int)LEATI_FN_##upper, "the numbers of functions differ");
LEATI_FUNCTION_LIST(FUNCTION_AGREES)
#define TYPE_AGREES(name, value, text, bytes)                                                                \
    _Static_assert((int)LEATI_CUDA_##name##_IS == (value), "types differ");
enum {
    LEATI_CUDA_LEAT_F32_IS = LEATI_CUDA_F32,
    LEATI_CUDA_LEAT_F64_IS = LEATI_CUDA_F64,
    LEATI_CUDA_LEAT_I32_IS = LEATI_CUDA_I32,
    LEATI_CUDA_LEAT_I64_IS = LEATI_CUDA_I64,
    LEATI_CUDA_LEAT_U8_IS = LEATI_CUDA_U8,
    LEATI_CUDA_LEAT_BOOL_IS = LEATI_CUDA_BOOL,
    LEATI_CUDA_LEAT_I8_IS = LEATI_CUDA_I8,
    LEATI_CUDA_LEAT_I16_IS = LEATI_CUDA_I16,
    LEATI_CUDA_LEAT_U16_IS = LEATI_CUDA_U16,
    LEATI_CUDA_LEAT_U32_IS = LEATI_CUDA_U32,
    LEATI_CUDA_LEAT_U64_IS = LEATI_CUDA_U64,
    LEATI_CUDA_LEAT_F16_IS = LEATI_CUDA_F16
};
LEAT_DTYPE_LIST(TYPE_AGREES)
_Static_assert((int)LEATI_CUDA_BF16 == 16, "types differ");
_Static_assert((int)LEATI_CUDA_GREATER_EQUAL - (int)LEATI_CUDA_ADD == (int)LEATI_GREATER_EQUAL,
               "binary ops differ");
_Static_assert((int)LEATI_CUDA_MOST_AXES == LEAT_MAX_RANK, "ranks differ");
_Static_assert(sizeof(leati_cuda_program_args) <= 4096, "a kernel's parameter has at most 4 KiB");

leati_cuda_function leati_cuda_function_of(const leati_eltwise *f) {
    return (leati_cuda_function){(int32_t)f->function, f->a, f->b, f->c};
}

/* ---- Which element of an operand belongs to an element of the whole ---- */

leati_cuda_axes leati_cuda_axes_of(const leati_desc *whole, const leati_desc *operand) {
    leati_cuda_axes axes = {.count = 0};
    int64_t strides[LEAT_MAX_RANK] = {0}, step = 1;
    for (int axis = operand->rank - 1; axis >= 0; --axis) {
        strides[axis] = operand->shape[axis] == 1 ? 0 : step;
        step *= operand->shape[axis];
    }
    for (int axis = 0; axis < whole->rank; ++axis) {
        int64_t size = whole->shape[axis];
        int from = axis - (whole->rank - operand->rank);
        int64_t stride = from < 0 ? 0 : strides[from];
        if (size == 1) continue;
        int last = axes.count - 1;
        if (last >= 0 && axes.stride[last] == size * stride) {
            axes.size[last] *= size;
            axes.stride[last] = stride;
            continue;
        }
        axes.size[axes.count] = size;
        axes.stride[axes.count++] = stride;
    }
    if (axes.count == 0) axes.size[axes.count++] = 1;
    return axes;
}

/* Returns false if the program has no room for another map. */
static bool set_index(leati_cuda_program *program, const leati_desc *whole, const leati_desc *operand,
                      leati_cuda_index *out) {
    leati_cuda_axes axes = leati_cuda_axes_of(whole, operand);
    int last = axes.count - 1;
    *out = (leati_cuda_index){.kind = LEATI_CUDA_MAPPED, .inner = axes.size[last]};
    if (axes.count == 1) {
        out->kind = axes.stride[0] == 1 ? LEATI_CUDA_SAME : LEATI_CUDA_SCALAR;
        return true;
    }
    if (axes.count == 2 && axes.stride[0] == 0 && axes.stride[1] == 1) out->kind = LEATI_CUDA_ROW;
    if (axes.count == 2 && axes.stride[0] == 1 && axes.stride[1] == 0) out->kind = LEATI_CUDA_COLUMN;
    if (out->kind != LEATI_CUDA_MAPPED) return true;
    if (program->map_count == LEATI_CUDA_PROGRAM_MAPS) return false;
    out->map = program->map_count++;
    program->args.maps[out->map] = axes;
    return true;
}

/* Returns how quads of an operand can be read if its memory is aligned. */
static int quads_of(const leati_cuda_program *program, const leati_cuda_index *index) {
    const leati_cuda_axes *map = &program->args.maps[index->map];
    bool even = index->inner % 4 == 0;
    switch (index->kind) {
    case LEATI_CUDA_SAME: return LEATI_CUDA_AT_ONCE;
    case LEATI_CUDA_SCALAR: return LEATI_CUDA_EQUAL_QUADS;
    case LEATI_CUDA_ROW: return even ? LEATI_CUDA_AT_ONCE : LEATI_CUDA_APART;
    case LEATI_CUDA_COLUMN: return even ? LEATI_CUDA_EQUAL_QUADS : LEATI_CUDA_APART;
    default: break;
    }
    if (!even) return LEATI_CUDA_APART;
    bool aligned = true;
    for (int k = 0; k < map->count - 1; ++k) aligned = aligned && map->stride[k] % 4 == 0;
    if (map->stride[map->count - 1] == 0) return LEATI_CUDA_EQUAL_QUADS;
    return map->stride[map->count - 1] == 1 && aligned ? LEATI_CUDA_AT_ONCE : LEATI_CUDA_APART;
}

/* Returns `quads`, or APART if four elements of this type or at this address cannot be moved at once. */
static int32_t moved_at_once(int quads, int32_t dtype, const void *data) {
    if (quads != LEATI_CUDA_AT_ONCE) return quads;
    if (dtype != LEATI_CUDA_F32 && dtype != LEATI_CUDA_BF16 && dtype != LEATI_CUDA_U8)
        return LEATI_CUDA_APART;
    size_t bytes = 4 * leati_dtype_bytes((leat_dtype)dtype);
    return (uintptr_t)data % bytes == 0 ? LEATI_CUDA_AT_ONCE : LEATI_CUDA_APART;
}

/* ---- Building ---- */

leati_cuda_program *leati_cuda_program_new(const leati_desc *whole) {
    leati_cuda_program *program = leati_calloc(1, sizeof *program);
    if (!program) return NULL;
    program->args.count = leati_desc_count(whole);
    program->args.wide = program->args.count > INT32_MAX;
    return program;
}

int leati_cuda_program_input(leati_cuda_program *program, const leati_desc *whole, const leati_desc *operand,
                             int arg) {
    int k = program->input_count;
    if (k == LEATI_CUDA_PROGRAM_INPUTS) return -1;
    leati_cuda_source *source = &program->args.inputs[k];
    source->dtype = (int32_t)operand->dtype;
    if (!set_index(program, whole, operand, &source->at)) return -1;
    program->input_arg[k] = arg;
    program->input_count++;
    return k;
}

int leati_cuda_program_output(leati_cuda_program *program, const leati_desc *desc, int arg) {
    int k = program->output_count;
    if (k == LEATI_CUDA_PROGRAM_OUTPUTS) return -1;
    program->args.outputs[k].dtype = (int32_t)desc->dtype;
    program->output_arg[k] = arg;
    program->output_count++;
    return k;
}

leati_cuda_step *leati_cuda_program_step(leati_cuda_program *program, int what, int input) {
    if (program->args.step_count == LEATI_CUDA_PROGRAM_STEPS) return NULL;
    leati_cuda_step *step = &program->args.steps[program->args.step_count++];
    *step = (leati_cuda_step){.what = what, .input = (int8_t)input, .saved = -1, .save = -1, .store = -1};
    return step;
}

leati_cuda_step *leati_cuda_program_dropout(leati_cuda_program *program, const leati_desc *whole,
                                            const leati_attrs *attrs) {
    leati_cuda_draw *draw = &program->args.draw;
    leati_desc drawn = *whole;
    for (int axis = 0; axis < whole->rank; ++axis)
        if (attrs->dropout.shared >> axis & 1u) drawn.shape[axis] = 1;
    if (program->draws || !set_index(program, whole, &drawn, &draw->at)) return NULL;
    program->draws = true;
    draw->stream = attrs->dropout.stream;
    draw->threshold = (uint32_t)leati_dropout_threshold(attrs->dropout.rate);
    draw->scale = leati_dropout_scale(attrs->dropout.rate);
    return leati_cuda_program_step(program, LEATI_CUDA_DROPOUT, -1);
}

static leat_status run_program(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    const leati_cuda_program *program = kernel->state;
    leati_cuda_program_args a = program->args;
    if (a.count == 0) return LEAT_OK;
    for (int k = 0; k < program->input_count; ++k) {
        leati_cuda_source *source = &a.inputs[k];
        source->data = args[program->input_arg[k]];
        source->quads = moved_at_once(quads_of(program, &source->at), source->dtype, source->data);
    }
    for (int k = 0; k < program->output_count; ++k) {
        leati_cuda_target *target = &a.outputs[k];
        target->data = args[program->output_arg[k]];
        target->quads = moved_at_once(LEATI_CUDA_AT_ONCE, target->dtype, target->data);
    }
    a.input_count = program->input_count;
    a.draw.clock = run->clock;
    return leati_cuda_launch(leati_cuda_of(run->device), program->function, &program->grid, &a, err);
}

/* ---- Small tensors ---- */

static leat_status run_small(const leati_kernel *kernel, void *const *args, const leati_run *run,
                             leat_error *err) {
    const leati_cuda_program *program = kernel->state;
    const leati_cuda_program_args *whole = &program->args;
    leati_cuda_small_args a = {.count = (int32_t)whole->count,
                               .input_count = program->input_count,
                               .step_count = whole->step_count,
                               .scale = whole->draw.scale,
                               .threshold = whole->draw.threshold,
                               .stream = whole->draw.stream,
                               .clock = run->clock};
    for (int k = 0; k < program->input_count; ++k)
        a.inputs[k] = (leati_cuda_small_source){.data = args[program->input_arg[k]],
                                                .bf16 = whole->inputs[k].dtype == LEATI_CUDA_BF16,
                                                .kind = whole->inputs[k].at.kind,
                                                .inner = (int32_t)whole->inputs[k].at.inner};
    for (int k = 0; k < whole->step_count; ++k) a.steps[k] = whole->steps[k];
    for (int k = 0; k < program->output_count; ++k) {
        a.outputs[k] = args[program->output_arg[k]];
        a.output_bf16[k] = whole->outputs[k].dtype == LEATI_CUDA_BF16;
    }
    return leati_cuda_launch(leati_cuda_of(run->device), program->function, &program->grid, &a, err);
}

/* Returns true if leati_cuda_small_program can compute the program, and each thread of the device has at most one
 * element. */
static bool is_small(const leati_cuda *cuda, const leati_cuda_program *program) {
    const leati_cuda_program_args *a = &program->args;
    bool small = a->count > 0 && a->count <= (int64_t)cuda->multiprocessors * cuda->threads &&
                 a->step_count <= LEATI_CUDA_SMALL_STEPS && program->input_count <= LEATI_CUDA_SMALL_INPUTS &&
                 program->output_count <= LEATI_CUDA_SMALL_OUTPUTS && program->saved_count == 0 &&
                 (!program->draws || a->draw.at.kind == LEATI_CUDA_SAME);
    for (int k = 0; k < program->input_count; ++k)
        small = small && a->inputs[k].at.kind != LEATI_CUDA_MAPPED &&
                (a->inputs[k].dtype == LEATI_CUDA_F32 || a->inputs[k].dtype == LEATI_CUDA_BF16);
    return small;
}

static leat_status finish_small(leati_cuda *cuda, leati_cuda_program *program, leati_kernel *kernel,
                                leat_error *err) {
    enum { threads = LEATI_CUDA_SMALL_THREADS };
    program->grid =
        (leati_cuda_grid){.x = (unsigned)((program->args.count + threads - 1) / threads), .threads = threads};
    LEATI_TRY(leati_cuda_kernel(cuda, LEATI_CUDA_elementwise, "leati_cuda_small_program", 0,
                                &program->function, err));
    kernel->run = run_small;
    return LEAT_OK;
}

leat_status leati_cuda_program_finish(leati_cuda_program *program, leati_device *device, leati_kernel *kernel,
                                      leat_error *err) {
    enum {
        elements = LEATI_CUDA_PROGRAM_THREADS * LEATI_CUDA_PROGRAM_QUADS * 4,
        blocks_per_multiprocessor = 8
    };
    leati_cuda *cuda = leati_cuda_of(device);
    int64_t blocks = (program->args.count + elements - 1) / elements;
    int64_t most = (int64_t)cuda->multiprocessors * blocks_per_multiprocessor;
    program->grid =
        (leati_cuda_grid){.x = (unsigned)(blocks < most ? blocks : most),
                          .threads = LEATI_CUDA_PROGRAM_THREADS,
                          .shared_bytes = (unsigned)program->saved_count * elements * sizeof(float)};
    kernel->state = program;
    kernel->destroy = leati_cuda_free_state;
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda");
    if (is_small(cuda, program)) return finish_small(cuda, program, kernel, err);
    LEATI_TRY(leati_cuda_kernel(cuda, LEATI_CUDA_elementwise, "leati_cuda_program",
                                program->grid.shared_bytes, &program->function, err));
    kernel->run = run_program;
    return LEAT_OK;
}
