/* SPDX-License-Identifier: Apache-2.0 */
/* Delivery: waits for the next batch in the order of the tickets, skips bad batches, and returns good ones.  Room:
 * feed. */
#include <assert.h>

#include "base/os/clock.h"
#include "base/error.h"
#include "feed/interrupt.h"
#include "feed/peek.h"
#include "feed/stream.h"

#define TICK_NS LEATI_PATIENCE_TICK_NS /* how often a waiting caller checks that its helper process runs */

/* ---- waiting ---- */

/* Fails if a worker thread has exceeded the deadline.  This ends the stream, because a thread cannot be terminated and
 * its slot cannot be used again. */
static leat_status check_deadline(leat_feed *feed, leat_error *err) {
    const leati_slot *slot = leati_ring_slot(&feed->service.ring, feed->delivered);
    int64_t started_ns = atomic_load_explicit(&slot->started_ns, memory_order_relaxed), now = leati_now_ns();
    int64_t deadline_ns = feed->options.faults.deadline_ms * 1000000;
    uint32_t state = atomic_load(&slot->state);
    if (deadline_ns == 0 || feed->service.ring.table->between_processes || started_ns == 0 ||
        state < LEATI_SLOT_CLAIMED ||
        leati_patience_left(&feed->patience, &feed->awaited, started_ns, deadline_ns, now) > 0)
        return LEAT_OK;
    feed->group->patience_ns = deadline_ns;
    return leati_fail(
        err, LEAT_ETIMEOUT,
        "batch %lld of pass %lld: worker thread %d has been making it for %.3g s, but the deadline is "
        "%.3g s; a thread cannot be terminated: it and the ring (%.1f MB) stay until it returns.  Worker "
        "processes can be terminated (use_multiprocessing)",
        (long long)slot->job.position.index, (long long)slot->job.position.pass,
        (int)(state - LEATI_SLOT_CLAIMED), (double)(now - started_ns) / 1e9, (double)deadline_ns / 1e9,
        (double)feed->service.ring.bytes / 1e6);
}

/* Returns how long the caller may sleep before it checks the helper or the deadline; -1: as long as it takes. */
static int64_t tick_length(const leat_feed *feed) {
    int64_t deadline_ns = feed->options.faults.deadline_ms * 1000000, tick_ns = TICK_NS;
    bool checks = feed->service.ring.table->between_processes || deadline_ns || feed->interrupt;
    if (!checks && !feed->patient_until_ns) return -1;
    if (deadline_ns && deadline_ns < tick_ns) tick_ns = deadline_ns;
    if (!feed->patient_until_ns) return tick_ns;
    int64_t left_ns = feed->patient_until_ns - leati_now_ns();
    if (left_ns < 1000) left_ns = 1000;
    return left_ns < tick_ns ? left_ns : tick_ns;
}

/* Returns an error if the helper is gone, unless it has exited because the feed was stopped or has failed.  In that
 * case it sets *seen and returns LEAT_OK. */
static leat_status check_pool(leat_feed *feed, leati_wait *seen, leat_error *err) {
    leat_error why = {0};
    leat_status status = leati_worker_pool_check(&feed->group->pool, &why);
    if (status == LEAT_OK) return LEAT_OK;
    *seen = leati_ring_look(&feed->service.ring, feed->delivered);
    if (*seen != LEATI_WAIT_TICK) return LEAT_OK;
    *err = why;
    return status;
}

static leat_status check_interrupt(const leat_feed *feed, leat_error *err) {
    if (!feed->interrupt || !atomic_load_explicit(feed->interrupt, memory_order_relaxed)) return LEAT_OK;
    return leati_fail(err, LEAT_ESTOPPED, "stopped on request while waiting for a batch");
}

/* LEAT_EBUSY: the caller does not want to wait longer. */
static leat_status check_patience(leat_feed *feed, leat_error *err) {
    if (!feed->patient_until_ns || leati_now_ns() < feed->patient_until_ns) return LEAT_OK;
    feed->impatient = true;
    return leati_fail(err, LEAT_EBUSY, "the next batch is not ready yet");
}

void leati_feed_interrupt_by(leat_feed *feed, const atomic_bool *flag) {
    feed->interrupt = flag;
}

