/* SPDX-License-Identifier: Apache-2.0 */
/* The main loop of a worker.  Room: feed. */
#include "feed/workers/worker.h"

#include <sched.h>
#include <stdio.h>

#include "base/os/clock.h"
#include "base/os/process_stat.h"
#include "base/error.h"
#include "base/memory.h"

#define LOOK_NS INT64_C(100000000) /* between two looks at the memory of a worker process */
#define SPINS   64                 /* checks between two yields */

bool leati_pool_work_is_over(const leati_pool_work *work, uint32_t generation) {
    if (atomic_load(&work->table.shared->generation) != generation) return true;
    for (int i = 0; i < work->count; ++i)
        if (leati_ring_is_live(&work->services[i]->ring)) return false;
    return true;
}

void leati_pool_work_fail(const leati_pool_work *work, const leat_error *failure) {
    for (int i = 0; i < work->count; ++i) leati_ring_fail(&work->services[i]->ring, failure);
}

leat_status leati_worker_init(leati_worker *worker, leati_pool_work *work, int number, leat_error *err) {
    *worker = (leati_worker){.work = work, .number = number, .maker_count = work->count};
    worker->makers = leati_calloc((size_t)work->count, sizeof *worker->makers);
    if (!worker->makers)
        return leati_fail_memory(err, (size_t)work->count * sizeof *worker->makers, "a worker");
    leat_status status = LEAT_OK;
    for (int i = 0; i < work->count && status == LEAT_OK; ++i)
        status = leati_maker_init(&worker->makers[i], work->services[i], err);
    if (status != LEAT_OK) leati_worker_fini(worker);
    return status;
}

void leati_worker_fini(leati_worker *worker) {
    for (int i = 0; worker->makers && i < worker->maker_count; ++i) leati_maker_fini(&worker->makers[i]);
    leati_free(worker->makers);
    worker->makers = NULL;
}

/* ---- worker_init and worker_fini ---- */

static void end_services(const leati_worker *worker, int count) {
    while (count-- > 0) {
        const leat_sequence *sequence = &worker->work->services[count]->sequence;
        if (sequence->worker_fini) sequence->worker_fini(sequence->user, worker->number);
    }
}

leat_status leati_worker_begin(const leati_worker *worker, leat_error *err) {
    for (int i = 0; i < worker->work->count; ++i) {
        const leat_sequence *sequence = &worker->work->services[i]->sequence;
        leat_error why = {0};
        if (!sequence->worker_init) continue;
        leat_status status = sequence->worker_init(sequence->user, worker->number, &why);
        if (status == LEAT_OK) continue;
        end_services(worker, i);
        why.message[sizeof why.message - 1] = '\0';
        leati_fail_origin(err, status, (leat_origin)why.origin, why.origin_code,
                          "worker_init of worker %d: %s", worker->number,
                          why.message[0] ? why.message : leat_status_text(status));
        return status;
    }
    return LEAT_OK;
}

void leati_worker_end(const leati_worker *worker) {
    end_services(worker, worker->work->count);
}

/* ---- looking for work ---- */

static bool is_over(const leati_worker *worker) {
    return leati_pool_work_is_over(worker->work, worker->generation);
}

static bool nothing_to_do(const leati_worker *worker) {
    for (int i = 0; i < worker->work->count; ++i)
        if (leati_ring_has_work(&worker->work->services[i]->ring, worker->number)) return false;
    return !is_over(worker);
}

static void spin(const leati_worker *worker, int64_t spin_ns) {
    for (int64_t end = leati_now_ns() + spin_ns; leati_now_ns() < end; sched_yield())
        for (int i = 0; i < SPINS; ++i) {
            leati_spin_pause();
            if (!nothing_to_do(worker)) return;
        }
}

/* Returns the number of open tickets of all feeds; *wanted is the number of them that ends a timed sleep. */
static uint64_t count_open(const leati_worker *worker, uint64_t *wanted) {
    uint64_t open = 0, slots = 0;
    for (int i = 0; i < worker->work->count; ++i) {
        const leati_ring *ring = &worker->work->services[i]->ring;
        if (!leati_ring_has_work(ring, worker->number)) continue;
        open += leati_ring_open_tickets(ring);
        slots += ring->slot_count;
    }
    *wanted = slots / 4;
    return open;
}

static void rest_until_woken(const leati_worker *worker) {
    leati_worker_table *table = &worker->work->table;
    leati_worker_entry *entry = &table->workers[worker->number];
    uint64_t wanted = 0;
    int64_t start = leati_now_ns();
    int64_t spin_ns = leati_spin_length(&entry->spin),
            timed_sleep_ns = leati_timed_sleep_length(&entry->timed_sleep);
    if (spin_ns > 0 && leati_worker_table_core_is_idle(table)) spin(worker, spin_ns);
    if (nothing_to_do(worker)) {
        uint32_t wake_futex = atomic_load(&table->shared->wake_futex);
        atomic_store(&entry->sleeping, timed_sleep_ns < 0 ? LEATI_ASLEEP : LEATI_TIMED_SLEEP);
        if (nothing_to_do(worker))
            leati_futex_wait(&table->shared->wake_futex, wake_futex, timed_sleep_ns,
                             table->between_processes);
        atomic_store_explicit(&entry->sleeping, LEATI_AWAKE, memory_order_relaxed);
    }
    int64_t rested_ns = leati_now_ns() - start;
    leati_spin_learn(&entry->spin, rested_ns);
    uint64_t open = count_open(worker, &wanted);
    leati_timed_sleep_learn(&entry->timed_sleep, rested_ns, open, wanted);
}

