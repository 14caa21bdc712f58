/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the arguments of compile in the form of current Keras: optimizers with all their options, losses and metrics
 * under the names that current Keras has.  Room: nn. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "nn/config/object.h"
#include "nn/keras3/export_layer.h"
#include "nn/model/export.h"

static leat_status no_memory(leat_error *err) {
    return leati_fail(err, LEAT_ENOMEM, "no memory for a compile_config");
}

/* ---- Optimizers ---- */

/* Options that all optimizers of current Keras have, with their defaults. */
static const char common_options[] =
    "{\"weight_decay\": null, \"clipnorm\": null, \"global_clipnorm\": null, \"clipvalue\": null, "
    "\"use_ema\": false, \"ema_momentum\": 0.99, \"ema_overwrite_frequency\": null, "
    "\"loss_scale_factor\": null, \"gradient_accumulation_steps\": null}";

/* Options of one optimizer that 2.3.1 does not have, with the values by which current Keras computes what leat
 * computes. */
static const struct {
    const char *class_name, *options;
} own_options[] = {
    {"RMSprop", "{\"momentum\": 0.0, \"centered\": false}"},
    {"Adagrad", "{\"initial_accumulator_value\": 0.0}"},
    {NULL, NULL},
};

/* Adds the options of a JSON text that the configuration lacks. */
static leat_status add_missing(json_t *config, const char *text, leat_error *err) {
    json_t *options = json_loads(text, 0, NULL);
    bool set = options && json_object_update_missing(config, options) == 0;
    json_decref(options);
    return set ? LEAT_OK : no_memory(err);
}

/* Writes a learning rate that is a schedule as an object of current Keras. */
static leat_status complete_schedule(json_t *config, leat_error *err) {
    json_t *rate = json_object_get(config, "learning_rate"), *options = json_object_get(rate, "config");
    const char *class_name = leati_item_class(rate);
    if (!json_is_object(rate)) return LEAT_OK;
    if (!json_object_get(options, "name") &&
        json_object_set_new(options, "name", json_string(class_name)) != 0)
        return no_memory(err);
    json_t *object = leati_keras3_object("keras.optimizers.schedules", class_name, json_incref(options));
    return json_object_set_new(config, "learning_rate", object) == 0 ? LEAT_OK : no_memory(err);
}

/* Replaces `decay` of 2.3.1 by the schedule that has the same rates. */
static leat_status replace_decay(const leati_optimizer *optimizer, json_t *config, leat_error *err) {
    double decay = optimizer->config.decay;
    double rate = json_number_value(json_object_get(config, "learning_rate"));
    json_object_del(config, "decay");
    if (!(decay > 0)) return complete_schedule(config, err);
    if (optimizer->schedule)
        return leati_fail(err, LEAT_ENOTSUP,
                          "optimizer: current Keras has either a schedule as the learning rate or decay, not "
                          "both; compile without decay");
    json_t *schedule = json_pack("{s:f, s:i, s:f, s:b, s:s}", "initial_learning_rate", rate, "decay_steps", 1,
                                 "decay_rate", decay, "staircase", 0, "name", "InverseTimeDecay");
    json_t *object = leati_keras3_object("keras.optimizers.schedules", "InverseTimeDecay", schedule);
    return json_object_set_new(config, "learning_rate", object) == 0 ? LEAT_OK : no_memory(err);
}

/* In 2.3.1, clipnorm limits the norm of all gradients together, which is current Keras's global_clipnorm. */
static leat_status replace_clipping(const leati_optimizer *optimizer, json_t *config, leat_error *err) {
    const leati_optimizer_config *c = &optimizer->config;
    bool by_norm = isgreater(c->clipnorm, 0.0), by_value = isgreater(c->clipvalue, 0.0);
    if (!by_norm || optimizer->clips_each) return LEAT_OK;
    if (by_value)
        return leati_fail(err, LEAT_ENOTSUP,
                          "optimizer: current Keras does not clip by clipnorm and by clipvalue; compile with "
                          "one of them");
    bool set = json_object_set_new(config, "clipnorm", json_null()) == 0 &&
               json_object_set_new(config, "global_clipnorm", json_real(c->clipnorm)) == 0;
    return set ? LEAT_OK : no_memory(err);
}

