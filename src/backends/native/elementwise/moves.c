/* SPDX-License-Identifier: Apache-2.0 */
/* SLICE, PAD, TRANSPOSE, BROADCAST, REVERSE of elements of four bytes, and CONCAT of any type.  The former are one
 * copy between strided arrays, where axes that are contiguous in both are joined so that the innermost one is
 * long.  Where the innermost axis of the source is not innermost in the destination, squares are transposed, so
 * that whole cache lines are read and written.  CONCAT copies rows of bytes.  Room: backends/native. */
#include <stdio.h>
#include <string.h>

#include "backends/native/simd/isa.h"
#include "backends/native/ops.h"
#include "backends/native/share.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/op_semantics/infer.h"

#define THREAD_BYTES 131072 /* bytes that each thread must have to write */

/* dst[sum of index * to] = src[first_from + sum of index * from], in elements. */
typedef struct moves_state {
    int axes; /* at least 1 */
    int64_t dim[LEAT_MAX_RANK + 1], to[LEAT_MAX_RANK + 1], from[LEAT_MAX_RANK + 1];
    int64_t first_to, first_from;
    /* The number of tasks: the product of all dimensions but the last; with squares, of all but the last two, times
     * tiles. */
    int64_t rows;
    /* With squares: elements of the last axis but one that are copied together, and how many such tiles there are.
     * tile 0: no squares. */
    int64_t tile, tiles;
    bool fill; /* PAD: all of dst is set to value before */
    float value;
    int64_t fill_count;
    const leati_native_isa *isa;
    int threads;
} moves_state;

static void copy_row(const moves_state *s, float *to, const float *from) {
    int last = s->axes - 1;
    int64_t count = s->dim[last], to_step = s->to[last], from_step = s->from[last];
    if (to_step == 1 && from_step == 1) {
        memcpy(to, from, (size_t)count * sizeof *to);
        return;
    }
    /* the element may be of another type than float */
    for (int64_t i = 0; i < count; i++) memcpy(to + i * to_step, from + i * from_step, sizeof *to);
}

static void copy_rows(const moves_state *s, float *dst, const float *src, int64_t first, int64_t last) {
    int64_t index[LEAT_MAX_RANK + 1];
    int64_t to = s->first_to, from = s->first_from, rest = first;
    for (int i = s->axes - 2; i >= 0; i--) {
        index[i] = rest % s->dim[i];
        rest /= s->dim[i];
        to += index[i] * s->to[i];
        from += index[i] * s->from[i];
    }
    for (int64_t row = first; row < last; row++) {
        copy_row(s, dst + to, src + from);
        for (int i = s->axes - 2; i >= 0; i--) {
            to += s->to[i];
            from += s->from[i];
            if (++index[i] < s->dim[i]) break;
            to -= s->dim[i] * s->to[i];
            from -= s->dim[i] * s->from[i];
            index[i] = 0;
        }
    }
}

#define SQUARE 16 /* elements of a cache line */

static void copy_corner(const moves_state *s, float *to, const float *from, int64_t count, int64_t length) {
    int64_t to_step = s->to[s->axes - 2], from_step = s->from[s->axes - 1];
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < length; k++)
            memcpy(to + i * to_step + k, from + k * from_step + i, sizeof *to);
}

/* Copies `count` elements of the last axis but one, for all elements of the last axis. */
static void copy_square(const moves_state *s, float *to, const float *from, int64_t count) {
    int64_t length = s->dim[s->axes - 1], to_step = s->to[s->axes - 2], from_step = s->from[s->axes - 1];
    int64_t lanes = s->isa->lanes, whole = count / lanes * lanes;
    for (int64_t j = 0; j < length; j += lanes, to += lanes, from += lanes * from_step) {
        int64_t rows = length - j < lanes ? length - j : lanes;
        if (rows < lanes) whole = 0;
        for (int64_t i = 0; i < whole; i += lanes)
            s->isa->transpose_square(to + i * to_step, to_step, from + i, from_step);
        if (whole < count) copy_corner(s, to + whole * to_step, from + whole, count - whole, rows);
    }
}

