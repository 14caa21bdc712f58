/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of files in JSON, and the files of sources. */
#ifndef LEATI_DATA_PATHS_H
#define LEATI_DATA_PATHS_H

#include <jansson.h>

#include "leat/error.h"

/* Returns the path as JSON, NULL without memory.  The path is escaped as in a SPEC, and so is a path that is not
 * UTF-8, since strings of JSON are. */
json_t *leati_path_json(const char *path);

/* Names the files of a source, in the form of leat_source_files; `text` is the SPEC of a source, not of a combination.
 * @param[out] out  For json_decref; NULL on failure.  Errors: those of leat_source_files. */
leat_status leati_source_files(json_t **out, const char *text, leat_error *err);

#endif
