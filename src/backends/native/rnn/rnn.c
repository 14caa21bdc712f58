/* SPDX-License-Identifier: Apache-2.0 */
/* RNN and RNN_BWD: packs the weights, then gives each thread its blocks of samples.  The threads' gradients with
 * respect to the weights are added up in the order of the threads, so that a run is repeatable.
 * Room: backends/native. */
#include <stdio.h>
#include <string.h>

#include "backends/native/ops.h"
#include "backends/native/rnn/jobs.h"
#include "backends/native/share.h"
#include "backends/native/simd/isa.h"
#include "base/error.h"
#include "base/memory.h"

/* rows of a block: state, gates and weights of 64 units then fit into half a megabyte of cache */
#define BLOCK_ROWS 48
/* the same of weights that do not fit in the L2 cache, which every block reads again in each step */
#define BLOCK_ROWS_LARGE 96
/* rows from which a thread is worth its start; fewer, but two, where they are this many operations, which take about 10
 * microseconds */
#define THREAD_ROWS       8
#define THREAD_OPERATIONS (2 << 20)
/* bytes of the weights from which they are packed and read as large ones */
#define LARGE_BYTES (3 << 18)
/* rows of a batch at least for that: with fewer, one pass over the weights is bound by reading them */
#define LARGE_ROWS 4
/* bytes of the recurrent weights from which threads share the units of a single sample in each step */
#define UNIT_SHARED_BYTES (1 << 19)
/* floats that are packed or added up from which several threads do it */
#define MIN_SHARED_FLOATS 65536

typedef struct rnn_state {
    leati_rnn_shape shape;
    const leati_native_isa *isa;
    int inputs, threads;
    int unit_threads;  /* that share the units of a single sample */
    bool large, lines; /* how the weights are packed for the forward pass */
    int64_t block_rows, blocks;
    int64_t padded_units, padded_features;
    int64_t bias;      /* offset of the bias among the packed weights, and among their gradients */
    int64_t recurrent; /* offset of the recurrent kernel in lines */
    /* Floats of each packed matrix, weights with the bias; 0: not needed. */
    int64_t weights, recurrent_transposed, kernel_transposed;
    int64_t gradient; /* floats of one thread's packed gradients */
    int64_t block_scratch;
    /* Forward, with weights in a narrow format: the bytes of the pack up to the scales and up to the weights.  The
     * scratch has room for the weights as floats. */
    leati_narrow narrow;
    size_t scales_at, narrow_at;
    bool multiplies_narrow; /* the weights are not expanded */
} rnn_state;

/* Returns how many rows a thread has at least.  Large weights, which each thread reads from beyond its L2 cache, need
 * THREAD_ROWS. */
static int64_t least_thread_rows(const rnn_state *s) {
    const double operations = 2.0 * (double)s->bias * (double)s->shape.steps; /* of one row */
    if (s->large || operations * THREAD_ROWS <= THREAD_OPERATIONS) return THREAD_ROWS;
    return operations < THREAD_OPERATIONS ? (int64_t)(THREAD_OPERATIONS / operations) + 1 : 2;
}

static void choose_blocks(rnn_state *s, int threads) {
    s->threads = leati_threads_for(s->shape.batch / least_thread_rows(s), threads);
    int64_t share = (s->shape.batch + s->threads - 1) / s->threads;
    while (s->threads > 1 && s->shape.batch % share == 1) /* a block of one row adds in another order */
        s->threads--, share = (s->shape.batch + s->threads - 1) / s->threads;
    int64_t most = s->large ? BLOCK_ROWS_LARGE : BLOCK_ROWS, rounds = (share + most - 1) / most;
    s->block_rows = rounds > 1  ? leati_round_up((share + rounds - 1) / rounds, s->isa->rows)
                    : share > 0 ? share
                                : 1;
    s->blocks = (s->shape.batch + s->block_rows - 1) / s->block_rows;
}

static bool has(const leati_task *task, int input) {
    return input < task->input_count && task->inputs[input].rank >= 0;
}

/* True if the kernel reads the narrow weights themselves; otherwise it expands them first. */
static bool multiplies_narrow(const rnn_state *s, const leati_task *task) {
    return task->weights_format && s->shape.batch == 1 && !has(task, LEATI_RNN_X_MASK) &&
           !has(task, LEATI_RNN_H_MASK);
}

/* True if the recurrent kernel lies in lines: that of a single sample, which is read in each step and is somewhat
 * larger than an L1 cache. */
