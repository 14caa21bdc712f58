/* SPDX-License-Identifier: Apache-2.0 */
/* BATCH_NORM, BATCH_NORM_APPLY and BATCH_NORM_BWD in plain C: statistics per channel, which is the last axis; sums
 * in double.  Room: backends/ref. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/ref/ref.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/exchange.h"

typedef struct norm_state {
    int64_t rows, channels;
    float epsilon;
    bool synchronized;
    int inputs;
} norm_state;

/* Sets the mean of a channel, and its sum of squared deviations. */
static void moments(const norm_state *s, const float *src, int64_t c, double *mean, double *deviations) {
    double sum = 0, squares = 0;
    for (int64_t row = 0; row < s->rows; row++) sum += (double)src[row * s->channels + c];
    double m = sum / (double)s->rows;
    for (int64_t row = 0; row < s->rows; row++) {
        double d = (double)src[row * s->channels + c] - m;
        squares += d * d;
    }
    *mean = m;
    *deviations = squares;
}

/* Sets the statistics of the batch; those of all ranks, if the node is synchronized. */
static leat_status statistics(const norm_state *s, const float *src, const leati_run *run, float *mean,
                              float *variance, leat_error *err) {
    double *whole = run->scratch;
    whole[0] = (double)s->rows;
    for (int64_t c = 0; c < s->channels; c++) moments(s, src, c, &whole[1 + c], &whole[1 + s->channels + c]);
    if (s->synchronized && run->exchange)
        LEATI_TRY(leati_exchange_moments(run->exchange, whole, s->channels, err));
    for (int64_t c = 0; c < s->channels; c++) {
        mean[c] = (float)whole[1 + c];
        variance[c] = (float)(whole[1 + s->channels + c] / whole[0]);
    }
    return LEAT_OK;
}

static void normalise(const norm_state *s, const float *src, const float *gamma, const float *beta, int64_t c,
                      float mean, float variance, float *dst) {
    float scale = (gamma ? gamma[c] : 1.0f) / sqrtf(variance + s->epsilon), shift = beta ? beta[c] : 0.0f;
    for (int64_t i = c; i < s->rows * s->channels; i += s->channels) dst[i] = (src[i] - mean) * scale + shift;
}

static leat_status run_batch_norm(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                  leat_error *err) {
    const norm_state *s = kernel->state;
    const float *gamma = s->inputs > 1 ? args[1] : NULL, *beta = s->inputs > 2 ? args[2] : NULL;
    float *dst = args[s->inputs], *mean = args[s->inputs + 1], *variance = args[s->inputs + 2];
    LEATI_TRY(statistics(s, args[0], run, mean, variance, err));
    for (int64_t c = 0; c < s->channels; c++)
        normalise(s, args[0], gamma, beta, c, mean[c], variance[c], dst);
    return LEAT_OK;
}

static leat_status run_apply(const leati_kernel *kernel, void *const *args, const leati_run *run,
                             leat_error *err) {
    const norm_state *s = kernel->state;
    const float *mean = args[3], *variance = args[4];
    (void)run, (void)err;
    for (int64_t c = 0; c < s->channels; c++)
        normalise(s, args[0], args[1], args[2], c, mean[c], variance[c], args[5]);
    return LEAT_OK;
}

/* Sets diff to the gradient with respect to dst, with 0 where a fused max(x, 0) gave 0 (rectified and more may be
 * NULL). */
static void mask(const norm_state *s, const float *diff_dst, const float *rectified, const float *more,
                 float *diff) {
    for (int64_t i = 0; i < s->rows * s->channels; i++)
        diff[i] = (diff_dst[i] + (more ? more[i] : 0)) * (!rectified || rectified[i] > 0 ? 1.0f : 0.0f);
}

static double inverse_of(const norm_state *s, float variance) {
    return 1 / sqrt((double)variance + (double)s->epsilon);
}

