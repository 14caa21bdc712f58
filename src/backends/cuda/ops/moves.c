/* SPDX-License-Identifier: Apache-2.0 */
/* BROADCAST, CONCAT, SLICE, PAD, TRANSPOSE, RESHAPE, REVERSE, COPY and STORE.  All but CONCAT are a walk over the
 * elements of dst with strides in src, after neighbouring axes are merged.  Room: backends/cuda. */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/kernels/moves.h"
#include "backends/cuda/ops/ops.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/op_semantics/infer.h"
#include "tensor/bfloat16.h"

/* ---- The walk ---- */

typedef struct move {
    CUfunction wide_function, function, tiles_function; /* NULL: there is no such variant */
    size_t wide_bytes, bytes;                           /* of a unit */
    leati_cuda_move wide, narrow;
    leati_cuda_tiles tiles;
} move;

static leati_cuda_divisor divisor_of(int64_t divisor) {
    leati_cuda_divisor out = {.divisor = 1, .multiplier = 1};
    if (divisor < 2 || divisor > INT32_MAX) return out;
    out.divisor = (uint32_t)divisor;
    while (((uint64_t)1 << out.shift) < (uint64_t)divisor) ++out.shift;
    uint64_t excess = ((uint64_t)1 << out.shift) - (uint64_t)divisor;
    out.multiplier = (uint32_t)((excess << 32) / (uint64_t)divisor + 1);
    return out;
}

/* Starts a walk over dst whose strides are 0. */
static leati_cuda_move walk_over(const leati_desc *dst) {
    leati_cuda_move m = {.rank = dst->rank, .count = leati_desc_count(dst)};
    for (int d = 0; d < dst->rank; ++d) m.shape[d] = m.size[d] = dst->shape[d];
    return m;
}

static void row_major(const leati_desc *desc, int64_t *stride) {
    int64_t each = 1;
    for (int d = desc->rank - 1; d >= 0; --d) {
        stride[d] = each;
        each *= desc->shape[d];
    }
}

static void set_axis(leati_cuda_move *m, int to, int from) {
    m->shape[to] = m->shape[from];
    m->stride[to] = m->stride[from];
    m->before[to] = m->before[from];
    m->size[to] = m->size[from];
}

static bool is_whole(const leati_cuda_move *m, int d) {
    return m->before[d] == 0 && m->size[d] == m->shape[d];
}

/* Drops axes of one position, and merges each axis with the one before it where that is possible. */
static void merge_axes(leati_cuda_move *m) {
    int kept = 0;
    for (int d = 0; d < m->rank; ++d) {
        if (m->shape[d] == 1 && is_whole(m, d)) continue;
        int last = kept - 1;
        if (last < 0 || !is_whole(m, d) || m->stride[last] != m->stride[d] * m->shape[d]) {
            set_axis(m, kept++, d);
            continue;
        }
        m->shape[last] *= m->shape[d];
        m->before[last] *= m->shape[d];
        m->size[last] *= m->shape[d];
        m->stride[last] = m->stride[d];
    }
    m->rank = kept;
    for (int d = 0; d < kept; ++d) m->divisor[d] = divisor_of(m->shape[d]);
}

static bool can_widen(const leati_cuda_move *m, int64_t k) {
    int last = m->rank - 1;
    if (last < 0 || m->stride[last] != 1 || m->first % k) return false;
    if (m->shape[last] % k || m->before[last] % k || m->size[last] % k) return false;
    for (int d = 0; d < last; ++d)
        if (m->stride[d] % k) return false;
    return true;
}

/* Makes units of k elements. */
static void widen(leati_cuda_move *m, int64_t k) {
    int last = m->rank - 1;
    m->count /= k;
    m->first /= k;
    m->shape[last] /= k;
    m->before[last] /= k;
    m->size[last] /= k;
    for (int d = 0; d < last; ++d) m->stride[d] /= k;
    merge_axes(m);
}