/* Returns the shortest decimal number that is the same float: leat keeps some options as floats, current Keras as the
 * numbers that were given. */
static double shortest(double value) {
    char text[32];
    for (int digits = 1; digits <= 9; ++digits) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if ((float)strtod(text, NULL) == (float)value) return strtod(text, NULL);
    }
    return value;
}

static leat_status shorten_options(json_t *config, leat_error *err) {
    static const char *const options[] = {"beta_1", "beta_2", "momentum", "rho"};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; ++i) {
        const json_t *value = json_object_get(config, options[i]);
        double number = json_number_value(value);
        if (json_is_real(value) && number == (double)(float)number &&
            json_object_set_new(config, options[i], json_real(shortest(number))) != 0)
            return no_memory(err);
    }
    return LEAT_OK;
}

void leati_keras3_optimizer_name(const leati_optimizer *optimizer, char out[LEAT_NAME_BYTES]) {
    const char *class_name = optimizer->type->class_name;
    size_t length = strlen(class_name);
    for (size_t i = 0; i <= length; ++i) out[i] = (char)tolower((unsigned char)class_name[i]);
}

static leat_status complete_optimizer(const leati_optimizer *optimizer, json_t *config, leat_error *err) {
    const char *class_name = optimizer->type->class_name;
    char name[LEAT_NAME_BYTES];
    json_object_del(config, "lr");
    json_object_del(config, "schedule_decay"); /* a constant in current Keras */
    LEATI_TRY(replace_decay(optimizer, config, err));
    LEATI_TRY(replace_clipping(optimizer, config, err));
    LEATI_TRY(shorten_options(config, err));
    leati_keras3_optimizer_name(optimizer, name);
    if (json_object_set_new(config, "name", json_string(name)) != 0) return no_memory(err);
    LEATI_TRY(add_missing(config, common_options, err));
    for (size_t i = 0; own_options[i].class_name; ++i)
        if (strcmp(own_options[i].class_name, class_name) == 0)
            LEATI_TRY(add_missing(config, own_options[i].options, err));
    return LEAT_OK;
}

/* Makes the object of an optimizer in the form (new reference).  Consumes the reference to config. */
static json_t *object_in(leati_keras3_form form, const char *class_name, json_t *config) {
    if (form == LEATI_KERAS3_ARCHIVE) return leati_keras3_object("keras.optimizers", class_name, config);
    return json_pack("{s:s, s:o}", "class_name", class_name, "config", config);
}

/* Puts the optimizer into its LossScaleOptimizer, in which it is an object of the archive's form. */
static json_t *scaled_object(const leati_optimizer *optimizer, leati_keras3_form form, json_t *inner) {
    json_t *config = inner ? leati_loss_scale_config(&optimizer->scale, inner) : NULL;
    return config ? object_in(form, "LossScaleOptimizer", config) : NULL;
}

leat_status leati_keras3_optimizer(const leati_optimizer *optimizer, leati_keras3_form form, json_t **out,
                                   leat_error *err) {
    const bool scaled = optimizer->scale.growth_steps > 0;
    json_t *object = NULL;
    *out = NULL;
    LEATI_TRY(leati_optimizer_write_inner(optimizer, &object, err));
    json_t *config = json_object_get(object, "config");
    leat_status status = complete_optimizer(optimizer, config, err);
    if (status == LEAT_OK) {
        *out = optimizer->object ? json_incref(object)
                                 : object_in(scaled ? LEATI_KERAS3_ARCHIVE : form,
                                             optimizer->type->class_name, json_incref(config));
        if (scaled) *out = scaled_object(optimizer, form, *out);
        if (!*out) status = no_memory(err);
    }
    json_decref(object);
    return status;
}