/* Claims the next ticket, first of the feeds for which the consumer waits, then of the others in their order. */
static leati_slot *claim(const leati_worker *worker, leati_maker **maker) {
    const leati_pool_work *work = worker->work;
    for (int waited_for = work->count > 1; waited_for >= 0; --waited_for)
        for (int i = 0; i < work->count; ++i) {
            leati_ring *ring = &work->services[i]->ring;
            if (waited_for && !atomic_load(&ring->shared->awaited)) continue;
            leati_slot *slot = leati_ring_claim(ring, worker->number);
            *maker = &worker->makers[i];
            if (slot) return slot;
        }
    return NULL;
}

/* Returns the slot that a dead worker with this number had claimed, or NULL.  A feed that has ended does not count; the
 * death of its worker ends a generator. */
static leati_slot *find_inherited(const leati_worker *worker, leati_maker **maker) {
    for (int i = 0; i < worker->work->count; ++i) {
        const leati_ring *ring = &worker->work->services[i]->ring;
        leati_slot *slot = leati_ring_claimed_by(ring, worker->number);
        *maker = &worker->makers[i];
        if (slot && leati_ring_is_live(ring)) return slot;
    }
    return NULL;
}

/* ---- the main loop ---- */

/* Allocates the memory of this worker's share of the places that the first tickets use. */
static leat_status back_share(const leati_worker *worker, leat_error *err) {
    for (int i = 0; i < worker->work->count; ++i) {
        const leati_ring *ring = &worker->work->services[i]->ring;
        uint64_t issued = atomic_load(&ring->shared->issued), slots = ring->elastic ? 0 : ring->slot_count;
        for (uint64_t k = (uint64_t)worker->number; k < slots && k <= issued;
             k += (uint64_t)worker->work->table.count)
            LEATI_TRY(leati_service_back(ring, (uint32_t)k, ring->slot_bytes, err));
    }
    return LEAT_OK;
}

/* Writes the output that the program's functions have printed.  A worker process is killed, or calls _exit, which does
 * not write it. */
static void flush_output(const leati_worker *worker) {
    if (!worker->work->table.between_processes) return;
    fflush(stdout);
    fflush(stderr);
}

static void make_and_publish(const leati_worker *worker, leati_maker *maker, leati_slot *slot) {
    leati_worker_entry *entry = &worker->work->table.workers[worker->number];
    leati_maker_make(maker, slot, worker->number);
    flush_output(worker);
    int64_t busy = atomic_load_explicit(&entry->busy_ns, memory_order_relaxed) + slot->get_ns;
    atomic_store_explicit(&entry->busy_ns, busy, memory_order_relaxed);
    leati_ring_publish(&maker->service->ring, slot);
}

/* Returns true, and says so in the worker table, if this process has more memory than the feed allows. */
static bool is_too_large(leati_worker *worker, const leati_service *service) {
    if (!service->max_worker_memory || !worker->work->table.between_processes) return false;
    int64_t now_ns = leati_now_ns();
    if (now_ns - worker->looked_ns < LOOK_NS) return false;
    worker->looked_ns = now_ns;
    for (int i = 0; i < worker->work->count; ++i)
        if (worker->work->services[i]->ring.owner == worker->number) return false;
    if (leati_process_private_bytes() <= service->max_worker_memory) return false;
    atomic_fetch_add(&service->ring.shared->replaced, 1);
    atomic_store(&worker->work->table.workers[worker->number].phase, LEATI_WORKER_LARGE);
    return true;
}

leat_status leati_worker_run(leati_worker *worker, leat_error *err) {
    const leati_worker_table *table = &worker->work->table;
    leati_maker *maker = NULL;
    leat_status status = leati_worker_begin(worker, err);
    flush_output(worker);
    if (status != LEAT_OK) return status;
    status = back_share(worker, err);
    atomic_store(&table->workers[worker->number].phase, LEATI_WORKER_RUNNING);
    leati_slot *slot = table->between_processes ? find_inherited(worker, &maker) : NULL;
    while (status == LEAT_OK && !is_over(worker)) {
        if (!slot) slot = claim(worker, &maker);
        if (!slot)
            rest_until_woken(worker);
        else {
            make_and_publish(worker, maker, slot);
            if (is_too_large(worker, maker->service)) break;
        }
        slot = NULL;
    }
    leati_worker_end(worker);
    flush_output(worker);
    return status;
}
