/* SPDX-License-Identifier: Apache-2.0 */
/* The ring: slots of fixed size in one mapping, and the protocol by which one consumer and many workers share them.
 *
 *   FREE --issue (consumer)--> OPEN --claim (worker)--> CLAIMED by w --publish (worker)--> READY --issue--> OPEN ...
 *
 * Each change is one store or one compare-and-swap of the slot's state, so a worker may die between any two
 * instructions.  The slot of a dead worker stays CLAIMED by its number, and the worker that replaces it, with the same
 * number, makes the batch again.  Ticket t has slot t mod slot_count.  No locks are used. */
#ifndef LEATI_FEED_RING_RING_H
#define LEATI_FEED_RING_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "feed/ring/places.h"
#include "feed/ring/worker_table.h"
#include "leat/feed.h"

/* The state of a slot.  LEATI_SLOT_CLAIMED + w means that worker w has claimed it. */
enum { LEATI_SLOT_FREE = 0, LEATI_SLOT_OPEN = 1, LEATI_SLOT_READY = 2, LEATI_SLOT_CLAIMED = 3 };

/* The batch for which a slot is opened. */
typedef struct leati_job {
    uint64_t ticket;
    int64_t length; /* number of batches of the pass for this rank */
    /* number of samples of the pass; 0: samples are not shuffled and batches not cut, so that `get` makes the batch */
    int64_t samples;
    leat_feed_position position;
} leati_job;

typedef struct leati_slot {
    alignas(LEATI_CACHE_LINE) _Atomic uint32_t state;
    uint32_t deaths;            /* workers that died making this batch; the helper counts them */
    uint32_t timeouts;          /* workers that were killed because this batch was late */
    uint32_t place_shift;       /* see leati_ring_place; the consumer changes it */
    _Atomic int64_t started_ns; /* when the worker began; 0 before */
    _Atomic uint32_t
        discarded;  /* 1: the consumer does not want the batch any more, and it need not be made */
    leati_job job;  /* written by the consumer before OPEN */
    int32_t status; /* a leat_status; the worker writes it and all members below before READY */
    int32_t worker;
    int32_t retries;
    int64_t get_ns, ended_ns;
    leat_batch batch;
    leat_error error;
} leati_slot;

/* The part of the mapping before the slots.  Members that the consumer or the workers write often have their own cache
 * lines. */
typedef struct leati_ring_shared {
    /* Tickets below this number may be claimed.  Only the consumer writes it. */
    alignas(LEATI_CACHE_LINE) _Atomic uint64_t issued;
    /* All tickets below this number are claimed.  Only the workers write it. */
    alignas(LEATI_CACHE_LINE) _Atomic uint64_t hint;
    /* The ticket for which the consumer sleeps, plus 1; 0: the consumer is awake. */
    alignas(LEATI_CACHE_LINE) _Atomic uint64_t awaited;
    leati_futex consumer_wake;
    /* 1: no further batch is made or delivered; it is never reset. */
    alignas(LEATI_CACHE_LINE) _Atomic uint32_t stop;
    _Atomic uint32_t failed;        /* 0: no failure; 1: `failure` is being written; 2: `failure` is valid */
    _Atomic uint64_t state_version; /* how often `state` was replaced */
    /* Numbers of workers that died, or were killed because they were late, with a batch of this ring or with none. */
    _Atomic int64_t deaths, timeouts;
    _Atomic int64_t replaced; /* number of workers that ended because they needed too much memory */
    leat_error failure;       /* the error of the whole feed, not of one batch */
} leati_ring_shared;

/* A ring, as one process sees it.  The mapping has the same address in all processes, so that copies of this struct
 * that fork makes are valid. */
