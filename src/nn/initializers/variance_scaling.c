/* SPDX-License-Identifier: Apache-2.0 */
/* VarianceScaling; the names glorot_*, he_* and lecun_* stand for configurations of it.
 * Source: keras.initializers 2.3.1 (fans of kernels with channels last). */
#include "nn/initializers/types.h"

#include <math.h>

#include "base/error.h"

/* The standard deviation of a standard normal distribution that is truncated at two deviations. */
#define TRUNCATED_DEVIATION 0.87962566103423978

enum { FAN_IN, FAN_OUT, FAN_AVG };
enum { NORMAL, UNIFORM, TRUNCATED_NORMAL, UNTRUNCATED_NORMAL };

typedef struct scaling_config {
    double scale;
    int32_t mode, distribution;
    int64_t seed;
} scaling_config;

static const char *const modes[] = {"fan_in", "fan_out", "fan_avg", NULL};
/* The last two are names of Keras 3; "truncated_normal" is its name for "normal". */
static const char *const distributions[] = {"normal", "uniform", "truncated_normal", "untruncated_normal",
                                            NULL};

static const leati_field fields[] = {
    {.key = "scale", .kind = LEATI_FIELD_FLOAT, .offset = offsetof(scaling_config, scale), .preset = "1.0"},
    {.key = "mode",
     .kind = LEATI_FIELD_CHOICE,
     .offset = offsetof(scaling_config, mode),
     .preset = "\"fan_in\"",
     .choices = modes},
    {.key = "distribution",
     .kind = LEATI_FIELD_CHOICE,
     .offset = offsetof(scaling_config, distribution),
     .preset = "\"normal\"",
     .choices = distributions},
    {.key = "seed",
     .kind = LEATI_FIELD_OPTIONAL_INT,
     .offset = offsetof(scaling_config, seed),
     .preset = "null"},
    {.key = NULL},
};

static leat_status check(void *config, leat_error *err) {
    scaling_config *c = config;
    if (!(c->scale > 0.0)) {
        return leati_fail(err, LEAT_EINVAL, "initializer 'VarianceScaling': expected scale > 0, received %g",
                          c->scale);
    }
    if (c->distribution == TRUNCATED_NORMAL) c->distribution = NORMAL;
    return LEAT_OK;
}

static void fans_of(int rank, const int64_t *dims, double *fan_in, double *fan_out) {
    if (rank < 2 || rank > 5) {
        *fan_in = *fan_out = sqrt((double)leati_shape_elements(rank, dims));
        return;
    }
    double field = (double)leati_shape_elements(rank - 2, dims);
    *fan_in = field * (double)dims[rank - 2];
    *fan_out = field * (double)dims[rank - 1];
}

static leat_status draw(const void *config, int rank, const int64_t *dims, leat_rng *rng, float *out,
                        leat_error *err) {
    (void)err;
    const scaling_config *c = config;
    double fan_in, fan_out;
    fans_of(rank, dims, &fan_in, &fan_out);
    double fan = c->mode == FAN_IN ? fan_in : c->mode == FAN_OUT ? fan_out : (fan_in + fan_out) / 2.0;
    double variance = c->scale / fmax(1.0, fan);
    int64_t count = leati_shape_elements(rank, dims);
    if (c->distribution == UNIFORM) {
        double limit = sqrt(3.0 * variance);
        leati_fill_uniform(rng, -limit, limit, out, count);
    } else if (c->distribution == UNTRUNCATED_NORMAL) {
        leati_fill_normal(rng, 0.0, sqrt(variance), out, count);
    } else {
        leati_fill_truncated(rng, 0.0, sqrt(variance) / TRUNCATED_DEVIATION, out, count);
    }
    return LEAT_OK;
}

#define VARIANCE_SCALING                                                                                     \
    .class_name = "VarianceScaling", .config_bytes = sizeof(scaling_config), .fields = fields,               \
    .seed_offset = offsetof(scaling_config, seed), .check = check, .draw = draw

const leati_initializer_type leati_initializer_variance_scaling = {
    VARIANCE_SCALING, .names = (const char *const[]){"VarianceScaling", NULL}};

/* The other names, with their configurations.  Keras 3 has classes of these names. */
#define NAMED(variable, class_name_, mode, distribution, scale)                                              \
    const leati_initializer_type leati_initializer_##variable = {                                            \
        VARIANCE_SCALING, .names = (const char *const[]){#variable, class_name_, NULL},                      \
        .preset = "{\"scale\": " scale ", \"mode\": \"" mode "\", \"distribution\": \"" distribution "\"}"}

NAMED(lecun_uniform, "LecunUniform", "fan_in", "uniform", "1.0");
NAMED(lecun_normal, "LecunNormal", "fan_in", "normal", "1.0");
NAMED(glorot_uniform, "GlorotUniform", "fan_avg", "uniform", "1.0");
NAMED(glorot_normal, "GlorotNormal", "fan_avg", "normal", "1.0");
NAMED(he_uniform, "HeUniform", "fan_in", "uniform", "2.0");
NAMED(he_normal, "HeNormal", "fan_in", "normal", "2.0");
