/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions with a few filters, as the last layer of a net that makes images has them: bias, folded normalization,
 * addition and function are fused.  Threads share the rows of all samples.  Room: backends/native. */
#include <stdio.h>
#include <string.h>

#include "backends/native/conv/conv.h"
#include "backends/native/ops.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/op_semantics/fold_norm.h"

enum {
    MOST = 4,             /* filters */
    LANES_PER_FILTER = 4, /* a kernel that computes whole vectors of filters is as fast with more */
    TASKS = 4             /* for each thread */
};

typedef struct few_state {
    leati_geometry g;
    const leati_native_isa *isa;
    leati_eltwise f;
    float epsilon;
    bool norm, has_f;
    int threads, bias, post, dst; /* indices of arguments; bias and post are -1 where absent */
    int64_t rows, tasks, depth;   /* of the destination; of rows; weights of each filter */
} few_state;

typedef struct few_run {
    const few_state *s;
    leati_few_filters job;
} few_run;

static void compute(void *of, int64_t task, int member) {
    const few_run *r = of;
    const few_state *s = r->s;
    leati_few_filters job = r->job;
    (void)member;
    job.first_row = s->rows * task / s->tasks;
    job.last_row = s->rows * (task + 1) / s->tasks;
    s->isa->few_filters_forward(&job);
}

/* Packs the bias and then the weights of each filter, with the normalization folded in; `folded` has room for the
 * weights. */
static void pack(const few_state *s, void *const *args, float *folded, float *packed) {
    const int64_t filters = s->g.filters;
    const float *weights = args[1], *bias = s->bias >= 0 ? args[s->bias] : NULL;
    for (int64_t f = 0; f < filters; f++) packed[f] = bias ? bias[f] : 0;
    if (s->norm) {
        leati_fold_norm(args + s->post, s->epsilon, weights, bias, s->depth, filters, folded, packed);
        weights = folded;
    }
    packed += leati_conv_line(filters);
    for (int64_t f = 0; f < filters; f++)
        for (int64_t k = 0; k < s->depth; k++) *packed++ = weights[k * filters + f];
}

static leat_status run_forward(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    const few_state *s = kernel->state;
    float *folded = run->scratch, *packed = run->pack;
    (void)err;
    if (!packed) packed = folded + (kernel->scratch_bytes - kernel->pack_bytes) / sizeof(float);
    if (!run->pack || !run->packed) pack(s, args, folded, packed);
    few_run r = {.s = s,
                 .job = {.g = &s->g,
                         .src = args[0],
                         .bias = packed,
                         .packed = packed + leati_conv_line(s->g.filters),
                         .addend = s->post >= 0 ? args[s->post + LEATI_POST_ADDEND] : NULL,
                         .f = s->has_f ? &s->f : NULL,
                         .dst = args[s->dst]}};
    leati_thread_pool_share(run->pool, s->threads, s->tasks, compute, &r);
    return LEAT_OK;
}

/* Returns why the task is declined, or NULL. */
static const char *reason_against(const leati_task *task, const leati_geometry *g, int64_t lanes) {
    for (int i = 0; i < task->input_count; i++)
        if (leati_conv_is_bf16(&task->inputs[i])) return "bfloat16";
    if (leati_conv_is_bf16(&task->outputs[0])) return "bfloat16";
    if (g->groups > 1) return "a grouped convolution";
    if (g->filters > MOST || g->filters * LANES_PER_FILTER > lanes) return "more than a few filters";
    if (g->dilation[2] > 1) return "a window with gaps";
    if (g->kernel[2] * g->channels < lanes) return "lines of the window that do not fill a vector";
    return g->out_pixels == 0 ? "an empty tensor" : NULL;
}

static void set_memory(const few_state *s, const leati_task *task, leati_kernel *kernel) {
    const int64_t weights = s->g.filters * s->depth;
    const int op_inputs = leati_op_inputs(task);
    kernel->pack_bytes = (leati_conv_line(s->g.filters) + leati_conv_line(weights)) * sizeof(float);
    kernel->scratch_bytes = kernel->pack_bytes + (s->norm ? leati_conv_line(weights) * sizeof(float) : 0);
    kernel->pack_inputs = 1u << 1;
    for (int i = 2; i < op_inputs; i++) kernel->pack_inputs |= 1u << i;
    for (int i = op_inputs; s->norm && i <= s->post + LEATI_POST_VARIANCE; i++)
        kernel->pack_inputs |= 1u << i;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native few filters %s", s->isa->name);
    snprintf(kernel->layout, sizeof kernel->layout, "nhwc weights filter by filter");
    snprintf(kernel->pack_key, sizeof kernel->pack_key, "native few filters %lldx%lld%s%.9g",
             (long long)s->depth, (long long)s->g.filters, s->norm ? " norm " : " ",
             (double)(s->norm ? s->epsilon : 0));
}

leat_status leati_native_conv_few_filters(const leati_task *task, leati_kernel *kernel, char *why,
                                          leat_error *err) {
    leati_geometry g;
    LEATI_TRY(leati_conv_geometry(&g, task->op, task->attrs, task->inputs, err));
    const leati_native_isa *isa = leati_native_isa_of();
    const char *reason = reason_against(task, &g, isa->lanes);
    if (reason) {
        snprintf(why, LEATI_REASON_BYTES, "%s", reason);
        return LEAT_OK;
    }
    few_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a convolution with a few filters");
    int op_inputs = leati_op_inputs(task);
    *s = (few_state){.g = g,
                     .isa = isa,
                     .f = task->attrs->post.function,
                     .epsilon = task->attrs->post.epsilon,
                     .norm = task->attrs->post.kinds & LEATI_POST_NORM,
                     .has_f = task->attrs->post.kinds & LEATI_POST_FUNCTION,
                     .bias = op_inputs > 2 && task->inputs[2].rank >= 0 ? 2 : -1,
                     .post = task->input_count > op_inputs ? op_inputs : -1,
                     .dst = task->input_count,
                     .rows = g.batch * g.out[0] * g.out[1],
                     .depth = g.taps * g.channels};
    s->threads = leati_worthwhile_threads(task, 4.0 * (double)g.out_pixels * (double)(s->depth * g.filters));
    s->tasks = s->threads > 1 ? TASKS * s->threads : 1;
    if (s->tasks > s->rows) s->tasks = s->rows;
    kernel->state = s;
    kernel->destroy = leati_free;
    kernel->run = run_forward;
    set_memory(s, task, kernel);
    return LEAT_OK;
}