static bool lies_in_lines(const rnn_state *s, const leati_task *task) {
    const leati_rnn_shape *shape = &s->shape;
    return shape->batch == 1 && shape->units >= LEATI_RNN_LINE_UNITS && shape->units <= LEATI_RNN_LINE_ROWS &&
           (shape->cell == LEATI_CELL_LSTM || shape->cell == LEATI_CELL_GRU_RESET_AFTER) &&
           s->isa->lanes >= LEATI_RNN_LINE / 2 && !task->weights_format && !has(task, LEATI_RNN_X_MASK) &&
           !has(task, LEATI_RNN_H_MASK);
}

/* Returns the floats of scratch that a block needs.  The last block may have fewer rows, but then gathers more
 * steps. */
static int64_t scratch_of(const rnn_state *s, const leati_task *task, bool backward) {
    static const float present = 1; /* stands for a mask */
    leati_rnn_job job = {.shape = &s->shape,
                         .large = s->large,
                         .unit_threads = s->unit_threads,
                         .x_mask = has(task, LEATI_RNN_X_MASK) ? &present : NULL,
                         .h_mask = has(task, LEATI_RNN_H_MASK) ? &present : NULL};
    int64_t max_floats = 0, last = s->shape.batch - (s->blocks - 1) * s->block_rows;
    const int64_t rows[] = {s->block_rows, s->blocks > 0 ? last : s->block_rows};
    for (int i = 0; i < 2; i++) {
        job.rows = rows[i];
        int64_t floats = s->isa->rnn_scratch(&job, backward);
        if (floats > max_floats) max_floats = floats;
    }
    return leati_round_up(max_floats, 16);
}

/* Lays out the pack of a kernel with narrow weights: the bias, the scales, the weights. */
static void lay_out_narrow(rnn_state *s, const leati_task *task, leati_kernel *kernel) {
    const leati_rnn_shape *shape = &s->shape;
    int64_t columns = shape->gates * s->padded_units,
            pairs = leati_narrow_pairs(shape->features) + leati_narrow_pairs(shape->units);
    s->narrow = leati_narrow_of(task->weights_format);
    s->multiplies_narrow = multiplies_narrow(s, task);
    s->scales_at = (size_t)leati_round_up(leati_rnn_slots(shape) * s->padded_units, 16) * sizeof(float);
    s->narrow_at =
        s->scales_at + (s->narrow.scaled ? (size_t)leati_round_up(2 * columns, 16) * sizeof(float) : 0);
    kernel->pack_bytes = s->narrow_at + (size_t)(2 * pairs * columns) * s->narrow.element_bytes;
    kernel->narrow_weights = (shape->features + shape->units) * shape->gates * shape->units;
    snprintf(kernel->pack_key, sizeof kernel->pack_key, "rnn %d %s %s", (int)shape->cell, s->isa->name,
             s->narrow.name);
    snprintf(kernel->layout, sizeof kernel->layout, "%s", s->narrow.layout);
}

static leat_status prepare(const leati_task *task, leati_kernel *kernel, bool backward, leat_error *err) {
    rnn_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a recurrent cell");
    s->shape =
        leati_rnn_shape_of(task->attrs, &task->inputs[LEATI_RNN_X], &task->inputs[LEATI_RNN_RECURRENT]);
    s->isa = leati_native_isa_of();
    s->inputs = task->input_count;
    s->padded_units = leati_round_up(s->shape.units, s->isa->panel);
    s->padded_features = leati_round_up(s->shape.features, s->isa->panel);
    int64_t gates = s->shape.gates * s->padded_units;
    s->bias = (s->shape.features + s->shape.units) * gates;
    s->large = s->bias * (int64_t)sizeof(float) >= LARGE_BYTES && s->shape.batch >= LARGE_ROWS &&
               !task->weights_format;
    choose_blocks(s, task->threads);
    const int64_t recurrent = s->shape.units * gates * (int64_t)sizeof(float);
    s->unit_threads =
        s->shape.batch == 1 && s->shape.steps > 1 && recurrent >= UNIT_SHARED_BYTES ? task->threads : 1;
    s->lines = !backward && lies_in_lines(s, task);
    s->recurrent = s->shape.features * gates;
    if (s->lines) s->bias = s->recurrent + LEATI_RNN_LINE_ROWS * gates;
    int64_t weights = leati_round_up(s->bias + leati_rnn_slots(&s->shape) * s->padded_units, 16);
    s->block_scratch = scratch_of(s, task, backward);
    if (backward) {
        s->gradient = weights;
        s->recurrent_transposed = gates * s->padded_units;
        s->kernel_transposed = task->unused & 1 ? 0 : gates * s->padded_features;
    } else {
        s->weights = weights;
        kernel->pack_bytes = (size_t)weights * sizeof(float);
        kernel->pack_inputs = 1u << LEATI_RNN_KERNEL | 1u << LEATI_RNN_RECURRENT | 1u << LEATI_RNN_BIAS;
        snprintf(kernel->pack_key, sizeof kernel->pack_key, "rnn %d %s%s", (int)s->shape.cell, s->isa->name,
                 s->large   ? " large"
                 : s->lines ? " lines"
                            : "");
        if (task->weights_format) {
            lay_out_narrow(s, task, kernel);
            kernel->scratch_bytes = kernel->pack_bytes;
        }
    }
    kernel->scratch_bytes += (size_t)(s->weights + s->recurrent_transposed + s->kernel_transposed +
                                      s->threads * (s->gradient + s->block_scratch)) *
                             sizeof(float);
    kernel->state = s;
    kernel->destroy = leati_free;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native %s", s->isa->name);
    return LEAT_OK;
}

