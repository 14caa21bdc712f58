/* SPDX-License-Identifier: Apache-2.0 */
/* The whole protocol between one consumer and its workers.  Room: feed.
 *
 * No wake-up is lost, because both sides follow one rule.  The sleeper announces that it sleeps, reads the wake futex,
 * checks its condition once more, and then waits while the futex has the value that it read.  The other side first
 * changes the condition, then reads whether the sleeper sleeps, and then changes and wakes the futex.  These accesses
 * are sequentially consistent. */
#include "feed/ring/ring.h"

#include <assert.h>
#include <limits.h>
#include <sched.h>

#include "base/os/clock.h"
#include "base/error.h"

#define YIELDS 4
#define SPINS  64 /* checks between two yields */

#ifndef NDEBUG
/* Returns true if the slot belongs to the consumer: no worker may claim it or has claimed it. */
static bool is_consumers(const leati_slot *slot) {
    uint32_t state = atomic_load_explicit(&slot->state, memory_order_relaxed);
    return state == LEATI_SLOT_FREE || state == LEATI_SLOT_READY;
}
#endif

void leati_ring_open_slot(leati_ring *ring, const leati_job *job) {
    leati_slot *slot = leati_ring_slot(ring, job->ticket);
    assert(job->ticket >= atomic_load_explicit(&ring->shared->issued, memory_order_relaxed));
    assert(ring->table->count == 0 || is_consumers(slot));
    slot->job = *job;
    slot->deaths = 0;
    slot->timeouts = 0;
    atomic_store_explicit(&slot->discarded, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->started_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->state, LEATI_SLOT_OPEN, memory_order_release);
}

uint64_t leati_ring_open_tickets(const leati_ring *ring) {
    uint64_t claimed = atomic_load(&ring->shared->hint), issued = atomic_load(&ring->shared->issued);
    return issued > claimed ? issued - claimed : 0;
}

void leati_ring_announce(leati_ring *ring, uint64_t issued, bool urgent) {
    assert(issued >= atomic_load_explicit(&ring->shared->issued, memory_order_relaxed));
    atomic_store(&ring->shared->issued, issued);
    uint64_t open = leati_ring_open_tickets(ring);
    bool cheap = ring->batch_ns < LEATI_WAKE_UP_NS;
    bool patient = !urgent && (cheap || leati_worker_table_has_timed_sleeper(ring->table));
    uint64_t gather = patient ? ring->slot_count / 2 : 1;
    if (open < gather) return;
    /* One worker makes several cheap batches before another one is awake, so fewer workers are woken for cheap
     * batches. */
    uint64_t workers = cheap ? 1 + open * (uint64_t)ring->batch_ns / LEATI_WAKE_UP_NS : open;
    leati_worker_table_wake(ring->table, workers < open ? workers : open);
}

leati_wait leati_ring_look(leati_ring *ring, uint64_t ticket) {
    leati_ring_shared *shared = ring->shared;
    if (atomic_load(&shared->stop)) return LEATI_WAIT_STOPPED;
    /* Batches that were made before a failure are delivered first.  So `failed` is read before the slot's state: a
     * batch that is not ready now was not made before the failure. */
    bool failed = atomic_load(&shared->failed) == 2;
    if (atomic_load(&leati_ring_slot(ring, ticket)->state) == LEATI_SLOT_READY) return LEATI_WAIT_READY;
    return failed ? LEATI_WAIT_FAILED : LEATI_WAIT_TICK;
}

/* Spins for at most spin_ns.  It yields every few microseconds, because another thread may need this core, perhaps the
 * worker that makes the batch. */
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
    leati_worker_table_wake(ring->table, leati_ring_open_tickets(ring));
    atomic_store(&ring->shared->awaited, ticket + 1);
    uint32_t wake_futex = atomic_load(&ring->shared->consumer_wake);
    leati_wait seen = leati_ring_look(ring, ticket);
    if (seen == LEATI_WAIT_TICK) {
        leati_futex_wait(&ring->shared->consumer_wake, wake_futex, sleep_ns, ring->table->between_processes);
        seen = leati_ring_look(ring, ticket);
    }
    atomic_store_explicit(&ring->shared->awaited, 0, memory_order_relaxed);
    return seen;
}

