/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions with a few filters, as the last layer of a net that makes images has them: bias, folded normalization,
 * addition and function are fused.  Threads share the rows of all samples.  Room: backends/native. */
#include <stdio.h>

#include "backends/native/conv/conv.h"
#include "backends/native/ops.h"
#include "base/error.h"

enum {
    MOST = 4,             /* filters */
    LANES_PER_FILTER = 4, /* a kernel that computes whole vectors of filters is as fast with more */
    TASKS = 4             /* for each thread */
};

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
    if (g->filters > MOST || g->filters * LANES_PER_FILTER > lanes) return "more than a few filters";
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
