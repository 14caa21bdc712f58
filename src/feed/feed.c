/* SPDX-License-Identifier: Apache-2.0 */
/* The public feed: options, passes, tickets, delivery, figures.  Layer: feed.
 *
 * The consumer issues each ticket with its whole job (pass, ordinal, index), at most max_queue_size ahead of the batches
 * it has delivered.  Workers know nothing of passes: an end of pass with a hook is merely a ticket not yet issued. */
#include "leat/feed.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "feed/crew.h"
#include "feed/shuffle.h"

#define TICK_NS 50000000 /* how often a waiting caller looks after its helper process */

struct leat_feed {
    pid_t owner; /* the process that opened it */
    leat_sequence sequence;
    leat_feed_options options;
    leati_ring ring;
    leati_crew crew;
    leati_worker inline_worker; /* the caller itself, where workers is 0 */
    bool inline_begun;

    /* what is issued next */
    uint64_t issued; /* tickets */
    int64_t pass, ordinal, pass_length;
    int64_t passes_ended; /* by leat_feed_end_pass */
    leati_shuffle shuffle;

    /* what was delivered */
    uint64_t delivered; /* tickets */
    leat_feed_position position;
    int64_t length;
    bool in_use;
    bool pass_due; /* the pass in hand was delivered whole, and is yet to be ended */

    leati_spin spin;
    leat_feed_stats stats;
    leat_status pending; /* found while issuing, due when the tickets before it are delivered */
    leat_error pending_error;
    leat_status ended; /* what every further leat_feed_get returns */
    leat_error ended_error;
};

leat_feed_options leat_feed_options_default(void) {
    return (leat_feed_options){.workers = 1, .max_queue_size = 10, .spin_us = -1};
}

static leat_status check_options(const leat_feed_options *options, leat_error *err) {
    if (options->workers < 0 || options->workers > LEATI_MAX_WORKERS)
        return leati_fail(err, LEAT_EINVAL, "workers is %d, expected 0 to %d", options->workers,
                          LEATI_MAX_WORKERS);
    if (options->max_queue_size < 1 || options->max_queue_size > (1 << 20))
        return leati_fail(err, LEAT_EINVAL, "max_queue_size is %d, expected 1 to %d", options->max_queue_size,
                          1 << 20);
    if (options->shuffle != LEAT_SHUFFLE_NONE && options->shuffle != LEAT_SHUFFLE_BATCHES)
        return leati_fail(err, LEAT_EINVAL, "unknown shuffle %d", (int)options->shuffle);
    if (options->limit < 0)
        return leati_fail(err, LEAT_EINVAL, "limit is %lld, expected 0 (none) or more",
                          (long long)options->limit);
    if (options->passes < 0)
        return leati_fail(err, LEAT_EINVAL, "passes is %lld, expected 0 (no end) or more",
                          (long long)options->passes);
    if (options->spin_us < -1)
        return leati_fail(err, LEAT_EINVAL, "spin_us is %d, expected -1 (by idle cores) or more",
                          options->spin_us);
    return LEAT_OK;
}

static leat_status check_sequence(const leat_sequence *sequence, leat_error *err) {
    if (sequence->struct_size != sizeof *sequence)
        return leati_fail(err, LEAT_EINVAL,
                          "the sequence's struct_size is %zu, expected %zu: start from leat_sequence_default",
                          sequence->struct_size, sizeof *sequence);
    if (!sequence->length || !sequence->get)
        return leati_fail(err, LEAT_EINVAL, "a sequence needs the functions length and get");
    if (sequence->state_bytes && !sequence->state)
        return leati_fail(err, LEAT_EINVAL, "the sequence declares %zu bytes of state at NULL",
                          sequence->state_bytes);
    return LEAT_OK;
}

/* ---- issuing ---- */

/* The first failure ends the stream: workers leave, and every further get returns it. */
static leat_status end_stream(leat_feed *feed, leat_status status, const leat_error *why, leat_error *err) {
    if (feed->ended == LEAT_OK) {
        feed->ended = status;
        feed->ended_error = *why;
        leati_ring_stop(&feed->ring);
    }
    if (err) *err = feed->ended_error;
    return feed->ended;
}

static int64_t index_at(const leat_feed *feed, int64_t ordinal) {
    if (feed->options.shuffle == LEAT_SHUFFLE_NONE) return ordinal;
    return (int64_t)leati_shuffle_at(&feed->shuffle, (uint64_t)ordinal);
}

