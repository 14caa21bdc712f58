/* SPDX-License-Identifier: Apache-2.0 */
/* The feed: worker threads or processes compute a Sequence's batches into a bounded ring of shared slots, and the
 * caller takes them in order, in place.  keras.utils.OrderedEnqueuer and GeneratorEnqueuer without their faults.
 *
 * A pass is once through the data (the feed's word); an epoch is a stretch of training (the loop's word).  The stream
 * runs on from pass to pass.  Order, and every byte, are a function of (seed, pass, index) alone. */
#ifndef LEAT_FEED_H
#define LEAT_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "leat/error.h"
#include "leat/sequence.h"
#include "leat/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Opaque.  Externally synchronised, but for leat_feed_stop, which any thread may call. */
typedef struct leat_feed leat_feed;

/** In which order a pass visits its data.  Each is a function of (seed, pass). */
typedef enum leat_shuffle {
    LEAT_SHUFFLE_NONE = 0,
    LEAT_SHUFFLE_BATCHES = 1, /* a permutation of the batches: Keras's */
    LEAT_SHUFFLE_SAMPLES = 2, /* a permutation of the samples; for sequences that have get_samples */
    /* A permutation of each run of shuffle_window samples (of batches, where the sequence has no get_samples): data is
     * read nearly in order.  The runs lie elsewhere in each pass. */
    LEAT_SHUFFLE_WINDOW = 3,
    /* Samples where the sequence has get_samples, otherwise batches; a generator or an infinite sequence as it comes.
     * Keras's shuffle=True. */
    LEAT_SHUFFLE_AUTO = 4
} leat_shuffle;

/** What to do with the batches that `world` does not divide. */
typedef enum leat_remainder {
    LEAT_REMAINDER_UNEVEN = 0, /* the first ranks have one batch more */
    LEAT_REMAINDER_DROP = 1,   /* nobody gets them */
    LEAT_REMAINDER_PAD = 2     /* the ranks without one get batches from the beginning of the pass again */
} leat_remainder;

/** What becomes of a batch that cannot be made: get failed, set what the specification forbids, set NaN or Inf where
 *  check_finite is set, or its worker processes died or hung too often. */
typedef enum leat_bad_batch {
    LEAT_BAD_BATCH_FAIL = 0, /* the stream ends with its error */
    LEAT_BAD_BATCH_SKIP = 1  /* counted and passed over: the pass is shorter by it */
} leat_bad_batch;

/** How much goes wrong before it counts.  Frozen: later versions add members to the options that contain it. */
typedef struct leat_faults {
    leat_bad_batch bad_batch; /* default LEAT_BAD_BATCH_FAIL */
    int retries; /* further calls of get before a batch is bad (those with LEAT_ESKIPPED apart); default 0 */
    int max_deaths; /* worker processes that may die on one batch before it is bad, >= 1; default 3.  A generator's
                     * stream ends with its process, after the batches that were ready */
    /** Longest time of a batch in a worker, retries included.  A process that is late is killed and its batch made once
     *  more; after that the batch is bad.  A thread cannot be killed: the stream ends with LEAT_ETIMEOUT, once the caller
     *  has waited for it.  Time in which the whole program stood still does not count.  Needs workers.
     *  0 (default): a living worker is never given up. */
    int64_t deadline_ms;
    bool check_finite; /* a batch with NaN or Inf in its f16, f32 and f64 tensors is bad; default false */
} leat_faults;

