/* SPDX-License-Identifier: Apache-2.0 */
/* Makes columns of the arrays of .npz files.  Room: data. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "data/columns.h"
#include "data/spec.h"

static leat_status add_member(leati_columns *columns, leat_npz *npz, char *name, leat_batch_part part,
                              const leati_column_options *options, leat_error *err) {
    const leati_array *array = NULL;
    LEATI_TRY(leati_spec_decode(name, err));
    LEATI_TRY(leati_npz_array(npz, name, &array, err));
    return leati_columns_add(columns, part, NULL, array, options, name, err);
}

/* Adds the arrays of a list, whose commas become zero bytes.  Without a list, adds the array named `fallback`; an
 * input must exist. */
leat_status leati_columns_add_members(leati_columns *columns, leat_npz *npz, char *list, const char *fallback,
                                      leat_batch_part part, const leati_column_options *options,
                                      leat_error *err) {
    char single[16];
    if (!list) {
        bool found = false;
        for (int i = 0; i < leat_npz_count(npz); ++i)
            found = found || strcmp(leat_npz_name(npz, i), fallback) == 0;
        if (!found && part != LEAT_PART_INPUT) return LEAT_OK;
        snprintf(single, sizeof single, "%s", fallback);
        return add_member(columns, npz, single, part, options, err);
    }
    for (char *next = list; next;) {
        char *name = next, *comma = strchr(name, ',');
        next = comma ? comma + 1 : NULL;
        if (comma) *comma = '\0';
        LEATI_TRY(add_member(columns, npz, name, part, options, err));
    }
    return LEAT_OK;
}
