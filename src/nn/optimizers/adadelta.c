/* SPDX-License-Identifier: Apache-2.0 */
/* Adadelta (Zeiler 2012, arXiv:1212.5701). */
#include "nn/optimizers/types.h"

static const leati_field fields[] = {LEATI_OPTIMIZER_FLOAT(learning_rate, "1.0"),
                                     LEATI_OPTIMIZER_FLOAT(rho, "0.95"), LEATI_OPTIMIZER_FLOAT(decay, "0.0"),
                                     LEATI_OPTIMIZER_OPTIONAL(epsilon, false), LEATI_OPTIMIZER_COMMON};

static void scalars(leati_optimizer *optimizer, int64_t iterations, float *out) {
    out[0] = leati_optimizer_rate(optimizer, iterations);
    out[1] = (float)optimizer->config.rho;
    out[2] = (float)optimizer->config.epsilon;
}

const leati_optimizer_type leati_optimizer_adadelta = {.class_name = "Adadelta",
                                                       .fields = fields,
                                                       .op = LEATI_OP_UPDATE_ADADELTA,
                                                       .as_keras3 = &leati_optimizer_adadelta_as_keras3,
                                                       .slot_count = 2,
                                                       .slots = {"accumulator", "delta_accumulator"},
                                                       .scalar_count = 3,
                                                       .scalars = scalars};

static const leati_field fields_as_keras3[] = {LEATI_OPTIMIZER_FLOAT(learning_rate, "0.001"),
                                               LEATI_OPTIMIZER_FLOAT(rho, "0.95"),
                                               LEATI_OPTIMIZER_OPTIONAL(epsilon, false),
                                               LEATI_OPTIMIZER_COMMON};

static void scalars_as_keras3(leati_optimizer *optimizer, int64_t iterations, float *out) {
    scalars(optimizer, iterations, out);
    out[3] = leati_optimizer_complement(optimizer->config.rho);
}

const leati_optimizer_type leati_optimizer_adadelta_as_keras3 = {.class_name = "Adadelta",
                                                                 .fields = fields_as_keras3,
                                                                 .op = LEATI_OP_UPDATE_ADADELTA,
                                                                 .powers = LEATI_POWERS_SQUARE,
                                                                 .slot_count = 2,
                                                                 .slots = {"accumulator",
                                                                           "delta_accumulator"},
                                                                 .scalar_count = 4,
                                                                 .scalars = scalars_as_keras3};
