/* SPDX-License-Identifier: Apache-2.0 */
/* A worker, which models src/feed/workers/worker.c and the functions of ring.c that it calls.  Each function is one
 * access to a shared word. */
#include "feed/model/protocol.h"

#include <string.h>

enum worker_at {
    W_START,
    W_INHERIT,
    W_GENERATION,
    W_STOP,
    W_FAILED,
    W_LIVE_STOP,
    W_LIVE_FAILED,
    W_HINT,
    W_ISSUED,
    W_CLAIM,
    W_CLAIM_STORE,
    W_MOVE_HINT,
    W_GET,
    W_GOT,
    W_AWAITED_EARLY,
    W_READY,
    W_AWAITED,
    W_FUTEX_ADD,
    W_FUTEX_WAKE,
    W_LOAD_FUTEX,
    W_SLEEPING,
    W_LOOK_HINT,
    W_LOOK_ISSUED,
    W_LOOK_STOP,
    W_LOOK_FAILED,
    W_LOAD_FUTEX_LATE,
    W_SLEEPING_LATE,
    W_WAIT,
    W_WAITING,
    W_AWAKE,
    W_DEAD, /* a process that the helper has not reaped yet */
    W_GONE
};

static int self(const transition *t) {
    return t->actor - ACTOR_WORKER;
}

static model_worker *me(transition *t) {
    return &t->next.workers[self(t)];
}

static model_ring *my_ring(transition *t) {
    return &t->next.rings[me(t)->ring];
}

static void go(transition *t, enum worker_at at) {
    me(t)->at = (uint8_t)at;
    model_emit(t);
}

/* Resets the members that are no longer used, so that states do not differ by their values. */
static void forget(model_worker *worker) {
    *worker = (model_worker){.at = worker->at, .sleeping = worker->sleeping};
}

/* ---- the start of a worker ---- */

static void start(transition *t) {
    me(t)->sleeping = 0;
    go(t, W_INHERIT);
}

/* These loads are one step, because only this worker, or the helper after its death, changes a slot that it claimed. */
static void inherit(transition *t) {
    for (int r = 0; r < t->config->rings && !mutated(t, MODEL_NO_TAKE_OVER); ++r) {
        if (!is_live(&t->next.rings[r]) && !mutated(t, MODEL_INHERITS_ENDED)) continue;
        for (int i = 0; i < slot_count(t->config) && !me(t)->holds; ++i)
            if (t->next.rings[r].slots[i].state == SLOT_CLAIMED + self(t)) {
                me(t)->holds = 1;
                me(t)->ring = (uint8_t)r;
                me(t)->ticket = t->next.rings[r].slots[i].ticket;
            }
    }
    go(t, W_GENERATION);
}

/* ---- leati_pool_work_is_over ---- */

static void leave(transition *t) {
    forget(me(t));
    go(t, t->config->processes ? W_DEAD : W_GONE);
}

static void wake_up(transition *t) {
    forget(me(t));
    go(t, W_AWAKE);
}

/* In the code, the rings for which the consumer waits come first.  Here every order is an outcome. */
static void claim_in_any_order(transition *t) {
    for (int r = 0; r < t->config->rings; ++r) {
        me(t)->ring = (uint8_t)r;
        go(t, W_LIVE_STOP);
    }
}

static void go_on(transition *t) {
    me(t)->other = 0;
    if (me(t)->second)
        go(t, mutated(t, MODEL_WORKER_LOADS_LATE)       ? W_LOAD_FUTEX_LATE
              : mutated(t, MODEL_WORKER_ANNOUNCES_LATE) ? W_SLEEPING_LATE
                                                        : W_WAIT);
    else if (me(t)->holds)
        go(t, W_GET);
    else
        claim_in_any_order(t);
}

/* The worker must exit.  In the check before a sleep, it stays awake first. */
static void over(transition *t) {
    if (me(t)->second)
        wake_up(t);
    else
        leave(t);
}

static void generation(transition *t) {
    if (t->next.retired)
        over(t);
    else
        go(t, W_STOP);
}

static void not_live(transition *t) {
    if (++me(t)->other < t->config->rings)
        go(t, W_STOP);
    else
        over(t);
}

static void stop(transition *t) {
    if (t->next.rings[me(t)->other].stop)
        not_live(t);
    else if (may_fail(t->config))
        go(t, W_FAILED);
    else
        go_on(t);
}

