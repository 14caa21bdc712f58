/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol between one consumer and its workers, all of it.  Layer: feed.
 *
 * Both sides sleep by the same rule, which loses no wake-up: the sleeper says that it sleeps, then looks once more, then
 * waits on a bell's value that it read before it looked; the other side first changes what the sleeper looks for, then
 * reads whether somebody sleeps, then rings the bell.  These four accesses are sequentially consistent. */
#include "feed/ring.h"

#include <limits.h>
#include <sched.h>

#include "base/clock.h"
#include "base/error.h"

#define YIELDS 4
#define SPINS  64 /* looks between two of them */

int64_t leati_spin_length(const leati_spin *spin) {
    int64_t length = spin->longest_ns >> spin->failures;
    return length < LEATI_WAKE_UP_NS / 64 ? 0 : length;
}

void leati_spin_learn(leati_spin *spin, int64_t waited_ns) {
    if (waited_ns <= spin->longest_ns)
        spin->failures = 0;
    else if (spin->failures < 32)
        ++spin->failures;
}

static void ring_bell(const leati_ring *ring, leati_futex *bell, int count) {
    atomic_fetch_add(bell, 1);
    leati_futex_wake(bell, count, ring->between_processes);
}

void leati_ring_open_slot(leati_ring *ring, const leati_job *job) {
    leati_slot *slot = leati_ring_slot(ring, job->ticket);
    slot->job = *job;
    slot->deaths = 0;
    atomic_store_explicit(&slot->state, LEATI_SLOT_OPEN, memory_order_release);
}

static uint64_t open_tickets(const leati_ring *ring) {
    uint64_t claimed = atomic_load(&ring->shared->hint), issued = atomic_load(&ring->shared->issued);
    return issued > claimed ? issued - claimed : 0;
}

static void wake_workers(const leati_ring *ring, uint64_t most) {
    uint64_t sleepers = 0;
    for (int i = 0; i < ring->worker_count && sleepers < most; ++i)
        sleepers += atomic_load(&ring->workers[i].sleeping) != 0;
    if (sleepers) ring_bell(ring, &ring->shared->worker_bell, (int)sleepers);
}

void leati_ring_announce(leati_ring *ring, uint64_t issued, bool urgent) {
    atomic_store(&ring->shared->issued, issued);
    uint64_t open = open_tickets(ring);
    bool cheap = ring->batch_ns < LEATI_WAKE_UP_NS;
    uint64_t gather = cheap && !urgent ? ring->slot_count / 2 : 1;
    if (open < gather) return;
    /* Work that a worker does before another would be awake needs no other. */
    uint64_t workers = cheap ? 1 + open * (uint64_t)ring->batch_ns / LEATI_WAKE_UP_NS : open;
    wake_workers(ring, workers < open ? workers : open);
}

/* Whether the caller of this, the consumer and the workers that are awake leave no core to share. */
static bool core_is_idle(const leati_ring *ring) {
    int awake = 1;
    for (int i = 0; i < ring->worker_count && awake <= ring->cores; ++i)
        awake += atomic_load_explicit(&ring->workers[i].sleeping, memory_order_relaxed) == 0;
    return awake <= ring->cores;
}

leati_wait leati_ring_look(leati_ring *ring, uint64_t ticket) {
    leati_ring_shared *shared = ring->shared;
    if (atomic_load(&shared->stop)) return LEATI_WAIT_STOPPED;
    if (atomic_load(&shared->failed) == 2) return LEATI_WAIT_FAILED;
    return atomic_load(&leati_ring_slot(ring, ticket)->state) == LEATI_SLOT_READY ? LEATI_WAIT_READY
                                                                                  : LEATI_WAIT_TICK;
}

/* Somebody unknown may want this core all the same, and it may be the very one that is waited for: a spin gives way every
 * few microseconds. */
static leati_wait spin_for(leati_ring *ring, uint64_t ticket, int64_t spin_ns) {
    leati_wait seen = LEATI_WAIT_TICK;
    for (int64_t end = leati_now_ns() + spin_ns; seen == LEATI_WAIT_TICK && leati_now_ns() < end;
         sched_yield())
        for (int i = 0; i < SPINS && seen == LEATI_WAIT_TICK; ++i) {
            leati_spin_pause();
            seen = leati_ring_look(ring, ticket);
        }
    return seen;
}

static leati_wait sleep_for(leati_ring *ring, uint64_t ticket, int64_t sleep_ns) {
    wake_workers(ring, open_tickets(ring));
    atomic_store(&ring->shared->awaited, ticket + 1);
    uint32_t bell = atomic_load(&ring->shared->consumer_bell);
    leati_wait seen = leati_ring_look(ring, ticket);
    if (seen == LEATI_WAIT_TICK) {
        leati_futex_wait(&ring->shared->consumer_bell, bell, sleep_ns, ring->between_processes);
        seen = leati_ring_look(ring, ticket);
    }
    atomic_store_explicit(&ring->shared->awaited, 0, memory_order_relaxed);
    return seen;
}

