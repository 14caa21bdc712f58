/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as Python's json module reads and writes it: NaN and infinities are tokens, keys keep their order, floats are the
 * shortest text that reads back as the same number.  The values themselves are jansson's. */
#ifndef LEATI_JSON_JSON_H
#define LEATI_JSON_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "leat/error.h"

#define LEATI_JSON_MAX_BYTES ((size_t)64 << 20)
#define LEATI_JSON_MAX_DEPTH 256

/* Parses one value of any kind; *out is a new reference, NULL on failure.
 * Errors: LEAT_EFORMAT with line and column, also for texts beyond the limits above; LEAT_ENOMEM. */
leat_status leati_json_parse(json_t **out, const char *text, size_t bytes, leat_error *err);

/* The same for a text that a person writes as an argument, in C or in a shell: strings may stand in single quotes, inside which
 * \' is a single quote.  Files are read by leati_json_parse. */
leat_status leati_json_parse_argument(json_t **out, const char *text, size_t bytes, leat_error *err);

/* json.dumps(value): *out is for leati_free.  Errors: LEAT_ENOMEM. */
leat_status leati_json_write(const json_t *value, char **out, leat_error *err);

/* A number for leati_json_write.  jansson has none that is not finite: such a one is kept as a marked string, which
 * leati_json_number knows.  NULL without memory. */
json_t *leati_json_real(double value);

/* Whether it is a number (one of leati_json_real's included), and which. */
bool leati_json_number(const json_t *value, double *out);

/* repr(value): "0.001", "1e-07", "1.0", "NaN".  Returns out. */
#define LEATI_JSON_REAL_BYTES 32
const char *leati_json_real_text(char out[LEATI_JSON_REAL_BYTES], double value);

#endif
