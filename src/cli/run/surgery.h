/* SPDX-License-Identifier: Apache-2.0 */
/* The options that change the model of a command before the model is used: --input-layer and --output-layer, --freeze
 * and --unfreeze. */
#ifndef LEAT_CLI_RUN_SURGERY_H
#define LEAT_CLI_RUN_SURGERY_H

#include "cli/run/session.h"

/* Returns true if --input-layer or --output-layer was given. */
bool cli_is_cut(const cli_session *session);

/* Replaces the model by the part of it that --input-layer and --output-layer name.  Prints a message on failure and
 * returns an exit code, like cli_freeze. */
int cli_cut(cli_session *session);

/* Freezes the layers that --freeze names, then makes those of --unfreeze trainable.  Call it before cli_compile. */
int cli_freeze(cli_session *session);

#endif
