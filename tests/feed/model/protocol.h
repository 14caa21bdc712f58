/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the model share: the state, and how an actor takes a step.
 *
 * All members are bytes, so that states compare as bytes.  A wake_futex is not a count: only whether its word has changed since
 * an actor read it decides what a futex wait does, so each reader has one flag, which every ring of the wake futex clears. */
#ifndef LEAT_TESTS_FEED_MODEL_PROTOCOL_H
#define LEAT_TESTS_FEED_MODEL_PROTOCOL_H

#include "feed/model/ring_model.h"

enum { SLOT_FREE, SLOT_OPEN, SLOT_READY, SLOT_CLAIMED }; /* CLAIMED + w */

enum { CONTENT_NONE = 0, CONTENT_PARTIAL = 255 }; /* otherwise ticket + 1 */

typedef struct model_slot {
    uint8_t state;
    uint8_t deaths;  /* as the helper counts them */
    uint8_t killed;  /* and as they were */
    uint8_t ticket;  /* of its job */
    uint8_t content; /* whose batch the memory holds */
    uint8_t failed;  /* an error in the batch's place */
} model_slot;

typedef struct model_ring {
    model_slot slots[MODEL_MAX_SLOTS];
    uint8_t issued, hint, awaited, stop, failed; /* the shared words */
    uint8_t calls;                               /* of a generator: what the source itself counts */
    /* the consumer's own */
    uint8_t opened, delivered, passes_ended;
    uint8_t in_use; /* the batch delivered last */
    uint8_t ended;  /* by an error or a stop */
    uint8_t closed;
} model_ring;

typedef struct model_worker {
    uint8_t at;
    uint8_t ring, ticket; /* looked at, or in hand */
    uint8_t holds;        /* a slot that it inherited */
    uint8_t other;        /* ring: the iterator of a loop over all of them */
    uint8_t tried;        /* rings without work, in claim */
    uint8_t second;       /* look: the one before it sleeps */
    uint8_t sleeping;     /* the shared flag, which survives a kill */
    uint8_t bell_same;    /* the table's wake_futex has not changed since it was read */
    uint8_t rings;        /* `awaited` was read early (a mutation) */
} model_worker;

typedef struct model_consumer {
    uint8_t at;
    uint8_t ring;
    uint8_t look, wake;           /* from where these were called */
    uint8_t seen;                 /* by a look */
    uint8_t next, sleepers, most; /* in leati_worker_table_wake */
    uint8_t bell_same;            /* its ring's consumer_wake has not changed since it was read */
} model_consumer;

typedef struct model_helper {
    uint8_t at;
    uint8_t worker;
    uint8_t ring;              /* the iterator of a loop over all of them */
    uint8_t found, slot, from; /* the slot of the dead, and its ring */
} model_helper;

typedef struct model_stopper {
    uint8_t at, ring;
} model_stopper;

typedef struct model_state {
    model_consumer consumer;
    model_helper helper;
    model_stopper stopper;
    uint8_t retired; /* the generation is not the workers' own */
    uint8_t deaths_left, stops_left;
    uint8_t mistake; /* a model_mistake */
    model_worker workers[MODEL_MAX_WORKERS];
    model_ring rings[MODEL_MAX_RINGS]; /* last: those that a configuration lacks are not compared */
} model_state;

/* What a step itself finds wrong. */
#define MODEL_MISTAKES(X)                                                                                    \
    X(WRONG_TICKET, "the batch that is delivered has another ticket")                                        \
    X(WRONG_CONTENT, "the batch that is delivered is not whole, or another's")                               \
    X(BATCH_LOST, "a batch that was made before a failure is not delivered")                                 \
    X(CALLED_OUT_OF_ORDER, "a generator is called out of order")                                             \
    X(CALLED_BY_ANOTHER, "a generator is called by another worker, or by another process")                   \
    X(CALLED_TOO_OFTEN, "a batch on which max_deaths workers died is made again")                            \
    X(MISSED_WRONGLY, "the helper is missed, which has left because the feed was ended")                     \
    X(HOOK_OVERTAKEN, "a batch is being made while the hook runs")

typedef enum model_mistake {
    NO_MISTAKE,
#define X(name, text) name,
    MODEL_MISTAKES(X)
#undef X
} model_mistake;

enum { ACTOR_CONSUMER, ACTOR_HELPER, ACTOR_STOPPER, ACTOR_WORKER }; /* ACTOR_WORKER + w */

/* One actor's turn: what it finds, and what it makes of it. */
typedef struct turn {
    const model_config *config;
    const model_state *from;
    explorer_sink *sink;
    model_state next;
    int actor;
    bool progress;
    const char *name; /* of the step */
} turn;

/* A step of an actor's program: the access, in the words of the code, and what it does. */
typedef struct model_step {
    const char *name;
    void (*take)(turn *t);
} model_step;

static inline bool mutated(const turn *t, model_mutation mutation) {
    return t->config->mutation == mutation;
}

static inline int slot_count(const model_config *config) {
    return config->queue + 1;
}

static inline model_slot *slot_of(turn *t, int ring, int ticket) {
    return &t->next.rings[ring].slots[ticket % slot_count(t->config)];
}

/* `failed` is read where something may set it: elsewhere the load always gives 0 and is no step. */
static inline bool may_fail(const model_config *config) {
    return config->generator && config->deaths > 0;
}

static inline bool owned(const model_config *config, int ring) {
    return config->generator && ring == 0;
}

static inline bool is_live(const model_ring *ring) {
    return !ring->stop && !ring->failed;
}

/* `next` is what comes of the step; another outcome of it may follow. */
void model_emit(turn *t);

/* ---- bells ---- */

void model_ring_roster_bell(model_state *state);
void model_ring_consumer_bell(model_state *state, int ring);
void model_wake_consumer(model_state *state, int ring);
/* futex_wake, with every choice of `count` among those who wait; emits. */
void model_wake_workers(turn *t, int count);

/* ---- actors ---- */

void model_worker_start(model_state *state, int worker);
void model_worker_step(turn *t);
void model_worker_suffer(turn *t); /* a kill, or a return for no reason */
bool model_worker_waits(const model_state *state, int worker);
void model_worker_wake(model_state *state, int worker);
bool model_worker_writes(const model_state *state, int worker);
/* Killed or gone, and not yet looked after by the helper; and after that. */
bool model_worker_is_over(const model_state *state, int worker);
bool model_worker_is_reaped(const model_state *state, int worker);
void model_worker_reap(model_state *state, int worker);
const char *model_worker_name(const model_state *state, int worker);

void model_consumer_start(const model_config *config, model_state *state);
void model_consumer_step(turn *t);
bool model_consumer_waits(const model_state *state, int ring);
void model_consumer_wake(model_state *state);
bool model_consumer_is_gone(const model_state *state);
const char *model_consumer_name(const model_state *state);

void model_helper_step(turn *t);
void model_helper_start(model_state *state);
bool model_helper_is_gone(const model_state *state);
const char *model_helper_name(const model_state *state);

void model_stopper_step(turn *t);
bool model_stopper_is_idle(const model_state *state);
const char *model_stopper_name(const model_state *state);

#endif
