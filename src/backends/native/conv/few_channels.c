/* SPDX-License-Identifier: Apache-2.0 */
/* Transposed convolutions to a few channels, as the last layer of a net that makes images may be: CONV_BWD_DATA where
 * the source has few channels.  With strides s, the pixels of the result whose positions have the same remainders by s
 * are a convolution with stride 1 and few filters of their own (few_filters_tmpl.h), with some of the taps: a phase.
 * Room: backends/native. */
#include <stdio.h>
#include <string.h>

#include "backends/native/conv/conv.h"
#include "backends/native/ops.h"
#include "base/error.h"
#include "base/memory.h"

enum { PHASES = 16 }; /* at most */

typedef struct phase {
    leati_geometry g;     /* of its convolution */
    int64_t at[3];        /* its first pixel */
    int64_t first_tap[3]; /* the tap that the last source pixel under its window has */
    int64_t packed;       /* its weights, in floats from the start */
    int64_t image;        /* its result, likewise */
} phase;

typedef struct few_channels_state {
    leati_geometry g; /* of the convolution whose transpose is computed */
    const leati_native_isa *isa;
    int threads;
    int64_t blocks; /* of the rows of a phase */
    int64_t phase_count, weights;
    phase phases[PHASES];
} few_channels_state;

typedef struct few_channels_run {
    const few_channels_state *s;
    const float *diff_dst, *weights;
    float *packed, *images, *diff_src; /* images: diff_src where there is one phase */
} few_channels_run;

/* Packs the weights of a phase: (channels, taps, filters), taps in the order of the source's pixels. */
static void pack(const few_channels_run *r, const phase *p) {
    const leati_geometry *g = &r->s->g;
    float *to = r->packed + p->packed;
    for (int64_t c = 0; c < g->channels; c++)
        for (int64_t t = 0; t < p->g.taps; t++, to += g->filters) {
            const int64_t *kernel = p->g.kernel;
            const int64_t taps[3] = {t / (kernel[1] * kernel[2]), t / kernel[2] % kernel[1], t % kernel[2]};
            int64_t tap = 0;
            for (int i = 0; i < 3; i++)
                tap = tap * g->kernel[i] + p->first_tap[i] + g->stride[i] * (kernel[i] - 1 - taps[i]);
            memcpy(to, r->weights + (tap * g->channels + c) * g->filters, (size_t)g->filters * sizeof *to);
        }
}

static void compute(void *of, int64_t task, int member) {
    const few_channels_run *r = of;
    const few_channels_state *s = r->s;
    const phase *p = &s->phases[task / s->blocks];
    const int64_t block = task % s->blocks, rows = p->g.batch * p->g.out[0] * p->g.out[1];
    (void)member;
    s->isa->few_filters_forward(&(leati_conv_rows){.g = &p->g,
                                                   .src = r->diff_dst,
                                                   .packed = r->packed + p->packed,
                                                   .dst = r->images + p->image,
                                                   .first_row = rows * block / s->blocks,
                                                   .last_row = rows * (block + 1) / s->blocks});
}

/* Copies a row of a phase to its places in a row of the result. */
static void spread_row(const leati_geometry *g, const phase *p, const float *from, float *to) {
    to += p->at[2] * g->channels;
    for (int64_t x = 0; x < p->g.out[2]; x++, to += g->stride[2] * g->channels)
        for (int64_t c = 0; c < g->channels; c++) to[c] = *from++;
}

/* Copies the phases of some samples to the result. */
static void spread(void *of, int64_t task, int member) {
    const few_channels_run *r = of;
    const few_channels_state *s = r->s;
    const leati_geometry *g = &s->g;
    const int64_t rows = g->batch * g->in[0] * g->in[1], width = g->in[2] * g->channels;
    (void)member;
    for (int64_t row = rows * task / s->blocks; row < rows * (task + 1) / s->blocks; row++) {
        const int64_t n = row / (g->in[0] * g->in[1]), z = row / g->in[1] % g->in[0], y = row % g->in[1];
        const phase *p = s->phases + (z % g->stride[0] * g->stride[1] + y % g->stride[1]) * g->stride[2];
        for (const phase *end = p + g->stride[2]; p < end; p++) {
            const int64_t from = (n * p->g.out[0] + z / g->stride[0]) * p->g.out[1] + y / g->stride[1];
            spread_row(g, p, r->images + p->image + from * p->g.out[2] * g->channels,
                       r->diff_src + row * width);
        }
    }
}

