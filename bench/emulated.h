/* SPDX-License-Identifier: Apache-2.0 */
/* A communicator that behaves as if its requests went through a slower network: bench_ranks measures steps with it. */
#ifndef LEAT_BENCH_EMULATED_H
#define LEAT_BENCH_EMULATED_H

#include "dist/dist.h"

typedef struct bench_network {
    double bytes_per_s; /* 0: nothing is slower than it is */
    double latency_s;   /* of one message */
    bool bulk; /* one sum of all gradients after the backward pass, instead of buckets during the pass */
} bench_network;

enum { BENCH_BUCKETS = 64 };

/* What the communicator saw of the steps of a training. */
typedef struct bench_profile {
    int64_t steps; /* that had sums of gradients */
    int buckets;
    size_t bytes[BENCH_BUCKETS]; /* of each bucket in a step */
    double
        lead_ns[BENCH_BUCKETS]; /* summed over the steps: from the start of a sum to the end of computing */
    double tail_ns;             /* summed: from the end of computing to the end of the last sum */
} bench_profile;

/* Wraps a communicator, which the new one owns. */
leat_status bench_emulate(leat_dist **dist, const bench_network *network, leat_error *err);
/* Forgets what was seen. */
void bench_profile_reset(leat_dist *emulated);
const bench_profile *bench_profile_of(const leat_dist *emulated);

#endif
