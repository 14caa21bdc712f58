/* SPDX-License-Identifier: Apache-2.0 */
/* The feed: worker threads or worker processes make the batches of a sequence ahead of time, in a ring of shared
 * slots, and the caller takes them in order, without a copy.  It replaces keras.utils.OrderedEnqueuer and
 * GeneratorEnqueuer.
 *
 * A pass is once through the data; an epoch is a number of training steps (leat/train.h).  The stream of batches
 * continues from pass to pass.  The order and all bytes are a function of (seed, pass, index) only. */
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

/** A feed.  Opaque.  Threads: externally synchronised, except leat_feed_stop, which any thread may call. */
typedef struct leat_feed leat_feed;

/** The order in which a pass visits its data; a function of (seed, pass). */
typedef enum leat_shuffle {
    LEAT_SHUFFLE_NONE = 0,
    LEAT_SHUFFLE_BATCHES = 1, /* a permutation of the batches, as in Keras */
    LEAT_SHUFFLE_SAMPLES = 2, /* a permutation of the samples; requires get_samples */
    /* A permutation within each run of shuffle_window samples (or batches, if the sequence has no get_samples),
     * so that data is read nearly in order.  The runs begin at other samples in each pass. */
    LEAT_SHUFFLE_WINDOW = 3,
    /* Like LEAT_SHUFFLE_BLOCKS if the sequence has blocks, LEAT_SHUFFLE_SAMPLES if it has get_samples, otherwise
     * LEAT_SHUFFLE_BATCHES; no shuffling for a generator or an infinite sequence.  This is Keras's shuffle=True. */
    LEAT_SHUFFLE_AUTO = 4,
    /* A permutation of the sequence's blocks, and of the samples within each group of shuffle_window blocks that
     * follow one another in it; requires leat_sequence.block_samples. */
    LEAT_SHUFFLE_BLOCKS = 5
} leat_shuffle;

/** The treatment of the last batches of a pass if `world` does not divide their number. */
typedef enum leat_remainder {
    LEAT_REMAINDER_UNEVEN = 0, /* the first ranks get one batch more */
    LEAT_REMAINDER_DROP = 1,   /* no rank gets these batches */
    /* the ranks that would get no batch get batches from the beginning of the pass again */
    LEAT_REMAINDER_PAD = 2
} leat_remainder;

/** The treatment of a bad batch: `get` failed, it set a size or shape that the specification does not allow, the
 *  batch contains NaN or Inf and check_finite is set, or worker processes died or hung too often while making it. */
typedef enum leat_bad_batch {
    LEAT_BAD_BATCH_FAIL = 0, /* the stream ends with the error of the batch */
    LEAT_BAD_BATCH_SKIP = 1  /* the batch is counted and skipped: the pass is shorter by one batch */
} leat_bad_batch;

/** Limits for failures.  Frozen: later versions add members to the options that contain this struct. */
typedef struct leat_faults {
    leat_bad_batch bad_batch; /* default LEAT_BAD_BATCH_FAIL */
    int retries; /* further calls of get before a batch is bad, except after LEAT_ESKIPPED; default 0 */
    /* worker processes that may die while making one batch before it is bad, at least 1; default 3.  If the
     * process of a generator dies, the stream ends after the batches that were ready */
    int max_deaths;
    /** The longest time that a worker may take for one batch, including retries.  A process that takes longer is
     *  killed, and the batch is made once more; if that takes too long as well, the batch is bad.  A thread
     *  cannot be killed: the stream ends with LEAT_ETIMEOUT when the caller waits for the batch.
     *  A process that is stopped (SIGSTOP) for as long is killed and replaced, too; if the helper process is, the
     *  stream ends with LEAT_ETIMEOUT.
     *  Time during which the whole program was stopped is not counted.  Requires workers.  0 (default): no limit,
     *  as long as the worker is alive; if the caller waits for 10 s while a process is stopped, a warning is
     *  logged. */
    int64_t deadline_ms;
    /* a batch with NaN or Inf in its float16, float32 or float64 tensors is bad; default false */
    bool check_finite;
} leat_faults;

