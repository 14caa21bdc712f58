/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts sums over the rows of matrices into parts.  Room: backends/cuda. */
#include "backends/cuda/ops/columns.h"
#include "tensor/bfloat16.h"

static int64_t ceiling(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

static int64_t smallest(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Returns the smallest power of two that is at least n, but at most `most`. */
static int32_t power_of_two(int64_t n, int32_t most) {
    int32_t power = 1;
    while (power < n && power < most) power *= 2;
    return power;
}

static void set_width(leati_column_plan *plan, const leati_column_sums *s, int32_t most_channels) {
    int64_t vectors = s->channels / s->vector;
    int32_t most = most_channels / s->vector < 32 ? most_channels / s->vector : 32;
    plan->columns.wide = power_of_two(vectors, most > 0 ? most : 1);
    plan->columns.blocks = (int32_t)ceiling(vectors, plan->columns.wide);
}

/* Returns true if one block for each 32 channels is enough: it has little to do, or there are many such blocks. */
static bool has_one_part(const leati_cuda *cuda, const leati_column_sums *s) {
    int64_t groups = ceiling(s->channels, 32) * s->count;
    int64_t elements = s->rows * smallest(s->channels, 32);
    return elements <= (int64_t)cuda->multiprocessors * 256 ||
           (2 * groups >= cuda->multiprocessors && s->rows <= (int64_t)cuda->multiprocessors * 32);
}

static void set_parts(leati_column_plan *plan, const leati_column_sums *s, int64_t parts) {
    plan->columns.part_rows = ceiling(s->rows, parts > 0 ? parts : 1);
    plan->columns.parts = plan->columns.part_rows ? (int32_t)ceiling(s->rows, plan->columns.part_rows) : 1;
}

static unsigned shared_bytes(const leati_column_plan *plan, const leati_column_sums *s) {
    unsigned threads = plan->grid.threads;
    unsigned channels = (unsigned)(plan->columns.wide * s->vector), sums = (unsigned)s->sums;
    unsigned block = threads * (unsigned)s->vector + channels * sums, parts = threads * sums;
    return (block > parts ? block : parts) * (unsigned)sizeof(double);
}

leati_column_plan leati_plan_columns(const leati_cuda *cuda, const leati_column_sums *s) {
    enum { threads = 256, part_channels = 64 };
    leati_column_plan plan = {.columns = {.rows = s->rows, .channels = s->channels}};
    set_width(&plan, s, threads);
    int64_t groups = plan.columns.blocks * s->count;
    if (!s->again && groups >= cuda->multiprocessors) {
        set_parts(&plan, s, 1);
        plan.grid.threads = (unsigned)power_of_two(plan.columns.wide * s->rows, threads);
    } else if (has_one_part(cuda, s)) {
        set_width(&plan, s, 32);
        set_parts(&plan, s, 1);
        plan.grid.threads = (unsigned)power_of_two(plan.columns.wide * s->rows, s->most_threads);
    } else {
        /* One large block for each multiprocessor keeps the number of parts low. */
        set_width(&plan, s, part_channels);
        int64_t step = s->most_threads / plan.columns.wide;
        int64_t wanted = cuda->multiprocessors / (plan.columns.blocks * s->count);
        set_parts(&plan, s, smallest(wanted, ceiling(s->rows, step)));
        plan.grid.threads = (unsigned)s->most_threads;
    }
    /* Each of the sums of a block's channels has a thread of its own at the end. */
    while (plan.grid.threads < 32 || (int)plan.grid.threads < plan.columns.wide * s->vector)
        plan.grid.threads *= 2;
    plan.grid.x = (unsigned)(plan.columns.blocks * s->count);
    plan.grid.y = (unsigned)plan.columns.parts;
    plan.grid.shared_bytes = shared_bytes(&plan, s);
    if (plan.columns.parts > 1) {
        plan.partial_bytes = (size_t)(s->count * s->sums * plan.columns.parts * s->channels) * sizeof(double);
        plan.counters = plan.grid.x;
    }
    return plan;
}

leati_column_plan leati_plan_elements(const leati_cuda *cuda, int64_t rows, int64_t channels, int32_t vector,
                                      int32_t blocks) {
    enum { threads = 256 };
    const leati_column_sums s = {.count = 1, .rows = rows, .channels = channels, .vector = vector};
    leati_column_plan plan = {.columns = {.rows = rows, .channels = channels}};
    set_width(&plan, &s, threads);
    int64_t step = threads / plan.columns.wide;
    int64_t wanted = (int64_t)cuda->multiprocessors * blocks / plan.columns.blocks;
    set_parts(&plan, &s, smallest(smallest(wanted, 65535), ceiling(rows, step)));
    plan.grid = (leati_cuda_grid){.x = (unsigned)plan.columns.blocks,
                                  .y = (unsigned)plan.columns.parts,
                                  .threads = threads};
    return plan;
}

leati_cuda_tensor leati_cuda_tensor_of(void *memory, const leati_desc *desc) {
    return (leati_cuda_tensor){.at = memory, .bf16 = memory && desc->dtype == LEATI_BF16};
}
