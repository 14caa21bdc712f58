/* SPDX-License-Identifier: Apache-2.0 */
/* A batch normalization folded into the convolution before it: (x w + bias - mean) scale + beta = x (w scale) + shift,
 * where scale = gamma / sqrt(variance + epsilon) per filter. */
#ifndef LEATI_ENGINE_OP_SEMANTICS_FOLD_NORM_H
#define LEATI_ENGINE_OP_SEMANTICS_FOLD_NORM_H

#include <stdint.h>

/* Computes scale (filters).  post: the arguments of the fused ops (LEATI_POST_GAMMA and so on). */
void leati_norm_scales(void *const *post, float epsilon, int64_t filters, float *scale);

/* Computes shift (filters), which may be `scale`.  bias: NULL where absent. */
void leati_norm_shifts(void *const *post, const float *bias, const float *scale, int64_t filters,
                       float *shift);

/* Computes weights (rows, filters) times scale, to `to`, and shift. */
void leati_fold_norm(void *const *post, float epsilon, const float *weights, const float *bias, int64_t rows,
                     int64_t filters, float *to, float *shift);

#endif
