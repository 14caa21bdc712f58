/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and their gradients in plain C, sums in double; the other backends are compared with it.  The loops
 * over filters are the inner ones, because filters are the innermost dimension of weights and dst.
 * Room: backends/ref. */
#include <stdio.h>
#include <string.h>

#include "backends/ref/ref.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/op_semantics/geometry.h"

typedef struct conv_state {
    leati_geometry g;
    int64_t group_channels, group_filters;
    int inputs;
    leati_attrs attrs;
} conv_state;

/* acc[f] += sum over channels of src[c] * weights[c][f], group by group. */
static void add_tap(const conv_state *s, const float *src, const float *weights, double *acc) {
    for (int64_t c = 0; c < s->g.channels; c++) {
        const float *row = weights + c % s->group_channels * s->g.filters;
        int64_t first = c / s->group_channels * s->group_filters;
        for (int64_t f = first; f < first + s->group_filters; f++) acc[f] += (double)src[c] * (double)row[f];
    }
}

static leat_status run_conv(const leati_kernel *kernel, void *const *args, const leati_run *run,
                            leat_error *err) {
    const conv_state *s = kernel->state;
    const leati_geometry *g = &s->g;
    const float *src = args[0], *weights = args[1], *bias = s->inputs > 2 ? args[2] : NULL;
    float *dst = args[s->inputs];
    double *acc = run->scratch; /* (filters) */
    (void)err;
    for (int64_t pixel = 0; pixel < g->out_pixels; pixel++) {
        for (int64_t f = 0; f < g->filters; f++) acc[f] = bias ? (double)bias[f] : 0;
        for (int64_t tap = 0; tap < g->taps; tap++) {
            int64_t from = leati_source_pixel(g, pixel, tap);
            if (from < 0) continue;
            add_tap(s, src + from * g->channels, weights + tap * s->group_channels * g->filters, acc);
        }
        for (int64_t f = 0; f < g->filters; f++) {
            float value = (float)acc[f];
            dst[pixel * g->filters + f] =
                s->attrs.post.kinds ? leati_eltwise_at(&s->attrs.post.function, value) : value;
        }
    }
    return LEAT_OK;
}

static leat_status run_bwd_data(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                leat_error *err) {
    const conv_state *s = kernel->state;
    const leati_geometry *g = &s->g;
    const float *diff_dst = args[0], *weights = args[1];
    float *diff_src = args[2];
    (void)run, (void)err;
    int64_t pixels = g->batch * g->in[0] * g->in[1] * g->in[2];
    memset(diff_src, 0, (size_t)(pixels * g->channels) * sizeof *diff_src);
    for (int64_t pixel = 0; pixel < g->out_pixels; pixel++)
        for (int64_t tap = 0; tap < g->taps; tap++) {
            int64_t to = leati_source_pixel(g, pixel, tap);
            for (int64_t c = 0; to >= 0 && c < g->channels; c++) {
                const float *row = weights + (tap * s->group_channels + c % s->group_channels) * g->filters;
                int64_t first = c / s->group_channels * s->group_filters;
                double sum = 0;
                for (int64_t f = first; f < first + s->group_filters; f++)
                    sum += (double)diff_dst[pixel * g->filters + f] * (double)row[f];
                diff_src[to * g->channels + c] += (float)sum;
            }
        }
    return LEAT_OK;
}

/* Adds the gradient with respect to the weights of one tap to acc (channels / groups, filters). */
static void tap_gradient(const conv_state *s, int64_t tap, const float *src, const float *diff_dst,
                         double *acc) {
    const leati_geometry *g = &s->g;
    for (int64_t pixel = 0; pixel < g->out_pixels; pixel++) {
        int64_t from = leati_source_pixel(g, pixel, tap);
        for (int64_t c = 0; from >= 0 && c < g->channels; c++) {
            double x = (double)src[from * g->channels + c];
            double *row = acc + c % s->group_channels * g->filters;
            int64_t first = c / s->group_channels * s->group_filters;
            for (int64_t f = first; f < first + s->group_filters; f++)
                row[f] += x * (double)diff_dst[pixel * g->filters + f];
        }
    }
}

static leat_status run_bwd_weights(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                   leat_error *err) {
    const conv_state *s = kernel->state;
    const leati_geometry *g = &s->g;
    const float *src = args[0], *diff_dst = args[1];
    float *diff_weights = args[2], *diff_bias = args[3];
    double *acc = run->scratch; /* (channels / groups, filters) */
    (void)err;
    int64_t count = s->group_channels * g->filters;
    for (int64_t tap = 0; diff_weights && tap < g->taps; tap++) {
        memset(acc, 0, (size_t)count * sizeof *acc);
        tap_gradient(s, tap, src, diff_dst, acc);
        for (int64_t i = 0; i < count; i++) diff_weights[tap * count + i] = (float)acc[i];
    }
    if (!diff_bias) return LEAT_OK;
    memset(acc, 0, (size_t)g->filters * sizeof *acc);
    for (int64_t i = 0; i < g->out_pixels * g->filters; i++) acc[i % g->filters] += (double)diff_dst[i];
    for (int64_t f = 0; f < g->filters; f++) diff_bias[f] = (float)acc[f];
    return LEAT_OK;
}

static leat_status prepare(const leati_task *task, leati_kernel *kernel, size_t accumulators,
                           leat_error *err) {
    conv_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a convolution");
    kernel->state = s;
    kernel->destroy = leati_free;
    LEATI_TRY(leati_conv_geometry(&s->g, task->op, task->attrs, task->inputs, err));
    s->group_channels = s->g.channels / s->g.groups;
    s->group_filters = s->g.filters / s->g.groups;
    s->inputs = task->input_count;
    s->attrs = *task->attrs;
    kernel->scratch_bytes = accumulators * (size_t)s->g.filters * sizeof(double);
    snprintf(kernel->implementation, sizeof kernel->implementation, "ref");
    return LEAT_OK;
}

leat_status leati_ref_conv(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    kernel->run = run_conv;
    return prepare(task, kernel, 1, err);
}

leat_status leati_ref_conv_bwd_data(const leati_task *task, leati_kernel *kernel, char *why,
                                    leat_error *err) {
    (void)why;
    kernel->run = run_bwd_data;
    return prepare(task, kernel, 0, err);
}

leat_status leati_ref_conv_bwd_weights(const leati_task *task, leati_kernel *kernel, char *why,
                                       leat_error *err) {
    (void)why;
    kernel->run = run_bwd_weights;
    const leati_desc *weights = &task->outputs[0];
    return prepare(task, kernel, (size_t)(weights->shape[weights->rank - 2]), err);
}
