/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling in plain C.  Where several elements are the maximum, the first receives the gradient, as in TensorFlow.
 * Room: backends/ref. */
#include <stdio.h>
#include <string.h>

#include "backends/ref/ref.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/op_semantics/geometry.h"

typedef struct pooling_state {
    leati_geometry g;
    leati_pooling kind;
} pooling_state;

/* Returns the index in src of the first maximum under output pixel `pixel`, in channel c. */
static int64_t first_maximum(const leati_geometry *g, const float *src, int64_t pixel, int64_t c) {
    int64_t best = -1;
    for (int64_t tap = 0; tap < g->taps; tap++) {
        int64_t from = leati_source_pixel(g, pixel, tap);
        if (from < 0) continue;
        if (best < 0 || src[from * g->channels + c] > src[best]) best = from * g->channels + c;
    }
    return best;
}

/* Returns how many elements of src, padding excluded, are under an output pixel. */
static int64_t covered(const leati_geometry *g, int64_t pixel) {
    int64_t count = 0;
    for (int64_t tap = 0; tap < g->taps; tap++) count += leati_source_pixel(g, pixel, tap) >= 0;
    return count;
}

static float average(const leati_geometry *g, const float *src, int64_t pixel, int64_t c) {
    double sum = 0;
    for (int64_t tap = 0; tap < g->taps; tap++) {
        int64_t from = leati_source_pixel(g, pixel, tap);
        if (from >= 0) sum += (double)src[from * g->channels + c];
    }
    return (float)(sum / (double)covered(g, pixel));
}

static leat_status run_pooling(const leati_kernel *kernel, void *const *args, const leati_run *run,
                               leat_error *err) {
    const pooling_state *s = kernel->state;
    const leati_geometry *g = &s->g;
    const float *src = args[0];
    float *dst = args[1];
    (void)run, (void)err;
    for (int64_t i = 0; dst && i < g->out_pixels * g->channels; i++) {
        int64_t pixel = i / g->channels, c = i % g->channels;
        dst[i] = s->kind == LEATI_POOL_MAX ? src[first_maximum(g, src, pixel, c)] : average(g, src, pixel, c);
    }
    return LEAT_OK;
}

static void average_bwd(const leati_geometry *g, const float *diff_dst, float *diff_src, int64_t pixel) {
    float share = 1.0f / (float)covered(g, pixel);
    for (int64_t tap = 0; tap < g->taps; tap++) {
        int64_t to = leati_source_pixel(g, pixel, tap);
        for (int64_t c = 0; to >= 0 && c < g->channels; c++)
            diff_src[to * g->channels + c] += diff_dst[pixel * g->channels + c] * share;
    }
}

static leat_status run_bwd(const leati_kernel *kernel, void *const *args, const leati_run *run,
                           leat_error *err) {
    const pooling_state *s = kernel->state;
    const leati_geometry *g = &s->g;
    const float *src = args[0], *diff_dst = args[2];
    float *diff_src = args[4];
    (void)run, (void)err;
    memset(diff_src, 0, (size_t)(g->batch * g->in[0] * g->in[1] * g->in[2] * g->channels) * sizeof *diff_src);
    for (int64_t pixel = 0; pixel < g->out_pixels; pixel++) {
        if (s->kind == LEATI_POOL_AVERAGE) {
            average_bwd(g, diff_dst, diff_src, pixel);
            continue;
        }
        for (int64_t c = 0; c < g->channels; c++)
            diff_src[first_maximum(g, src, pixel, c)] += diff_dst[pixel * g->channels + c];
    }
    return LEAT_OK;
}

static leat_status prepare(const leati_task *task, leati_kernel *kernel, leat_error *err) {
    pooling_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a pooling kernel");
    kernel->state = s;
    kernel->destroy = leati_free;
    s->kind = task->attrs->pooling.kind;
    snprintf(kernel->implementation, sizeof kernel->implementation, "ref");
    return leati_geometry_make(&s->g, &task->attrs->pooling.window, &task->inputs[0], err);
}

leat_status leati_ref_pooling(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    kernel->run = run_pooling;
    return prepare(task, kernel, err);
}

leat_status leati_ref_pooling_bwd(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    kernel->run = run_bwd;
    return prepare(task, kernel, err);
}
