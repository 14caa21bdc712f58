/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out that the trainer waits for a process that is stopped.  Room: feed. */
#include "feed/stopped.h"

#include "base/error.h"
#include "base/log.h"
#include "base/os/process_stat.h"
#include "feed/stream.h"

#define TELL_AFTER_NS INT64_C(10000000000)

void leati_stopped_begin(leati_stopped *stopped) {
    stopped->waited_ns = stopped->helper_ns = 0;
}

/* A worker that is stopped while it sleeps uses up the wake-ups that it gets.  So the other workers are woken as well
 * if no worker has claimed the ticket during a whole sleep of the trainer. */
static void wake_others(const leati_ring *ring, const leati_slot *slot) {
    if (atomic_load(&slot->state) == LEATI_SLOT_OPEN) leati_worker_table_alarm(ring->table);
}

/* Returns the worker process that is stopped while it makes the batch, or any that is stopped while no worker makes
 * the batch; 0 if there is none. */
static pid_t find_stopped_worker(const leati_ring *ring, const leati_slot *slot) {
    uint32_t state = atomic_load(&slot->state);
    for (int i = 0; i < ring->table->count; ++i) {
        pid_t pid = (pid_t)atomic_load(&ring->table->workers[i].pid);
        bool concerned = state < LEATI_SLOT_CLAIMED || state - LEATI_SLOT_CLAIMED == (uint32_t)i;
        if (concerned && pid > 0 && leati_process_is_stopped(pid)) return pid;
    }
    return 0;
}

static void tell(leat_feed *feed, const leati_slot *slot, pid_t stopped_helper) {
    pid_t pid = stopped_helper ? stopped_helper : find_stopped_worker(&feed->service.ring, slot);
    if (pid == 0) return;
    feed->stopped.told = true;
    leati_log(
        LEAT_LOG_WARNING,
        "%s process %d is stopped (SIGSTOP), and training waits for it: send it SIGCONT (kill -CONT %d), "
        "or set a time limit for batches (--batch-timeout, leat_faults.deadline_ms), after which leat %s",
        stopped_helper ? "helper" : "worker", (int)pid, (int)pid,
        stopped_helper ? "ends the training" : "replaces a worker that is stopped");
}

leat_status leati_stopped_check(leat_feed *feed, int64_t slept_ns, leat_error *err) {
    const leati_ring *ring = &feed->service.ring;
    const leati_slot *slot = leati_ring_slot(ring, feed->delivered);
    leati_stopped *stopped = &feed->stopped;
    int64_t deadline_ns = feed->options.faults.deadline_ms * 1000000;
    pid_t helper = feed->group->pool.helper.pid;
    bool helper_stopped = leati_process_is_stopped(helper);
    stopped->waited_ns += slept_ns;
    stopped->helper_ns = helper_stopped ? stopped->helper_ns + slept_ns : 0;
    wake_others(ring, slot);
    if (deadline_ns == 0) {
        if (stopped->waited_ns >= TELL_AFTER_NS && !stopped->told)
            tell(feed, slot, helper_stopped ? helper : 0);
        return LEAT_OK;
    }
    /* When somebody continues a stopped program, the trainer may run a moment earlier than the helper. */
    int64_t limit_ns = deadline_ns > LEATI_STOPPED_PATIENCE_NS ? deadline_ns : LEATI_STOPPED_PATIENCE_NS;
    if (stopped->helper_ns < limit_ns) return LEAT_OK;
    return leati_fail(
        err, LEAT_ETIMEOUT,
        "the helper process %d of the workers has been stopped (SIGSTOP) for %.3g s, longer than "
        "the deadline of %.3g s of a batch; without it, late and dead workers are not replaced",
        (int)helper, (double)stopped->helper_ns / 1e9, (double)deadline_ns / 1e9);
}
