/* SPDX-License-Identifier: Apache-2.0 */
/* The table of optimizers, how one is named and configured, and its part of the graph: clipping and one update node. */
#include "nn/optimizer.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/memory.h"
#include "engine/build.h"
#include "nn/object.h"
#include "nn/optimizers/rows.h"

#define KERAS_EPSILON 1e-7

static const leati_optimizer_type *const table[] = {
    &leati_optimizer_sgd,  &leati_optimizer_rmsprop, &leati_optimizer_adagrad, &leati_optimizer_adadelta,
    &leati_optimizer_adam, &leati_optimizer_adamax,  &leati_optimizer_nadam,
};

#define TABLE_COUNT ((int)(sizeof(table) / sizeof(table[0])))

const leati_optimizer_type *leati_optimizer_type_at(int index) {
    return index < TABLE_COUNT ? table[index] : NULL;
}

static const char *name_at(int index) {
    return index < TABLE_COUNT ? table[index]->class_name : NULL;
}

static const leati_optimizer_type *find(const char *name) {
    for (int i = 0; i < TABLE_COUNT; ++i) {
        if (strcasecmp(table[i]->class_name, name) == 0) return table[i];
    }
    return NULL;
}

static bool has_field(const leati_optimizer_type *type, const char *key) {
    for (const leati_field *field = type->fields; field->key; ++field) {
        if (strcmp(field->key, key) == 0) return true;
    }
    return false;
}

/* Keys of other versions.  Those of the first list change nothing; those of the second change nothing while they are
 * null, false or 0. */
static const char *const ignored[] = {"name",
                                      "dtype",
                                      "jit_compile",
                                      "is_legacy_optimizer",
                                      "ema_momentum",
                                      "ema_overwrite_frequency",
                                      "weight_decay",
                                      "use_ema",
                                      "centered",
                                      "momentum",
                                      "decay",
                                      "initial_accumulator_value",
                                      "global_clipnorm",
                                      "loss_scale_factor",
                                      "gradient_accumulation_steps",
                                      NULL};
#define FIRST_CONDITIONAL 6

static bool neutral(const json_t *value) {
    return !value || json_is_null(value) || json_is_false(value) ||
           (json_is_number(value) && json_number_value(value) == 0.0);
}

static leat_status check_foreign(const leati_optimizer_type *type, const json_t *config, leat_error *err) {
    for (int i = FIRST_CONDITIONAL; ignored[i]; ++i) {
        if (has_field(type, ignored[i]) || neutral(json_object_get(config, ignored[i]))) continue;
        return leati_fail(err, LEAT_ENOTSUP, "'%s' is not supported by Keras 2.3.1's %s", ignored[i],
                          type->class_name);
    }
    if (json_object_get(config, "global_clipnorm") && !neutral(json_object_get(config, "clipnorm"))) {
        return leati_fail(err, LEAT_ENOTSUP,
                          "'clipnorm' of Keras 3 is the norm of one weight; 2.3.1 has the global");
    }
    return LEAT_OK;
}

static double as_float(double value) {
    return (double)(float)value;
}

/* What Keras holds in float32 variables is read back as float32. */
static leat_status settle(leati_optimizer *optimizer, leat_error *err) {
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
    if (c->clipnorm < 0.0 || c->clipvalue < 0.0) {
        return leati_fail(err, LEAT_EINVAL, "expected clipnorm and clipvalue to be >= 0, found %g and %g",
                          c->clipnorm, c->clipvalue);
    }
    return LEAT_OK;
}

static leat_status configure(leati_optimizer *optimizer, const json_t *config, leat_error *err) {
    LEATI_TRY(check_foreign(optimizer->type, config, err));
    LEATI_TRY(leati_fields_read(optimizer->type->fields, ignored, config, &optimizer->config, err));
    return settle(optimizer, err);
}

leat_status leati_optimizer_create(leati_optimizer **out, const json_t *value, leat_error *err) {
    *out = NULL;
    leati_object object;
    LEATI_TRY(leati_object_read(&object, value, "optimizer", err));
    const leati_optimizer_type *type = find(object.name);
    if (!type) return leati_unknown_name(err, "optimizer", object.name, name_at);
    leati_optimizer *made = leati_calloc(1, sizeof(*made));
    if (!made) return leati_fail_memory(err, sizeof(*made), "an optimizer");
    made->type = type;
    json_t *empty = object.config ? NULL : json_object();
    const json_t *config = object.config ? object.config : empty;
    leat_status status =
        config ? configure(made, config, err) : leati_fail(err, LEAT_ENOMEM, "no memory for an optimizer");
    json_decref(empty);
    if (status != LEAT_OK) {
        leati_optimizer_destroy(&made);
        return leati_prefix(status, err, "optimizer '%s'", object.name);
    }
    *out = made;
    return LEAT_OK;
}

