/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes optimizers, and computes the scalars of a step.  Room: nn. */
#include "nn/optimizers/optimizer.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/config/object.h"
#include "nn/optimizers/types.h"

#define KERAS_EPSILON 1e-7

static bool has_field(const leati_optimizer_type *type, const char *key) {
    for (const leati_field *field = type->fields; field->key; ++field) {
        if (strcmp(field->key, key) == 0) return true;
    }
    return false;
}

/* Keys of other versions of Keras.  The keys before FIRST_CONDITIONAL change nothing; the other keys change nothing
 * if they are null, false or 0. */
static const char *const ignored[] = {"name",     "dtype",    "jit_compile", "is_legacy_optimizer",
                                      "centered", "momentum", "decay",       "initial_accumulator_value",
                                      NULL};
#define FIRST_CONDITIONAL 4

static bool neutral(const json_t *value) {
    return !value || json_is_null(value) || json_is_false(value) ||
           (json_is_number(value) && json_number_value(value) == 0.0);
}

static leat_status check_foreign(const leati_optimizer_type *type, const json_t *config, leat_error *err) {
    for (int i = FIRST_CONDITIONAL; ignored[i]; ++i) {
        if (has_field(type, ignored[i]) || neutral(json_object_get(config, ignored[i]))) continue;
        return leati_fail(err, LEAT_ENOTSUP, "'%s' is not supported by %s", ignored[i], type->class_name);
    }
    return LEAT_OK;
}

/* Options that are not set are NAN.  They are compared by isgreater and isless: like > and <, these are false for
 * NAN, but they do not raise FE_INVALID, which a program may trap. */

/* `rounded` is volatile because GCC 12, from -O2 on, puts two of these conversions into one vector and then drops
 * both. */
static double as_float(double value) {
    volatile float rounded = (float)value;
    return (double)rounded;
}

/* Current Keras searches paths of weights for regular expressions; leat searches for words. */
static leat_status check_words(const json_t *words, leat_error *err) {
    if (words && !json_is_array(words))
        return leati_fail(err, LEAT_EINVAL, "exclude_layers: expected a list of words");
    for (size_t i = 0; i < json_array_size(words); ++i) {
        const char *word = json_string_value(json_array_get(words, i));
        if (!word) return leati_fail(err, LEAT_EINVAL, "exclude_layers: expected a list of words");
        if (strpbrk(word, "\\^$.|?*+()[]{}"))
            return leati_fail(
                err, LEAT_ENOTSUP,
                "exclude_layers: expected parts of names of layers, received the regular expression '%s'",
                word);
    }
    return LEAT_OK;
}

/* Checks the options that current Keras added. */
static leat_status check_new_options(const leati_optimizer *optimizer, leat_error *err) {
    const leati_optimizer_config *c = &optimizer->config;
    int clips =
        (isgreater(c->clipnorm, 0.0)) + (isgreater(c->clipvalue, 0.0)) + (isgreater(c->global_clipnorm, 0.0));
    if (clips > 1 && (optimizer->clips_each || isgreater(c->global_clipnorm, 0.0)))
        return leati_fail(err, LEAT_EINVAL,
                          "expected at most one of clipnorm, clipvalue and global_clipnorm");
    if (c->use_ema && !(c->ema_momentum >= 0.0 && c->ema_momentum <= 1.0))
        return leati_fail(err, LEAT_EINVAL, "ema_momentum: expected a number from 0 to 1, received %g",
                          c->ema_momentum);
    if (c->ema_overwrite_frequency != INT64_MIN && c->ema_overwrite_frequency < 1)
        return leati_fail(err, LEAT_EINVAL, "ema_overwrite_frequency: expected null or at least 1");
    LEATI_TRY(check_words(c->exclude_layers, err));
    if (c->gradient_accumulation_steps != INT64_MIN && c->gradient_accumulation_steps < 2)
        return leati_fail(err, LEAT_EINVAL,
                          "gradient_accumulation_steps: expected null or an integer of at least 2");
    if (!isnan(c->loss_scale_factor) && !(c->loss_scale_factor > 0.0))
        return leati_fail(err, LEAT_EINVAL, "loss_scale_factor: expected null or a number above 0");
    if (optimizer->type == &leati_optimizer_adafactor && !(c->clip_threshold > 0.0))
        return leati_fail(err, LEAT_EINVAL, "clip_threshold: expected a number above 0");
    if (c->learning_rate_power > 0.0)
        return leati_fail(err, LEAT_EINVAL,
                          "learning_rate_power: expected a number of at most 0, received %g",
                          c->learning_rate_power);
    if (!(c->initial_accumulator_value >= 0.0 && c->l1_regularization_strength >= 0.0 &&
          c->l2_regularization_strength >= 0.0 && c->l2_shrinkage_regularization_strength >= 0.0))
        return leati_fail(
            err, LEAT_EINVAL,
            "expected initial_accumulator_value and the regularization strengths to be at least 0");
    return LEAT_OK;
}

