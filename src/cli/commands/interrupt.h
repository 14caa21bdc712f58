/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of `leat fit` at the end of a run that did not reach its last epoch: where the run is, what was saved,
 * and how to continue. */
#ifndef LEAT_CLI_COMMANDS_INTERRUPT_H
#define LEAT_CLI_COMMANDS_INTERRUPT_H

#include "cli/run/folder.h"
#include "cli/run/session.h"

/* The position of a training. */
typedef struct cli_position {
    int64_t epoch;     /* index of the current epoch, from 0 */
    int64_t finished;  /* number of finished epochs */
    int64_t step;      /* number of finished steps of the current epoch */
    int64_t steps;     /* number of all steps of the current epoch */
    bool stops_on_nan; /* set by the caller: training stops after a step whose loss is not finite */
    int64_t nan_step;  /* number of steps of the current epoch after which that happened; 0: it did not */
} cli_position;

/* Returns a callback that updates *position, which must outlive the callback. */
leat_callback cli_position_callback(cli_position *position);

/* Print messages on standard error.  folder: the folder of the run; its path is "" if there is none. */

/* After an interrupt: where the fit is, what was saved, and the command that continues.  saved: true if model.h5 was
 * written. */
void cli_print_interrupt(const cli_session *session, const cli_position *position, const cli_folder *folder,
                         bool saved);
/* After a failure: the command that continues, if there is a checkpoint. */
void cli_print_failure(const cli_folder *folder);
/* After a loss that is not finite.  Returns CLI_FAILURE. */
int cli_print_nan(const cli_position *position, const cli_folder *folder);

#endif
