/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations for the files of the model: the state, and the step of an actor.
 *
 * All members are bytes, so that states can be compared as bytes.  The value of a futex is not part of the state: a
 * futex wait depends only on whether the value has changed since the actor loaded it.  So each actor has a flag,
 * futex_same, which every change of the futex clears. */
#ifndef LEAT_TESTS_FEED_MODEL_PROTOCOL_H
#define LEAT_TESTS_FEED_MODEL_PROTOCOL_H

#include "feed/model/ring_model.h"

enum { SLOT_FREE, SLOT_OPEN, SLOT_READY, SLOT_CLAIMED }; /* CLAIMED + w */

enum { CONTENT_NONE = 0, CONTENT_PARTIAL = 255 }; /* otherwise ticket + 1 */

typedef struct model_slot {
    uint8_t state;
    uint8_t deaths;  /* workers that died making this batch, as the helper counts them */
    uint8_t killed;  /* workers that were really killed while they made this batch */
    uint8_t ticket;  /* ticket of the slot's job */
    uint8_t content; /* ticket + 1 of the batch in the memory, or a CONTENT_ value */
    uint8_t failed;  /* 1: the slot holds an error instead of a batch */
} model_slot;

typedef struct model_ring {
    model_slot slots[MODEL_MAX_SLOTS];
    uint8_t issued, hint, awaited, stop, failed; /* the shared words */
    uint8_t calls;                               /* calls of a generator, as the source counts them */
    /* private to the consumer: */
    uint8_t opened, delivered, passes_ended;
    uint8_t in_use; /* the batch that was delivered last is in use */
    uint8_t ended;  /* the stream has ended by an error or a stop */
    uint8_t closed;
} model_ring;

typedef struct model_worker {
    uint8_t at;
    uint8_t ring, ticket; /* what the worker looks at, or makes */
    uint8_t holds;        /* 1: the worker has claimed or inherited a slot */
    uint8_t other;        /* index of a loop over the rings */
    uint8_t tried;        /* number of rings without work that claim has tried */
    uint8_t second;       /* 1: the second check, before the worker sleeps */
    uint8_t sleeping;     /* the shared flag, which stays set after a kill */
    uint8_t futex_same;   /* the table's wake_futex has not changed since the worker loaded it */
    uint8_t must_wake;    /* mutation AWAITED_EARLY: what `awaited` said */
} model_worker;

typedef struct model_consumer {
    uint8_t at;
    uint8_t ring;
    uint8_t look, wake;           /* the callers of look and of wake: LOOK_ and WAKE_ values */
    uint8_t seen;                 /* result of a look: a SEEN_ value */
    uint8_t next, sleepers, most; /* local variables of leati_worker_table_wake */
    uint8_t futex_same;           /* its ring's consumer_wake has not changed since the consumer loaded it */
} model_consumer;

typedef struct model_helper {
    uint8_t at;
    uint8_t worker;
    uint8_t ring;              /* index of a loop over the rings */
    uint8_t found, slot, from; /* the slot that the dead worker had claimed, and its ring */
} model_helper;

typedef struct model_stopper {
    uint8_t at, ring;
} model_stopper;

typedef struct model_state {
    model_consumer consumer;
    model_helper helper;
    model_stopper stopper;
    uint8_t retired; /* 1: the workers of the present generation must exit */
    uint8_t deaths_left, stops_left;
    uint8_t mistake; /* a model_mistake */
    model_worker workers[MODEL_MAX_WORKERS];
    model_ring rings[MODEL_MAX_RINGS]; /* the last member: unused rings are not compared */
} model_state;

/* Errors that a step itself detects. */
#define MODEL_MISTAKES(X)                                                                                    \
    X(WRONG_TICKET, "the batch that is delivered has another ticket")                                        \
    X(WRONG_CONTENT, "the batch that is delivered is incomplete, or belongs to another ticket")              \
    X(BATCH_LOST, "a batch that was made before a failure is not delivered")                                 \
    X(CALLED_OUT_OF_ORDER, "a generator is called out of order")                                             \
    X(CALLED_BY_ANOTHER, "a generator is called by a worker or process that does not own it")                \
    X(CALLED_TOO_OFTEN, "a batch on which max_deaths workers died is made again")                            \
    X(HELPER_REPORTED_WRONGLY, "the helper is reported as dead, but it exited because the feed had ended")   \
    X(HOOK_OVERTAKEN, "a batch is being made while the hook runs")

typedef enum model_mistake {
    NO_MISTAKE,
#define X(name, text) name,
    MODEL_MISTAKES(X)
#undef X
} model_mistake;

enum { ACTOR_CONSUMER, ACTOR_HELPER, ACTOR_STOPPER, ACTOR_WORKER }; /* ACTOR_WORKER + w */

/* A step that one actor takes from one state to the next. */
typedef struct transition {
    const model_config *config;
    const model_state *from;
    explorer_sink *sink;
    model_state next;
    int actor;
    bool progress;
    const char *name; /* name of the step */
} transition;

/* A step of an actor's program: the access, named as in the code, and the function that computes the next state. */
typedef struct model_step {
    const char *name;
    void (*take)(transition *t);
} model_step;

static inline bool mutated(const transition *t, model_mutation mutation) {
    return t->config->mutation == mutation;
}

static inline int slot_count(const model_config *config) {
    return config->queue + 1;
}

static inline model_slot *slot_of(transition *t, int ring, int ticket) {
    return &t->next.rings[ring].slots[ticket % slot_count(t->config)];
}

/* Returns true if `failed` may ever be set.  If not, loading it always gives 0, and the load is not a step. */
static inline bool may_fail(const model_config *config) {
    return config->generator && config->deaths > 0;
}

static inline bool owned(const model_config *config, int ring) {
    return config->generator && ring == 0;
}

static inline bool is_live(const model_ring *ring) {
    return !ring->stop && !ring->failed;
}

/* Emits t->next as an outcome of the step.  A step may have several outcomes. */
void model_emit(transition *t);

/* ---- futexes ---- */

void model_change_table_futex(model_state *state);
void model_change_consumer_futex(model_state *state, int ring);
void model_wake_consumer(model_state *state, int ring);
/* Wakes `count` of the waiting workers, and emits one outcome for each possible choice of them. */
void model_wake_workers(transition *t, int count);

/* ---- actors ---- */

void model_worker_start(model_state *state, int worker);
void model_worker_step(transition *t);
void model_worker_disturb(transition *t); /* a kill, or a futex wait that returns without a reason */
bool model_worker_waits(const model_state *state, int worker);
void model_worker_wake(model_state *state, int worker);
bool model_worker_writes(const model_state *state, int worker);
/* is_over: the process has ended, and the helper has not reaped it yet; is_reaped: the helper has reaped it. */
bool model_worker_is_over(const model_state *state, int worker);
bool model_worker_is_reaped(const model_state *state, int worker);
void model_worker_reap(model_state *state, int worker);
const char *model_worker_name(const model_state *state, int worker);

void model_consumer_start(const model_config *config, model_state *state);
void model_consumer_step(transition *t);
bool model_consumer_waits(const model_state *state, int ring);
void model_consumer_wake(model_state *state);
bool model_consumer_is_gone(const model_state *state);
const char *model_consumer_name(const model_state *state);

void model_helper_step(transition *t);
void model_helper_start(model_state *state);
bool model_helper_is_gone(const model_state *state);
const char *model_helper_name(const model_state *state);

void model_stopper_step(transition *t);
bool model_stopper_is_idle(const model_state *state);
const char *model_stopper_name(const model_state *state);

#endif
