/* SPDX-License-Identifier: Apache-2.0 */
/* Starts and ends passes, and issues tickets.  Room: feed.
 *
 * The consumer issues each ticket with its complete job (pass, ordinal, index), at most max_queue_size ahead of the
 * batches that it has delivered.  Workers do not know about passes: before a hook runs at the end of a pass, the
 * consumer does not issue the next ticket. */
#include "feed/stream.h"

#include <assert.h>
#include <string.h>
#include "base/error.h"

leat_status leati_stream_end(leat_feed *feed, leat_status status, const leat_error *why, leat_error *err) {
    if (feed->ended == LEAT_OK) {
        feed->ended = status;
        feed->ended_error = *why;
        leati_ring_stop(&feed->service.ring);
    }
    if (err) *err = feed->ended_error;
    return feed->ended;
}

leat_status leati_stream_check_process(const leat_feed *feed, leat_error *err) {
    if (!leati_group_is_inherited(feed->group)) return LEAT_OK;
    return leati_fail(
        err, LEAT_EINVAL,
        "the feed was opened before this process was forked, and only the parent can use it: close it, and "
        "open a feed in this process");
}

/* ---- passes ---- */

/* Returns the number of samples of a pass; 0 if it is not known. */
static int64_t count_samples(const leati_service *service, int64_t length) {
    const leat_sequence *sequence = &service->sequence;
    const int64_t most = service->batch_size;
    if (!sequence->get_samples || length == LEAT_LENGTH_INFINITE) return 0;
    const int64_t samples = sequence->samples(sequence->user);
    return samples >= 1 && (samples - 1) / most + 1 == length ? samples : 0;
}

static leat_status check_samples(const leat_feed *feed, int64_t pass, int64_t length, int64_t samples,
                                 leat_error *err) {
    int64_t batch_size = feed->service.batch_size;
    if (samples >= 1 && (samples - 1) / batch_size + 1 == length) return LEAT_OK;
    return leati_fail(
        err, LEAT_EINVAL,
        "pass %lld has %lld samples and %lld batches of %lld: for shuffling by samples, and for parts of "
        "batches, the samples must fill exactly this number of batches",
        (long long)pass, (long long)samples, (long long)length, (long long)batch_size);
}

static leat_status check_length(const leat_feed *feed, int64_t pass, int64_t length, leat_error *err) {
    if (length < 1)
        return leati_fail(err, LEAT_EINVAL, "pass %lld has %lld batches: the sequence is empty",
                          (long long)pass, (long long)length);
    if (length == LEAT_LENGTH_INFINITE && feed->service.rule.shuffle != LEAT_SHUFFLE_NONE &&
        feed->options.shuffle != LEAT_SHUFFLE_AUTO)
        return leati_fail(err, LEAT_ENOTSUP, "an infinite sequence cannot be shuffled");
    if (length == LEAT_LENGTH_INFINITE && feed->service.parts > 0)
        return leati_fail(err, LEAT_ENOTSUP,
                          "the batches of an infinite sequence cannot be made in parts: it has no samples");
    return LEAT_OK;
}

leat_status leati_stream_start_pass(leat_feed *feed, int64_t pass, leat_error *err) {
    const leat_sequence *sequence = &feed->service.sequence;
    leati_order_rule *rule = &feed->service.rule;
    int64_t length = sequence->next ? LEAT_LENGTH_INFINITE : sequence->length(sequence->user);
    LEATI_TRY(check_length(feed, pass, length, err));
    /* Workers read the rule while later passes start; a sequence without end has a single pass. */
    if (length == LEAT_LENGTH_INFINITE) {
        rule->shuffle = LEAT_SHUFFLE_NONE;
        rule->by_samples = false;
    }
    const bool needs_samples = rule->by_samples || feed->service.parts > 0;
    feed->samples = needs_samples ? sequence->samples(sequence->user) : 0;
    feed->pass_samples = count_samples(&feed->service, length);
    if (needs_samples) LEATI_TRY(check_samples(feed, pass, length, feed->samples, err));
    feed->pass = pass;
    feed->ordinal = 0;
    leati_order_start(&feed->order, rule, pass, length);
    if (feed->order.length > 0) return LEAT_OK;
    return leati_fail(err, LEAT_EINVAL, "pass %lld has %lld batches: none of them is for rank %d of %d",
                      (long long)pass, (long long)length, feed->order.rank, feed->order.world);
}

leat_status leati_stream_set_position(leat_feed *feed, const leat_feed_position *at, leat_error *err) {
    const int64_t most = INT64_MAX / 2; /* so that later positions do not overflow */
    if (at->pass < 0 || at->ordinal < 0 || at->pass > most || at->ordinal > most / feed->order.world)
        return leati_fail(err, LEAT_EINVAL, "batch %lld of pass %lld is not a position of a stream",
                          (long long)at->ordinal, (long long)at->pass);
    LEATI_TRY(leati_stream_start_pass(feed, at->pass, err));
    if (at->ordinal > feed->order.length)
        return leati_fail(err, LEAT_EINVAL, "pass %lld has %lld batches, so none with number %lld",
                          (long long)at->pass, (long long)feed->order.length, (long long)at->ordinal);
    feed->ordinal = at->ordinal;
    feed->passes_ended = at->pass;
    feed->pass_due = at->ordinal == feed->order.length;
    feed->good = at->ordinal > 0; /* The earlier batches of the pass are taken as good. */
    feed->length = feed->order.length;
    feed->next = feed->position = (leat_feed_position){.pass = at->pass, .ordinal = at->ordinal};
    if (!feed->pass_due) feed->position.index = leati_order_index(&feed->order, at->ordinal);
    return LEAT_OK;
}

