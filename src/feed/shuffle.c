/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a shuffled pass.  Layer: feed. */
#include "feed/shuffle.h"

#include "base/rng.h"

#define SHUFFLE_STREAM                                                                                       \
    0x73687566666c6521u /* keeps the order apart from the generators that batches draw from */

void leati_shuffle_init(leati_shuffle *shuffle, uint64_t seed, uint64_t pass, uint64_t length) {
    shuffle->length = length;
    shuffle->stream = leati_mix(leati_mix(seed, pass), SHUFFLE_STREAM);
    shuffle->rounds = 24;
    for (uint64_t rest = length; rest; rest >>= 1) shuffle->rounds += 4;
    leat_rng rng = {.key = shuffle->stream, .used = 4};
    for (int i = 0; i < shuffle->rounds; ++i) shuffle->keys[i] = leat_rng_below(&rng, length);
}

uint64_t leati_shuffle_at(const leati_shuffle *shuffle, uint64_t position) {
    uint64_t at = position;
    for (int i = 0; i < shuffle->rounds; ++i) {
        uint64_t key = shuffle->keys[i];
        uint64_t partner = key >= at ? key - at : key + (shuffle->length - at);
        uint64_t larger = at > partner ? at : partner;
        if (leati_mix(shuffle->stream + (uint64_t)i, larger) >> 63) at = partner;
    }
    return at;
}