static void failed(transition *t) {
    if (t->next.rings[me(t)->other].failed)
        not_live(t);
    else
        go_on(t);
}

/* ---- leati_ring_claim ---- */

static void no_work(transition *t) {
    if (++me(t)->tried < t->config->rings) {
        me(t)->ring = (uint8_t)((me(t)->ring + 1) % t->config->rings);
        go(t, W_LIVE_STOP);
        return;
    }
    forget(me(t));
    go(t, mutated(t, MODEL_WORKER_LOADS_LATE) ? W_SLEEPING : W_LOAD_FUTEX);
}

static bool for_another(const transition *t, int ring) {
    return owned(t->config, ring) && self(t) != 0 && !mutated(t, MODEL_ANYBODY_CLAIMS);
}

static void live_stop(transition *t) {
    if (my_ring(t)->stop || for_another(t, me(t)->ring))
        no_work(t);
    else
        go(t, may_fail(t->config) ? W_LIVE_FAILED : W_HINT);
}

static void live_failed(transition *t) {
    if (my_ring(t)->failed)
        no_work(t);
    else
        go(t, W_HINT);
}

static void hint(transition *t) {
    me(t)->ticket = my_ring(t)->hint;
    go(t, W_ISSUED);
}

static void issued(transition *t) {
    if (me(t)->ticket < my_ring(t)->issued) {
        go(t, mutated(t, MODEL_HINT_BEFORE_CLAIM) ? W_MOVE_HINT : W_CLAIM);
        return;
    }
    me(t)->ticket = 0;
    no_work(t);
}

/* The slot may have a later ticket by now; then the worker has claimed that ticket. */
static void claimed(transition *t) {
    slot_of(t, me(t)->ring, me(t)->ticket)->state = (uint8_t)(SLOT_CLAIMED + self(t));
    me(t)->holds = 1;
    go(t, mutated(t, MODEL_HINT_BEFORE_CLAIM) ? W_GET : W_MOVE_HINT);
}

static void claim(transition *t) {
    if (slot_of(t, me(t)->ring, me(t)->ticket)->state == SLOT_OPEN) {
        if (mutated(t, MODEL_CLAIM_IN_TWO))
            go(t, W_CLAIM_STORE);
        else
            claimed(t);
        return;
    }
    if (!mutated(t, MODEL_HINT_BY_CLAIMER) && !mutated(t, MODEL_HINT_BEFORE_CLAIM)) {
        go(t, W_MOVE_HINT);
        return;
    }
    me(t)->ticket = 0;
    go(t, W_LIVE_STOP);
}

static void move_hint(transition *t) {
    bool mine = me(t)->holds;
    if (my_ring(t)->hint == me(t)->ticket) ++my_ring(t)->hint;
    if (mutated(t, MODEL_HINT_BEFORE_CLAIM)) {
        go(t, W_CLAIM);
        return;
    }
    if (mine)
        me(t)->ticket = slot_of(t, me(t)->ring, me(t)->ticket)->ticket;
    else
        me(t)->ticket = 0;
    me(t)->tried = mine ? 0 : me(t)->tried;
    go(t, mine ? W_GET : W_LIVE_STOP);
}

/* ---- leati_maker_make, leati_ring_publish ---- */

static void get(transition *t) {
    model_ring *ring = my_ring(t);
    if (owned(t->config, me(t)->ring)) {
        if (self(t) != 0 || ring->failed) t->next.mistake = CALLED_BY_ANOTHER;
        if (me(t)->ticket != ring->calls++) t->next.mistake = CALLED_OUT_OF_ORDER;
    }
    model_slot *slot = slot_of(t, me(t)->ring, me(t)->ticket);
    if (t->config->deaths && slot->killed >= t->config->max_deaths) t->next.mistake = CALLED_TOO_OFTEN;
    slot->content = CONTENT_PARTIAL;
    go(t, mutated(t, MODEL_READY_EARLY) ? W_READY : W_GOT);
}

static void got(transition *t) {
    model_slot *slot = slot_of(t, me(t)->ring, me(t)->ticket);
    slot->content = (uint8_t)(slot->ticket + 1);
    go(t, mutated(t, MODEL_AWAITED_EARLY) ? W_AWAITED_EARLY
          : mutated(t, MODEL_READY_EARLY) ? W_AWAITED
                                          : W_READY);
}

