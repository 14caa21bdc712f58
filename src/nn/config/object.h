/* SPDX-License-Identifier: Apache-2.0 */
/* How Keras's JSON names a thing: "mse", {"class_name": "Huber", "config": {...}}, or, from Keras 3,
 * {"module": ..., "class_name": "function", "config": "mse", ...}. */
#ifndef LEATI_NN_CONFIG_OBJECT_H
#define LEATI_NN_CONFIG_OBJECT_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "leat/error.h"

typedef struct leati_object {
    const char *name;     /* borrowed from the value */
    const json_t *config; /* borrowed; an object, or NULL where there is none */
} leati_object;

/* `what` is said in messages: "loss".  Errors: LEAT_EINVAL neither a name nor an object with a class_name. */
leat_status leati_object_read(leati_object *out, const json_t *value, const char *what, leat_error *err);

/* {"class_name": name, "config": config}; takes over the reference to config, also on failure. */
leat_status leati_object_write(const char *name, json_t *config, json_t **out, leat_error *err);

/* The failure "unknown <what> 'adan'; did you mean 'adam'?", for the names that name_at gives (NULL at the end). */
leat_status leati_unknown_name(leat_error *err, const char *what, const char *name,
                               const char *(*name_at)(int index));

/* The name of an item in a list of layers; "" if the item has none. */
const char *leati_item_name(const json_t *item);
/* The class_name of an item; "" if the item has none. */
const char *leati_item_class(const json_t *item);
/* True if the class_name is that of a model: "Sequential", "Functional" or "Model". */
bool leati_item_is_model(const json_t *item);

#endif