/* Checks the options, and rounds those that Keras keeps in float32 variables to float32. */
static leat_status check_options(leati_optimizer *optimizer, leat_error *err) {
    leati_optimizer_config *c = &optimizer->config;
    if (!isnan(c->lr)) c->learning_rate = c->lr;
    if (isnan(c->epsilon)) c->epsilon = KERAS_EPSILON;
    c->learning_rate = as_float(c->learning_rate);
    c->decay = as_float(c->decay);
    if (!optimizer->as_keras3) { /* current Keras keeps them as numbers of Python */
        c->momentum = as_float(c->momentum);
        c->beta_1 = as_float(c->beta_1);
        c->beta_2 = as_float(c->beta_2);
        if (optimizer->type == &leati_optimizer_rmsprop) c->rho = as_float(c->rho);
    }
    optimizer->m_schedule = 1.0f;
    if (isless(c->clipnorm, 0.0) || isless(c->clipvalue, 0.0) || isless(c->global_clipnorm, 0.0)) {
        return leati_fail(err, LEAT_EINVAL, "expected clipnorm and clipvalue to be >= 0, received %g and %g",
                          isless(c->clipnorm, 0.0) ? c->clipnorm : c->global_clipnorm, c->clipvalue);
    }
    return check_new_options(optimizer, err);
}

/* Reads a learning rate that is a schedule.  *numbers receives the configuration without it (new reference). */
static leat_status read_schedule(leati_optimizer *optimizer, const json_t *config, json_t **numbers,
                                 leat_error *err) {
    static const char key[] = "learning_rate";
    const json_t *rate = json_object_get(config, key);
    *numbers = json_is_object(rate) ? json_copy((json_t *)(uintptr_t)config)
                                    : json_incref((json_t *)(uintptr_t)config);
    if (!*numbers) return leati_fail(err, LEAT_ENOMEM, "no memory for an optimizer");
    if (!json_is_object(rate)) return LEAT_OK;
    json_object_del(*numbers, key);
    return leati_schedule_read(&optimizer->schedule, rate, err);
}

/* Reads the options of a custom optimizer; its part is that of `named`. */
static leat_status read_custom(leati_optimizer *optimizer, const leati_part *part, const leati_object *named,
                               const json_t *config, leat_error *err) {
    optimizer->config.global_clipnorm = optimizer->config.weight_decay = NAN;
    optimizer->config.loss_scale_factor = NAN;
    LEATI_TRY(leati_custom_optimizer_read(optimizer, part, named, config, ignored, err));
    optimizer->clips_each = true;
    return check_options(optimizer, err);
}

static leat_status read_options(leati_optimizer *optimizer, const json_t *config, leat_error *err) {
    LEATI_TRY(check_foreign(optimizer->type, config, err));
    optimizer->config.global_clipnorm = optimizer->config.weight_decay = NAN;
    optimizer->config.loss_scale_factor = NAN;
    optimizer->config.gradient_accumulation_steps = INT64_MIN;
    LEATI_TRY(leati_fields_read(optimizer->type->fields, ignored, config, &optimizer->config, err));
    /* Current Keras, which clips each gradient, always writes this key; 2.3.1 never does. */
    optimizer->clips_each =
        optimizer->as_keras3 || optimizer->type->is_new || json_object_get(config, "global_clipnorm");
    return check_options(optimizer, err);
}