static void awaited_early(transition *t) {
    me(t)->must_wake = my_ring(t)->awaited == me(t)->ticket + 1;
    go(t, W_READY);
}

static void after_work(transition *t) {
    forget(me(t));
    go(t, W_GENERATION);
}

static void ready(transition *t) {
    slot_of(t, me(t)->ring, me(t)->ticket)->state = SLOT_READY;
    if (!mutated(t, MODEL_AWAITED_EARLY))
        go(t, mutated(t, MODEL_READY_EARLY) ? W_GOT : W_AWAITED);
    else if (me(t)->must_wake)
        go(t, W_FUTEX_ADD);
    else
        after_work(t);
}

static void awaited(transition *t) {
    if (my_ring(t)->awaited == me(t)->ticket + 1)
        go(t, W_FUTEX_ADD);
    else
        after_work(t);
}

static void futex_add(transition *t) {
    model_change_consumer_futex(&t->next, me(t)->ring);
    go(t, W_FUTEX_WAKE);
}

static void futex_wake(transition *t) {
    model_wake_consumer(&t->next, me(t)->ring);
    after_work(t);
}

/* ---- rest_until_woken ---- */

static void load_futex(transition *t) {
    me(t)->futex_same = 1;
    go(t, mutated(t, MODEL_WORKER_ANNOUNCES_LATE) ? W_LOOK_HINT : W_SLEEPING);
}

static void sleeping(transition *t) {
    me(t)->sleeping = 1;
    go(t, mutated(t, MODEL_WORKER_LOOKS_ONCE) ? W_WAIT : W_LOOK_HINT);
}

static void look_on(transition *t) {
    me(t)->ticket = 0;
    bool all = mutated(t, MODEL_ONE_RING_SEEN) || me(t)->other + 1 == t->config->rings;
    me(t)->other = all ? 0 : (uint8_t)(me(t)->other + 1);
    me(t)->second = all;
    go(t, all ? W_GENERATION : W_LOOK_HINT);
}

static void look_hint(transition *t) {
    if (for_another(t, me(t)->other)) {
        look_on(t);
        return;
    }
    me(t)->ticket = t->next.rings[me(t)->other].hint;
    go(t, W_LOOK_ISSUED);
}

static void look_issued(transition *t) {
    if (me(t)->ticket < t->next.rings[me(t)->other].issued)
        go(t, W_LOOK_STOP);
    else
        look_on(t);
}

static void look_stop(transition *t) {
    if (t->next.rings[me(t)->other].stop)
        look_on(t);
    else if (may_fail(t->config))
        go(t, W_LOOK_FAILED);
    else
        wake_up(t);
}

static void look_failed(transition *t) {
    if (t->next.rings[me(t)->other].failed)
        look_on(t);
    else
        wake_up(t);
}

static void load_futex_late(transition *t) {
    me(t)->futex_same = 1;
    go(t, W_WAIT);
}

static void sleeping_late(transition *t) {
    me(t)->sleeping = 1;
    go(t, W_WAIT);
}

static void wait(transition *t) {
    bool same = me(t)->futex_same;
    forget(me(t));
    go(t, same ? W_WAITING : W_AWAKE);
}

static void awake(transition *t) {
    me(t)->sleeping = 0;
    forget(me(t));
    go(t, W_GENERATION);
}

