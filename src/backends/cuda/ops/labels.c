/* SPDX-License-Identifier: Apache-2.0 */
/* GATHER, GATHER_BWD, ONE_HOT, ARGMAX and IN_TOP_K.  Room: backends/cuda. */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/kernels/labels.h"
#include "backends/cuda/ops/ops.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/op_semantics/index.h"
#include "engine/op_semantics/infer.h"
#include "tensor/bfloat16.h"

/* The state of all kernels here: the parameters without the addresses, and the functions. */
typedef struct labels {
    leati_desc indices_desc;
    CUfunction wide_function,
        function; /* wide: a thread moves 4 neighbours; NULL: there is no such variant */
    leati_cuda_grid wide_grid, grid;
    union {
        leati_cuda_gather_args gather;
        leati_cuda_scatter_args scatter;
        leati_cuda_one_hot_args one_hot;
        leati_cuda_argmax_args argmax;
        leati_cuda_top_k_args top_k;
    } wide, narrow;
} labels;

static const char *real_name(leat_dtype dtype) {
    return dtype == LEATI_BF16 ? "bf16" : dtype == LEAT_F32 ? "f32" : "";
}

/* Returns the number of leati_cuda_number for a data type. */
static int32_t number_of(leat_dtype dtype) {
    int32_t bytes = (int32_t)leati_dtype_bytes(dtype);
    if (dtype == LEATI_BF16) return LEATI_CUDA_BFLOAT + bytes;
    switch (dtype) {
    case LEAT_F32:
    case LEAT_F64:
    case LEAT_F16: return LEATI_CUDA_REAL + bytes;
    case LEAT_BOOL: return LEATI_CUDA_TRUTH + bytes;
    case LEAT_U8:
    case LEAT_U16:
    case LEAT_U32:
    case LEAT_U64: return LEATI_CUDA_UNSIGNED + bytes;
    default: return LEATI_CUDA_SIGNED + bytes;
    }
}

static leati_cuda_indices indices_of(const leati_desc *desc, int64_t limit) {
    leati_cuda_indices out = {.count = leati_desc_count(desc),
                              .limit = limit,
                              .number = number_of(desc->dtype),
                              .place_bits = 1};
    while (((int64_t)1 << out.place_bits) <= out.count) ++out.place_bits;
    return out;
}

/* Reads the number that `report` of kernels/labels.cu makes. */
static leat_status explain(const leati_desc *desc, const leati_cuda_indices *indices, uint64_t fault,
                           leat_error *err) {
    const int bits = 64 - indices->place_bits;
    int64_t place = (int64_t)(fault >> bits);
    uint64_t upper = fault << indices->place_bits; /* the value in the upper bits */
    double number;
    if (indices->number >= LEATI_CUDA_REAL) {
        memcpy(&number, &upper, sizeof number);
    } else {
        uint64_t value = upper >> indices->place_bits, sign = (uint64_t)1 << (bits - 1);
        number = (double)((int64_t)(value ^ sign) - (int64_t)sign);
    }
    return leati_index_fail_number(desc, number, place, indices->limit, err);
}

static leat_status explain_gather(const leati_kernel *kernel, uint64_t fault, leat_error *err) {
    const labels *state = kernel->state;
    return explain(&state->indices_desc, &state->narrow.gather.indices, fault, err);
}

static leat_status explain_scatter(const leati_kernel *kernel, uint64_t fault, leat_error *err) {
    const labels *state = kernel->state;
    return explain(&state->indices_desc, &state->narrow.scatter.indices, fault, err);
}

static leat_status make_state(leati_kernel *kernel, labels **out, leat_error *err) {
    *out = leati_calloc(1, sizeof **out);
    if (!*out) return leati_fail_memory(err, sizeof **out, "a kernel");
    kernel->state = *out;
    kernel->destroy = leati_cuda_free_state;
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda");
    return LEAT_OK;
}

/* Finds leati_cuda_<name>_<type of from>_<type of to>_<width>; "" and 0 stand for nothing. */
static leat_status find_function(const leati_task *task, const char *name, const char *from, const char *to,
                                 int width, CUfunction *out, leat_error *err) {
    char text[96], number[8] = "";
    if (width) snprintf(number, sizeof number, "_%d", width);
    snprintf(text, sizeof text, "leati_cuda_%s%s%s%s%s%s", name, *from ? "_" : "", from, *to ? "_" : "", to,
             number);
    return leati_cuda_kernel(leati_cuda_of(task->device), LEATI_CUDA_labels, text, 0, out, err);
}

static bool refuses(const leati_desc *desc, char *why) {
    if (*real_name(desc->dtype)) return false;
    snprintf(why, LEATI_REASON_BYTES, "type %s", leati_dtype_name(desc->dtype));
    return true;
}

