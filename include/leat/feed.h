/* SPDX-License-Identifier: Apache-2.0 */
/* The feed: worker threads or processes compute a Sequence's batches into a bounded ring of shared slots, and the
 * caller takes them in order, in place.  keras.utils.OrderedEnqueuer without its faults.
 *
 * A pass is once through the data (the feed's word); an epoch is a stretch of training (the loop's word).  The stream
 * runs on from pass to pass.  Order, and every byte, are a function of (seed, pass, index) alone. */
#ifndef LEAT_FEED_H
#define LEAT_FEED_H

#include <stdbool.h>
#include <stdint.h>

#include "leat/error.h"
#include "leat/sequence.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque.  Externally synchronised, but for leat_feed_stop, which any thread may call. */
typedef struct leat_feed leat_feed;

/** In which order a pass visits its batches. */
typedef enum leat_shuffle {
    LEAT_SHUFFLE_NONE = 0,
    LEAT_SHUFFLE_BATCHES = 1 /* a permutation of the batch indices, by (seed, pass) */
} leat_shuffle;

typedef struct leat_feed_options {
    int workers;              /* 0: batches are made in leat_feed_get, by the caller; default 1 */
    bool use_multiprocessing; /* worker processes instead of threads; default false */
    int max_queue_size;       /* batches made ahead of the one in use, >= 1; default 10 */
    leat_shuffle shuffle;     /* default LEAT_SHUFFLE_NONE */
    uint64_t seed;            /* default 0 */
    int64_t limit;            /* batches delivered in all, after which none is made; 0 (default): no limit */
    int64_t passes; /* passes delivered in all, after which no batch is made; 0 (default): no limit */
    int spin_us;    /* longest spin before the caller sleeps for a batch; -1 (default): by idle cores */
} leat_feed_options;

/** Where a batch stands in the stream. */
typedef struct leat_feed_position {
    int64_t pass;    /* from 0 */
    int64_t ordinal; /* which batch of the pass, from 0 */
    int64_t index;   /* the index that get received: the ordinal, permuted */
} leat_feed_position;

/** The spread of a duration in ns, to 6 %; max is exact. */
typedef struct leat_percentiles {
    int64_t p50, p90, p99, max;
} leat_percentiles;

/** What a feed measured since it was opened.  Times in ns. */
typedef struct leat_feed_stats {
    int64_t batches; /* delivered */
    int64_t bytes;   /* delivered */
    int64_t starved; /* calls of leat_feed_get that had to wait; with workers = 0, all */
    int64_t wait_ns; /* the caller's waiting, in all */
    int64_t get_ns;  /* the workers' time inside get, in all */
    int64_t get_max_ns;
    int64_t worker_deaths; /* worker processes lost and replaced */
    int64_t ring_bytes;    /* the ring's memory */
} leat_feed_stats;

LEAT_API leat_feed_options leat_feed_options_default(void);

/** Starts workers, which begin at once with pass 0.  Copies *sequence; what it points to must outlive the feed.
 *  With processes, *user is what it was at this call (and `state` is kept current); they are forked here, so open the
 *  feed before large memory is filled and, where possible, before threads are made.  A feed belongs to the process that
 *  opened it.  options may be NULL for the defaults.
 *  @param[out] out  New feed, closed by leat_feed_close; NULL on failure.
 *  Errors: LEAT_EINVAL an option or an empty sequence; LEAT_ESHAPE the specification; LEAT_ENOMEM; LEAT_EIO no process,
 *  thread, mapping or descriptor could be had.  After failure nothing is left.  What a worker meets while it starts
 *  (worker_init, a process that cannot be forked) is told by leat_feed_get. */
LEAT_API LEAT_CHECKED leat_status leat_feed_open(leat_feed **out, const leat_sequence *sequence,
                                                 const leat_feed_options *options, leat_error *err);

/** Waits for the next batch.  *batch is borrowed until leat_feed_release.  Calling it again without release is
 *  LEAT_EINVAL.  At the end of a pass it does what leat_feed_end_pass does, unless that was done.
 *  Errors: the code and message of the sequence's get, prefixed "batch 7 of pass 2: "; LEAT_ESHAPE the same, where get
 *  set what the specification does not allow; LEAT_EWORKER three worker processes died making the batch, or the helper
 *  process was lost; LEAT_ENOMEM no memory for the slot; LEAT_ESTOPPED after leat_feed_stop; LEAT_EINVAL a pass without
 *  batches.  Each of these ends the stream: workers stop, and further calls return it again.  LEAT_ENOTFOUND when
 *  `limit` batches or `passes` passes have been delivered. */
LEAT_API LEAT_CHECKED leat_status leat_feed_get(leat_feed *feed, const leat_batch **batch, leat_error *err);

/** Gives the batch's slot back to the workers. */
LEAT_API void leat_feed_release(leat_feed *feed);

/** Ends the pass if all its batches were delivered and released: runs on_epoch_end, re-reads the length, hands over
 *  state.  Otherwise does nothing; a second call does nothing. */
LEAT_API LEAT_CHECKED leat_status leat_feed_end_pass(leat_feed *feed, leat_error *err);

/** The position of the batch that leat_feed_get delivered last, or of the first before any. */
LEAT_API leat_feed_position leat_feed_position_get(const leat_feed *feed);

/** Batches of the pass in hand. */
LEAT_API int64_t leat_feed_length(const leat_feed *feed);

/** How many more batches are ready now (0 .. max_queue_size): how far the workers are ahead.  Batches that cost less than
 *  waking a worker may be made in strokes, when half of the queue is free. */
LEAT_API int leat_feed_ready(const leat_feed *feed);

LEAT_API leat_feed_stats leat_feed_stats_get(const leat_feed *feed);

/** Asks for the end: a waiting leat_feed_get returns LEAT_ESTOPPED, and workers make no further batch.  Any thread, and
 *  any signal handler, before leat_feed_close. */
LEAT_API void leat_feed_stop(leat_feed *feed);

/** Stops, waits for batches in progress, and leaves no thread, process, descriptor or mapping.  Sets *feed to NULL;
 *  NULL is fine. */
LEAT_API void leat_feed_close(leat_feed **feed);

#ifdef __cplusplus
}
#endif
#endif
