/* SPDX-License-Identifier: Apache-2.0 */
/* Futexes: threads sleep until a word of memory changes.  Also the pause of a spin loop. */
#ifndef LEATI_BASE_OS_FUTEX_H
#define LEATI_BASE_OS_FUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef _Atomic uint32_t leati_futex;

/* Sleeps while *word == seen, until a wake-up, a signal, or the end of timeout_ns (negative: no timeout).  May return
 * early, so the caller checks the word again.  `shared`: the word lies in memory that several processes map. */
void leati_futex_wait(leati_futex *word, uint32_t seen, int64_t timeout_ns, bool shared);

/* Wakes at most `count` threads that sleep on the word.  Async-signal-safe. */
void leati_futex_wake(leati_futex *word, int count, bool shared);

/* Tells the CPU that this thread spins: costs some cycles, and leaves resources to the core's other hardware
 * thread. */
void leati_spin_pause(void);

#endif
