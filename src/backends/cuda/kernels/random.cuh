/* SPDX-License-Identifier: Apache-2.0 */
/* Philox4x32-10 in kernels, as in base/rng.c; engine/random.h says which words belong to which elements. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_RANDOM_CUH
#define LEATI_BACKENDS_CUDA_KERNELS_RANDOM_CUH

#include "backends/cuda/kernels/common.cuh"

struct leati_words {
    uint32_t word[4];
};

static __device__ __forceinline__ uint64_t leati_mix(uint64_t a, uint64_t b) {
    uint64_t x = a + 0x9E3779B97F4A7C15u * (b + 1);
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* Returns the words of `block` of the run whose seed and step are in `clock`. */
static __device__ __forceinline__ leati_words leati_random_words(const uint64_t *clock, uint64_t stream,
                                                                 uint64_t block) {
    uint64_t key = leati_mix(clock[0], clock[1]);
    uint32_t key0 = (uint32_t)key, key1 = (uint32_t)(key >> 32);
    uint32_t x0 = (uint32_t)block, x1 = (uint32_t)(block >> 32);
    uint32_t x2 = (uint32_t)stream, x3 = (uint32_t)(stream >> 32);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        uint32_t high0 = __umulhi(x0, 0xD2511F53u), high1 = __umulhi(x2, 0xCD9E8D57u);
        uint32_t low0 = x0 * 0xD2511F53u, low1 = x2 * 0xCD9E8D57u;
        x0 = high1 ^ x1 ^ key0;
        x2 = high0 ^ x3 ^ key1;
        x1 = low1;
        x3 = low0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return {{x0, x1, x2, x3}};
}

#endif
