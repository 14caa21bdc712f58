/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers by SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014). */
#include "cuda/sim/chance.h"

#include <stdlib.h>

static uint64_t &state() {
    static uint64_t value = [] {
        const char *seed = getenv("LEAT_SIM_SEED");
        return seed ? strtoull(seed, nullptr, 10) : 1;
    }();
    return value;
}

void sim_seed(uint64_t seed) {
    state() = seed;
}

uint32_t sim_below(uint32_t n) {
    uint64_t z = state() += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return static_cast<uint32_t>((z >> 32) * n >> 32);
}
