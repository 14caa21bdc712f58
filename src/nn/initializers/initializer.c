/* SPDX-License-Identifier: Apache-2.0 */
/* The table of initializers: names, and the configuration that each name stands for. */
#include "nn/initializers/initializer.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/config/object.h"
#include "nn/initializers/types.h"

/* The stream of random numbers that no batch of a feed has. */
#define INITIALIZER_PASS UINT64_MAX

#define FAN(mode, distribution, scale)                                                                       \
    "{\"scale\": " scale ", \"mode\": \"" mode "\", \"distribution\": \"" distribution "\"}"

/* A name; `preset` is laid under the configuration that is given (NULL: nothing). */
typedef struct row {
    const char *name;
    const leati_initializer_type *type;
    const char *preset;
} row;

static const row rows[] = {
    {"Zeros", &leati_initializer_type_zeros, NULL},
    {"zeros", &leati_initializer_type_zeros, NULL},
    {"zero", &leati_initializer_type_zeros, NULL},
    {"Ones", &leati_initializer_type_ones, NULL},
    {"ones", &leati_initializer_type_ones, NULL},
    {"one", &leati_initializer_type_ones, NULL},
    {"Constant", &leati_initializer_type_constant, NULL},
    {"constant", &leati_initializer_type_constant, NULL},
    {"RandomNormal", &leati_initializer_type_random_normal, NULL},
    {"random_normal", &leati_initializer_type_random_normal, NULL},
    {"normal", &leati_initializer_type_random_normal, NULL},
    {"RandomUniform", &leati_initializer_type_random_uniform, NULL},
    {"random_uniform", &leati_initializer_type_random_uniform, NULL},
    {"uniform", &leati_initializer_type_random_uniform, NULL},
    {"TruncatedNormal", &leati_initializer_type_truncated_normal, NULL},
    {"truncated_normal", &leati_initializer_type_truncated_normal, NULL},
    {"VarianceScaling", &leati_initializer_type_variance_scaling, NULL},
    {"Orthogonal", &leati_initializer_type_orthogonal, NULL},
    {"orthogonal", &leati_initializer_type_orthogonal, NULL},
    {"Identity", &leati_initializer_type_identity, NULL},
    {"identity", &leati_initializer_type_identity, NULL},
    {"lecun_uniform", &leati_initializer_type_variance_scaling, FAN("fan_in", "uniform", "1.0")},
    {"lecun_normal", &leati_initializer_type_variance_scaling, FAN("fan_in", "normal", "1.0")},
    {"glorot_uniform", &leati_initializer_type_variance_scaling, FAN("fan_avg", "uniform", "1.0")},
    {"glorot_normal", &leati_initializer_type_variance_scaling, FAN("fan_avg", "normal", "1.0")},
    {"he_uniform", &leati_initializer_type_variance_scaling, FAN("fan_in", "uniform", "2.0")},
    {"he_normal", &leati_initializer_type_variance_scaling, FAN("fan_in", "normal", "2.0")},
    /* Keras 3's class names for the same. */
    {"LecunUniform", &leati_initializer_type_variance_scaling, FAN("fan_in", "uniform", "1.0")},
    {"LecunNormal", &leati_initializer_type_variance_scaling, FAN("fan_in", "normal", "1.0")},
    {"GlorotUniform", &leati_initializer_type_variance_scaling, FAN("fan_avg", "uniform", "1.0")},
    {"GlorotNormal", &leati_initializer_type_variance_scaling, FAN("fan_avg", "normal", "1.0")},
    {"HeUniform", &leati_initializer_type_variance_scaling, FAN("fan_in", "uniform", "2.0")},
    {"HeNormal", &leati_initializer_type_variance_scaling, FAN("fan_in", "normal", "2.0")},
};

#define ROW_COUNT ((int)(sizeof(rows) / sizeof(rows[0])))

const leati_initializer leati_initializer_zeros = {&leati_initializer_type_zeros, NULL};
const leati_initializer leati_initializer_ones = {&leati_initializer_type_ones, NULL};

const char *leati_initializer_name_at(int index) {
    return index < ROW_COUNT ? rows[index].name : NULL;
}

