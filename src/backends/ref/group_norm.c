/* SPDX-License-Identifier: Apache-2.0 */
/* GROUP_NORM and GROUP_NORM_BWD in plain C, sums in double.  Room: backends/ref. */
#include "engine/op_semantics/group_norm.h"

#include <math.h>

#include "backends/ref/ref.h"

/* A group of channels in one row: element i is at[i / width * channels + i % width], of channel first + i % width. */
typedef struct group {
    int64_t first, width, count, channels;
    const float *at;
} group;

static group group_of(const leati_group_shape *s, int64_t row, int64_t g, const float *src) {
    int64_t width = s->channels / s->groups;
    return (group){g * width, width, s->places * width, s->channels,
                   src + row * s->places * s->channels + g * width};
}

static int64_t offset_of(const group *g, int64_t i) {
    return i / g->width * g->channels + i % g->width;
}

static void moments(const group *g, float epsilon, float *mean, float *inverse) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < g->count; i++) sum += (double)g->at[offset_of(g, i)];
    double m = sum / (double)g->count;
    for (int64_t i = 0; i < g->count; i++) {
        double d = (double)g->at[offset_of(g, i)] - m;
        squares += d * d;
    }
    *mean = (float)m;
    *inverse = (float)(1 / sqrt(squares / (double)g->count + (double)epsilon));
}

static leat_status run_group_norm(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                  leat_error *err) {
    const leati_ref *ref = leati_ref_of(kernel);
    leati_group_shape s = leati_group_shape_of(&ref->attrs, leati_ref_in(ref, 0));
    const float *src = args[0], *gamma = args[1], *beta = args[2];
    float *dst = args[3], *mean = args[4], *inverse = args[5];
    (void)run, (void)err;
    for (int64_t k = 0; k < s.rows * s.groups; k++) {
        group g = group_of(&s, k / s.groups, k % s.groups, src);
        moments(&g, ref->attrs.group_norm.epsilon, &mean[k], &inverse[k]);
        for (int64_t i = 0; i < g.count; i++) {
            int64_t channel = g.first + i % g.width;
            float y = (g.at[offset_of(&g, i)] - mean[k]) * inverse[k];
            dst[g.at - src + offset_of(&g, i)] =
                y * (gamma ? gamma[channel] : 1) + (beta ? beta[channel] : 0);
        }
    }
    return LEAT_OK;
}

LEATI_REF_ACCEPTS(group_norm, run_group_norm)

/* Computes the gradients of one group.  With y = (src - mean) inverse, d = diff_dst gamma, and means over the
 * group:
 *   diff_src = inverse (d - mean d - y mean (d y));  diff_gamma = sum diff_dst y;  diff_beta = sum diff_dst. */
static void backward_group(const group *g, const float *gamma, double mean, double inverse,
                           const float *diff_dst, float *diff_src, double *gamma_sums, double *beta_sums) {
    double sum = 0, sum_y = 0, n = (double)g->count;
    for (int64_t i = 0; i < g->count; i++) {
        int64_t channel = g->first + i % g->width;
        double y = ((double)g->at[offset_of(g, i)] - mean) * inverse,
               diff = (double)diff_dst[offset_of(g, i)];
        gamma_sums[channel] += diff * y;
        beta_sums[channel] += diff;
        sum += diff * (gamma ? (double)gamma[channel] : 1);
        sum_y += diff * (gamma ? (double)gamma[channel] : 1) * y;
    }
    for (int64_t i = 0; i < g->count; i++) {
        double y = ((double)g->at[offset_of(g, i)] - mean) * inverse;
        double d = (double)diff_dst[offset_of(g, i)] * (gamma ? (double)gamma[g->first + i % g->width] : 1);
        diff_src[offset_of(g, i)] = (float)(inverse * (d - sum / n - y * sum_y / n));
    }
}

static leat_status run_bwd(const leati_kernel *kernel, void *const *args, const leati_run *run,
                           leat_error *err) {
    const leati_ref *ref = leati_ref_of(kernel);
    leati_group_shape s = leati_group_shape_of(&ref->attrs, leati_ref_in(ref, 0));
    const float *src = args[0], *mean = args[2], *inverse = args[3], *diff_dst = args[4];
    float *diff_src = args[5], *diff_gamma = args[6], *diff_beta = args[7];
    double *gamma_sums = run->scratch, *beta_sums = gamma_sums + s.channels;
    (void)err;
    for (int64_t c = 0; c < 2 * s.channels; c++) gamma_sums[c] = 0;
    for (int64_t k = 0; k < s.rows * s.groups; k++) {
        group g = group_of(&s, k / s.groups, k % s.groups, src);
        backward_group(&g, args[1], (double)mean[k], (double)inverse[k], diff_dst + (g.at - src),
                       diff_src + (g.at - src), gamma_sums, beta_sums);
    }
    for (int64_t c = 0; c < s.channels; c++) {
        diff_gamma[c] = (float)gamma_sums[c];
        diff_beta[c] = (float)beta_sums[c];
    }
    return LEAT_OK;
}

leat_status leati_ref_group_norm_bwd(const leati_task *task, leati_kernel *kernel, char *why,
                                     leat_error *err) {
    (void)why;
    kernel->scratch_bytes = (size_t)task->attrs->group_norm.channels * 2 * sizeof(double);
    return leati_ref_accept(task, kernel, run_bwd, err);
}