/** Options of a feed.  Initialize them by leat_feed_options_default() or leat_feed_options_init(). */
typedef struct leat_feed_options {
    size_t size; /* sizeof the struct, set by leat_feed_options_init */
    int workers; /* number of workers; 0: the caller makes batches, in leat_feed_get; default 1 */
    bool use_multiprocessing; /* workers are processes, not threads; default false */
    int max_queue_size;       /* batches made ahead of the one in use, at least 1; default 10 */
    /* bytes for all batches including the one in use, instead of max_queue_size; 0 (default): use max_queue_size */
    size_t memory;
    leat_shuffle shuffle; /* default LEAT_SHUFFLE_NONE */
    /* for LEAT_SHUFFLE_WINDOW: its window, at least 1; for LEAT_SHUFFLE_BLOCKS: the blocks of a group, 0 (default) for
     * the sequence's blocks_at_once */
    int64_t shuffle_window;
    uint64_t seed; /* default 0 */
    /* this feed gets every world-th batch of a pass, beginning with batch `rank`; default 0, 1 */
    int rank, world;
    leat_remainder remainder; /* default LEAT_REMAINDER_UNEVEN */
    int64_t limit;            /* the stream ends after this number of batches; 0 (default): no limit */
    int64_t passes;           /* the stream ends after this number of passes; 0 (default): no limit */
    leat_faults faults;       /* limits for failures */
    leat_trace *trace;        /* a trace to write to; must outlive the feed; NULL (default): none */
    const char *name;         /* the feed's name in traces; default "feed" */
    /* longest spin in microseconds before the caller sleeps; -1 (default): depends on idle cores */
    int spin_us;
    /** Worker processes, and the helper process that forks them, inherit copies of all file descriptors that are
     *  open when the feed is opened, since `get` may read from them.  A resource that is released when its last
     *  descriptor is closed is therefore not released before the feed is closed: a lock by flock stays held,
     *  pclose waits for a reader that does not see the end of its pipe, a peer's socket stays connected.  With
     *  close_descriptors they close all descriptors except 0, 1, 2 and those in kept_descriptors, an array that
     *  is copied.  Feeds that are opened together close only what each of them allows to close.  Defaults: false,
     *  0, NULL. */
    bool close_descriptors;
    int kept_descriptor_count;
    const int *kept_descriptors;
    /** The number of batches that the caller may keep at the same time (leat_feed_keep); the ring has memory for
     *  them.  If it is not 0, processes that the caller forks inherit the ring's memory.  Default 0. */
    int kept_batches;
    /** A slot has memory for the largest batch that was made in it so far, instead of for the largest batch that
     *  the specification allows.  The specification has one tensor, and its size is only an upper limit, in address
     *  space.  `get` must call leat_batch_reserve before it writes to the batch.  `memory` must be 0.
     *  Default false. */
    bool elastic;
    /** The command line of a program that forks the worker processes, in place of this program: its words, and
     *  NULL at the end.  leat starts it with one more word, the number of a descriptor, which the program passes
     *  to leat_helper_open (leat/helper.h).  A host language whose processes have threads needs this, because the
     *  processes cannot be forked safely.  Requires use_multiprocessing.  Feeds that are opened together have the
     *  same command.  The text is not used after the feed is opened, unless on_epoch_end declares no state.
     *  Default NULL. */
    const char *const *helper_command;
    /* bytes for leat_helper_data in that program, in the same way; default NULL, 0 */
    const void *helper_data;
    size_t helper_data_bytes;
    /** A worker process whose own memory, without what it shares with files or other processes by mappings, is larger
     *  than this number of bytes ends after the batch that it is making, and a new process takes its place.  The memory
     *  is looked at about ten times a second.  It does not apply to the worker of a generator, whose position would be
     *  lost.  0 (default): no limit. */
    size_t max_worker_memory;
    /** Cuts each batch into `parts` parts, of which this feed makes those from first_part up to, but not including,
     *  end_part.  Part p of a batch of N samples has the samples from p * N / parts up to (p + 1) * N / parts, in the
     *  order of the whole batch; leat_feed_whole says which ones the batch in use has.  If the feed's parts have no
     *  samples, because N is less than `parts`, it makes one sample of the batch all the same.  The ring has memory for
     *  the parts alone.  Requires a sequence with independent_samples, and faults.bad_batch LEAT_BAD_BATCH_FAIL,
     *  since other ranks would not know what is skipped.  With parts the batches are not dealt to ranks: world is 1.
     *  0 (default): whole batches. */
    int parts, first_part, end_part;
    int32_t reserved; /* 0 */
} leat_feed_options;