static void copy_squares(const moves_state *s, float *dst, const float *src, int64_t first, int64_t last) {
    int across = s->axes - 2; /* the axis that is innermost in the source */
    for (int64_t at = first; at < last; at++) {
        int64_t rest = at / s->tiles, begin = at % s->tiles * s->tile;
        int64_t to = s->first_to + begin * s->to[across], from = s->first_from + begin;
        for (int i = across - 1; i >= 0; i--) {
            to += rest % s->dim[i] * s->to[i];
            from += rest % s->dim[i] * s->from[i];
            rest /= s->dim[i];
        }
        int64_t left = s->dim[across] - begin;
        copy_square(s, dst + to, src + from, left < s->tile ? left : s->tile);
    }
}

static void copy(const moves_state *s, float *dst, const float *src, int64_t first, int64_t last) {
    if (s->tile > 0)
        copy_squares(s, dst, src, first, last);
    else
        copy_rows(s, dst, src, first, last);
}

static void fill(const moves_state *s, float *dst, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; i++) dst[i] = s->value;
}

static void fill_part(const leati_kernel *kernel, void *const *args, const leati_run *run, int t) {
    const moves_state *s = kernel->state;
    (void)run;
    fill(s, args[1], s->fill_count * t / s->threads, s->fill_count * (t + 1) / s->threads);
}

static void copy_part(const leati_kernel *kernel, void *const *args, const leati_run *run, int t) {
    const moves_state *s = kernel->state;
    (void)run;
    copy(s, args[1], args[0], s->rows * t / s->threads, s->rows * (t + 1) / s->threads);
}

static leat_status run_moves(const leati_kernel *kernel, void *const *args, const leati_run *run,
                             leat_error *err) {
    const moves_state *s = kernel->state;
    (void)err;
    if (s->fill) leati_share(s->threads, fill_part, kernel, args, run);
    leati_share(s->threads, copy_part, kernel, args, run);
    return LEAT_OK;
}

/* Sets the row-major strides, in elements. */
static void strides_of(const leati_desc *desc, int64_t *strides) {
    int64_t stride = 1;
    for (int i = desc->rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= desc->shape[i];
    }
}

/* Adds an axis inside of the axes so far; joins it with the last one where the two are contiguous in both arrays. */
static void add_axis(moves_state *s, int64_t dim, int64_t to, int64_t from) {
    int last = s->axes - 1;
    if (dim == 1) return;
    if (s->axes > 0 && s->to[last] == to * dim && s->from[last] == from * dim) {
        s->dim[last] *= dim;
        s->to[last] = to;
        s->from[last] = from;
        return;
    }
    s->dim[s->axes] = dim;
    s->to[s->axes] = to;
    s->from[s->axes++] = from;
}

/* Chooses squares where the last axis has a stride in the source and another axis has none; moves that axis to the
 * last place but one. */
static void find_squares(moves_state *s) {
    int last = s->axes - 1, across = last - 1;
    if (s->to[last] != 1 || s->from[last] == 1 || s->from[last] == 0) return;
    while (across >= 0 && s->from[across] != 1) across--;
    if (across < 0) return;
    int64_t dim = s->dim[across], to = s->to[across];
    for (; across + 1 < last; across++) {
        s->dim[across] = s->dim[across + 1];
        s->to[across] = s->to[across + 1];
        s->from[across] = s->from[across + 1];
    }
    s->dim[across] = dim;
    s->to[across] = to;
    s->from[across] = 1;
    s->tile = s->dim[last] < SQUARE ? SQUARE * SQUARE : SQUARE;
    s->tiles = (dim + s->tile - 1) / s->tile;
    s->rows = s->rows / dim * s->tiles;
}

static void describe(moves_state *s, const leati_task *task) {
    const leati_desc *src = &task->inputs[0], *dst = &task->outputs[0];
    const leati_attrs *a = task->attrs;
    int64_t from[LEAT_MAX_RANK] = {0}, to[LEAT_MAX_RANK] = {0};
    int shift = dst->rank - src->rank; /* BROADCAST: leading axes of dst that src lacks */
    strides_of(src, from);
    strides_of(dst, to);
    const leati_desc *walked = task->op == LEATI_OP_PAD ? src : dst;
    for (int i = 0; i < walked->rank; i++) {
        int64_t step = i >= shift ? from[i - shift] : 0;
        if (task->op == LEATI_OP_TRANSPOSE) step = from[a->transpose.perm[i]];
        if (task->op == LEATI_OP_BROADCAST && i >= shift && src->shape[i - shift] == 1) step = 0;
        if (task->op == LEATI_OP_SLICE) s->first_from += a->slice.start[i] * step;
        if (task->op == LEATI_OP_PAD) s->first_to += a->pad.before[i] * to[i];
        if (task->op == LEATI_OP_REVERSE && i == a->reverse.axis) {
            s->first_from += (src->shape[i] - 1) * step;
            step = -step;
        }
        add_axis(s, walked->shape[i], to[i], step);
    }
    if (s->axes == 0) { /* one element */
        s->dim[0] = s->to[0] = s->from[0] = 1;
        s->axes = 1;
    }
    s->rows = 1;
    for (int i = 0; i + 1 < s->axes; i++) s->rows *= s->dim[i];
    find_squares(s);
    s->fill = task->op == LEATI_OP_PAD;
    s->value = a->pad.value;
    s->fill_count = leati_desc_count(dst);
}

