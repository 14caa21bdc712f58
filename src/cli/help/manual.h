/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that are made from the table: --help, man pages, bash completion. */
#ifndef LEAT_CLI_HELP_MANUAL_H
#define LEAT_CLI_HELP_MANUAL_H

#include <stdio.h>

#include "cli/options/table.h"

void cli_help_overview(FILE *out);
void cli_help_command(FILE *out, const cli_command *command);

/* Writes the name of a command's man page: "leat-feed-bench". */
enum { CLI_MAN_NAME_BYTES = 64 };
void cli_man_name(char out[CLI_MAN_NAME_BYTES], const cli_command *command);

/* Write man pages in roff: leat.1, leat-COMMAND.1 and leat-specs.7. */
void cli_man_overview(FILE *out);
void cli_man_command(FILE *out, const cli_command *command);
void cli_man_specs(FILE *out);

/* The file completion.bash, as a string. */
extern const char cli_completion[];
void cli_bash_completion(FILE *out);

#endif
