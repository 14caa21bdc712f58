/* SPDX-License-Identifier: Apache-2.0 */
/* Suggestions for misspelt names of commands and options. */
#ifndef LEAT_CLI_OPTIONS_SUGGEST_H
#define LEAT_CLI_OPTIONS_SUGGEST_H

#include "cli/options/table.h"

/* Returns the name that `word` misspells, or the only one that begins with it: "losses" for "loss".  NULL: none. */
const char *cli_nearest(const char *word, const char *const *names, int count);

/* Returns the name of the command that `word` misspells, or that does what a command of that name does in other
 * programs ("fit" for "train").  NULL: none. */
const char *cli_nearest_command(const char *word);

#endif
