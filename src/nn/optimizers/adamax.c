/* SPDX-License-Identifier: Apache-2.0 */
/* Adamax: Adam with the largest gradient instead of the mean square (arXiv:1412.6980, section 7). */
#include "nn/optimizers/types.h"

#include <math.h>

static const leati_field fields[] = {LEATI_OPTIMIZER_FLOAT(learning_rate, "0.002"),
                                     LEATI_OPTIMIZER_FLOAT(beta_1, "0.9"),
                                     LEATI_OPTIMIZER_FLOAT(beta_2, "0.999"),
                                     LEATI_OPTIMIZER_FLOAT(decay, "0.0"),
                                     LEATI_OPTIMIZER_OPTIONAL(epsilon, false),
                                     LEATI_OPTIMIZER_COMMON};

static void scalars(leati_optimizer *optimizer, int64_t iterations, float *out) {
    float beta_1 = (float)optimizer->config.beta_1;
    float t = (float)iterations + 1.0f;
    out[0] = leati_optimizer_rate(optimizer, iterations) / (1.0f - powf(beta_1, t));
    out[1] = beta_1;
    out[2] = (float)optimizer->config.beta_2;
    out[3] = (float)optimizer->config.epsilon;
}

const leati_optimizer_type leati_optimizer_adamax = {.class_name = "Adamax",
                                                     .fields = fields,
                                                     .op = LEATI_OP_UPDATE_ADAMAX,
                                                     .as_keras3 = &leati_optimizer_adamax_as_keras3,
                                                     .slot_count = 2,
                                                     .slots = {"m", "u"},
                                                     .scalar_count = 4,
                                                     .scalars = scalars};

static const leati_field fields_as_keras3[] = {LEATI_OPTIMIZER_FLOAT(learning_rate, "0.001"),
                                               LEATI_OPTIMIZER_FLOAT(beta_1, "0.9"),
                                               LEATI_OPTIMIZER_FLOAT(beta_2, "0.999"),
                                               LEATI_OPTIMIZER_OPTIONAL(epsilon, false),
                                               LEATI_OPTIMIZER_COMMON};

static void scalars_as_keras3(leati_optimizer *optimizer, int64_t iterations, float *out) {
    scalars(optimizer, iterations, out);
    out[1] = leati_optimizer_complement(optimizer->config.beta_1);
}

const leati_optimizer_type leati_optimizer_adamax_as_keras3 = {.class_name = "Adamax",
                                                               .fields = fields_as_keras3,
                                                               .op = LEATI_OP_UPDATE_ADAMAX,
                                                               .powers = LEATI_POWERS_ABSOLUTE,
                                                               .slot_count = 2,
                                                               .slots = {"m", "u"},
                                                               .scalar_count = 4,
                                                               .scalars = scalars_as_keras3};
