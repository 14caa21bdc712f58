/* SPDX-License-Identifier: Apache-2.0 */
/* Adaptive spinning before a thread sleeps: the spin is half as long after each wait that was longer than the longest
 * spin, and has its full length again after a shorter wait. */
#ifndef LEATI_BASE_THREADS_SPIN_H
#define LEATI_BASE_THREADS_SPIN_H

#include <stdint.h>

/* The approximate time to wake a thread on another core.  Spinning much longer costs more than it saves. */
#define LEATI_WAKE_UP_NS 50000

typedef struct leati_spin {
    int64_t longest_ns;
    int failures; /* number of waits in a row that were longer than longest_ns */
} leati_spin;

/* Returns how long to spin in the next wait, in ns; 0: sleep at once. */
static inline int64_t leati_spin_length(const leati_spin *spin) {
    int64_t length = spin->longest_ns >> spin->failures;
    return length < LEATI_WAKE_UP_NS / 64 ? 0 : length;
}

/* Records how long a wait took. */
static inline void leati_spin_learn(leati_spin *spin, int64_t waited_ns) {
    if (waited_ns <= spin->longest_ns)
        spin->failures = 0;
    else if (spin->failures < 32)
        ++spin->failures;
}

#endif
