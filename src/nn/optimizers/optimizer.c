/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes optimizers, and adds their ops to the graph: clipping and the update.  Room: nn. */
#include "nn/optimizers/optimizer.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "engine/graph/build.h"
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
static const char *const ignored[] = {"name",
                                      "dtype",
                                      "jit_compile",
                                      "is_legacy_optimizer",
                                      "centered",
                                      "momentum",
                                      "decay",
                                      "initial_accumulator_value",
                                      "loss_scale_factor",
                                      "gradient_accumulation_steps",
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
    if (optimizer->type == &leati_optimizer_adafactor && !(c->clip_threshold > 0.0))
        return leati_fail(err, LEAT_EINVAL, "clip_threshold: expected a number above 0");
    if (optimizer->type != &leati_optimizer_ftrl) return LEAT_OK;
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
    c->momentum = as_float(c->momentum);
    c->beta_1 = as_float(c->beta_1);
    c->beta_2 = as_float(c->beta_2);
    if (optimizer->type == &leati_optimizer_rmsprop) c->rho = as_float(c->rho);
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

static leat_status read_options(leati_optimizer *optimizer, const json_t *config, leat_error *err) {
    LEATI_TRY(check_foreign(optimizer->type, config, err));
    optimizer->config.global_clipnorm = optimizer->config.weight_decay = NAN;
    LEATI_TRY(leati_fields_read(optimizer->type->fields, ignored, config, &optimizer->config, err));
    /* Current Keras, which clips each gradient, always writes this key; 2.3.1 never does. */
    optimizer->clips_each = optimizer->type->is_new || json_object_get(config, "global_clipnorm");
    return check_options(optimizer, err);
}

static leat_status configure(leati_optimizer *optimizer, const json_t *config, leat_error *err) {
    json_t *numbers = NULL;
    leat_status status = read_schedule(optimizer, config, &numbers, err);
    if (status == LEAT_OK) status = read_options(optimizer, numbers, err);
    json_decref(numbers);
    return status;
}

leat_status leati_optimizer_create(leati_optimizer **out, const json_t *value, leat_error *err) {
    *out = NULL;
    leati_object object;
    LEATI_TRY(leati_object_read(&object, value, "optimizer", err));
    const leati_optimizer_type *type = leati_optimizer_find(object.name);
    if (!type) return leati_unknown_name(err, "optimizer", object.name, leati_optimizer_name_at);
    leati_optimizer *optimizer = leati_calloc(1, sizeof(*optimizer));
    if (!optimizer) return leati_fail_memory(err, sizeof(*optimizer), "an optimizer");
    optimizer->type = type;
    json_t *empty = object.config ? NULL : json_object();
    const json_t *config = object.config ? object.config : empty;
    leat_status status = config ? configure(optimizer, config, err)
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

leat_status leati_optimizer_write(const leati_optimizer *optimizer, json_t **out, leat_error *err) {
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
    bool marked = config && optimizer->clips_each && !optimizer->type->is_new &&
                  isgreater(optimizer->config.clipnorm, 0.0);
    if (marked) json_object_set_new(config, "global_clipnorm", json_null()); /* see configure() */
    return leati_object_write(optimizer->type->class_name, config, out, err);
}

void leati_optimizer_destroy(leati_optimizer **optimizer) {
    if (*optimizer) leati_schedule_destroy(&(*optimizer)->schedule);
    leati_free(*optimizer);
    *optimizer = NULL;
}

int leati_optimizer_slot_count(const leati_optimizer *optimizer) {
    const leati_optimizer_type *type = optimizer->type;
    bool all = !type->uses_last_slot || type->uses_last_slot(&optimizer->config);
    return type->slot_count - (all ? 0 : 1);
}

float leati_optimizer_rate(const leati_optimizer *optimizer, int64_t iterations) {
    float rate = (float)(optimizer->schedule ? leati_schedule_rate(optimizer->schedule, iterations)
                                             : optimizer->config.learning_rate);
    float decay = (float)optimizer->config.decay;
    return decay > 0.0f ? rate * (1.0f / (1.0f + decay * (float)iterations)) : rate;
}

/* Indices of the scalars after the type's own: the factor of weight decay, and the factors of the moving average. */
enum { KEEP, MOMENTUM, GAIN, OLD, NEW, EXTRA_SCALARS };

leati_slab leati_optimizer_average(const leati_optimizer *optimizer) {
    int slot = leati_optimizer_slot_count(optimizer);
    return optimizer->config.use_ema ? (leati_slab)(LEATI_SLAB_SLOT0 + slot) : LEATI_SLAB_COUNT;
}

int leati_optimizer_slab_count(const leati_optimizer *optimizer) {
    return leati_optimizer_slot_count(optimizer) + (optimizer->config.use_ema ? 1 : 0);
}

int leati_optimizer_scalar_count(const leati_optimizer *optimizer) {
    return optimizer->type->scalar_count + EXTRA_SCALARS;
}

static bool decays(const leati_optimizer *optimizer) {
    return isgreater(optimizer->config.weight_decay, 0.0) || isless(optimizer->config.weight_decay, 0.0);
}

/* True if the weights are replaced by their moving average after this step. */
static bool overwrites(const leati_optimizer *optimizer, int64_t iterations) {
    int64_t every = optimizer->config.ema_overwrite_frequency;
    return every > 0 && (iterations + 1) % every == 0;
}

void leati_optimizer_scalars(leati_optimizer *optimizer, int64_t iterations, float *out) {
    float *extra = out + optimizer->type->scalar_count;
    float momentum = iterations > 0 ? (float)optimizer->config.ema_momentum : 0.0f;
    optimizer->type->scalars(optimizer, iterations, out);
    extra[KEEP] = 1.0f;
    if (decays(optimizer))
        extra[KEEP] -= (float)optimizer->config.weight_decay * leati_optimizer_rate(optimizer, iterations);
    extra[MOMENTUM] = momentum;
    extra[GAIN] = 1.0f - momentum;
    extra[OLD] = overwrites(optimizer, iterations) ? 0.0f : 1.0f;
    extra[NEW] = 1.0f - extra[OLD];
}

void leati_optimizer_preset(const leati_optimizer *optimizer, leati_weights *weights) {
    const leati_optimizer_type *type = optimizer->type;
    for (int slot = 0; type->slot_preset && slot < leati_optimizer_slot_count(optimizer); ++slot) {
        float value = (float)type->slot_preset(&optimizer->config, slot),
              *data = weights->slab[LEATI_SLAB_SLOT0 + slot];
        for (size_t i = 0; i < weights->trainable_bytes / sizeof(float); ++i) data[i] = value;
    }
}

/* ---- Ops ---- */

static leati_value whole_slab(leati_graph *graph, leati_slab slab, const leati_weights *weights) {
    const int64_t count = (int64_t)(weights->trainable_bytes / sizeof(float));
    const leati_desc all = leati_desc_make(LEAT_F32, 1, &count);
    return leati_graph_state(graph, slab, 0, &all);
}

/* Scales the gradients to the limit if their norm is larger: g * (c / max(|g|, c)). */
static void clip_norm(leati_graph *graph, leati_value gradients, float limit) {
    leati_value square = leati_function_of(graph, gradients, LEATI_FN_SQUARE);
    leati_value norm =
        leati_function_of(graph, leati_reduce_all(graph, LEATI_REDUCE_SUM, square), LEATI_FN_SQRT);
    leati_value constant = leati_scalar(graph, limit);
    leati_value factor = leati_div(graph, constant, leati_binary_of(graph, LEATI_MAX, norm, constant));
    leati_graph_store(graph, gradients, leati_mul(graph, gradients, factor));
}

static void clip(const leati_optimizer *optimizer, leati_graph *graph, const leati_weights *weights) {
    const leati_optimizer_config *c = &optimizer->config;
    leati_value gradients = whole_slab(graph, LEATI_SLAB_GRADIENTS, weights);
    if (isgreater(c->clipnorm, 0.0) && optimizer->clips_each) {
        for (int32_t i = 0; i < weights->trainable_count; ++i) {
            const leati_weight *weight = weights->entries[i];
            clip_norm(graph,
                      leati_graph_state(graph, LEATI_SLAB_GRADIENTS, weight->offset_bytes, &weight->desc),
                      (float)c->clipnorm);
        }
    } else if (isgreater(c->clipnorm, 0.0)) {
        clip_norm(graph, gradients, (float)c->clipnorm);
    } else if (isgreater(c->global_clipnorm, 0.0)) {
        clip_norm(graph, gradients, (float)c->global_clipnorm);
    }
    if (isgreater(c->clipvalue, 0.0)) {
        float limit = (float)c->clipvalue;
        leati_graph_store(graph, gradients, leati_clip(graph, gradients, -limit, limit));
    }
}

/* Adds the update as one node over all weights. */
static void update(const leati_optimizer *optimizer, leati_graph *graph, const leati_weights *weights) {
    const leati_optimizer_type *type = optimizer->type;
    const int64_t scalar_count = type->scalar_count + (decays(optimizer) ? 1 : 0);
    const leati_desc numbers = leati_desc_make(LEAT_F32, 1, &scalar_count);
    leati_value inputs[3 + LEATI_OPTIMIZER_MAX_SLOTS];
    inputs[0] = leati_graph_state(graph, LEATI_SLAB_SCALARS, 0, &numbers);
    inputs[1] = whole_slab(graph, LEATI_SLAB_GRADIENTS, weights);
    inputs[2] = whole_slab(graph, LEATI_SLAB_WEIGHTS, weights);
    int slots = leati_optimizer_slot_count(optimizer);
    for (int i = 0; i < type->slot_count; ++i)
        inputs[3 + i] =
            i < slots ? whole_slab(graph, (leati_slab)(LEATI_SLAB_SLOT0 + i), weights) : LEATI_NONE;
    leati_attrs attrs = {0};
    attrs.update.momentum = optimizer->config.momentum != 0.0;
    attrs.update.nesterov = optimizer->config.nesterov;
    attrs.update.amsgrad = optimizer->config.amsgrad;
    attrs.update.decay = decays(optimizer);
    leati_graph_node(graph, type->op, &attrs, 3 + slots, inputs, NULL);
}

/* a x + b y */
static leati_value weighted_sum(leati_graph *graph, leati_value a, leati_value x, leati_value b,
                                leati_value y) {
    return leati_add(graph, leati_mul(graph, x, a), leati_mul(graph, y, b));
}

/* Updates the moving average of the weights, and replaces the weights by it in the steps that `overwrites` says. */
static void update_average(const leati_optimizer *optimizer, leati_graph *graph, const leati_weights *weights,
                           const leati_value *extra) {
    leati_value w = whole_slab(graph, LEATI_SLAB_WEIGHTS, weights);
    leati_value average = whole_slab(graph, leati_optimizer_average(optimizer), weights);
    leati_value now = weighted_sum(graph, extra[MOMENTUM], average, extra[GAIN], w);
    leati_graph_store(graph, average, now);
    if (optimizer->config.ema_overwrite_frequency > 0)
        leati_graph_store(graph, w, weighted_sum(graph, extra[OLD], w, extra[NEW], now));
}

void leati_optimizer_lower(const leati_optimizer *optimizer, leati_graph *graph,
                           const leati_weights *weights) {
    const leati_optimizer_type *type = optimizer->type;
    const leati_desc number = leati_desc_make(LEAT_F32, 0, NULL);
    leati_value scalars[LEATI_OPTIMIZER_MAX_SCALARS], *extra = scalars + type->scalar_count;
    clip(optimizer, graph, weights);
    bool single = type->lower || optimizer->config.use_ema;
    for (int i = 0; single && i < leati_optimizer_scalar_count(optimizer); ++i)
        scalars[i] = leati_graph_state(graph, LEATI_SLAB_SCALARS, (size_t)i * sizeof(float), &number);
    if (type->lower) {
        leati_value w = whole_slab(graph, LEATI_SLAB_WEIGHTS, weights);
        if (decays(optimizer)) leati_graph_store(graph, w, leati_mul(graph, w, extra[KEEP]));
        type->lower(optimizer, graph, weights, scalars);
    } else {
        update(optimizer, graph, weights);
    }
    if (optimizer->config.use_ema) update_average(optimizer, graph, weights, extra);
}
