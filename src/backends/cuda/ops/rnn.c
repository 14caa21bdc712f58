/* SPDX-License-Identifier: Apache-2.0 */
/* The family rnn: recurrent cells.  Up to 128 units, one block computes all steps of a few samples (kernels/
 * rnn_persistent.cuh), and projects x itself where that fits.  Otherwise one product projects x at all steps, and a
 * kernel per step does the rest.  The gradient ends with one launch for the products of all steps.  Room:
 * backends/cuda. */
#include <stdio.h>

#include "backends/cuda/kernels/rnn.h"
#include "backends/cuda/ops/ops.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/op_semantics/geometry.h"

/* The kernels of a cell.  The second kernel of a step is NULL for most. */
typedef struct cell_kernels {
    const char *step, *second, *step_bwd, *second_bwd;
    int kept;               /* floats of the workspace for each unit */
    const char *persistent; /* the first part of the names */
} cell_kernels;

static const cell_kernels kernels_of[LEATI_CELL_COUNT] = {
    [LEATI_CELL_LSTM] = {"leati_cuda_lstm_step", NULL, "leati_cuda_lstm_step_bwd", NULL, 6, "lstm"},
    [LEATI_CELL_GRU] = {"leati_cuda_gru_step", "leati_cuda_gru_update", "leati_cuda_gru_step_bwd",
                        "leati_cuda_gru_reset_bwd", 5, "gru"},
    [LEATI_CELL_GRU_RESET_AFTER] = {"leati_cuda_gru_reset_after_step", NULL,
                                    "leati_cuda_gru_reset_after_step_bwd", NULL, 5, "gru_reset_after"},
    [LEATI_CELL_SIMPLE] = {"leati_cuda_simple_step", NULL, "leati_cuda_simple_step_bwd", NULL, 2, "simple"}};

_Static_assert((int)LEATI_CUDA_LSTM == (int)LEATI_CELL_LSTM && (int)LEATI_CUDA_GRU == (int)LEATI_CELL_GRU &&
                   (int)LEATI_CUDA_GRU_RESET_AFTER == (int)LEATI_CELL_GRU_RESET_AFTER &&
                   (int)LEATI_CUDA_SIMPLE == (int)LEATI_CELL_SIMPLE,
               "the kernels count the cells as the engine does");

typedef struct rnn_state {
    leati_cuda_rnn_args args; /* without pointers */
    int inputs;
    CUfunction project, first, step, second, gradients; /* NULL: not needed */
    CUfunction persistent;                              /* NULL: one launch per step */
    bool small;                                         /* the persistent kernel is of rnn_lstm.cuh */
    leati_cuda_grid blocks;                             /* of the persistent kernel */
} rnn_state;

/* Takes memory for `count` values from the scratch. */
static void *take(char **at, int64_t count) {
    void *got = *at;
    *at += ((size_t)count * sizeof(float) + 63) / 64 * 64;
    return got;
}

static int64_t rows_of(const leati_cuda_rnn_args *a) {
    return (int64_t)a->batch * a->steps;
}

static int64_t weight_tiles(const leati_cuda_rnn_args *a) {
    return (int64_t)a->column_tiles * a->column_groups * (a->feature_tiles + a->unit_tiles);
}

/* Sets the pointers into scratch, which may start at NULL; returns the end. */
static char *place_forward(leati_cuda_rnn_args *a, char *at, bool some_steps) {
    int64_t states = (int64_t)a->batch * a->units;
    a->projected = take(&at, a->fused ? 0 : rows_of(a) * a->gates * a->units);
    if (a->samples) return at; /* a persistent kernel */
    a->state_h[0] = take(&at, states);
    a->state_h[1] = take(&at, states);
    a->state_c = take(&at, a->cell == LEATI_CUDA_LSTM ? states : 0);
    a->state_z = take(&at, a->cell == LEATI_CUDA_GRU ? states : 0);
    a->state_v = take(&at, a->cell == LEATI_CUDA_GRU ? states : 0);
    a->first = take(&at, some_steps ? a->batch : 0);
    return at;
}

