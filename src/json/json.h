/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as Python's json module reads and writes it: NaN and infinities are tokens, keys keep their order, and a float
 * is written as the shortest text that reads back as the same number.  Values are jansson's json_t. */
#ifndef LEATI_JSON_JSON_H
#define LEATI_JSON_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "leat/error.h"

#define LEATI_JSON_MAX_BYTES ((size_t)64 << 20)
#define LEATI_JSON_MAX_DEPTH 256

/* Parses one value of any type; *out is a new reference, NULL on failure.
 * Errors: LEAT_EFORMAT with line and column, also if the text is beyond the limits above; LEAT_ENOMEM. */
leat_status leati_json_parse(json_t **out, const char *text, size_t bytes, leat_error *err);

/* Like leati_json_parse(), but for a text that a user writes as an argument in C or in a shell: strings may be in
 * single quotes, too, inside which \' is a single quote. */
leat_status leati_json_parse_argument(json_t **out, const char *text, size_t bytes, leat_error *err);

/* Writes a value as Python's json.dumps(value) does.  The caller frees *out with leati_free.  Errors: LEAT_ENOMEM. */
leat_status leati_json_write(const json_t *value, char **out, leat_error *err);

/* Like leati_json_write(), but lists and objects may end after about `bytes` bytes: for messages. */
leat_status leati_json_write_start(const json_t *value, size_t bytes, char **out, leat_error *err);

/* Returns a number for leati_json_write as a new reference; NULL without memory.  A number that is not finite, which
 * jansson does not support, is stored as a marked string, which leati_json_number reads. */
json_t *leati_json_real(double value);

/* Returns true if value is a number, or a marked string of leati_json_real; *out receives the number. */
bool leati_json_number(const json_t *value, double *out);

/* Writes a number as Python's repr(value) does, but NaN and infinities as JSON's tokens: "0.001", "1e-07", "1.0",
 * "NaN".  Returns out. */
#define LEATI_JSON_REAL_BYTES 32
const char *leati_json_real_text(char out[LEATI_JSON_REAL_BYTES], double value);

#endif