static leat_status wait_for_slot(leat_feed *feed, leati_wait *seen, leat_error *err) {
    leati_ring *ring = &feed->service.ring;
    int64_t start = leati_now_ns();
    leati_ring_announce(ring, feed->issued, true); /* No worker may sleep while this ticket is open. */
    int64_t spin_ns = leati_spin_length(&feed->spin), tick_ns = tick_length(feed);
    bool only_idle_cores = feed->options.spin_us < 0;
    leati_stopped_begin(&feed->stopped);
    leat_status status = LEAT_OK;
    feed->patience.last_ns =
        0; /* Time before this call does not count: the caller may have been stopped, too. */
    while (status == LEAT_OK) {
        leati_patience_sleep(&feed->patience, leati_now_ns(), tick_ns < 0 ? -1 : tick_ns + spin_ns);
        *seen = leati_ring_await(ring, feed->delivered, spin_ns, only_idle_cores, tick_ns);
        if (*seen != LEATI_WAIT_TICK) break;
        leati_patience_wake(&feed->patience, leati_now_ns());
        spin_ns = 0;
        status = check_pool(feed, seen, err);
        if (*seen != LEATI_WAIT_TICK) break;
        if (status == LEAT_OK) status = check_deadline(feed, err);
        if (status == LEAT_OK) status = check_interrupt(feed, err);
        if (status == LEAT_OK && feed->service.ring.table->between_processes)
            status = leati_stopped_check(feed, feed->patience.last_ns, err);
        if (status == LEAT_OK) status = check_patience(feed, err);
    }
    int64_t waited_ns = leati_now_ns() - start;
    leati_figures_wait(&feed->figures, start, waited_ns);
    leati_spin_learn(&feed->spin, waited_ns);
    return status;
}

static leat_status await_slot(leat_feed *feed, leat_error *err) {
    leati_wait seen = leati_ring_look(&feed->service.ring, feed->delivered);
    if (seen == LEATI_WAIT_READY) {
        leati_figures_wait(&feed->figures, 0, 0);
        return LEAT_OK;
    }
    if (seen == LEATI_WAIT_TICK) LEATI_TRY(wait_for_slot(feed, &seen, err));
    if (seen == LEATI_WAIT_READY) return LEAT_OK;
    if (seen == LEATI_WAIT_STOPPED) return leati_fail(err, LEAT_ESTOPPED, "the feed was stopped");
    *err = feed->service.ring.shared->failure;
    return (leat_status)err->code;
}

/* Makes the next batch in the caller's thread, for a feed without workers. */
static leat_status make_inline(leat_feed *feed, leat_error *err) {
    if (!feed->inline_begun) {
        LEATI_TRY(leati_worker_begin(&feed->inline_worker, err));
        feed->inline_begun = true;
    }
    leati_slot *slot = leati_ring_slot(&feed->service.ring, feed->delivered);
    leati_maker_make(&feed->inline_worker.makers[0], slot, 0);
    leati_figures_wait(&feed->figures, slot->ended_ns - slot->get_ns, slot->get_ns);
    return LEAT_OK;
}

/* ---- skipping ---- */

/* Advances the feed's position past a ticket whose batch is delivered or skipped. */
static void advance(leat_feed *feed, const leati_slot *slot) {
    const leati_job *job = &slot->job;
    assert(job->ticket == feed->delivered && feed->delivered < feed->issued);
    ++feed->delivered;
    feed->position = job->position;
    feed->next = (leat_feed_position){.pass = job->position.pass, .ordinal = job->position.ordinal + 1};
    feed->length = job->length;
    feed->pass_due = job->position.ordinal + 1 == job->length;
}

/* Returns the number of samples that the sequence left out of a batch. */
static int64_t left_out(const leat_feed *feed, const leati_slot *slot, int64_t size) {
    const int64_t most = feed->service.batch_size;
    const int64_t rest = feed->pass_samples - slot->job.position.index * most;
    if (feed->service.parts > 0) return 0;
    const int64_t expected = rest < most ? rest : most;
    return expected > size ? expected - size : 0;
}

static leat_status skip_batch(leat_feed *feed, const leati_slot *slot, leat_error *err) {
    leat_error why = slot->error;
    advance(feed, slot);
    ++feed->figures.skips;
    if (slot->status == LEAT_ESKIPPED) feed->figures.left_out += left_out(feed, slot, 0);
    feed->figures.retries += slot->retries;
    if (feed->pass_due && feed->good == 0)
        return leati_fail(err, LEAT_EINVAL, "all %lld batches of pass %lld are bad; the last: %s",
                          (long long)feed->length, (long long)feed->position.pass, why.message);
    leati_stream_issue_ahead(feed, false);
    return LEAT_OK;
}

