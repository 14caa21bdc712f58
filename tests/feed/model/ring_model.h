/* SPDX-License-Identifier: Apache-2.0 */
/* The feed's protocol as a model: one consumer, workers, the helper, and whoever calls stop, in steps of one atomic
 * access each, in any interleaving.  See README.md. */
#ifndef LEAT_TESTS_FEED_MODEL_RING_MODEL_H
#define LEAT_TESTS_FEED_MODEL_RING_MODEL_H

#include "feed/model/explorer.h"

enum { MODEL_MAX_RINGS = 2, MODEL_MAX_SLOTS = 4, MODEL_MAX_WORKERS = 3 };

/* One wrong step in the protocol, or, where it says so, a word that is changed at the wrong moment. */
#define MODEL_MUTATIONS(X)                                                                                   \
    X(WORKER_LOOKS_ONCE, "a worker sleeps without a second look")                                            \
    X(CONSUMER_LOOKS_ONCE, "the consumer sleeps without a second look")                                      \
    X(WORKER_BELL_LATE, "a worker reads the wake futex after its second look")                               \
    X(CONSUMER_BELL_LATE, "the consumer reads its wake_futex after its second look")                         \
    X(WORKER_SAYS_LATE, "a worker says that it sleeps after its second look")                                \
    X(CONSUMER_SAYS_LATE, "the consumer says what it awaits after its second look")                          \
    X(AWAITED_EARLY, "a worker reads `awaited` before it stores READY")                                      \
    X(READY_EARLY, "a worker stores READY before the batch is whole")                                        \
    X(ISSUED_EARLY, "the consumer stores `issued` before it opens the slot")                                 \
    X(OPEN_EARLY, "the consumer opens a slot before it writes the job")                                      \
    X(ISSUED_TOO_FAR, "the consumer issues one ticket too many")                                             \
    X(HINT_BEFORE_CLAIM, "a worker moves the hint before it claims")                                         \
    X(HINT_BY_CLAIMER, "only the worker that has claimed moves the hint")                                    \
    X(CLAIM_IN_TWO, "a worker claims by a load and a store")                                                 \
    X(ONE_RING_SEEN, "a worker looks through one ring before it sleeps")                                     \
    X(WAKE_COUNTED, "work for one worker alone wakes as many as were seen asleep")                           \
    X(NO_WAKE_BEFORE_SLEEP, "the consumer wakes nobody before it waits")                                     \
    X(NO_NUDGE, "the helper does not wake the consumer after a death")                                       \
    X(NO_TAKE_OVER, "a replacement does not look for the slot of the dead")                                  \
    X(INHERITS_ENDED, "a replacement makes the batch of a generator that has failed")                        \
    X(NO_REPLACEMENT, "the dead are not replaced")                                                           \
    X(DEATHS_UNCOUNTED, "the helper gives no batch up")                                                      \
    X(REPLACED_EARLY, "a replacement begins before the error is published in its batch's place")             \
    X(LATE_NOT_KILLED, "the slot of a late worker is opened again while it lives")                           \
    X(FAILED_LATE, "the consumer looks for a failure after it has looked for the batch")                     \
    X(ANYBODY_CLAIMS, "a generator's tickets are claimed by anybody")                                        \
    X(OWNER_REPLACED, "a generator's dead worker is replaced")                                               \
    X(HELPER_MISSED, "the consumer misses the helper before it asks why that has left")                      \
    X(STOP_WITHOUT_BELL, "stop rings no wake_futex")                                                         \
    X(RETIRE_WITHOUT_BELL, "retire rings no wake_futex")

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
    int tickets;     /* of each ring */
    int pass_length; /* a hook stands before the next pass; 0: none */
    int deaths;      /* workers killed, at any moment, in all */
    int max_deaths;  /* of those on one batch; then an error takes its place */
    int stops;       /* calls of leat_feed_stop, by another thread, at any moment */
    bool processes;  /* with a helper; otherwise nobody can be killed */
    bool generator;  /* ring 0 belongs to worker 0 */
    bool refork;     /* workers are dismissed and begun anew at a hook */
    bool spurious;   /* a futex wait may return for no reason, or because its time is over */
    model_mutation mutation;
} model_config;

/** The model of a configuration, which must outlive it. */
explorer_model model_of(const model_config *config);

#endif
