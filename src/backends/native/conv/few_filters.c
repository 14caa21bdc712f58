/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions with a few filters, as the last layer of a net that makes images has them, into which bias, folded
 * normalization, addition and function are fused, and their gradients with respect to the weights.  Threads share the
 * rows of all samples.  Room: backends/native. */
#include <stdio.h>
#include <string.h>

#include "backends/native/conv/conv.h"
#include "backends/native/ops.h"
#include "base/error.h"

enum { TASKS = 4 }; /* for each thread */

static void compute(void *of, int64_t task, int member) {
    const leati_conv_run *r = of;
    const leati_conv_rows job = leati_conv_rows_of(r, task);
    (void)member;
    r->s->isa->few_filters_forward(&job);
}

/* Packs the weights of one filter. */
static void pack(void *of, int64_t filter, int member) {
    const leati_conv_packing *p = of;
    const leati_geometry *g = &p->s->g;
    const int64_t depth = g->taps * g->channels;
    (void)member;
    for (int64_t k = 0; k < depth; k++) p->packed[filter * depth + k] = p->weights[k * g->filters + filter];
}

static leat_status run_forward(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    const leati_conv_state *s = kernel->state;
    leati_conv_run r = leati_conv_start(s, kernel, args, run, pack, s->g.filters);
    (void)err;
    leati_thread_pool_share(run->pool, s->threads, s->blocks, compute, &r);
    return LEAT_OK;
}

/* Returns why the convolution is declined, or NULL. */
static const char *reason_against(const leati_geometry *g, int64_t lanes) {
    if (g->groups > 1) return "a grouped convolution";
    if (!leati_conv_are_few(g->filters, lanes)) return "more than a few filters";
    if (g->dilation[2] > 1) return "a window with gaps";
    if (g->kernel[2] * g->channels < lanes) return "lines of the window that do not fill a vector";
    return g->out_pixels == 0 ? "an empty tensor" : NULL;
}

leat_status leati_native_conv_few_filters(const leati_task *task, leati_kernel *kernel, char *why,
                                          leat_error *err) {
    leati_geometry g;
    leati_conv_state *s = NULL;
    LEATI_TRY(leati_conv_geometry(&g, task->op, task->attrs, task->inputs, err));
    const char *reason = reason_against(&g, leati_native_isa_of()->lanes);
    if (reason) {
        snprintf(why, LEATI_REASON_BYTES, "%s", reason);
        return LEAT_OK;
    }
    const int64_t weights = g.taps * g.channels * g.filters, rows = g.batch * g.out[0] * g.out[1];
    LEATI_TRY(leati_conv_make(&s, task, &g, 4.0 * (double)g.out_pixels * (double)weights, kernel, err));
    leati_conv_share(s, rows, leati_ceil_div(rows, TASKS * s->threads), g.filters);
    leati_conv_memory(s, kernel, "few filters ", (size_t)weights);
    kernel->run = run_forward;
    snprintf(kernel->layout, sizeof kernel->layout, "nhwc weights filter by filter");
    return LEAT_OK;
}

/* ---- The gradient with respect to the weights ---- */

static int64_t weights_of(const leati_geometry *g) {
    return g->taps * g->channels * g->filters;
}

typedef struct weights_run {
    const leati_conv_state *s;
    const float *src, *diff_dst;
    bool bias;
    float *sums; /* weights, filter by filter, and bias of each share */
} weights_run;

/* Computes the sums of one share of the rows. */
static void add_share(void *of, int64_t share, int member) {
    const weights_run *r = of;
    const leati_conv_state *s = r->s;
    const int64_t weights = weights_of(&s->g), all = weights + s->g.filters;
    float *sums = r->sums + share * all;
    (void)member;
    memset(sums, 0, (size_t)all * sizeof *sums);
    s->isa->few_filters_bwd_weights(&(leati_conv_rows_bwd){.g = &s->g,
                                                           .src = r->src,
                                                           .diff_dst = r->diff_dst,
                                                           .sums = sums,
                                                           .bias = r->bias ? sums + weights : NULL,
                                                           .first_row = s->rows * share / s->blocks,
                                                           .last_row = s->rows * (share + 1) / s->blocks});
}

static leat_status run_bwd_weights(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                   leat_error *err) {
    const leati_conv_state *s = kernel->state;
    const int64_t weights = weights_of(&s->g), filters = s->g.filters, depth = weights / filters,
                  all = weights + filters;
    float *diff_weights = args[2], *diff_bias = args[3];
    weights_run r = {
        .s = s, .src = args[0], .diff_dst = args[1], .bias = diff_bias != NULL, .sums = run->scratch};
    (void)err;
    leati_thread_pool_share(run->pool, s->threads, s->blocks, add_share, &r);
    for (int64_t share = 1; share < s->blocks; share++)
        for (int64_t i = 0; i < all; i++) r.sums[i] += r.sums[share * all + i];
    for (int64_t f = 0; f < filters; f++) {
        for (int64_t k = 0; k < depth; k++) diff_weights[k * filters + f] = r.sums[f * depth + k];
        if (diff_bias) diff_bias[f] = r.sums[weights + f];
    }
    return LEAT_OK;
}

leat_status leati_native_conv_bwd_weights_few_filters(const leati_task *task, leati_kernel *kernel, char *why,
                                                      leat_error *err) {
    leati_geometry g;
    leati_conv_state *s = NULL;
    LEATI_TRY(leati_conv_geometry(&g, task->op, task->attrs, task->inputs, err));
    const char *reason = reason_against(&g, leati_native_isa_of()->lanes);
    if (task->unused & 1) reason = "only the gradient with respect to the bias is needed";
    if (reason) {
        snprintf(why, LEATI_REASON_BYTES, "%s", reason);
        return LEAT_OK;
    }
    LEATI_TRY(
        leati_conv_make(&s, task, &g, 2.0 * (double)g.out_pixels * (double)weights_of(&g), kernel, err));
    leati_conv_share_sums(s);
    kernel->scratch_bytes = (size_t)(s->blocks * (weights_of(&g) + g.filters)) * sizeof(float);
    kernel->run = run_bwd_weights;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native few filters %s", s->isa->name);
    return LEAT_OK;
}