/** The position of a batch in the stream.  Frozen. */
typedef struct leat_feed_position {
    int64_t pass; /* number of the pass, from 0 */
    /* number of the batch among those of this rank in the pass, from 0, including skipped batches */
    int64_t ordinal;
    /* the index that `get` received: the batch's number among those of all ranks, after shuffling */
    int64_t index;
} leat_feed_position;

/** Percentiles of a duration in ns, with a relative error of at most 6 %; max is exact.  Frozen. */
typedef struct leat_percentiles {
    int64_t p50, p90, p99, max;
} leat_percentiles;

/** Measurements of a feed since it was opened.  Times are in ns.  Later versions may add members at the end. */
typedef struct leat_feed_stats {
    int64_t batches;       /* number of delivered batches */
    int64_t bytes;         /* size of the delivered batches */
    int64_t starved;       /* calls of leat_feed_get that had to wait; all calls if workers = 0 */
    int64_t wait_ns;       /* total time for which the caller waited */
    leat_percentiles wait; /* of single calls of leat_feed_get */
    int64_t get_ns;        /* total time of the workers inside get */
    leat_percentiles get;  /* of single calls of get */
    int64_t worker_deaths; /* worker processes lost and replaced */
    /* worker processes that were killed because they were late; included in worker_deaths */
    int64_t timeouts;
    int64_t retries;    /* further calls of get after a failed one */
    int64_t skips;      /* bad batches that were skipped */
    int64_t ring_bytes; /* memory of the ring, in bytes */
    int max_queue_size; /* batches that the ring holds in addition to the one in use */
    int workers;        /* number of workers that serve this feed */
    int64_t replaced;   /* worker processes replaced because of max_worker_memory */
    /* samples that the sequence left out of the delivered batches, or of batches with nothing else: with access by
     * sample, a batch has then fewer samples than it was to have */
    int64_t samples_left_out;
} leat_feed_stats;

/** The number of batches that were ready at one moment.  Frozen. */
typedef struct leat_feed_depth {
    int64_t time_ns; /* time since the feed was opened, in ns */
    int32_t ready;   /* number of ready batches */
} leat_feed_depth;

/** The worker that made a batch, and the time of its making in ns since the feed was opened.  Frozen. */
typedef struct leat_feed_making {
    int worker; /* index of the worker; 0 if workers = 0 */
    int64_t start_ns, end_ns;
} leat_feed_making;

/** Zeroes the `size` bytes of *options, writes the defaults that the comments of the members give, and sets
 *  options->size.
 *  @param size  sizeof *options.
 *  Threads: any. */
LEAT_API void leat_feed_options_init(leat_feed_options *options, size_t size);
/** Returns the default options. */
static inline leat_feed_options leat_feed_options_default(void) {
    leat_feed_options options;
    leat_feed_options_init(&options, sizeof options);
    return options;
}

