/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes initializers, and draws weights with them.  Room: nn. */
#include "nn/initializers/initializer.h"

#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "nn/config/object.h"
#include "nn/initializers/types.h"

/* The number of the pass in the random streams of weights; no pass of a feed has this number. */
#define INITIALIZER_PASS UINT64_MAX

const leati_initializer leati_zeros = {.type = &leati_initializer_zeros};
const leati_initializer leati_ones = {.type = &leati_initializer_ones};

/* Returns the configuration, completed by the type's own defaults (new reference); NULL without memory. */
static json_t *complete(const leati_initializer_type *type, const json_t *options) {
    json_t *config = type->preset ? json_loads(type->preset, 0, NULL) : json_object();
    if (config && options && json_object_update(config, (json_t *)(uintptr_t)options) != 0) {
        json_decref(config);
        return NULL;
    }
    return config;
}

static leat_status fill(leati_initializer *out, const leati_object *object, leat_error *err) {
    static const char *const ignored[] = {"dtype", NULL};
    static const leati_field none[] = {{.key = NULL}};
    const leati_initializer_type *type = out->type;
    if (type->config_bytes && !(out->config = leati_calloc(1, type->config_bytes)))
        return leati_fail_memory(err, type->config_bytes, "an initializer");
    json_t *config = complete(type, object->config);
    if (!config) return leati_fail(err, LEAT_ENOMEM, "no memory for initializer '%s'", object->name);
    leat_status status =
        leati_fields_read(type->fields ? type->fields : none, ignored, config, out->config, err);
    if (status == LEAT_OK && type->check) status = type->check(out->config, err);
    json_decref(config);
    return leati_prefix(status, err, "initializer '%s'", object->name);
}

leat_status leati_initializer_read_with(leati_initializer **out, const json_t *value, const leati_part *parts,
                                        leat_error *err) {
    *out = NULL;
    if (!value || json_is_null(value)) return LEAT_OK;
    leati_object object;
    LEATI_TRY(leati_object_read(&object, value, "initializer", err));
    const leati_initializer_type *type = leati_initializer_find(object.name);
    const leati_part *part = leati_part_find(parts, LEATI_PART_INITIALIZER, &object, type != NULL);
    if (!part && !type)
        return leati_part_unknown(err, parts, LEATI_PART_INITIALIZER, object.name, leati_initializer_name_at);
    leati_initializer *initializer = leati_calloc(1, sizeof(*initializer));
    if (!initializer) return leati_fail_memory(err, sizeof(*initializer), "an initializer");
    initializer->type = type;
    leat_status status = part ? leati_custom_initializer_read(initializer, part, &object, err)
                              : fill(initializer, &object, err);
    if (status != LEAT_OK) {
        leati_initializer_destroy(&initializer);
        return status;
    }
    *out = initializer;
    return LEAT_OK;
}

leat_status leati_initializer_write(const leati_initializer *initializer, json_t **out, leat_error *err) {
    if (!initializer) {
        *out = json_null();
        return LEAT_OK;
    }
    if (initializer->object) return leati_custom_initializer_write(initializer, out, err);
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
    const leati_initializer_type *type = (*initializer)->type;
    leati_part_object_destroy(&(*initializer)->object);
    if ((*initializer)->config && type->fields) leati_fields_fini(type->fields, (*initializer)->config);
    leati_free((*initializer)->config);
    leati_free(*initializer);
    *initializer = NULL;
}

leat_status leati_initializer_draw(const leati_initializer *initializer, int rank, const int64_t *dims,
                                   uint64_t seed, uint64_t stream, float *out, leat_error *err) {
    const leati_initializer_type *type = initializer->type;
    leat_rng rng = leat_rng_for(seed, INITIALIZER_PASS, stream);
    if (initializer->object) {
        if (initializer->seed != INT64_MIN)
            rng = leat_rng_for((uint64_t)initializer->seed, INITIALIZER_PASS, 0);
        return leati_custom_initializer_draw(initializer, rank, dims, &rng, out, err);
    }
    if (type->seed_offset != SIZE_MAX) {
        int64_t seed_option;
        memcpy(&seed_option, (const char *)initializer->config + type->seed_offset, sizeof(seed_option));
        if (seed_option != INT64_MIN) rng = leat_rng_for((uint64_t)seed_option, INITIALIZER_PASS, 0);
    }
    return type->draw(initializer->config, rank, dims, &rng, out, err);
}

/* ---- A field of a configuration ---- */

static leat_status read_field(const leati_field *field, const json_t *value, const void *context,
                              void *member, leat_error *err) {
    leat_status status = leati_initializer_read_with(member, value, leati_parts_of(context), err);
    return leati_prefix(status, err, "%s", field->key);
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