static const float *input(const rnn_state *s, void *const *args, int i) {
    return i < s->inputs ? args[i] : NULL;
}

static leati_rnn_job job_of(const rnn_state *s, void *const *args) {
    return (leati_rnn_job){.shape = &s->shape,
                           .large = s->large,
                           .x = input(s, args, LEATI_RNN_X),
                           .h0 = input(s, args, LEATI_RNN_H0),
                           .c0 = input(s, args, LEATI_RNN_C0),
                           .x_mask = input(s, args, LEATI_RNN_X_MASK),
                           .h_mask = input(s, args, LEATI_RNN_H_MASK),
                           .steps = input(s, args, LEATI_RNN_STEPS)};
}

typedef struct blocks_run {
    const rnn_state *s;
    const leati_rnn_job *job;
    float *thread_scratch;
    void (*block)(const leati_rnn_job *job);
} blocks_run;

static void give_scratch(const rnn_state *s, leati_rnn_job *job, float *thread_scratch) {
    job->diff_weights = thread_scratch;
    if (s->gradient > 0) memset(thread_scratch, 0, (size_t)s->gradient * sizeof *thread_scratch);
    job->scratch = thread_scratch + s->gradient;
}

/* Runs one thread's blocks, one after the other. */
static void run_share(void *of, int64_t thread, int member) {
    const blocks_run *r = of;
    const rnn_state *s = r->s;
    leati_rnn_job job = *r->job;
    (void)member;
    give_scratch(s, &job, r->thread_scratch + thread * (s->gradient + s->block_scratch));
    for (int64_t b = s->blocks * thread / s->threads; b < s->blocks * (thread + 1) / s->threads; b++) {
        job.first = b * s->block_rows;
        job.rows = s->shape.batch - job.first < s->block_rows ? s->shape.batch - job.first : s->block_rows;
        r->block(&job);
    }
}

static void run_blocks(const rnn_state *s, const leati_run *run, leati_rnn_job *job, float *thread_scratch,
                       void (*block)(const leati_rnn_job *job)) {
    if (s->blocks == 1) { /* without a copy of the job, which takes a single step of one sample 2 % longer */
        give_scratch(s, job, thread_scratch);
        job->rows = s->shape.batch;
        block(job);
        return;
    }
    blocks_run r = {.s = s, .job = job, .thread_scratch = thread_scratch, .block = block};
    leati_thread_pool_share(run->pool, s->threads, s->threads, run_share, &r);
}

/* Calls `work` for each panel: on several threads where there are many floats. */
static void share_panels(const leati_run *run, int threads, int64_t panels, int64_t floats,
                         leati_thread_pool_work work, void *of) {
    leati_thread_pool_share(run->pool, floats < MIN_SHARED_FLOATS ? 1 : threads, panels, work, of);
}

static void pack_panel(void *of, int64_t panel, int member) {
    (void)member;
    leati_native_isa_of()->rnn_pack(of, panel);
}

/* Packs kernel, recurrent kernel and bias for the forward pass. */
static void pack(const rnn_state *s, void *const *args, const leati_run *run, float *weights, float *bias) {
    leati_rnn_packing packing = {.shape = &s->shape,
                                 .kernel = args[LEATI_RNN_KERNEL],
                                 .recurrent = args[LEATI_RNN_RECURRENT],
                                 .bias = input(s, args, LEATI_RNN_BIAS),
                                 .weights = weights,
                                 .lines = s->lines ? weights + s->recurrent : NULL,
                                 .packed_bias = bias,
                                 .large = s->large};
    share_panels(run, s->threads, s->padded_units / s->isa->panel, s->bias, pack_panel, &packing);
}