/** Opens a feed: starts workers, which begin at once with pass 0.
 *  @param[out] out  New feed, owned by the caller (leat_feed_close); NULL on failure.
 *  @param sequence  Copied; the memory that its members point to must outlive the feed.
 *  @param options  NULL: the defaults.
 *
 *  Worker processes are forked during this call: they see *user as it is now (leat keeps `state` up to date).
 *  Therefore open the feed before the program fills large memory and, if possible, before it creates threads.  A
 *  feed belongs to the process that opened it.  In a forked child its functions return LEAT_EINVAL, figures from
 *  before the fork, or 0, and leat_feed_close frees the copy of the child; the parent and its workers are not
 *  affected.
 *
 *  Errors: LEAT_EINVAL an option, or the sequence is empty; LEAT_ESHAPE the specification; LEAT_ENOTSUP this
 *  sequence does not allow an option; LEAT_ENOMEM; LEAT_EIO no process, thread, mapping or descriptor is
 *  available.  After a failure there is nothing to free.  leat_feed_get returns errors of starting workers
 *  (worker_init fails, a process cannot be forked).
 *  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_feed_open(leat_feed **out, const leat_sequence *sequence,
                                                 const leat_feed_options *options, leat_error *err);

/** Like leat_feed_open, but the stream begins at a position that leat_feed_next_position returned: it continues
 *  with the same bytes as if it had not been interrupted there, whatever the number and kind of workers.
 *  @param at  at->index is ignored.  If at->ordinal is the length of the pass, on_epoch_end is called first.
 *
 *  A sequence that on_epoch_end changes must have the content that it had at the position, since on_epoch_end is
 *  not called for earlier passes.  The option `passes` counts from the beginning of the stream, `limit` from this
 *  position.
 *  Errors: as in leat_feed_open; LEAT_EINVAL the pass has no such position; LEAT_ENOTSUP the sequence is a
 *  generator.
 *  Threads: any. */
LEAT_API LEAT_CHECKED leat_status leat_feed_open_at(leat_feed **out, const leat_sequence *sequence,
                                                    const leat_feed_options *options,
                                                    const leat_feed_position *at, leat_error *err);

/** One of several feeds that are opened together.  Frozen, since callers pass C arrays of this struct. */
typedef struct leat_feed_config {
    const leat_sequence *sequence;    /* as in leat_feed_open */
    const leat_feed_options *options; /* NULL: the defaults */
    leat_feed_position at;            /* the position at which the stream begins; zeroed: the beginning */
} leat_feed_config;

/** Opens `count` feeds, for example for training and validation, that share their workers and, with worker
 *  processes, the helper process.  The number of workers is the largest `workers` of the options, where
 *  generators count as at most one worker each; a worker makes the batch that is needed first.  All feeds that
 *  have workers must have the same use_multiprocessing.
 *  The feeds are used and closed one by one, in any order.  The workers and all memory are released when the last
 *  feed is closed; until then the memory that the sequences point to must exist.
 *  @param[out] out  `count` feeds, owned by the caller (leat_feed_close); all NULL on failure.
 *  @param configs  `count` sequences with their options.
 *  Errors: as in leat_feed_open_at; LEAT_EINVAL count < 1, or threads and processes are mixed; LEAT_ENOTSUP a
 *  generator and a sequence whose on_epoch_end declares no state share worker processes.
 *  Threads: any; all feeds that were opened together are externally synchronised as one object. */
LEAT_API LEAT_CHECKED leat_status leat_feed_open_together(leat_feed **out, const leat_feed_config *configs,
                                                          int count, leat_error *err);

/** Waits for the next batch.  At the end of a pass it first does what leat_feed_end_pass does, unless that was
 *  already done.
 *  @param[out] batch  The batch.  It and the memory of its tensors belong to the feed and are valid until
 *  leat_feed_release or leat_feed_close.  A second call before leat_feed_release returns LEAT_EINVAL.
 *
 *  Errors: the code and the message of `get`, with the prefix "batch 7 of pass 2: "; LEAT_ESHAPE with the same
 *  prefix, if `get` set a size or shape that the specification does not allow; LEAT_EWORKER worker processes died
 *  while making the batch, or the helper process or the process of a generator was lost; LEAT_ETIMEOUT a batch
 *  was late; LEAT_ENOMEM no memory for the slot; LEAT_ESTOPPED after leat_feed_stop; LEAT_EINVAL a pass has no
 *  batches, or bad batches only.  Each of these errors ends the stream: workers stop, and further calls return
 *  the same error.  LEAT_ENOTFOUND is returned when `limit` batches or `passes` passes were delivered, or a
 *  generator has ended. */
