/* SPDX-License-Identifier: Apache-2.0 */
/* PATCHES and PATCHES_BWD in plain C.  Room: backends/ref. */
#include <stdio.h>
#include <string.h>

#include "backends/ref/ref.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/op_semantics/geometry.h"

/* Returns the offset of a tap's channels in the patches (P, N, taps * C). */
static int64_t tap_offset(const leati_geometry *g, int64_t pixel, int64_t tap) {
    int64_t window_count = g->out[0] * g->out[1] * g->out[2];
    return ((pixel % window_count * g->batch + pixel / window_count) * g->taps + tap) * g->channels;
}

static leat_status run_patches(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    const leati_geometry *g = kernel->state;
    const float *src = args[0];
    float *dst = args[1];
    (void)run, (void)err;
    for (int64_t pixel = 0; pixel < g->out_pixels; pixel++)
        for (int64_t tap = 0; tap < g->taps; tap++) {
            int64_t from = leati_source_pixel(g, pixel, tap);
            float *to = dst + tap_offset(g, pixel, tap);
            for (int64_t c = 0; c < g->channels; c++) to[c] = from < 0 ? 0 : src[from * g->channels + c];
        }
    return LEAT_OK;
}

static leat_status run_patches_bwd(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                   leat_error *err) {
    const leati_geometry *g = kernel->state;
    const float *diff_dst = args[0];
    float *diff_src = args[1];
    (void)run, (void)err;
    int64_t pixels = g->batch * g->in[0] * g->in[1] * g->in[2];
    memset(diff_src, 0, (size_t)(pixels * g->channels) * sizeof *diff_src);
    for (int64_t pixel = 0; pixel < g->out_pixels; pixel++)
        for (int64_t tap = 0; tap < g->taps; tap++) {
            int64_t to = leati_source_pixel(g, pixel, tap);
            const float *from = diff_dst + tap_offset(g, pixel, tap);
            for (int64_t c = 0; to >= 0 && c < g->channels; c++) diff_src[to * g->channels + c] += from[c];
        }
    return LEAT_OK;
}

static leat_status prepare(const leati_task *task, const leati_desc *src, leati_kernel *kernel,
                           leat_error *err) {
    leati_geometry *g = leati_calloc(1, sizeof *g);
    if (!g) return leati_fail_memory(err, sizeof *g, "a patches kernel");
    kernel->state = g;
    kernel->destroy = leati_free;
    snprintf(kernel->implementation, sizeof kernel->implementation, "ref");
    return leati_geometry_make(g, &task->attrs->conv.window, src, err);
}

leat_status leati_ref_patches(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    kernel->run = run_patches;
    return prepare(task, &task->inputs[0], kernel, err);
}

leat_status leati_ref_patches_bwd(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    kernel->run = run_patches_bwd;
    return prepare(task, &task->outputs[0], kernel, err);
}