/** How a feed makes its batches.  Start from leat_feed_options_default() or leat_feed_options_init(). */
typedef struct leat_feed_options {
    size_t size;              /* sizeof the struct, set by leat_feed_options_init */
    int workers;              /* 0: batches are made in leat_feed_get, by the caller; default 1 */
    bool use_multiprocessing; /* worker processes instead of threads; default false */
    int max_queue_size;       /* batches made ahead of the one in use, >= 1; default 10 */
    size_t memory; /* bytes for batches, that in use included, instead of max_queue_size; 0 (default): no */
    leat_shuffle shuffle;   /* default LEAT_SHUFFLE_NONE */
    int64_t shuffle_window; /* of LEAT_SHUFFLE_WINDOW, >= 1 */
    uint64_t seed;          /* default 0 */
    int rank, world; /* this feed gets every world-th batch of a pass, from the rank-th on; default 0, 1 */
    leat_remainder remainder; /* default LEAT_REMAINDER_UNEVEN */
    int64_t limit;            /* batches delivered in all, after which none is made; 0 (default): no limit */
    int64_t passes;           /* the stream ends before this pass; 0 (default): it does not end */
    leat_faults faults;
    leat_trace *trace; /* what happened is written there; outlives the feed; NULL (default): nowhere */
    const char *name;  /* of the feed in traces; default "feed" */
    int spin_us;       /* longest spin before the caller sleeps for a batch; -1 (default): by idle cores */
    /** Worker processes, and the helper process that forks them, have copies of all descriptors that are open when the feed
     *  is opened, since `get` may read from them.  Whatever ends when its last descriptor is closed does not end before the
     *  feed then: a lock by flock stays held, pclose waits for a reader that sees no end of its pipe, a peer's socket
     *  stays connected.  With close_descriptors they close all but 0, 1, 2 and those in kept_descriptors, which is
     *  copied.  Feeds that are opened together close what each of them allows.  Default false, NULL, 0. */
    bool close_descriptors;
    int kept_descriptor_count;
    const int *kept_descriptors;
} leat_feed_options;

/** Where a batch stands in the stream.  Frozen. */
typedef struct leat_feed_position {
    int64_t pass;    /* from 0 */
    int64_t ordinal; /* which batch of the pass, from 0, counting this rank's alone, and those passed over */
    int64_t index;   /* the index that get received: the ordinal, permuted, among those of all ranks */
} leat_feed_position;

/** The spread of a duration in ns, to 6 %; max is exact.  Frozen. */
typedef struct leat_percentiles {
    int64_t p50, p90, p99, max;
} leat_percentiles;

/** What a feed measured since it was opened.  Times in ns.  Later versions may add members at the end. */
typedef struct leat_feed_stats {
    int64_t batches; /* delivered */
    int64_t bytes;   /* delivered */
    int64_t starved; /* calls of leat_feed_get that had to wait; with workers = 0, all */
    int64_t wait_ns; /* the caller's waiting, in all */
    leat_percentiles wait;
    int64_t get_ns; /* the workers' time inside get, in all */
    leat_percentiles get;
    int64_t worker_deaths; /* worker processes lost and replaced */
    int64_t timeouts;      /* of them, killed for being late */
    int64_t retries;       /* further calls of get after a failed one */
    int64_t skips;         /* bad batches passed over */
    int64_t ring_bytes;    /* the ring's memory */
    int max_queue_size;    /* batches that it holds beyond the one in use */
    int workers;           /* that serve this feed */
} leat_feed_stats;

/** How far the workers were ahead at one moment.  Frozen. */
typedef struct leat_feed_depth {
    int64_t time_ns; /* since the feed was opened */
    int32_t ready;   /* batches */
} leat_feed_depth;

/** Who made a batch, and when: ns since the feed was opened.  Frozen. */
typedef struct leat_feed_making {
    int worker; /* 0 with workers = 0 */
    int64_t start_ns, end_ns;
} leat_feed_making;

/** Zeroes the `size` bytes of *options, writes the defaults that the members' comments name, and sets options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_feed_options_init(leat_feed_options *options, size_t size);
/** The defaults by value. */
static inline leat_feed_options leat_feed_options_default(void) {
    leat_feed_options options;
    leat_feed_options_init(&options, sizeof options);
    return options;
}

