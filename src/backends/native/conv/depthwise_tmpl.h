/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of depthwise convolutions with one filter per channel, for the code that is compiled once per instruction
 * set.  They are computed tap by tap: a row of the output's gradient times a source row, or times weights, added up. */
#ifndef LEATI_BACKENDS_NATIVE_CONV_DEPTHWISE_TMPL_H
#define LEATI_BACKENDS_NATIVE_CONV_DEPTHWISE_TMPL_H

#include "backends/native/conv/jobs.h"
#include "backends/native/simd/vector_tmpl.h"

#define DEPTHWISE_SUMS (LEATI_DEPTHWISE_CHANNELS / LEATI_LANES)

/* The columns first to first + count - 1 of an output row, which have the tap inside of the source: at source
 * column `from`, then one stride further each. */
typedef struct depthwise_run {
    int64_t first, count, from;
} depthwise_run;

static depthwise_run depthwise_run_of(const leati_geometry *g, int64_t tap) {
    int64_t stride = g->stride[2], shift = g->pad_before[2] - tap * g->dilation[2], end = g->in[2] + shift;
    int64_t first = shift > 0 ? (shift + stride - 1) / stride : 0;
    int64_t last = end > 0 ? (end + stride - 1) / stride : 0;
    if (last > g->out[2]) last = g->out[2];
    return last > first ? (depthwise_run){first, last - first, first * stride - shift} : (depthwise_run){0};
}

/* Returns the first pixel of the source row that is under row (tap / kernel[1], tap % kernel[1]) of the window at
 * output row `row`; -1 in the padding. */
static int64_t depthwise_source_row(const leati_geometry *g, int64_t row, int64_t tap) {
    int64_t h = row % g->out[1] * g->stride[1] - g->pad_before[1] + tap % g->kernel[1] * g->dilation[1];
    int64_t rest = row / g->out[1];
    int64_t d = rest % g->out[0] * g->stride[0] - g->pad_before[0] + tap / g->kernel[1] * g->dilation[0];
    if (h < 0 || h >= g->in[1] || d < 0 || d >= g->in[0]) return -1;
    return ((rest / g->out[0] * g->in[0] + d) * g->in[1] + h) * g->in[2];
}

/* to (channels) += the sum over count pixels of a * b; a_step and b_step are the distances between pixels.
 * whole_vectors: a pixel has at least as many channels as a vector has lanes. */
static void depthwise_products(float *to, const float *a, int64_t a_step, const float *b, int64_t b_step,
                               int64_t count, int64_t channels, bool whole_vectors) {
    for (; channels >= LEATI_DEPTHWISE_CHANNELS; channels -= LEATI_DEPTHWISE_CHANNELS) {
        vf acc[DEPTHWISE_SUMS] = {{0}};
        for (int64_t i = 0; i < count; i++)
            for (int v = 0; v < DEPTHWISE_SUMS; v++)
                acc[v] += v_load(a + i * a_step + v * LEATI_LANES) * v_load(b + i * b_step + v * LEATI_LANES);
        for (int v = 0; v < DEPTHWISE_SUMS; v++)
            v_store(to + v * LEATI_LANES, v_load(to + v * LEATI_LANES) + acc[v]);
        to += LEATI_DEPTHWISE_CHANNELS, a += LEATI_DEPTHWISE_CHANNELS, b += LEATI_DEPTHWISE_CHANNELS;
    }
    for (; channels >= LEATI_LANES; channels -= LEATI_LANES) {
        vf acc = {0};
        for (int64_t i = 0; i < count; i++) acc += v_load(a + i * a_step) * v_load(b + i * b_step);
        v_store(to, v_load(to) + acc);
        to += LEATI_LANES, a += LEATI_LANES, b += LEATI_LANES;
    }
    if (channels == 0) return;
    vf acc = {0};
    float lanes[LEATI_LANES];
    /* The last vector begins `back` channels earlier, so that it is a whole one; those lanes are computed again and
     * ignored. */

    int64_t back = whole_vectors ? LEATI_LANES - channels : 0;
    for (int64_t i = 0; i < count; i++)
        acc += whole_vectors ? v_load(a - back + i * a_step) * v_load(b - back + i * b_step)
                             : v_load_part(a + i * a_step, channels) * v_load_part(b + i * b_step, channels);
    v_store(lanes, acc);
    for (int64_t k = 0; k < channels; k++) to[k] += lanes[back + k];
}

