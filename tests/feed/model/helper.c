/* SPDX-License-Identifier: Apache-2.0 */
/* The helper, which models on_death of src/feed/workers/helper.c, and a thread that calls leat_feed_stop.  Each
 * function is one access to a shared word. */
#include "feed/model/protocol.h"

enum helper_at {
    H_WATCH,
    H_GENERATION,
    H_STOP,
    H_FAILED,
    H_COUNT,
    H_FAIL,
    H_FAIL_VALID,
    H_FAIL_FUTEX_ADD,
    H_FAIL_FUTEX_WAKE,
    H_BATCH,
    H_READY,
    H_AWAITED,
    H_FUTEX_ADD,
    H_FUTEX_WAKE,
    H_NUDGE,
    H_NUDGE_FUTEX_ADD,
    H_NUDGE_FUTEX_WAKE,
    H_LIVE_STOP,
    H_LIVE_FAILED,
    H_GONE
};

static model_helper *me(transition *t) {
    return &t->next.helper;
}

static void go(transition *t, enum helper_at at) {
    me(t)->at = (uint8_t)at;
    model_emit(t);
}

static void done(transition *t) {
    *me(t) = (model_helper){.at = H_WATCH};
    model_emit(t);
}

/* ---- on_death: was the death unexpected? ---- */

/* These loads are one step, because none of these words ever changes back. */
static bool must_exit(const transition *t) {
    for (int r = 0; r < t->config->rings && !t->next.retired; ++r)
        if (is_live(&t->next.rings[r])) return false;
    return true;
}

static void watch(transition *t) {
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
    t->name = "leati_helper_run: exits";
    go(t, H_GONE);
}

static void generation(transition *t) {
    if (t->next.retired)
        done(t);
    else
        go(t, H_STOP);
}

static void not_live(transition *t) {
    if (++me(t)->ring < t->config->rings)
        go(t, H_STOP);
    else
        done(t);
}

static void unexpected(transition *t) {
    me(t)->ring = 0;
    go(t, H_COUNT);
}

static void stop(transition *t) {
    if (t->next.rings[me(t)->ring].stop)
        not_live(t);
    else if (may_fail(t->config))
        go(t, H_FAILED);
    else
        unexpected(t);
}

static void failed(transition *t) {
    if (t->next.rings[me(t)->ring].failed)
        not_live(t);
    else
        unexpected(t);
}

/* ---- count_death ---- */

static bool dead_worker_owns(transition *t, int ring) {
    return owned(t->config, ring) && me(t)->worker == 0 && !mutated(t, MODEL_OWNER_REPLACED);
}

static void count_batch(transition *t) {
    bool counted = me(t)->found && !dead_worker_owns(t, me(t)->from);
    if (!counted) me(t)->found = me(t)->from = me(t)->slot = 0;
    go(t, counted ? H_BATCH : H_NUDGE);
}

/* The loads of the slots are one step, because only the dead worker could change its slot.  A load of `stop`
 * follows. */
static void count(transition *t) {
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
    if (dead_worker_owns(t, 0))
        go(t, H_FAIL);
    else
        count_batch(t);
}

static void fail(transition *t) {
    t->next.rings[me(t)->ring].failed = 1;
    go(t, H_FAIL_VALID);
}

static void fail_valid(transition *t) {
    t->next.rings[me(t)->ring].failed = 2;
    go(t, H_FAIL_FUTEX_ADD);
}

static void fail_futex_add(transition *t) {
    model_change_consumer_futex(&t->next, me(t)->ring);
    go(t, H_FAIL_FUTEX_WAKE);
}

static void fail_futex_wake(transition *t) {
    model_wake_consumer(&t->next, me(t)->ring);
    count_batch(t);
}

static model_slot *dead_workers_slot(transition *t) {
    return &t->next.rings[me(t)->from].slots[me(t)->slot];
}

/* Only the helper accesses the slot's number of deaths, so counting is not a separate step. */
static void batch(transition *t) {
    model_slot *slot = dead_workers_slot(t);
    bool too_many = ++slot->deaths >= t->config->max_deaths && !mutated(t, MODEL_DEATHS_UNCOUNTED);
    if (too_many) slot->failed = 1;
    if (!too_many) me(t)->found = me(t)->from = me(t)->slot = 0;
    if (too_many && mutated(t, MODEL_REPLACED_EARLY)) model_worker_start(&t->next, me(t)->worker);
    go(t, too_many ? H_READY : H_NUDGE);
}

static void nudge_all(transition *t) {
    me(t)->found = me(t)->from = me(t)->slot = 0;
    go(t, H_NUDGE);
}

static void ready(transition *t) {
    dead_workers_slot(t)->state = SLOT_READY;
    go(t, H_AWAITED);
}

static void awaited(transition *t) {
    /* leati_ring_publish reads the ticket before it stores READY: afterwards the slot may have another ticket. */
    if (t->next.rings[me(t)->from].awaited == dead_workers_slot(t)->ticket + 1)
        go(t, H_FUTEX_ADD);
    else
        nudge_all(t);
}

static void futex_add(transition *t) {
    model_change_consumer_futex(&t->next, me(t)->from);
    go(t, H_FUTEX_WAKE);
}

