/* SPDX-License-Identifier: Apache-2.0 */
/* SGD, with momentum (also Nesterov's).  Without momentum it has no slot. */
#include "nn/optimizers/types.h"

static const leati_field fields[] = {LEATI_OPTIMIZER_FLOAT(learning_rate, "0.01"),
                                     LEATI_OPTIMIZER_FLOAT(momentum, "0.0"),
                                     LEATI_OPTIMIZER_FLOAT(decay, "0.0"), LEATI_OPTIMIZER_BOOL(nesterov),
                                     LEATI_OPTIMIZER_COMMON};

static bool uses_momentum(const leati_optimizer_config *config) {
    return config->momentum != 0.0;
}

static void scalars(leati_optimizer *optimizer, int64_t iterations, float *out) {
    out[0] = leati_optimizer_rate(optimizer, iterations);
    out[1] = (float)optimizer->config.momentum;
}

const leati_optimizer_type leati_optimizer_sgd = {.class_name = "SGD",
                                                  .fields = fields,
                                                  .op = LEATI_OP_UPDATE_SGD,
                                                  .slot_count = 1,
                                                  .slots = {"moment"},
                                                  .uses_last_slot = uses_momentum,
                                                  .scalar_count = 2,
                                                  .scalars = scalars};