static char *place_backward(leati_cuda_rnn_args *a, char *at, bool some_steps) {
    enum { tile_floats = LEATI_CUDA_RNN_TILE * LEATI_CUDA_RNN_TILE + LEATI_CUDA_RNN_TILE };
    int64_t states = (int64_t)a->batch * a->units;
    a->diff_gates = take(&at, rows_of(a) * a->diff_width);
    a->pass = take(&at, states);
    a->pass_c = take(&at, a->cell == LEATI_CUDA_LSTM ? states : 0);
    a->counters = take(&at, weight_tiles(a));
    a->partial = take(&at, a->splits > 1 ? a->splits * weight_tiles(a) * tile_floats : 0);
    a->first = take(&at, some_steps ? a->batch : 0);
    return at;
}

static unsigned parts(int64_t count, int64_t size) {
    return (unsigned)((count + size - 1) / size);
}

static leat_status launch(const leati_run *run, CUfunction function, unsigned x, unsigned y, unsigned z,
                          leati_cuda_rnn_args *args, leat_error *err) {
    leati_cuda_grid grid = {.x = x, .y = y, .z = z, .threads = LEATI_CUDA_RNN_THREADS};
    return leati_cuda_launch(leati_cuda_of(run->device), function, &grid, args, err);
}

/* ---- Forward ---- */

static void set_inputs(leati_cuda_rnn_args *a, const rnn_state *s, void *const *args) {
    const float *in[LEATI_RNN_INPUTS] = {0};
    for (int i = 0; i < s->inputs && i < LEATI_RNN_INPUTS; i++) in[i] = args[i];
    a->x = in[LEATI_RNN_X];
    a->kernel = in[LEATI_RNN_KERNEL];
    a->recurrent = in[LEATI_RNN_RECURRENT];
    a->bias = in[LEATI_RNN_BIAS];
    a->h0 = in[LEATI_RNN_H0];
    a->c0 = in[LEATI_RNN_C0];
    a->x_mask = in[LEATI_RNN_X_MASK];
    a->h_mask = in[LEATI_RNN_H_MASK];
    a->counted = in[LEATI_RNN_STEPS];
}

static leat_status find_first(const rnn_state *s, leati_cuda_rnn_args *a, const leati_run *run,
                              leat_error *err) {
    return a->counted ? launch(run, s->first, parts(a->batch, LEATI_CUDA_RNN_THREADS), 1, 1, a, err)
                      : LEAT_OK;
}

static leat_status launch_steps(const rnn_state *s, leati_cuda_rnn_args *a, const leati_run *run,
                                leat_error *err) {
    unsigned x = parts(a->units, LEATI_CUDA_RNN_STEP_UNITS), y = parts(a->batch, LEATI_CUDA_RNN_STEP_SAMPLES);
    LEATI_TRY(launch(run, s->step, x, y, 1, a, err));
    return s->second && a->step >= 0 ? launch(run, s->second, x, y, 1, a, err) : LEAT_OK;
}

static leat_status run_forward(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    const rnn_state *s = kernel->state;
    void *const *out = args + s->inputs;
    leati_cuda_rnn_args a = s->args;
    int columns = a.gates * a.units;
    set_inputs(&a, s, args);
    a.sequence = out[LEATI_RNN_OUT_SEQUENCE];
    a.h_last = out[LEATI_RNN_OUT_H_LAST];
    a.c_last = a.cell == LEATI_CUDA_LSTM ? out[LEATI_RNN_OUT_C_LAST] : NULL;
    a.workspace = a.kept ? out[LEATI_RNN_OUT_WORKSPACE] : NULL;
    place_forward(&a, run->scratch, a.counted != NULL);
    if (!a.fused)
        LEATI_TRY(launch(run, s->project, parts(rows_of(&a), LEATI_CUDA_RNN_TILE),
                         parts(a.x_mask ? a.units : columns, LEATI_CUDA_RNN_TILE),
                         a.x_mask ? (unsigned)a.gates : 1, &a, err));
    if (s->persistent)
        return leati_cuda_launch(leati_cuda_of(run->device), s->persistent, &s->blocks, &a, err);
    LEATI_TRY(find_first(s, &a, run, err));
    for (a.step = 0; a.step < a.steps; a.step++) LEATI_TRY(launch_steps(s, &a, run, err));
    return LEAT_OK;
}

