/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizer updates of an Embedding's table by a gradient that is a list of rows: threads share the table's rows.  The
 * gradient of the whole table, mostly zeros, is never in memory (decision 0082).  Room: backends/native. */
#include <math.h>
#include <stdio.h>

#include "backends/native/elementwise/ranges.h"
#include "backends/native/simd/isa.h"
#include "backends/native/share.h"
#include "base/error.h"
#include "base/memory.h"

#define ZEROS 4096 /* floats: they and what is updated with them stay in the L1 cache */

typedef struct row_state {
    leati_attrs attrs;
    leati_row_update update; /* without what differs between runs and threads */
    leati_desc indices;
    int64_t rows;
    int inputs, slots, threads;
    size_t next_offset, first_offset, sums_offset,
        sums_bytes; /* in the scratch; sums_bytes: of each thread */
    float zeros[ZEROS];
} row_state;

/* Returns true if the update of this run leaves a weight without gradient, and its slots, as they are. */
static bool skips(const leati_range_job *job) {
    const leati_attrs *attrs = job->attrs;
    const float lr = job->in[0][0];
    if (attrs->update.decay || !(fabsf(lr) < INFINITY)) return false;
    if (job->op == LEATI_OP_UPDATE_SGD) return !attrs->update.momentum;
    return job->op == LEATI_OP_UPDATE_ADAGRAD && job->in[0][1] > 0; /* epsilon: 0 / 0 is NaN */
}

static void run_part(const leati_kernel *kernel, void *const *args, const leati_run *run, int t) {
    const row_state *s = kernel->state;
    leati_row_update u = s->update;
    char *scratch = run->scratch;
    u.job.in[0] = args[0];
    for (int i = 0; i <= s->slots; i++) u.job.out[i] = args[2 + i];
    u.gradient = args[1];
    u.rows.indices = run->scratch;
    u.next = (void *)(scratch + s->next_offset);
    u.first = (void *)(scratch + s->first_offset);
    u.sums = (void *)(scratch + s->sums_offset + (size_t)t * s->sums_bytes);
    u.skips = skips(&u.job);
    leati_native_isa_of()->update_rows(&u, s->rows * t / s->threads, s->rows * (t + 1) / s->threads);
}

static leat_status run_update(const leati_kernel *kernel, void *const *args, const leati_run *run,
                              leat_error *err) {
    const row_state *s = kernel->state;
    LEATI_TRY(leati_read_indices(&s->indices, args[s->inputs - 1], s->rows, run->scratch, err));
    leati_share(s->threads, run_part, kernel, args, run);
    return LEAT_OK;
}

/* Lays the scratch out: indices, the lists, and each thread's sums. */
static size_t lay_out(row_state *s) {
    const size_t count = (size_t)s->update.rows.count;
    s->next_offset = leati_align(count * sizeof(int64_t));
    s->first_offset = s->next_offset + leati_align(count * sizeof(int32_t));
    s->sums_offset = s->first_offset + leati_align((size_t)s->rows * sizeof(int32_t));
    s->sums_bytes = leati_align(2 * (size_t)s->update.rows.columns * sizeof(float));
    return s->sums_offset + (size_t)s->threads * s->sums_bytes;
}

leat_status leati_update_rows_prepare(const leati_task *task, leati_kernel *kernel, leat_error *err) {
    const leati_native_isa *isa = leati_native_isa_of();
    const leati_desc *table = &task->inputs[2], *indices = &task->inputs[task->input_count - 1];
    row_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "an update by rows");
    s->attrs = *task->attrs;
    s->indices = *indices;
    s->rows = table->shape[0];
    s->inputs = task->input_count;
    s->slots = task->input_count - 4;
    s->update = (leati_row_update){.update = isa->ranges[task->op],
                                   .job = {.op = task->op, .attrs = &s->attrs},
                                   .rows = {.count = leati_desc_count(indices), .columns = table->shape[1]},
                                   .zeros = s->zeros,
                                   .zero_count = ZEROS};
    s->threads = leati_range_threads(task, (int64_t)leati_desc_bytes(table));
    kernel->scratch_bytes = lay_out(s);
    kernel->state = s;
    kernel->destroy = leati_free;
    kernel->run = run_update;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native %s", isa->name);
    return LEAT_OK;
}
