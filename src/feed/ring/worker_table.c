/* SPDX-License-Identifier: Apache-2.0 */
/* The table of workers.  Layer: feed. */
#define _GNU_SOURCE /* madvise, MAP_ANONYMOUS */
#include "feed/ring/worker_table.h"

#include <errno.h>
#include <limits.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/error.h"

leat_status leati_roster_init(leati_roster *roster, int count, bool between_processes, leat_error *err) {
    *roster =
        (leati_roster){.count = count, .between_processes = between_processes, .cores = leati_core_count()};
    roster->bytes = sizeof(leati_roster_shared) + (size_t)count * sizeof(leati_worker_entry);
    void *memory = mmap(NULL, roster->bytes, PROT_READ | PROT_WRITE,
                        MAP_ANONYMOUS | (between_processes ? MAP_SHARED : MAP_PRIVATE), -1, 0);
    if (memory == MAP_FAILED)
        return leati_fail_errno(err, errno == ENOMEM ? LEAT_ENOMEM : LEAT_EIO, errno,
                                "cannot map %zu bytes for a table of %d workers", roster->bytes, count);
    roster->shared = memory; /* all zero, as the kernel gives it */
    roster->workers = (void *)((unsigned char *)memory + sizeof(leati_roster_shared));
    for (int i = 0; i < count; ++i) roster->workers[i].spin.longest_ns = LEATI_WAKE_UP_NS / 2;
    return LEAT_OK;
}

void leati_roster_fini(leati_roster *roster) {
    if (roster->shared) munmap(roster->shared, roster->bytes);
    *roster = (leati_roster){0};
}

void leati_bell_ring(leati_futex *bell, int count, bool between_processes) {
    atomic_fetch_add(bell, 1);
    leati_futex_wake(bell, count, between_processes);
}

void leati_roster_wake(const leati_roster *roster, uint64_t most) {
    uint64_t sleepers = 0;
    if (roster->wake_all && most > 0) most = (uint64_t)roster->count;
    for (int i = 0; i < roster->count && sleepers < most; ++i)
        sleepers += atomic_load(&roster->workers[i].sleeping) != 0;
    /* The kernel wakes whom it likes of those that wait now, who may be others than were seen. */
    int count = roster->wake_all ? INT_MAX : (int)sleepers;
    if (sleepers) leati_bell_ring(&roster->shared->bell, count, roster->between_processes);
}

void leati_roster_alarm(const leati_roster *roster) {
    leati_bell_ring(&roster->shared->bell, INT_MAX, roster->between_processes);
}

void leati_roster_retire(const leati_roster *roster) {
    atomic_fetch_add(&roster->shared->generation, 1);
    leati_roster_alarm(roster);
}

bool leati_roster_somebody_dozes(const leati_roster *roster) {
    for (int i = 0; i < roster->count; ++i)
        if (atomic_load_explicit(&roster->workers[i].sleeping, memory_order_relaxed) == LEATI_DOZING)
            return true;
    return false;
}

bool leati_roster_core_is_idle(const leati_roster *roster) {
    int awake = 1;
    for (int i = 0; i < roster->count && awake <= roster->cores; ++i)
        awake += atomic_load_explicit(&roster->workers[i].sleeping, memory_order_relaxed) == 0;
    return awake <= roster->cores;
}

void leati_roster_inherit(const leati_roster *roster, bool inherit) {
    madvise(roster->shared, roster->bytes, inherit ? MADV_DOFORK : MADV_DONTFORK);
}