static leat_status configure(leati_optimizer *optimizer, const leati_part *part, const leati_object *named,
                             const json_t *config, leat_error *err) {
    json_t *numbers = NULL;
    leat_status status = read_schedule(optimizer, config, &numbers, err);
    if (status == LEAT_OK)
        status =
            part ? read_custom(optimizer, part, named, numbers, err) : read_options(optimizer, numbers, err);
    json_decref(numbers);
    return status;
}

/* Finds the type of that name. */
static leat_status find_type(const leati_optimizer_type **out, const char *name, bool as_keras3,
                             const leati_part *parts, leat_error *err) {
    *out = leati_optimizer_find(name);
    if (!*out) return leati_part_unknown(err, parts, LEATI_PART_OPTIMIZER, name, leati_optimizer_name_at);
    if (as_keras3 && (*out)->as_keras3) *out = (*out)->as_keras3;
    return LEAT_OK;
}

/* The key beside class_name and config that says an optimizer's own arithmetic, for optimizers of tf.keras. */
static const char arithmetic_key[] = "arithmetic";

/* Returns the optimizer's own arithmetic, or NULL. */
static const char *own_arithmetic(const json_t *value) {
    static const char *const known[] = {"keras2", "tf.keras"};
    const char *name = json_string_value(json_object_get(value, arithmetic_key));
    for (size_t i = 0; name && i < sizeof known / sizeof known[0]; ++i)
        if (strcmp(known[i], name) == 0) return known[i];
    return NULL;
}

leat_status leati_optimizer_create_with(leati_optimizer **out, const json_t *value, bool as_keras3,
                                        const leati_part *parts, leat_error *err) {
    const char *arithmetic = own_arithmetic(value);
    if (arithmetic) as_keras3 = strcmp(arithmetic, "keras2") != 0;
    *out = NULL;
    leati_object object;
    leati_loss_scale scale;
    LEATI_TRY(leati_object_read(&object, value, "optimizer", err));
    LEATI_TRY(leati_loss_scale_read(&scale, &object, err));
    const leati_optimizer_type *type = NULL;
    const leati_part *part =
        leati_part_find(parts, LEATI_PART_OPTIMIZER, &object, leati_optimizer_find(object.name) != NULL);
    if (part)
        type = part->type;
    else
        LEATI_TRY(find_type(&type, object.name, as_keras3, parts, err));
    leati_optimizer *optimizer = leati_calloc(1, sizeof(*optimizer));
    if (!optimizer) return leati_fail_memory(err, sizeof(*optimizer), "an optimizer");
    optimizer->type = type;
    optimizer->as_keras3 = as_keras3;
    optimizer->scale = scale;
    optimizer->arithmetic = arithmetic;
    optimizer->adds_rows = arithmetic && as_keras3;
    json_t *empty = object.config ? NULL : json_object();
    const json_t *config = object.config ? object.config : empty;
    leat_status status = config ? configure(optimizer, part, &object, config, err)
                                : leati_fail(err, LEAT_ENOMEM, "no memory for an optimizer");
    json_decref(empty);
    if (status != LEAT_OK) {
        leati_optimizer_destroy(&optimizer);
        return leati_prefix(status, err, "optimizer '%s'", object.name);
    }
    *out = optimizer;
    return LEAT_OK;
}

/* Replaces the learning rate by the schedule, if there is one. */
static leat_status write_schedule(const leati_optimizer *optimizer, json_t *config, leat_error *err) {
    json_t *rate = NULL;
    if (!optimizer->schedule) return LEAT_OK;
    LEATI_TRY(leati_schedule_write(optimizer->schedule, &rate, err));
    if (json_object_set_new(config, "learning_rate", rate) == 0) return LEAT_OK;
    return leati_fail(err, LEAT_ENOMEM, "no memory for a schedule");
}

