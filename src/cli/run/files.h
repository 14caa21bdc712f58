/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and replacing whole files. */
#ifndef LEAT_CLI_RUN_FILES_H
#define LEAT_CLI_RUN_FILES_H

#include <stddef.h>

#include "leat/error.h"

/* Reads a file into memory for free(), with a zero byte behind its *bytes bytes.  Returns NULL on failure, with
 * errno. */
char *cli_read_file(const char *path, size_t *bytes);

/* Replaces a file by a text and a line break, which takes the place of the final zero byte meanwhile.  Errors: those
 * of leat_file_replace. */
leat_status cli_replace_text(const char *path, char *text, leat_error *err);

#endif
