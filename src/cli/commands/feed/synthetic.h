/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic data for measuring a feed. */
#ifndef LEAT_CLI_COMMANDS_FEED_SYNTHETIC_H
#define LEAT_CLI_COMMANDS_FEED_SYNTHETIC_H

#include <stdbool.h>

#include "leat/sequence.h"

/* A synthetic sequence.  A batch is one sample of one tensor of uint8.  With `random` its bytes are the words of the
 * batch's random number generator (leat_rng_u32) in order, low byte first; otherwise every byte is the low byte of
 * the first word. */
typedef struct cli_synthetic {
    int64_t bytes;   /* size of a batch */
    int64_t batches; /* batches per pass */
    int64_t work_us; /* additional CPU time to make a batch */
    bool random;
} cli_synthetic;

/* Makes the sequence, which borrows *synthetic until it is destroyed. */
leat_status cli_synthetic_open(leat_sequence *out, cli_synthetic *synthetic, leat_error *err);

/* Uses `us` microseconds of the calling thread's CPU time; threads that share a core therefore take longer. */
void cli_burn(int64_t us);

#endif
