/* SPDX-License-Identifier: Apache-2.0 */
/* A feed from the inside: what is issued next, what was delivered, and what was measured. */
#ifndef LEATI_FEED_STREAM_H
#define LEATI_FEED_STREAM_H

#include "feed/stats/figures.h"
#include "feed/group.h"
#include "feed/workers/patience.h"

struct leat_feed {
    leati_group *group;
    leati_service service;
    leat_feed_options options;
    leati_worker inline_worker; /* the caller itself, where there are no workers */
    leati_works inline_works;
    leati_service *inline_service;
    bool inline_begun;
    bool closed;

    /* what is issued next */
    uint64_t issued; /* tickets */
    int64_t pass, ordinal;
    int64_t samples;      /* of that pass, where they are shuffled */
    int64_t passes_ended; /* by leat_feed_end_pass */
    leati_order order;    /* of the pass in which tickets are issued */

    /* what was delivered */
    uint64_t delivered; /* tickets, those of bad batches too */
    int64_t good;       /* batches delivered of the pass in hand */
    leat_feed_position position, next;
    int64_t length;
    leati_slot *head;   /* found good by leat_feed_await, and not yet taken */
    leati_slot *in_use; /* taken, and not yet released */
    bool pass_due;      /* the pass in hand was delivered whole, and is yet to be ended */
    bool generator_ended;

    leati_spin spin;
    leati_patience patience; /* with worker threads: for the batch that is waited for */
    leati_watched awaited;
    leati_figures figures;
    leat_status pending; /* found while issuing, due when the tickets before it are delivered */
    leat_error pending_error;
    leat_status ended; /* what every further leat_feed_get returns */
    leat_error ended_error;
};

static inline bool leati_feed_is_inline(const leat_feed *feed) {
    return feed->options.workers == 0;
}

/* Reads the length of a pass and starts issuing it.  Errors: LEAT_EINVAL, LEAT_ENOTSUP. */
leat_status leati_stream_start_pass(leat_feed *feed, int64_t pass, leat_error *err);

/* Issues tickets below `end`, as far as they are asked for. */
void leati_stream_issue_until(leat_feed *feed, uint64_t end, bool urgent);
/* Issues as many as the queue holds beyond the batch in use; nothing where the caller makes the batches. */
void leati_stream_issue_ahead(leat_feed *feed, bool urgent);

/* LEAT_EINVAL in a child of the process that opened the feed, so that no public function touches the ring there. */
leat_status leati_stream_check_process(const leat_feed *feed, leat_error *err);

/* The first failure ends the stream: workers leave, and every further call returns it. */
leat_status leati_stream_end(leat_feed *feed, leat_status status, const leat_error *why, leat_error *err);

#endif
