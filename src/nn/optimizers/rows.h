/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the optimizers, for the table in nn/optimizer.c, and what several of them use. */
#ifndef LEATI_NN_OPTIMIZERS_ROWS_H
#define LEATI_NN_OPTIMIZERS_ROWS_H

#include "nn/optimizer.h"

extern const leati_optimizer_type leati_optimizer_sgd;
extern const leati_optimizer_type leati_optimizer_rmsprop;
extern const leati_optimizer_type leati_optimizer_adagrad;
extern const leati_optimizer_type leati_optimizer_adadelta;
extern const leati_optimizer_type leati_optimizer_adam;
extern const leati_optimizer_type leati_optimizer_adamax;
extern const leati_optimizer_type leati_optimizer_nadam;

#define LEATI_OPTIMIZER_FLOAT(name, value)                                                                   \
    {                                                                                                        \
        .key = #name, .kind = LEATI_FIELD_FLOAT, .offset = offsetof(leati_optimizer_config, name),           \
        .preset = value                                                                                      \
    }

#define LEATI_OPTIMIZER_BOOL(name)                                                                           \
    {                                                                                                        \
        .key = #name, .kind = LEATI_FIELD_BOOL, .offset = offsetof(leati_optimizer_config, name),            \
        .preset = "false"                                                                                    \
    }

#define LEATI_OPTIMIZER_OPTIONAL(name, is_hidden)                                                            \
    {                                                                                                        \
        .key = #name, .kind = LEATI_FIELD_OPTIONAL_FLOAT, .offset = offsetof(leati_optimizer_config, name),  \
        .preset = "null", .hidden = is_hidden                                                                \
    }

/* Rows that every optimizer has, and the end of its table. */
#define LEATI_OPTIMIZER_COMMON                                                                               \
    LEATI_OPTIMIZER_OPTIONAL(lr, true), LEATI_OPTIMIZER_OPTIONAL(clipnorm, false),                           \
        LEATI_OPTIMIZER_OPTIONAL(clipvalue, false), {                                                        \
        .key = NULL                                                                                          \
    }

/* The learning rate of a step: lr / (1 + decay * iterations). */
float leati_optimizer_rate(const leati_optimizer *optimizer, int64_t iterations);

#endif
