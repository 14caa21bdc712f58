/* SPDX-License-Identifier: Apache-2.0 */
/* BATCH_NORM, BATCH_NORM_APPLY, BATCH_NORM_BWD, GROUP_NORM and GROUP_NORM_BWD.  A batch normalization of little data is
 * one launch; otherwise the first launch computes the sums, and the second one normalizes.  Room: backends/cuda. */
#include "backends/cuda/kernels/norm.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/cuda/ops/columns.h"
#include "backends/cuda/ops/ops.h"
#include "backends/cuda/ops/program.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/op_semantics/group_norm.h"
#include "tensor/bfloat16.h"

/* The ways to compute one op: the fastest one, and one for tensors that are not aligned to 16 bytes. */
enum { FASTEST, UNALIGNED, VARIANTS };

typedef struct norm_state {
    leati_cuda *cuda;
    CUfunction first[VARIANTS], second[VARIANTS];
    leati_column_plan sums[VARIANTS], elements[VARIANTS];
    unsigned *finished;        /* the device's memory: counters of the kernel, 0 between the launches */
    size_t more_offset;        /* in the scratch: what the first launch leaves for the second */
    int inputs, args;          /* numbers of the op's own inputs, and of all arguments */
    int outputs_at, addend_at; /* indices of arguments; addend_at is -1 without an addend */
    leati_desc descs[LEATI_MAX_INPUTS + LEATI_MAX_OUTPUTS];
    bool has_post; /* a function follows */
    leati_cuda_function post;
    bool relu;      /* post is max(x, 0) */
    bool has_signs; /* BATCH_NORM stores the signs of dst in its workspace, and BATCH_NORM_BWD reads them */
    int signs;      /* binary logarithm of the number of signs in a byte */
    CUfunction store_signs;
    float epsilon;
    leati_group_shape group; /* GROUP_NORM */
    leati_cuda_grid teams[VARIANTS];
    bool wants_channels;
} norm_state;

static void destroy_norm(void *state) {
    norm_state *s = state;
    s->cuda->device.class->release(&s->cuda->device, s->finished);
    leati_free(s);
}

/* ---- Preparing ---- */

typedef struct choice {
    const char *suffix;
    int vector;
} choice;

/* Returns the kernel for tensors of these types, whose rows have `channels` elements.  `large`: bit i: argument i has
 * the shape of the source. */
static choice choose(const norm_state *s, int64_t channels, uint64_t large, int variant) {
    bool f32 = true, bf16 = true;
    for (int i = 0; i < s->args; ++i) {
        if (!(large >> i & 1u) || s->descs[i].rank < 0) continue;
        f32 = f32 && s->descs[i].dtype == LEAT_F32;
        bf16 = bf16 && s->descs[i].dtype == LEATI_BF16;
    }
    if (variant == UNALIGNED || channels % 4 != 0) return (choice){"any_1", 1};
    if (bf16 && channels % 8 == 0) return (choice){"bf16_8", 8};
    return (choice){f32 ? "f32_4" : "any_4", 4};
}

static leat_status find_kernel(norm_state *s, const char *name, const char *suffix, CUfunction *out,
                               leat_error *err) {
    char full[96];
    snprintf(full, sizeof full, "leati_cuda_%s%s%s", name, suffix[0] ? "_" : "", suffix);
    return leati_cuda_kernel(s->cuda, LEATI_CUDA_norm, full, 0, out, err);
}

static leat_status make_state(const leati_task *task, leati_kernel *kernel, norm_state **out,
                              leat_error *err) {
    norm_state *s = *out = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a normalization");
    s->cuda = leati_cuda_of(task->device);
    s->inputs = leati_op_inputs(task);
    s->outputs_at = task->input_count;
    s->args = task->input_count + task->output_count;
    s->addend_at = task->attrs->post.kinds & LEATI_POST_ADD ? s->inputs + LEATI_POST_ADDEND : -1;
    for (int i = 0; i < s->args; ++i)
        s->descs[i] = i < task->input_count ? task->inputs[i] : task->outputs[i - task->input_count];
    if (task->attrs->post.kinds & LEATI_POST_FUNCTION) {
        const leati_eltwise *f = &task->attrs->post.function;
        s->has_post = true;
        s->post = leati_cuda_function_of(f);
        s->relu = f->function == LEATI_FN_RELU && f->a == 0 && f->c == 0 && isinf(f->b);
    }
    kernel->state = s;
    kernel->destroy = destroy_norm;
    snprintf(kernel->implementation, sizeof kernel->implementation, "cuda");
    return LEAT_OK;
}