/* ---- Backward ---- */

static leat_status launch_steps_back(const rnn_state *s, leati_cuda_rnn_args *a, const leati_run *run,
                                     leat_error *err) {
    bool of_start = a->diff_h0 || a->diff_c0;
    LEATI_TRY(find_first(s, a, run, err));
    for (a->step = a->steps - 1; a->step >= (of_start ? -1 : 0); a->step--)
        LEATI_TRY(launch_steps(s, a, run, err));
    return LEAT_OK;
}

static leat_status run_backward(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                leat_error *err) {
    const rnn_state *s = kernel->state;
    void *const *out = args + s->inputs;
    leati_cuda_rnn_args a = s->args;
    set_inputs(&a, s, args);
    a.workspace = args[LEATI_RNN_WORKSPACE];
    a.diff_sequence = args[LEATI_RNN_DIFF_SEQUENCE];
    a.diff_h_last = args[LEATI_RNN_DIFF_H_LAST];
    a.diff_c_last = args[LEATI_RNN_DIFF_C_LAST];
    a.diff_x = out[LEATI_RNN_X];
    a.diff_kernel = out[LEATI_RNN_KERNEL];
    a.diff_recurrent = out[LEATI_RNN_RECURRENT];
    a.diff_bias = out[LEATI_RNN_BIAS];
    a.diff_h0 = out[LEATI_RNN_H0];
    a.diff_c0 = a.cell == LEATI_CUDA_LSTM ? out[LEATI_RNN_C0] : NULL;
    place_backward(&a, run->scratch, a.counted != NULL);
    a.vectors = a.units % 4 == 0 && ((uintptr_t)a.workspace | (uintptr_t)a.diff_sequence) % 16 == 0;
    LEATI_TRY(s->persistent
                  ? leati_cuda_launch(leati_cuda_of(run->device), s->persistent, &s->blocks, &a, err)
                  : launch_steps_back(s, &a, run, err));
    bool of_weights = a.diff_kernel || a.diff_recurrent || a.diff_bias;
    a.weight_blocks = of_weights ? (int32_t)weight_tiles(&a) * a.splits : 0;
    int64_t x_blocks =
        a.diff_x ? (int64_t)parts(rows_of(&a), LEATI_CUDA_RNN_TILE) * parts(a.features, LEATI_CUDA_RNN_TILE)
                 : 0;
    int64_t blocks = a.weight_blocks + x_blocks;
    return blocks ? launch(run, s->gradients, (unsigned)blocks, 1, 1, &a, err) : LEAT_OK;
}

/* ---- Preparing ---- */

static leati_cuda_rnn_function function_of(const leati_eltwise *f) {
    static const int32_t kinds[LEATI_FN_COUNT] = {[LEATI_FN_TANH] = LEATI_CUDA_RNN_TANH,
                                                  [LEATI_FN_SIGMOID] = LEATI_CUDA_RNN_SIGMOID,
                                                  [LEATI_FN_HARD_SIGMOID] = LEATI_CUDA_RNN_HARD_SIGMOID,
                                                  [LEATI_FN_RELU] = LEATI_CUDA_RNN_RELU,
                                                  [LEATI_FN_ELU] = LEATI_CUDA_RNN_ELU,
                                                  [LEATI_FN_SELU] = LEATI_CUDA_RNN_SELU,
                                                  [LEATI_FN_SOFTPLUS] = LEATI_CUDA_RNN_SOFTPLUS,
                                                  [LEATI_FN_SOFTSIGN] = LEATI_CUDA_RNN_SOFTSIGN,
                                                  [LEATI_FN_EXP] = LEATI_CUDA_RNN_EXP,
                                                  [LEATI_FN_SQRT] = LEATI_CUDA_RNN_SQRT,
                                                  [LEATI_FN_LINEAR] = LEATI_CUDA_RNN_LINEAR};
    return (leati_cuda_rnn_function){kinds[f->function], f->a, f->b, f->c};
}