/* Calls leati_narrow_pack or leati_narrow_expand for the two blocks of each panel of units, between the pack and the
 * packed floats at `wide`. */
static void convert_narrow(const rnn_state *s, unsigned char *pack, float *wide, bool packs) {
    const int64_t gates = s->shape.gates, columns = gates * s->isa->panel;
    const int64_t depths[2] = {s->shape.features, s->shape.units};
    float *scales = (float *)(void *)(pack + s->scales_at);
    unsigned char *narrow = pack + s->narrow_at;
    for (int64_t i = 0; i < 2 * s->padded_units / s->isa->panel; i++) {
        int64_t depth = depths[i % 2];
        leati_narrow_source source = {
            .from = wide, .row = columns, .column = 1, .depth = depth, .present = columns};
        if (packs)
            leati_narrow_pack(&s->narrow, &source, columns, narrow, scales);
        else
            leati_narrow_expand(&s->narrow, narrow, 2 * columns, scales, depth, columns, wide, columns);
        wide += depth * columns;
        narrow += (size_t)(2 * leati_narrow_pairs(depth) * columns) * s->narrow.element_bytes;
        if (s->narrow.scaled) scales += columns;
    }
}

/* Returns the weights for a run whose pack has narrow weights; `wide` has room for them as floats. */
static leati_rnn_packed narrow_weights(const rnn_state *s, void *const *args, const leati_run *run,
                                       unsigned char *memory, float *wide) {
    float *bias = (float *)(void *)memory;
    if (!(run->pack && run->packed)) {
        pack(s, args, run, wide, bias);
        convert_narrow(s, memory, wide, true);
    }
    if (!s->multiplies_narrow) {
        convert_narrow(s, memory, wide, false);
        return (leati_rnn_packed){.weights = wide, .bias = bias};
    }
    return (leati_rnn_packed){.bias = bias,
                              .narrow = &s->narrow,
                              .narrow_weights = memory + s->narrow_at,
                              .narrow_scales = (const float *)(const void *)(memory + s->scales_at)};
}

/* Scratch: each thread's block, then, with narrow weights, the weights as floats, then the packed weights unless the
 * plan keeps them. */
static leat_status run_forward(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    const rnn_state *s = kernel->state;
    float *scratch = run->scratch, *packed = run->pack ? run->pack : scratch + s->threads * s->block_scratch;
    leati_rnn_job job = job_of(s, args);
    (void)err;
    void *const *out = args + s->inputs;
    job.run_number = run->run_number;
    job.pool = run->pool;
    job.unit_threads = s->unit_threads;
    job.packed = (leati_rnn_packed){.weights = packed,
                                    .lines = s->lines ? packed + s->recurrent : NULL,
                                    .bias = packed + s->bias};
    if (s->narrow.format) {
        float *wide = scratch + s->threads * s->block_scratch;
        void *memory = run->pack ? run->pack : (void *)(wide + s->weights);
        job.packed = narrow_weights(s, args, run, memory, wide);
    } else if (!(run->pack && run->packed))
        pack(s, args, run, packed, packed + s->bias);
    job.sequence = out[LEATI_RNN_OUT_SEQUENCE];
    job.h_last = out[LEATI_RNN_OUT_H_LAST];
    job.c_last = s->shape.cell == LEATI_CELL_LSTM ? out[LEATI_RNN_OUT_C_LAST] : NULL;
    job.workspace = s->shape.training ? out[LEATI_RNN_OUT_WORKSPACE] : NULL;
    run_blocks(s, run, &job, scratch, s->isa->rnn_forward);
    return LEAT_OK;
}

typedef struct gradients_run {
    const rnn_state *s;
    float *thread_scratch, *kernel, *recurrent;
} gradients_run;

/* Adds the floats from `first` to `last` - 1 of the threads' gradients to those of the first thread. */
static void add_threads(const rnn_state *s, float *thread_scratch, int64_t first, int64_t last) {
    int64_t each = s->gradient + s->block_scratch;
    for (int thread = 1; thread < s->threads; thread++)
        for (int64_t i = first; i < last; i++) thread_scratch[i] += thread_scratch[thread * each + i];
}

