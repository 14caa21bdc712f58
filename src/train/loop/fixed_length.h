/* SPDX-License-Identifier: Apache-2.0 */
/* A sequence seen through a fixed number of steps: each pass is steps long, starts at index 0, and goes round where the
 * sequence is shorter.  What validation_steps and steps mean. */
#ifndef LEATI_TRAIN_LOOP_FIXED_LENGTH_H
#define LEATI_TRAIN_LOOP_FIXED_LENGTH_H

#include "leat/sequence.h"

typedef struct leati_fixed_length {
    leat_sequence inner; /* has length and get; what it points to is borrowed */
    int64_t steps;
} leati_fixed_length;

/* Borrows *round, and what it points to. */
leat_sequence leati_fixed_length_sequence(leati_fixed_length *round);

#endif
