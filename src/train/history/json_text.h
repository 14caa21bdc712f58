/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in the history's JSON: names and messages may have any bytes, but JSON has UTF-8 only.  Room: train. */
#ifndef LEATI_TRAIN_HISTORY_JSON_TEXT_H
#define LEATI_TRAIN_HISTORY_JSON_TEXT_H

#include <stdbool.h>

#include <jansson.h>

/* Returns a string (new reference) with U+FFFD in place of each byte that is not UTF-8; NULL without memory. */
json_t *leati_json_text(const char *text);

/* Adds a value under a key that may have any bytes, and takes ownership of the value.  Returns false if memory is
 * lacking, also when `object` or `value` is NULL because its own allocation failed. */
bool leati_json_add(json_t *object, const char *key, json_t *value);

#endif
