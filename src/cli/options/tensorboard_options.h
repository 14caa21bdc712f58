/* SPDX-License-Identifier: Apache-2.0 */
/* The options of `leat fit` for TensorBoard. */
#ifndef LEAT_CLI_OPTIONS_TENSORBOARD_OPTIONS_H
#define LEAT_CLI_OPTIONS_TENSORBOARD_OPTIONS_H

#include "cli/options/table.h"
#include "leat/callback.h"

/* Reads --tensorboard, --update-freq and --histogram-freq; out->log_dir is NULL without --tensorboard.  On a mistake
 * prints a message and returns CLI_USAGE. */
int cli_tensorboard_options(const cli_arguments *arguments, leat_tensorboard_options *out);

#endif
