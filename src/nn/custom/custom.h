/* SPDX-License-Identifier: Apache-2.0 */
/* Custom layers (include/leat/layer.h) as layer types.  A registered type lives as long as the registry or a layer
 * of a model holds it.  Lambda is a second type with the same functions, whose configuration is kept as Keras
 * wrote it. */
#ifndef LEATI_NN_CUSTOM_CUSTOM_H
#define LEATI_NN_CUSTOM_CUSTOM_H

#include <stdatomic.h>

#include "base/os/library.h"
#include "engine/graph/callee.h"
#include "leat/layer.h"
#include "nn/layers/layer.h"

#define LEATI_CUSTOM_MAX_WEIGHTS 8
#define LEATI_CUSTOM_MAX_INPUTS  8
#define LEATI_CUSTOM_MAX_KEYS    64
#define LEATI_LAMBDA_KEYS        8

/* The value of a key that has no member in the user's struct. */
typedef union leati_custom_part {
    leati_initializer *initializer;
    leati_regularizer regularizer;
    leati_constraint constraint;
} leati_custom_part;

/* The configuration of a custom layer: this struct, then a leati_custom_part for each key, then the user's struct. */
typedef struct leati_custom_config {
    leati_callee callee; /* first, because the engine passes its address to our functions */
    const struct leati_custom *custom;
    int32_t weight_count;
    leati_initializer *drawn[LEATI_CUSTOM_MAX_WEIGHTS]; /* initializers that a weight names, not a key */
    json_t *lambda[LEATI_LAMBDA_KEYS];                  /* the keys of a Lambda, as read */
} leati_custom_config;

typedef struct leati_custom {
    leati_layer_type type, lambda; /* a Lambda's type has no `fields` of the definition */
    leat_layer_definition definition;
    char class_name[LEAT_NAME_BYTES], name_prefix[LEAT_NAME_BYTES];
    leati_field *fields;    /* definition.keys, and a NULL key at the end */
    size_t parts, settings; /* offsets in a configuration: of the parts, and of the user's struct */
    leati_library *library; /* the library that contains the functions, or NULL */
    atomic_int holders;
    struct leati_custom *next; /* next layer of the registry */
} leati_custom;

/* Checks a definition and makes a type with one holder. */
leat_status leati_custom_create(leati_custom **out, const leat_layer_definition *definition,
                                leati_library *library, leat_error *err);
/* Checks that a custom layer is a cell, and marks its type.  Errors: LEAT_EINVAL the definition. */
leat_status leati_custom_make_cell(leati_custom *custom, leat_error *err);
/* Removes one holder; the last one frees the type. */
void leati_custom_release(leati_custom **custom);

/* Sets the functions of both types (nn/custom/custom_layer.c). */
void leati_custom_fill(leati_custom *custom);

/* Returns the user's struct in a layer's configuration. */
static inline const void *leati_custom_settings(const leati_custom_config *config) {
    return (const char *)config + config->custom->settings;
}

/* Returns the custom layer of a type; NULL for leat's own types. */
leati_custom *leati_custom_of(const leati_layer_type *type);

#endif
