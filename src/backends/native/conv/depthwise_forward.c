/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions with one filter per channel: bias, folded normalization, addition and function are fused.
 * Threads share the rows of all samples; where these are few, also the channels.  Room: backends/native. */
#include <stdio.h>

#include "backends/native/conv/conv.h"
#include "backends/native/ops.h"
#include "base/error.h"
#include "engine/op_semantics/fold_norm.h"

typedef struct depthwise_run {
    const leati_conv_state *s;
    leati_depthwise job;
} depthwise_run;

static int64_t vectors_of(const leati_conv_state *s) {
    return leati_ceil_div(s->g.channels, s->isa->lanes);
}

/* Computes part task % parts of block task / parts: a range of rows, and of the vectors of each pixel. */
static void compute(void *of, int64_t task, int member) {
    const depthwise_run *r = of;
    const leati_conv_state *s = r->s;
    int64_t block = task / s->parts, part = task % s->parts;
    leati_depthwise job = r->job;
    (void)member;
    job.first_row = s->rows * block / s->blocks;
    job.last_row = s->rows * (block + 1) / s->blocks;
    job.first_vector = vectors_of(s) * part / s->parts;
    job.last_vector = vectors_of(s) * (part + 1) / s->parts;
    s->isa->depthwise_forward(&job);
}

/* Packs the weights, with the normalization folded in.  changed: scale and bias of each channel. */
static void pack(const leati_conv_state *s, void *const *args, float *changed, float *packed) {
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

leati_depthwise leati_depthwise_start(const leati_kernel *kernel, void *const *args, const leati_run *run) {
    const leati_conv_state *s = kernel->state;
    float *changed = run->scratch, *packed = run->pack;
    if (!packed) packed = changed + (kernel->scratch_bytes - kernel->pack_bytes) / sizeof(float);
    if (!run->pack || !run->packed) pack(s, args, changed, packed);
    return (leati_depthwise){.g = &s->g,
                             .src = args[0],
                             .packed = packed,
                             .addend = s->post >= 0 ? args[s->post + LEATI_POST_ADDEND] : NULL,
                             .f = s->has_f ? &s->f : NULL,
                             .dst = args[s->dst],
                             .last_row = s->rows,
                             .last_vector = vectors_of(s)};
}

static leat_status run_forward(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    const leati_conv_state *s = kernel->state;
    depthwise_run r = {.s = s, .job = leati_depthwise_start(kernel, args, run)};
    (void)err;
    leati_thread_pool_share(run->pool, s->threads, s->blocks * s->parts, compute, &r);
    return LEAT_OK;
}

/* Cuts the work into about four tasks for each thread. */
static void share(leati_conv_state *s) {
    int64_t tasks = s->threads > 1 ? 4 * s->threads : 1;
    s->blocks = s->rows < tasks ? s->rows : tasks;
    s->parts = leati_ceil_div(tasks, s->blocks);
    if (s->parts > vectors_of(s)) s->parts = vectors_of(s);
}

static void name(const leati_conv_state *s, leati_kernel *kernel) {
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
    leati_conv_state *s = NULL;
    int op_inputs = leati_op_inputs(task);
    LEATI_TRY(leati_conv_make(&s, task, &g,
                              LEATI_DEPTHWISE_OPERATIONS * 2.0 * (double)g.out_pixels *
                                  (double)(g.taps * g.channels),
                              kernel, err));
    s->rows = g.batch * g.out[0] * g.out[1];
    share(s);
    kernel->run = run_forward;
    kernel->pack_bytes = leati_conv_line(vectors_of(s) * (g.taps + 1) * s->isa->lanes) * sizeof(float);
    kernel->scratch_bytes = leati_conv_line(2 * g.channels) * sizeof(float) + kernel->pack_bytes;
    kernel->pack_inputs = 1u << 1;
    for (int i = 2; i < op_inputs; i++) kernel->pack_inputs |= 1u << i;
    for (int i = op_inputs; s->norm && i <= s->post + LEATI_POST_VARIANCE; i++)
        kernel->pack_inputs |= 1u << i;
    name(s, kernel);
    return LEAT_OK;
}