static bool aligned(const void *a, const void *b) {
    return (((uintptr_t)a | (uintptr_t)b) & 15) == 0;
}

/* ---- GATHER ---- */

static leat_status run_gather(const leati_kernel *kernel, void *const *args, const leati_run *run,
                              leat_error *err) {
    const labels *state = kernel->state;
    bool is_wide = state->wide_function && aligned(args[0], args[2]);
    leati_cuda_gather_args a = is_wide ? state->wide.gather : state->narrow.gather;
    if (a.indices.count * a.columns == 0) return LEAT_OK;
    a.indices.data = args[1];
    a.indices.fault = run->fault;
    a.table = args[0];
    a.dst = args[2];
    return leati_cuda_launch(leati_cuda_of(run->device), is_wide ? state->wide_function : state->function,
                             is_wide ? &state->wide_grid : &state->grid, &a, err);
}

LEATI_CUDA_PREPARE(gather) {
    const leati_desc *table = &task->inputs[0], *indices = &task->inputs[1], *dst = &task->outputs[0];
    const leati_cuda *cuda = leati_cuda_of(task->device);
    labels *state;
    if (refuses(table, why) || refuses(dst, why)) return LEAT_OK;
    LEATI_TRY(make_state(kernel, &state, err));
    state->indices_desc = *indices;
    state->narrow.gather =
        (leati_cuda_gather_args){.indices = indices_of(indices, table->shape[0]), .columns = table->shape[1]};
    state->wide.gather = state->narrow.gather;
    state->wide.gather.columns /= 4;
    const int64_t count = state->narrow.gather.indices.count * table->shape[1];
    state->grid = leati_cuda_grid_for(cuda, count);
    state->wide_grid = leati_cuda_grid_for(cuda, count / 4);
    const char *from = real_name(table->dtype), *to = real_name(dst->dtype);
    LEATI_TRY(find_function(task, "gather", from, to, 1, &state->function, err));
    if (table->shape[1] % 4 == 0)
        LEATI_TRY(find_function(task, "gather", from, to, 4, &state->wide_function, err));
    kernel->run = run_gather;
    kernel->explain = explain_gather;
    return LEAT_OK;
}

/* ---- GATHER_BWD ---- */

static leat_status run_scatter(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    const labels *state = kernel->state;
    bool is_wide = state->wide_function && aligned(args[1], args[2]);
    leati_cuda_scatter_args a = is_wide ? state->wide.scatter : state->narrow.scatter;
    if (a.indices.limit * a.columns == 0) return LEAT_OK;
    a.indices.data = args[0];
    a.indices.fault = run->fault;
    a.diff = args[1];
    a.dst = args[2];
    return leati_cuda_launch(leati_cuda_of(run->device), is_wide ? state->wide_function : state->function,
                             is_wide ? &state->wide_grid : &state->grid, &a, err);
}

/* Chooses the lanes and the rows of a block: columns of up to 128 bytes, and as many blocks as run at the same time.
 * Each block reads all indices, so that more blocks do not pay. */
static leati_cuda_grid cut(const leati_cuda *cuda, leati_cuda_scatter_args *a, int width) {
    const int64_t most_lanes = 32 / width;
    a->lanes = 1;
    while (a->lanes < most_lanes && a->lanes * width < a->columns) a->lanes *= 2;
    int64_t slices = (a->columns + a->lanes * width - 1) / (a->lanes * width);
    int64_t parts = slices > 0 ? 2 * cuda->multiprocessors / slices : 1;
    if (parts < 1) parts = 1;
    a->block_rows = (a->indices.limit + parts - 1) / parts;
    if (a->block_rows > LEATI_CUDA_GATHER_ROWS) a->block_rows = LEATI_CUDA_GATHER_ROWS;
    if (a->block_rows < 1) a->block_rows = 1;
    return (leati_cuda_grid){.x = (unsigned)((a->indices.limit + a->block_rows - 1) / a->block_rows),
                             .y = (unsigned)slices,
                             .threads = LEATI_CUDA_GATHER_THREADS};
}

LEATI_CUDA_PREPARE(gather_bwd) {
    const leati_desc *indices = &task->inputs[0], *diff = &task->inputs[1], *dst = &task->outputs[0];
    const leati_cuda *cuda = leati_cuda_of(task->device);
    enum { most_slices = 65535 };
    labels *state;
    if (refuses(diff, why)) return LEAT_OK;
    if (dst->dtype != LEAT_F32 || dst->shape[1] > (int64_t)most_slices * 32) {
        snprintf(why, LEATI_REASON_BYTES, "a gradient in bf16, or more than 2 million columns");
        return LEAT_OK;
    }
    LEATI_TRY(make_state(kernel, &state, err));
    state->indices_desc = *indices;
    state->narrow.scatter =
        (leati_cuda_scatter_args){.indices = indices_of(indices, dst->shape[0]), .columns = dst->shape[1]};
    state->wide = state->narrow;
    state->grid = cut(cuda, &state->narrow.scatter, 1);
    state->wide_grid = cut(cuda, &state->wide.scatter, 4);
    const char *from = real_name(diff->dtype);
    LEATI_TRY(find_function(task, "scatter", from, "", 1, &state->function, err));
    if (dst->shape[1] % 4 == 0)
        LEATI_TRY(find_function(task, "scatter", from, "", 4, &state->wide_function, err));
    kernel->run = run_scatter;
    kernel->explain = explain_scatter;
    return LEAT_OK;
}

