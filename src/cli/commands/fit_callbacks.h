/* SPDX-License-Identifier: Apache-2.0 */
/* The callbacks of `leat fit` that its options describe. */
#ifndef LEAT_CLI_COMMANDS_FIT_CALLBACKS_H
#define LEAT_CLI_COMMANDS_FIT_CALLBACKS_H

#include "cli/run/session.h"

enum { cli_max_callbacks = 16 };

/* A list of callbacks.  Zeroed at first. */
typedef struct cli_callbacks {
    leat_callback items[cli_max_callbacks];
    leat_callback *list[cli_max_callbacks]; /* pointers to the items, for leat_fit_options.callbacks */
    int count;
} cli_callbacks;

/* Appends a callback, which the list then owns.  There must be fewer than cli_max_callbacks. */
void cli_callbacks_add(cli_callbacks *callbacks, const leat_callback *callback);
void cli_callbacks_destroy(cli_callbacks *callbacks);

/* Checks the options that describe callbacks, before the model is loaded.  Prints a message on failure; returns an exit
 * code. */
int cli_check_callbacks(const cli_arguments *arguments);

/* Checks that the fit logs the values that the callbacks monitor: otherwise they would do nothing.  The model is
 * compiled.  Prints a message on failure; returns an exit code. */
int cli_check_monitors(const cli_session *session);

/* Appends the callbacks in the order in which they must run: the learning rate (a schedule or ReduceLROnPlateau, which
 * add lr to the logs), log.csv, best.h5, those of cli/run/monitors.h, and EarlyStopping, which restores the best
 * weights only after the files of the epoch were written.  The model is compiled.
 * folder: the folder of the run, NULL: none.  Prints a message on failure; returns an exit code. */
int cli_add_callbacks(const cli_session *session, const char *folder, cli_callbacks *callbacks);

#endif
