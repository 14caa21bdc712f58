/* SPDX-License-Identifier: Apache-2.0 */
/* The files that the paths of a SPEC name: train-{000..099}.tar and train-*.tar stand for many files. */
#ifndef LEATI_DATA_ARCHIVE_PATHS_H
#define LEATI_DATA_ARCHIVE_PATHS_H

#include <stdint.h>

#include "leat/error.h"

typedef struct leati_path_list {
    char **paths;
    int64_t count, capacity;
} leati_path_list;

/* Expands paths.  {000..099} stands for the numbers from the first to the last, with as many digits as the first has;
 * * stands for any text in a name, and its files are sorted by name.  A path of a file that exists is not expanded.
 * @param[out] out  For leati_path_list_fini; empty on failure.
 * Errors: LEAT_ENOTFOUND no file fits a pattern; LEAT_EINVAL too many files; LEAT_ENOMEM. */
leat_status leati_path_list_expand(leati_path_list *out, const char *const *paths, int count,
                                   leat_error *err);
void leati_path_list_fini(leati_path_list *list);

#endif