static const model_step steps[] = {
    [W_START] = {"worker_main: sleeping = 0", start},
    [W_INHERIT] = {"find_inherited: the slot that a dead worker had claimed", inherit},
    [W_GENERATION] = {"leati_pool_work_is_over: load generation", generation},
    [W_STOP] = {"leati_pool_work_is_over: load stop", stop},
    [W_FAILED] = {"leati_pool_work_is_over: load failed", failed},
    [W_LIVE_STOP] = {"leati_ring_claim: load stop", live_stop},
    [W_LIVE_FAILED] = {"leati_ring_claim: load failed", live_failed},
    [W_HINT] = {"leati_ring_claim: load hint", hint},
    [W_ISSUED] = {"leati_ring_claim: load issued", issued},
    [W_CLAIM] = {"leati_ring_claim: compare-and-swap OPEN to CLAIMED", claim},
    [W_CLAIM_STORE] = {"leati_ring_claim: store CLAIMED", claimed},
    [W_MOVE_HINT] = {"leati_ring_claim: compare-and-swap hint", move_hint},
    [W_GET] = {"leati_maker_make: begin", get},
    [W_GOT] = {"leati_maker_make: end", got},
    [W_AWAITED_EARLY] = {"leati_ring_publish: load awaited, early", awaited_early},
    [W_READY] = {"leati_ring_publish: store READY", ready},
    [W_AWAITED] = {"leati_ring_publish: load awaited", awaited},
    [W_FUTEX_ADD] = {"leati_ring_publish: consumer_wake + 1", futex_add},
    [W_FUTEX_WAKE] = {"leati_ring_publish: futex wake", futex_wake},
    [W_LOAD_FUTEX] = {"rest_until_woken: load wake_futex", load_futex},
    [W_SLEEPING] = {"rest_until_woken: sleeping = 1", sleeping},
    [W_LOOK_HINT] = {"nothing_to_do: load hint", look_hint},
    [W_LOOK_ISSUED] = {"nothing_to_do: load issued", look_issued},
    [W_LOOK_STOP] = {"nothing_to_do: load stop", look_stop},
    [W_LOOK_FAILED] = {"nothing_to_do: load failed", look_failed},
    [W_LOAD_FUTEX_LATE] = {"rest_until_woken: load wake_futex, late", load_futex_late},
    [W_SLEEPING_LATE] = {"rest_until_woken: sleeping = 1, late", sleeping_late},
    [W_WAIT] = {"rest_until_woken: futex wait", wait},
    [W_WAITING] = {"asleep", NULL},
    [W_AWAKE] = {"rest_until_woken: sleeping = 0", awake},
    [W_DEAD] = {"dead", NULL},
    [W_GONE] = {"gone", NULL},
};

/* ---- functions for the other actors ---- */

void model_worker_step(transition *t) {
    const model_step *step = &steps[me(t)->at];
    t->name = step->name;
    if (step->take) step->take(t);
}

void model_worker_start(model_state *state, int worker) {
    uint8_t flag = state->workers[worker].sleeping;
    state->workers[worker] = (model_worker){.at = W_START, .sleeping = flag};
}

static void count_kill(transition *t) {
    for (int r = 0; r < t->config->rings; ++r)
        for (int i = 0; i < slot_count(t->config) && is_live(&t->next.rings[r]); ++i)
            if (t->next.rings[r].slots[i].state == SLOT_CLAIMED + self(t)) ++t->next.rings[r].slots[i].killed;
}

/* Mutation LATE_NOT_KILLED: the batch of a late worker is given up, but the worker is not killed. */
static void mistake_for_late(transition *t) {
    if (!model_worker_writes(&t->next, self(t))) return;
    model_slot *slot = slot_of(t, me(t)->ring, me(t)->ticket);
    slot->state = SLOT_READY;
    slot->failed = 1;
    t->name = "given up as late, but not killed";
    model_emit(t);
}

void model_worker_disturb(transition *t) {
    uint8_t at = me(t)->at;
    bool lives = at != W_DEAD && at != W_GONE;
    t->progress = false;
    t->name = "a futex wait returns without a reason";
    if (at == W_WAITING && t->config->spurious) go(t, W_AWAKE);
    t->next = *t->from;
    if (!lives || t->next.deaths_left == 0) return;
    --t->next.deaths_left;
    if (mutated(t, MODEL_LATE_NOT_KILLED)) {
        mistake_for_late(t);
        return;
    }
    t->name = "killed";
    count_kill(t);
    forget(me(t));
    go(t, W_DEAD);
}

bool model_worker_waits(const model_state *state, int worker) {
    return state->workers[worker].at == W_WAITING;
}

void model_worker_wake(model_state *state, int worker) {
    state->workers[worker].at = W_AWAKE;
}

bool model_worker_writes(const model_state *state, int worker) {
    return state->workers[worker].at == W_GOT;
}

bool model_worker_is_over(const model_state *state, int worker) {
    return state->workers[worker].at == W_DEAD;
}

bool model_worker_is_reaped(const model_state *state, int worker) {
    return state->workers[worker].at == W_GONE;
}

void model_worker_reap(model_state *state, int worker) {
    state->workers[worker].at = W_GONE;
}

const char *model_worker_name(const model_state *state, int worker) {
    return steps[state->workers[worker].at].name;
}
