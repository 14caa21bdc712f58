/* SPDX-License-Identifier: Apache-2.0 */
/* Lion: each step has the same size, and the sign of a moment (Chen and others 2023, arXiv:2302.06675). */
#include "nn/optimizers/types.h"

static const leati_field fields[] = {LEATI_OPTIMIZER_FLOAT(learning_rate, "0.001"),
                                     LEATI_OPTIMIZER_FLOAT(beta_1, "0.9"),
                                     LEATI_OPTIMIZER_FLOAT(beta_2, "0.99"), LEATI_OPTIMIZER_COMMON};

static void scalars(leati_optimizer *optimizer, int64_t iterations, float *out) {
    out[0] = leati_optimizer_rate(optimizer, iterations);
    out[1] = (float)optimizer->config.beta_1;
    out[2] = (float)optimizer->config.beta_2;
}

const leati_optimizer_type leati_optimizer_lion = {.class_name = "Lion",
                                                   .fields = fields,
                                                   .op = LEATI_OP_UPDATE_LION,
                                                   .is_new = true,
                                                   .slot_count = 1,
                                                   .slots = {"momentum"},
                                                   .scalar_count = 3,
                                                   .scalars = scalars};
