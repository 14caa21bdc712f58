/* SPDX-License-Identifier: Apache-2.0 */
/* A permutation of 0 .. length-1 as a function of (key, length).  Each element is computed separately, and the memory
 * does not grow with the length.
 *
 * The algorithm is "swap or not" (Hoang, Morris and Rogaway, "An enciphering scheme based on a card shuffle", CRYPTO
 * 2012).  In each round, a position and its partner, key - position (mod length), are swapped or not, by one random bit
 * of the pair.  It works for any length without cycle walking, and permutes short lengths evenly, too. */
#ifndef LEATI_BASE_SHUFFLE_H
#define LEATI_BASE_SHUFFLE_H

#include <stdint.h>

#define LEATI_SHUFFLE_ROUNDS 152 /* the largest number: 24, and 2 for each bit of the length */

typedef struct leati_shuffle {
    uint64_t length;
    int rounds;
    struct {
        uint64_t partner; /* the sum (mod length) of a position and its partner */
        uint64_t coin;    /* key of the random bit that says whether the pair is swapped */
    } round[LEATI_SHUFFLE_ROUNDS];
} leati_shuffle;

/* length >= 1. */
void leati_shuffle_init(leati_shuffle *shuffle, uint64_t key, uint64_t length);

/* Returns the permuted position (< length) of `position` (< length). */
uint64_t leati_shuffle_at(const leati_shuffle *shuffle, uint64_t position);

/* Like leati_shuffle_at(), but for `count` positions from `first` on, which is several times as fast. */
void leati_shuffle_range(const leati_shuffle *shuffle, uint64_t first, int64_t count, uint64_t *out);

#endif
