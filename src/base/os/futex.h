/* SPDX-License-Identifier: Apache-2.0 */
/* Sleeping on a word of memory, and waiting without sleeping. */
#ifndef LEATI_BASE_OS_FUTEX_H
#define LEATI_BASE_OS_FUTEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef _Atomic uint32_t leati_futex;

/* Sleeps while *word == seen, until a wake-up, a signal, or timeout_ns (< 0: none).  May return early: the caller
 * looks again.  `shared`: the word lies in memory that several processes map. */
void leati_futex_wait(leati_futex *word, uint32_t seen, int64_t timeout_ns, bool shared);

/* Wakes at most `count` sleepers.  Async-signal-safe. */
void leati_futex_wake(leati_futex *word, int count, bool shared);

/* A moment's rest inside a spin loop. */
void leati_spin_pause(void);

#endif
