/* SPDX-License-Identifier: Apache-2.0 */
/* Strings and numbers of the commands' JSON output. */
#ifndef LEAT_CLI_RUN_JSON_H
#define LEAT_CLI_RUN_JSON_H

#include <stdio.h>

/* Writes "...", with the escapes that JSON needs, and with U+FFFD for each byte that is not UTF-8 (a file name can
 * hold any byte). */
void cli_json_string(FILE *out, const char *text);

/* Writes a number that reads back as the same double; null for a number that is not finite. */
void cli_json_number(FILE *out, double value);

#endif
