/* SPDX-License-Identifier: Apache-2.0 */
/* A permutation of 0 .. length-1 as a function of (key, length): any position is computed by itself, and nothing that
 * grows with the length is stored.
 *
 * "Swap or not" (Hoang, Morris and Rogaway, "An enciphering scheme based on a card shuffle", CRYPTO 2012): in each
 * round a position and its partner, key - position (mod length) change places or not, by one random bit of the pair.
 * It works on any length without cycle walking, and mixes short ones evenly. */
#ifndef LEATI_FEED_ORDER_SHUFFLE_H
#define LEATI_FEED_ORDER_SHUFFLE_H

#include <stdint.h>

#define LEATI_SHUFFLE_ROUNDS 152 /* the most: 24 + 2 for each bit of a length */

typedef struct leati_shuffle {
    uint64_t length;
    int rounds;
    struct {
        uint64_t partner; /* position and partner add up to it (mod length) */
        uint64_t coin;    /* key of the bit that says whether they change places */
    } round[LEATI_SHUFFLE_ROUNDS];
} leati_shuffle;

/* length >= 1. */
void leati_shuffle_init(leati_shuffle *shuffle, uint64_t key, uint64_t length);

/* Where position (< length) goes. */
uint64_t leati_shuffle_at(const leati_shuffle *shuffle, uint64_t position);

/* The same for `count` positions from `first` on, several times as fast. */
void leati_shuffle_range(const leati_shuffle *shuffle, uint64_t first, int64_t count, uint64_t *out);

#endif