static leati_cuda_rnn_args args_of(const leati_rnn_shape *shape) {
    return (leati_cuda_rnn_args){.activation = function_of(&shape->activation),
                                 .recurrent_activation = function_of(&shape->recurrent_activation),
                                 .cell = (int32_t)shape->cell,
                                 .batch = (int32_t)shape->batch,
                                 .steps = (int32_t)shape->steps,
                                 .features = (int32_t)shape->features,
                                 .units = (int32_t)shape->units,
                                 .gates = (int32_t)shape->gates,
                                 .biases = (int32_t)shape->biases,
                                 .kept = shape->training
                                             ? kernels_of[shape->cell].kept * (int32_t)shape->units
                                             : 0,
                                 .go_backwards = shape->go_backwards,
                                 .carry_masked = shape->carry_masked};
}

static bool present(const leati_task *task, int input) {
    return input < task->input_count && task->inputs[input].rank >= 0;
}

/* Chooses the tiles of the gradients with respect to the weights.  A sum over few rows is one part. */
static void plan_weights(leati_cuda_rnn_args *a, const leati_task *task) {
    enum { least_rows = 128, most_blocks_each = 2 };
    bool per_gate =
        present(task, LEATI_RNN_X_MASK) || present(task, LEATI_RNN_H_MASK) || a->cell == LEATI_CUDA_GRU;
    a->diff_width = (a->gates + (a->cell == LEATI_CUDA_GRU_RESET_AFTER)) * a->units;
    a->column_groups = per_gate ? a->gates : 1;
    a->group_columns = a->gates * a->units / a->column_groups;
    a->column_tiles = (int32_t)parts(a->group_columns, LEATI_CUDA_RNN_TILE);
    a->feature_tiles = (int32_t)parts(a->features, LEATI_CUDA_RNN_TILE);
    a->unit_tiles = (int32_t)parts(a->units, LEATI_CUDA_RNN_TILE);
    int64_t wanted = most_blocks_each * leati_cuda_of(task->device)->multiprocessors / weight_tiles(a);
    int64_t most = rows_of(a) / least_rows, split = wanted < most ? wanted : most;
    int64_t each = (rows_of(a) + (split > 1 ? split : 1) - 1) / (split > 1 ? split : 1);
    a->split_rows = (int32_t)((each + 15) / 16 * 16);
    a->splits = (int32_t)parts(rows_of(a), a->split_rows);
}

/* Sets where the parts of a persistent kernel's shared memory start; returns its bytes. */
static int64_t place_shared(leati_cuda_rnn_args *a, int terms, bool backward) {
    int threads = 16 * terms, padded = 4 * terms, held = terms > 24 && a->gates > 2 ? 2 : a->gates;
    int64_t rows = (int64_t)a->chunk * a->samples,
            width = backward ? a->kept + a->units : a->gates * a->units;
    a->at_state = (a->gates - held) * terms * threads;
    a->at_slots = a->at_state + (backward ? 8 : 3) * a->samples * padded;
    a->at_rows = a->at_slots + (backward ? 2 : 1) * a->samples * threads;
    a->x_stride = (int32_t)((rows + 7) / 8 * 8 + 4);
    int64_t buffer = a->fused ? (int64_t)a->x_stride * a->features : rows * width;
    int64_t x = (a->at_rows + (a->fused ? rows * width : 0) + 3) / 4 * 4;
    a->at_x = (int32_t)x;
    a->buffer = (int32_t)((buffer + 3) / 4 * 4);
    return (x + 2 * (int64_t)a->buffer) * (int64_t)sizeof(float);
}

