/* SPDX-License-Identifier: Apache-2.0 */
/* Nadam: Adam with Nesterov's momentum (Dozat 2015), which grows by a schedule.  m_schedule is the product of the
 * momenta of all steps before schedule_at; scalars() brings both to the step that it is asked for.
 * Current Keras has no option schedule_decay: its schedule is that of schedule_decay 1. */
#include "nn/optimizers/types.h"

#include <math.h>

static const leati_field fields[] = {LEATI_OPTIMIZER_FLOAT(learning_rate, "0.002"),
                                     LEATI_OPTIMIZER_FLOAT(beta_1, "0.9"),
                                     LEATI_OPTIMIZER_FLOAT(beta_2, "0.999"),
                                     LEATI_OPTIMIZER_FLOAT(schedule_decay, "0.004"),
                                     LEATI_OPTIMIZER_OPTIONAL(epsilon, false),
                                     LEATI_OPTIMIZER_COMMON};

/* Returns the momentum of step t, counted from 1. */
static float momentum_at(const leati_optimizer *optimizer, float t) {
    float schedule_decay = optimizer->as_keras3 ? 1.0f : (float)optimizer->config.schedule_decay;
    float decay = powf(0.96f, t * schedule_decay);
    return (float)optimizer->config.beta_1 * (1.0f - 0.5f * decay);
}

static void scalars(leati_optimizer *optimizer, int64_t iterations, float *out) {
    if (iterations < optimizer->schedule_at) {
        optimizer->schedule_at = 0;
        optimizer->m_schedule = 1.0f;
    }
    for (; optimizer->schedule_at < iterations; ++optimizer->schedule_at) {
        float before = optimizer->m_schedule;
        optimizer->m_schedule *= momentum_at(optimizer, (float)optimizer->schedule_at + 1.0f);
        if (optimizer->m_schedule == before) break; /* 0 or infinite: further factors change nothing */
    }
    optimizer->schedule_at = iterations;
    float t = (float)iterations + 1.0f;
    float now = momentum_at(optimizer, t), next = momentum_at(optimizer, t + 1.0f);
    out[0] = leati_optimizer_rate(optimizer, iterations);
    out[1] = (float)optimizer->config.beta_1;
    out[2] = (float)optimizer->config.beta_2;
    out[3] = (float)optimizer->config.epsilon;
    out[4] = now;
    out[5] = next;
    out[6] = optimizer->m_schedule * now;
    out[7] = optimizer->m_schedule * now * next;
    out[8] = powf((float)optimizer->config.beta_2, t);
}

const leati_optimizer_type leati_optimizer_nadam = {.class_name = "Nadam",
                                                    .fields = fields,
                                                    .op = LEATI_OP_UPDATE_NADAM,
                                                    .as_keras3 = &leati_optimizer_nadam_as_keras3,
                                                    .slot_count = 2,
                                                    .slots = {"m", "v"},
                                                    .has_schedule = true,
                                                    .scalar_count = 9,
                                                    .scalars = scalars};

static const leati_field fields_as_keras3[] = {LEATI_OPTIMIZER_FLOAT(learning_rate, "0.001"),
                                               LEATI_OPTIMIZER_FLOAT(beta_1, "0.9"),
                                               LEATI_OPTIMIZER_FLOAT(beta_2, "0.999"),
                                               LEATI_OPTIMIZER_OPTIONAL(epsilon, false),
                                               LEATI_OPTIMIZER_COMMON};

const leati_optimizer_type leati_optimizer_nadam_as_keras3 = {.class_name = "Nadam",
                                                              .fields = fields_as_keras3,
                                                              .op = LEATI_OP_UPDATE_NADAM,
                                                              .powers = LEATI_POWERS_SQUARE,
                                                              .slot_count = 2,
                                                              .slots = {"m", "v"},
                                                              .has_schedule = true,
                                                              .scalar_count = 9,
                                                              .scalars = scalars};
