/* SPDX-License-Identifier: Apache-2.0 */
/* The file vocabulary.txt of an archive of current Keras: the integers that an IntegerLookup has learned. */
#ifndef LEATI_FORMATS_VOCABULARY_H
#define LEATI_FORMATS_VOCABULARY_H

#include <stddef.h>

#include <jansson.h>

#include "leat/error.h"

/* Parses lines of integers into a list (new reference).  Empty lines do not count.
 * @param label  The name of the file, for messages.
 * Errors: LEAT_EFORMAT names the line; LEAT_ENOMEM. */
leat_status leati_vocabulary_parse(const void *data, size_t size, const char *label, json_t **out,
                                   leat_error *err);

#endif