LEAT_API LEAT_CHECKED leat_status leat_feed_get(leat_feed *feed, const leat_batch **batch, leat_error *err);

/** Returns the slot of the batch to the workers.  The batch must not be used any more. */
LEAT_API void leat_feed_release(leat_feed *feed);

/** A batch that the caller keeps.  Opaque.  Threads: any thread may release it, also after leat_feed_close. */
typedef struct leat_kept leat_kept;

/** Keeps the memory of the batch in use: it does not change before leat_kept_release, even after leat_feed_release and
 *  leat_feed_close.  The struct of the batch itself belongs to the feed: copy its tensors before leat_feed_release.
 *  Memory of the sequence's own, at which `get` has pointed a tensor, is not kept.
 *  @param[out] out  Owned by the caller (leat_kept_release); NULL on failure.
 *  Errors: LEAT_EINVAL no batch is in use, or it is kept already; LEAT_EBUSY kept_batches batches are kept: copy
 *  the batch instead. */
LEAT_API LEAT_CHECKED leat_status leat_feed_keep(leat_feed *feed, leat_kept **out, leat_error *err);

/** Ends the keeping of a batch and sets *kept to NULL; NULL is fine.  Threads: any. */
LEAT_API void leat_kept_release(leat_kept **kept);

/** Waits until it is known if the current pass has another good batch (bad batches are skipped if the options say so).
 *  @param[out] more  True: leat_feed_get will return a batch without waiting.  False: the last batch of the pass was
 *  delivered, and neither leat_feed_end_pass nor leat_feed_get has begun the next pass, or the stream has ended.
 *  Errors: as in leat_feed_get. */
LEAT_API LEAT_CHECKED leat_status leat_feed_await(leat_feed *feed, bool *more, leat_error *err);

/** Like leat_feed_await, but waits at most timeout_ms, which is at least 0.  A caller that must look at something else
 *  from time to time, such as the signals of an interpreter, repeats the call.
 *  Errors: as in leat_feed_await; LEAT_EBUSY it is not known yet, and the stream goes on. */
LEAT_API LEAT_CHECKED leat_status leat_feed_await_for(leat_feed *feed, int64_t timeout_ms, bool *more,
                                                      leat_error *err);

/** Sets new bytes for leat_helper_data, for helper programs that are started from now on: on_epoch_end may call it.
 *  @param data  As leat_feed_options.helper_data.
 *  Errors: LEAT_EINVAL `data` is NULL, but `bytes` is not 0; the feed has no helper program. */
LEAT_API LEAT_CHECKED leat_status leat_feed_set_helper_data(leat_feed *feed, const void *data, size_t bytes,
                                                            leat_error *err);

/** Continues at another position, with the same workers: batches that were made ahead are discarded, and batches that
 *  are being made are finished first.  The bytes are those of a feed that was opened at the position.
 *  @param at  As in leat_feed_open_at.
 *  Errors: LEAT_EINVAL a batch is in use, or the pass has no such position; LEAT_ENOTSUP the sequence is a generator;
 *  those of leat_feed_get, if the stream has ended with an error. */
LEAT_API LEAT_CHECKED leat_status leat_feed_seek(leat_feed *feed, const leat_feed_position *at,
                                                 leat_error *err);

/** Ends the current pass if all its batches were delivered and released: calls on_epoch_end, calls `length`
 *  again, and copies `state` to the worker processes.  Otherwise it does nothing; a second call does nothing.
 *  Errors: the code and the message of on_epoch_end; those of leat_feed_get. */
LEAT_API LEAT_CHECKED leat_status leat_feed_end_pass(leat_feed *feed, leat_error *err);

/** Returns the position of the batch that leat_feed_get delivered last; before the first call the position of the
 *  first batch. */
LEAT_API leat_feed_position leat_feed_position_get(const leat_feed *feed);

/** Returns the position of the batch after the one that leat_feed_get delivered last: leat_feed_open_at continues
 *  there.  A checkpoint stores this position and the seed.  `index` of the result is unspecified. */
LEAT_API leat_feed_position leat_feed_next_position(const leat_feed *feed);