leati_wait leati_ring_await(leati_ring *ring, uint64_t ticket, int64_t spin_ns, bool only_idle_cores,
                            int64_t sleep_ns) {
    leati_wait seen = leati_ring_look(ring, ticket);
    if (seen == LEATI_WAIT_TICK && spin_ns > 0 &&
        (!only_idle_cores || leati_worker_table_core_is_idle(ring->table)))
        seen = spin_for(ring, ticket, spin_ns);
    /* If no core is idle, the worker that makes the batch may be waiting for this core, so the consumer yields a few
     * times.  It does not yield for a batch that takes long: after a yield, it may run again only milliseconds after
     * the batch is ready. */
    int yields = ring->batch_ns < LEATI_WAKE_UP_NS ? YIELDS : 0;
    for (int i = 0; i < yields && seen == LEATI_WAIT_TICK; ++i) {
        sched_yield();
        seen = leati_ring_look(ring, ticket);
    }
    return seen == LEATI_WAIT_TICK ? sleep_for(ring, ticket, sleep_ns) : seen;
}

bool leati_ring_is_live(const leati_ring *ring) {
    return !atomic_load(&ring->shared->stop) && !atomic_load(&ring->shared->failed);
}

/* A ticket at or above the hint is open, or it was claimed by a worker that has not advanced the hint yet. */
bool leati_ring_has_work(const leati_ring *ring, int worker) {
    return (ring->owner < 0 || ring->owner == worker) &&
           atomic_load(&ring->shared->hint) < atomic_load(&ring->shared->issued) && leati_ring_is_live(ring);
}

leati_slot *leati_ring_claim(leati_ring *ring, int worker) {
    leati_ring_shared *shared = ring->shared;
    while (leati_ring_has_work(ring, worker)) {
        uint64_t ticket = atomic_load(&shared->hint);
        if (ticket >= atomic_load(&shared->issued)) return NULL;
        leati_slot *slot = leati_ring_slot(ring, ticket);
        uint32_t open = LEATI_SLOT_OPEN;
        bool mine =
            atomic_compare_exchange_strong(&slot->state, &open, LEATI_SLOT_CLAIMED + (uint32_t)worker);
        /* If the slot is not open, another worker has claimed this ticket.  This worker advances the hint, too, because
         * the other one may have died before it could. */
        atomic_compare_exchange_strong(&shared->hint, &ticket, ticket + 1);
        if (!mine) continue;
        /* The slot may be open for a later ticket already, if this worker was slow to claim the one that it read. */
        assert(leati_ring_slot(ring, slot->job.ticket) == slot);
        return slot;
    }
    return NULL;
}

leati_slot *leati_ring_claimed_by(const leati_ring *ring, int worker) {
    for (uint64_t i = 0; i < ring->slot_count; ++i)
        if (atomic_load(&ring->slots[i].state) == LEATI_SLOT_CLAIMED + (uint32_t)worker)
            return &ring->slots[i];
    return NULL;
}

static void ring_consumer(const leati_ring *ring) {
    leati_wake_futex(&ring->shared->consumer_wake, 1, ring->table->between_processes);
}

void leati_ring_publish(leati_ring *ring, leati_slot *slot) {
    assert(atomic_load_explicit(&slot->state, memory_order_relaxed) >= LEATI_SLOT_CLAIMED);
    uint64_t ticket = slot->job.ticket; /* Read before READY: then the slot belongs to the consumer. */
    atomic_store(&slot->state, LEATI_SLOT_READY);
    if (atomic_load(&ring->shared->awaited) == ticket + 1) ring_consumer(ring);
}

void leati_ring_stop(leati_ring *ring) {
    atomic_store(&ring->shared->stop, 1);
    leati_worker_table_alarm(ring->table);
    ring_consumer(ring);
}

void leati_ring_fail(leati_ring *ring, const leat_error *failure) {
    uint32_t none = 0;
    if (!atomic_compare_exchange_strong(&ring->shared->failed, &none, 1)) return;
    ring->shared->failure = *failure;
    atomic_store(&ring->shared->failed, 2);
    ring_consumer(ring);
}

void leati_ring_nudge_consumer(leati_ring *ring) {
    if (atomic_load(&ring->shared->awaited)) ring_consumer(ring);
}