/* Chooses the samples of a block, and how many steps have their rows in shared memory at a time, so that `each` blocks
 * fit on a multiprocessor.  Returns the bytes of shared memory. */
static int64_t plan_persistent(leati_cuda_rnn_args *a, const leati_task *task, int terms, bool backward) {
    enum {
        most_samples = 8,
        most_rows = 32,
        most_fused_features = 64,
        most_fused_of_few = 512,
        reserved = 1024
    };
    const leati_cuda *cuda = leati_cuda_of(task->device);
    int each = terms <= 8 ? 4 : terms <= 16 ? 2 : 1;
    int64_t wanted = parts(a->batch, (int64_t)cuda->multiprocessors * each), bytes;
    if (present(task, LEATI_RNN_H_MASK)) wanted = 1;
    a->samples = (int32_t)(wanted < most_samples ? wanted : most_samples);
    bool few = (int64_t)a->batch * a->steps <= most_rows;
    a->fused = !backward && !present(task, LEATI_RNN_X_MASK) &&
               a->features <= (few ? most_fused_of_few : most_fused_features);
    a->chunk = (a->fused ? most_rows : most_rows / 2) / a->samples;
    if (a->chunk > a->steps) a->chunk = a->steps;
    while ((bytes = place_shared(a, terms, backward)) > cuda->shared_bytes / each - reserved && a->chunk > 1)
        a->chunk = (a->chunk + 1) / 2;
    return bytes;
}

/* Sets s->persistent, unless the recurrent weights need more than one multiprocessor. */
static leat_status find_persistent(const leati_task *task, rnn_state *s, bool backward, leat_error *err) {
    enum { most_units = 128 };
    leati_cuda *cuda = leati_cuda_of(task->device);
    leati_cuda_rnn_args a = s->args;
    char name[64];
    int terms = a.units <= 32 ? 8 : a.units <= 64 ? 16 : a.units <= 96 ? 24 : 32;
    if (a.units > most_units) return LEAT_OK;
    int64_t bytes = plan_persistent(&a, task, terms, backward);
    int64_t most_bytes = cuda->shared_bytes - 1024; /* the kernels have some of fixed size, too */
    if (bytes > most_bytes) return LEAT_OK;
    snprintf(name, sizeof name, "leati_cuda_%s_%d%s", kernels_of[a.cell].persistent, terms,
             backward ? "_bwd" : "");
    LEATI_TRY(leati_cuda_kernel(cuda, LEATI_CUDA_rnn, name, (size_t)most_bytes, &s->persistent, err));
    s->args = a;
    s->blocks = (leati_cuda_grid){.x = parts(a.batch, a.samples),
                                  .threads = (unsigned)(16 * terms),
                                  .shared_bytes = (unsigned)bytes};
    return LEAT_OK;
}

/* Returns whether the kernels for a small LSTM serve the shape: they have one sample in a block, and one block on a
 * multiprocessor. */
static bool is_small(const leati_cuda_rnn_args *a, const leati_task *task, bool backward) {
    enum { most_units = 64, most_features = 32 };
    bool plain = a->cell == LEATI_CUDA_LSTM && a->activation.kind == LEATI_CUDA_RNN_TANH &&
                 a->recurrent_activation.kind == LEATI_CUDA_RNN_SIGMOID && !present(task, LEATI_RNN_X_MASK) &&
                 !present(task, LEATI_RNN_H_MASK) && !present(task, LEATI_RNN_STEPS);
    return plain && a->units <= most_units && (backward || a->features <= most_features) &&
           a->batch <= leati_cuda_of(task->device)->multiprocessors;
}

