/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a feed: the tickets to issue next, the batches delivered, and the figures measured. */
#ifndef LEATI_FEED_STREAM_H
#define LEATI_FEED_STREAM_H

#include <stdatomic.h>

#include "feed/stats/figures.h"
#include "feed/group.h"
#include "feed/stopped.h"
#include "feed/workers/patience.h"

struct leat_feed {
    leati_group *group;
    leati_service service;
    leat_feed_options options;
    leati_worker inline_worker; /* without workers: makes the batches in the caller's thread */
    leati_pool_work inline_works;
    leati_service *inline_service;
    bool inline_begun;
    bool closed;

    /* The next ticket to issue. */
    uint64_t issued;       /* number of tickets issued */
    int64_t pass, ordinal; /* position of the next ticket */
    int64_t samples;       /* samples of that pass if they are shuffled, otherwise 0 */
    int64_t pass_samples;  /* samples of that pass; 0 if they are not known */
    int64_t passes_ended;  /* number of passes that leat_feed_end_pass has ended */
    leati_order order;     /* order of that pass */

    /* The batches delivered. */
    uint64_t delivered; /* number of tickets delivered, skipped or discarded */
    uint64_t
        discard_until; /* tickets below this number are not delivered: leat_feed_seek was called after them */
    uint64_t discarded; /* number of these tickets */
    int64_t good;       /* number of good batches delivered in the current pass */
    leat_feed_position position, next;
    int64_t length;
    leati_slot *head; /* a good batch that leat_feed_await has found and leat_feed_get has not returned yet */
    leati_slot *in_use; /* the batch that the caller has and has not released yet */
    bool kept;          /* the caller keeps the batch in use */
    bool pass_due;      /* all batches of the current pass were delivered, and the pass is not ended yet */
    bool generator_ended;

    leati_spin spin;
    leati_patience patience; /* with worker threads: measures how long the next batch is late */
    leati_watched awaited;
    int64_t patient_until_ns;     /* when leat_feed_await_for stops waiting; 0: never */
    bool impatient;               /* it has stopped waiting */
    const atomic_bool *interrupt; /* NULL, or a flag that ends waiting (leati_feed_interrupt_by) */
    leati_stopped stopped;
    leati_figures figures;
    leat_status pending; /* an error of issuing; it is returned after the tickets issued before it */
    leat_error pending_error;
    leat_status ended; /* not LEAT_OK: every further leat_feed_get returns this error */
    leat_error ended_error;
};

static inline bool leati_feed_is_inline(const leat_feed *feed) {
    return feed->options.workers == 0;
}

/* Sets the position at which the stream begins or continues.  Errors: LEAT_EINVAL, LEAT_ENOTSUP. */
leat_status leati_stream_set_position(leat_feed *feed, const leat_feed_position *at, leat_error *err);

/* Asks the sequence for the length of a pass and makes it the pass of the next tickets.  Errors: LEAT_EINVAL,
 * LEAT_ENOTSUP. */
leat_status leati_stream_start_pass(leat_feed *feed, int64_t pass, leat_error *err);

/* Issues the tickets below `end`, except those after the end that options.limit or options.passes sets. */
void leati_stream_issue_until(leat_feed *feed, uint64_t end, bool urgent);
/* Issues max_queue_size tickets ahead of the delivered batches; does nothing for a feed without workers. */
void leati_stream_issue_ahead(leat_feed *feed, bool urgent);

/* Returns LEAT_EINVAL in a child of the process that opened the feed: public functions must not use the ring there. */
leat_status leati_stream_check_process(const leat_feed *feed, leat_error *err);

/* Ends the stream: the workers stop, and every further call returns the first failure. */
leat_status leati_stream_end(leat_feed *feed, leat_status status, const leat_error *why, leat_error *err);

#endif
