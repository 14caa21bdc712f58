/* SPDX-License-Identifier: Apache-2.0 */
/* Computes single elements of a permutation without storing it.  Room: feed. */
#include "base/shuffle.h"

#include <assert.h>
#include "base/rng.h"

#define SHUFFLE_STREAM                                                                                       \
    0x73687566666c6521u /* makes the order independent of the random numbers of the batches */

void leati_shuffle_init(leati_shuffle *shuffle, uint64_t key, uint64_t length) {
    assert(length >= 1);
    shuffle->length = length;
    shuffle->rounds = 24;
    for (uint64_t rest = length; rest; rest >>= 1) shuffle->rounds += 2;
    assert(shuffle->rounds <= LEATI_SHUFFLE_ROUNDS);
    leat_rng rng = {.key = leati_mix(key, SHUFFLE_STREAM), .used = 4};
    for (int i = 0; i < shuffle->rounds; ++i) {
        shuffle->round[i].partner = leat_rng_below(&rng, length);
        shuffle->round[i].coin = leat_rng_u64(&rng);
    }
}

/* Returns a random bit for a round and a pair, as all ones or all zeros. */
static uint64_t random_mask(uint64_t coin, uint64_t pair) {
    uint64_t x = (pair ^ coin) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 32)) * 0x94D049BB133111EBu;
    return 0 - (x >> 63);
}

static uint64_t swap_or_not(const leati_shuffle *shuffle, int round, uint64_t at) {
    uint64_t key = shuffle->round[round].partner;
    /* Masks replace branches here, because the CPU would mispredict half of them. */
    uint64_t partner = key - at + (shuffle->length & (0 - (uint64_t)(key < at)));
    uint64_t larger = at > partner ? at : partner;
    return at ^ ((at ^ partner) & random_mask(shuffle->round[round].coin, larger));
}

uint64_t leati_shuffle_at(const leati_shuffle *shuffle, uint64_t position) {
    for (int i = 0; i < shuffle->rounds; ++i) position = swap_or_not(shuffle, i, position);
    assert(position < shuffle->length);
    return position;
}

/* Permutes `lanes` positions together.  The rounds of one position depend on each other, but those of different
 * positions do not, so the CPU computes them in parallel. */
static inline void permute_lanes(const leati_shuffle *shuffle, uint64_t first, const int lanes,
                                 uint64_t *out) {
    uint64_t at[16];
    for (int j = 0; j < lanes; ++j) at[j] = first + (uint64_t)j;
    for (int i = 0; i < shuffle->rounds; ++i)
        for (int j = 0; j < lanes; ++j) at[j] = swap_or_not(shuffle, i, at[j]);
    for (int j = 0; j < lanes; ++j) out[j] = at[j];
}

/* With sixteen positions at once, the compiler can vectorize the loop. */
void leati_shuffle_range(const leati_shuffle *shuffle, uint64_t first, int64_t count, uint64_t *out) {
    int64_t done = 0;
    assert(count >= 0 && first <= shuffle->length && (uint64_t)count <= shuffle->length - first);
    for (; done + 16 <= count; done += 16) permute_lanes(shuffle, first + (uint64_t)done, 16, out + done);
    for (; done + 4 <= count; done += 4) permute_lanes(shuffle, first + (uint64_t)done, 4, out + done);
    for (; done < count; ++done) out[done] = leati_shuffle_at(shuffle, first + (uint64_t)done);
}