static leat_status find_small(const leati_task *task, rnn_state *s, bool backward, leat_error *err) {
    const char *name = backward ? "leati_cuda_small_lstm_bwd" : "leati_cuda_small_lstm";
    LEATI_TRY(leati_cuda_kernel(leati_cuda_of(task->device), LEATI_CUDA_rnn, name, 0, &s->persistent, err));
    s->small = true;
    s->args.samples = 1;
    s->args.fused = true;
    s->blocks = (leati_cuda_grid){.x = (unsigned)s->args.batch, .threads = 256};
    return LEAT_OK;
}

/* Returns why the kernels cannot serve the shape, or NULL. */
static const char *refusal(const leati_rnn_shape *s) {
    enum { most = 1 << 20 };
    if (s->batch <= 0 || s->steps <= 0 || s->features <= 0 || s->units <= 0) return "an empty tensor";
    if (s->batch > most - LEATI_CUDA_RNN_STEP_SAMPLES || s->features > most || s->units > most / 16)
        return "a dimension above 2^20";
    if (s->batch * s->steps > INT32_MAX - LEATI_CUDA_RNN_TILE) return "more than 2^31 rows";
    return NULL;
}

static leat_status find(const leati_task *task, const char *name, CUfunction *out, leat_error *err) {
    return name ? leati_cuda_kernel(leati_cuda_of(task->device), LEATI_CUDA_rnn, name, 0, out, err) : LEAT_OK;
}

static leat_status find_kernels(const leati_task *task, rnn_state *s, bool backward, leat_error *err) {
    const cell_kernels *names = &kernels_of[s->args.cell];
    LEATI_TRY(find(task, "leati_cuda_rnn_first", &s->first, err));
    LEATI_TRY(find(task, "leati_cuda_rnn_project", &s->project, err));
    LEATI_TRY(find(task, "leati_cuda_rnn_gradients", &s->gradients, err));
    LEATI_TRY(find(task, backward ? names->step_bwd : names->step, &s->step, err));
    return find(task, backward ? names->second_bwd : names->second, &s->second, err);
}

static leat_status prepare(const leati_task *task, leati_kernel *kernel, bool backward, char *why,
                           leat_error *err) {
    leati_rnn_shape shape =
        leati_rnn_shape_of(task->attrs, &task->inputs[LEATI_RNN_X], &task->inputs[LEATI_RNN_RECURRENT]);
    const char *refused = refusal(&shape);
    if (refused) {
        snprintf(why, LEATI_REASON_BYTES, "%s", refused);
        return LEAT_OK;
    }
    rnn_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a recurrent cell");
    kernel->state = s;
    kernel->destroy = leati_cuda_free_state;
    s->args = args_of(&shape);
    s->inputs = task->input_count;
    plan_weights(&s->args, task);
    LEATI_TRY(find_kernels(task, s, backward, err));
    LEATI_TRY(is_small(&s->args, task, backward) ? find_small(task, s, backward, err)
                                                 : find_persistent(task, s, backward, err));
    bool some_steps = present(task, LEATI_RNN_STEPS);
    leati_cuda_rnn_args measured = s->args;
    char *end =
        backward ? place_backward(&measured, NULL, some_steps) : place_forward(&measured, NULL, some_steps);
    kernel->scratch_bytes = (size_t)(uintptr_t)end;
    kernel->run = backward ? run_backward : run_forward;
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda%s",
             s->small        ? " persistent small"
             : s->persistent ? " persistent"
                             : "");
    return LEAT_OK;
}

LEATI_CUDA_PREPARE(rnn) {
    LEATI_TRY(prepare(task, kernel, false, why, err));
    const rnn_state *s = kernel->state;
    if (s && s->args.kept)
        kernel->output_bytes[LEATI_RNN_OUT_WORKSPACE] =
            (size_t)rows_of(&s->args) * (size_t)s->args.kept * sizeof(float);
    return LEAT_OK;
}

LEATI_CUDA_PREPARE(rnn_bwd) {
    if (!task->forward || task->forward->run != run_forward) {
        snprintf(why, LEATI_REASON_BYTES, "the workspace is not of this backend's forward kernel");
        return LEAT_OK;
    }
    return prepare(task, kernel, true, why, err);
}