static void futex_wake(transition *t) {
    model_wake_consumer(&t->next, me(t)->from);
    nudge_all(t);
}

/* ---- leati_ring_nudge_consumer of each ring ---- */

static void nudge_on(transition *t) {
    if (++me(t)->ring < t->config->rings) {
        go(t, H_NUDGE);
        return;
    }
    me(t)->ring = 0;
    go(t, H_LIVE_STOP);
}

static void nudge(transition *t) {
    if (t->next.rings[me(t)->ring].awaited && !mutated(t, MODEL_NO_NUDGE))
        go(t, H_NUDGE_FUTEX_ADD);
    else
        nudge_on(t);
}

static void nudge_futex_add(transition *t) {
    model_change_consumer_futex(&t->next, me(t)->ring);
    go(t, H_NUDGE_FUTEX_WAKE);
}

static void nudge_futex_wake(transition *t) {
    model_wake_consumer(&t->next, me(t)->ring);
    nudge_on(t);
}

/* ---- any_is_live, spawn ---- */

static void spawn(transition *t) {
    if (!mutated(t, MODEL_NO_REPLACEMENT)) model_worker_start(&t->next, me(t)->worker);
    done(t);
}

static void live_on(transition *t) {
    if (++me(t)->ring < t->config->rings)
        go(t, H_LIVE_STOP);
    else
        done(t);
}

static void live_stop(transition *t) {
    if (t->next.rings[me(t)->ring].stop)
        live_on(t);
    else if (may_fail(t->config))
        go(t, H_LIVE_FAILED);
    else
        spawn(t);
}

static void live_failed(transition *t) {
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
    [H_COUNT] = {"find_in_hand: load the slots, then stop", count},
    [H_FAIL] = {"leati_ring_fail: failed = 1", fail},
    [H_FAIL_VALID] = {"leati_ring_fail: failed = 2", fail_valid},
    [H_FAIL_FUTEX_ADD] = {"leati_ring_fail: consumer_wake + 1", fail_futex_add},
    [H_FAIL_FUTEX_WAKE] = {"leati_ring_fail: futex wake", fail_futex_wake},
    [H_BATCH] = {"count_death_on_batch", batch},
    [H_READY] = {"publish_failure: store READY", ready},
    [H_AWAITED] = {"publish_failure: load awaited", awaited},
    [H_FUTEX_ADD] = {"publish_failure: consumer_wake + 1", futex_add},
    [H_FUTEX_WAKE] = {"publish_failure: futex wake", futex_wake},
    [H_NUDGE] = {"leati_ring_nudge_consumer: load awaited", nudge},
    [H_NUDGE_FUTEX_ADD] = {"leati_ring_nudge_consumer: consumer_wake + 1", nudge_futex_add},
    [H_NUDGE_FUTEX_WAKE] = {"leati_ring_nudge_consumer: futex wake", nudge_futex_wake},
    [H_LIVE_STOP] = {"any_is_live: load stop; spawn", live_stop},
    [H_LIVE_FAILED] = {"any_is_live: load failed; spawn", live_failed},
    [H_GONE] = {"gone", NULL},
};

void model_helper_step(transition *t) {
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

enum stopper_at {
    S_IDLE,
    S_TABLE_FUTEX_ADD,
    S_TABLE_FUTEX_WAKE,
    S_CONSUMER_FUTEX_ADD,
    S_CONSUMER_FUTEX_WAKE
};

static void stop_on(transition *t, enum stopper_at at) {
    t->next.stopper.at = (uint8_t)at;
    if (at == S_IDLE) t->next.stopper.ring = 0;
}

static void begin_to_stop(transition *t) {
    t->progress = false; /* nobody has to call stop */
    for (int r = 0; r < t->config->rings && t->from->stops_left > 0; ++r) {
        t->next = *t->from;
        if (t->next.rings[r].closed) continue; /* stop must not be called for a closed feed */
        --t->next.stops_left;
        t->next.rings[r].stop = 1;
        t->next.stopper.ring = (uint8_t)r;
        stop_on(t, mutated(t, MODEL_STOP_WITHOUT_WAKE) ? S_IDLE : S_TABLE_FUTEX_ADD);
        t->name = "leati_ring_stop: stop = 1";
        model_emit(t);
    }
}

void model_stopper_step(transition *t) {
    int ring = t->next.stopper.ring;
    switch ((enum stopper_at)t->next.stopper.at) {
    case S_IDLE: begin_to_stop(t); return;
    case S_TABLE_FUTEX_ADD:
        t->name = "leati_worker_table_alarm: wake_futex + 1";
        model_change_table_futex(&t->next);
        stop_on(t, S_TABLE_FUTEX_WAKE);
        break;
    case S_TABLE_FUTEX_WAKE:
        t->name = "leati_worker_table_alarm: futex wake";
        stop_on(t, S_CONSUMER_FUTEX_ADD);
        model_wake_workers(t, t->config->workers);
        return;
    case S_CONSUMER_FUTEX_ADD:
        t->name = "leati_ring_stop: consumer_wake + 1";
        model_change_consumer_futex(&t->next, ring);
        stop_on(t, S_CONSUMER_FUTEX_WAKE);
        break;
    case S_CONSUMER_FUTEX_WAKE:
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
