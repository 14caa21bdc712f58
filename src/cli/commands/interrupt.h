/* SPDX-License-Identifier: Apache-2.0 */
/* The message of `leat fit` after an interrupt: the position of the training, what was saved, and how to continue. */
#ifndef LEAT_CLI_COMMANDS_INTERRUPT_H
#define LEAT_CLI_COMMANDS_INTERRUPT_H

#include "cli/run/session.h"

/* The position of a training. */
typedef struct cli_position {
    int64_t epoch;    /* index of the current epoch, from 0 */
    int64_t finished; /* number of finished epochs */
    int64_t step;     /* number of finished steps of the current epoch */
    int64_t steps;    /* number of all steps of the current epoch */
} cli_position;

/* Returns a callback that updates *position, which must outlive the callback. */
leat_callback cli_position_callback(cli_position *position);

/* Prints on standard error where a fit was interrupted, what DIR/model.h5 contains, and the command that continues.
 * folder: the value of --out, NULL: none; saved: true if model.h5 was written. */
void cli_print_interrupt(const cli_session *session, const cli_position *position, const char *folder,
                         bool saved);

#endif
