/* SPDX-License-Identifier: Apache-2.0 */
/* `leat report --follow`: the page of a run that is still going. */
#ifndef LEAT_CLI_REPORT_FOLLOW_H
#define LEAT_CLI_REPORT_FOLLOW_H

#include <stdbool.h>

#include "cli/report/page.h"

/* Returns true if the numbers say that the run of this folder is going on, but no process runs it: the lock file of the
 * folder is free or, without a lock file, history.json is older than a minute. */
bool cli_report_is_dead(const char *folder, const char *history, const char *numbers);

/* Writes the page, and writes it again whenever the numbers have changed, until the run ends.  Prints how the run
 * ended, and on a terminal a progress line.  Returns an exit code; after SIGINT, SIGTERM or SIGHUP 130, 143 or 129. */
int cli_report_follow(const char *folder, const cli_report_page *page);

#endif