/* Finds memory for the partial sums and the counters of all variants. */
static leat_status make_room(norm_state *s, leati_kernel *kernel, int64_t more_floats, leat_error *err) {
    size_t partial = 0, counters = 0;
    for (int v = 0; v < VARIANTS; ++v) {
        if (s->sums[v].partial_bytes > partial) partial = s->sums[v].partial_bytes;
        if (s->sums[v].counters > counters) counters = s->sums[v].counters;
    }
    if (counters == 0) return LEAT_OK;
    s->more_offset = (partial + 255) / 256 * 256;
    kernel->scratch_bytes = s->more_offset + (size_t)more_floats * sizeof(float);
    void *memory = NULL;
    LEATI_TRY(
        s->cuda->device.class->allocate(&s->cuda->device, counters * sizeof *s->finished, &memory, err));
    s->finished = memory;
    return LEAT_OK;
}

/* Prepares an op that sums over the rows (first, may be NULL), and one that computes each element (second, with at most
 * `blocks` blocks on a multiprocessor).  `again`: the first kernel computes the elements, too, if there is one part. */
static leat_status prepare_columns(norm_state *s, leati_kernel *kernel, uint64_t large, const char *first,
                                   const char *second, int blocks, bool again, leat_error *err) {
    const leati_desc *src = &s->descs[0];
    int64_t channels = src->shape[src->rank - 1], rows = channels > 0 ? leati_desc_count(src) / channels : 0;
    for (int v = 0; v < VARIANTS; ++v) {
        choice kind = choose(s, channels, large, v);
        const leati_column_sums sums = {.count = 1,
                                        .rows = rows,
                                        .channels = channels,
                                        .vector = kind.vector,
                                        .sums = 2,
                                        .again = again,
                                        .most_threads = 512};
        s->elements[v] = leati_plan_elements(s->cuda, rows, channels, kind.vector, blocks);
        if (first) s->sums[v] = leati_plan_columns(s->cuda, &sums);
        if (first) LEATI_TRY(find_kernel(s, first, kind.suffix, &s->first[v], err));
        LEATI_TRY(find_kernel(s, second, kind.suffix, &s->second[v], err));
    }
    return make_room(s, kernel, 4 * channels, err);
}

/* ---- Running ---- */

static leati_cuda_tensor tensor_at(const norm_state *s, void *const *args, int i) {
    return i >= 0 && args[i] ? leati_cuda_tensor_of(args[i], &s->descs[i]) : (leati_cuda_tensor){0};
}

static int variant_of(const norm_state *s, void *const *args) {
    for (int i = 0; i < s->args; ++i)
        if (args[i] && !leati_is_aligned(args[i])) return UNALIGNED;
    return FASTEST;
}

static leati_cuda_columns columns_of(const norm_state *s, int variant, const leati_run *run) {
    leati_cuda_columns columns = s->sums[variant].columns;
    columns.partial = run->scratch;
    columns.finished = s->finished;
    return columns;
}

/* Returns room for what the first launch leaves for the second. */
static float *coefficients_of(const norm_state *s, const leati_run *run) {
    return (float *)((unsigned char *)run->scratch + s->more_offset);
}

static leat_status run_apply(const leati_kernel *kernel, void *const *args, const leati_run *run,
                             leat_error *err) {
    const norm_state *s = kernel->state;
    int v = variant_of(s, args);
    (void)run;
    if (leati_desc_count(&s->descs[0]) == 0) return LEAT_OK;
    leati_cuda_batch_norm_args a = {.columns = s->elements[v].columns,
                                    .src = tensor_at(s, args, 0),
                                    .gamma = tensor_at(s, args, 1),
                                    .beta = tensor_at(s, args, 2),
                                    .mean = tensor_at(s, args, 3),
                                    .variance = tensor_at(s, args, 4),
                                    .addend = tensor_at(s, args, s->addend_at),
                                    .dst = tensor_at(s, args, s->outputs_at),
                                    .has_post = s->has_post,
                                    .post = s->post,
                                    .relu = s->relu,
                                    .epsilon = s->epsilon};
    return leati_cuda_launch(s->cuda, s->second[v], &s->elements[v].grid, &a, err);
}

