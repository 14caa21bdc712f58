/* SPDX-License-Identifier: Apache-2.0 */
/* What `leat fit` says after Ctrl-C: where training stands, what was saved, and how it goes on. */
#ifndef LEAT_CLI_COMMANDS_INTERRUPT_H
#define LEAT_CLI_COMMANDS_INTERRUPT_H

#include "cli/run/session.h"

/* How far training has come. */
typedef struct cli_position {
    int64_t epoch;       /* the last one that was begun, from 0 */
    int64_t finished;    /* epochs whose steps are all done */
    int64_t step, steps; /* of that epoch: done, in all */
} cli_position;

/* A callback that keeps the position up to date.  The position is borrowed while the callback is in use. */
leat_callback cli_position_callback(cli_position *position);

/* Says on standard error where a fit was interrupted, what DIR/model.h5 holds, and the command that goes on.  folder is
 * that of --out, NULL: none; saved: whether model.h5 was written. */
void cli_tell_interrupt(const cli_session *session, const cli_position *position, const char *folder,
                        bool saved);

#endif
