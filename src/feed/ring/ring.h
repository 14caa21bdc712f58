/* SPDX-License-Identifier: Apache-2.0 */
/* The ring: slots of fixed size in one mapping, and the protocol by which one consumer and many workers share them.
 *
 *   FREE --issue (consumer)--> OPEN --claim (worker)--> CLAIMED by w --publish (worker)--> READY --issue--> OPEN ...
 *
 * Each change is one store or one compare-and-swap on the slot's state, so that a worker may die between any two
 * instructions: a slot then stays CLAIMED by its number, and who takes that number over makes the batch again.
 * Ticket t lies in slot t mod slot_count.  Nobody ever holds a lock. */
#ifndef LEATI_FEED_RING_RING_H
#define LEATI_FEED_RING_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "feed/ring/worker_table.h"
#include "leat/feed.h"

/* A slot's state; CLAIMED + w says which worker has it. */
enum { LEATI_SLOT_FREE = 0, LEATI_SLOT_OPEN = 1, LEATI_SLOT_READY = 2, LEATI_SLOT_CLAIMED = 3 };

/* Which batch a slot is for. */
typedef struct leati_job {
    uint64_t ticket;
    int64_t length;  /* batches of its pass that this rank gets */
    int64_t samples; /* of its pass; 0 where they are not shuffled */
    leat_feed_position position;
} leati_job;

typedef struct leati_slot {
    alignas(LEATI_CACHE_LINE) _Atomic uint32_t state;
    uint32_t deaths;            /* workers lost on this job; the helper's */
    uint32_t timeouts;          /* of them, killed for being late */
    _Atomic uint32_t backed;    /* its memory is there: set by the first worker that had it */
    _Atomic int64_t started_ns; /* when its worker began; 0 before */
    leati_job job;              /* written by the consumer before OPEN */
    int32_t status; /* a leat_status, with `error`: written by the worker before READY, as what follows */
    int32_t worker;
    int32_t retries;
    int64_t get_ns, ended_ns;
    leat_batch batch;
    leat_error error;
} leati_slot;

/* The part of the mapping that is not slots.  What each side writes often has a cache line of its own. */
typedef struct leati_ring_shared {
    alignas(LEATI_CACHE_LINE) _Atomic uint64_t issued; /* tickets below it may be claimed; the consumer's */
    alignas(LEATI_CACHE_LINE) _Atomic uint64_t hint;   /* all tickets below it are claimed; the workers' */
    alignas(
        LEATI_CACHE_LINE) _Atomic uint64_t awaited; /* ticket + 1 that the consumer sleeps for; 0: awake */
    leati_futex consumer_wake;
    alignas(LEATI_CACHE_LINE) _Atomic uint32_t stop; /* sticky: no further batch is made or delivered */
    _Atomic uint32_t failed;                         /* 0, 1 while `failure` is being written, 2 */
    _Atomic uint64_t state_version;                  /* how often `state` was replaced */
    _Atomic int64_t deaths, timeouts; /* of workers that had one of its batches in hand, or none at all */
    leat_error failure;               /* of the feed as a whole, not of one batch */
} leati_ring_shared;

/* A process's own view of a ring.  The mapping lies at one address in all of them, so that copies made by fork hold. */
typedef struct leati_ring {
    leati_ring_shared *shared;
    const leati_worker_table *table; /* its workers */
    leati_slot *slots;
    unsigned char *state; /* the sequence's state block, as of state_version */
    unsigned char *data;  /* slot i's tensors: data + i * slot_bytes */
    size_t slot_bytes;    /* whole pages */
    size_t bytes;         /* of the mapping */
    uint64_t slot_count;
    int owner;             /* the one worker that may claim; -1: any */
    bool backed_by_worker; /* slots get their memory from workers; otherwise it was there from the start */
    int64_t batch_ns;      /* the consumer's: what making the batch took that was delivered last */
    size_t tensor_offset[LEAT_BATCH_MAX_TENSORS];
} leati_ring;

static inline leati_slot *leati_ring_slot(const leati_ring *ring, uint64_t ticket) {
    return &ring->slots[ticket % ring->slot_count];
}

/* Consumer: opens a slot that is not in use for job->ticket. */
void leati_ring_open_slot(leati_ring *ring, const leati_job *job);

/* Consumer: all tickets below `issued` may be claimed.  Wakes workers for them; where making a batch costs less than
 * waking somebody, or a worker is going to come by itself, not before half of the slots are open, unless it is urgent:
 * somebody waits, or no more tickets come. */
void leati_ring_announce(leati_ring *ring, uint64_t issued, bool urgent);

/* Tickets that may be claimed and were not yet. */
uint64_t leati_ring_open_tickets(const leati_ring *ring);

typedef enum leati_wait {
    LEATI_WAIT_READY,
    LEATI_WAIT_STOPPED,
    LEATI_WAIT_FAILED,
    LEATI_WAIT_TICK
} leati_wait;

/* Consumer: what holds for a ticket at this moment; LEATI_WAIT_TICK: nothing yet. */
leati_wait leati_ring_look(leati_ring *ring, uint64_t ticket);

/* Consumer: waits until something holds, spinning at most spin_ns (on a core that is idle, or on any) and sleeping at
 * most sleep_ns (< 0: as long as it takes). */
leati_wait leati_ring_await(leati_ring *ring, uint64_t ticket, int64_t spin_ns, bool only_idle_cores,
                            int64_t sleep_ns);

/* Whether batches are still wanted. */
bool leati_ring_is_live(const leati_ring *ring);

/* Worker: whether there seems to be a ticket for it; and the slot of the next one, NULL where there is none. */
bool leati_ring_has_work(const leati_ring *ring, int worker);
leati_slot *leati_ring_claim(leati_ring *ring, int worker);

/* Whoever takes over a dead worker's number: the slot it had claimed, or NULL. */
leati_slot *leati_ring_claimed_by(const leati_ring *ring, int worker);

/* Worker, or the helper in the place of a dead one: hands the slot, filled or with an error, to the consumer. */
void leati_ring_publish(leati_ring *ring, leati_slot *slot);

/* Anybody: ends the feed.  stop is async-signal-safe; the first failure is kept. */
void leati_ring_stop(leati_ring *ring);
void leati_ring_fail(leati_ring *ring, const leat_error *failure);

/* Wakes the consumer if it sleeps: a worker may have died between publishing and waking. */
void leati_ring_nudge_consumer(leati_ring *ring);

#endif
