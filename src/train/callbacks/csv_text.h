/* SPDX-License-Identifier: Apache-2.0 */
/* Fields of CSV as Python's csv module writes them with QUOTE_MINIMAL and doublequote. */
#ifndef LEATI_TRAIN_CALLBACKS_CSV_TEXT_H
#define LEATI_TRAIN_CALLBACKS_CSV_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* Appends a field.  A field that contains the separator, a quote or a line break is put in quotes, with each quote
 * inside doubled. */
void leati_csv_add(leati_text *text, const char *field, const char *separator);

/* Reads the field at *at, which is before `end`, into `out`, whose old content is replaced, and moves *at behind the
 * field and the separator.  Returns true if another field of the same record follows. */
bool leati_csv_next(const char **at, const char *end, const char *separator, leati_text *out);

#endif
