/* SPDX-License-Identifier: Apache-2.0 */
/* A Keras object in JSON: "mse", {"class_name": "Huber", "config": {...}}, or, in Keras 3, {"module": ...,
 * "class_name": "function", "config": "mse", ...}. */
#ifndef LEATI_NN_CONFIG_OBJECT_H
#define LEATI_NN_CONFIG_OBJECT_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "leat/error.h"

typedef struct leati_object {
    const char *name;            /* borrowed from the value */
    const char *registered_name; /* "package>name", borrowed; NULL: the value has none with a package */
    bool is_function;            /* the value has only a name, which may be that of a class */
    const json_t *config;        /* borrowed; an object, or NULL if there is none */
} leati_object;

/* `what` names the object in messages: "loss".  Errors: LEAT_EINVAL if the value is neither a name nor an object
 * with a class_name. */
leat_status leati_object_read(leati_object *out, const json_t *value, const char *what, leat_error *err);

/* Makes {"class_name": name, "config": config}.  Consumes the reference to config, also on failure. */
leat_status leati_object_write(const char *name, json_t *config, json_t **out, leat_error *err);

/* Returns the failure "unknown <what> 'adan'; did you mean 'adam'?".  The known names are name_at(0), name_at(1),
 * ...; NULL at the end. */
leat_status leati_unknown_name(leat_error *err, const char *what, const char *name,
                               const char *(*name_at)(int index));

/* The name of an item in a list of layers; "" if the item has none. */
const char *leati_item_name(const json_t *item);
/* The class_name of an item; "" if the item has none. */
const char *leati_item_class(const json_t *item);
/* True if the class_name is that of a model: "Sequential", "Functional" or "Model". */
bool leati_item_is_model(const json_t *item);

#endif
