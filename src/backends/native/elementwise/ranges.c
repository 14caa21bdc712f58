/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise functions, casts, random numbers, pooling, resampling and optimizer updates: their preparation, and
 * the sharing of such loops among threads (ranges.h).  Room: backends/native. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/native/ops.h"
#include "backends/native/elementwise/ranges.h"
#include "backends/native/share.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "tensor/bfloat16.h"

/* Bytes that each thread must have to move.  Less data would have to be fetched from another core's cache. */
#define THREAD_BYTES 131072
#define PIECE        2048 /* elements: their f32 copies stay in the L1 cache */

/* Runs the loop over pieces whose bf16 inputs are converted to f32 first, and whose f32 output is converted to bf16
 * after.  An input of one element that is broadcast is the same for all pieces. */
static void run_pieces(const leati_range_state *s, void *const *args, leati_range_job job, int64_t first,
                       int64_t last) {
    float converted[3][PIECE];
    const leati_native_isa *isa = leati_native_isa_of();
    bool out = s->bf16_args >> s->writes & 1u;
    for (int64_t i = first, n; i < last; i += n) {
        n = last - i < PIECE ? last - i : PIECE;
        for (int k = 0; k < s->reads; k++) {
            bool one = job.op == LEATI_OP_BINARY && job.binary.axes == 1 && job.binary.stride[k][0] == 0;
            int64_t at = one ? 0 : i;
            job.in[k] = s->bf16_args >> k & 1u ? converted[k] : (const float *)args[k] + at;
            if (s->bf16_args >> k & 1u)
                isa->bf16_to_f32((const uint16_t *)args[k] + at, converted[k], one ? 1 : n);
        }
        job.out[0] = out ? converted[2] : (float *)args[s->writes] + i;
        s->range(&job, 0, n);
        if (out) isa->f32_to_bf16(converted[2], (uint16_t *)args[s->writes] + i, n);
    }
}

static void run_part(const leati_kernel *kernel, void *const *args, const leati_run *run, int t) {
    const leati_range_state *s = kernel->state;
    leati_range_job job = s->job;
    int64_t units = (s->count + s->unit - 1) / s->unit;
    int64_t first = units * t / s->threads * s->unit, last = units * (t + 1) / s->threads * s->unit;
    for (int i = 0; i < s->reads; i++) job.in[i] = args[i];
    for (int i = 0; i < s->written; i++) job.out[i] = args[s->writes + i];
    if (s->read_last) job.in[s->reads] = args[s->read_last];
    if (job.op == LEATI_OP_DROPOUT || job.op == LEATI_OP_RANDOM_NORMAL)
        job.random.key = leati_mix(run->seed, run->step);
    if (last > s->count) last = s->count;
    if (s->bf16_args)
        run_pieces(s, args, job, first, last);
    else
        s->range(&job, first, last);
}

leat_status leati_range_run(const leati_kernel *kernel, void *const *args, const leati_run *run,
                            leat_error *err) {
    const leati_range_state *s = kernel->state;
    (void)err;
    leati_share(s->threads, run_part, kernel, args, run);
    return LEAT_OK;
}

leat_status leati_range_prepare(leati_range_state **out, const leati_task *task, leati_kernel *kernel,
                                leat_error *err) {
    leati_range_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "an element-wise kernel");
    const leati_native_isa *isa = leati_native_isa_of();
    s->attrs = *task->attrs;
    s->job.attrs = &s->attrs;
    s->job.op = task->op;
    s->range = isa->ranges[task->op];
    s->count = task->output_count > 0 ? leati_desc_count(&task->outputs[0]) : 0;
    s->unit = 64;
    s->reads = task->input_count;
    s->writes = task->input_count;
    s->written = 1;
    kernel->state = s;
    kernel->destroy = leati_free;
    kernel->run = leati_range_run;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native %s", isa->name);
    *out = s;
    return LEAT_OK;
}

