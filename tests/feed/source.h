/* SPDX-License-Identifier: Apache-2.0 */
/* A sequence for tests, and digests of what a feed delivers.  Every byte of the sequence is a function of (seed, pass,
 * index), every call is counted in memory that all processes share, and faults happen on request. */
#ifndef LEAT_TESTS_FEED_SOURCE_H
#define LEAT_TESTS_FEED_SOURCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "leat/feed.h"

#define SOURCE_MAX_LENGTH 4096

/* Shared by every process that a test forks. */
typedef struct source_counts {
    _Atomic int64_t gets; /* calls of get that were begun */
    _Atomic int64_t hooks;
    _Atomic int64_t hook_thread;
    _Atomic int64_t inits, finis;
    _Atomic int64_t hook_overtaken; /* gets that ran during a hook, or saw an old state */
    _Atomic int64_t in_hook;
    _Atomic int64_t last_pid;   /* process that called get last */
    _Atomic int64_t pause;      /* get waits while this is not 0 */
    _Atomic int64_t kills_left; /* how often get kills its own process */
    _Atomic int64_t fails_left; /* how often get still fails at fail_at; the initial value has no end */
    _Atomic int64_t hangs_left; /* how often get still hangs at hang_at */
    _Atomic int64_t hanging;    /* number of gets that hang now */
    _Atomic int64_t released;   /* not 0: hanging gets return */
    _Atomic int64_t in_next;    /* calls of a generator that are under way */
    _Atomic int64_t crossed;    /* calls that ran during another call, or in another thread than `owner` */
    _Atomic int64_t owner;      /* thread that called the generator first */
    _Atomic int32_t gets_of[SOURCE_MAX_LENGTH]; /* number of calls of get for each index */
} source_counts;

typedef struct source_state {
    int64_t scale; /* the hook raises it; every batch contains it */
    int64_t pass;
} source_state;

typedef struct source {
    source_state state;
    int64_t length; /* batches of a pass; the hook adds growth to it */
    int64_t growth;
    int64_t batch_size, width;
    bool short_last;    /* the last batch has fewer samples */
    bool varying;       /* the width of the samples depends on the index */
    bool borrowed;      /* get returns pointers to memory of the source */
    int slow_us;        /* shortest duration of get */
    int delay_us;       /* longest random delay of get */
    int64_t fail_at;    /* index whose get fails; -1: none */
    int64_t fail_every; /* get also fails for every fail_every-th index after fail_at; 0: only for fail_at */
    int64_t skip_at;    /* index for which get reports that there is no such batch; -1: none */
    int64_t hang_at;    /* index whose get hangs, while hangs_left, until it is released; -1: none */
    int64_t kill_at;    /* index whose get ends its own process, while kills_left; -1: none */
    int kill_signal;    /* the signal that ends the process; 0: exit(0) */
    int64_t wrong_at;   /* index whose get returns a batch that violates the specification; -1: none */
    int wrong;          /* 0 size too large, 1 size 0, 2 width too large, 3 rank, 4 no message */
    bool init_fails, hook_fails;
    int64_t samples; /* samples of a pass, for source_sequence_of_samples */
    int64_t made;    /* position of a generator */
    float *own;      /* memory of borrowed batches */
    source_counts *counts;
} source;

/* Initialises a source of `length` batches with up to batch_size samples of `width` numbers. */
void source_init(source *s, int64_t length, int64_t batch_size, int64_t width);
void source_fini(source *s);

/* Returns the sequence of the source, without a hook. */
leat_sequence source_sequence(source *s);

/* Like source_sequence(), but with on_epoch_end; with declares_state, the sequence has a state. */
leat_sequence source_sequence_with_hook(source *s, bool declares_state);

/* Like source_sequence(), but with get_samples; y holds the numbers of the samples. */
leat_sequence source_sequence_of_samples(source *s, int64_t samples);

/* Returns a generator of the same batches: s->length of them, or without end if s->length is negative. */
leat_sequence source_generator(source *s);

typedef struct feed_mode {
    int workers;
    bool processes;
} feed_mode;

leat_feed_options source_options(feed_mode mode);

/* Takes `batches` batches and returns a digest of their positions, shapes and bytes.  Fails the test on any error. */
uint64_t source_digest(leat_feed *feed, int64_t batches);

/* Returns a digest of one batch and its position. */
uint64_t source_batch_digest(const leat_feed *feed, const leat_batch *batch);

/* One batch of a recorded stream. */
typedef struct source_entry {
    leat_feed_position at, next; /* next: result of leat_feed_next_position after this batch */
    uint64_t digest;
} source_entry;

/* Takes up to `count` batches, until the stream ends.  Returns their number; *end receives how the stream ended. */
int64_t source_record(leat_feed *feed, source_entry *out, int64_t count, leat_error *end);

/* Fails the test unless both recordings have the same batches. */
void source_compare(const source_entry *seen, const source_entry *expected, int64_t count);

/* Opens a feed, returns the digest of `batches` batches, and closes the feed. */
uint64_t source_stream(const leat_sequence *sequence, const leat_feed_options *options, int64_t batches);

leat_feed *source_open(const leat_sequence *sequence, const leat_feed_options *options);

/* The numbers of threads, children, descriptors and mappings of this process. */
typedef struct resources {
    int threads, children, descriptors, mappings;
} resources;

resources resources_now(void);

/* Fails the test if there are more resources than before.  Waits a little until exiting threads are gone. */
void resources_check(resources before);

/* Waits until *value is at least `least`.  Fails the test after 30 s. */
void wait_until(_Atomic int64_t *value, int64_t least);

void sleep_us(int64_t us);

#endif
