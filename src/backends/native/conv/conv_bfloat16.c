/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of bf16, and their gradients with respect to the source, as matrix products (see conv.c).  The
 * functions that move pixels treat two channels as one element of four bytes.  Room: backends/native. */
#include <math.h>
#include <stdio.h>

#include "backends/native/conv/bfloat16.h"
#include "backends/native/conv/conv.h"
#include "backends/native/ops.h"
#include "base/os/cpu.h"
#include "base/error.h"
#include "tensor/bfloat16.h"

#if LEATI_NATIVE_X86

enum { ROWS = 96 };

static void pack(void *of, int64_t task, int member) {
    const leati_conv_packing *p = of;
    const leati_conv_state *s = p->s;
    int64_t rows = s->g.taps * s->g.channels, column = task * LEATI_BFLOAT16_PANEL;
    (void)member;
    leati_bfloat16_pack(p->weights + column, s->g.filters, rows,
                        (uint32_t *)(void *)p->packed + column * (rows / 2));
}

static void compute(void *of, int64_t task, int member) {
    const leati_conv_run *r = of;
    const leati_conv_state *s = r->s;
    leati_geometry g = s->g;
    float *buffer = r->buffers + (size_t)member * s->buffer;
    g.channels /= 2;
    int64_t depth = g.taps * g.channels;
    leati_conv_area area = leati_conv_area_of(s, task);
    int64_t first = area.first, from = area.from;
    leati_bfloat16_product p = {.a = (const uint32_t *)r->src + first * g.channels,
                                .b = (const uint32_t *)(const void *)r->packed + from * depth,
                                .bias = r->bias ? r->bias + from : NULL,
                                .depth = depth,
                                .a_row = g.channels,
                                .rows = area.rows,
                                .columns = area.columns,
                                .c_row = g.filters,
                                .addend_row = g.filters,
                                .low = s->has_f ? 0 : -INFINITY,
                                .high = s->has_f ? s->f.b : INFINITY};
    p.c = (uint16_t *)r->dst + first * g.filters + from;
    if (r->addend) p.addend = (const uint16_t *)r->addend + first * g.filters + from;
    if (!leati_conv_is_flat(&g)) {
        const leati_conv_image image = {&g, r->src, NULL};
        p.a = (const uint32_t *)(const void *)buffer;
        p.a_row = depth + 16;
        for (int64_t tap = 0; tap < g.taps; tap++)
            leati_conv_gather(&image, tap, first, p.rows, 0, g.channels, buffer + tap * g.channels, p.a_row);
    }
    leati_bfloat16_multiply(&p);
}

static leat_status run_products(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                leat_error *err) {
    const leati_conv_state *s = kernel->state;
    leati_conv_run r = leati_conv_start(s, kernel, args, run, pack, s->g.filters / LEATI_BFLOAT16_PANEL);
    (void)err;
    leati_thread_pool_share(run->pool, s->threads, s->blocks * s->parts, compute, &r);
    return LEAT_OK;
}

/* True if the fused function, if any, is max(x, 0) or min(max(x, 0), b), which the product can apply. */
static bool fuses(const leati_task *task) {
    const leati_eltwise *f = &task->attrs->post.function;
    return !(task->attrs->post.kinds & LEATI_POST_FUNCTION) ||
           (f->function == LEATI_FN_RELU && f->a == 0 && f->c == 0);
}

leat_status leati_native_conv_bfloat16(const leati_task *task, leati_kernel *kernel, char *why,
                                       leat_error *err) {
    leati_conv_state *s = NULL;
    const char *reason = !leati_conv_is_bf16(&task->inputs[0]) ? "the source is not bfloat16"
                         : !leati_cpu_has_bfloat16()           ? "float32 is faster than bfloat16 on this CPU"
                         : !fuses(task)                        ? "not fused"
                                                               : NULL;
    if (reason) {
        snprintf(why, LEATI_REASON_BYTES, "%s", reason);
        return LEAT_OK;
    }
    LEATI_TRY(leati_conv_begin(&s, task, true, kernel, why, err));
    if (!s) return LEAT_OK;
    const leati_geometry *g = &s->g;
    int64_t depth = g->taps * g->channels / 2;
    if (g->channels % 2 || (s->transposed && !leati_conv_is_flat(g) && leati_conv_has_steps(g))) {
        snprintf(why, LEATI_REASON_BYTES,
                 "an odd number of channels, or a gradient of a convolution with strides");
        return LEAT_OK;
    }
    leati_conv_share(s, g->out_pixels, ROWS, LEATI_BFLOAT16_PANEL);
    if (!leati_conv_is_flat(g)) s->buffer = (size_t)(s->block * (depth + 16));
    leati_conv_memory(s, kernel, "bfloat16 ", (size_t)(depth * g->filters));
    kernel->run = run_products;
    return LEAT_OK;
}

#else

leat_status leati_native_conv_bfloat16(const leati_task *task, leati_kernel *kernel, char *why,
                                       leat_error *err) {
    (void)task, (void)kernel, (void)err;
    snprintf(why, LEATI_REASON_BYTES, "float32 is faster than bfloat16 on this CPU");
    return LEAT_OK;
}

#endif
