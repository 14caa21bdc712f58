/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of a user's own (include/leat/layer.h) as layer types.  A registered one lives while the registry or a layer of a
 * model has it.  Lambda is a second type of the same functions, whose configuration is kept as Keras wrote it. */
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

/* A key without a member. */
typedef union leati_custom_part {
    leati_initializer *initializer;
    leati_regularizer regularizer;
    leati_constraint constraint;
} leati_custom_part;

/* What a layer's config is: this, a part for each key, the user's struct. */
typedef struct leati_custom_config {
    leati_callee callee; /* first: the engine gives its address back */
    const struct leati_custom *own;
    int32_t weight_count;
    leati_initializer *drawn[LEATI_CUSTOM_MAX_WEIGHTS]; /* those that a weight names itself */
    json_t *lambda[LEATI_LAMBDA_KEYS];                  /* Lambda: its keys, as they are */
} leati_custom_config;

typedef struct leati_custom {
    leati_layer_type type, lambda; /* that of a Lambda has no rows of `fields` */
    leat_layer_definition definition;
    char class_name[LEAT_NAME_BYTES], name_prefix[LEAT_NAME_BYTES];
    leati_field *fields;    /* definition.keys, and an end */
    size_t parts, settings; /* in a config: where the parts begin, and the user's struct */
    leati_library *library; /* that the functions are in, or NULL */
    atomic_int holders;
    struct leati_custom *next; /* of the registry */
} leati_custom;

/* Checks a definition and makes a type of it, with one holder. */
leat_status leati_custom_create(leati_custom **out, const leat_layer_definition *definition,
                                leati_library *library, leat_error *err);
/* One holder less. */
void leati_custom_release(leati_custom **own);

/* The functions of both types: nn/custom/custom_layer.c. */
void leati_custom_fill(leati_custom *own);

/* The user's struct in a layer's config, and the rows that it was read by. */
static inline const void *leati_custom_settings(const leati_custom_config *config) {
    return (const char *)config + config->own->settings;
}

/* The custom layer that a type is of, or NULL. */
leati_custom *leati_own_of(const leati_layer_type *type);

#endif