static leat_status normalize(const norm_state *s, void *const *args, const leati_run *run, leat_error *err) {
    int v = variant_of(s, args);
    if (leati_desc_count(&s->descs[0]) == 0) return LEAT_OK;
    leati_cuda_batch_norm_args a = {.columns = columns_of(s, v, run),
                                    .src = tensor_at(s, args, 0),
                                    .gamma = tensor_at(s, args, s->inputs > 1 ? 1 : -1),
                                    .beta = tensor_at(s, args, s->inputs > 2 ? 2 : -1),
                                    .mean = tensor_at(s, args, s->outputs_at + 1),
                                    .variance = tensor_at(s, args, s->outputs_at + 2),
                                    .addend = tensor_at(s, args, s->addend_at),
                                    .dst = tensor_at(s, args, s->outputs_at),
                                    .positive = s->has_signs && v == FASTEST ? args[s->outputs_at + 3] : NULL,
                                    .has_post = s->has_post,
                                    .post = s->post,
                                    .relu = s->relu,
                                    .epsilon = s->epsilon};
    if (a.columns.parts > 1) a.coefficients = coefficients_of(s, run);
    LEATI_TRY(leati_cuda_launch(s->cuda, s->first[v], &s->sums[v].grid, &a, err));
    if (a.columns.parts == 1) return LEAT_OK;
    a.columns = s->elements[v].columns;
    return leati_cuda_launch(s->cuda, s->second[v], &s->elements[v].grid, &a, err);
}

static leat_status run_batch_norm(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                  leat_error *err) {
    const norm_state *s = kernel->state;
    LEATI_TRY(normalize(s, args, run, err));
    if (!s->has_signs || variant_of(s, args) != UNALIGNED) return LEAT_OK;
    leati_cuda_norm_signs_args a = {.count = leati_desc_count(&s->descs[0]) >> s->signs,
                                    .dst = tensor_at(s, args, s->outputs_at),
                                    .positive = args[s->outputs_at + 3],
                                    .signs = s->signs};
    leati_cuda_grid grid = leati_cuda_grid_for(s->cuda, a.count);
    return leati_cuda_launch(s->cuda, s->store_signs, &grid, &a, err);
}

static leati_cuda_norm_gradient gradient_of(const norm_state *s, void *const *args) {
    return (leati_cuda_norm_gradient){.diff_dst = tensor_at(s, args, 4),
                                      .more = tensor_at(s, args, s->inputs > 7 ? 7 : -1),
                                      .rectified = tensor_at(s, args, s->inputs > 5 ? 5 : -1),
                                      .positive = s->has_signs ? args[6] : NULL,
                                      .signs = s->signs};
}

static leat_status run_batch_norm_bwd(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                      leat_error *err) {
    const norm_state *s = kernel->state;
    int v = variant_of(s, args), out = s->outputs_at;
    if (s->sums[v].columns.channels == 0) return LEAT_OK;
    leati_cuda_batch_norm_bwd_args a = {.columns = columns_of(s, v, run),
                                        .src = tensor_at(s, args, 0),
                                        .gamma = tensor_at(s, args, 1),
                                        .mean = tensor_at(s, args, 2),
                                        .variance = tensor_at(s, args, 3),
                                        .gradient = gradient_of(s, args),
                                        .diff_src = tensor_at(s, args, out),
                                        .diff_gamma = tensor_at(s, args, out + 1),
                                        .diff_beta = tensor_at(s, args, out + 2),
                                        .diff = tensor_at(s, args, out + 3),
                                        .epsilon = s->epsilon};
    if (a.columns.parts > 1) a.coefficients = coefficients_of(s, run);
    LEATI_TRY(leati_cuda_launch(s->cuda, s->first[v], &s->sums[v].grid, &a, err));
    if (a.columns.parts == 1 || !a.diff_src.at) return LEAT_OK;
    if (a.diff.at) a.gradient = (leati_cuda_norm_gradient){.diff_dst = a.diff};
    a.columns = s->elements[v].columns;
    return leati_cuda_launch(s->cuda, s->second[v], &s->elements[v].grid, &a, err);
}

static int64_t channels_of(const norm_state *s) {
    return s->descs[0].shape[s->descs[0].rank - 1];
}

