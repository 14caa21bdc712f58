/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the worker table, and wakes workers.  Room: feed. */
#include "feed/ring/worker_table.h"

#include <limits.h>

#include "base/os/clock.h"
#include "base/error.h"

void leati_worker_table_point(leati_worker_table *table) {
    table->shared = (void *)table->mapping.memory;
    table->workers = (void *)(table->mapping.memory + sizeof(leati_worker_table_shared));
}

leat_status leati_worker_table_init(leati_worker_table *table, int count, bool between_processes,
                                    bool by_descriptor, leat_error *err) {
    *table = (leati_worker_table){.count = count,
                                  .between_processes = between_processes,
                                  .cores = leati_core_count()};
    size_t bytes = sizeof(leati_worker_table_shared) + (size_t)count * sizeof(leati_worker_entry);
    leati_mapping_request request = {.bytes = bytes,
                                     .control = bytes,
                                     .between_processes = between_processes,
                                     .by_descriptor = by_descriptor};
    LEATI_TRY(leati_mapping_create(&table->mapping, &request, err));
    leati_worker_table_point(table);
    for (int i = 0; i < count; ++i) table->workers[i].spin.longest_ns = LEATI_WAKE_UP_NS / 2;
    return LEAT_OK;
}

void leati_worker_table_fini(leati_worker_table *table) {
    leati_mapping_destroy(&table->mapping);
    *table = (leati_worker_table){0};
}

void leati_wake_futex(leati_futex *wake_futex, int count, bool between_processes) {
    atomic_fetch_add(wake_futex, 1);
    leati_futex_wake(wake_futex, count, between_processes);
}

void leati_worker_table_wake(const leati_worker_table *table, uint64_t most) {
    uint64_t sleepers = 0;
    if (table->wake_all && most > 0) most = (uint64_t)table->count;
    for (int i = 0; i < table->count && sleepers < most; ++i)
        sleepers += atomic_load(&table->workers[i].sleeping) != 0;
    /* The kernel may wake any workers that wait now, including workers that the loop has not counted. */
    int count = table->wake_all ? INT_MAX : (int)sleepers;
    if (sleepers) leati_wake_futex(&table->shared->wake_futex, count, table->between_processes);
}

void leati_worker_table_alarm(const leati_worker_table *table) {
    leati_wake_futex(&table->shared->wake_futex, INT_MAX, table->between_processes);
}

void leati_worker_table_retire(const leati_worker_table *table) {
    atomic_fetch_add(&table->shared->generation, 1);
    leati_worker_table_alarm(table);
}

bool leati_worker_table_has_timed_sleeper(const leati_worker_table *table) {
    for (int i = 0; i < table->count; ++i)
        if (atomic_load_explicit(&table->workers[i].sleeping, memory_order_relaxed) == LEATI_TIMED_SLEEP)
            return true;
    return false;
}

bool leati_worker_table_core_is_idle(const leati_worker_table *table) {
    int awake = 1;
    for (int i = 0; i < table->count && awake <= table->cores; ++i)
        awake += atomic_load_explicit(&table->workers[i].sleeping, memory_order_relaxed) == 0;
    return awake <= table->cores;
}

void leati_worker_table_inherit(const leati_worker_table *table, bool inherit) {
    leati_mapping_inherit(&table->mapping, inherit);
}
