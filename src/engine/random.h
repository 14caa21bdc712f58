/* SPDX-License-Identifier: Apache-2.0 */
/* Defines which elements DROPOUT keeps and which numbers RANDOM_NORMAL draws.  All backends use this definition, so
 * that the choice of a backend does not change a training run.
 *
 * Philox is keyed by the run's seed and step and by the op's stream.  Element e of a tensor uses word e % 4 of block
 * e / 4.
 *
 * DROPOUT: e counts the elements, row-major, of the shape in which every shared axis has length 1.  Element e is kept
 * if its word is at least rate * 2^32.  A kept element is multiplied by 1 / (1 - rate).
 *
 * RANDOM_NORMAL: for an even e, elements e and e + 1 are computed from their two words by the formula of Box and
 * Muller: r cos a and r sin a, where r^2 = -2 log((floor(first / 2^8) + 1) / 2^24) and a = 2 pi second / 2^32. */
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

/* Returns the threshold below which a word drops its element; rate is in [0, 1). */
static inline uint64_t leati_dropout_threshold(float rate) {
    return (uint64_t)ceil((double)rate * 0x1p32);
}

static inline float leati_dropout_scale(float rate) {
    return 1.0f / (1.0f - rate);
}

/* Returns a number in (0, 1], never 0, so that its logarithm is finite. */
static inline float leati_normal_uniform(uint32_t word) {
    return (float)((word >> 8) + 1) * 0x1p-24f;
}

#endif