static int threads_for(const leati_task *task) {
    return leati_threads_for((int64_t)leati_desc_bytes(&task->outputs[0]) / THREAD_BYTES, task->threads);
}

static leat_status prepare(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    leat_dtype dtype = task->inputs[0].dtype;
    if (leat_dtype_bytes(dtype) != sizeof(float) || (task->op == LEATI_OP_PAD && dtype != LEAT_F32)) {
        snprintf(why, LEATI_REASON_BYTES, "elements of type %s", leat_dtype_name(dtype));
        return LEAT_OK;
    }
    if (leati_desc_count(&task->inputs[0]) == 0 || leati_desc_count(&task->outputs[0]) == 0) {
        snprintf(why, LEATI_REASON_BYTES, "an empty tensor");
        return LEAT_OK;
    }
    moves_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a copy kernel");
    s->isa = leati_native_isa_of();
    describe(s, task);
    s->threads = threads_for(task);
    kernel->state = s;
    kernel->destroy = leati_free;
    kernel->run = run_moves;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native copy");
    return LEAT_OK;
}

#define MOVE(op)                                                                                             \
    leat_status leati_native_##op(const leati_task *task, leati_kernel *kernel, char *why,                   \
                                  leat_error *err) {                                                         \
        return prepare(task, kernel, why, err);                                                              \
    }
MOVE(slice)
MOVE(pad)
MOVE(transpose)
MOVE(broadcast)
MOVE(reverse)

typedef struct concat_state {
    int64_t rows;                        /* product of the dimensions before the axis */
    size_t bytes[LEATI_MAX_INPUTS], row; /* bytes of each input's part of a row; of a row */
    int inputs, threads;
} concat_state;

static void join_rows(const concat_state *s, void *const *args, int64_t first, int64_t last) {
    unsigned char *to = (unsigned char *)args[s->inputs] + (size_t)first * s->row;
    for (int64_t row = first; row < last; row++)
        for (int i = 0; i < s->inputs; i++) {
            if (s->bytes[i] > 0)
                memcpy(to, (const unsigned char *)args[i] + (size_t)row * s->bytes[i], s->bytes[i]);
            to += s->bytes[i];
        }
}

static void run_concat_part(const leati_kernel *kernel, void *const *args, const leati_run *run, int t) {
    const concat_state *s = kernel->state;
    (void)run;
    join_rows(s, args, s->rows * t / s->threads, s->rows * (t + 1) / s->threads);
}

static leat_status run_concat(const leati_kernel *kernel, void *const *args, const leati_run *run,
                              leat_error *err) {
    const concat_state *s = kernel->state;
    (void)err;
    leati_share(s->threads, run_concat_part, kernel, args, run);
    return LEAT_OK;
}

leat_status leati_native_concat(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    const leati_desc *dst = &task->outputs[0];
    concat_state *s = leati_calloc(1, sizeof *s);
    (void)why;
    if (!s) return leati_fail_memory(err, sizeof *s, "a concatenation");
    leati_axis_split whole = leati_split_at(dst, task->attrs->concat.axis);
    size_t element = (size_t)whole.inner * leat_dtype_bytes(dst->dtype);
    s->rows = whole.outer;
    s->inputs = task->input_count;
    for (int i = 0; i < s->inputs; i++) {
        s->bytes[i] = (size_t)task->inputs[i].shape[task->attrs->concat.axis] * element;
        s->row += s->bytes[i];
    }
    s->threads = threads_for(task);
    kernel->state = s;
    kernel->destroy = leati_free;
    kernel->run = run_concat;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native copy");
    return LEAT_OK;
}
