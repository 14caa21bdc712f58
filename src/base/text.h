/* SPDX-License-Identifier: Apache-2.0 */
/* A growing string that keeps its first failure, and texts of messages. */
#ifndef LEATI_BASE_TEXT_H
#define LEATI_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/names/nearest.h" /* for messages that say "did you mean" */
#include "leat/version.h"

/* Starts zeroed.  After a failed allocation every further call is ignored and `failed` stays set. */
typedef struct leati_text {
    char *data; /* NUL-terminated once anything was added; NULL before */
    size_t length;
    size_t capacity;
    bool failed;
} leati_text;

void leati_text_add(leati_text *text, const char *format, ...) LEAT_PRINTF(2, 3);
void leati_text_fini(leati_text *text);

/* Makes a point of the decimal separator in a number that printf wrote: the process's locale may have another one, of
 * several bytes even.  Numbers without a separator, inf and nan stay as they are. */
void leati_decimal_point(char *number);

/* The number of bytes of the control character that `at` begins with: 1 for C0 (below the blank) and DEL, 2 for C1 in UTF-8
 * (U+0080 to U+009F), which terminals obey as well; 0 for any other character and at the end. */
size_t leati_control_bytes(const char *at);

/* Whether there is a control character in `text`. */
bool leati_has_control(const char *text);

/* "(None, 28, 28, 1)": a shape as Keras writes it, negative dimensions as None.  Returns `out`. */
const char *leati_shape_text(char *out, size_t bytes, int rank, const int64_t *shape);

#endif
