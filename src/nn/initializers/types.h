/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors of the initializers, each defined in the file of its family, and functions that several of them
 * use. */
#ifndef LEATI_NN_INITIALIZERS_TYPES_H
#define LEATI_NN_INITIALIZERS_TYPES_H

#include "nn/initializers/initializer.h"

/* All initializers, NULL-terminated. */
extern const leati_initializer_type *const leati_initializer_types[];
/* Returns the initializer of that name; NULL if there is none. */
const leati_initializer_type *leati_initializer_find(const char *name);
/* Every name that leati_initializer_find knows: index from 0; NULL at the end. */
const char *leati_initializer_name_at(int index);

extern const leati_initializer_type leati_initializer_zeros;
extern const leati_initializer_type leati_initializer_ones;
extern const leati_initializer_type leati_initializer_constant;
extern const leati_initializer_type leati_initializer_random_normal;
extern const leati_initializer_type leati_initializer_random_uniform;
extern const leati_initializer_type leati_initializer_truncated_normal;
extern const leati_initializer_type leati_initializer_variance_scaling;
extern const leati_initializer_type leati_initializer_orthogonal;
extern const leati_initializer_type leati_initializer_identity;
extern const leati_initializer_type leati_initializer_lecun_uniform;
extern const leati_initializer_type leati_initializer_lecun_normal;
extern const leati_initializer_type leati_initializer_glorot_uniform;
extern const leati_initializer_type leati_initializer_glorot_normal;
extern const leati_initializer_type leati_initializer_he_uniform;
extern const leati_initializer_type leati_initializer_he_normal;

int64_t leati_shape_elements(int rank, const int64_t *dims);

/* Fill out with count numbers: normal, normal but at most two deviations from the mean, or uniform. */
void leati_fill_normal(leat_rng *rng, double mean, double deviation, float *out, int64_t count);
void leati_fill_truncated(leat_rng *rng, double mean, double deviation, float *out, int64_t count);
void leati_fill_uniform(leat_rng *rng, double low, double high, float *out, int64_t count);

#endif