/* Fills the transposition of tiles if the walk is one of a matrix, or of many, with enough rows and columns. */
static bool make_tiles(const leati_cuda_move *m, leati_cuda_tiles *tiles) {
    enum { side = LEATI_CUDA_TILE, least = LEATI_CUDA_TILE / 2 };
    int column = m->rank - 1, row = column - 1;
    int64_t stride[LEATI_CUDA_MOVE_RANK], each = 1;
    while (row >= 0 && m->stride[row] != 1) --row;
    if (m->padded || row < 0 || m->stride[column] == 0 || m->shape[row] < least || m->shape[column] < least)
        return false;
    for (int d = column; d >= 0; --d) {
        stride[d] = each;
        each *= m->shape[d];
    }
    *tiles = (leati_cuda_tiles){.rows = m->shape[row],
                                .columns = m->shape[column],
                                .src_stride = m->stride[column],
                                .dst_stride = stride[row],
                                .row_tiles = (m->shape[row] + side - 1) / side,
                                .column_tiles = (m->shape[column] + side - 1) / side};
    tiles->tiles = tiles->row_tiles * tiles->column_tiles;
    for (int d = 0; d < column; ++d) {
        if (d == row) continue;
        tiles->shape[tiles->rank] = m->shape[d];
        tiles->src_outer[tiles->rank] = m->stride[d];
        tiles->dst_outer[tiles->rank++] = stride[d];
        tiles->tiles *= m->shape[d];
    }
    return tiles->tiles <= INT32_MAX && m->first == 0;
}

static bool aligned(const void *a, const void *b, size_t bytes) {
    return (((uintptr_t)a | (uintptr_t)b) & (bytes - 1)) == 0;
}

static leat_status run_move(const leati_kernel *kernel, void *const *args, const leati_run *run,
                            leat_error *err) {
    const move *state = kernel->state;
    leati_cuda *cuda = leati_cuda_of(run->device);
    if (state->narrow.count == 0) return LEAT_OK;
    if (state->tiles_function) {
        leati_cuda_tiles a = state->tiles;
        const int64_t most = (int64_t)cuda->multiprocessors * 32;
        leati_cuda_grid grid = {.x = (unsigned)(a.tiles < most ? a.tiles : most),
                                .threads = LEATI_CUDA_TILE_THREADS};
        a.src = args[0];
        a.dst = args[1];
        return leati_cuda_launch(cuda, state->tiles_function, &grid, &a, err);
    }
    bool is_wide = state->wide_function && aligned(args[0], args[1], state->wide_bytes);
    leati_cuda_move a = is_wide ? state->wide : state->narrow;
    leati_cuda_grid grid = leati_cuda_grid_for(cuda, a.count);
    a.src = args[0];
    a.dst = args[1];
    return leati_cuda_launch(cuda, is_wide ? state->wide_function : state->function, &grid, &a, err);
}

static leat_status find_function(leati_cuda *cuda, const char *stem, size_t bytes, CUfunction *out,
                                 leat_error *err) {
    char name[64];
    snprintf(name, sizeof name, "leati_cuda_%s_%d", stem, (int)bytes);
    return leati_cuda_kernel(cuda, LEATI_CUDA_moves, name, 0, out, err);
}

/* Returns how many elements the widest unit has with which the walk works. */
static int64_t widest(const leati_cuda_move *m, size_t element) {
    int64_t k = 16 / (int64_t)element;
    while (k > 1 && !can_widen(m, k)) k /= 2;
    return k;
}

static leat_status choose_functions(leati_cuda *cuda, move *state, size_t element, leat_error *err) {
    int64_t k = widest(&state->narrow, element);
    state->bytes = element;
    LEATI_TRY(find_function(cuda, "move", element, &state->function, err));
    if (k > 1) {
        state->wide = state->narrow;
        widen(&state->wide, k);
        state->wide_bytes = element * (size_t)k;
        LEATI_TRY(find_function(cuda, "move", state->wide_bytes, &state->wide_function, err));
    } else if (element <= 8 && make_tiles(&state->narrow, &state->tiles)) {
        LEATI_TRY(find_function(cuda, "transpose", element, &state->tiles_function, err));
    }
    return LEAT_OK;
}