/** Starts workers, which begin at once with pass 0.  Copies *sequence; what it points to must outlive the feed.
 *  With processes, *user is what it was at this call (and `state` is kept current); they are forked here, so open the
 *  feed before large memory is filled and, where possible, before threads are made.  A feed belongs to the process that
 *  opened it: in a forked child its functions return LEAT_EINVAL, figures of what happened before the fork, or 0, and
 *  leat_feed_close frees the child's copy; the parent and its workers notice nothing.  options may be NULL for the
 *  defaults.
 *  Errors: LEAT_EINVAL an option or an empty sequence; LEAT_ESHAPE the specification; LEAT_ENOTSUP an option that this
 *  sequence does not allow; LEAT_ENOMEM; LEAT_EIO no process, thread, mapping or descriptor could be had.  After failure
 *  nothing is left.  What a worker meets while it starts (worker_init, a process that cannot be forked) is told by
 *  leat_feed_get. */
LEAT_API LEAT_CHECKED leat_status leat_feed_open(leat_feed **out, const leat_sequence *sequence,
                                                 const leat_feed_options *options, leat_error *err);

/** The same from a position on, which leat_feed_next_position told: the stream goes on, byte by byte, as if it had not ended
 *  there, whatever the workers.  An ordinal that equals the pass's length: on_epoch_end comes first.  A sequence whose
 *  hook changes it must be as it was at that position: hooks of earlier passes are not called again.  `passes` counts
 *  from the stream's beginning, `limit` from here.  at->index is ignored.  Errors: also LEAT_EINVAL a position that the
 *  pass does not have; LEAT_ENOTSUP a generator. */
LEAT_API LEAT_CHECKED leat_status leat_feed_open_at(leat_feed **out, const leat_sequence *sequence,
                                                    const leat_feed_options *options,
                                                    const leat_feed_position *at, leat_error *err);

/** One feed of several that are opened together.  Frozen, since feeds are given as an array. */
typedef struct leat_feed_config {
    const leat_sequence *sequence;
    const leat_feed_options *options; /* NULL: the defaults */
    leat_feed_position at;            /* zero: the beginning */
} leat_feed_config;

/** Opens `count` feeds (training and validation, say) that share their workers and, with processes, the helper that forks
 *  them: as many workers as the largest `workers`, each of which makes what is needed first.  All plans with workers
 *  must agree in use_multiprocessing.  Feeds are used and closed one by one, in any order and by one thread at a time;
 *  what their sequences point to must live until the last is closed, and the workers and all memory go with it.
 *  @param[out] out  count feeds; all NULL on failure.  Errors: as leat_feed_open_at. */
LEAT_API LEAT_CHECKED leat_status leat_feed_open_together(leat_feed **out, const leat_feed_config *plans,
                                                          int count, leat_error *err);

/** Waits for the next batch.  *batch and the memory of its tensors belong to the feed, until leat_feed_release or
 *  leat_feed_close.  Calling it again without release is
 *  LEAT_EINVAL.  At the end of a pass it does what leat_feed_end_pass does, unless that was done.
 *  Errors: the code and message of the sequence's get, prefixed "batch 7 of pass 2: "; LEAT_ESHAPE the same, where get
 *  set what the specification does not allow; LEAT_EWORKER worker processes died making the batch, or the helper
 *  process was lost, or a generator's process; LEAT_ETIMEOUT a batch that was late; LEAT_ENOMEM no memory for the slot;
 *  LEAT_ESTOPPED after leat_feed_stop; LEAT_EINVAL a pass without batches, or with bad ones alone.  Each of these ends
 *  the stream: workers stop, and further calls return it again.  LEAT_ENOTFOUND when `limit` batches or `passes` passes
 *  have been delivered, or a generator has ended. */
LEAT_API LEAT_CHECKED leat_status leat_feed_get(leat_feed *feed, const leat_batch **batch, leat_error *err);

/** Gives the batch's slot back to the workers. */
LEAT_API void leat_feed_release(leat_feed *feed);

/** Waits until it is known whether the pass in hand has a further batch (bad ones are passed over, where they are to be):
 *  *more says so, and leat_feed_get then has it at once.  False from the last batch of a pass on, until
 *  leat_feed_end_pass or leat_feed_get begins the next, and at the end of the stream.  Errors: those of leat_feed_get. */
