/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a command line against the table. */
#ifndef LEAT_CLI_OPTIONS_PARSE_H
#define LEAT_CLI_OPTIONS_PARSE_H

#include "cli/options/table.h"

/* Fills *out from argv (after the command's name).  --name VALUE and --name=VALUE; operands anywhere; -- ends the options.
 * On a mistake it says so on standard error and returns CLI_USAGE.  What is required is not asked for beside --help. */
int cli_parse(const cli_command *command, int argc, char **argv, cli_arguments *out);

/* Says that two options exclude each other, and returns CLI_USAGE. */
int cli_both(const char *command, const char *one, const char *other);

/* Says that an option does nothing without another, and returns CLI_USAGE. */
int cli_needs(const char *command, const char *one, const char *other);

/* The number of an option, or `otherwise` where it was not given. */
int64_t cli_number(const cli_arguments *arguments, cli_option_id id, int64_t otherwise);

#endif
