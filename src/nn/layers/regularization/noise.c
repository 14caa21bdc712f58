/* SPDX-License-Identifier: Apache-2.0 */
/* In training, GaussianNoise computes x + stddev z, and GaussianDropout x (1 + sqrt(rate / (1 - rate)) z), with z
 * standard normal.
 * Source: keras.layers.GaussianNoise, GaussianDropout; Srivastava et al. 2014, section 10. */
#include <math.h>

#include "base/error.h"
#include "base/rng.h"
#include "nn/layers/common_fields.h"
#include "nn/layers/types.h"

typedef struct config {
    double amount; /* stddev or rate */
    int64_t seed;
} config;

/* The key "seed" is current Keras's; Keras 2.3.1 has none. */
#define FIELDS(key_, limited_)                                                                               \
    {                                                                                                        \
        {.key = key_,                                                                                        \
         .kind = LEATI_FIELD_FLOAT,                                                                          \
         .offset = offsetof(config, amount),                                                                 \
         .minimum = 0,                                                                                       \
         .limited = limited_},                                                                               \
            {.key = "seed",                                                                                  \
             .kind = LEATI_FIELD_OPTIONAL_INT,                                                               \
             .offset = offsetof(config, seed),                                                               \
             .preset = "null",                                                                               \
             .later = true},                                                                                 \
        {                                                                                                    \
            .key = NULL                                                                                      \
        }                                                                                                    \
    }
static const leati_field noise_fields[] = FIELDS("stddev", true), dropout_fields[] = FIELDS("rate", false);

static leati_value normal(const config *c, const leati_lowering *lowering, leati_value like, double mean,
                          double stddev) {
    uint64_t stream = c->seed == INT64_MIN ? lowering->stream : leati_mix((uint64_t)c->seed, 0);
    return leati_random_normal(lowering->graph, like, (float)mean, (float)stddev, stream);
}

static void lower_noise(const leati_layer *layer, leati_lowering *lowering, int input_count,
                        const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    (void)input_count;
    outputs[0] = inputs[0];
    if (!leati_lowering_in_training(lowering)) return;
    outputs[0] = leati_add(lowering->graph, inputs[0], normal(c, lowering, inputs[0], 0, c->amount));
}

static void lower_dropout(const leati_layer *layer, leati_lowering *lowering, int input_count,
                          const leati_value *inputs, leati_value *outputs) {
    const config *c = layer->config;
    (void)input_count;
    outputs[0] = inputs[0];
    if (!leati_lowering_in_training(lowering) || !(c->amount > 0 && c->amount < 1)) return;
    double stddev = sqrt(c->amount / (1 - c->amount));
    outputs[0] = leati_mul(lowering->graph, inputs[0], normal(c, lowering, inputs[0], 1, stddev));
}

/* Members of leati_layer_type that all types of this file have in common. */
#define COMMON_MEMBERS                                                                                       \
    LEATI_ONE_INPUT, .masking = LEATI_MASK_PASSED, .steps = LEATI_STEPS_BY_NUMBER, .infer = leati_infer_same

LEATI_LAYER_TYPE(gaussian_noise, "GaussianNoise", "gaussian_noise", config, noise_fields,
                 .lower = lower_noise, COMMON_MEMBERS);
LEATI_LAYER_TYPE(gaussian_dropout, "GaussianDropout", "gaussian_dropout", config, dropout_fields,
                 .lower = lower_dropout, COMMON_MEMBERS);