bool leati_range_take_bf16(leati_range_state *s, const leati_task *task, char *why) {
    bool supported = s->job.op != LEATI_OP_BINARY || s->job.binary.axes <= 1;
    for (int i = 0; i < task->input_count + task->output_count; i++) {
        leat_dtype dtype =
            (i < task->input_count ? task->inputs[i] : task->outputs[i - task->input_count]).dtype;
        supported = supported && (dtype == LEAT_F32 || dtype == LEATI_BF16);
        if (dtype == LEATI_BF16) s->bf16_args |= UINT32_C(1) << i;
    }
    if (supported || !s->bf16_args) return true;
    snprintf(why, LEATI_REASON_BYTES, "bfloat16 with an operand that is broadcast along rows");
    return false;
}

int leati_range_threads(const leati_task *task, int64_t bytes) {
    return leati_threads_for(bytes / THREAD_BYTES, task->threads);
}

void leati_range_share(leati_range_state *s, const leati_task *task, int64_t bytes) {
    s->threads = leati_range_threads(task, bytes);
}

int64_t leati_task_bytes(const leati_task *task) {
    int64_t bytes = 0;
    for (int i = 0; i < task->input_count; i++)
        if (task->inputs[i].rank >= 0) bytes += (int64_t)leati_desc_bytes(&task->inputs[i]);
    for (int i = 0; i < task->output_count; i++) bytes += (int64_t)leati_desc_bytes(&task->outputs[i]);
    return bytes;
}

leat_status leati_native_eltwise(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    leati_range_state *s;
    LEATI_TRY(leati_range_prepare(&s, task, kernel, err));
    if (!leati_range_take_bf16(s, task, why)) kernel->run = NULL;
    leati_range_share(s, task, leati_task_bytes(task));
    return LEAT_OK;
}

leat_status leati_native_eltwise_bwd(const leati_task *task, leati_kernel *kernel, char *why,
                                     leat_error *err) {
    leati_range_state *s;
    LEATI_TRY(leati_range_prepare(&s, task, kernel, err));
    if (!leati_range_take_bf16(s, task, why)) kernel->run = NULL;
    s->job.eltwise_bwd.from_dst = leati_eltwise_uses_dst(&s->attrs.eltwise);
    leati_range_share(s, task, leati_task_bytes(task));
    return LEAT_OK;
}

leat_status leati_native_cast(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    leati_range_state *s;
    if (task->attrs->cast.dtype != LEAT_F32 && task->attrs->cast.dtype != LEATI_BF16) {
        snprintf(why, LEATI_REASON_BYTES, "a cast to %s", leat_dtype_name(task->attrs->cast.dtype));
        return LEAT_OK;
    }
    LEATI_TRY(leati_range_prepare(&s, task, kernel, err));
    s->job.cast.src_dtype = task->inputs[0].dtype;
    leati_range_share(s, task, leati_task_bytes(task));
    return LEAT_OK;
}

leat_status leati_native_random_normal(const leati_task *task, leati_kernel *kernel, char *why,
                                       leat_error *err) {
    (void)why;
    leati_range_state *s;
    LEATI_TRY(leati_range_prepare(&s, task, kernel, err));
    leati_range_share(s, task, 8 * leati_task_bytes(task));
    return LEAT_OK;
}

/* Prepares POOLING, whose threads share the rows of dst, or POOLING_BWD, whose threads share the images. */
static leat_status prepare_pooling(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    leati_geometry g;
    leati_range_state *s;
    LEATI_TRY(leati_geometry_make(&g, &task->attrs->pooling.window, &task->inputs[0], err));
    if (g.taps > LEATI_POOL_TAPS) {
        snprintf(why, LEATI_REASON_BYTES, "a window of more than %d elements", LEATI_POOL_TAPS);
        return LEAT_OK;
    }
    LEATI_TRY(leati_range_prepare(&s, task, kernel, err));
    s->geometry = g;
    s->job.window.geometry = &s->geometry;
    s->count = task->op == LEATI_OP_POOLING ? g.batch * g.out[0] * g.out[1] : g.batch;
    s->unit = 1;
    leati_range_share(s, task, leati_task_bytes(task));
    return LEAT_OK;
}

leat_status leati_native_pooling(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    return prepare_pooling(task, kernel, why, err);
}

leat_status leati_native_pooling_bwd(const leati_task *task, leati_kernel *kernel, char *why,
                                     leat_error *err) {
    return prepare_pooling(task, kernel, why, err);
}