static const row *find(const char *name) {
    for (int i = 0; i < ROW_COUNT; ++i) {
        if (strcmp(rows[i].name, name) == 0) return &rows[i];
    }
    return NULL;
}

/* The given configuration over the name's own; a new reference, NULL without memory. */
static json_t *complete(const row *found, const json_t *given) {
    json_t *config = found->preset ? json_loads(found->preset, 0, NULL) : json_object();
    if (config && given && json_object_update(config, (json_t *)(uintptr_t)given) != 0) {
        json_decref(config);
        return NULL;
    }
    return config;
}

static leat_status fill(leati_initializer *out, const row *found, const json_t *given, leat_error *err) {
    static const char *const ignored[] = {"dtype", NULL};
    static const leati_field none[] = {{.key = NULL}};
    size_t bytes = found->type->config_bytes;
    out->type = found->type;
    if (bytes && !(out->config = leati_calloc(1, bytes)))
        return leati_fail_memory(err, bytes, "an initializer");
    json_t *config = complete(found, given);
    if (!config) return leati_fail(err, LEAT_ENOMEM, "no memory for initializer '%s'", found->name);
    const leati_field *fields = found->type->fields ? found->type->fields : none;
    leat_status status = leati_fields_read(fields, ignored, config, out->config, err);
    if (status == LEAT_OK && found->type->check) status = found->type->check(out->config, err);
    json_decref(config);
    return leati_prefix(status, err, "initializer '%s'", found->name);
}

leat_status leati_initializer_read(leati_initializer **out, const json_t *value, leat_error *err) {
    *out = NULL;
    if (!value || json_is_null(value)) return LEAT_OK;
    leati_object object;
    LEATI_TRY(leati_object_read(&object, value, "initializer", err));
    const row *found = find(object.name);
    if (!found) return leati_unknown_name(err, "initializer", object.name, leati_initializer_name_at);
    leati_initializer *made = leati_calloc(1, sizeof(*made));
    if (!made) return leati_fail_memory(err, sizeof(*made), "an initializer");
    leat_status status = fill(made, found, object.config, err);
    if (status != LEAT_OK) {
        leati_initializer_destroy(&made);
        return status;
    }
    *out = made;
    return LEAT_OK;
}

leat_status leati_initializer_write(const leati_initializer *initializer, json_t **out, leat_error *err) {
    if (!initializer) {
        *out = json_null();
        return LEAT_OK;
    }
    *out = NULL;
    json_t *config = json_object();
    if (config && initializer->type->fields) {
        leat_status status = leati_fields_write(initializer->type->fields, initializer->config, config, err);
        if (status != LEAT_OK) {
            json_decref(config);
            return status;
        }
    }
    return leati_object_write(initializer->type->class_name, config, out, err);
}

void leati_initializer_destroy(leati_initializer **initializer) {
    if (!*initializer) return;
    leati_free((*initializer)->config);
    leati_free(*initializer);
    *initializer = NULL;
}

leat_status leati_initializer_draw(const leati_initializer *initializer, int rank, const int64_t *dims,
                                   uint64_t seed, uint64_t stream, float *out, leat_error *err) {
    const leati_initializer_type *type = initializer->type;
    leat_rng rng = leat_rng_for(seed, INITIALIZER_PASS, stream);
    if (type->seed_offset != SIZE_MAX) {
        int64_t own;
        memcpy(&own, (const char *)initializer->config + type->seed_offset, sizeof(own));
        if (own != INT64_MIN) rng = leat_rng_for((uint64_t)own, INITIALIZER_PASS, 0);
    }
    return type->draw(initializer->config, rank, dims, &rng, out, err);
}

/* ---- A field of a configuration ---- */

static leat_status read_field(const leati_field *field, const json_t *value, const void *context,
                              void *member, leat_error *err) {
    (void)context;
    return leati_prefix(leati_initializer_read(member, value, err), err, "%s", field->key);
}

static leat_status write_field(const leati_field *field, const void *member, json_t **out, leat_error *err) {
    (void)field;
    return leati_initializer_write(*(leati_initializer *const *)member, out, err);
}

static void fini_field(void *member) {
    leati_initializer_destroy(member);
}

const leati_field_kind leati_field_initializer = {.read = read_field,
                                                  .write = write_field,
                                                  .fini = fini_field};
