/* SPDX-License-Identifier: Apache-2.0 */
/* The file in which a fit keeps statistics of its training data: statistics.npz in the folder of the run, or a
 * temporary file if there is no folder, or none yet.  The validation data reads this file. */
#ifndef LEAT_CLI_RUN_STATISTICS_H
#define LEAT_CLI_RUN_STATISTICS_H

#include "cli/run/folder.h"
#include "cli/run/session.h"

/* Chooses the file for session->statistics, before the data is opened.  Returns an exit code after a message. */
int cli_statistics_begin(cli_session *session, const cli_folder *folder);

/* Moves statistics from a temporary file into the folder, if it was made after the data was opened. */
int cli_statistics_keep(const cli_session *session, const cli_folder *folder);

/* Removes the temporary file. */
void cli_statistics_end(cli_session *session);

#endif
