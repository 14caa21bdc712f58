/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the initializers, for the table in nn/initializers/initializer.c, and what several of them use. */
#ifndef LEATI_NN_INITIALIZERS_TYPES_H
#define LEATI_NN_INITIALIZERS_TYPES_H

#include "nn/initializers/initializer.h"

extern const leati_initializer_type leati_initializer_type_zeros;
extern const leati_initializer_type leati_initializer_type_ones;
extern const leati_initializer_type leati_initializer_type_constant;
extern const leati_initializer_type leati_initializer_type_identity;
extern const leati_initializer_type leati_initializer_type_random_normal;
extern const leati_initializer_type leati_initializer_type_random_uniform;
extern const leati_initializer_type leati_initializer_type_truncated_normal;
extern const leati_initializer_type leati_initializer_type_variance_scaling;
extern const leati_initializer_type leati_initializer_type_orthogonal;

int64_t leati_shape_elements(int rank, const int64_t *dims);

/* Fills out with count numbers: normal ones, without those further than two deviations from the mean, or even ones. */
void leati_fill_normal(leat_rng *rng, double mean, double deviation, float *out, int64_t count);
void leati_fill_truncated(leat_rng *rng, double mean, double deviation, float *out, int64_t count);
void leati_fill_uniform(leat_rng *rng, double low, double high, float *out, int64_t count);

#endif