/* Prepares RESAMPLE or its gradient; src describes the smaller image, the source of the forward op. */
static leat_status prepare_resample(const leati_task *task, const leati_desc *src, leati_kernel *kernel,
                                    char *why, leat_error *err) {
    leati_range_state *s;
    int spatial = task->attrs->resample.spatial;
    leati_geometry g = {.batch = src->shape[0],
                        .channels = src->shape[spatial + 1],
                        .in = {1, 1, 1},
                        .out = {1, 1, 1}};
    if (leati_desc_count(src) == 0) {
        snprintf(why, LEATI_REASON_BYTES, "an empty tensor");
        return LEAT_OK;
    }
    for (int i = 0; i < spatial; i++) {
        g.in[3 - spatial + i] = src->shape[1 + i];
        g.out[3 - spatial + i] = src->shape[1 + i] * task->attrs->resample.factor[i];
    }
    LEATI_TRY(leati_range_prepare(&s, task, kernel, err));
    const int64_t *rows = task->op == LEATI_OP_RESAMPLE ? g.out : g.in;
    s->count = g.batch * rows[0] * rows[1];
    s->geometry = g;
    s->job.window.geometry = &s->geometry;
    s->unit = 1;
    leati_range_share(s, task, leati_task_bytes(task));
    return LEAT_OK;
}

leat_status leati_native_resample(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    return prepare_resample(task, &task->inputs[0], kernel, why, err);
}

leat_status leati_native_resample_bwd(const leati_task *task, leati_kernel *kernel, char *why,
                                      leat_error *err) {
    return prepare_resample(task, &task->outputs[0], kernel, why, err);
}

/* `states` is the index of the first argument that is written: the weights.  The arguments after it are `slots`
 * optimizer slots, of which some may be absent, and the powers of the gradients if the op has them. */
static leat_status prepare_update(const leati_task *task, leati_kernel *kernel, int states, int slots,
                                  leat_error *err) {
    leati_range_state *s;
    LEATI_TRY(leati_range_prepare(&s, task, kernel, err));
    s->count = leati_desc_count(&task->inputs[states]);
    s->reads = states;
    s->writes = states;
    s->written = 1 + slots;
    /* a square root and a division beside the memory accesses */
    leati_range_share(s, task, 2 * leati_task_bytes(task));
    return LEAT_OK;
}

static leat_status prepare_optimizer(const leati_task *task, leati_kernel *kernel, leat_error *err) {
    bool powers = task->attrs->update.powers;
    if (task->attrs->update.rows) return leati_update_rows_prepare(task, kernel, err);
    int slots = task->input_count - 3 - (powers ? 1 : 0);
    LEATI_TRY(prepare_update(task, kernel, 2, slots < LEATI_UPDATE_SLOTS ? slots : LEATI_UPDATE_SLOTS, err));
    if (powers) ((leati_range_state *)kernel->state)->read_last = task->input_count - 1;
    return LEAT_OK;
}

static leat_status run_moving_average(const leati_kernel *kernel, void *const *args, const leati_run *now,
                                      leat_error *err) {
    /* in, out; leati_range_run() reads no others */
    void *const swapped[LEATI_MAX_INPUTS] = {args[1], args[0]};
    return leati_range_run(kernel, swapped, now, err);
}

leat_status leati_native_moving_average(const leati_task *task, leati_kernel *kernel, char *why,
                                        leat_error *err) {
    (void)why;
    LEATI_TRY(prepare_update(task, kernel, 1, 0, err));
    kernel->run = run_moving_average;
    return LEAT_OK;
}

#define UPDATE(op)                                                                                           \
    leat_status leati_native_update_##op(const leati_task *task, leati_kernel *kernel, char *why,            \
                                         leat_error *err) {                                                  \
        (void)why;                                                                                           \
        return prepare_optimizer(task, kernel, err);                                                         \
    }
UPDATE(sgd)
UPDATE(rmsprop)
UPDATE(adagrad)
UPDATE(adadelta)
UPDATE(adam)
UPDATE(adamax)
UPDATE(nadam)
UPDATE(lion)