/* With y = (src - mean) / sqrt(variance + epsilon) and n rows, per channel:
 * diff_beta = sum diff; diff_gamma = sum diff y;
 * diff_src = gamma / sqrt(variance + epsilon) (diff - diff_beta / n - y diff_gamma / n).
 * If the node is synchronized, n and both sums in diff_src are those of all ranks. */
static leat_status run_bwd(const leati_kernel *kernel, void *const *args, const leati_run *run,
                           leat_error *err) {
    const norm_state *s = kernel->state;
    const float *src = args[0], *gamma = args[1], *mean = args[2], *variance = args[3];
    void *const *out = args + s->inputs;
    double *whole = run->scratch, *sums = whole + 1, *products = sums + s->channels;
    float *diff_src = out[0], *diff_gamma = out[1], *diff_beta = out[2],
          *diff = (float *)(void *)(products + s->channels);
    mask(s, args[4], s->inputs > 5 ? args[5] : NULL, s->inputs > 7 ? args[7] : NULL, diff);
    if (out[3]) memcpy(out[3], diff, (size_t)(s->rows * s->channels) * sizeof *diff);
    whole[0] = (double)s->rows;
    for (int64_t c = 0; c < s->channels; c++) {
        double sum = 0, product = 0;
        for (int64_t i = c; i < s->rows * s->channels; i += s->channels) {
            sum += (double)diff[i];
            product += (double)diff[i] * ((double)src[i] - (double)mean[c]);
        }
        if (diff_beta) diff_beta[c] = (float)sum;
        if (diff_gamma) diff_gamma[c] = (float)(product * inverse_of(s, variance[c]));
        sums[c] = sum;
        products[c] = product;
    }
    if (s->synchronized && run->exchange)
        LEATI_TRY(leati_exchange_sum(run->exchange, whole, 1 + 2 * s->channels, err));
    for (int64_t c = 0; c < s->channels; c++) {
        double inverse = inverse_of(s, variance[c]);
        double scale = (gamma ? (double)gamma[c] : 1) * inverse, n = whole[0];
        for (int64_t i = c; diff_src && i < s->rows * s->channels; i += s->channels) {
            double y = ((double)src[i] - (double)mean[c]) * inverse;
            diff_src[i] = (float)(scale * ((double)diff[i] - sums[c] / n - y * products[c] * inverse / n));
        }
    }
    return LEAT_OK;
}

static leat_status prepare(const leati_task *task, leati_kernel *kernel, leat_error *err) {
    norm_state *s = leati_calloc(1, sizeof *s);
    if (!s) return leati_fail_memory(err, sizeof *s, "batch normalisation");
    const leati_desc *src = &task->inputs[0];
    s->channels = src->shape[src->rank - 1];
    s->rows = s->channels > 0 ? leati_desc_count(src) / s->channels : 0;
    s->epsilon = task->attrs->batch_norm.epsilon;
    s->synchronized = task->attrs->batch_norm.synchronized;
    s->inputs = task->input_count;
    kernel->scratch_bytes = (1 + 2 * (size_t)s->channels) * sizeof(double);
    kernel->state = s;
    kernel->destroy = leati_free;
    snprintf(kernel->implementation, sizeof kernel->implementation, "ref");
    return LEAT_OK;
}

leat_status leati_ref_batch_norm(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err) {
    (void)why;
    kernel->run = run_batch_norm;
    return prepare(task, kernel, err);
}

leat_status leati_ref_batch_norm_apply(const leati_task *task, leati_kernel *kernel, char *why,
                                       leat_error *err) {
    (void)why;
    kernel->run = run_apply;
    return prepare(task, kernel, err);
}

leat_status leati_ref_batch_norm_bwd(const leati_task *task, leati_kernel *kernel, char *why,
                                     leat_error *err) {
    (void)why;
    kernel->run = run_bwd;
    LEATI_TRY(prepare(task, kernel, err));
    kernel->scratch_bytes += leati_desc_bytes(&task->inputs[0]);
    return LEAT_OK;
}
