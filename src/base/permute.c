/* SPDX-License-Identifier: Apache-2.0 */
/* A Feistel network over the next power of two, walked until it lands inside [0, length) (Black and Rogaway,
 * "Ciphers with arbitrary finite domains", CT-RSA 2002).  Layer: base. */
#include "base/permute.h"

#include "base/rng.h"

enum { rounds = 8 };

static uint64_t mask(unsigned bits) {
    return bits ? UINT64_MAX >> (64 - bits) : 0;
}

/* One trip through the network: `high` bits on top of `low` bits. */
static uint64_t encipher(uint64_t key, uint64_t value, unsigned high, unsigned low) {
    uint64_t left = value >> low, right = value & mask(low);
    for (uint64_t round = 0; round < rounds; round += 2) {
        left ^= leati_mix(key + round, right) & mask(high);
        right ^= leati_mix(key + round + 1, left) & mask(low);
    }
    return left << low | right;
}

uint64_t leati_permute_keyed(uint64_t key, uint64_t ordinal, uint64_t length) {
    unsigned bits = 1;
    while (bits < 63 && (UINT64_C(1) << bits) < length) ++bits;
    uint64_t value = ordinal;
    do value = encipher(key, value, bits / 2, bits - bits / 2);
    while (value >= length);
    return value;
}

uint64_t leati_permute(uint64_t seed, uint64_t pass, uint64_t ordinal, uint64_t length) {
    return leati_permute_keyed(leati_mix(seed, pass), ordinal, length);
}
