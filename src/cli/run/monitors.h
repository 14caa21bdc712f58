/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks that show a run to other programs: --tensorboard, --remote-monitor and --open-metrics. */
#ifndef LEAT_CLI_RUN_MONITORS_H
#define LEAT_CLI_RUN_MONITORS_H

#include "cli/options/table.h"
#include "leat/callback.h"

enum { CLI_MAX_MONITORS = 3 };

/* Adds the callbacks that the options ask for, at most CLI_MAX_MONITORS, at callbacks[*count].  After a failure the
 * callback at callbacks[*count - 1] may be zeroed, which leat_callback_destroy accepts.
 * folder: the folder of the run, NULL: none. */
leat_status cli_add_monitors(const cli_arguments *arguments, const char *folder, leat_callback *callbacks,
                             int *count, leat_error *err);

#endif
