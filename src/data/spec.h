/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a SPEC: KIND:PATH[,PATH...][?KEY=VALUE[&KEY=VALUE...]]. */
#ifndef LEATI_DATA_SPEC_H
#define LEATI_DATA_SPEC_H

#include "leat/error.h"

enum { LEATI_SPEC_MAX_PATHS = 32, LEATI_SPEC_MAX_OPTIONS = 24 };

typedef struct leati_spec {
    char *text; /* a copy of the SPEC, into which the members below point */
    const char *kind;
    const char *paths[LEATI_SPEC_MAX_PATHS]; /* decoded */
    int path_count;
    char *keys[LEATI_SPEC_MAX_OPTIONS];   /* decoded */
    char *values[LEATI_SPEC_MAX_OPTIONS]; /* not decoded; for leati_spec_decode */
    int option_count;
} leati_spec;

/* Parses a SPEC, for leati_spec_fini.  The options of a plugin are not parsed; leati_spec_query gives their text.
 * Errors: LEAT_EINVAL, with what was expected and where; LEAT_ENOMEM.  After a failure there is nothing to free. */
leat_status leati_spec_parse(leati_spec *out, const char *text, leat_error *err);
void leati_spec_fini(leati_spec *spec);

/* Returns the text after the first `?` of a SPEC; "" if there is none. */
const char *leati_spec_query(const char *text);

/* Returns the length of the kind at the beginning of a SPEC; 0 if there is none. */
int leati_spec_kind_length(const char *text);

/* Returns the text of an option, which is not decoded; NULL if the SPEC does not have the option. */
char *leati_spec_value(const leati_spec *spec, const char *key);

/* Decodes each %XX of the text in place.  Errors: LEAT_EINVAL no two hexadecimal digits, or %00. */
leat_status leati_spec_decode(char *text, leat_error *err);

#endif