leati_wait leati_ring_await(leati_ring *ring, uint64_t ticket, int64_t spin_ns, bool only_idle_cores,
                            int64_t sleep_ns) {
    leati_wait seen = leati_ring_look(ring, ticket);
    if (seen == LEATI_WAIT_TICK && spin_ns > 0 && (!only_idle_cores || core_is_idle(ring)))
        seen = spin_for(ring, ticket, spin_ns);
    /* Where no core is idle, the worker that has the batch in hand may be the one that waits for this core. */
    for (int i = 0; i < YIELDS && seen == LEATI_WAIT_TICK; ++i) {
        sched_yield();
        seen = leati_ring_look(ring, ticket);
    }
    return seen == LEATI_WAIT_TICK ? sleep_for(ring, ticket, sleep_ns) : seen;
}

static bool must_leave(const leati_ring *ring, uint32_t generation) {
    return atomic_load(&ring->shared->stop) || atomic_load(&ring->shared->generation) != generation;
}

/* A ticket at the hint, or above it, is open or was claimed by somebody who has not said so yet. */
static bool work_in_sight(const leati_ring *ring) {
    return atomic_load(&ring->shared->hint) < atomic_load(&ring->shared->issued);
}

static bool nothing_to_do(const leati_ring *ring, uint32_t generation) {
    return !work_in_sight(ring) && !must_leave(ring, generation);
}

static void worker_spin(leati_ring *ring, int64_t spin_ns, uint32_t generation) {
    for (int64_t end = leati_now_ns() + spin_ns; leati_now_ns() < end; sched_yield())
        for (int i = 0; i < SPINS; ++i) {
            leati_spin_pause();
            if (!nothing_to_do(ring, generation)) return;
        }
}

static void worker_sleep(leati_ring *ring, int worker, uint32_t generation) {
    leati_worker_entry *entry = &ring->workers[worker];
    int64_t start = leati_now_ns();
    int64_t spin_ns = leati_spin_length(&entry->spin);
    if (spin_ns > 0 && core_is_idle(ring)) worker_spin(ring, spin_ns, generation);
    if (nothing_to_do(ring, generation)) {
        uint32_t bell = atomic_load(&ring->shared->worker_bell);
        atomic_store(&entry->sleeping, 1);
        if (nothing_to_do(ring, generation))
            leati_futex_wait(&ring->shared->worker_bell, bell, -1, ring->between_processes);
        atomic_store_explicit(&entry->sleeping, 0, memory_order_relaxed);
    }
    leati_spin_learn(&entry->spin, leati_now_ns() - start);
}

leati_slot *leati_ring_claim(leati_ring *ring, int worker, uint32_t generation) {
    leati_ring_shared *shared = ring->shared;
    while (!must_leave(ring, generation)) {
        uint64_t ticket = atomic_load(&shared->hint);
        if (ticket >= atomic_load(&shared->issued)) {
            worker_sleep(ring, worker, generation);
            continue;
        }
        leati_slot *slot = leati_ring_slot(ring, ticket);
        uint32_t open = LEATI_SLOT_OPEN;
        bool mine =
            atomic_compare_exchange_strong(&slot->state, &open, LEATI_SLOT_CLAIMED + (uint32_t)worker);
        /* Not open: somebody has this ticket.  Whoever sees it moves the hint on, since that one may have died. */
        atomic_compare_exchange_strong(&shared->hint, &ticket, ticket + 1);
        if (mine) return slot;
    }
    return NULL;
}

leati_slot *leati_ring_claimed_by(leati_ring *ring, int worker) {
    for (uint64_t i = 0; i < ring->slot_count; ++i)
        if (atomic_load(&ring->slots[i].state) == LEATI_SLOT_CLAIMED + (uint32_t)worker)
            return &ring->slots[i];
    return NULL;
}

void leati_ring_publish(leati_ring *ring, leati_slot *slot) {
    uint64_t ticket = slot->job.ticket; /* after READY the slot is the consumer's */
    atomic_store(&slot->state, LEATI_SLOT_READY);
    if (atomic_load(&ring->shared->awaited) == ticket + 1) ring_bell(ring, &ring->shared->consumer_bell, 1);
}

void leati_ring_stop(leati_ring *ring) {
    atomic_store(&ring->shared->stop, 1);
    ring_bell(ring, &ring->shared->worker_bell, INT_MAX);
    ring_bell(ring, &ring->shared->consumer_bell, 1);
}

void leati_ring_fail(leati_ring *ring, const leat_error *failure) {
    uint32_t none = 0;
    if (!atomic_compare_exchange_strong(&ring->shared->failed, &none, 1)) return;
    ring->shared->failure = *failure;
    atomic_store(&ring->shared->failed, 2);
    ring_bell(ring, &ring->shared->consumer_bell, 1);
}

void leati_ring_retire(leati_ring *ring) {
    atomic_fetch_add(&ring->shared->generation, 1);
    ring_bell(ring, &ring->shared->worker_bell, INT_MAX);
}

void leati_ring_nudge_consumer(leati_ring *ring) {
    if (atomic_load(&ring->shared->awaited)) ring_bell(ring, &ring->shared->consumer_bell, 1);
}
