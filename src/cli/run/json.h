/* SPDX-License-Identifier: Apache-2.0 */
/* Strings and numbers of the commands' JSON output. */
#ifndef LEAT_CLI_RUN_JSON_H
#define LEAT_CLI_RUN_JSON_H

#include <stdio.h>

/* Writes "...", with escapes for the characters that JSON needs them for and for all other control characters, which
 * must not reach a terminal, and with U+FFFD for each byte that is not UTF-8 (a file name can
 * hold any byte). */
void cli_json_string(FILE *out, const char *text);

/* Writes a finished JSON text and a line break, with escapes for DEL and C1, which JSON allows in strings. */
void cli_json_text(FILE *out, const char *json);

/* Writes a number that reads back as the same double; null for a number that is not finite. */
void cli_json_number(FILE *out, double value);

#endif
