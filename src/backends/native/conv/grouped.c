/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions whose groups have a few channels and filters, and their gradients: 2, 4 or 8 channels and as many
 * filters (ResNeXt), or one channel and 2, 4 or 8 filters (depthwise with a multiplier).  Bias, folded normalization,
 * addition and function are fused.  Threads share the rows of all samples, and the filters where the rows are few.
 * Room: backends/native. */
#include <stdio.h>
#include <string.h>

#include "backends/native/conv/conv.h"
#include "backends/native/ops.h"
#include "base/error.h"

enum { TASKS = 4 }; /* for each thread */

/* Returns the channels of a group, and its filters. */
static int64_t channels_of(const leati_geometry *g) {
    return g->channels / g->groups;
}
static int64_t filters_of(const leati_geometry *g) {
    return g->filters / g->groups;
}

/* Returns the number of weights. */
static int64_t weights_of(const leati_geometry *g) {
    return g->taps * channels_of(g) * g->filters;
}

/* ---- Forward, and the gradient with respect to the source ---- */

static void compute(void *of, int64_t task, int member) {
    const leati_conv_run *r = of;
    const leati_conv_rows job = leati_conv_rows_of(r, task);
    (void)member;
    r->s->isa->grouped_forward(&job);
}

/* Packs the weights of one vector of filters: (taps, channels of a group, lanes). */
static void pack(void *of, int64_t vector, int member) {
    const leati_conv_packing *p = of;
    const leati_geometry *g = &p->s->g;
    const int64_t lanes = p->s->isa->lanes, rows = g->taps * channels_of(g);
    float *to = p->packed + vector * rows * lanes;
    (void)member;
    for (int64_t k = 0; k < rows; k++)
        memcpy(to + k * lanes, p->weights + k * g->filters + vector * lanes, (size_t)lanes * sizeof *to);
}

/* Packs like pack() from the weights of the convolution whose gradient this is: the taps from last to first, and
 * channels and filters of each group exchanged. */
static void pack_transposed(void *of, int64_t vector, int member) {
    const leati_conv_packing *p = of;
    const leati_geometry *g = &p->s->g;
    const int64_t lanes = p->s->isa->lanes, channels = channels_of(g), filters = filters_of(g);
    float *to = p->packed + vector * g->taps * channels * lanes;
    (void)member;
    for (int64_t tap = 0; tap < g->taps; tap++)
        for (int64_t i = 0; i < channels; i++, to += lanes)
            for (int64_t l = 0; l < lanes; l++) {
                const int64_t filter = vector * lanes + l,
                              row = (g->taps - 1 - tap) * filters + filter % filters;
                to[l] = p->weights[row * g->channels + filter / filters * channels + i];
            }
}

static leat_status run_forward(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    const leati_conv_state *s = kernel->state;
    leati_conv_run r = leati_conv_start(s, kernel, args, run, pack, s->g.filters / s->isa->lanes);
    (void)err;
    leati_thread_pool_share(run->pool, s->threads, s->blocks * s->parts, compute, &r);
    return LEAT_OK;
}

static leat_status run_bwd_data(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                leat_error *err) {
    const leati_conv_state *s = kernel->state;
    leati_conv_packing p = {.s = s, .weights = args[1], .packed = run->scratch};
    leati_conv_run r = {.s = s, .src = args[0], .packed = p.packed, .dst = args[s->dst]};
    (void)err;
    leati_thread_pool_share(run->pool, s->threads, s->g.filters / s->isa->lanes, pack_transposed, &p);
    leati_thread_pool_share(run->pool, s->threads, s->blocks * s->parts, compute, &r);
    return LEAT_OK;
}

static bool is_few(int64_t number) {
    return number == 2 || number == 4 || number == 8;
}

/* Returns why the convolution, or its gradient, is declined, or NULL. */
static const char *reason_against(const leati_geometry *g, int64_t lanes) {
    const int64_t channels = channels_of(g), filters = filters_of(g);
    if (g->groups == 1) return "not a grouped convolution";
    const bool same =
        channels == filters && (lanes == 4 ? channels == 4 : is_few(channels) && channels < lanes);
    if (!same && !(channels == 1 && is_few(filters)) && !(filters == 1 && is_few(channels)))
        return "groups that have not a few channels and filters";
    if (channels > lanes || filters > lanes || g->filters % lanes)
        return "filters that do not fill whole vectors";
    return g->out_pixels == 0 ? "an empty tensor" : NULL;
}

static double operations_of(const leati_geometry *g) {
    return 4.0 * (double)g->out_pixels * (double)weights_of(g);
}

static void share(leati_conv_state *s) {
    const int64_t rows = s->g.batch * s->g.out[0] * s->g.out[1];
    leati_conv_share(s, rows, leati_ceil_div(rows, TASKS * s->threads), s->isa->lanes);
}

static void name(const leati_native_isa *isa, leati_kernel *kernel) {
    snprintf(kernel->implementation, sizeof kernel->implementation, "native grouped %s", isa->name);
}