LEAT_API LEAT_CHECKED leat_status leat_feed_await(leat_feed *feed, bool *more, leat_error *err);

/** Ends the pass if all its batches were delivered and released: runs on_epoch_end, re-reads the length, hands over
 *  state.  Otherwise does nothing; a second call does nothing. */
LEAT_API LEAT_CHECKED leat_status leat_feed_end_pass(leat_feed *feed, leat_error *err);

/** The position of the batch that leat_feed_get delivered last, or of the first before any. */
LEAT_API leat_feed_position leat_feed_position_get(const leat_feed *feed);

/** The position from which leat_feed_open_at goes on after the batch that leat_feed_get delivered last: what a checkpoint
 *  keeps, beside the seed.  index is unspecified. */
LEAT_API leat_feed_position leat_feed_next_position(const leat_feed *feed);

/** Both through a pointer: *out is zeroed on failure.  Errors: LEAT_EINVAL a pointer that is NULL. */
LEAT_API LEAT_CHECKED leat_status leat_feed_position_get_into(const leat_feed *feed, leat_feed_position *out,
                                                              leat_error *err);
LEAT_API LEAT_CHECKED leat_status leat_feed_next_position_into(const leat_feed *feed, leat_feed_position *out,
                                                               leat_error *err);

/** Batches of the pass in hand that this rank gets; LEAT_LENGTH_INFINITE for generators. */
LEAT_API int64_t leat_feed_length(const leat_feed *feed);

/** How many more batches are ready now (0 .. max_queue_size): how far the workers are ahead.  Batches that cost less than
 *  waking a worker may be made in strokes, when half of the queue is free; where batches are taken slowly, workers come
 *  by the clock, for a few at a time. */
LEAT_API int leat_feed_ready_count(const leat_feed *feed);

/** Fills the `size` bytes of *out with what the feed has measured so far, and with zeros where this version of leat has no
 *  figure.
 *  @param size  sizeof *out.
 *  Threads: externally synchronised. */
LEAT_API void leat_feed_stats_get_into(const leat_feed *feed, leat_feed_stats *out, size_t size);
/** leat_feed_stats_get_into by value. */
static inline leat_feed_stats leat_feed_stats_get(const leat_feed *feed) {
    leat_feed_stats stats;
    leat_feed_stats_get_into(feed, &stats, sizeof stats);
    return stats;
}

/** How the batch was made that leat_feed_get delivered last; all zero before any. */
LEAT_API leat_feed_making leat_feed_making_get(const leat_feed *feed);
/** The same through a pointer: *out is zeroed on failure.  Errors: LEAT_EINVAL a pointer that is NULL. */
LEAT_API LEAT_CHECKED leat_status leat_feed_making_get_into(const leat_feed *feed, leat_feed_making *out,
                                                            leat_error *err);

/** The share of the time since the feed was opened that a worker spent in `get` of any feed that it serves, 0 to 1;
 *  worker < stats.workers. */
LEAT_API double leat_feed_worker_busy(const leat_feed *feed, int worker);

/** The depth of the queue over time, evenly thinned out to at most `capacity` moments (512 are kept): returns how many.
 *  Looked at when a batch is taken. */
LEAT_API int leat_feed_depths(const leat_feed *feed, leat_feed_depth *out, int capacity);

/** Asks for the end: a waiting leat_feed_get returns LEAT_ESTOPPED, and workers make no further batch.  Any thread, and
 *  any signal handler, before leat_feed_close. */
LEAT_API void leat_feed_stop(leat_feed *feed);

/** Stops, waits for batches in progress, and leaves no thread, process, descriptor or mapping.  Sets *feed to NULL;
 *  NULL is fine.  Returns 0.  Only after LEAT_ETIMEOUT with worker threads it may return how many of them still are in
 *  `get`: they cannot be ended, go when `get` returns, and free the ring then; until then the sequence must live. */
LEAT_API int leat_feed_close(leat_feed **feed);

#ifdef __cplusplus
}
#endif
#endif