static leat_status prepare_move(const leati_task *task, const leati_desc *dst, leati_cuda_move walk,
                                leati_kernel *kernel, char *why, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(task->device);
    leat_dtype from = task->inputs[0].dtype, to = dst->dtype;
    const char *conversion = NULL;
    if (from == LEATI_BF16 && to == LEAT_F32) conversion = "leati_cuda_move_to_f32";
    if (from == LEAT_F32 && to == LEATI_BF16) conversion = "leati_cuda_move_to_bf16";
    if (from != to && !conversion) {
        snprintf(why, LEATI_REASON_BYTES, "%s to %s", leati_dtype_name(from), leati_dtype_name(to));
        return LEAT_OK;
    }
    move *state = leati_calloc(1, sizeof *state);
    if (!state) return leati_fail_memory(err, sizeof *state, "a kernel");
    kernel->state = state;
    kernel->destroy = leati_cuda_free_state;
    merge_axes(&walk);
    state->narrow = walk;
    if (conversion)
        LEATI_TRY(leati_cuda_kernel(cuda, LEATI_CUDA_moves, conversion, 0, &state->function, err));
    else
        LEATI_TRY(choose_functions(cuda, state, leati_dtype_bytes(to), err));
    kernel->run = run_move;
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda%s",
             state->tiles_function ? " tiles" : "");
    return LEAT_OK;
}

LEATI_CUDA_PREPARE(broadcast) {
    const leati_desc *src = &task->inputs[0], *dst = &task->outputs[0];
    leati_cuda_move m = walk_over(dst);
    int64_t stride[LEAT_MAX_RANK];
    int missing = dst->rank - src->rank;
    row_major(src, stride);
    for (int d = 0; d < src->rank; ++d) m.stride[missing + d] = src->shape[d] == 1 ? 0 : stride[d];
    return prepare_move(task, dst, m, kernel, why, err);
}

LEATI_CUDA_PREPARE(slice) {
    leati_cuda_move m = walk_over(&task->outputs[0]);
    row_major(&task->inputs[0], m.stride);
    for (int d = 0; d < m.rank; ++d) m.first += task->attrs->slice.start[d] * m.stride[d];
    return prepare_move(task, &task->outputs[0], m, kernel, why, err);
}

LEATI_CUDA_PREPARE(pad) {
    const leati_desc *src = &task->inputs[0], *dst = &task->outputs[0];
    leati_cuda_move m = walk_over(dst);
    const float value = task->attrs->pad.value;
    row_major(src, m.stride);
    m.padded = true;
    for (int d = 0; d < m.rank; ++d) {
        m.before[d] = task->attrs->pad.before[d];
        m.size[d] = src->shape[d];
    }
    uint32_t bits = leati_bfloat16_of_float(value);
    bits |= bits << 16;
    if (dst->dtype != LEATI_BF16) memcpy(&bits, &value, sizeof bits);
    for (int i = 0; i < 4; ++i) m.value[i] = bits;
    return prepare_move(task, dst, m, kernel, why, err);
}

LEATI_CUDA_PREPARE(transpose) {
    leati_cuda_move m = walk_over(&task->outputs[0]);
    int64_t stride[LEAT_MAX_RANK];
    row_major(&task->inputs[0], stride);
    for (int d = 0; d < m.rank; ++d) m.stride[d] = stride[task->attrs->transpose.perm[d]];
    return prepare_move(task, &task->outputs[0], m, kernel, why, err);
}

LEATI_CUDA_PREPARE(reverse) {
    leati_cuda_move m = walk_over(&task->outputs[0]);
    int axis = task->attrs->reverse.axis;
    row_major(&task->inputs[0], m.stride);
    m.first = (m.shape[axis] - 1) * m.stride[axis];
    m.stride[axis] = -m.stride[axis];
    return prepare_move(task, &task->outputs[0], m, kernel, why, err);
}

/* A kernel and not a copy of the driver: a copy is a node of another kind in a recording, and starts later. */
static leat_status prepare_copy(const leati_task *task, const leati_desc *dst, leati_kernel *kernel,
                                char *why, leat_error *err) {
    leati_cuda_move m = walk_over(dst);
    row_major(dst, m.stride);
    return prepare_move(task, dst, m, kernel, why, err);
}

