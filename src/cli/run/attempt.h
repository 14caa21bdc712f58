/* SPDX-License-Identifier: Apache-2.0 */
/* The attempt of a run: the process that started or resumed the run last, as run.json records it. */
#ifndef LEAT_CLI_RUN_ATTEMPT_H
#define LEAT_CLI_RUN_ATTEMPT_H

#include <jansson.h>

/* Returns a new JSON object with this process and the time. */
json_t *cli_attempt_json(void);

/* Removes the event files of TensorBoard in `log_dir` that the process of a recorded attempt has written.  A run that
 * was killed before its first checkpoint begins anew, and TensorBoard would show the steps of both attempts.
 * attempt: NULL if run.json has none.  Files that cannot be removed are left. */
void cli_attempt_remove_events(const json_t *attempt, const char *log_dir);

#endif
