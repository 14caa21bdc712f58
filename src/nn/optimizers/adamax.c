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
                                                     .slot_count = 2,
                                                     .slots = {"m", "u"},
                                                     .scalar_count = 4,
                                                     .scalars = scalars};