leat_status leati_optimizer_write(const leati_optimizer *optimizer, json_t **out, leat_error *err) {
    static const char *const absent_if_null[] = {"clipnorm",
                                                 "clipvalue"}; /* null would make Keras 2.3.1 fail */
    *out = NULL;
    json_t *config = json_object();
    if (config) {
        leat_status status = leati_fields_write(optimizer->type->fields, &optimizer->config, config, err);
        if (status != LEAT_OK) {
            json_decref(config);
            return status;
        }
    }
    for (size_t i = 0; config && i < sizeof(absent_if_null) / sizeof(absent_if_null[0]); ++i) {
        if (json_is_null(json_object_get(config, absent_if_null[i])))
            json_object_del(config, absent_if_null[i]);
    }
    return leati_object_write(optimizer->type->class_name, config, out, err);
}

void leati_optimizer_destroy(leati_optimizer **optimizer) {
    leati_free(*optimizer);
    *optimizer = NULL;
}

int leati_optimizer_slot_count(const leati_optimizer *optimizer) {
    const leati_optimizer_type *type = optimizer->type;
    bool all = !type->uses_last_slot || type->uses_last_slot(&optimizer->config);
    return type->slot_count - (all ? 0 : 1);
}

float leati_optimizer_rate(const leati_optimizer *optimizer, int64_t iterations) {
    float rate = (float)optimizer->config.learning_rate, decay = (float)optimizer->config.decay;
    return decay > 0.0f ? rate * (1.0f / (1.0f + decay * (float)iterations)) : rate;
}

void leati_optimizer_scalars(leati_optimizer *optimizer, int64_t iterations, float *out) {
    optimizer->type->scalars(optimizer, iterations, out);
}

/* The gradients scaled to the norm, where theirs is larger: g * (c / max(|g|, c)). */
static leati_value clip_norm(leati_graph *graph, leati_value gradients, float limit) {
    leati_value square = leati_function_of(graph, gradients, LEATI_FN_SQUARE);
    leati_value norm =
        leati_function_of(graph, leati_reduce_all(graph, LEATI_REDUCE_SUM, square), LEATI_FN_SQRT);
    leati_value constant = leati_scalar(graph, limit);
    leati_value factor = leati_div(graph, constant, leati_binary_of(graph, LEATI_MAX, norm, constant));
    return leati_mul(graph, gradients, factor);
}

static void clip(const leati_optimizer *optimizer, leati_graph *graph, leati_value gradients) {
    float norm = (float)optimizer->config.clipnorm, limit = (float)optimizer->config.clipvalue;
    leati_value clipped = gradients;
    if (norm > 0.0f) clipped = clip_norm(graph, clipped, norm);
    if (limit > 0.0f) clipped = leati_clip(graph, clipped, -limit, limit);
    if (clipped != gradients) leati_graph_store(graph, gradients, clipped);
}

void leati_optimizer_lower(const leati_optimizer *optimizer, leati_graph *graph, int64_t count) {
    const leati_optimizer_type *type = optimizer->type;
    const int64_t scalar_count = type->scalar_count;
    const leati_desc numbers = leati_desc_make(LEAT_F32, 1, &scalar_count);
    const leati_desc all = leati_desc_make(LEAT_F32, 1, &count);
    leati_value inputs[3 + LEATI_OPTIMIZER_MAX_SLOTS];
    inputs[0] = leati_graph_state(graph, LEATI_SLAB_SCALARS, 0, &numbers);
    inputs[1] = leati_graph_state(graph, LEATI_SLAB_GRADIENTS, 0, &all);
    inputs[2] = leati_graph_state(graph, LEATI_SLAB_WEIGHTS, 0, &all);
    int slots = leati_optimizer_slot_count(optimizer);
    for (int i = 0; i < type->slot_count; ++i) {
        inputs[3 + i] =
            i < slots ? leati_graph_state(graph, (leati_slab)(LEATI_SLAB_SLOT0 + i), 0, &all) : LEATI_NONE;
    }
    clip(optimizer, graph, inputs[1]);
    leati_attrs attrs = {0};
    attrs.update.momentum = optimizer->config.momentum != 0.0;
    attrs.update.nesterov = optimizer->config.nesterov;
    attrs.update.amsgrad = optimizer->config.amsgrad;
    leati_graph_node(graph, type->op, &attrs, 3 + slots, inputs, NULL);
}