leat_status leati_keras3_kept(const leat_model *model, json_t **out, leat_error *err) {
    json_t *optimizer = NULL;
    *out = NULL;
    if (model->compiled.as_keras3 && !model->compiled.optimizer->arithmetic) return LEAT_OK;
    LEATI_TRY(leati_optimizer_write(model->compiled.optimizer, &optimizer, err));
    *out = json_pack("{s:s, s:o}", "arithmetic", model->compiled.as_keras3 ? "keras3" : "keras2",
                     "optimizer_config", optimizer);
    return *out ? LEAT_OK : no_memory(err);
}

/* ---- Losses and metrics ---- */

static const struct {
    const char *old_name, *new_name;
} names[] = {
    {"cosine", "cosine_similarity"}, {"cosine_proximity", "cosine_similarity"},
    {"huber_loss", "huber"},         {"kullback_leibler_divergence", "kl_divergence"},
    {"logcosh", "log_cosh"},
};

static const char *current_name(const char *name) {
    for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i)
        if (strcmp(names[i].old_name, name) == 0) return names[i].new_name;
    return name;
}

/* Writes a custom loss or metric (new reference); NULL if the value is not one. */
static json_t *custom_value(const leati_part *parts, const json_t *value) {
    json_t *out = leati_part_value_keras3(parts, LEATI_PART_LOSS, value);
    return out ? out : leati_part_value_keras3(parts, LEATI_PART_METRIC, value);
}

/* Copies an argument; objects get the module, and names become those of current Keras (new reference). */
static json_t *argument_value(const json_t *value, const char *module, const leati_part *parts) {
    json_t *custom = custom_value(parts, value);
    const char *key;
    json_t *item, *out;
    bool set = true;
    if (custom) return custom;
    if (json_is_string(value)) return json_string(current_name(json_string_value(value)));
    if (leati_item_class(value)[0]) {
        json_t *config = json_object_get(value, "config");
        return leati_keras3_object(module, leati_item_class(value),
                                   json_is_object(config) ? json_incref(config) : json_object());
    }
    if (json_is_array(value)) {
        out = json_array();
        for (size_t i = 0; set && out && i < json_array_size(value); ++i)
            set = json_array_append_new(out, argument_value(json_array_get(value, i), module, parts)) == 0;
    } else if (json_is_object(value)) {
        out = json_object();
        json_object_foreach((json_t *)(uintptr_t)value, key, item) set =
            set && out && json_object_set_new(out, key, argument_value(item, module, parts)) == 0;
    } else {
        return json_incref((json_t *)(uintptr_t)value);
    }
    if (set) return out;
    json_decref(out);
    return NULL;
}

static bool is_empty(const json_t *value) {
    return !value || (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

leat_status leati_keras3_compilation(const leat_model *model, leati_keras3_form form, json_t **out,
                                     leat_error *err) {
    static const struct {
        const char *key, *module;
    } arguments[] = {{"loss", "keras.losses"},
                     {"loss_weights", "keras.losses"},
                     {"metrics", "keras.metrics"},
                     {"weighted_metrics", "keras.metrics"}};
    json_t *optimizer = NULL;
    *out = NULL;
    LEATI_TRY(leati_keras3_optimizer(model->compiled.optimizer, form, &optimizer, err));
    *out = json_object();
    bool set =
        *out && json_object_set_new(*out, form == LEATI_KERAS3_ARCHIVE ? "optimizer" : "optimizer_config",
                                    optimizer) == 0;
    for (size_t i = 0; set && i < sizeof arguments / sizeof arguments[0]; ++i) {
        const json_t *value = json_object_get(model->compiled.arguments, arguments[i].key);
        set = json_object_set_new(*out, arguments[i].key,
                                  is_empty(value)
                                      ? json_null()
                                      : argument_value(value, arguments[i].module, model->parts)) == 0;
    }
    set = set && json_object_set_new(*out, "run_eagerly", json_false()) == 0 &&
          json_object_set_new(*out, "steps_per_execution", json_integer(1)) == 0 &&
          json_object_set_new(*out, "jit_compile", json_false()) == 0;
    if (set) return LEAT_OK;
    json_decref(*out);
    *out = NULL;
    return no_memory(err);
}
