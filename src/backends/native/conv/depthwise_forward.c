/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions with one filter per channel: bias, folded normalization, addition and function are fused.
 * Threads share the rows of all samples; where these are few, also the channels.  Room: backends/native. */
#include <stdio.h>

#include "backends/native/conv/conv.h"
#include "backends/native/ops.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/op_semantics/fold_norm.h"

typedef struct depthwise_state {
    leati_geometry g;
    const leati_native_isa *isa;
    leati_eltwise f;
    float epsilon;
    bool norm, has_f;
    int threads, bias, post, dst; /* indices of arguments; bias and post are -1 where absent */
    int64_t rows, vectors;        /* of the destination; of a pixel */
    int64_t blocks, parts;        /* blocks of rows; parts of the vectors of each block */
} depthwise_state;

typedef struct depthwise_run {
    const depthwise_state *s;
    leati_depthwise job;
} depthwise_run;

/* Computes part task % parts of block task / parts. */
static void compute(void *of, int64_t task, int member) {
    const depthwise_run *r = of;
    const depthwise_state *s = r->s;
    int64_t block = task / s->parts, part = task % s->parts;
    leati_depthwise job = r->job;
    (void)member;
    job.first_row = s->rows * block / s->blocks;
    job.last_row = s->rows * (block + 1) / s->blocks;
    job.first_vector = s->vectors * part / s->parts;
    job.last_vector = s->vectors * (part + 1) / s->parts;
    s->isa->depthwise_forward(&job);
}

/* Packs the weights, with the normalization folded in.  changed: scale and bias of each channel. */
static void pack(const depthwise_state *s, void *const *args, float *changed, float *packed) {
    int64_t channels = s->g.channels;
    const float *bias = s->bias >= 0 ? args[s->bias] : NULL;
    float *scale = changed, *folded = changed + channels;
    for (int64_t c = 0; c < channels && !s->norm; c++) {
        scale[c] = 1;
        folded[c] = bias ? bias[c] : 0;
    }
    if (s->norm) {
        leati_norm_scales(args + s->post, s->epsilon, channels, scale);
        leati_norm_shifts(args + s->post, bias, scale, channels, folded);
    }
    s->isa->depthwise_pack(&s->g, args[1], scale, folded, packed);
}

static leat_status run_forward(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    const depthwise_state *s = kernel->state;
    float *changed = run->scratch, *packed = run->pack;
    (void)err;
    if (!packed) packed = changed + (kernel->scratch_bytes - kernel->pack_bytes) / sizeof(float);
    if (!run->pack || !run->packed) pack(s, args, changed, packed);
    depthwise_run r = {.s = s,
                       .job = {.g = &s->g,
                               .src = args[0],
                               .packed = packed,
                               .addend = s->post >= 0 ? args[s->post + LEATI_POST_ADDEND] : NULL,
                               .f = s->has_f ? &s->f : NULL,
                               .dst = args[s->dst]}};
    leati_thread_pool_share(run->pool, s->threads, s->blocks * s->parts, compute, &r);
    return LEAT_OK;
}

/* Cuts the work into about four tasks for each thread. */
static void share(depthwise_state *s) {
    int64_t tasks = s->threads > 1 ? 4 * s->threads : 1;
    s->blocks = s->rows < tasks ? s->rows : tasks;
    s->parts = leati_ceil_div(tasks, s->blocks);
    if (s->parts > s->vectors) s->parts = s->vectors;
}

static void name(const depthwise_state *s, leati_kernel *kernel) {
    snprintf(kernel->implementation, sizeof kernel->implementation, "native depthwise %s", s->isa->name);
    snprintf(kernel->layout, sizeof kernel->layout, "nhwc weights vectors of %d channels",
             (int)s->isa->lanes);
    snprintf(kernel->pack_key, sizeof kernel->pack_key, "native depthwise %s %lld%s%.9g", s->isa->name,
             (long long)s->g.channels, s->norm ? " norm " : " ", (double)(s->norm ? s->epsilon : 0));
}

/* True for images that oneDNN 2.6 computes more slowly: with AVX-512 its kernel reads each source vector once per tap,
 * and silu and hard_swish cost it more.  Other windows of 3 columns are bound by the caches, where it is as fast. */
static bool is_slow_in_onednn(const leati_geometry *g, const leati_eltwise *f, int64_t lanes) {
    if (lanes < 16 || g->channels < lanes || g->dilation[2] > 1) return false;
    bool wide = g->stride[2] == 1 && (g->kernel[2] == 5 || g->kernel[2] == 7);
    return wide || (f && (f->function == LEATI_FN_HARD_SWISH || f->function == LEATI_FN_SILU));
}

/* Returns why the task is declined, or NULL. */
static const char *reason_against(const leati_task *task, const leati_geometry *g, int64_t lanes) {
    const leati_eltwise *f =
        task->attrs->post.kinds & LEATI_POST_FUNCTION ? &task->attrs->post.function : NULL;
    if (g->groups != g->channels || g->filters != g->channels || g->channels == 1)
        return "not a depthwise convolution with one filter per channel";
    if (LEATI_NATIVE_PREFERS_ONEDNN && !task->measured && g->in[0] == 1 && !is_slow_in_onednn(g, f, lanes))
        return "a window that oneDNN has a kernel for";
    return g->out_pixels == 0 ? "an empty tensor" : NULL;
}

leat_status leati_native_conv(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    leati_geometry g;
    LEATI_TRY(leati_conv_geometry(&g, task->op, task->attrs, task->inputs, err));
    const leati_native_isa *isa = leati_native_isa_of();
    const char *reason = reason_against(task, &g, isa->lanes);
    if (reason) {
        snprintf(why, LEATI_REASON_BYTES, "%s", reason);
        return LEAT_OK;
    }
    depthwise_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a depthwise convolution");
    int op_inputs = leati_op_inputs(task);
    *s = (depthwise_state){.g = g,
                           .isa = isa,
                           .f = task->attrs->post.function,
                           .epsilon = task->attrs->post.epsilon,
                           .norm = task->attrs->post.kinds & LEATI_POST_NORM,
                           .has_f = task->attrs->post.kinds & LEATI_POST_FUNCTION,
                           .bias = op_inputs > 2 && task->inputs[2].rank >= 0 ? 2 : -1,
                           .post = task->input_count > op_inputs ? op_inputs : -1,
                           .dst = task->input_count,
                           .rows = g.batch * g.out[0] * g.out[1]};
    s->threads = leati_worthwhile_threads(task, LEATI_DEPTHWISE_OPERATIONS * 2.0 * (double)g.out_pixels *
                                                    (double)(g.taps * g.channels));
    s->vectors = leati_ceil_div(g.channels, s->isa->lanes);
    share(s);
    kernel->state = s;
    kernel->destroy = leati_free;
    kernel->run = run_forward;
    kernel->pack_bytes = leati_conv_line(s->vectors * (g.taps + 1) * s->isa->lanes) * sizeof(float);
    kernel->scratch_bytes = leati_conv_line(2 * g.channels) * sizeof(float) + kernel->pack_bytes;
    kernel->pack_inputs = 1u << 1;
    for (int i = 2; i < op_inputs; i++) kernel->pack_inputs |= 1u << i;
    for (int i = op_inputs; s->norm && i <= s->post + LEATI_POST_VARIANCE; i++)
        kernel->pack_inputs |= 1u << i;
    name(s, kernel);
    return LEAT_OK;
}