leat_status leati_optimizer_write_inner(const leati_optimizer *optimizer, json_t **out, leat_error *err) {
    static const char *const absent_if_null[] = {"clipnorm", "clipvalue"}; /* Keras 2.3.1 fails on null */
    *out = NULL;
    json_t *config = json_object();
    leat_status status = LEAT_OK;
    if (config) status = leati_fields_write(optimizer->type->fields, &optimizer->config, config, err);
    if (config && status == LEAT_OK) status = write_schedule(optimizer, config, err);
    if (status != LEAT_OK) {
        json_decref(config);
        return status;
    }
    for (size_t i = 0; config && i < sizeof(absent_if_null) / sizeof(absent_if_null[0]); ++i) {
        if (json_is_null(json_object_get(config, absent_if_null[i])))
            json_object_del(config, absent_if_null[i]);
    }
    bool marked = config && optimizer->clips_each && !optimizer->type->is_new && !optimizer->as_keras3 &&
                  isgreater(optimizer->config.clipnorm, 0.0);
    if (marked) json_object_set_new(config, "global_clipnorm", json_null()); /* see configure() */
    if (optimizer->object && config) return leati_custom_optimizer_write(optimizer, config, out, err);
    LEATI_TRY(leati_object_write(optimizer->type->class_name, config, out, err));
    if (!optimizer->arithmetic ||
        json_object_set_new(*out, arithmetic_key, json_string(optimizer->arithmetic)) == 0)
        return LEAT_OK;
    json_decref(*out);
    *out = NULL;
    return leati_fail(err, LEAT_ENOMEM, "no memory for an optimizer");
}

leat_status leati_optimizer_write(const leati_optimizer *optimizer, json_t **out, leat_error *err) {
    LEATI_TRY(leati_optimizer_write_inner(optimizer, out, err));
    if (optimizer->scale.growth_steps == 0) return LEAT_OK;
    json_t *config = leati_loss_scale_config(&optimizer->scale, *out);
    *out = NULL;
    if (!config) return leati_fail(err, LEAT_ENOMEM, "no memory for an optimizer");
    return leati_object_write("LossScaleOptimizer", config, out, err);
}

void leati_optimizer_destroy(leati_optimizer **optimizer) {
    if (*optimizer) {
        leati_schedule_destroy(&(*optimizer)->schedule);
        leati_fields_fini((*optimizer)->type->fields, &(*optimizer)->config);
        leati_part_object_destroy(&(*optimizer)->object);
    }
    leati_free(*optimizer);
    *optimizer = NULL;
}

int leati_optimizer_file_slots(const leati_optimizer *optimizer) {
    const leati_optimizer_type *type = optimizer->type;
    return type->count_slots ? type->count_slots(&optimizer->config) : type->slot_count;
}

const char *leati_optimizer_slot_name(const leati_optimizer *optimizer, int slot) {
    const leati_optimizer_type *type = optimizer->type;
    return type->slot_name ? type->slot_name(&optimizer->config, slot) : type->slots[slot];
}

int leati_optimizer_slot_count(const leati_optimizer *optimizer) {
    const leati_optimizer_type *type = optimizer->type;
    bool all = !type->uses_last_slot || type->uses_last_slot(&optimizer->config);
    return leati_optimizer_file_slots(optimizer) - (all ? 0 : 1);
}

/* A schedule counts batches, not updates. */
float leati_optimizer_rate(const leati_optimizer *optimizer, int64_t iterations) {
    int64_t batches = leati_optimizer_batches(optimizer), batch = iterations;
    if (batches > 1 && iterations < INT64_MAX / batches) batch = iterations * batches + batches - 1;
    float rate = (float)(optimizer->schedule ? leati_schedule_rate(optimizer->schedule, batch)
                                             : optimizer->config.learning_rate);
    float decay = (float)optimizer->config.decay;
    return decay > 0.0f ? rate * (1.0f / (1.0f + decay * (float)iterations)) : rate;
}

float leati_optimizer_complement(double x) {
    return (float)(1.0 - x);
}

