/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of files in JSON. */
#ifndef LEATI_DATA_PATHS_H
#define LEATI_DATA_PATHS_H

#include <jansson.h>

/* Returns the path as JSON, NULL without memory.  The path is escaped as in a SPEC, and so is a path that is not
 * UTF-8, since strings of JSON are. */
json_t *leati_path_json(const char *path);

#endif