static leat_status run_few_channels(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                    leat_error *err) {
    const few_channels_state *s = kernel->state;
    float *packed = run->scratch, *dst = args[2];
    few_channels_run r = {.s = s,
                          .diff_dst = args[0],
                          .weights = args[1],
                          .packed = packed,
                          .images = s->phase_count > 1 ? packed + leati_conv_line(s->weights) : dst,
                          .diff_src = dst};
    (void)err;
    for (int64_t i = 0; i < s->phase_count; i++) pack(&r, &s->phases[i]);
    leati_thread_pool_share(run->pool, s->threads, s->phase_count * s->blocks, compute, &r);
    if (s->phase_count > 1) leati_thread_pool_share(run->pool, s->threads, s->blocks, spread, &r);
    return LEAT_OK;
}

/* Returns why the gradient is declined, or NULL. */
static const char *reason_against(const leati_geometry *g, int64_t lanes) {
    int64_t phases = g->stride[0] * g->stride[1] * g->stride[2];
    if (g->groups > 1) return "a grouped convolution";
    if (!leati_conv_are_few(g->channels, lanes)) return "more than a few channels";
    if (leati_conv_has_gaps(g)) return "a window with gaps";
    for (int i = 0; i < 3; i++)
        if (g->kernel[i] < g->stride[i]) return "pixels without a window";
    if (phases > PHASES) return "large strides";
    if (g->kernel[2] / g->stride[2] * g->filters < lanes)
        return "lines of the window that do not fill a vector";
    return g->out_pixels == 0 ? "an empty tensor" : NULL;
}

/* Fills a phase, which begins at p->at, and whose weights and result lie behind those of the phases before. */
static void fill_phase(const leati_geometry *g, phase *p) {
    p->g = (leati_geometry){.batch = g->batch,
                            .channels = g->filters,
                            .filters = g->channels,
                            .groups = 1,
                            .taps = 1,
                            .out_pixels = g->batch};
    for (int i = 0; i < 3; i++) {
        const int64_t stride = g->stride[i], from = p->at[i] + g->pad_before[i];
        p->first_tap[i] = from % stride;
        p->g.in[i] = g->out[i];
        p->g.out[i] = p->at[i] < g->in[i] ? leati_ceil_div(g->in[i] - p->at[i], stride) : 0;
        p->g.kernel[i] = (g->kernel[i] - 1 - p->first_tap[i]) / stride + 1;
        p->g.stride[i] = p->g.dilation[i] = 1;
        p->g.pad_before[i] = p->g.kernel[i] - 1 - from / stride;
        p->g.taps *= p->g.kernel[i];
        p->g.out_pixels *= p->g.out[i];
    }
}

/* Fills all phases, and returns the floats of their results. */
static int64_t fill_phases(few_channels_state *s) {
    const leati_geometry *g = &s->g;
    int64_t image = 0;
    s->phase_count = g->stride[0] * g->stride[1] * g->stride[2];
    for (int64_t i = 0; i < s->phase_count; i++) {
        phase *p = &s->phases[i];
        *p = (phase){.at = {i / (g->stride[1] * g->stride[2]), i / g->stride[2] % g->stride[1],
                            i % g->stride[2]},
                     .packed = s->weights,
                     .image = image};
        fill_phase(g, p);
        s->weights += p->g.taps * g->channels * g->filters;
        image += p->g.out_pixels * g->channels;
    }
    return image;
}

leat_status leati_native_conv_bwd_data_few_channels(const leati_task *task, leati_kernel *kernel, char *why,
                                                    leat_error *err) {
    leati_geometry g;
    const leati_native_isa *isa = leati_native_isa_of();
    LEATI_TRY(leati_conv_geometry(&g, task->op, task->attrs, task->inputs, err));
    const char *reason = reason_against(&g, isa->lanes);
    if (reason) {
        snprintf(why, LEATI_REASON_BYTES, "%s", reason);
        return LEAT_OK;
    }
    few_channels_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a transposed convolution");
    double operations = 2.0 * (double)g.out_pixels * (double)(g.taps * g.channels * g.filters);
    s->g = g;
    s->isa = isa;
    s->threads = leati_worthwhile_threads(task, operations);
    s->blocks = s->threads > 1 ? 2 * s->threads : 1;
    int64_t image = fill_phases(s);
    if (s->phase_count == 1) image = 0;
    kernel->scratch_bytes = (leati_conv_line(s->weights) + leati_conv_line(image)) * sizeof(float);
    kernel->state = s;
    kernel->destroy = leati_free;
    kernel->run = run_few_channels;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native few channels %s", isa->name);
    return LEAT_OK;
}
