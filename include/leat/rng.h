/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers as a function of a key: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011).  A batch's generator is keyed by (seed, pass, index), so that neither the number nor the
 * kind of workers changes what a batch draws. */
#ifndef LEAT_RNG_H
#define LEAT_RNG_H

#include <stdint.h>

#include "leat/version.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A stream of random numbers.  Plain data: copy it to fork the stream, compare it to compare positions. */
typedef struct leat_rng {
    uint64_t key;        /* of (seed, pass): all batches of a pass have the same */
    uint64_t counter[2]; /* counter[0] advances with each block of four words, counter[1] names the stream */
    uint32_t block[4];
    uint32_t used; /* words of block already handed out, 4 when it is spent */
    uint32_t has_normal;
    double normal; /* the second of a pair of normal deviates */
} leat_rng;

/** The stream that belongs to (seed, pass, index).  Streams of different triples are independent.
 *  Threads: any; a leat_rng itself is externally synchronised. */
LEAT_API leat_rng leat_rng_for(uint64_t seed, uint64_t pass, uint64_t index);

/** leat_rng_for through a pointer.  out NULL: nothing happens. */
LEAT_API void leat_rng_for_into(uint64_t seed, uint64_t pass, uint64_t index, leat_rng *out);

/** The next 32 or 64 random bits. */
LEAT_API uint32_t leat_rng_u32(leat_rng *rng);
LEAT_API uint64_t leat_rng_u64(leat_rng *rng);

/** A whole number in [0, bound), without bias; 0 where bound is 0. */
LEAT_API uint64_t leat_rng_below(leat_rng *rng, uint64_t bound);

/** A number in [0, 1) with 53 random bits. */
LEAT_API double leat_rng_uniform(leat_rng *rng);

/** A normal deviate, mean 0, standard deviation 1 (Box and Muller 1958). */
LEAT_API double leat_rng_normal(leat_rng *rng);

#ifdef __cplusplus
}
#endif
#endif
