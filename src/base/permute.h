/* SPDX-License-Identifier: Apache-2.0 */
/* A shuffled order as a function: no array to keep, none to hand to the workers. */
#ifndef LEATI_BASE_PERMUTE_H
#define LEATI_BASE_PERMUTE_H

#include <stdint.h>

/* Where `ordinal` goes in the permutation of [0, length) that belongs to key; ordinal < length. */
uint64_t leati_permute_keyed(uint64_t key, uint64_t ordinal, uint64_t length);

/* The same for the permutation that belongs to (seed, pass). */
uint64_t leati_permute(uint64_t seed, uint64_t pass, uint64_t ordinal, uint64_t length);

#endif
