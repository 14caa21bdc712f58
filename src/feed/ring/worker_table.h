/* SPDX-License-Identifier: Apache-2.0 */
/* The worker table: the states of the workers of one worker pool, and the wake futex that wakes them.  It is one
 * mapping, shared between processes if the workers are processes. */
#ifndef LEATI_FEED_RING_WORKER_TABLE_H
#define LEATI_FEED_RING_WORKER_TABLE_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "feed/ring/mapping.h"
#include "feed/ring/timed_sleep.h"
#include "base/os/futex.h"
#include "base/threads/spin.h"
#include "leat/error.h"

#define LEATI_MAX_WORKERS 1024
#define LEATI_CACHE_LINE  64

/* The phases of a worker. */
typedef enum leati_worker_phase {
    LEATI_WORKER_STARTING,
    LEATI_WORKER_RUNNING,
    LEATI_WORKER_REFUSED, /* worker_init failed */
    LEATI_WORKER_LARGE,   /* the process has too much memory, and ends for another one */
    LEATI_WORKER_GONE     /* the worker is a thread and makes no further batch */
} leati_worker_phase;

typedef struct leati_worker_entry {
    alignas(LEATI_CACHE_LINE) _Atomic uint32_t phase; /* a leati_worker_phase */
    _Atomic int32_t pid;                              /* of a worker process */
    /* LEATI_ASLEEP or LEATI_TIMED_SLEEP while the worker sleeps on the wake futex.  There is no count of sleepers,
     * because the death of a worker would make it wrong. */
    _Atomic uint32_t sleeping;
    _Atomic int64_t busy_ns;       /* total time inside get; only the worker writes it */
    leati_spin spin;               /* only the worker uses it */
    leati_timed_sleep timed_sleep; /* only the worker uses it */
    leat_error error;              /* the error of worker_init, with LEATI_WORKER_REFUSED */
} leati_worker_entry;

typedef struct leati_worker_table_shared {
    alignas(LEATI_CACHE_LINE) leati_futex wake_futex;
    alignas(LEATI_CACHE_LINE) _Atomic uint32_t generation; /* workers of an earlier generation exit */
    _Atomic uint32_t helper_renews; /* 1: the helper program can receive new data (leat_helper_serve) */
    _Atomic uint32_t helper_runs;   /* 0: a helper program has not come to leat_helper_run yet */
} leati_worker_table_shared;

/* A worker table, as one process sees it. */
typedef struct leati_worker_table {
    leati_worker_table_shared *shared;
    leati_worker_entry *workers;
    leati_mapping mapping;
    int count; /* number of workers; 0: the caller makes the batches */
    int cores; /* number of cores that this process may use */
    bool between_processes;
    bool wake_all; /* wake all workers, because a ring has an owner and must wake that one */
} leati_worker_table;

/* Maps a table of `count` workers; with by_descriptor, their program maps it by a descriptor.  Errors: LEAT_EIO,
 * LEAT_ENOMEM. */
leat_status leati_worker_table_init(leati_worker_table *table, int count, bool between_processes,
                                    bool by_descriptor, leat_error *err);

/* Sets the table's pointers to its mapping. */
void leati_worker_table_point(leati_worker_table *table);

void leati_worker_table_fini(leati_worker_table *table);

/* Adds one to the value of the wake futex and wakes at most `count` workers that sleep on it. */
void leati_wake_futex(leati_futex *wake_futex, int count, bool between_processes);

/* Wakes at most `most` sleeping workers. */
void leati_worker_table_wake(const leati_worker_table *table, uint64_t most);

/* Wakes all workers, also those that are about to sleep.  Async-signal-safe. */
void leati_worker_table_alarm(const leati_worker_table *table);

/* Makes the workers of the present generation exit after the batches that they are making. */
void leati_worker_table_retire(const leati_worker_table *table);

/* Returns true if a worker is in a timed sleep, and so will look for tickets without being woken. */
bool leati_worker_table_has_timed_sleeper(const leati_worker_table *table);

/* Returns true if there are at least as many cores as threads that are awake: the consumer and the workers that do not
 * sleep. */
bool leati_worker_table_core_is_idle(const leati_worker_table *table);

/* Sets whether children that are forked from now on have the mapping. */
void leati_worker_table_inherit(const leati_worker_table *table, bool inherit);

#endif
