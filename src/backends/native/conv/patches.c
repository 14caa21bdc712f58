/* SPDX-License-Identifier: Apache-2.0 */
/* PATCHES and PATCHES_BWD: pixels that are contiguous in the source are copied together.  Room: backends/native. */
#include <stdio.h>
#include <string.h>

#include "backends/native/ops.h"
#include "backends/native/share.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/op_semantics/geometry.h"

#define THREAD_BYTES 2097152 /* bytes that each thread must have to move */

typedef struct patches_state {
    leati_geometry g;
    int64_t windows;
    int threads;
} patches_state;

/* The taps of one window row, along the innermost axis: the range of taps that are inside of the source, and the
 * source pixel of the first one. */
typedef struct tap_row {
    int64_t first, count, pixel;
} tap_row;

static tap_row row_of(const leati_geometry *g, int64_t sample, const int64_t at[3], int64_t d, int64_t h) {
    const int64_t tap[] = {d, h};
    int64_t pixel = sample;
    for (int i = 0; i < 2; i++) {
        int64_t x = at[i] * g->stride[i] - g->pad_before[i] + tap[i] * g->dilation[i];
        if (x < 0 || x >= g->in[i]) return (tap_row){0};
        pixel = pixel * g->in[i] + x;
    }
    int64_t start = at[2] * g->stride[2] - g->pad_before[2], step = g->dilation[2];
    int64_t first = start < 0 ? (-start + step - 1) / step : 0;
    int64_t last = g->in[2] > start ? (g->in[2] - start + step - 1) / step : 0; /* exclusive */
    if (last > g->kernel[2]) last = g->kernel[2];
    if (first >= last) return (tap_row){0};
    return (tap_row){first, last - first, pixel * g->in[2] + start + first * step};
}

static void window_position(const leati_geometry *g, int64_t window, int64_t at[3]) {
    for (int i = 2; i >= 0; i--) {
        at[i] = window % g->out[i];
        window /= g->out[i];
    }
}

static void gather_row(const leati_geometry *g, const tap_row *row, const float *src, float *to) {
    int64_t c = g->channels, tail = g->kernel[2] - row->first - row->count;
    memset(to, 0, (size_t)(row->first * c) * sizeof *to);
    memset(to + (row->first + row->count) * c, 0, (size_t)(tail * c) * sizeof *to);
    src += row->pixel * c;
    to += row->first * c;
    if (g->dilation[2] == 1) {
        memcpy(to, src, (size_t)(row->count * c) * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < row->count; i++)
        memcpy(to + i * c, src + i * g->dilation[2] * c, (size_t)c * sizeof *to);
}

static void add_row(const leati_geometry *g, const tap_row *row, const float *from, float *diff_src) {
    int64_t c = g->channels, run = g->dilation[2] == 1 ? row->count : 1;
    from += row->first * c;
    diff_src += row->pixel * c;
    for (int64_t i = 0; i < row->count; i += run) {
        float *to = diff_src + i * g->dilation[2] * c;
        const float *add = from + i * c;
        for (int64_t j = 0; j < run * c; j++) to[j] += add[j];
    }
}

static void gather_windows(const patches_state *s, const float *src, float *dst, int64_t first,
                           int64_t last) {
    const leati_geometry *g = &s->g;
    int64_t at[3];
    for (int64_t window = first; window < last; window++) {
        window_position(g, window, at);
        float *to = dst + window * g->batch * g->taps * g->channels;
        for (int64_t n = 0; n < g->batch; n++)
            for (int64_t d = 0; d < g->kernel[0]; d++)
                for (int64_t h = 0; h < g->kernel[1]; h++, to += g->kernel[2] * g->channels) {
                    tap_row row = row_of(g, n, at, d, h);
                    gather_row(g, &row, src, to);
                }
    }
}

static void run_patches_part(const leati_kernel *kernel, void *const *args, const leati_run *run, int t) {
    const patches_state *s = kernel->state;
    (void)run;
    gather_windows(s, args[0], args[1], s->windows * t / s->threads, s->windows * (t + 1) / s->threads);
}

static leat_status run_patches(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    const patches_state *s = kernel->state;
    (void)err;
    leati_share(s->threads, run_patches_part, kernel, args, run);
    return LEAT_OK;
}

/* Adds the patches of samples first to last - 1 to diff_src.  No two samples share pixels of diff_src, so threads
 * share the samples. */
static void add_samples(const patches_state *s, const float *diff_dst, float *diff_src, int64_t first,
                        int64_t last) {
    const leati_geometry *g = &s->g;
    int64_t image = g->in[0] * g->in[1] * g->in[2] * g->channels, at[3];
    memset(diff_src + first * image, 0, (size_t)((last - first) * image) * sizeof *diff_src);
    for (int64_t window = 0; window < s->windows; window++) {
        window_position(g, window, at);
        for (int64_t n = first; n < last; n++) {
            const float *from = diff_dst + (window * g->batch + n) * g->taps * g->channels;
            for (int64_t d = 0; d < g->kernel[0]; d++)
                for (int64_t h = 0; h < g->kernel[1]; h++, from += g->kernel[2] * g->channels) {
                    tap_row row = row_of(g, n, at, d, h);
                    add_row(g, &row, from, diff_src);
                }
        }
    }
}

static void run_patches_bwd_part(const leati_kernel *kernel, void *const *args, const leati_run *run, int t) {
    const patches_state *s = kernel->state;
    (void)run;
    add_samples(s, args[0], args[1], s->g.batch * t / s->threads, s->g.batch * (t + 1) / s->threads);
}

static leat_status run_patches_bwd(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                   leat_error *err) {
    const patches_state *s = kernel->state;
    (void)err;
    leati_share(s->threads, run_patches_bwd_part, kernel, args, run);
    return LEAT_OK;
}

static leat_status prepare(const leati_task *task, const leati_desc *src, const leati_desc *patches,
                           leati_kernel *kernel, leat_error *err) {
    patches_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a patches kernel");
    kernel->state = s;
    kernel->destroy = leati_free;
    s->windows = patches->shape[0];
    s->threads = leati_desc_bytes(patches) / THREAD_BYTES < (size_t)task->threads ? 1 : task->threads;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native");
    return leati_geometry_make(&s->g, &task->attrs->conv.window, src, err);
}

leat_status leati_native_patches(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    kernel->run = run_patches;
    return prepare(task, &task->inputs[0], &task->outputs[0], kernel, err);
}

leat_status leati_native_patches_bwd(const leati_task *task, leati_kernel *kernel, char *why,
                                     leat_error *err) {
    (void)why;
    kernel->run = run_patches_bwd;
    return prepare(task, &task->outputs[0], &task->inputs[0], kernel, err);
}