/* Makes BATCH_NORM store the signs of dst if BATCH_NORM_BWD wants them. */
static leat_status prepare_signs(const leati_task *task, leati_kernel *kernel, norm_state *s, uint64_t large,
                                 leat_error *err) {
    int vector = choose(s, channels_of(s), large, FASTEST).vector;
    if (vector == 1 || task->unused >> 3 & 1u || !(task->attrs->post.kinds & LEATI_POST_FUNCTION))
        return LEAT_OK;
    s->has_signs = true;
    s->signs = vector == 8 ? 3 : 2;
    kernel->output_bytes[3] = (size_t)(leati_desc_count(&s->descs[0]) >> s->signs);
    return find_kernel(s, "norm_signs", "", &s->store_signs, err);
}

/* Finds out whether the forward kernel stores the signs of `rectified`. */
static void find_signs(const leati_task *task, norm_state *s, uint64_t large) {
    if (s->inputs < 7 || task->inputs[6].rank < 0 || !task->forward || task->forward->run != run_batch_norm)
        return;
    const norm_state *forward = task->forward->state;
    s->signs = forward->signs;
    s->has_signs = forward->has_signs && choose(s, channels_of(s), large, FASTEST).vector <= 1 << s->signs;
}

LEATI_CUDA_PREPARE(batch_norm) {
    norm_state *s = NULL;
    (void)why;
    LEATI_TRY(make_state(task, kernel, &s, err));
    s->epsilon = task->attrs->batch_norm.epsilon;
    uint64_t large = 1u | 1ull << s->outputs_at | (s->addend_at >= 0 ? 1ull << s->addend_at : 0);
    LEATI_TRY(prepare_columns(s, kernel, large, "batch_norm", "batch_norm_apply", 3, true, err));
    LEATI_TRY(prepare_signs(task, kernel, s, large, err));
    kernel->run = run_batch_norm;
    return LEAT_OK;
}

LEATI_CUDA_PREPARE(batch_norm_apply) {
    norm_state *s = NULL;
    (void)why;
    LEATI_TRY(make_state(task, kernel, &s, err));
    s->epsilon = task->attrs->batch_norm.epsilon;
    uint64_t large = 1u | 1ull << s->outputs_at | (s->addend_at >= 0 ? 1ull << s->addend_at : 0);
    LEATI_TRY(prepare_columns(s, kernel, large, NULL, "batch_norm_apply", 3, false, err));
    kernel->run = run_apply;
    return LEAT_OK;
}

LEATI_CUDA_PREPARE(batch_norm_bwd) {
    norm_state *s = NULL;
    (void)why;
    LEATI_TRY(make_state(task, kernel, &s, err));
    s->epsilon = task->attrs->batch_norm.epsilon;
    uint64_t large = 1u | 1u << 4 | (s->inputs > 5 ? 1u << 5 : 0) | (s->inputs > 7 ? 1u << 7 : 0);
    if (!(task->unused & 1u)) large |= 1ull << s->outputs_at;
    if (!(task->unused & 8u)) large |= 1ull << (s->outputs_at + 3);
    bool again = !(task->unused & 1u);
    LEATI_TRY(prepare_columns(s, kernel, large, "batch_norm_bwd", "batch_norm_bwd_apply", 3, again, err));
    find_signs(task, s, large);
    kernel->run = run_batch_norm_bwd;
    return LEAT_OK;
}

/* ---- Group normalization ---- */

/* Groups of at most this many elements are computed by one warp each. */
enum { WARP_ELEMENTS = 1024 };

static leat_status run_group_norm(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                  leat_error *err) {
    const norm_state *s = kernel->state;
    int v = variant_of(s, args);
    (void)run;
    if (s->teams[v].x == 0) return LEAT_OK;
    leati_cuda_group_norm_args a = {.rows = s->group.rows,
                                    .places = s->group.places,
                                    .channels = s->group.channels,
                                    .groups = s->group.groups,
                                    .src = tensor_at(s, args, 0),
                                    .gamma = tensor_at(s, args, 1),
                                    .beta = tensor_at(s, args, 2),
                                    .dst = tensor_at(s, args, 3),
                                    .mean = tensor_at(s, args, 4),
                                    .inverse = tensor_at(s, args, 5),
                                    .epsilon = s->epsilon};
    return leati_cuda_launch(s->cuda, s->first[v], &s->teams[v], &a, err);
}

