/* SPDX-License-Identifier: Apache-2.0 */
/* A depthwise convolution and the convolution with windows of one pixel that reads it: a thread computes a few rows of
 * the first into a buffer, which stays in the L2 cache, and multiplies them.  Each kernel packs its own weights.  Room:
 * backends/native. */
#include <stdio.h>
#include <string.h>

#include "backends/native/conv/conv.h"
#include "backends/native/ops.h"
#include "base/error.h"
#include "base/memory.h"

enum {
    PIXELS = 96,             /* of a block of rows, at most, if a row has fewer */
    LEAST_BYTES = 512 * 1024 /* of the activations between the two: fewer stay in the L2 cache as they are */
};

typedef struct separable_state {
    leati_kernel depthwise, pointwise;
    int inputs; /* of the depthwise convolution; those of the other one come behind them, without its source */
    int threads;
    int64_t rows, blocks; /* rows of all images; blocks of rows */
    size_t buffer;        /* floats of a block, for each thread */
} separable_state;

typedef struct separable_run {
    const separable_state *s;
    leati_depthwise depthwise;
    leati_conv_run pointwise;
    float *buffers;
} separable_run;

static void compute(void *of, int64_t task, int member) {
    const separable_run *r = of;
    const separable_state *s = r->s;
    leati_depthwise job = r->depthwise;
    int64_t width = job.g->out[2], channels = job.g->channels;
    job.first_row = s->rows * task / s->blocks;
    job.last_row = s->rows * (task + 1) / s->blocks;
    job.origin = job.first_row;
    job.dst = r->buffers + (size_t)member * s->buffer;
    if (job.addend) job.addend += job.first_row * width * channels;
    r->pointwise.s->isa->depthwise_forward(&job);
    leati_conv_area area = {.first = job.first_row * width,
                            .rows = (job.last_row - job.first_row) * width,
                            .columns = r->pointwise.s->g.filters};
    leati_conv_products(&r->pointwise, &area, job.dst, channels);
}

static leat_status run_separable(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                 leat_error *err) {
    const separable_state *s = kernel->state;
    const leati_kernel *first = &s->depthwise, *second = &s->pointwise;
    unsigned char *scratch = run->scratch, *packed = run->pack;
    if (!packed) packed = scratch + kernel->scratch_bytes - kernel->pack_bytes;
    leati_run one = *run, other = *run;
    (void)err;
    one.packed = other.packed = run->pack && run->packed;
    one.pack = packed;
    one.scratch = scratch;
    other.pack = packed + first->pack_bytes;
    other.scratch = scratch + first->scratch_bytes - first->pack_bytes;
    float *buffers =
        (float *)(void *)((unsigned char *)other.scratch + second->scratch_bytes - second->pack_bytes);
    separable_run r = {.s = s,
                       .depthwise = leati_depthwise_start(first, args, &one),
                       .pointwise = leati_conv_products_start(second, args + s->inputs - 1, &other),
                       .buffers = buffers};
    leati_thread_pool_share(run->pool, s->threads, s->blocks, compute, &r);
    return LEAT_OK;
}

static void destroy(void *of) {
    separable_state *s = of;
    if (s->depthwise.destroy) s->depthwise.destroy(s->depthwise.state);
    if (s->pointwise.destroy) s->pointwise.destroy(s->pointwise.state);
    leati_free(s);
}

/* Prepares the kernels of both; the second one's `run` stays NULL where one of them is refused. */
static leat_status prepare_both(const leati_group *group, separable_state *s, char *why, leat_error *err) {
    leati_desc inputs[LEATI_GROUP_INPUTS];
    s->inputs = group->members[1].operands[1];
    leati_task task = {.op = LEATI_OP_CONV,
                       .attrs = group->members[0].attrs,
                       .input_count = s->inputs,
                       .output_count = 1,
                       .inputs = group->inputs,
                       .outputs = &group->whole,
                       .threads = group->threads,
                       .deterministic = group->deterministic,
                       .measured = true};
    LEATI_TRY(leati_native_conv(&task, &s->depthwise, why, err));
    if (!s->depthwise.run) return LEAT_OK;
    inputs[0] = group->whole;
    task.attrs = group->members[1].attrs;
    task.input_count = 1 + group->input_count - s->inputs;
    task.inputs = inputs;
    task.outputs = group->outputs;
    memcpy(inputs + 1, group->inputs + s->inputs, (size_t)(task.input_count - 1) * sizeof *inputs);
    return leati_native_conv_product(&task, &s->pointwise, why, err);
}

