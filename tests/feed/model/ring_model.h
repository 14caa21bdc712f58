/* SPDX-License-Identifier: Apache-2.0 */
/* A model of the feed's protocol: one consumer, the workers, the helper, and a thread that calls stop.  Each step is
 * one atomic access, and all interleavings are possible.  See README.md. */
#ifndef LEAT_TESTS_FEED_MODEL_RING_MODEL_H
#define LEAT_TESTS_FEED_MODEL_RING_MODEL_H

#include "feed/model/explorer.h"

enum { MODEL_MAX_RINGS = 2, MODEL_MAX_SLOTS = 4, MODEL_MAX_WORKERS = 3 };

/* Each mutation makes one step of the protocol wrong, or takes it at the wrong moment. */
#define MODEL_MUTATIONS(X)                                                                                   \
    X(WORKER_LOOKS_ONCE, "a worker sleeps without a second check")                                           \
    X(CONSUMER_LOOKS_ONCE, "the consumer sleeps without a second check")                                     \
    X(WORKER_LOADS_LATE, "a worker loads the wake futex after its second check")                             \
    X(CONSUMER_LOADS_LATE, "the consumer loads consumer_wake after its second check")                        \
    X(WORKER_ANNOUNCES_LATE, "a worker sets `sleeping` after its second check")                              \
    X(CONSUMER_ANNOUNCES_LATE, "the consumer stores `awaited` after its second check")                       \
    X(AWAITED_EARLY, "a worker reads `awaited` before it stores READY")                                      \
    X(READY_EARLY, "a worker stores READY before the batch is complete")                                     \
    X(ISSUED_EARLY, "the consumer stores `issued` before it opens the slot")                                 \
    X(OPEN_EARLY, "the consumer opens a slot before it writes the job")                                      \
    X(ISSUED_TOO_FAR, "the consumer issues one ticket too many")                                             \
    X(HINT_BEFORE_CLAIM, "a worker moves the hint before it claims")                                         \
    X(HINT_BY_CLAIMER, "only the worker that has claimed moves the hint")                                    \
    X(CLAIM_IN_TWO, "a worker claims by a load and a store instead of a compare-and-swap")                   \
    X(ONE_RING_SEEN, "a worker checks only one ring before it sleeps")                                       \
    X(WAKE_COUNTED,                                                                                          \
      "for tickets that only one worker may claim, only as many workers are woken as were seen asleep")      \
    X(NO_WAKE_BEFORE_SLEEP, "the consumer wakes no worker before it waits")                                  \
    X(NO_NUDGE, "the helper does not wake the consumer after a death")                                       \
    X(NO_TAKE_OVER, "a replacement does not look for the slot of the dead worker")                           \
    X(INHERITS_ENDED, "a replacement makes the batch of a generator that has failed")                        \
    X(NO_REPLACEMENT, "dead workers are not replaced")                                                       \
    X(DEATHS_UNCOUNTED, "the helper never gives up a batch")                                                 \
    X(REPLACED_EARLY, "a replacement starts before the error is published instead of the batch")             \
    X(LATE_NOT_KILLED, "the slot of a late worker is opened again while it lives")                           \
    X(FAILED_LATE, "the consumer loads `failed` after the state of the slot")                                \
    X(ANYBODY_CLAIMS, "any worker claims a generator's tickets")                                             \
    X(OWNER_REPLACED, "a generator's dead worker is replaced")                                               \
    X(HELPER_REPORTED_EARLY, "the consumer reports a missing helper without checking why it exited")         \
    X(STOP_WITHOUT_WAKE, "stop changes no futex and wakes nobody")                                           \
    X(RETIRE_WITHOUT_WAKE, "retire changes no futex and wakes nobody")

typedef enum model_mutation {
    MODEL_FAITHFUL,
#define X(name, text) MODEL_##name,
    MODEL_MUTATIONS(X)
#undef X
        MODEL_MUTATION_COUNT
} model_mutation;

typedef struct model_config {
    int rings, workers;
    int queue;       /* max_queue_size; a ring has one slot more */
    int tickets;     /* number of tickets of each ring */
    int pass_length; /* tickets of a pass; a hook runs between two passes; 0: one pass, no hook */
    int deaths;      /* number of workers that are killed, at any moment */
    int max_deaths;  /* after so many deaths on one batch, an error takes its place */
    int stops;       /* number of calls of leat_feed_stop by another thread, at any moment */
    bool processes;  /* worker processes with a helper; worker threads cannot be killed */
    bool generator;  /* ring 0 belongs to worker 0 */
    bool refork;     /* at a hook, the workers exit and new ones are started */
    bool spurious;   /* a futex wait may return without a reason, or because its time is over */
    model_mutation mutation;
} model_config;

/** Returns the model of a configuration.  *config must outlive the model. */
explorer_model model_of(const model_config *config);

#endif