leati_slab leati_optimizer_average(const leati_optimizer *optimizer) {
    int slot = leati_optimizer_slot_count(optimizer);
    return optimizer->config.use_ema ? (leati_slab)(LEATI_SLAB_SLOT0 + slot) : LEATI_SLAB_COUNT;
}

int64_t leati_optimizer_batches(const leati_optimizer *optimizer) {
    int64_t batches = optimizer->config.gradient_accumulation_steps;
    return batches == INT64_MIN ? 1 : batches;
}

leati_slab leati_optimizer_accumulator(const leati_optimizer *optimizer) {
    int last = leati_optimizer_slab_count(optimizer) - 1;
    return leati_optimizer_batches(optimizer) > 1 ? (leati_slab)(LEATI_SLAB_SLOT0 + last) : LEATI_SLAB_COUNT;
}

int leati_optimizer_slab_count(const leati_optimizer *optimizer) {
    return leati_optimizer_slot_count(optimizer) + (optimizer->config.use_ema ? 1 : 0) +
           (leati_optimizer_batches(optimizer) > 1 ? 1 : 0);
}

int leati_optimizer_scalar_count(const leati_optimizer *optimizer) {
    return optimizer->type->scalar_count + LEATI_EXTRA_SCALARS;
}

bool leati_optimizer_decays(const leati_optimizer *optimizer) {
    return isgreater(optimizer->config.weight_decay, 0.0) || isless(optimizer->config.weight_decay, 0.0);
}

/* True if the weights are replaced by their moving average after this step. */
static bool overwrites(const leati_optimizer *optimizer, int64_t iterations) {
    int64_t every = optimizer->config.ema_overwrite_frequency;
    return every > 0 && (iterations + 1) % every == 0;
}

void leati_optimizer_scalars(leati_optimizer *optimizer, int64_t iterations, float *out) {
    float *extra = out + optimizer->type->scalar_count;
    iterations /= leati_optimizer_batches(optimizer);
    float momentum = iterations > 0 ? (float)optimizer->config.ema_momentum : 0.0f;
    optimizer->type->scalars(optimizer, iterations, out);
    extra[LEATI_SCALAR_DECAY] = 0.0f;
    if (leati_optimizer_decays(optimizer))
        extra[LEATI_SCALAR_DECAY] =
            (float)optimizer->config.weight_decay * leati_optimizer_rate(optimizer, iterations);
    extra[LEATI_SCALAR_MOMENTUM] = momentum;
    extra[LEATI_SCALAR_GAIN] = 1.0f - momentum;
    extra[LEATI_SCALAR_OLD] = overwrites(optimizer, iterations) ? 0.0f : 1.0f;
    extra[LEATI_SCALAR_NEW] = 1.0f - extra[LEATI_SCALAR_OLD];
    extra[LEATI_SCALAR_LOSS_SCALE] = optimizer->scale.value;
}

leati_value leati_optimizer_loss_scale(const leati_optimizer *optimizer, leati_graph *graph) {
    const leati_desc number = leati_desc_make(LEAT_F32, 0, NULL);
    const int at = optimizer->type->scalar_count + LEATI_SCALAR_LOSS_SCALE;
    if (optimizer->scale.growth_steps == 0) return LEATI_NONE;
    return leati_graph_state(graph, LEATI_SLAB_SCALARS, (size_t)at * sizeof(float), &number);
}

void leati_optimizer_preset(const leati_optimizer *optimizer, leati_weights *weights) {
    const leati_optimizer_type *type = optimizer->type;
    for (int slot = 0; type->slot_preset && slot < leati_optimizer_slot_count(optimizer); ++slot) {
        leati_slab slab = (leati_slab)(LEATI_SLAB_SLOT0 + slot);
        float value = (float)type->slot_preset(&optimizer->config, slot),
              *data = leati_weights_slab(weights, slab);
        for (size_t i = 0; i < weights->trainable_bytes / sizeof(float); ++i) data[i] = value;
        leati_weights_changed(weights, slab);
    }
}
