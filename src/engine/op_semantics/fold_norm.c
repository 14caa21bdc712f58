/* SPDX-License-Identifier: Apache-2.0 */
/* Folds a batch normalization into weights and bias (fold_norm.h).  Room: engine. */
#include "engine/op_semantics/fold_norm.h"

#include <math.h>

#include "engine/op_semantics/op.h"

void leati_norm_scales(void *const *post, float epsilon, int64_t filters, float *scale) {
    const float *gamma = post[LEATI_POST_GAMMA], *variance = post[LEATI_POST_VARIANCE];
    for (int64_t o = 0; o < filters; o++)
        scale[o] = (float)((gamma ? (double)gamma[o] : 1) / sqrt((double)variance[o] + (double)epsilon));
}

void leati_norm_shifts(void *const *post, const float *bias, const float *scale, int64_t filters,
                       float *shift) {
    const float *mean = post[LEATI_POST_MEAN], *beta = post[LEATI_POST_BETA];
    for (int64_t o = 0; o < filters; o++) {
        double before = (bias ? (double)bias[o] : 0) - (double)mean[o];
        shift[o] = (float)(before * (double)scale[o] + (beta ? (double)beta[o] : 0));
    }
}

void leati_fold_norm(void *const *post, float epsilon, const float *weights, const float *bias, int64_t rows,
                     int64_t filters, float *to, float *shift) {
    leati_norm_scales(post, epsilon, filters, shift);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t o = 0; o < filters; o++) to[row * filters + o] = weights[row * filters + o] * shift[o];
    leati_norm_shifts(post, bias, shift, filters, shift);
}
