/* SPDX-License-Identifier: Apache-2.0 */
/* Text for people: messages on standard error, and results on standard output, without control characters of names and
 * paths.  All such text is written through these functions. */
#ifndef LEAT_CLI_TEXT_SAY_H
#define LEAT_CLI_TEXT_SAY_H

#include <stdio.h>

#include "leat/version.h"

/* Writes formatted text to standard error.  Control characters, except line breaks and tabs, and bytes that are not
 * UTF-8 are written as '?'.  A text of more than 16 KB is cut. */
void cli_say(const char *format, ...) LEAT_PRINTF(1, 2);

/* Like cli_say(), but writes to `out`. */
void cli_say_to(FILE *out, const char *format, ...) LEAT_PRINTF(2, 3);

/* Writes a text of any length and changes it as cli_say does. */
void cli_say_text(FILE *out, char *text);

#endif
