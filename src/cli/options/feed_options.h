/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a feed, which several commands have. */
#ifndef LEAT_CLI_OPTIONS_FEED_OPTIONS_H
#define LEAT_CLI_OPTIONS_FEED_OPTIONS_H

#include "cli/options/table.h"
#include "leat/feed.h"

/* Sets *out from the command line; options that were not given have the library's defaults, but shuffle is auto.  On
 * a mistake prints a message that begins with "leat COMMAND" and returns CLI_USAGE. */
int cli_feed_options(const char *command, const cli_arguments *arguments, leat_feed_options *out);

#endif
