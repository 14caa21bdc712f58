/* SPDX-License-Identifier: Apache-2.0 */
/* REDUCE.  Neighbouring axes that are both reduced or both kept are merged; what remains is a sum over the rows of
 * matrices, a sum over rows, or the general case.  Room: backends/cuda. */
#include "backends/cuda/kernels/reduce.h"

#include <assert.h>
#include <stdio.h>

#include "backends/cuda/ops/columns.h"
#include "backends/cuda/ops/ops.h"
#include "base/error.h"
#include "base/memory.h"

static_assert((int)LEATI_CUDA_REDUCE_AXES >= (int)LEAT_MAX_RANK, "the kernel takes tensors of all ranks");

enum { ROW_THREADS = 128, FEW = 16, WARP_ELEMENTS = 1024 };

/* The axes after merging, outermost first. */
typedef struct merged {
    int count;
    int64_t size[LEAT_MAX_RANK];
    bool reduced[LEAT_MAX_RANK];
} merged;

typedef struct reduce_state {
    leati_cuda *cuda;
    CUfunction function, unaligned; /* unaligned: for a src that is not aligned to 16 bytes */
    leati_cuda_grid grid;
    leati_column_plan columns[2]; /* the second one is for `unaligned` */
    unsigned *finished;           /* the device's memory: counters of the kernel, 0 between the launches */
    leati_desc src, dst;
    leati_cuda_reduce_rows rows;
    leati_cuda_reduce_axes axes;
    double divisor;
} reduce_state;

static void destroy_reduce(void *state) {
    reduce_state *s = state;
    s->cuda->device.class->release(&s->cuda->device, s->finished);
    leati_free(s);
}

static merged merge(const leati_desc *src, uint32_t axes) {
    merged m = {0};
    for (int i = 0; i < src->rank; ++i) {
        bool reduced = axes >> i & 1u;
        if (src->shape[i] == 1) continue;
        if (m.count > 0 && m.reduced[m.count - 1] == reduced) {
            m.size[m.count - 1] *= src->shape[i];
        } else {
            m.reduced[m.count] = reduced;
            m.size[m.count++] = src->shape[i];
        }
    }
    return m;
}

static int64_t product(const merged *m, bool reduced) {
    int64_t n = 1;
    for (int i = 0; i < m->count; ++i)
        if (m->reduced[i] == reduced) n *= m->size[i];
    return n;
}

static leat_status find(const leati_task *task, const reduce_state *s, const char *name, CUfunction *out,
                        leat_error *err) {
    static const char *const kinds[] = {"sum", "sum", "max", "min"};
    char full[96];
    snprintf(full, sizeof full, "leati_cuda_reduce_%s_%s", kinds[task->attrs->reduce.kind], name);
    return leati_cuda_kernel(s->cuda, LEATI_CUDA_reduce, full, 0, out, err);
}

static leat_status make_counters(reduce_state *s, size_t count, leat_error *err) {
    void *memory = NULL;
    if (count == 0) return LEAT_OK;
    LEATI_TRY(s->cuda->device.class->allocate(&s->cuda->device, count * sizeof *s->finished, &memory, err));
    s->finished = memory;
    return LEAT_OK;
}

/* ---- Columns ---- */

static leat_status run_columns(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    const reduce_state *s = kernel->state;
    bool aligned = leati_is_aligned(args[0]);
    const leati_column_plan *plan = &s->columns[!aligned];
    leati_cuda_reduce_columns a = {.columns = plan->columns,
                                   .src = leati_cuda_tensor_of(args[0], &s->src),
                                   .dst = leati_cuda_tensor_of(args[1], &s->dst),
                                   .divisor = s->divisor};
    a.columns.partial = run->scratch;
    a.columns.finished = s->finished;
    return leati_cuda_launch(s->cuda, aligned ? s->function : s->unaligned, &plan->grid, &a, err);
}

