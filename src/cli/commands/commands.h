/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that run the commands: one file each, those of `leat feed` in commands/feed/. */
#ifndef LEAT_CLI_COMMANDS_COMMANDS_H
#define LEAT_CLI_COMMANDS_COMMANDS_H

#include "cli/options/table.h"

int cli_fit(const cli_arguments *arguments);
int cli_evaluate(const cli_arguments *arguments);
int cli_predict(const cli_arguments *arguments);
int cli_convert(const cli_arguments *arguments);
int cli_summary(const cli_arguments *arguments);
int cli_feed_check(const cli_arguments *arguments);
int cli_feed_show(const cli_arguments *arguments);
int cli_feed_bench(const cli_arguments *arguments);
int cli_feed_trace(const cli_arguments *arguments);
int cli_feed_tune(const cli_arguments *arguments);
int cli_report(const cli_arguments *arguments);
int cli_list(const cli_arguments *arguments);
int cli_help(const cli_arguments *arguments);
int cli_version(const cli_arguments *arguments);

#endif
