/* SPDX-License-Identifier: Apache-2.0 */
/* Adam (Kingma, Ba 2014, arXiv:1412.6980), AMSGrad, and AdamW (Loshchilov, Hutter 2017, arXiv:1711.05101): Adam whose
 * weight_decay, an option of every optimizer, is not 0 by default.  The learning rate contains the correction of the
 * moments' bias, so that epsilon is added to the uncorrected root. */
#include "nn/optimizers/types.h"

#include <math.h>

static const leati_field fields[] = {
    LEATI_OPTIMIZER_FLOAT(learning_rate, "0.001"),
    LEATI_OPTIMIZER_FLOAT(beta_1, "0.9"),
    LEATI_OPTIMIZER_FLOAT(beta_2, "0.999"),
    LEATI_OPTIMIZER_FLOAT(decay, "0.0"),
    LEATI_OPTIMIZER_OPTIONAL(epsilon, false),
    LEATI_OPTIMIZER_BOOL(amsgrad),
    LEATI_OPTIMIZER_COMMON,
};

static bool uses_vhat(const leati_optimizer_config *config) {
    return config->amsgrad;
}

static void scalars(leati_optimizer *optimizer, int64_t iterations, float *out) {
    float beta_1 = (float)optimizer->config.beta_1, beta_2 = (float)optimizer->config.beta_2;
    float t = (float)iterations + 1.0f;
    float correction = sqrtf(1.0f - powf(beta_2, t)) / (1.0f - powf(beta_1, t));
    out[0] = leati_optimizer_rate(optimizer, iterations) * correction;
    out[1] = beta_1;
    out[2] = beta_2;
    out[3] = (float)optimizer->config.epsilon;
}

const leati_optimizer_type leati_optimizer_adam = {.class_name = "Adam",
                                                   .fields = fields,
                                                   .op = LEATI_OP_UPDATE_ADAM,
                                                   .as_keras3 = &leati_optimizer_adam_as_keras3,
                                                   .slot_count = 3,
                                                   .slots = {"m", "v", "vhat"},
                                                   .uses_last_slot = uses_vhat,
                                                   .unused_is_one_number = true,
                                                   .scalar_count = 4,
                                                   .scalars = scalars};

static const leati_field decaying_fields[] = {LEATI_OPTIMIZER_FLOAT(learning_rate, "0.001"),
                                              LEATI_OPTIMIZER_FLOAT(weight_decay, "0.004"),
                                              LEATI_OPTIMIZER_FLOAT(beta_1, "0.9"),
                                              LEATI_OPTIMIZER_FLOAT(beta_2, "0.999"),
                                              LEATI_OPTIMIZER_OPTIONAL(epsilon, false),
                                              LEATI_OPTIMIZER_BOOL(amsgrad),
                                              LEATI_OPTIMIZER_SHARED,
                                              {.key = NULL}};

const leati_optimizer_type leati_optimizer_adamw = {.class_name = "AdamW",
                                                    .fields = decaying_fields,
                                                    .op = LEATI_OP_UPDATE_ADAM,
                                                    .as_keras3 = &leati_optimizer_adamw_as_keras3,
                                                    .is_new = true,
                                                    .slot_count = 3,
                                                    .slots = {"m", "v", "vhat"},
                                                    .uses_last_slot = uses_vhat,
                                                    .unused_is_one_number = true,
                                                    .scalar_count = 4,
                                                    .scalars = scalars};

static const leati_field fields_as_keras3[] = {LEATI_OPTIMIZER_FLOAT(learning_rate, "0.001"),
                                               LEATI_OPTIMIZER_FLOAT(beta_1, "0.9"),
                                               LEATI_OPTIMIZER_FLOAT(beta_2, "0.999"),
                                               LEATI_OPTIMIZER_OPTIONAL(epsilon, false),
                                               LEATI_OPTIMIZER_BOOL(amsgrad),
                                               LEATI_OPTIMIZER_COMMON};

static void scalars_as_keras3(leati_optimizer *optimizer, int64_t iterations, float *out) {
    scalars(optimizer, iterations, out);
    out[1] = leati_optimizer_complement(optimizer->config.beta_1);
    out[2] = leati_optimizer_complement(optimizer->config.beta_2);
}

const leati_optimizer_type leati_optimizer_adam_as_keras3 = {.class_name = "Adam",
                                                             .fields = fields_as_keras3,
                                                             .op = LEATI_OP_UPDATE_ADAM,
                                                             .powers = LEATI_POWERS_SQUARE,
                                                             .slot_count = 3,
                                                             .slots = {"m", "v", "vhat"},
                                                             .uses_last_slot = uses_vhat,
                                                             .unused_is_one_number = true,
                                                             .scalar_count = 4,
                                                             .scalars = scalars_as_keras3};

const leati_optimizer_type leati_optimizer_adamw_as_keras3 = {.class_name = "AdamW",
                                                              .fields = decaying_fields,
                                                              .op = LEATI_OP_UPDATE_ADAM,
                                                              .powers = LEATI_POWERS_SQUARE,
                                                              .is_new = true,
                                                              .slot_count = 3,
                                                              .slots = {"m", "v", "vhat"},
                                                              .uses_last_slot = uses_vhat,
                                                              .unused_is_one_number = true,
                                                              .scalar_count = 4,
                                                              .scalars = scalars_as_keras3};
