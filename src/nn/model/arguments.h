/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of compile: parses texts to JSON, and finds the part of a JSON value that belongs to an output. */
#ifndef LEATI_NN_MODEL_ARGUMENTS_H
#define LEATI_NN_MODEL_ARGUMENTS_H

#include <jansson.h>

#include "nn/model/model.h"

/* Parses a name, several names with commas between them, or JSON (new reference); NULL and "" are null. */
leat_status leati_argument_parse(const char *text, const char *what, json_t **out, leat_error *err);

/* Checks that the keys of an object are names of outputs, and, if list_by_output, that a list has one item for
 * each output. */
leat_status leati_argument_check(const json_t *value, const char *what, const leat_model *model,
                                 bool list_by_output, leat_error *err);

/* Returns the part of a checked argument for output `index`; NULL for null or a missing key. */
const json_t *leati_argument_of(const json_t *value, const leat_model *model, int index, bool list_by_output);

/* Copies a value; `write` replaces each name and each {"class_name": ...} in it, in lists and objects of any
 * depth. */
leat_status leati_argument_map(const json_t *value,
                               leat_status (*write)(const json_t *, const leati_part *, json_t **,
                                                    leat_error *),
                               const leati_part *parts, json_t **out, leat_error *err);

/* True if a JSON value is an object whose keys are names of outputs, not a {"class_name": ...}. */
bool leati_argument_is_dict(const json_t *value);

#endif
