/* SPDX-License-Identifier: Apache-2.0 */
/* Which elements DROPOUT keeps, and which numbers RANDOM_NORMAL draws: one definition for all backends, so that none
 * changes what a training run sees.
 *
 * DROPOUT: element e (row-major, of the shape in which every shared axis has length 1) is kept where word e % 4 of Philox's block
 * e / 4, keyed by the run's seed and step and by the op's stream, is at least rate * 2^32.  What is kept is multiplied
 * by 1 / (1 - rate).
 *
 * RANDOM_NORMAL: elements e and e + 1, e even, come of words e % 4 and e % 4 + 1 of that block, by Box and Muller's formula:
 * r cos a and r sin a, where r^2 = -2 log((first / 2^8 + 1) / 2^24) (the quotient cut) and a = 2 pi second / 2^32. */
#ifndef LEATI_ENGINE_RANDOM_H
#define LEATI_ENGINE_RANDOM_H

#include <math.h>
#include <stdint.h>

#include "base/rng.h"
#include "engine/backend.h"

static inline void leati_random_words(const leati_run *run, uint64_t stream, uint64_t block,
                                      uint32_t words[4]) {
    leati_philox(leati_mix(run->seed, run->step), block, stream, words);
}

/* A word below it drops its element; rate is in [0, 1). */
static inline uint64_t leati_dropout_threshold(float rate) {
    return (uint64_t)ceil((double)rate * 0x1p32);
}

static inline float leati_dropout_scale(float rate) {
    return 1.0f / (1.0f - rate);
}

/* In (0, 1], so that it has a logarithm. */
static inline float leati_normal_uniform(uint32_t word) {
    return (float)((word >> 8) + 1) * 0x1p-24f;
}

#endif
