/* SPDX-License-Identifier: Apache-2.0 */
/* Philox4x32-10, and uniform and normal numbers from its words.  Room: base. */
#include "base/rng.h"

#include <math.h>

static void philox_round(uint32_t x[4], uint32_t key0, uint32_t key1) {
    uint64_t p0 = (uint64_t)x[0] * 0xD2511F53u;
    uint64_t p1 = (uint64_t)x[2] * 0xCD9E8D57u;
    uint32_t y0 = (uint32_t)(p1 >> 32) ^ x[1] ^ key0;
    uint32_t y2 = (uint32_t)(p0 >> 32) ^ x[3] ^ key1;
    x[0] = y0;
    x[1] = (uint32_t)p1;
    x[2] = y2;
    x[3] = (uint32_t)p0;
}

void leati_philox(uint64_t key, uint64_t counter, uint64_t stream, uint32_t out[4]) {
    uint32_t key0 = (uint32_t)key, key1 = (uint32_t)(key >> 32);
    out[0] = (uint32_t)counter;
    out[1] = (uint32_t)(counter >> 32);
    out[2] = (uint32_t)stream;
    out[3] = (uint32_t)(stream >> 32);
    for (int round = 0; round < 10; ++round) {
        philox_round(out, key0, key1);
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
}

uint64_t leati_mix(uint64_t a, uint64_t b) {
    uint64_t x = a + 0x9E3779B97F4A7C15u * (b + 1);
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

leat_rng leat_rng_for(uint64_t seed, uint64_t pass, uint64_t index) {
    return (leat_rng){.key = leati_mix(seed, pass), .counter = {0, index}, .used = 4};
}

void leat_rng_for_into(uint64_t seed, uint64_t pass, uint64_t index, leat_rng *out) {
    if (out) *out = leat_rng_for(seed, pass, index);
}

uint32_t leat_rng_u32(leat_rng *rng) {
    if (!rng) return 0;
    if (rng->used == 4) {
        leati_philox(rng->key, rng->counter[0]++, rng->counter[1], rng->block);
        rng->used = 0;
    }
    return rng->block[rng->used++];
}

uint64_t leat_rng_u64(leat_rng *rng) {
    uint64_t high = leat_rng_u32(rng);
    return high << 32 | leat_rng_u32(rng);
}

uint64_t leat_rng_below(leat_rng *rng, uint64_t bound) {
    if (bound < 2) return 0;
    uint64_t rest = UINT64_MAX % bound, draw;
    do draw = leat_rng_u64(rng);
    while (rest != bound - 1 && draw >= UINT64_MAX - rest);
    return draw % bound;
}

double leat_rng_uniform(leat_rng *rng) {
    return (double)(leat_rng_u64(rng) >> 11) * 0x1p-53;
}

double leat_rng_normal(leat_rng *rng) {
    if (!rng) return 0;
    if (rng->has_normal) {
        rng->has_normal = 0;
        return rng->normal;
    }
    double radius = sqrt(-2 * log(1 - leat_rng_uniform(rng)));
    double angle = 6.283185307179586 * leat_rng_uniform(rng);
    rng->normal = radius * sin(angle);
    rng->has_normal = 1;
    return radius * cos(angle);
}