/* to (channels) += the sum over count pixels of a. */
static void depthwise_sums(float *to, const float *a, int64_t a_step, int64_t count, int64_t channels) {
    for (int64_t c = 0; c < channels; c += LEATI_LANES) {
        vf acc = {0};
        for (int64_t i = 0; i < count; i++) acc += v_load_part(a + i * a_step + c, channels - c);
        v_store_part(to + c, v_load_part(to + c, channels - c) + acc, channels - c);
    }
}

static void depthwise_bwd_weights(const leati_depthwise_bwd *job) {
    const leati_geometry *g = job->geometry;
    int64_t c = g->channels, count = job->last - job->first, window_rows = g->kernel[0] * g->kernel[1];
    const float *diff_dst = job->diff_dst + job->first;
    for (int64_t tap = 0; tap < g->taps; tap++)
        memset(job->diff_weights + tap * c + job->first, 0, (size_t)count * sizeof(float));
    if (job->diff_bias) memset(job->diff_bias + job->first, 0, (size_t)count * sizeof(float));
    for (int64_t row = 0; row < g->batch * g->out[0] * g->out[1]; row++, diff_dst += g->out[2] * c) {
        if (job->diff_bias) depthwise_sums(job->diff_bias + job->first, diff_dst, c, g->out[2], count);
        for (int64_t tap = 0; tap < window_rows; tap++) {
            int64_t from = depthwise_source_row(g, row, tap);
            for (int64_t w = 0; from >= 0 && w < g->kernel[2]; w++) {
                depthwise_run run = depthwise_run_of(g, w);
                depthwise_products(job->diff_weights + (tap * g->kernel[2] + w) * c + job->first,
                                   job->src + (from + run.from) * c + job->first, g->stride[2] * c,
                                   diff_dst + run.first * c, c, run.count, count, c >= LEATI_LANES);
            }
        }
    }
}

/* to += a * weights (channels), for count pixels that are to_step and a_step apart. */
static void depthwise_scale(float *to, int64_t to_step, const float *a, int64_t a_step, const float *weights,
                            int64_t count, int64_t channels) {
    for (int64_t c = 0; c < channels; c += LEATI_LANES) {
        vf weight = v_load_part(weights + c, channels - c);
        if (channels - c >= LEATI_LANES)
            for (int64_t i = 0; i < count; i++) {
                float *at = to + i * to_step + c;
                v_store(at, v_load(at) + v_load(a + i * a_step + c) * weight);
            }
        else
            for (int64_t i = 0; i < count; i++) {
                float *at = to + i * to_step + c;
                vf product = v_load_part(a + i * a_step + c, channels - c) * weight;
                v_store_part(at, v_load_part(at, channels - c) + product, channels - c);
            }
    }
}

static void depthwise_bwd_data(const leati_depthwise_bwd *job) {
    const leati_geometry *g = job->geometry;
    int64_t c = g->channels, image = g->in[0] * g->in[1] * g->in[2] * c, rows = g->out[0] * g->out[1];
    int64_t window_rows = g->kernel[0] * g->kernel[1];
    memset(job->diff_src + job->first * image, 0, (size_t)((job->last - job->first) * image) * sizeof(float));
    for (int64_t row = job->first * rows; row < job->last * rows; row++)
        for (int64_t tap = 0; tap < window_rows; tap++) {
            int64_t from = depthwise_source_row(g, row, tap);
            for (int64_t w = 0; from >= 0 && w < g->kernel[2]; w++) {
                depthwise_run run = depthwise_run_of(g, w);
                depthwise_scale(job->diff_src + (from + run.from) * c, g->stride[2] * c,
                                job->diff_dst + (row * g->out[2] + run.first) * c, c,
                                job->weights + (tap * g->kernel[2] + w) * c, run.count, c);
            }
        }
}

#endif
