/* SPDX-License-Identifier: Apache-2.0 */
/* Reads Keras objects that a user writes in one line, as in Python: "Precision(thresholds=[0.3, 0.5],
 * class_id=2)". */
#ifndef LEATI_NN_CONFIG_CALL_TEXT_H
#define LEATI_NN_CONFIG_CALL_TEXT_H

#include <stddef.h>

#include <jansson.h>

#include "leat/error.h"

/* Returns the length of the first item of a list: up to the first comma outside of brackets and quotes, or to the
 * end. */
size_t leati_call_item(const char *text);

/* Reads a call into JSON (new reference).  A name alone becomes a string; a call becomes {"class_name": ...,
 * "config": ...}.  Arguments must be named; a value is a number, a list, a quoted text, true, false, null,
 * Python's True, False or None, a call, or another word, which is a text.
 * `what` names the argument in messages: "metrics".  Errors: LEAT_EINVAL. */
leat_status leati_call_read(const char *text, size_t length, const char *what, json_t **out, leat_error *err);

#endif
