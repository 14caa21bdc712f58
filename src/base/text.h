/* SPDX-License-Identifier: Apache-2.0 */
/* A string that grows, and functions for the texts of messages. */
#ifndef LEATI_BASE_TEXT_H
#define LEATI_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/names/nearest.h" /* for messages that say "did you mean" */
#include "leat/version.h"

/* Zeroed at first.  After a failed allocation `failed` stays set and further calls do
 * nothing. */
typedef struct leati_text {
    char *data; /* NUL-terminated; NULL until something was added */
    size_t length;
    size_t capacity;
    bool failed;
} leati_text;

/* Appends formatted text. */
void leati_text_add(leati_text *text, const char *format, ...) LEAT_PRINTF(2, 3);
void leati_text_fini(leati_text *text);

/* Appends names with commas between them: the first `most` of them, and "..." if there are more. */
void leati_text_add_names(leati_text *text, const char *const *names, size_t count, size_t most);

/* Replaces the decimal separator of a number that printf wrote by a point: the separator of the process's locale may
 * be another character, even of several bytes.  Does not change a number without a separator, inf or nan. */
void leati_decimal_point(char *number);

/* Returns the number of bytes of the control character at `at`: 1 for C0 (below the blank) and DEL, 2 for C1 in UTF-8
 * (U+0080 to U+009F), which terminals obey as well; 0 for any other character and at the end of the string. */
size_t leati_control_bytes(const char *at);

/* Returns true if `text` contains a control character. */
bool leati_has_control(const char *text);

/* Reads a decimal number, independently of the locale, and returns the text after it; NULL if there is no number.
 * At most 15 significant digits are allowed, so that the value is correctly rounded. */
const char *leati_read_decimal(const char *text, double *out);

/* Writes a shape as Keras does, negative dimensions as None: "(None, 28, 28, 1)".  Returns `out`. */
const char *leati_shape_text(char *out, size_t bytes, int rank, const int64_t *shape);

#endif