static leat_status start_pass(leat_feed *feed, int64_t pass, leat_error *err) {
    int64_t length = feed->sequence.length(feed->sequence.user);
    if (length < 1)
        return leati_fail(err, LEAT_EINVAL, "pass %lld has %lld batches: the sequence is empty",
                          (long long)pass, (long long)length);
    feed->pass = pass;
    feed->ordinal = 0;
    feed->pass_length = length;
    if (feed->options.shuffle == LEAT_SHUFFLE_BATCHES)
        leati_shuffle_init(&feed->shuffle, feed->options.seed, (uint64_t)pass, (uint64_t)length);
    return LEAT_OK;
}

/* Whether so many tickets, the last of them in that pass at its end or not, are all that was asked for. */
static bool all_asked_for(const leat_feed *feed, uint64_t tickets, int64_t pass, bool at_end) {
    const leat_feed_options *options = &feed->options;
    return (options->limit && tickets >= (uint64_t)options->limit) ||
           (options->passes && at_end && pass + 1 >= options->passes);
}

/* Whether a ticket may be issued; opens the next pass where one is needed and no hook stands before it. */
static bool may_issue(leat_feed *feed) {
    bool at_end = feed->ordinal == feed->pass_length;
    if (feed->pending != LEAT_OK || all_asked_for(feed, feed->issued, feed->pass, at_end)) return false;
    if (!at_end) return true;
    if (feed->sequence.on_epoch_end && feed->passes_ended <= feed->pass) return false;
    feed->pending = start_pass(feed, feed->pass + 1, &feed->pending_error);
    return feed->pending == LEAT_OK;
}

static void issue_until(leat_feed *feed, uint64_t end, bool urgent) {
    while (feed->issued < end && may_issue(feed)) {
        leati_job job = {.ticket = feed->issued++,
                         .length = feed->pass_length,
                         .position = {feed->pass, feed->ordinal, index_at(feed, feed->ordinal)}};
        ++feed->ordinal;
        leati_ring_open_slot(&feed->ring, &job);
    }
    leati_ring_announce(&feed->ring, feed->issued, urgent || feed->issued < end);
}

static void issue_ahead(leat_feed *feed, bool urgent) {
    if (feed->options.workers > 0)
        issue_until(feed, feed->delivered + (uint64_t)feed->options.max_queue_size, urgent);
}

/* ---- opening and closing ---- */

static leat_status open_ring(leat_feed *feed, leat_error *err) {
    const leat_feed_options *options = &feed->options;
    bool processes = options->use_multiprocessing && options->workers > 0;
    int slots = options->workers > 0 ? options->max_queue_size + 1 : 1;
    LEATI_TRY(leati_ring_init(&feed->ring, &feed->sequence, slots, options->workers, processes, err));
    feed->spin.longest_ns = options->spin_us < 0 ? LEATI_WAKE_UP_NS : (int64_t)options->spin_us * 1000;
    feed->ring.cores = leati_core_count();
    feed->ring.batch_ns = LEATI_WAKE_UP_NS; /* until one was seen */
    for (int i = 0; i < options->workers; ++i) feed->ring.workers[i].spin.longest_ns = LEATI_WAKE_UP_NS / 2;
    feed->stats.ring_bytes = (int64_t)feed->ring.bytes;
    feed->inline_worker =
        (leati_worker){.ring = &feed->ring, .sequence = &feed->sequence, .seed = options->seed};
    feed->crew = (leati_crew){.ring = &feed->ring, .sequence = &feed->sequence, .seed = options->seed};
    return LEAT_OK;
}

static leat_status open_feed(leat_feed *feed, leat_error *err) {
    LEATI_TRY(check_options(&feed->options, err));
    LEATI_TRY(check_sequence(&feed->sequence, err));
    LEATI_TRY(start_pass(feed, 0, err));
    feed->length = feed->pass_length;
    feed->position.index = index_at(feed, 0);
    LEATI_TRY(open_ring(feed, err));
    issue_ahead(feed, true);
    return leati_crew_start(&feed->crew, err);
}

leat_status leat_feed_open(leat_feed **out, const leat_sequence *sequence, const leat_feed_options *options,
                           leat_error *err) {
    *out = NULL;
    leat_feed *feed = leati_calloc(1, sizeof *feed);
    if (!feed) return leati_fail_memory(err, sizeof *feed, "a feed");
    feed->owner = getpid();
    feed->sequence = *sequence;
    feed->options = options ? *options : leat_feed_options_default();
    leat_status status = open_feed(feed, err);
    if (status != LEAT_OK) leat_feed_close(&feed);
    *out = feed;
    return leati_prefix(status, err, "feed");
}