static leat_status prepare_columns(const leati_task *task, leati_kernel *kernel, reduce_state *s,
                                   int64_t count, int64_t rows, int64_t channels, leat_error *err) {
    bool vectors = channels % 4 == 0, f32 = s->src.dtype == LEAT_F32;
    size_t counters = 0;
    for (int v = 0; v < 2; ++v) {
        const leati_column_sums sums = {.count = count,
                                        .rows = rows,
                                        .channels = channels,
                                        .vector = v == 0 && vectors ? 4 : 1,
                                        .sums = 1,
                                        .most_threads = 1024};
        const leati_column_plan plan = s->columns[v] = leati_plan_columns(s->cuda, &sums);
        if (plan.counters > counters) counters = plan.counters;
        if (plan.partial_bytes > kernel->scratch_bytes) kernel->scratch_bytes = plan.partial_bytes;
    }
    LEATI_TRY(make_counters(s, counters, err));
    const char *best = !vectors ? "columns_any_1" : f32 ? "columns_f32_4" : "columns_any_4";
    LEATI_TRY(find(task, s, best, &s->function, err));
    LEATI_TRY(find(task, s, "columns_any_1", &s->unaligned, err));
    kernel->run = run_columns;
    return LEAT_OK;
}

/* ---- Rows ---- */

static leat_status run_rows(const leati_kernel *kernel, void *const *args, const leati_run *run,
                            leat_error *err) {
    const reduce_state *s = kernel->state;
    leati_cuda_reduce_rows a = s->rows;
    a.src = leati_cuda_tensor_of(args[0], &s->src);
    a.dst = leati_cuda_tensor_of(args[1], &s->dst);
    a.divisor = s->divisor;
    a.partial = run->scratch;
    a.finished = s->finished;
    return leati_cuda_launch(s->cuda, leati_is_aligned(args[0]) ? s->function : s->unaligned, &s->grid, &a,
                             err);
}

/* Cuts rows into parts if there are too few of them to keep the device busy. */
static void cut_rows(reduce_state *s, int64_t rows, int64_t length) {
    int64_t least = (int64_t)s->cuda->multiprocessors * 32,
            wanted = 2 * (int64_t)s->cuda->multiprocessors / rows;
    int64_t parts = length / least < wanted ? length / least : wanted;
    int64_t part = parts > 1 ? (length + parts - 1) / parts : length;
    if (parts > 1) part = (part + 3) / 4 * 4;
    s->rows = (leati_cuda_reduce_rows){.rows = rows, .length = length, .part_length = part, .parts = 1};
    if (parts > 1) s->rows.parts = (length + part - 1) / part;
}

static leat_status prepare_rows(const leati_task *task, leati_kernel *kernel, reduce_state *s, int64_t rows,
                                int64_t length, leat_error *err) {
    bool warp = length <= 256 || (length <= WARP_ELEMENTS && rows > s->cuda->multiprocessors);
    bool vectors = length % 4 == 0;
    unsigned threads = 32;
    s->rows = (leati_cuda_reduce_rows){.rows = rows, .length = length, .part_length = length, .parts = 1};
    if (!warp) cut_rows(s, rows, length);
    while (threads < 1024 && (int64_t)threads * 8 < s->rows.part_length) threads *= 2;
    if (warp)
        s->grid = (leati_cuda_grid){.x = (unsigned)((rows + ROW_THREADS / 32 - 1) / (ROW_THREADS / 32)),
                                    .threads = ROW_THREADS};
    else
        s->grid = (leati_cuda_grid){.x = (unsigned)rows, .y = (unsigned)s->rows.parts, .threads = threads};
    if (s->rows.parts > 1) {
        kernel->scratch_bytes = (size_t)(rows * s->rows.parts) * sizeof(double);
        LEATI_TRY(make_counters(s, (size_t)rows, err));
    }
    const char *single = warp ? "row_warp_1" : "row_block_1", *fours = warp ? "row_warp_4" : "row_block_4";
    LEATI_TRY(find(task, s, vectors ? fours : single, &s->function, err));
    LEATI_TRY(find(task, s, single, &s->unaligned, err));
    kernel->run = run_rows;
    return LEAT_OK;
}

