/* SPDX-License-Identifier: Apache-2.0 */
/* The helper: on_death of src/feed/workers/helper.c; and whoever calls leat_feed_stop.  Each function is one access to a shared
 * word. */
#include "feed/model/protocol.h"

enum helper_at {
    H_WATCH,
    H_GENERATION,
    H_STOP,
    H_FAILED,
    H_COUNT,
    H_FAIL,
    H_FAIL_TOLD,
    H_FAIL_RING,
    H_FAIL_WAKE,
    H_BATCH,
    H_READY,
    H_AWAITED,
    H_RING,
    H_WAKE,
    H_NUDGE,
    H_NUDGE_RING,
    H_NUDGE_WAKE,
    H_LIVE_STOP,
    H_LIVE_FAILED,
    H_GONE
};

static model_helper *me(turn *t) {
    return &t->next.helper;
}

static void go(turn *t, enum helper_at at) {
    me(t)->at = (uint8_t)at;
    model_emit(t);
}

static void done(turn *t) {
    *me(t) = (model_helper){.at = H_WATCH};
    model_emit(t);
}

/* ---- on_death: is that worker missed? ---- */

/* Several loads in one step: none of these words ever changes back. */
static bool must_exit(const turn *t) {
    for (int r = 0; r < t->config->rings && !t->next.retired; ++r)
        if (is_live(&t->next.rings[r])) return false;
    return true;
}

static void watch(turn *t) {
    bool all_gone = true;
    for (int w = 0; w < t->config->workers; ++w) {
        all_gone = all_gone && model_worker_is_reaped(&t->next, w);
        if (!model_worker_is_over(&t->next, w)) continue;
        model_worker_reap(&t->next, w);
        me(t)->worker = (uint8_t)w;
        go(t, H_GENERATION);
        t->next = *t->from;
    }
    if (!all_gone || !must_exit(t)) return;
    t->name = "leati_helper_run: leaves";
    go(t, H_GONE);
}

static void generation(turn *t) {
    if (t->next.retired)
        done(t);
    else
        go(t, H_STOP);
}

static void not_live(turn *t) {
    if (++me(t)->ring < t->config->rings)
        go(t, H_STOP);
    else
        done(t);
}

static void missed(turn *t) {
    me(t)->ring = 0;
    go(t, H_COUNT);
}

static void stop(turn *t) {
    if (t->next.rings[me(t)->ring].stop)
        not_live(t);
    else if (may_fail(t->config))
        go(t, H_FAILED);
    else
        missed(t);
}

static void failed(turn *t) {
    if (t->next.rings[me(t)->ring].failed)
        not_live(t);
    else
        missed(t);
}

/* ---- count_death ---- */

static bool owned_by_the_dead(turn *t, int ring) {
    return owned(t->config, ring) && me(t)->worker == 0 && !mutated(t, MODEL_OWNER_REPLACED);
}

static void count_batch(turn *t) {
    bool counted = me(t)->found && !owned_by_the_dead(t, me(t)->from);
    if (!counted) me(t)->found = me(t)->from = me(t)->slot = 0;
    go(t, counted ? H_BATCH : H_NUDGE);
}

/* Many loads in one step: the dead worker changes its slot no more, and nobody else does; then one of `stop`. */
static void count(turn *t) {
    const model_ring *ring = &t->next.rings[me(t)->ring];
    for (int i = 0; i < slot_count(t->config) && is_live(ring); ++i)
        if (ring->slots[i].state == SLOT_CLAIMED + me(t)->worker) {
            me(t)->found = 1;
            me(t)->from = me(t)->ring;
            me(t)->slot = (uint8_t)i;
        }
    if (++me(t)->ring < t->config->rings) {
        go(t, H_COUNT);
        return;
    }
    me(t)->ring = 0;
    if (owned_by_the_dead(t, 0))
        go(t, H_FAIL);
    else
        count_batch(t);
}

static void fail(turn *t) {
    t->next.rings[me(t)->ring].failed = 1;
    go(t, H_FAIL_TOLD);
}