void leat_feed_stop(leat_feed *feed) {
    leati_ring_stop(&feed->ring);
}

void leat_feed_close(leat_feed **feed) {
    if (!feed || !*feed) return;
    leat_feed *old = *feed;
    if (old->owner ==
        getpid()) { /* a child of the caller has neither the workers nor the ring between processes */
        if (old->ring.shared) leati_ring_stop(&old->ring);
        leati_crew_dismiss(&old->crew);
        if (old->inline_begun) leati_worker_end(&old->inline_worker);
        leati_ring_fini(&old->ring);
    }
    leati_crew_fini(&old->crew);
    leati_free(old);
    *feed = NULL;
}

/* ---- passes ---- */

static bool forked_anew(const leat_feed *feed) {
    return feed->ring.between_processes && feed->sequence.on_epoch_end && !feed->sequence.state_bytes;
}

static leat_status run_hook(leat_feed *feed, leat_error *err) {
    leat_sequence *sequence = &feed->sequence;
    if (!sequence->on_epoch_end) return LEAT_OK;
    leat_error why = {0};
    leat_status status = sequence->on_epoch_end(sequence->user, feed->position.pass, &why);
    why.message[sizeof why.message - 1] = '\0';
    if (status != LEAT_OK) {
        leati_fail_origin(err, status, (leat_origin)why.origin, why.origin_code,
                          "on_epoch_end of pass %lld: %s", (long long)feed->position.pass,
                          why.message[0] ? why.message : leat_status_text(status));
        return status;
    }
    if (!sequence->state_bytes) return LEAT_OK;
    /* No batch is being made now, so no worker reads this: the next ticket publishes it. */
    memcpy(feed->ring.state, sequence->state, sequence->state_bytes);
    atomic_fetch_add(&feed->ring.shared->state_version, 1);
    return LEAT_OK;
}

static leat_status end_pass(leat_feed *feed, leat_error *err) {
    bool more = !all_asked_for(feed, feed->delivered, feed->position.pass, true);
    LEATI_TRY(run_hook(feed, err));
    feed->passes_ended = feed->position.pass + 1;
    if (more && forked_anew(feed)) {
        leati_crew_dismiss(&feed->crew);
        LEATI_TRY(leati_crew_start(&feed->crew, err));
    }
    if (feed->options.workers > 0)
        issue_ahead(feed, true);
    else if (may_issue(feed))
        feed->length = feed->pass_length;
    if (feed->issued > feed->delivered)
        feed->length = leati_ring_slot(&feed->ring, feed->delivered)->job.length;
    else if (feed->pending != LEAT_OK) {
        *err = feed->pending_error;
        return feed->pending;
    }
    return LEAT_OK;
}

leat_status leat_feed_end_pass(leat_feed *feed, leat_error *err) {
    if (!feed->pass_due || feed->in_use) return LEAT_OK;
    feed->pass_due = false;
    leat_error why = {0};
    leat_status status = end_pass(feed, &why);
    return status == LEAT_OK ? LEAT_OK : end_stream(feed, status, &why, err);
}

/* ---- delivery ---- */

static leat_status await_slot(leat_feed *feed, leat_error *err) {
    leati_wait seen = leati_ring_look(&feed->ring, feed->delivered);
    if (seen == LEATI_WAIT_TICK) {
        int64_t start = leati_now_ns();
        leati_ring_announce(&feed->ring, feed->issued,
                            1); /* nobody may sleep over a ticket that is waited for */
        int64_t sleep_ns = feed->ring.between_processes ? TICK_NS : -1;
        int64_t spin_ns = leati_spin_length(&feed->spin);
        bool only_idle_cores = feed->options.spin_us < 0;
        while ((seen = leati_ring_await(&feed->ring, feed->delivered, spin_ns, only_idle_cores, sleep_ns)) ==
               LEATI_WAIT_TICK) {
            spin_ns = 0;
            LEATI_TRY(leati_crew_check(&feed->crew, err));
        }
        int64_t waited_ns = leati_now_ns() - start;
        ++feed->stats.starved;
        feed->stats.wait_ns += waited_ns;
        leati_spin_learn(&feed->spin, waited_ns);
    }
    if (seen == LEATI_WAIT_STOPPED) return leati_fail(err, LEAT_ESTOPPED, "the feed was stopped");
    if (seen == LEATI_WAIT_READY) return LEAT_OK;
    *err = feed->ring.shared->failure;
    return (leat_status)err->code;
}

