/* SPDX-License-Identifier: Apache-2.0 */
/* Wraps a sequence so that each pass has a fixed number of steps: each pass starts at index 0, and starts again at
 * index 0 after the last batch if the sequence is shorter.  Implements Keras's validation_steps and steps.
 * Room: train. */
#ifndef LEATI_TRAIN_LOOP_FIXED_LENGTH_H
#define LEATI_TRAIN_LOOP_FIXED_LENGTH_H

#include "leat/sequence.h"

typedef struct leati_fixed_length {
    leat_sequence inner; /* must have length and get; its user data is borrowed */
    int64_t steps;
} leati_fixed_length;

/* Returns the wrapped sequence, which borrows *fixed and the user data of fixed->inner.  in_order: it is not shuffled,
 * so that samples have numbers as in the sequence, if a pass is not longer than those of the sequence. */
leat_sequence leati_fixed_length_sequence(leati_fixed_length *fixed, bool in_order);

#endif
