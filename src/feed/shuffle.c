/* SPDX-License-Identifier: Apache-2.0 */
/* A permutation that is computed, not stored.  Layer: feed. */
#include "feed/shuffle.h"

#include "base/rng.h"

#define SHUFFLE_STREAM                                                                                       \
    0x73687566666c6521u /* keeps the order apart from the generators that batches draw from */

void leati_shuffle_init(leati_shuffle *shuffle, uint64_t key, uint64_t length) {
    shuffle->length = length;
    shuffle->rounds = 24;
    for (uint64_t rest = length; rest; rest >>= 1) shuffle->rounds += 2;
    leat_rng rng = {.key = leati_mix(key, SHUFFLE_STREAM), .used = 4};
    for (int i = 0; i < shuffle->rounds; ++i) {
        shuffle->round[i].partner = leat_rng_below(&rng, length);
        shuffle->round[i].coin = leat_rng_u64(&rng);
    }
}

/* One random bit of the round and the pair, all ones or all zeros. */
static uint64_t toss(uint64_t coin, uint64_t pair) {
    uint64_t x = (pair ^ coin) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 32)) * 0x94D049BB133111EBu;
    return 0 - (x >> 63);
}

uint64_t leati_shuffle_at(const leati_shuffle *shuffle, uint64_t position) {
    uint64_t at = position;
    for (int i = 0; i < shuffle->rounds; ++i) {
        uint64_t key = shuffle->round[i].partner;
        uint64_t partner = key - at + (key < at ? shuffle->length : 0);
        uint64_t larger = at > partner ? at : partner;
        at ^= (at ^ partner) &
              toss(shuffle->round[i].coin, larger); /* a branch would be guessed wrong half the time */
    }
    return at;
}