/* workers = 0: the caller is the worker. */
static leat_status make_inline(leat_feed *feed, leat_error *err) {
    if (!feed->inline_begun) {
        LEATI_TRY(leati_worker_begin(&feed->inline_worker, err));
        feed->inline_begun = true;
    }
    leati_slot *slot = leati_ring_slot(&feed->ring, feed->delivered);
    leati_worker_make(&feed->inline_worker, slot);
    ++feed->stats.starved;
    feed->stats.wait_ns += slot->get_ns;
    return LEAT_OK;
}

static void account(leat_feed *feed, const leati_slot *slot) {
    feed->position = slot->job.position;
    feed->length = slot->job.length;
    feed->pass_due = slot->job.position.ordinal + 1 == slot->job.length;
    ++feed->stats.batches;
    for (int i = 0; i < slot->batch.tensor_count; ++i)
        feed->stats.bytes += (int64_t)leat_tensor_bytes(&slot->batch.tensors[i]);
    feed->stats.get_ns += slot->get_ns;
    if (slot->get_ns > feed->stats.get_max_ns) feed->stats.get_max_ns = slot->get_ns;
}

static leat_status next_batch(leat_feed *feed, const leat_batch **batch, leat_error *err) {
    leati_slot *slot = leati_ring_slot(&feed->ring, feed->delivered);
    if (feed->options.workers > 0)
        LEATI_TRY(await_slot(feed, err));
    else
        LEATI_TRY(make_inline(feed, err));
    if (slot->status != LEAT_OK) {
        *err = slot->error;
        return leati_prefix((leat_status)slot->status, err, "batch %lld of pass %lld",
                            (long long)slot->job.position.index, (long long)slot->job.position.pass);
    }
    ++feed->delivered;
    account(feed, slot);
    feed->ring.batch_ns = slot->get_ns;
    issue_ahead(feed, false);
    feed->in_use = true;
    *batch = &slot->batch;
    return LEAT_OK;
}

leat_status leat_feed_get(leat_feed *feed, const leat_batch **batch, leat_error *err) {
    *batch = NULL;
    if (feed->in_use)
        return leati_fail(err, LEAT_EINVAL,
                          "the batch in hand must go back by leat_feed_release before the next is taken");
    if (feed->ended != LEAT_OK) return end_stream(feed, feed->ended, &feed->ended_error, err);
    leat_error why = {0};
    if (leati_ring_look(&feed->ring, feed->delivered) == LEATI_WAIT_STOPPED) {
        leati_fail(&why, LEAT_ESTOPPED, "the feed was stopped");
        return end_stream(feed, LEAT_ESTOPPED, &why, err);
    }
    LEATI_TRY(leat_feed_end_pass(feed, err));
    if (feed->options.workers == 0) issue_until(feed, feed->delivered + 1, true);
    if (feed->issued == feed->delivered && feed->pending != LEAT_OK)
        return end_stream(feed, feed->pending, &feed->pending_error, err);
    if (feed->issued == feed->delivered)
        return leati_fail(err, LEAT_ENOTFOUND, "all %lld batches that were asked for have been delivered",
                          (long long)feed->delivered);
    leat_status status = next_batch(feed, batch, &why);
    return status == LEAT_OK ? LEAT_OK : end_stream(feed, status, &why, err);
}

void leat_feed_release(leat_feed *feed) {
    feed->in_use = false;
}

/* ---- figures ---- */

leat_feed_position leat_feed_position_get(const leat_feed *feed) {
    return feed->position;
}

int64_t leat_feed_length(const leat_feed *feed) {
    return feed->length;
}

int leat_feed_ready(const leat_feed *feed) {
    int ready = 0;
    for (uint64_t ticket = feed->delivered; ticket < feed->issued; ++ticket, ++ready)
        if (atomic_load(&leati_ring_slot(&feed->ring, ticket)->state) != LEATI_SLOT_READY) break;
    return ready;
}

leat_feed_stats leat_feed_stats_get(const leat_feed *feed) {
    leat_feed_stats stats = feed->stats;
    stats.worker_deaths = atomic_load(&feed->ring.shared->deaths);
    return stats;
}
