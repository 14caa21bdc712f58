/* SPDX-License-Identifier: Apache-2.0 */
/* A sequence made for tests: every byte is a function of (seed, pass, index), every call is counted in memory that all
 * processes share, and it misbehaves on request.  And the digest of what a feed delivers. */
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
    _Atomic int64_t hook_overtaken; /* gets that ran while a hook did, or saw an old state */
    _Atomic int64_t in_hook;
    _Atomic int64_t last_pid;                   /* of the process that ran get last */
    _Atomic int64_t pause;                      /* get waits while it is set */
    _Atomic int64_t kills_left;                 /* how often get kills its own process */
    _Atomic int64_t fails_left;                 /* how often get fails where it is to; at first without end */
    _Atomic int64_t hangs_left;                 /* how often get hangs where it is to */
    _Atomic int64_t hanging;                    /* gets that hang now */
    _Atomic int64_t released;                   /* hanging gets return */
    _Atomic int64_t in_next;                    /* calls of a generator that are under way */
    _Atomic int64_t crossed;                    /* calls that found another one under way, or another owner */
    _Atomic int64_t owner;                      /* thread that called the generator first */
    _Atomic int32_t gets_of[SOURCE_MAX_LENGTH]; /* calls of get by index */
} source_counts;

typedef struct source_state {
    int64_t scale; /* raised by the hook; part of every batch */
    int64_t pass;
} source_state;

typedef struct source {
    source_state state;
    int64_t length; /* batches of a pass; the hook adds growth to it */
    int64_t growth;
    int64_t batch_size, width;
    bool short_last;    /* the last batch has fewer samples */
    bool varying;       /* samples vary in width by index */
    bool borrowed;      /* get points at memory of its own */
    int slow_us;        /* what get takes at least */
    int delay_us;       /* longest random delay of get */
    int64_t fail_at;    /* index whose get fails; -1: none */
    int64_t fail_every; /* and every so many batches from there on; 0: that one alone */
    int64_t skip_at;    /* index for which get says that there is no such batch; -1: none */
    int64_t hang_at;    /* index whose get hangs, while hangs_left, until it is released; -1: none */
    int64_t kill_at;    /* index whose get ends its own process, while kills_left; -1: none */
    int kill_signal;    /* by this signal; 0: by exit(0) */
    int64_t wrong_at;   /* index whose get sets what the specification does not allow; -1: none */
    int wrong;          /* 0 size too large, 1 size 0, 2 width too large, 3 rank, 4 no message */
    bool init_fails, hook_fails;
    int64_t samples; /* of a pass, for source_sequence_of_samples */
    int64_t made;    /* by a generator: its position */
    float *own;      /* what borrowed batches point at */
    source_counts *counts;
} source;

/* A source of `length` batches with (up to) batch_size samples of `width` numbers. */
void source_init(source *s, int64_t length, int64_t batch_size, int64_t width);
void source_fini(source *s);

/* Its sequence, without a hook. */
leat_sequence source_sequence(source *s);

/* The same with on_epoch_end, which declares `state` or does not. */
leat_sequence source_sequence_with_hook(source *s, bool declares_state);

/* The same data by samples: y holds their numbers. */
leat_sequence source_sequence_of_samples(source *s, int64_t samples);

/* The same batches, one after the other; s->length of them, or without end if that is negative. */
leat_sequence source_generator(source *s);

typedef struct feed_mode {
    int workers;
    bool processes;
} feed_mode;

leat_feed_options source_options(feed_mode mode);

/* Takes `batches` batches and digests positions, shapes and bytes.  Fails the test on any error. */
uint64_t source_digest(leat_feed *feed, int64_t batches);

/* A digest of one batch and its position: what must be the same whatever happens to others. */
uint64_t source_batch_digest(const leat_feed *feed, const leat_batch *batch);

/* One batch of a recorded stream. */
typedef struct source_entry {
    leat_feed_position at, next; /* next: what leat_feed_next_position told after it */
    uint64_t digest;
} source_entry;

/* Takes up to `count` batches, until the stream ends; returns how many there were, and how it ended. */
int64_t source_record(leat_feed *feed, source_entry *out, int64_t count, leat_error *end);

/* Fails the test unless both have the same batches. */
void source_compare(const source_entry *seen, const source_entry *expected, int64_t count);

/* Opens, digests `batches` batches and closes. */
uint64_t source_stream(const leat_sequence *sequence, const leat_feed_options *options, int64_t batches);

leat_feed *source_open(const leat_sequence *sequence, const leat_feed_options *options);

/* Threads, children, descriptors and mappings of this process. */
typedef struct resources {
    int threads, children, descriptors, mappings;
} resources;

resources resources_now(void);

/* Fails the test unless nothing was added; waits a little for exiting threads to leave the kernel's list. */
void resources_check(resources before);

/* Waits until *value is `least` or more: fails the test when that takes more than 30 s. */
void wait_until(_Atomic int64_t *value, int64_t least);

void sleep_us(int64_t us);

#endif
