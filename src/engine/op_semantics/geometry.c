/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the geometry of windows and of recurrent cells.  Room: engine. */
#include "engine/op_semantics/geometry.h"

#include <math.h>

#include "base/error.h"
#include "base/memory.h"

/* Copies axis `from` of a window to axis `to` of the geometry, and computes the output size of that axis. */
static leat_status fill_axis(leati_geometry *g, int to, const leati_window *w, int from, int64_t size,
                             leat_error *err) {
    const int64_t numbers[] = {w->kernel[from], w->stride[from], w->dilation[from], w->pad_before[from],
                               w->pad_after[from]};
    bool valid = true;
    for (int i = 0; i < 5; i++) valid = valid && numbers[i] >= (i < 3 ? 1 : 0) && numbers[i] <= INT32_MAX;
    if (!valid)
        return leati_fail(
            err, LEAT_EINVAL,
            "expected kernel, stride and dilation >= 1 and padding >= 0 (each below 2^31), received "
            "kernel %lld, stride %lld, dilation %lld, padding %lld and %lld on spatial axis %d",
            (long long)w->kernel[from], (long long)w->stride[from], (long long)w->dilation[from],
            (long long)w->pad_before[from], (long long)w->pad_after[from], from);
    int64_t reach = (w->kernel[from] - 1) * w->dilation[from] + 1;
    int64_t padded = size + w->pad_before[from] + w->pad_after[from];
    if (padded < reach)
        return leati_fail(
            err, LEAT_ESHAPE,
            "expected a window that fits the source, received a window of %lld elements for spatial axis %d "
            "of %lld elements with padding",
            (long long)reach, from, (long long)padded);
    g->in[to] = size;
    g->kernel[to] = w->kernel[from];
    g->stride[to] = w->stride[from];
    g->dilation[to] = w->dilation[from];
    g->pad_before[to] = w->pad_before[from];
    g->pad_after[to] = w->pad_after[from];
    g->out[to] = (padded - reach) / w->stride[from] + 1;
    return LEAT_OK;
}

leat_status leati_geometry_make(leati_geometry *out, const leati_window *window, const leati_desc *src,
                                leat_error *err) {
    int spatial = window->spatial;
    if (spatial < 1 || spatial > 3)
        return leati_fail(err, LEAT_EINVAL, "expected 1 to 3 spatial axes, received %d", spatial);
    if (src->rank != spatial + 2)
        return leati_fail(err, LEAT_ESHAPE, "expected a source of rank %d, received rank %d", spatial + 2,
                          src->rank);
    *out = (leati_geometry){.batch = src->shape[0],
                            .channels = src->shape[src->rank - 1],
                            .groups = 1,
                            .in = {1, 1, 1},
                            .out = {1, 1, 1},
                            .kernel = {1, 1, 1},
                            .stride = {1, 1, 1},
                            .dilation = {1, 1, 1}};
    out->filters = out->channels;
    for (int i = 0; i < spatial; i++)
        LEATI_TRY(fill_axis(out, 3 - spatial + i, window, i, src->shape[1 + i], err));
    out->out_pixels = leati_mul_saturated(out->batch, leati_shape_count(3, out->out));
    out->taps = leati_shape_count(3, out->kernel);
    return LEAT_OK;
}

leat_status leati_conv_geometry(leati_geometry *out, leati_op op, const leati_attrs *attrs,
                                const leati_desc *in, leat_error *err) {
    const leati_window *w = &attrs->conv.window;
    int64_t groups = attrs->conv.groups;
    leati_desc src = in[0];
    if (op == LEATI_OP_CONV_BWD_DATA) {
        if (in[1].rank < 2) return leati_fail(err, LEAT_ESHAPE, "expected weights of rank >= 3");
        for (int i = 0; i < w->spatial && i < 3; i++) src.shape[1 + i] = attrs->conv.size[i];
        if (src.rank >= 1) src.shape[src.rank - 1] = in[1].shape[in[1].rank - 2] * groups;
    }
    LEATI_TRY(leati_geometry_make(out, w, &src, err));
    const leati_desc *last = op == LEATI_OP_CONV_BWD_DATA ? &in[0] : &in[1]; /* the last axis is filters */
    out->filters = last->rank >= 1 ? last->shape[last->rank - 1] : 0;
    out->groups = groups;
    if (groups < 1 || out->channels % groups != 0 || out->filters % groups != 0)
        return leati_fail(
            err, LEAT_ESHAPE,
            "expected groups that divide channels and filters, received %lld groups for %lld channels "
            "and %lld filters",
            (long long)groups, (long long)out->channels, (long long)out->filters);
    return LEAT_OK;
}

leati_desc leati_patches_source(const leati_attrs *attrs, const leati_desc *diff_dst) {
    const leati_window *w = &attrs->conv.window;
    int64_t taps = 1;
    leati_desc src = {.dtype = LEAT_F32, .rank = w->spatial + 2};
    src.shape[0] = diff_dst->shape[1];
    for (int i = 0; i < w->spatial && i < 3; i++) {
        src.shape[1 + i] = attrs->conv.size[i];
        taps = leati_mul_saturated(taps, w->kernel[i]);
    }
    src.shape[w->spatial + 1] = diff_dst->shape[2] / (taps > 0 ? taps : 1);
    return src;
}

int64_t leati_source_pixel(const leati_geometry *g, int64_t pixel, int64_t tap) {
    int64_t at[3];
    for (int i = 2; i >= 0; i--) {
        at[i] = pixel % g->out[i] * g->stride[i] - g->pad_before[i] + tap % g->kernel[i] * g->dilation[i];
        if (at[i] < 0 || at[i] >= g->in[i]) return -1;
        pixel /= g->out[i];
        tap /= g->kernel[i];
    }
    return ((pixel * g->in[0] + at[0]) * g->in[1] + at[1]) * g->in[2] + at[2];
}

leati_rnn_shape leati_rnn_shape_of(const leati_attrs *attrs, const leati_desc *x,
                                   const leati_desc *recurrent) {
    static const struct {
        int64_t gates, biases, kept; /* kept: in units */
    } cells[LEATI_CELL_COUNT] = {[LEATI_CELL_LSTM] = {4, 1, 5},
                                 [LEATI_CELL_GRU] = {3, 1, 3},
                                 [LEATI_CELL_GRU_RESET_AFTER] = {3, 2, 4},
                                 [LEATI_CELL_SIMPLE] = {1, 1, 1}};
    int64_t units = recurrent->shape[0];
    leati_cell cell = attrs->rnn.cell;
    return (leati_rnn_shape){.cell = cell,
                             .batch = x->shape[0],
                             .steps = x->shape[1],
                             .features = x->shape[2],
                             .units = units,
                             .gates = cells[cell].gates,
                             .biases = cells[cell].biases,
                             .kept = cells[cell].kept * units,
                             .activation = attrs->rnn.activation,
                             .recurrent_activation = attrs->rnn.recurrent_activation,
                             .go_backwards = attrs->rnn.go_backwards,
                             .carry_masked = attrs->rnn.carry_masked,
                             .training = attrs->rnn.training};
}

int64_t leati_rnn_first_step(const leati_rnn_shape *shape, const float *steps) {
    int64_t step = 0;
    while (step < shape->steps && !(steps[leati_rnn_input_step(shape, step)] != 0)) ++step;
    return step;
}
