/* SPDX-License-Identifier: Apache-2.0 */
/* Keras's objects as a user writes them in one line, as in Python: "Precision(thresholds=[0.3, 0.5], class_id=2)". */
#ifndef LEATI_NN_CONFIG_CALL_TEXT_H
#define LEATI_NN_CONFIG_CALL_TEXT_H

#include <stddef.h>

#include <jansson.h>

#include "leat/error.h"

/* How far an item of a list goes: to the first comma that is in no brackets and in no quotes, or to the end. */
size_t leati_call_item(const char *text);

/* A name alone, or {"class_name": ..., "config": ...} of a call with arguments by name: numbers, lists, quoted texts,
 * true, false, null, Python's True, False, None, and bare words, which are texts (new reference).
 * `what` is said in messages: "metrics".  Errors: LEAT_EINVAL. */
leat_status leati_call_read(const char *text, size_t length, const char *what, json_t **out, leat_error *err);

#endif
