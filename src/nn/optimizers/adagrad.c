/* SPDX-License-Identifier: Apache-2.0 */
/* Adagrad (Duchi, Hazan, Singer 2011).  In current Keras, epsilon is inside the root, and the accumulator does not
 * begin with 0. */
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
                                                      .as_keras3 = &leati_optimizer_adagrad_as_keras3,
                                                      .slot_count = 1,
                                                      .slots = {"accumulator"},
                                                      .scalar_count = 2,
                                                      .scalars = scalars};

static const leati_field fields_as_keras3[] = {LEATI_OPTIMIZER_FLOAT(learning_rate, "0.001"),
                                               LEATI_OPTIMIZER_LATER(initial_accumulator_value,
                                                                     LEATI_FIELD_FLOAT, "0.1"),
                                               LEATI_OPTIMIZER_OPTIONAL(epsilon, false),
                                               LEATI_OPTIMIZER_COMMON};

static double preset(const leati_optimizer_config *config, int slot) {
    (void)slot;
    return config->initial_accumulator_value;
}

const leati_optimizer_type leati_optimizer_adagrad_as_keras3 = {.class_name = "Adagrad",
                                                                .fields = fields_as_keras3,
                                                                .op = LEATI_OP_UPDATE_ADAGRAD,
                                                                .powers = LEATI_POWERS_SQUARE,
                                                                .slot_count = 1,
                                                                .slots = {"accumulator"},
                                                                .slot_preset = preset,
                                                                .scalar_count = 2,
                                                                .scalars = scalars};
