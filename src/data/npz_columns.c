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

/* Returns the array that is probably the input: one whose name begins with x, of the training data if it says so. */
static int probable_input(const leat_npz *npz) {
    int found = -1;
    for (int i = 0; i < leat_npz_count(npz); ++i) {
        const char *name = leat_npz_name(npz, i);
        if (name[0] != 'x' && name[0] != 'X') continue;
        if (strstr(name, "train")) return i;
        if (found < 0) found = i;
    }
    return found < 0 ? 0 : found;
}

/* Returns the array whose name is that of the input with y instead of x, or else the next one; -1: there is none. */
static int probable_target(const leat_npz *npz, int input) {
    const char *name = leat_npz_name(npz, input);
    for (int i = 0; i < leat_npz_count(npz); ++i) {
        const char *other = leat_npz_name(npz, i);
        if ((other[0] == 'y' || other[0] == 'Y') && strcmp(other + 1, name + 1) == 0) return i;
    }
    return input + 1 < leat_npz_count(npz) ? input + 1 : -1;
}

/* Adds to a message that there is no array with the default name how arrays are named. */
static leat_status say_how(const leat_npz *npz, const leat_error *problem, leat_error *err) {
    if (leat_npz_count(npz) == 0 || leat_npz_name(npz, 0)[0] == '\0')
        return leati_fail(err, LEAT_ENOTFOUND, "%s", problem->message);
    const int input = probable_input(npz), target = probable_target(npz, input);
    return leati_fail(err, LEAT_ENOTFOUND, "%s; name them, such as ?inputs=%s%s%s", problem->message,
                      leat_npz_name(npz, input),
                      target < 0 ? "" : "&targets=", target < 0 ? "" : leat_npz_name(npz, target));
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
        if (found) return add_member(columns, npz, single, part, options, err);
        leat_error problem = {0};
        const leat_status status = add_member(columns, npz, single, part, options, &problem);
        return status == LEAT_ENOTFOUND ? say_how(npz, &problem, err)
                                        : leati_fail(err, status, "%s", problem.message);
    }
    for (char *next = list; next;) {
        char *name = next, *comma = strchr(name, ',');
        next = comma ? comma + 1 : NULL;
        if (comma) *comma = '\0';
        LEATI_TRY(add_member(columns, npz, name, part, options, err));
    }
    return LEAT_OK;
}