static void finish_panel(void *of, int64_t panel, int member) {
    const gradients_run *r = of;
    const rnn_state *s = r->s;
    int64_t floats = s->bias / (s->padded_units / s->isa->panel);
    (void)member;
    add_threads(s, r->thread_scratch, panel * floats, (panel + 1) * floats);
    s->isa->rnn_unpack(&s->shape, r->thread_scratch, panel, r->kernel, r->recurrent);
}

/* Adds the threads' gradients to those of the first thread, and writes them to the op's outputs; NULL outputs are
 * skipped. */
static void finish_gradients(const rnn_state *s, const leati_run *run, float *thread_scratch,
                             void *const *out) {
    gradients_run r = {s, thread_scratch, out[LEATI_RNN_KERNEL], out[LEATI_RNN_RECURRENT]};
    float *bias = out[LEATI_RNN_BIAS];
    share_panels(run, s->threads, s->padded_units / s->isa->panel, s->bias, finish_panel, &r);
    add_threads(s, thread_scratch, s->bias, s->gradient);
    const float *diff_bias_sums = thread_scratch + s->bias;
    for (int64_t i = 0; bias && i < s->shape.biases * s->shape.gates; i++) {
        int64_t gate = i % s->shape.gates, slot = i >= s->shape.gates && gate == 2 ? 3 : gate;
        memcpy(bias + i * s->shape.units, diff_bias_sums + slot * s->padded_units,
               (size_t)s->shape.units * sizeof *bias);
    }
}

typedef struct transposed_run {
    const rnn_state *s;
    const float *recurrent, *kernel;
    float *recurrent_transposed, *kernel_transposed;
} transposed_run;

/* Packs one panel of the recurrent kernel's transpose; after these come those of the kernel's. */
static void pack_transposed_panel(void *of, int64_t panel, int member) {
    const transposed_run *r = of;
    const rnn_state *s = r->s;
    int64_t in_recurrent = s->padded_units / s->isa->panel;
    (void)member;
    if (panel < in_recurrent)
        s->isa->rnn_pack_transposed(&s->shape, r->recurrent, s->shape.units, r->recurrent_transposed, panel);
    else
        s->isa->rnn_pack_transposed(&s->shape, r->kernel, s->shape.features, r->kernel_transposed,
                                    panel - in_recurrent);
}

/* Scratch: transposed weights, then each thread's gradients and its block. */
static leat_status run_backward(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                leat_error *err) {
    const rnn_state *s = kernel->state;
    void *const *out = args + s->inputs;
    float *recurrent_transposed = run->scratch,
          *kernel_transposed = recurrent_transposed + s->recurrent_transposed,
          *thread_scratch = kernel_transposed + s->kernel_transposed;
    leati_rnn_job job = job_of(s, args);
    (void)err;
    transposed_run t = {s, args[LEATI_RNN_RECURRENT], args[LEATI_RNN_KERNEL], recurrent_transposed,
                        kernel_transposed};
    int64_t columns = s->padded_units + (s->kernel_transposed > 0 ? s->padded_features : 0);
    share_panels(run, s->threads, columns / s->isa->panel, s->recurrent_transposed + s->kernel_transposed,
                 pack_transposed_panel, &t);
    job.packed = (leati_rnn_packed){.recurrent_transposed = recurrent_transposed,
                                    .kernel_transposed = kernel_transposed};
    job.sequence = args[LEATI_RNN_SEQUENCE];
    job.workspace = args[LEATI_RNN_WORKSPACE];
    job.diff_sequence = args[LEATI_RNN_DIFF_SEQUENCE];
    job.diff_h_last = args[LEATI_RNN_DIFF_H_LAST];
    job.diff_c_last = args[LEATI_RNN_DIFF_C_LAST];
    job.diff_x = s->kernel_transposed > 0 ? out[LEATI_RNN_X] : NULL;
    job.diff_h0 = out[LEATI_RNN_H0];
    job.diff_c0 = s->shape.cell == LEATI_CELL_LSTM ? out[LEATI_RNN_C0] : NULL;
    run_blocks(s, run, &job, thread_scratch, s->isa->rnn_backward);
    finish_gradients(s, run, thread_scratch, out);
    return LEAT_OK;
}

leat_status leati_native_rnn(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    LEATI_TRY(prepare(task, kernel, false, err));
    kernel->run = run_forward;
    return LEAT_OK;
}

leat_status leati_native_rnn_bwd(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    LEATI_TRY(prepare(task, kernel, true, err));
    kernel->run = run_backward;
    return LEAT_OK;
}