static leat_status run_group_norm_bwd(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                      leat_error *err) {
    const norm_state *s = kernel->state;
    int v = variant_of(s, args);
    leati_cuda_group_norm_bwd_args a = {.rows = s->group.rows,
                                        .places = s->group.places,
                                        .channels = s->group.channels,
                                        .groups = s->group.groups,
                                        .columns = columns_of(s, v, run),
                                        .src = tensor_at(s, args, 0),
                                        .gamma = tensor_at(s, args, 1),
                                        .mean = tensor_at(s, args, 2),
                                        .inverse = tensor_at(s, args, 3),
                                        .diff_dst = tensor_at(s, args, 4),
                                        .diff_src = tensor_at(s, args, 5),
                                        .diff_gamma = tensor_at(s, args, 6),
                                        .diff_beta = tensor_at(s, args, 7)};
    if (s->teams[v].x > 0) LEATI_TRY(leati_cuda_launch(s->cuda, s->first[v], &s->teams[v], &a, err));
    if (!s->wants_channels) return LEAT_OK;
    return leati_cuda_launch(s->cuda, s->second[v], &s->sums[v].grid, &a, err);
}

/* Groups of at most this many elements are kept in the registers of a block. */
enum { KEPT_ELEMENTS = 8192 };

/* Sets the number of blocks for teams that compute a group each. */
static void set_teams(norm_state *s, int variant, bool warp, unsigned threads) {
    int64_t teams = s->group.rows * s->group.groups, warps = threads / 32;
    s->teams[variant] =
        (leati_cuda_grid){.x = (unsigned)(warp ? (teams + warps - 1) / warps : teams), .threads = threads};
}

/* Finds the kernels for one group for each row (layer_norm), and for any groups (group_norm). */
static leat_status prepare_groups(const leati_task *task, leati_kernel *kernel, norm_state **out,
                                  uint64_t large, const char *layer, const char *group, leat_error *err) {
    LEATI_TRY(make_state(task, kernel, out, err));
    norm_state *s = *out;
    s->epsilon = task->attrs->group_norm.epsilon;
    s->group = leati_group_shape_of(task->attrs, &task->inputs[0]);
    int64_t elements = s->group.places * (s->group.channels / s->group.groups);
    bool warp = elements <= WARP_ELEMENTS;
    for (int v = 0; v < VARIANTS; ++v) {
        choice kind = choose(s, s->group.channels, large, v);
        bool kept = kind.vector > 1 && s->group.groups == 1 && elements <= KEPT_ELEMENTS;
        const char *types = strncmp(kind.suffix, "any", 3) == 0 ? "any" : kind.vector == 8 ? "bf16" : "f32";
        char name[64];
        if (!kept) types = kind.vector > 1 && s->group.channels / s->group.groups % 4 == 0 ? "4" : "1";
        snprintf(name, sizeof name, "%s_%s_%s", kept ? layer : group, warp ? "warp" : "block", types);
        LEATI_TRY(find_kernel(s, name, "", &s->first[v], err));
        set_teams(s, v, warp, warp ? 128 : kept || elements < 16384 ? 256 : 1024);
    }
    return LEAT_OK;
}

LEATI_CUDA_PREPARE(group_norm) {
    norm_state *s = NULL;
    (void)why;
    LEATI_TRY(prepare_groups(task, kernel, &s, 1u | 1u << 3, "layer_norm", "group_norm", err));
    kernel->run = run_group_norm;
    return LEAT_OK;
}

LEATI_CUDA_PREPARE(group_norm_bwd) {
    norm_state *s = NULL;
    (void)why;
    LEATI_TRY(
        prepare_groups(task, kernel, &s, 1u | 1u << 4 | 1u << 5, "layer_norm_bwd", "group_norm_bwd", err));
    s->wants_channels = (task->unused & 6u) != 6u;
    for (int v = 0; v < VARIANTS; ++v) {
        bool vectors = v == FASTEST && s->group.channels % 4 == 0;
        const leati_column_sums sums = {.count = 1,
                                        .rows = s->group.rows * s->group.places,
                                        .channels = s->group.channels,
                                        .vector = vectors ? 4 : 1,
                                        .sums = 2,
                                        .most_threads = 1024};
        s->sums[v] = leati_plan_columns(s->cuda, &sums);
        LEATI_TRY(find_kernel(s, "group_norm_channels", vectors ? "4" : "1", &s->second[v], err));
    }
    LEATI_TRY(make_room(s, kernel, 0, err));
    kernel->run = run_group_norm_bwd;
    return LEAT_OK;
}
