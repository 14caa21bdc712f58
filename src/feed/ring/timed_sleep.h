/* SPDX-License-Identifier: Apache-2.0 */
/* The timed sleep of a worker.  Waking a worker costs the trainer 10 to 50 us.  So a worker measures how fast batches
 * are taken, and sleeps until a few new tickets should be open; then the trainer need not wake it.  The wake futex
 * still wakes the worker when the trainer waits, or when half of the queue is empty.  A worker that finds no ticket
 * several times in a row sleeps until the wake futex wakes it. */
#ifndef LEATI_FEED_RING_TIMED_SLEEP_H
#define LEATI_FEED_RING_TIMED_SLEEP_H

#include <stdint.h>

#include "base/threads/spin.h"

#define LEATI_TIMED_SLEEP_SHORTEST_NS                                                                        \
    (4 * LEATI_WAKE_UP_NS) /* a worker whose sleep would be shorter waits for the wake futex */
#define LEATI_TIMED_SLEEP_LONGEST_NS 100000000
#define LEATI_TIMED_SLEEP_FRUITLESS  3

/* The values of leati_worker_entry.sleeping. */
enum { LEATI_AWAKE = 0, LEATI_ASLEEP = 1, LEATI_TIMED_SLEEP = 2 };

typedef struct leati_timed_sleep {
    int64_t length_ns; /* of the next sleep; 0: not measured yet */
    int fruitless;     /* number of sleeps in a row after which no ticket was open */
} leati_timed_sleep;

/* Returns how long to sleep; -1: until the wake futex wakes the worker. */
static inline int64_t leati_timed_sleep_length(const leati_timed_sleep *timed_sleep) {
    if (timed_sleep->fruitless >= LEATI_TIMED_SLEEP_FRUITLESS ||
        timed_sleep->length_ns < LEATI_TIMED_SLEEP_SHORTEST_NS)
        return -1;
    return timed_sleep->length_ns < LEATI_TIMED_SLEEP_LONGEST_NS ? timed_sleep->length_ns
                                                                 : LEATI_TIMED_SLEEP_LONGEST_NS;
}

/* Learns from a rest: during rested_ns, `open` tickets were opened.  The next sleep shall end when about `wanted` are
 * open. */
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