/* Lets the tensors of a ready batch point to this process's mapping: a helper program has the ring at another
 * address. */
static void localize(const leati_ring *ring, leati_slot *slot) {
    if (ring->places->mapping.fd < 0) return;
    for (int i = 0; i < slot->batch.tensor_count; ++i)
        slot->batch.tensors[i].data = leati_ring_tensor(ring, slot, i);
}

static leat_status examine_batch(leat_feed *feed, leati_slot *slot, leat_error *err) {
    leat_status status = (leat_status)slot->status;
    if (status == LEAT_OK && slot->batch.size == 0) {
        feed->generator_ended = true;
        return LEAT_OK;
    }
    if (status == LEAT_OK) {
        localize(&feed->service.ring, slot);
        feed->head = slot;
        return LEAT_OK;
    }
    if (status == LEAT_ESKIPPED || feed->options.faults.bad_batch == LEAT_BAD_BATCH_SKIP)
        return skip_batch(feed, slot, err);
    *err = slot->error;
    return leati_prefix(status, err, "batch %lld of pass %lld", (long long)slot->job.position.index,
                        (long long)slot->job.position.pass);
}

/* Waits for the batches that workers made or began before leat_feed_seek, and gives their slots to other tickets. */
static leat_status discard_batches(leat_feed *feed, leat_error *err) {
    while (feed->delivered < feed->discard_until) {
        LEATI_TRY(leati_feed_is_inline(feed) ? make_inline(feed, err) : await_slot(feed, err));
        ++feed->delivered;
        leati_stream_issue_ahead(feed, false);
    }
    return LEAT_OK;
}

/* Waits for the next good batch of the current pass and sets feed->head to it; feed->head stays NULL if there is
 * none. */
static leat_status find_good_batch(leat_feed *feed, leat_error *err) {
    LEATI_TRY(discard_batches(feed, err));
    while (!feed->head && !feed->pass_due && !feed->generator_ended) {
        if (leati_feed_is_inline(feed)) leati_stream_issue_until(feed, feed->delivered + 1, true);
        if (feed->issued == feed->delivered && feed->pending != LEAT_OK) {
            *err = feed->pending_error;
            return feed->pending;
        }
        if (feed->issued == feed->delivered) return LEAT_OK;
        LEATI_TRY(leati_feed_is_inline(feed) ? make_inline(feed, err) : await_slot(feed, err));
        LEATI_TRY(examine_batch(feed, leati_ring_slot(&feed->service.ring, feed->delivered), err));
    }
    return LEAT_OK;
}

/* ---- the caller's side ---- */

static leat_status check_ready(leat_feed *feed, leat_error *err) {
    LEATI_TRY(leati_stream_check_process(feed, err));
    if (feed->in_use)
        return leati_fail(err, LEAT_EINVAL,
                          "expected leat_feed_release for the batch in use before the next batch is taken");
    if (feed->ended != LEAT_OK) return leati_stream_end(feed, feed->ended, &feed->ended_error, err);
    if (leati_ring_look(&feed->service.ring, feed->delivered) == LEATI_WAIT_STOPPED) {
        leat_error why = {0};
        leati_fail(&why, LEAT_ESTOPPED, "the feed was stopped");
        return leati_stream_end(feed, LEAT_ESTOPPED, &why, err);
    }
    return LEAT_OK;
}

static leat_status end_unless_ok(leat_feed *feed, leat_status status, const leat_error *why,
                                 leat_error *err) {
    if (status == LEAT_OK) return LEAT_OK;
    if (!feed->impatient) return leati_stream_end(feed, status, why, err);
    feed->impatient = false;
    if (err) *err = *why;
    return status;
}

leat_status leat_feed_await_for(leat_feed *feed, int64_t timeout_ms, bool *more, leat_error *err) {
    LEATI_GIVEN(feed, err);
    LEATI_GIVEN(more, err);
    *more = false;
    if (timeout_ms < 0 || timeout_ms > INT64_MAX / 2000000)
        return leati_fail(err, LEAT_EINVAL, "timeout_ms is %lld, expected a time", (long long)timeout_ms);
    feed->patient_until_ns = leati_now_ns() + timeout_ms * 1000000;
    leat_status status = leat_feed_await(feed, more, err);
    feed->patient_until_ns = 0;
    return status;
}

