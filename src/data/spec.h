/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a SPEC: KIND:PATH[,PATH...][?KEY=VALUE[&KEY=VALUE...]]. */
#ifndef LEATI_DATA_SPEC_H
#define LEATI_DATA_SPEC_H

#include "leat/error.h"

enum { LEATI_SPEC_MAX_PATHS = 32, LEATI_SPEC_MAX_OPTIONS = 16 };

typedef struct leati_spec {
    char *text; /* the copy that the pointers below point into */
    const char *kind;
    const char *paths[LEATI_SPEC_MAX_PATHS]; /* decoded */
    int path_count;
    char *keys[LEATI_SPEC_MAX_OPTIONS];   /* decoded */
    char *values[LEATI_SPEC_MAX_OPTIONS]; /* as written; leati_spec_decode makes them readable */
    int option_count;
} leati_spec;

/* A plugin's options stay together: leati_spec_query has them as they were written.
 * Errors: LEAT_EINVAL says what was expected where.  After a failure nothing is owed. */
leat_status leati_spec_parse(leati_spec *out, const char *text, leat_error *err);
void leati_spec_fini(leati_spec *spec);

/* What follows the first `?` of a SPEC, "" where there is none. */
const char *leati_spec_query(const char *text);

/* The kind alone: its length, 0 where the text has none. */
int leati_spec_kind_length(const char *text);

/* Replaces %XX by the byte it stands for, in place.  Errors: LEAT_EINVAL no two hex digits, or %00. */
leat_status leati_spec_decode(char *text, leat_error *err);

#endif