/* RESHAPE runs only where the plan cannot make it a view of its input. */
LEATI_CUDA_PREPARE(reshape) {
    return prepare_copy(task, &task->outputs[0], kernel, why, err);
}

LEATI_CUDA_PREPARE(copy) {
    return prepare_copy(task, &task->outputs[0], kernel, why, err);
}

LEATI_CUDA_PREPARE(store) {
    return prepare_copy(task, &task->inputs[1], kernel, why, err);
}

/* ---- Concatenation ---- */

typedef struct concat {
    CUfunction wide_function, function;
    size_t wide_bytes;
    int input_count;
    leati_cuda_joined wide, narrow;
} concat;

/* Makes units of k elements. */
static leati_cuda_joined concat_in_units(leati_cuda_joined a, int input_count, int64_t k) {
    a.stride /= k;
    for (int i = 0; i < input_count; ++i) {
        a.length[i] /= k;
        a.offset[i] /= k;
        a.divisor[i] = divisor_of(a.length[i]);
    }
    return a;
}

static leat_status run_concat(const leati_kernel *kernel, void *const *args, const leati_run *run,
                              leat_error *err) {
    const concat *state = kernel->state;
    leati_cuda *cuda = leati_cuda_of(run->device);
    const int n = state->input_count;
    bool is_wide = state->wide_function != NULL;
    for (int i = 0; i < n && is_wide; ++i) is_wide = aligned(args[i], args[n], state->wide_bytes);
    leati_cuda_joined a = is_wide ? state->wide : state->narrow;
    int64_t longest = 0;
    for (int i = 0; i < n; ++i) {
        a.src[i] = args[i];
        if (a.length[i] > longest) longest = a.length[i];
    }
    a.dst = args[n];
    if (a.outer * longest == 0) return LEAT_OK;
    leati_cuda_grid grid = leati_cuda_grid_for(cuda, a.outer * longest);
    grid.y = (unsigned)n;
    return leati_cuda_launch(cuda, is_wide ? state->wide_function : state->function, &grid, &a, err);
}

static leat_status find_concat_functions(leati_cuda *cuda, concat *state, size_t element, leat_error *err) {
    int64_t k = 16 / (int64_t)element;
    for (int i = 0; i < state->input_count; ++i)
        while (state->narrow.length[i] % k) k /= 2;
    LEATI_TRY(find_function(cuda, "concat", element, &state->function, err));
    if (k == 1) return LEAT_OK;
    state->wide = concat_in_units(state->narrow, state->input_count, k);
    state->wide_bytes = element * (size_t)k;
    return find_function(cuda, "concat", state->wide_bytes, &state->wide_function, err);
}

LEATI_CUDA_PREPARE(concat) {
    const leati_desc *dst = &task->outputs[0];
    const int n = leati_op_inputs(task), axis = task->attrs->concat.axis;
    for (int i = 0; i < n; ++i)
        if (task->inputs[i].dtype != dst->dtype || n > LEATI_CUDA_CONCAT_MOST) {
            snprintf(why, LEATI_REASON_BYTES, "mixed types, or too many inputs");
            return LEAT_OK;
        }
    concat *state = leati_calloc(1, sizeof *state);
    if (!state) return leati_fail_memory(err, sizeof *state, "a kernel");
    kernel->state = state;
    kernel->destroy = leati_cuda_free_state;
    leati_axis_split whole = leati_split_at(dst, axis);
    leati_cuda_joined a = {.outer = whole.outer, .stride = whole.length * whole.inner};
    for (int i = 0; i < n; ++i) {
        a.length[i] = task->inputs[i].shape[axis] * whole.inner;
        if (i + 1 < n) a.offset[i + 1] = a.offset[i] + a.length[i];
    }
    state->input_count = n;
    state->narrow = concat_in_units(a, n, 1);
    LEATI_TRY(find_concat_functions(leati_cuda_of(task->device), state, leati_dtype_bytes(dst->dtype), err));
    kernel->run = run_concat;
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda");
    return LEAT_OK;
}