leat_status leati_native_conv_grouped(const leati_task *task, leati_kernel *kernel, char *why,
                                      leat_error *err) {
    leati_geometry g;
    leati_conv_state *s = NULL;
    LEATI_TRY(leati_conv_geometry(&g, task->op, task->attrs, task->inputs, err));
    const char *reason = reason_against(&g, leati_native_isa_of()->lanes);
    if (reason) {
        snprintf(why, LEATI_REASON_BYTES, "%s", reason);
        return LEAT_OK;
    }
    LEATI_TRY(leati_conv_make(&s, task, &g, operations_of(&g), kernel, err));
    share(s);
    leati_conv_memory(s, kernel, "grouped ", (size_t)weights_of(&g));
    kernel->run = run_forward;
    snprintf(kernel->layout, sizeof kernel->layout, "nhwc weights vectors of %d filters", (int)s->isa->lanes);
    return LEAT_OK;
}

leat_status leati_native_conv_bwd_data_grouped(const leati_task *task, leati_kernel *kernel, char *why,
                                               leat_error *err) {
    leati_geometry g;
    leati_conv_state *s = NULL;
    LEATI_TRY(leati_conv_geometry(&g, task->op, task->attrs, task->inputs, err));
    const double operations = operations_of(&g);
    const bool steps = leati_conv_has_steps(&g);
    leati_conv_transpose_geometry(&g);
    const char *reason =
        steps ? "a gradient of a convolution with strides" : reason_against(&g, leati_native_isa_of()->lanes);
    if (reason) {
        snprintf(why, LEATI_REASON_BYTES, "%s", reason);
        return LEAT_OK;
    }
    LEATI_TRY(leati_conv_make(&s, task, &g, operations, kernel, err));
    share(s);
    kernel->scratch_bytes = leati_conv_line(weights_of(&g)) * sizeof(float);
    kernel->run = run_bwd_data;
    name(s->isa, kernel);
    return LEAT_OK;
}

/* ---- The gradient with respect to the weights ---- */

typedef struct weights_run {
    const leati_conv_state *s;
    const float *src, *diff_dst;
    float *diff_weights, *diff_bias; /* diff_bias may be NULL */
    float *sums; /* weights and bias of each share but the first, whose sums are the results */
} weights_run;

/* Computes the sums of one share of the rows. */
static void add_share(void *of, int64_t share, int member) {
    const weights_run *r = of;
    const leati_conv_state *s = r->s;
    const int64_t weights = weights_of(&s->g);
    float *sums = share == 0 ? r->diff_weights : r->sums + (share - 1) * (weights + s->g.filters);
    float *bias = !r->diff_bias ? NULL : share == 0 ? r->diff_bias : sums + weights;
    (void)member;
    memset(sums, 0, (size_t)weights * sizeof *sums);
    if (bias) memset(bias, 0, (size_t)s->g.filters * sizeof *bias);
    s->isa->grouped_bwd_weights(&(leati_conv_rows_bwd){.g = &s->g,
                                                       .src = r->src,
                                                       .diff_dst = r->diff_dst,
                                                       .sums = sums,
                                                       .bias = bias,
                                                       .first_row = s->rows * share / s->blocks,
                                                       .last_row = s->rows * (share + 1) / s->blocks});
}

static leat_status run_bwd_weights(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                   leat_error *err) {
    const leati_conv_state *s = kernel->state;
    const int64_t weights = weights_of(&s->g), filters = s->g.filters;
    weights_run r = {.s = s,
                     .src = args[0],
                     .diff_dst = args[1],
                     .diff_weights = args[2],
                     .diff_bias = args[3],
                     .sums = run->scratch};
    (void)err;
    leati_thread_pool_share(run->pool, s->threads, s->blocks, add_share, &r);
    for (int64_t share = 1; share < s->blocks; share++) {
        const float *sums = r.sums + (share - 1) * (weights + filters);
        for (int64_t i = 0; i < weights; i++) r.diff_weights[i] += sums[i];
        for (int64_t i = 0; r.diff_bias && i < filters; i++) r.diff_bias[i] += sums[weights + i];
    }
    return LEAT_OK;
}

leat_status leati_native_conv_bwd_weights_grouped(const leati_task *task, leati_kernel *kernel, char *why,
                                                  leat_error *err) {
    leati_geometry g;
    leati_conv_state *s = NULL;
    LEATI_TRY(leati_conv_geometry(&g, task->op, task->attrs, task->inputs, err));
    const char *reason = reason_against(&g, leati_native_isa_of()->lanes);
    if (task->unused & 1) reason = "only the gradient with respect to the bias is needed";
    if (channels_of(&g) > filters_of(&g)) reason = "groups of one filter of several channels";
    if (reason) {
        snprintf(why, LEATI_REASON_BYTES, "%s", reason);
        return LEAT_OK;
    }
    LEATI_TRY(leati_conv_make(&s, task, &g, operations_of(&g), kernel, err));
    leati_conv_share_sums(s);
    kernel->scratch_bytes = (size_t)((s->blocks - 1) * (weights_of(&g) + g.filters)) * sizeof(float);
    kernel->run = run_bwd_weights;
    name(s->isa, kernel);
    return LEAT_OK;
}
