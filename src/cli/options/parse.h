/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of the command line. */
#ifndef LEAT_CLI_OPTIONS_PARSE_H
#define LEAT_CLI_OPTIONS_PARSE_H

#include "cli/options/table.h"

/* Parses argv, which begins after the command's name: --name VALUE, --name=VALUE, and operands anywhere; -- ends the
 * options.  On a mistake prints a message on standard error and returns CLI_USAGE.  With --help, required arguments
 * may be missing. */
int cli_parse(const cli_command *command, int argc, char **argv, cli_arguments *out);

/* Like cli_parse, but accepts that required arguments are missing, for words that were recorded. */
int cli_parse_recorded(const cli_command *command, int argc, char **argv, cli_arguments *out);

/* Prints that two options exclude each other; returns CLI_USAGE. */
int cli_exclusive(const char *command, const char *one, const char *other);

/* Prints that an option has no effect without another one; returns CLI_USAGE. */
int cli_needs(const char *command, const char *one, const char *other);

/* Returns the number of an option, or `otherwise` if the option was not given. */
int64_t cli_number(const cli_arguments *arguments, cli_option_id id, int64_t otherwise);

#endif
