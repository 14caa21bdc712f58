/* SPDX-License-Identifier: Apache-2.0 */
/* Data that is made up, to measure a feed with. */
#ifndef LEAT_CLI_COMMANDS_FEED_SYNTHETIC_H
#define LEAT_CLI_COMMANDS_FEED_SYNTHETIC_H

#include <stdbool.h>

#include "leat/sequence.h"

/* A batch is one sample of one tensor, uint8 (bytes).  With `random` its bytes are the words of the batch's generator
 * (leat_rng_u32), one after the other, the low byte first; otherwise all are the low byte of the first word. */
typedef struct cli_synthetic {
    int64_t bytes;   /* of a batch */
    int64_t batches; /* of a pass */
    int64_t work_us; /* CPU time that making a batch costs beside */
    bool random;
} cli_synthetic;

/* *synthetic must outlive the sequence. */
leat_status cli_synthetic_open(leat_sequence *out, cli_synthetic *synthetic, leat_error *err);

/* Keeps the calling thread's CPU busy for so long: its own time, so that threads that share a core take longer. */
void cli_burn(int64_t us);

#endif