/* ---- Any axes ---- */

static leat_status run_axes(const leati_kernel *kernel, void *const *args, const leati_run *run,
                            leat_error *err) {
    const reduce_state *s = kernel->state;
    leati_cuda_reduce_axes a = s->axes;
    (void)run;
    a.src = leati_cuda_tensor_of(args[0], &s->src);
    a.dst = leati_cuda_tensor_of(args[1], &s->dst);
    a.divisor = s->divisor;
    return leati_cuda_launch(s->cuda, s->function, &s->grid, &a, err);
}

static void fill_axes(reduce_state *s, const merged *m) {
    leati_cuda_reduce_axes *a = &s->axes;
    int kept = LEATI_CUDA_REDUCE_AXES, reduced = LEATI_CUDA_REDUCE_AXES;
    int64_t stride = 1;
    *a = (leati_cuda_reduce_axes){.kept = product(m, false), .reduced = product(m, true)};
    for (int i = 0; i < LEATI_CUDA_REDUCE_AXES; ++i) a->kept_size[i] = a->reduced_size[i] = 1;
    for (int i = m->count - 1; i >= 0; stride *= m->size[i--]) {
        int at = m->reduced[i] ? --reduced : --kept;
        (m->reduced[i] ? a->reduced_size : a->kept_size)[at] = m->size[i];
        (m->reduced[i] ? a->reduced_stride : a->kept_stride)[at] = stride;
    }
}

static leat_status prepare_axes(const leati_task *task, leati_kernel *kernel, reduce_state *s,
                                const merged *m, leat_error *err) {
    fill_axes(s, m);
    int64_t kept = s->axes.kept, reduced = s->axes.reduced;
    bool inner_kept = m->count > 0 && !m->reduced[m->count - 1];
    bool many = kept >= (int64_t)s->cuda->multiprocessors * 256;
    if (reduced <= FEW || (inner_kept && many)) {
        s->grid = (leati_cuda_grid){.x = (unsigned)((kept + 255) / 256), .threads = 256};
        LEATI_TRY(find(task, s, "axes_thread", &s->function, err));
    } else if (reduced <= WARP_ELEMENTS) {
        s->grid = (leati_cuda_grid){.x = (unsigned)((kept + 7) / 8), .threads = 256};
        LEATI_TRY(find(task, s, "axes_warp", &s->function, err));
    } else {
        s->grid = (leati_cuda_grid){.x = (unsigned)kept, .threads = 256};
        LEATI_TRY(find(task, s, "axes_block", &s->function, err));
    }
    kernel->run = run_axes;
    return LEAT_OK;
}

static leat_status run_nothing(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    (void)kernel, (void)args, (void)run, (void)err;
    return LEAT_OK;
}

LEATI_CUDA_PREPARE(reduce) {
    (void)why;
    reduce_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a reduction");
    s->cuda = leati_cuda_of(task->device);
    s->src = task->inputs[0];
    s->dst = task->outputs[0];
    kernel->state = s;
    kernel->destroy = destroy_reduce;
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda");
    merged m = merge(&s->src, task->attrs->reduce.axes);
    int64_t kept = product(&m, false), reduced = product(&m, true);
    int last = m.count - 1;
    s->divisor = task->attrs->reduce.kind == LEATI_REDUCE_MEAN ? (double)reduced : 1;
    if (kept == 0) {
        kernel->run = run_nothing;
        return LEAT_OK;
    }
    if (m.count > 3 || (m.count == 3 && m.reduced[last]) || (reduced <= FEW && kept > 1))
        return prepare_axes(task, kernel, s, &m, err);
    if (m.count == 0 || m.reduced[last]) return prepare_rows(task, kernel, s, kept, reduced, err);
    return prepare_columns(task, kernel, s, kept / m.size[last], reduced, m.size[last], err);
}
