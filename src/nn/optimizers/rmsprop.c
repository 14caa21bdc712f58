/* SPDX-License-Identifier: Apache-2.0 */
/* RMSprop. */
#include "nn/optimizers/types.h"

static const leati_field fields[] = {LEATI_OPTIMIZER_FLOAT(learning_rate, "0.001"),
                                     LEATI_OPTIMIZER_FLOAT(rho, "0.9"), LEATI_OPTIMIZER_FLOAT(decay, "0.0"),
                                     LEATI_OPTIMIZER_OPTIONAL(epsilon, false), LEATI_OPTIMIZER_COMMON};

static void scalars(leati_optimizer *optimizer, int64_t iterations, float *out) {
    out[0] = leati_optimizer_rate(optimizer, iterations);
    out[1] = (float)optimizer->config.rho;
    out[2] = (float)optimizer->config.epsilon;
}

const leati_optimizer_type leati_optimizer_rmsprop = {.class_name = "RMSprop",
                                                      .fields = fields,
                                                      .op = LEATI_OP_UPDATE_RMSPROP,
                                                      .slot_count = 1,
                                                      .slots = {"accumulator"},
                                                      .scalar_count = 3,
                                                      .scalars = scalars};