static void fail_told(turn *t) {
    t->next.rings[me(t)->ring].failed = 2;
    go(t, H_FAIL_RING);
}

static void fail_ring(turn *t) {
    model_ring_consumer_bell(&t->next, me(t)->ring);
    go(t, H_FAIL_WAKE);
}

static void fail_wake(turn *t) {
    model_wake_consumer(&t->next, me(t)->ring);
    count_batch(t);
}

static model_slot *slot_of_the_dead(turn *t) {
    return &t->next.rings[me(t)->from].slots[me(t)->slot];
}

/* The slot's count is the helper's alone: no access of its own. */
static void batch(turn *t) {
    model_slot *slot = slot_of_the_dead(t);
    bool too_many = ++slot->deaths >= t->config->max_deaths && !mutated(t, MODEL_DEATHS_UNCOUNTED);
    if (too_many) slot->failed = 1;
    if (!too_many) me(t)->found = me(t)->from = me(t)->slot = 0;
    if (too_many && mutated(t, MODEL_REPLACED_EARLY)) model_worker_start(&t->next, me(t)->worker);
    go(t, too_many ? H_READY : H_NUDGE);
}

static void nudge_all(turn *t) {
    me(t)->found = me(t)->from = me(t)->slot = 0;
    go(t, H_NUDGE);
}

static void ready(turn *t) {
    slot_of_the_dead(t)->state = SLOT_READY;
    go(t, H_AWAITED);
}

static void awaited(turn *t) {
    /* leati_ring_publish has read the ticket before it stored READY: afterwards the slot may be for another. */
    if (t->next.rings[me(t)->from].awaited == slot_of_the_dead(t)->ticket + 1)
        go(t, H_RING);
    else
        nudge_all(t);
}

static void ring_bell(turn *t) {
    model_ring_consumer_bell(&t->next, me(t)->from);
    go(t, H_WAKE);
}

static void wake(turn *t) {
    model_wake_consumer(&t->next, me(t)->from);
    nudge_all(t);
}

/* ---- leati_ring_nudge_consumer of each ring ---- */

static void nudge_on(turn *t) {
    if (++me(t)->ring < t->config->rings) {
        go(t, H_NUDGE);
        return;
    }
    me(t)->ring = 0;
    go(t, H_LIVE_STOP);
}

static void nudge(turn *t) {
    if (t->next.rings[me(t)->ring].awaited && !mutated(t, MODEL_NO_NUDGE))
        go(t, H_NUDGE_RING);
    else
        nudge_on(t);
}

static void nudge_ring(turn *t) {
    model_ring_consumer_bell(&t->next, me(t)->ring);
    go(t, H_NUDGE_WAKE);
}

static void nudge_wake(turn *t) {
    model_wake_consumer(&t->next, me(t)->ring);
    nudge_on(t);
}

/* ---- any_is_live, spawn ---- */

static void spawn(turn *t) {
    if (!mutated(t, MODEL_NO_REPLACEMENT)) model_worker_start(&t->next, me(t)->worker);
    done(t);
}

static void live_on(turn *t) {
    if (++me(t)->ring < t->config->rings)
        go(t, H_LIVE_STOP);
    else
        done(t);
}

static void live_stop(turn *t) {
    if (t->next.rings[me(t)->ring].stop)
        live_on(t);
    else if (may_fail(t->config))
        go(t, H_LIVE_FAILED);
    else
        spawn(t);
}

static void live_failed(turn *t) {
    if (t->next.rings[me(t)->ring].failed)
        live_on(t);
    else
        spawn(t);
}

