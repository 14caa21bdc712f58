/* SPDX-License-Identifier: Apache-2.0 */
/* How long one side spins before it sleeps: less and less while the waits are longer than spinning can bridge, all of it
 * again as soon as one was not. */
#ifndef LEATI_BASE_THREADS_SPIN_H
#define LEATI_BASE_THREADS_SPIN_H

#include <stdint.h>

/* About what waking a sleeper on another core takes: the longest spin that can pay. */
#define LEATI_WAKE_UP_NS 50000

typedef struct leati_spin {
    int64_t longest_ns;
    int failures; /* in a row */
} leati_spin;

static inline int64_t leati_spin_length(const leati_spin *spin) {
    int64_t length = spin->longest_ns >> spin->failures;
    return length < LEATI_WAKE_UP_NS / 64 ? 0 : length;
}

static inline void leati_spin_learn(leati_spin *spin, int64_t waited_ns) {
    if (waited_ns <= spin->longest_ns)
        spin->failures = 0;
    else if (spin->failures < 32)
        ++spin->failures;
}

#endif
