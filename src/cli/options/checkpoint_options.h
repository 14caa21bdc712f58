/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a fit's checkpoints. */
#ifndef LEAT_CLI_OPTIONS_CHECKPOINT_OPTIONS_H
#define LEAT_CLI_OPTIONS_CHECKPOINT_OPTIONS_H

#include "cli/options/table.h"
#include "leat/checkpoint.h"

/* Reads --checkpoint-every and --keep-checkpoints; the folder is left NULL.  Returns CLI_USAGE after a message. */
int cli_checkpoint_options(const cli_arguments *arguments, leat_checkpoint_options *out);

#endif
