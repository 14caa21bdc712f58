/* SPDX-License-Identifier: Apache-2.0 */
/* What compile was told: texts become JSON, and JSON is dealt out to the outputs. */
#ifndef LEATI_NN_MODEL_ARGUMENTS_H
#define LEATI_NN_MODEL_ARGUMENTS_H

#include <jansson.h>

#include "nn/model/model.h"

/* A name, names with commas between them, or JSON; NULL and "" are null.  A new reference. */
leat_status leati_argument_parse(const char *text, const char *what, json_t **out, leat_error *err);

/* Checks that a dict has keys of outputs only, and that a list that is meant by output has one item for each. */
leat_status leati_argument_check(const json_t *value, const char *what, const leat_model *model,
                                 bool list_by_output, leat_error *err);

/* The part of a checked argument that output `index` gets, NULL for null or a key that is not there. */
const json_t *leati_argument_of(const json_t *value, const leat_model *model, int index, bool list_by_output);

/* A copy in which `write` has replaced every name and {"class_name": ...}, at whatever depth of lists and dicts. */
leat_status leati_argument_map(const json_t *value,
                               leat_status (*write)(const json_t *, json_t **, leat_error *), json_t **out,
                               leat_error *err);

/* Whether a JSON value is an object by output name, not a {"class_name": ...}. */
bool leati_argument_is_dict(const json_t *value);

#endif