/* Divides the rows into blocks of about PIXELS pixels: for several threads two blocks for each or more, and as many for
 * each. */
static void share(separable_state *s, const leati_geometry *g) {
    int64_t rows = g->out[2] < PIXELS ? PIXELS / g->out[2] : 1;
    s->rows = g->batch * g->out[0] * g->out[1];
    s->blocks = leati_ceil_div(s->rows, rows);
    if (s->threads > 1 && s->blocks < 2 * s->threads) s->blocks = 2 * s->threads;
    while (s->blocks < 8 * s->threads && s->blocks % s->threads) s->blocks++;
    if (s->blocks > s->rows) s->blocks = s->rows;
    s->buffer = leati_conv_line(leati_ceil_div(s->rows, s->blocks) * g->out[2] * g->channels);
}

static void describe(const separable_state *s, leati_kernel *kernel) {
    const leati_conv_state *depthwise = s->depthwise.state, *pointwise = s->pointwise.state;
    const leati_kernel *first = &s->depthwise, *second = &s->pointwise;
    kernel->pack_bytes = first->pack_bytes + second->pack_bytes;
    kernel->scratch_bytes =
        first->scratch_bytes + second->scratch_bytes + s->buffer * (size_t)s->threads * sizeof(float);
    kernel->pack_inputs = first->pack_inputs | second->pack_inputs << (s->inputs - 1);
    snprintf(kernel->implementation, sizeof kernel->implementation, "native separable %s",
             depthwise->isa->name);
    snprintf(kernel->layout, sizeof kernel->layout, "%s", second->layout);
    snprintf(kernel->pack_key, sizeof kernel->pack_key, "native separable %s %lldx%lld %.9g %.9g",
             depthwise->isa->name, (long long)pointwise->g.channels, (long long)pointwise->g.filters,
             depthwise->norm ? (double)depthwise->epsilon : -1,
             pointwise->norm ? (double)pointwise->epsilon : -1);
}

static bool is_f32(const leati_group *group) {
    for (int i = 0; i < group->input_count; i++)
        if (group->inputs[i].rank >= 0 && group->inputs[i].dtype != LEAT_F32) return false;
    return group->whole.dtype == LEAT_F32 && group->outputs[0].dtype == LEAT_F32;
}

/* True for a depthwise convolution that depthwise_forward_tmpl.h has no tile of its own for, which oneDNN computes in
 * less time. */
static bool is_unusual(const leati_geometry *g, int64_t lanes) {
    int64_t taps = g->kernel[2], stride = g->stride[2];
    bool usual = (taps == 3 && stride <= 2) || (taps == 5 && stride <= 2) || (taps == 7 && stride == 1);
    return LEATI_NATIVE_PREFERS_ONEDNN && (!usual || g->dilation[2] > 1 || g->channels < lanes);
}

leat_status leati_native_separable(const leati_group *group, leati_kernel *kernel, char *why,
                                   leat_error *err) {
    if (!is_f32(group) || leati_desc_bytes(&group->whole) < LEAST_BYTES) {
        snprintf(why, LEATI_REASON_BYTES, "few activations, or not f32");
        return LEAT_OK;
    }
    separable_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a separable convolution");
    kernel->state = s;
    kernel->destroy = destroy;
    LEATI_TRY(prepare_both(group, s, why, err));
    if (!s->pointwise.run) return LEAT_OK;
    const leati_conv_state *first = s->depthwise.state, *second = s->pointwise.state;
    if (!leati_conv_is_flat(&second->g) || first->g.filters != second->g.channels) {
        snprintf(why, LEATI_REASON_BYTES, "a window of several pixels");
        return LEAT_OK;
    }
    if (is_unusual(&first->g, first->isa->lanes)) {
        snprintf(why, LEATI_REASON_BYTES, "a window that oneDNN has a kernel for");
        return LEAT_OK;
    }
    s->threads = second->threads;
    share(s, &first->g);
    describe(s, kernel);
    kernel->run = run_separable;
    return LEAT_OK;
}
