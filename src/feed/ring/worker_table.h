/* SPDX-License-Identifier: Apache-2.0 */
/* The workers of one pool, as all processes see them: who runs, who sleeps, and the wake futex that wakes them.  One mapping,
 * shared where the workers are processes. */
#ifndef LEATI_FEED_RING_WORKER_TABLE_H
#define LEATI_FEED_RING_WORKER_TABLE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "feed/ring/timed_sleep.h"
#include "base/os/futex.h"
#include "base/threads/spin.h"
#include "leat/error.h"

#define LEATI_MAX_WORKERS 1024
#define LEATI_CACHE_LINE  64

/* What is known of one worker. */
typedef enum leati_worker_phase {
    LEATI_WORKER_STARTING,
    LEATI_WORKER_RUNNING,
    LEATI_WORKER_REFUSED, /* worker_init failed */
    LEATI_WORKER_GONE     /* a thread that makes no further batch */
} leati_worker_phase;

typedef struct leati_worker_entry {
    alignas(LEATI_CACHE_LINE) _Atomic uint32_t phase; /* a leati_worker_phase */
    _Atomic int32_t pid;                              /* of a worker process */
    _Atomic uint32_t
        sleeping; /* on the wake futex, LEATI_ASLEEP or LEATI_TIMED_SLEEP; a flag, so that a death leaves no count wrong */
    _Atomic int64_t busy_ns; /* inside get, in all; the worker's */
    leati_spin spin;         /* the worker's own, as timed_sleep */
    leati_timed_sleep timed_sleep;
    leat_error error; /* why worker_init failed, with LEATI_WORKER_REFUSED */
} leati_worker_entry;

typedef struct leati_worker_table_shared {
    alignas(LEATI_CACHE_LINE) leati_futex wake_futex;
    alignas(LEATI_CACHE_LINE) _Atomic uint32_t generation; /* workers of an earlier one leave */
} leati_worker_table_shared;

/* A process's own view. */
typedef struct leati_worker_table {
    leati_worker_table_shared *shared;
    leati_worker_entry *workers;
    size_t bytes; /* of the mapping */
    int count;    /* workers; 0: the callers make the batches */
    int cores;    /* that this process may use */
    bool between_processes;
    bool wake_all; /* some work is for one worker alone, so that no other may take its wake-up */
} leati_worker_table;

/* Errors: LEAT_EIO, LEAT_ENOMEM. */
leat_status leati_worker_table_init(leati_worker_table *table, int count, bool between_processes,
                                    leat_error *err);
void leati_worker_table_fini(leati_worker_table *table);

/* Adds one to the wake futex's word and wakes so many of those that sleep on it. */
void leati_wake_futex(leati_futex *wake_futex, int count, bool between_processes);

/* Wakes at most `most` sleeping workers. */
void leati_worker_table_wake(const leati_worker_table *table, uint64_t most);

/* Wakes all, asleep or about to sleep.  Async-signal-safe. */
void leati_worker_table_alarm(const leati_worker_table *table);

/* Sends the workers of this generation home, once they have finished the batch in hand. */
void leati_worker_table_retire(const leati_worker_table *table);

/* Whether a worker is going to come by itself. */
bool leati_worker_table_has_timed_sleeper(const leati_worker_table *table);

/* Whether the caller of this, the consumer and the workers that are awake leave no core to share. */
bool leati_worker_table_core_is_idle(const leati_worker_table *table);

/* Shares the mapping with children that are forked from now on, or does not. */
void leati_worker_table_inherit(const leati_worker_table *table, bool inherit);

#endif
