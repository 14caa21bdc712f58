/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of depthwise convolutions with one filter per channel, where oneDNN has no special kernel: oneDNN 2.6 has
 * kernels for the gradient with respect to the source without dilation, and for the gradient with respect to the
 * weights of 3x3 windows, of images and sequences.  Times of native and oneDNN 2.6 on one Zen 3 core, 16 images of
 * 28x28x128: 3x3 with dilation, gradient with respect to the source 2.9 and 12.1 ms, to the weights 1.2 and 38.8; 5x5,
 * to the weights 2.6 and 15.1; one axis, 512x64, to the weights 0.3 and 1.3.  Room: backends/native. */
#include <stdio.h>

#include "backends/native/conv/conv.h"
#include "backends/native/simd/isa.h"
#include "backends/native/ops.h"
#include "backends/native/share.h"
#include "base/error.h"
#include "base/memory.h"

typedef struct depthwise_state {
    leati_geometry g;
    const leati_native_isa *isa;
    int threads;
} depthwise_state;

/* Threads share the channels. */
static void run_bwd_weights_part(const leati_kernel *kernel, void *const *args, const leati_run *run, int t) {
    const depthwise_state *s = kernel->state;
    int64_t blocks = (s->g.channels + LEATI_DEPTHWISE_CHANNELS - 1) / LEATI_DEPTHWISE_CHANNELS;
    (void)run;
    int64_t last = blocks * (t + 1) / s->threads * LEATI_DEPTHWISE_CHANNELS;
    leati_depthwise_bwd job = {.geometry = &s->g,
                               .src = args[0],
                               .diff_dst = args[1],
                               .diff_weights = args[2],
                               .diff_bias = args[3],
                               .first = blocks * t / s->threads * LEATI_DEPTHWISE_CHANNELS,
                               .last = last < s->g.channels ? last : s->g.channels};
    s->isa->depthwise_bwd_weights(&job);
}

static leat_status run_bwd_weights(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                   leat_error *err) {
    const depthwise_state *s = kernel->state;
    (void)err;
    leati_share(s->threads, run_bwd_weights_part, kernel, args, run);
    return LEAT_OK;
}

/* Threads share the samples. */
static void run_bwd_data_part(const leati_kernel *kernel, void *const *args, const leati_run *run, int t) {
    const depthwise_state *s = kernel->state;
    (void)run;
    leati_depthwise_bwd job = {.geometry = &s->g,
                               .diff_dst = args[0],
                               .weights = args[1],
                               .diff_src = args[2],
                               .first = s->g.batch * t / s->threads,
                               .last = s->g.batch * (t + 1) / s->threads};
    s->isa->depthwise_bwd_data(&job);
}

static leat_status run_bwd_data(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                leat_error *err) {
    const depthwise_state *s = kernel->state;
    (void)err;
    leati_share(s->threads, run_bwd_data_part, kernel, args, run);
    return LEAT_OK;
}

static leat_status prepare(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    leati_geometry g;
    bool by_weights = task->op == LEATI_OP_CONV_BWD_WEIGHTS;
    LEATI_TRY(leati_conv_geometry(&g, task->op, task->attrs, task->inputs, err));
    if (g.groups != g.channels || g.filters != g.channels || g.channels == 1) {
        snprintf(why, LEATI_REASON_BYTES, "not a depthwise convolution with one filter per channel");
        return LEAT_OK;
    }
    bool square = g.kernel[1] == 3 && g.kernel[2] == 3, volume = g.in[0] > 1;
    bool supported = !leati_conv_has_gaps(&g) && (!by_weights || square || g.channels < 8);
    if (LEATI_NATIVE_PREFERS_ONEDNN && !task->measured && supported && !volume) {
        snprintf(why, LEATI_REASON_BYTES, "a window that oneDNN has a kernel for");
        return LEAT_OK;
    }
    depthwise_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "a gradient of a depthwise convolution");
    double operations =
        LEATI_DEPTHWISE_OPERATIONS * 2.0 * (double)g.out_pixels * (double)(g.taps * g.channels);
    *s = (depthwise_state){.g = g,
                           .isa = leati_native_isa_of(),
                           .threads = leati_worthwhile_threads(task, operations)};
    kernel->state = s;
    kernel->destroy = leati_free;
    kernel->run = by_weights ? run_bwd_weights : run_bwd_data;
    snprintf(kernel->implementation, sizeof kernel->implementation, "native %s", s->isa->name);
    return LEAT_OK;
}

leat_status leati_native_conv_bwd_data(const leati_task *task, leati_kernel *kernel, char *why,
                                       leat_error *err) {
    return prepare(task, kernel, why, err);
}

leat_status leati_native_conv_bwd_weights(const leati_task *task, leati_kernel *kernel, char *why,
                                          leat_error *err) {
    if (task->unused & 1) {
        snprintf(why, LEATI_REASON_BYTES, "only the gradient with respect to the bias is needed");
        return LEAT_OK;
    }
    return prepare(task, kernel, why, err);
}