leat_status leat_feed_await(leat_feed *feed, bool *more, leat_error *err) {
    LEATI_GIVEN(feed, err);
    LEATI_GIVEN(more, err);
    leat_error why = {0};
    *more = false;
    LEATI_TRY(check_ready(feed, err));
    LEATI_TRY(end_unless_ok(feed, find_good_batch(feed, &why), &why, err));
    *more = feed->head != NULL;
    return LEAT_OK;
}

static leat_status fail_no_more(const leat_feed *feed, leat_error *err) {
    if (feed->generator_ended)
        return leati_fail(err, LEAT_ENOTFOUND, "the generator ended after %lld batches",
                          (long long)feed->figures.batches);
    return leati_fail(err, LEAT_ENOTFOUND, "all %lld requested batches have been delivered",
                      (long long)feed->figures.batches);
}

static void deliver(leat_feed *feed, const leat_batch **batch) {
    leati_slot *slot = feed->head;
    assert(slot && !feed->in_use);
    feed->head = NULL;
    feed->in_use = slot;
    *batch = &slot->batch;
    advance(feed, slot);
    ++feed->good;
    leati_figures_take(&feed->figures, &feed->service.ring, slot);
    feed->figures.left_out += left_out(feed, slot, slot->batch.size);
    feed->service.ring.batch_ns = slot->get_ns;
    leati_stream_issue_ahead(feed, false);
    if (leati_figures_wants_depth(&feed->figures))
        leati_figures_depth(&feed->figures, leat_feed_ready_count(feed));
}

leat_status leat_feed_get(leat_feed *feed, const leat_batch **batch, leat_error *err) {
    LEATI_GIVEN(feed, err);
    LEATI_GIVEN(batch, err);
    leat_error why = {0};
    *batch = NULL;
    LEATI_TRY(check_ready(feed, err));
    while (!feed->head) { /* Repeats if all remaining batches of the pass are bad. */
        LEATI_TRY(leat_feed_end_pass(feed, err));
        LEATI_TRY(end_unless_ok(feed, find_good_batch(feed, &why), &why, err));
        if (!feed->head && !feed->pass_due) return fail_no_more(feed, err);
    }
    deliver(feed, batch);
    return LEAT_OK;
}

const leat_batch *leati_feed_peek(const leat_feed *feed) {
    if (feed->head) return &feed->head->batch;
    if (feed->pass_due || feed->generator_ended || feed->issued == feed->delivered ||
        feed->delivered < feed->discard_until || feed->ended != LEAT_OK || leati_feed_is_inline(feed))
        return NULL;
    leati_ring *ring = (leati_ring *)(uintptr_t)&feed->service.ring; /* looking changes nothing */
    if (leati_ring_look(ring, feed->delivered) != LEATI_WAIT_READY) return NULL;
    leati_slot *slot = leati_ring_slot(ring, feed->delivered);
    if (slot->status != LEAT_OK || slot->batch.size == 0) return NULL;
    localize(ring, slot);
    return &slot->batch;
}

void leati_feed_memory(const leat_feed *feed, void **memory, size_t *bytes) {
    const leati_ring *ring = &feed->service.ring;
    *memory = ring->data;
    *bytes = ring->place_count * ring->slot_bytes;
}

leat_status leat_feed_keep(leat_feed *feed, leat_kept **out, leat_error *err) {
    LEATI_GIVEN(out, err);
    *out = NULL;
    LEATI_GIVEN(feed, err);
    LEATI_TRY(leati_stream_check_process(feed, err));
    if (!feed->in_use || feed->kept)
        return leati_fail(err, LEAT_EINVAL, "expected a batch in use that is not kept already");
    leati_places *places = feed->service.ring.places;
    int spare = leati_places_take(places);
    if (spare < 0)
        return leati_fail(
            err, LEAT_EBUSY,
            "%d batches are kept, as many as kept_batches allows: copy this one, or release one",
            feed->service.kept_batches);
    const leati_ring *ring = &feed->service.ring;
    leat_kept *kept = &places->kept[leati_ring_place(ring, feed->in_use)];
    atomic_store_explicit(&kept->state, LEATI_PLACE_KEPT, memory_order_relaxed);
    atomic_fetch_add(&places->holders, 1);
    leati_ring_set_place(ring, feed->in_use, (uint32_t)spare);
    feed->kept = true;
    *out = kept;
    return LEAT_OK;
}

void leat_feed_release(leat_feed *feed) {
    if (!feed) return;
    if (feed->in_use && !leati_group_is_inherited(feed->group))
        leati_figures_release(&feed->figures, &feed->service.ring, feed->in_use);
    feed->in_use = NULL;
    feed->kept = false;
}
