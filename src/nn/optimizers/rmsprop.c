/* SPDX-License-Identifier: Apache-2.0 */
/* RMSprop.  In current Keras, epsilon is inside the root, steps may have momentum, and the mean gradient may be
 * subtracted (`centered`). */
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
                                                      .as_keras3 = &leati_optimizer_rmsprop_as_keras3,
                                                      .slot_count = 1,
                                                      .slots = {"accumulator"},
                                                      .scalar_count = 3,
                                                      .scalars = scalars};

static const leati_field fields_as_keras3[] = {LEATI_OPTIMIZER_FLOAT(learning_rate, "0.001"),
                                               LEATI_OPTIMIZER_FLOAT(rho, "0.9"),
                                               LEATI_OPTIMIZER_LATER(momentum, LEATI_FIELD_FLOAT, "0.0"),
                                               LEATI_OPTIMIZER_OPTIONAL(epsilon, false),
                                               LEATI_OPTIMIZER_LATER(centered, LEATI_FIELD_BOOL, "false"),
                                               LEATI_OPTIMIZER_COMMON};

static int count_slots(const leati_optimizer_config *config) {
    return 1 + (config->momentum > 0.0 ? 1 : 0) + (config->centered ? 1 : 0);
}

static const char *slot_name(const leati_optimizer_config *config, int slot) {
    if (slot == 0) return "accumulator";
    return slot == 1 && config->momentum > 0.0 ? "momentum" : "average_gradient";
}

static void scalars_as_keras3(leati_optimizer *optimizer, int64_t iterations, float *out) {
    scalars(optimizer, iterations, out);
    out[3] = leati_optimizer_complement(optimizer->config.rho);
    out[4] = (float)optimizer->config.momentum;
}

const leati_optimizer_type leati_optimizer_rmsprop_as_keras3 = {.class_name = "RMSprop",
                                                                .fields = fields_as_keras3,
                                                                .op = LEATI_OP_UPDATE_RMSPROP,
                                                                .powers = LEATI_POWERS_SQUARE,
                                                                .slot_count = 3,
                                                                .count_slots = count_slots,
                                                                .slot_name = slot_name,
                                                                .slots_apart = true,
                                                                .scalar_count = 5,
                                                                .scalars = scalars_as_keras3};