static bool forked_anew(const leat_feed *feed) {
    return feed->service.ring.table->between_processes && feed->service.sequence.on_epoch_end &&
           !feed->service.sequence.state_bytes;
}

static leat_status run_hook(leat_feed *feed, leat_error *err) {
    leat_sequence *sequence = &feed->service.sequence;
    leati_ring *ring = &feed->service.ring;
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
    /* No batch is being made now, so no worker reads the state while it changes.  The workers see the new state before
     * the next ticket. */
    memcpy(ring->state, sequence->state, sequence->state_bytes);
    atomic_fetch_add(&ring->shared->state_version, 1);
    return LEAT_OK;
}

/* Returns true if no batch is wanted after `tickets` tickets, because of options.limit or options.passes.  `pass` is
 * the pass of the last ticket; at_end says that the ticket is the last one of the pass. */
static bool all_asked_for(const leat_feed *feed, uint64_t tickets, int64_t pass, bool at_end) {
    const leat_feed_options *options = &feed->options;
    uint64_t batches = tickets - (uint64_t)feed->figures.skips - feed->discarded;
    return (options->limit && batches >= (uint64_t)options->limit) ||
           (options->passes && (pass >= options->passes || (at_end && pass + 1 >= options->passes)));
}

static leat_status end_pass(leat_feed *feed, leat_error *err) {
    bool more = !all_asked_for(feed, feed->delivered, feed->position.pass, true);
    LEATI_TRY(run_hook(feed, err));
    feed->passes_ended = feed->position.pass + 1;
    feed->next = (leat_feed_position){.pass = feed->passes_ended};
    feed->good = 0;
    if (more && forked_anew(feed)) LEATI_TRY(leati_group_renew(feed->group, err));
    if (leati_feed_is_inline(feed))
        leati_stream_issue_until(feed, feed->delivered + 1, true);
    else
        leati_stream_issue_ahead(feed, true);
    if (feed->issued > feed->delivered)
        feed->length = leati_ring_slot(&feed->service.ring, feed->delivered)->job.length;
    else if (feed->pending != LEAT_OK) {
        *err = feed->pending_error;
        return feed->pending;
    }
    return LEAT_OK;
}

leat_status leat_feed_end_pass(leat_feed *feed, leat_error *err) {
    LEATI_GIVEN(feed, err);
    LEATI_TRY(leati_stream_check_process(feed, err));
    if (!feed->pass_due || feed->in_use) return LEAT_OK;
    feed->pass_due = false;
    leat_error why = {0};
    leat_status status = end_pass(feed, &why);
    return status == LEAT_OK ? LEAT_OK : leati_stream_end(feed, status, &why, err);
}

/* ---- tickets ---- */

/* Returns true if a ticket may be issued.  Starts the next pass if necessary, unless a hook must run before it. */
static bool may_issue(leat_feed *feed) {
    bool at_end = feed->ordinal == feed->order.length;
    if (feed->pending != LEAT_OK || all_asked_for(feed, feed->issued, feed->pass, at_end)) return false;
    if (!at_end) return true;
    if (feed->service.sequence.on_epoch_end && feed->passes_ended <= feed->pass) return false;
    feed->pending = leati_stream_start_pass(feed, feed->pass + 1, &feed->pending_error);
    return feed->pending == LEAT_OK;
}

void leati_stream_issue_until(leat_feed *feed, uint64_t end, bool urgent) {
    while (feed->issued < end && may_issue(feed)) {
        leati_job job = {.ticket = feed->issued++,
                         .length = feed->order.length,
                         .samples = feed->samples,
                         .position = {feed->pass, feed->ordinal,
                                      leati_order_index(&feed->order, feed->ordinal)}};
        ++feed->ordinal;
        assert(feed->issued - feed->delivered <= feed->service.ring.slot_count);
        assert(leati_ring_slot(&feed->service.ring, job.ticket) != feed->in_use);
        leati_ring_open_slot(&feed->service.ring, &job);
    }
    leati_ring_announce(&feed->service.ring, feed->issued, urgent || feed->issued < end);
}

void leati_stream_issue_ahead(leat_feed *feed, bool urgent) {
    if (leati_feed_is_inline(feed)) return;
    leati_stream_issue_until(feed, feed->delivered + (uint64_t)feed->service.max_queue_size, urgent);
}

/* ---- another position ---- */

static leat_status check_seek(const leat_feed *feed, leat_error *err) {
    LEATI_TRY(leati_stream_check_process(feed, err));
    if (feed->service.sequence.next)
        return leati_fail(err, LEAT_ENOTSUP, "a generator cannot continue at another position");
    if (feed->in_use)
        return leati_fail(err, LEAT_EINVAL,
                          "expected leat_feed_release for the batch in use before leat_feed_seek");
    if (feed->ended == LEAT_OK) return LEAT_OK;
    if (err) *err = feed->ended_error;
    return feed->ended;
}

leat_status leat_feed_seek(leat_feed *feed, const leat_feed_position *at, leat_error *err) {
    LEATI_GIVEN(feed, err);
    LEATI_GIVEN(at, err);
    LEATI_TRY(check_seek(feed, err));
    uint64_t first = feed->delivered > feed->discard_until ? feed->delivered : feed->discard_until;
    for (uint64_t ticket = first; ticket < feed->issued; ++ticket)
        atomic_store(&leati_ring_slot(&feed->service.ring, ticket)->discarded, 1);
    feed->discarded += feed->issued - first;
    feed->discard_until = feed->issued;
    feed->head = NULL;
    feed->pending = LEAT_OK;
    leat_error why = {0};
    leat_status status = leati_stream_set_position(feed, at, &why);
    if (status != LEAT_OK) return leati_stream_end(feed, status, &why, err);
    leati_stream_issue_ahead(feed, true);
    return LEAT_OK;
}