typedef struct leati_ring {
    leati_ring_shared *shared;
    const leati_worker_table *table; /* the workers of the ring */
    leati_slot *slots;
    unsigned char *state;   /* the sequence's state of version state_version */
    _Atomic size_t *backed; /* for each place, the bytes at its beginning that have memory */
    unsigned char *data;    /* the tensors of place i: data + i * slot_bytes */
    size_t slot_bytes;      /* a multiple of the page size */
    size_t state_offset, backed_offset, data_offset; /* from the beginning of the mapping */
    size_t bytes;                                    /* of the mapping */
    uint64_t slot_count;
    uint64_t place_count;  /* slot_count, and one for each batch that the caller may keep */
    leati_places *places;  /* NULL in a process that the caller did not fork */
    int owner;             /* the only worker that may claim tickets; -1: any worker */
    bool backed_by_worker; /* workers allocate the pages of places; false: all pages exist from the start */
    bool elastic;          /* a place gets memory for as many bytes as a batch reserves */
    int64_t batch_ns;      /* the time that making the last delivered batch took; for the consumer only */
    size_t tensor_offset[LEAT_BATCH_MAX_TENSORS];
} leati_ring;

static inline leati_slot *leati_ring_slot(const leati_ring *ring, uint64_t ticket) {
    return &ring->slots[ticket % ring->slot_count];
}

/* Returns the number of the place that has the slot's tensors: at first the slot's own number.  The slot stores the
 * difference, so that memory of zeros is right, and a long queue has memory for those slots only that are in use. */
static inline uint32_t leati_ring_place(const leati_ring *ring, const leati_slot *slot) {
    return (uint32_t)(slot - ring->slots) + slot->place_shift;
}

static inline void leati_ring_set_place(const leati_ring *ring, leati_slot *slot, uint32_t place) {
    slot->place_shift = place - (uint32_t)(slot - ring->slots);
}

static inline unsigned char *leati_ring_tensor(const leati_ring *ring, const leati_slot *slot, int i) {
    return ring->data + (size_t)leati_ring_place(ring, slot) * ring->slot_bytes + ring->tensor_offset[i];
}

/* Consumer: opens the slot of job->ticket, which must be FREE or READY and not in use. */
void leati_ring_open_slot(leati_ring *ring, const leati_job *job);

/* Consumer: allows all tickets below `issued` to be claimed and wakes workers for them.  If making a batch takes less
 * time than waking a worker, or a worker is in a timed sleep, the function wakes no worker before half of the slots are
 * open.  With `urgent` it wakes them at once: the consumer waits, or no more tickets follow. */
void leati_ring_announce(leati_ring *ring, uint64_t issued, bool urgent);

/* Returns the number of tickets that may be claimed and are not claimed yet. */
uint64_t leati_ring_open_tickets(const leati_ring *ring);

typedef enum leati_wait {
    LEATI_WAIT_READY,
    LEATI_WAIT_STOPPED,
    LEATI_WAIT_FAILED,
    LEATI_WAIT_TICK
} leati_wait;

/* Consumer: returns if the ticket's batch is ready, or the feed is stopped or has failed; LEATI_WAIT_TICK: none of
 * these. */
leati_wait leati_ring_look(leati_ring *ring, uint64_t ticket);

/* Consumer: waits until leati_ring_look() returns something other than LEATI_WAIT_TICK.  It spins at most spin_ns (with
 * only_idle_cores: only if a core is idle) and then sleeps at most sleep_ns (< 0: as long as it takes). */
leati_wait leati_ring_await(leati_ring *ring, uint64_t ticket, int64_t spin_ns, bool only_idle_cores,
                            int64_t sleep_ns);

/* Returns true until the ring is stopped or has failed. */
bool leati_ring_is_live(const leati_ring *ring);

/* Worker: returns true if there seems to be a ticket that the worker may claim. */
bool leati_ring_has_work(const leati_ring *ring, int worker);
/* Worker: claims the next ticket and returns its slot; NULL if there is none. */
leati_slot *leati_ring_claim(leati_ring *ring, int worker);

/* Returns the slot that a worker of this number has claimed and not published, or NULL. */
leati_slot *leati_ring_claimed_by(const leati_ring *ring, int worker);

/* Worker, or the helper for a dead worker: hands the slot to the consumer, with a batch or with an error. */
void leati_ring_publish(leati_ring *ring, leati_slot *slot);

/* Any thread or process: ends the feed.  leati_ring_stop is async-signal-safe; leati_ring_fail keeps the first
 * failure. */
void leati_ring_stop(leati_ring *ring);
void leati_ring_fail(leati_ring *ring, const leat_error *failure);

/* Helper: wakes the consumer if it sleeps, because a worker may have died between publishing and waking. */
void leati_ring_nudge_consumer(leati_ring *ring);

#endif
