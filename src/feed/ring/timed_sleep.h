/* SPDX-License-Identifier: Apache-2.0 */
/* How long a worker sleeps by the clock.  Waking a sleeper costs the trainer 10 to 50 us; a worker that has learnt how fast
 * batches are taken comes by itself when a few are, and costs the trainer nothing.  The wake futex wakes it all the same: when
 * the trainer waits, or half of the queue is gone.  Who finds nothing several times in a row sleeps until the wake futex. */
#ifndef LEATI_FEED_RING_TIMED_SLEEP_H
#define LEATI_FEED_RING_TIMED_SLEEP_H

#include <stdint.h>

#include "base/threads/spin.h"

#define LEATI_TIMED_SLEEP_SHORTEST_NS                                                                        \
    (4 * LEATI_WAKE_UP_NS) /* what is over sooner is left to the wake futex */
#define LEATI_TIMED_SLEEP_LONGEST_NS 100000000
#define LEATI_TIMED_SLEEP_FRUITLESS  3

/* The state of a worker's `sleeping`. */
enum { LEATI_AWAKE = 0, LEATI_ASLEEP = 1, LEATI_TIMED_SLEEP = 2 };

typedef struct leati_timed_sleep {
    int64_t length_ns; /* 0: not learnt */
    int fruitless;     /* in a row */
} leati_timed_sleep;

/* How long to sleep; -1: until the wake futex. */
static inline int64_t leati_timed_sleep_length(const leati_timed_sleep *timed_sleep) {
    if (timed_sleep->fruitless >= LEATI_TIMED_SLEEP_FRUITLESS ||
        timed_sleep->length_ns < LEATI_TIMED_SLEEP_SHORTEST_NS)
        return -1;
    return timed_sleep->length_ns < LEATI_TIMED_SLEEP_LONGEST_NS ? timed_sleep->length_ns
                                                                 : LEATI_TIMED_SLEEP_LONGEST_NS;
}

/* While the worker rested so long, `open` tickets came up; it is to find about `wanted` of them next time. */
static inline void leati_timed_sleep_learn(leati_timed_sleep *timed_sleep, int64_t rested_ns, uint64_t open,
                                           uint64_t wanted) {
    if (open == 0) {
        if (timed_sleep->fruitless < LEATI_TIMED_SLEEP_FRUITLESS) ++timed_sleep->fruitless;
        return;
    }
    timed_sleep->fruitless = 0;
    timed_sleep->length_ns = rested_ns / (int64_t)open * (int64_t)wanted;
}

#endif