/** Like leat_feed_position_get and leat_feed_next_position, but write through a pointer: *out is zeroed on failure.
 *  Errors: LEAT_EINVAL a pointer is NULL. */
LEAT_API LEAT_CHECKED leat_status leat_feed_position_get_into(const leat_feed *feed, leat_feed_position *out,
                                                              leat_error *err);
LEAT_API LEAT_CHECKED leat_status leat_feed_next_position_into(const leat_feed *feed, leat_feed_position *out,
                                                               leat_error *err);

/** Returns the number of samples of the whole batch to which the batch in use belongs: with options.parts, more than
 *  the batch in use has.
 *  @param[out] first  The place, in the whole batch, of the first sample of the batch in use; NULL: not wanted.
 *  @return 0 if no batch is in use. */
LEAT_API int64_t leat_feed_whole(const leat_feed *feed, int64_t *first);

/** Returns the number of batches of the current pass that this rank gets; LEAT_LENGTH_INFINITE for a generator. */
LEAT_API int64_t leat_feed_length(const leat_feed *feed);

/** Returns the number of batches that are ready now, 0 to max_queue_size.  If making a batch costs less than
 *  waking a worker, workers may make many batches at once whenever half of the queue is free.  If batches are
 *  taken slowly, workers use timed sleeps and make a few batches at a time. */
LEAT_API int leat_feed_ready_count(const leat_feed *feed);

/** Fills the `size` bytes of *out with the feed's measurements so far, and with zeros for members that this
 *  version of leat does not know.
 *  @param size  sizeof *out.
 *  Threads: externally synchronised. */
LEAT_API void leat_feed_stats_get_into(const leat_feed *feed, leat_feed_stats *out, size_t size);
/** Like leat_feed_stats_get_into, but returns the measurements by value. */
static inline leat_feed_stats leat_feed_stats_get(const leat_feed *feed) {
    leat_feed_stats stats;
    leat_feed_stats_get_into(feed, &stats, sizeof stats);
    return stats;
}

/** Returns the worker and the times of the batch that leat_feed_get delivered last; zeros before the first call. */
LEAT_API leat_feed_making leat_feed_making_get(const leat_feed *feed);
/** Like leat_feed_making_get, but writes through a pointer: *out is zeroed on failure.  Errors: LEAT_EINVAL a
 *  pointer is NULL. */
LEAT_API LEAT_CHECKED leat_status leat_feed_making_get_into(const leat_feed *feed, leat_feed_making *out,
                                                            leat_error *err);

/** Returns the share of the time since the feed was opened, 0 to 1, that a worker spent in `get` of all feeds
 *  that it serves.
 *  @param worker  0 <= worker < leat_feed_stats.workers; otherwise the function returns 0. */
LEAT_API double leat_feed_worker_busy(const leat_feed *feed, int worker);

/** Gives the number of ready batches over time, recorded when batches were taken.
 *  @param[out] out  Room for `capacity` records.  The feed keeps at most 512 records; if there are more than
 *  `capacity`, they are thinned out evenly.
 *  @return The number of records that were written. */
LEAT_API int leat_feed_depths(const leat_feed *feed, leat_feed_depth *out, int capacity);

/** Stops the stream: a waiting leat_feed_get returns LEAT_ESTOPPED, and workers make no further batches.
 *  Threads: any thread and any signal handler, before leat_feed_close. */
LEAT_API void leat_feed_stop(leat_feed *feed);

/** Closes a feed: stops the workers, waits for batches that they are making, and releases all threads, processes,
 *  descriptors and mappings.  A worker process that has not ended after 10 s (1 s if it is stopped by SIGSTOP) is
 *  killed.  Sets *feed to NULL; NULL is fine.
 *  @return 0, or, only after LEAT_ETIMEOUT with worker threads, the number of threads that are still in `get`.
 *  Such a thread cannot be killed; when `get` returns, the thread ends, and the last one frees the ring.  Until
 *  then the sequence must exist. */
LEAT_API int leat_feed_close(leat_feed **feed);

#ifdef __cplusplus
}
#endif
#endif