static const model_step steps[] = {
    [H_WATCH] = {"handle_deaths: a worker is gone", watch},
    [H_GENERATION] = {"must_exit: load generation", generation},
    [H_STOP] = {"must_exit: load stop", stop},
    [H_FAILED] = {"must_exit: load failed", failed},
    [H_COUNT] = {"find_in_hand: the slot that it had claimed; load stop", count},
    [H_FAIL] = {"leati_ring_fail: failed = 1", fail},
    [H_FAIL_TOLD] = {"leati_ring_fail: failed = 2", fail_told},
    [H_FAIL_RING] = {"leati_ring_fail: consumer_wake + 1", fail_ring},
    [H_FAIL_WAKE] = {"leati_ring_fail: futex wake", fail_wake},
    [H_BATCH] = {"count_death_on_batch", batch},
    [H_READY] = {"publish_failure: store READY", ready},
    [H_AWAITED] = {"publish_failure: load awaited", awaited},
    [H_RING] = {"publish_failure: consumer_wake + 1", ring_bell},
    [H_WAKE] = {"publish_failure: futex wake", wake},
    [H_NUDGE] = {"leati_ring_nudge_consumer: load awaited", nudge},
    [H_NUDGE_RING] = {"leati_ring_nudge_consumer: consumer_wake + 1", nudge_ring},
    [H_NUDGE_WAKE] = {"leati_ring_nudge_consumer: futex wake", nudge_wake},
    [H_LIVE_STOP] = {"any_is_live: load stop; spawn", live_stop},
    [H_LIVE_FAILED] = {"any_is_live: load failed; spawn", live_failed},
    [H_GONE] = {"gone", NULL},
};

void model_helper_step(turn *t) {
    t->name = steps[me(t)->at].name;
    if (steps[me(t)->at].take) steps[me(t)->at].take(t);
}

void model_helper_start(model_state *state) {
    state->helper = (model_helper){.at = H_WATCH};
}

bool model_helper_is_gone(const model_state *state) {
    return state->helper.at == H_GONE;
}

const char *model_helper_name(const model_state *state) {
    return steps[state->helper.at].name;
}

/* ---- leati_ring_stop, by another thread ---- */

enum stopper_at { S_IDLE, S_ROSTER_RING, S_ROSTER_WAKE, S_CONSUMER_RING, S_CONSUMER_WAKE };

static void stop_on(turn *t, enum stopper_at at) {
    t->next.stopper.at = (uint8_t)at;
    if (at == S_IDLE) t->next.stopper.ring = 0;
}

static void begin_to_stop(turn *t) {
    t->progress = false; /* it need not happen */
    for (int r = 0; r < t->config->rings && t->from->stops_left > 0; ++r) {
        t->next = *t->from;
        if (t->next.rings[r].closed) continue; /* calling it then is forbidden */
        --t->next.stops_left;
        t->next.rings[r].stop = 1;
        t->next.stopper.ring = (uint8_t)r;
        stop_on(t, mutated(t, MODEL_STOP_WITHOUT_BELL) ? S_IDLE : S_ROSTER_RING);
        t->name = "leati_ring_stop: stop = 1";
        model_emit(t);
    }
}

void model_stopper_step(turn *t) {
    int ring = t->next.stopper.ring;
    switch ((enum stopper_at)t->next.stopper.at) {
    case S_IDLE: begin_to_stop(t); return;
    case S_ROSTER_RING:
        t->name = "leati_worker_table_alarm: wake_futex + 1";
        model_ring_roster_bell(&t->next);
        stop_on(t, S_ROSTER_WAKE);
        break;
    case S_ROSTER_WAKE:
        t->name = "leati_worker_table_alarm: futex wake";
        stop_on(t, S_CONSUMER_RING);
        model_wake_workers(t, t->config->workers);
        return;
    case S_CONSUMER_RING:
        t->name = "leati_ring_stop: consumer_wake + 1";
        model_ring_consumer_bell(&t->next, ring);
        stop_on(t, S_CONSUMER_WAKE);
        break;
    case S_CONSUMER_WAKE:
        t->name = "leati_ring_stop: futex wake";
        model_wake_consumer(&t->next, ring);
        stop_on(t, S_IDLE);
        break;
    }
    model_emit(t);
}

bool model_stopper_is_idle(const model_state *state) {
    return state->stopper.at == S_IDLE;
}

const char *model_stopper_name(const model_state *state) {
    return state->stopper.at == S_IDLE ? "idle" : "in leati_ring_stop";
}
