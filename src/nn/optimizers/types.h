/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors of the optimizers, each defined in its own file, and functions and fields that several optimizers
 * use. */
#ifndef LEATI_NN_OPTIMIZERS_TYPES_H
#define LEATI_NN_OPTIMIZERS_TYPES_H

#include "nn/optimizers/optimizer.h"

/* All optimizers, NULL-terminated. */
extern const leati_optimizer_type *const leati_optimizer_types[];
/* Returns the optimizer of that class name, ignoring case; NULL if there is none. */
const leati_optimizer_type *leati_optimizer_find(const char *name);
/* Returns a class name: index from 0; NULL at the end. */
const char *leati_optimizer_name_at(int index);

extern const leati_optimizer_type leati_optimizer_sgd;
extern const leati_optimizer_type leati_optimizer_rmsprop, leati_optimizer_rmsprop_as_keras3;
extern const leati_optimizer_type leati_optimizer_adagrad, leati_optimizer_adagrad_as_keras3;
extern const leati_optimizer_type leati_optimizer_adadelta, leati_optimizer_adadelta_as_keras3;
extern const leati_optimizer_type leati_optimizer_adam, leati_optimizer_adam_as_keras3;
extern const leati_optimizer_type leati_optimizer_adamax, leati_optimizer_adamax_as_keras3;
extern const leati_optimizer_type leati_optimizer_nadam, leati_optimizer_nadam_as_keras3;
extern const leati_optimizer_type leati_optimizer_adamw, leati_optimizer_adamw_as_keras3;
extern const leati_optimizer_type leati_optimizer_lion;
extern const leati_optimizer_type leati_optimizer_adafactor;
extern const leati_optimizer_type leati_optimizer_ftrl;
extern const leati_optimizer_type leati_optimizer_lamb;
extern const leati_optimizer_type leati_optimizer_muon;
extern const leati_optimizer_type leati_optimizer_schedule_free_adamw;

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

/* An option that Keras 2.3.1 does not have: it is written only if it differs from its default. */
#define LEATI_OPTIMIZER_LATER(name, field_kind, value)                                                       \
    {                                                                                                        \
        .key = #name, .kind = field_kind, .offset = offsetof(leati_optimizer_config, name), .preset = value, \
        .later = true                                                                                        \
    }

/* The fields that every optimizer has, except weight_decay. */
#define LEATI_OPTIMIZER_SHARED                                                                               \
    LEATI_OPTIMIZER_OPTIONAL(lr, true), LEATI_OPTIMIZER_OPTIONAL(clipnorm, false),                           \
        LEATI_OPTIMIZER_OPTIONAL(clipvalue, false),                                                          \
        LEATI_OPTIMIZER_LATER(global_clipnorm, LEATI_FIELD_OPTIONAL_FLOAT, "null"),                          \
        LEATI_OPTIMIZER_LATER(use_ema, LEATI_FIELD_BOOL, "false"),                                           \
        LEATI_OPTIMIZER_LATER(ema_momentum, LEATI_FIELD_FLOAT, "0.99"),                                      \
        LEATI_OPTIMIZER_LATER(ema_overwrite_frequency, LEATI_FIELD_OPTIONAL_INT, "null"),                    \
        LEATI_OPTIMIZER_LATER(loss_scale_factor, LEATI_FIELD_OPTIONAL_FLOAT, "null"),                        \
        LEATI_OPTIMIZER_LATER(gradient_accumulation_steps, LEATI_FIELD_OPTIONAL_INT, "null")

/* The fields that every optimizer has, and the end of its table. */
#define LEATI_OPTIMIZER_COMMON                                                                               \
    LEATI_OPTIMIZER_SHARED, LEATI_OPTIMIZER_LATER(weight_decay, LEATI_FIELD_OPTIONAL_FLOAT, "null"), {       \
        .key = NULL                                                                                          \
    }

/* Indices of the scalars after the type's own: the share of the weights that decays, and the factors of the moving
 * average, and the loss scale. */
enum {
    LEATI_SCALAR_DECAY,
    LEATI_SCALAR_MOMENTUM,
    LEATI_SCALAR_GAIN,
    LEATI_SCALAR_OLD,
    LEATI_SCALAR_NEW,
    LEATI_SCALAR_LOSS_SCALE,
    LEATI_EXTRA_SCALARS
};

/* Fills the type descriptor of a custom optimizer, of leati_custom_optimizer_bytes.  Errors: LEAT_EINVAL the slots. */
extern const size_t leati_custom_optimizer_bytes;
leat_status leati_custom_optimizer_fill(leati_part *part, leat_error *err);
/* Reads all options of a custom optimizer: those of the keys to optimizer->object, the others to optimizer->config.
 * `ignored` (NULL-terminated) lists keys that change nothing. */
leat_status leati_custom_optimizer_read(leati_optimizer *optimizer, const leati_part *part,
                                        const leati_object *object, const json_t *config,
                                        const char *const *ignored, leat_error *err);
/* Adds the options of the keys, and what names the object (consumes the reference to config). */
leat_status leati_custom_optimizer_write(const leati_optimizer *optimizer, json_t *config, json_t **out,
                                         leat_error *err);

/* True if the optimizer has weight decay. */
bool leati_optimizer_decays(const leati_optimizer *optimizer);

/* Returns 1 - x as current Keras does, whose options are numbers of Python: the difference is rounded, not x. */
float leati_optimizer_complement(double x);

/* Returns the learning rate of an update: lr / (1 + decay * iterations). */
float leati_optimizer_rate(const leati_optimizer *optimizer, int64_t iterations);

#endif
