/* SPDX-License-Identifier: Apache-2.0 */
/* Initializers that draw independent numbers: RandomNormal, RandomUniform, TruncatedNormal. */
#include "nn/initializers/types.h"

#include <math.h>

typedef struct normal_config {
    double mean, stddev;
    int64_t seed;
} normal_config;

typedef struct uniform_config {
    double minval, maxval;
    int64_t seed;
} uniform_config;

static const leati_field normal_fields[] = {
    {.key = "mean", .kind = LEATI_FIELD_FLOAT, .offset = offsetof(normal_config, mean), .preset = "0.0"},
    {.key = "stddev",
     .kind = LEATI_FIELD_FLOAT,
     .offset = offsetof(normal_config, stddev),
     .preset = "0.05",
     .limited = true},
    {.key = "seed",
     .kind = LEATI_FIELD_OPTIONAL_INT,
     .offset = offsetof(normal_config, seed),
     .preset = "null"},
    {.key = NULL},
};

static const leati_field uniform_fields[] = {
    {.key = "minval",
     .kind = LEATI_FIELD_FLOAT,
     .offset = offsetof(uniform_config, minval),
     .preset = "-0.05"},
    {.key = "maxval",
     .kind = LEATI_FIELD_FLOAT,
     .offset = offsetof(uniform_config, maxval),
     .preset = "0.05"},
    {.key = "seed",
     .kind = LEATI_FIELD_OPTIONAL_INT,
     .offset = offsetof(uniform_config, seed),
     .preset = "null"},
    {.key = NULL},
};

void leati_fill_normal(leat_rng *rng, double mean, double deviation, float *out, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        out[i] = (float)(mean + deviation * leat_rng_normal(rng));
    }
}

void leati_fill_truncated(leat_rng *rng, double mean, double deviation, float *out, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        double z = leat_rng_normal(rng);
        while (fabs(z) > 2.0) {
            z = leat_rng_normal(rng);
        }
        out[i] = (float)(mean + deviation * z);
    }
}

void leati_fill_uniform(leat_rng *rng, double low, double high, float *out, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        out[i] = (float)(low + (high - low) * leat_rng_uniform(rng));
    }
}

static leat_status draw_normal(const void *config, int rank, const int64_t *dims, leat_rng *rng, float *out,
                               leat_error *err) {
    (void)err;
    const normal_config *c = config;
    leati_fill_normal(rng, c->mean, c->stddev, out, leati_shape_elements(rank, dims));
    return LEAT_OK;
}

static leat_status draw_truncated(const void *config, int rank, const int64_t *dims, leat_rng *rng,
                                  float *out, leat_error *err) {
    (void)err;
    const normal_config *c = config;
    leati_fill_truncated(rng, c->mean, c->stddev, out, leati_shape_elements(rank, dims));
    return LEAT_OK;
}

static leat_status draw_uniform(const void *config, int rank, const int64_t *dims, leat_rng *rng, float *out,
                                leat_error *err) {
    (void)err;
    const uniform_config *c = config;
    leati_fill_uniform(rng, c->minval, c->maxval, out, leati_shape_elements(rank, dims));
    return LEAT_OK;
}

const leati_initializer_type leati_initializer_random_normal = {
    .class_name = "RandomNormal",
    .names = (const char *const[]){"RandomNormal", "random_normal", "normal", NULL},
    .config_bytes = sizeof(normal_config),
    .fields = normal_fields,
    .seed_offset = offsetof(normal_config, seed),
    .draw = draw_normal};
const leati_initializer_type leati_initializer_random_uniform = {
    .class_name = "RandomUniform",
    .names = (const char *const[]){"RandomUniform", "random_uniform", "uniform", NULL},
    .config_bytes = sizeof(uniform_config),
    .fields = uniform_fields,
    .seed_offset = offsetof(uniform_config, seed),
    .draw = draw_uniform};
const leati_initializer_type leati_initializer_truncated_normal = {
    .class_name = "TruncatedNormal",
    .names = (const char *const[]){"TruncatedNormal", "truncated_normal", NULL},
    .config_bytes = sizeof(normal_config),
    .fields = normal_fields,
    .seed_offset = offsetof(normal_config, seed),
    .draw = draw_truncated};
