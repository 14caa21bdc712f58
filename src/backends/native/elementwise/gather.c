/* SPDX-License-Identifier: Apache-2.0 */
/* GATHER, GATHER_BWD, ONE_HOT: the indices are read and checked first, then threads share the rows.
 * Room: backends/native. */
#include <stdio.h>
#include <string.h>

#include "backends/native/elementwise/ranges.h"
#include "backends/native/simd/isa.h"
#include "backends/native/ops.h"
#include "backends/native/share.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/op_semantics/index.h"

#define THREAD_BYTES 1048576 /* bytes that each thread must have to move */

typedef struct gather_state {
    leati_range range;
    leati_desc indices;
    int64_t count, table, columns; /* indices; rows and columns of the table */
    bool backward;
    int threads;
} gather_state;

leat_status leati_read_indices(const leati_desc *indices, const void *data, int64_t rows, int64_t *out,
                               leat_error *err) {
    const int64_t count = leati_desc_count(indices);
    for (int64_t i = 0; i < count; i++) {
        out[i] = leati_index_at(indices->dtype, data, i, rows);
        if (out[i] < 0) return leati_index_fail(indices, data, i, rows, err);
    }
    return LEAT_OK;
}

static void run_part(const leati_kernel *kernel, void *const *args, const leati_run *run, int t) {
    const gather_state *s = kernel->state;
    int64_t rows = s->backward ? s->table : s->count;
    const leati_range_job job = {.op = s->backward ? LEATI_OP_GATHER_BWD : LEATI_OP_GATHER,
                                 .in = {args[0], args[1]},
                                 .out = {args[2]},
                                 .gather = {.indices = run->scratch,
                                            .count = s->count,
                                            .columns = s->columns}};
    s->range(&job, rows * t / s->threads, rows * (t + 1) / s->threads);
}

static leat_status run_gather(const leati_kernel *kernel, void *const *args, const leati_run *run,
                              leat_error *err) {
    const gather_state *s = kernel->state;
    LEATI_TRY(leati_read_indices(&s->indices, args[s->backward ? 0 : 1], s->table, run->scratch, err));
    leati_share(s->threads, run_part, kernel, args, run);
    return LEAT_OK;
}

static leat_status prepare(const leati_task *task, leati_kernel *kernel, leat_error *err) {
    const leati_native_isa *isa = leati_native_isa_of();
    gather_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a gather kernel");
    bool backward = task->op == LEATI_OP_GATHER_BWD;
    const leati_desc *indices = &task->inputs[backward ? 0 : 1];
    const leati_desc *table = backward ? &task->outputs[0] : &task->inputs[0];
    *s = (gather_state){.range = isa->ranges[task->op],
                        .indices = *indices,
                        .count = leati_desc_count(indices),
                        .table = table->shape[0],
                        .columns = table->shape[1],
                        .backward = backward};
    s->threads =
        leati_threads_for((int64_t)leati_desc_bytes(&task->outputs[0]) / THREAD_BYTES, task->threads);
    kernel->scratch_bytes = (size_t)(s->count > 0 ? s->count : 1) * sizeof(int64_t);
    kernel->state = s;
    kernel->destroy = leati_free;
    kernel->run = run_gather;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native %s", isa->name);
    return LEAT_OK;
}

leat_status leati_native_gather(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    return prepare(task, kernel, err);
}

leat_status leati_native_gather_bwd(const leati_task *task, leati_kernel *kernel, char *why,
                                    leat_error *err) {
    (void)why;
    return prepare(task, kernel, err);
}

/* Writes one row per index; the row of an index outside of [0, columns) is all zeros. */
static leat_status run_one_hot(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    const gather_state *s = kernel->state;
    float *dst = args[1];
    (void)run, (void)err;
    if (s->count * s->columns > 0) memset(dst, 0, (size_t)(s->count * s->columns) * sizeof *dst);
    for (int64_t i = 0; i < s->count; i++) {
        int64_t index = leati_index_at(s->indices.dtype, args[0], i, s->columns);
        if (index >= 0) dst[i * s->columns + index] = 1;
    }
    return LEAT_OK;
}

leat_status leati_native_one_hot(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    gather_state *s = leati_calloc(1, sizeof *s);
    (void)why;
    if (!s) return leati_fail_memory(err, sizeof *s, "a one-hot kernel");
    s->indices = task->inputs[0];
    s->count = leati_desc_count(&s->indices);
    s->columns = task->attrs->one_hot.depth;
    kernel->state = s;
    kernel->destroy = leati_free;
    kernel->run = run_one_hot;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native");
    return LEAT_OK;
}
