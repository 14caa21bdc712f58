/* SPDX-License-Identifier: Apache-2.0 */
/* Configurations of current Keras (3), put into the form of Keras 2.3.1, the only one that the readers know.  What has no
 * like there (a call's arguments, functions called as layers) becomes a key of the layer, or a layer. */
#ifndef LEATI_NN_KERAS3_TRANSLATE_H
#define LEATI_NN_KERAS3_TRANSLATE_H

#include <stdbool.h>

#include <jansson.h>

#include "leat/error.h"

/* Whether current Keras wrote the model's configuration: it names modules, or its version. */
bool leati_is_modern(const json_t *root);

/* A copy of the model's configuration in 2.3.1's form (new reference); one of 2.3.1 comes back as it is.
 * Errors: LEAT_ENOTSUP, LEAT_EFORMAT with the layer and what it has. */
leat_status leati_translate_model(const json_t *root, json_t **out, leat_error *err);

/* The same of a compile_config: a training_config. */
leat_status leati_translate_compilation(const json_t *compile_config, json_t **out, leat_error *err);

/* For the above: the calls in a functional model's configuration (translate_calls.c). */
leat_status leati_translate_calls(json_t *config, leat_error *err);

#endif
