/* SPDX-License-Identifier: Apache-2.0 */
/* The core of the random number generator, for kernels that compute word i of a stream without the words before
 * it. */
#ifndef LEATI_BASE_RNG_H
#define LEATI_BASE_RNG_H

#include "leat/rng.h"

/* Computes one block of Philox4x32-10: four random words that depend on (key, counter, stream) alone. */
void leati_philox(uint64_t key, uint64_t counter, uint64_t stream, uint32_t out[4]);

/* Mixes two words into one key (SplitMix64's finalizer). */
uint64_t leati_mix(uint64_t a, uint64_t b);

#endif