/* ---- ONE_HOT ---- */

static leat_status run_one_hot(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    const labels *state = kernel->state;
    leati_cuda_one_hot_args a = state->narrow.one_hot;
    if (a.indices.count == 0) return LEAT_OK;
    a.indices.data = args[0];
    a.dst = args[1];
    return leati_cuda_launch(leati_cuda_of(run->device), state->function, &state->grid, &a, err);
}

LEATI_CUDA_PREPARE(one_hot) {
    const int64_t depth = task->attrs->one_hot.depth;
    labels *state;
    if (refuses(&task->outputs[0], why)) return LEAT_OK;
    LEATI_TRY(make_state(kernel, &state, err));
    state->narrow.one_hot =
        (leati_cuda_one_hot_args){.indices = indices_of(&task->inputs[0], depth), .depth = depth};
    state->grid = leati_cuda_grid_for(leati_cuda_of(task->device), leati_desc_count(&task->outputs[0]));
    LEATI_TRY(
        find_function(task, "one_hot", "", real_name(task->outputs[0].dtype), 0, &state->function, err));
    kernel->run = run_one_hot;
    return LEAT_OK;
}

/* ---- ARGMAX ---- */

static leat_status run_argmax(const leati_kernel *kernel, void *const *args, const leati_run *run,
                              leat_error *err) {
    const labels *state = kernel->state;
    leati_cuda_argmax_args a = state->narrow.argmax;
    if (a.outer * a.inner == 0) return LEAT_OK;
    a.src = args[0];
    a.dst = args[1];
    return leati_cuda_launch(leati_cuda_of(run->device), state->function, &state->grid, &a, err);
}

LEATI_CUDA_PREPARE(argmax) {
    const leati_cuda *cuda = leati_cuda_of(task->device);
    const leati_axis_split split = leati_split_at(&task->inputs[0], task->attrs->argmax.axis);
    enum { most_blocks = 1 << 20, most_threads = 1024, per_thread = 4 };
    labels *state;
    if (refuses(&task->inputs[0], why)) return LEAT_OK;
    LEATI_TRY(make_state(kernel, &state, err));
    state->narrow.argmax =
        (leati_cuda_argmax_args){.outer = split.outer, .length = split.length, .inner = split.inner};
    state->grid = leati_cuda_grid_for(cuda, split.outer * split.inner);
    if (split.inner == 1) {
        unsigned threads = 32;
        while (threads < most_threads && (int64_t)threads * per_thread < split.length) threads *= 2;
        state->grid =
            (leati_cuda_grid){.x = (unsigned)(split.outer < most_blocks ? split.outer : most_blocks),
                              .threads = threads};
    }
    LEATI_TRY(find_function(task, split.inner == 1 ? "argmax_rows" : "argmax_lines",
                            real_name(task->inputs[0].dtype), "", 0, &state->function, err));
    kernel->run = run_argmax;
    return LEAT_OK;
}

/* ---- IN_TOP_K ---- */

static leat_status run_in_top_k(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                leat_error *err) {
    const labels *state = kernel->state;
    leati_cuda_top_k_args a = state->narrow.top_k;
    if (a.indices.count == 0) return LEAT_OK;
    a.src = args[0];
    a.indices.data = args[1];
    a.dst = args[2];
    return leati_cuda_launch(leati_cuda_of(run->device), state->function, &state->grid, &a, err);
}

LEATI_CUDA_PREPARE(in_top_k) {
    const leati_desc *src = &task->inputs[0], *dst = &task->outputs[0];
    labels *state;
    if (refuses(src, why) || refuses(dst, why)) return LEAT_OK;
    LEATI_TRY(make_state(kernel, &state, err));
    state->narrow.top_k = (leati_cuda_top_k_args){.indices = indices_of(&task->inputs[1], src->shape[1]),
                                                  .classes = src->shape[1],
                                                  .k = task->attrs->top_k.k};
    state->grid = leati_cuda_grid_for(leati_cuda_of(task->device), src->shape[0] * 32);
    LEATI_TRY(find_function(task, "in_top_k", real_name(src->dtype), real_name(dst->dtype), 0,
                            &state->function, err));
    kernel->run = run_in_top_k;
    return LEAT_OK;
}
