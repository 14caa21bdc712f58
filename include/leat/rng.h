/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers as a function of a key: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2,
 * 3", SC 2011).  The random numbers of a batch are a function of (seed, pass, index), so that they depend neither
 * on the number of workers nor on their kind. */
#ifndef LEAT_RNG_H
#define LEAT_RNG_H

#include <stdint.h>

#include "leat/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A stream of random numbers.  It is plain data: a copy is a second stream that continues with the same numbers.
 *  Threads: externally synchronised. */
typedef struct leat_rng {
    uint64_t key; /* a function of (seed, pass): equal for all batches of a pass */
    /* counter[0] counts blocks of four words; counter[1] is the number of the stream */
    uint64_t counter[2];
    uint32_t block[4];
    uint32_t used; /* words of `block` that were already returned; 4: all */
    uint32_t has_normal;
    /* if has_normal: the second number of a pair of normal deviates, which is returned next */
    double normal;
} leat_rng;

/** Returns the stream for (seed, pass, index).  Streams of different triples are independent.  Threads: any. */
LEAT_API leat_rng leat_rng_for(uint64_t seed, uint64_t pass, uint64_t index);

/** Like leat_rng_for, but writes the stream into *out.  out NULL: does nothing.  Threads: any. */
LEAT_API void leat_rng_for_into(uint64_t seed, uint64_t pass, uint64_t index, leat_rng *out);

/** Returns the next 32 or 64 random bits. */
LEAT_API uint32_t leat_rng_u32(leat_rng *rng);
LEAT_API uint64_t leat_rng_u64(leat_rng *rng);

/** Returns a uniformly distributed integer in [0, bound), without bias; 0 if bound is 0. */
LEAT_API uint64_t leat_rng_below(leat_rng *rng, uint64_t bound);

/** Returns a uniformly distributed number in [0, 1) with 53 random bits. */
LEAT_API double leat_rng_uniform(leat_rng *rng);

/** Returns a normally distributed number with mean 0 and standard deviation 1 (Box and Muller 1958). */
LEAT_API double leat_rng_normal(leat_rng *rng);

#ifdef __cplusplus
}
#endif
#endif
