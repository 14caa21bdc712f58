/* SPDX-License-Identifier: Apache-2.0 */
/* Adagrad (Duchi, Hazan, Singer 2011). */
#include "nn/optimizers/types.h"

static const leati_field fields[] = {LEATI_OPTIMIZER_FLOAT(learning_rate, "0.01"),
                                     LEATI_OPTIMIZER_FLOAT(decay, "0.0"),
                                     LEATI_OPTIMIZER_OPTIONAL(epsilon, false), LEATI_OPTIMIZER_COMMON};

static void scalars(leati_optimizer *optimizer, int64_t iterations, float *out) {
    out[0] = leati_optimizer_rate(optimizer, iterations);
    out[1] = (float)optimizer->config.epsilon;
}

const leati_optimizer_type leati_optimizer_adagrad = {.class_name = "Adagrad",
                                                      .fields = fields,
                                                      .op = LEATI_OP_UPDATE_ADAGRAD,
                                                      .slot_count = 1,
                                                      .slots = {"accumulator"},
                                                      .scalar_count = 2,
                                                      .scalars = scalars};
