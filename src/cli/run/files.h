/* SPDX-License-Identifier: Apache-2.0 */
/* Reading whole files. */
#ifndef LEAT_CLI_RUN_FILES_H
#define LEAT_CLI_RUN_FILES_H

#include <stddef.h>

/* Reads a file into memory for free(), with a zero byte behind its *bytes bytes.  Returns NULL on failure, with
 * errno. */
char *cli_read_file(const char *path, size_t *bytes);

#endif
