/* SPDX-License-Identifier: Apache-2.0 */
/* The generator's core, for kernels that need word i of a stream without making the words before it. */
#ifndef LEATI_BASE_RNG_H
#define LEATI_BASE_RNG_H

#include "leat/rng.h"

/* One Philox4x32-10 block: four random words that depend on (key, counter) alone. */
void leati_philox(uint64_t key, uint64_t counter, uint64_t stream, uint32_t out[4]);

/* Mixes two words into one key (SplitMix64's finalizer). */
uint64_t leati_mix(uint64_t a, uint64_t b);

#endif
