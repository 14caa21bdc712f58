/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a feed, as several commands have them. */
#ifndef LEAT_CLI_OPTIONS_FEEDING_H
#define LEAT_CLI_OPTIONS_FEEDING_H

#include "cli/options/table.h"
#include "leat/feed.h"

/* All of a feed's options that the command line says; the others are the library's defaults, but for shuffle: auto.
 * What is said wrongly is told in the command's name, and CLI_USAGE returned. */
int cli_feeding(const char *command, const cli_arguments *arguments, leat_feed_options *out);

#endif
