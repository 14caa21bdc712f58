/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer: one thread that takes batches of all rings, in any order.  It models src/feed/delivery.c and stream.c,
 * and the functions of ring.c, worker_table.c and group.c that these call.  Each function is one access to a shared
 * word. */
#include "feed/model/protocol.h"

enum consumer_at {
    C_CHOOSE,
    C_LOOK_STOP,
    C_LOOK_FAILED,
    C_LOOK_STATE,
    C_OPEN,
    C_OPEN_JOB,
    C_ISSUED,
    C_HINT,
    C_SLEEPING,
    C_TABLE_FUTEX_ADD,
    C_TABLE_FUTEX_WAKE,
    C_AWAITED,
    C_LOAD_FUTEX,
    C_AWAITED_LATE,
    C_LOAD_FUTEX_LATE,
    C_WAIT,
    C_WAITING,
    C_AWAKE,
    C_CHECK,
    C_HOOK,
    C_STOP,
    C_STOP_FUTEX_ADD,
    C_STOP_FUTEX_WAKE,
    C_RETIRE,
    C_RETIRE_FUTEX_ADD,
    C_RETIRE_FUTEX_WAKE,
    C_JOIN,
    C_GONE
};

/* The callers of leati_ring_look, the callers of leati_worker_table_wake, and the results of a look. */
enum { LOOK_FIRST, LOOK_AWAIT, LOOK_SECOND, LOOK_WOKEN, LOOK_HELPER_GONE };
enum { WAKE_AHEAD, WAKE_URGENT, WAKE_SLEEP };
enum { SEEN_TICK, SEEN_READY, SEEN_STOPPED, SEEN_FAILED };

static model_consumer *me(transition *t) {
    return &t->next.consumer;
}

static model_ring *my_ring(transition *t) {
    return &t->next.rings[me(t)->ring];
}

static void go(transition *t, enum consumer_at at) {
    me(t)->at = (uint8_t)at;
    model_emit(t);
}

static void choose_again(transition *t) {
    t->next.consumer = (model_consumer){.at = C_CHOOSE};
    model_emit(t);
}

/* ---- issuing: leati_stream_issue_until ---- */

static bool may_issue(const model_config *config, const model_ring *ring) {
    int ahead = config->queue + (config->mutation == MODEL_ISSUED_TOO_FAR);
    if (ring->opened == config->tickets || ring->opened >= ring->delivered + ahead) return false;
    return !config->pass_length || ring->opened < (ring->passes_ended + 1) * config->pass_length;
}

static void write_job(const model_config *config, model_ring *ring, int ticket) {
    model_slot *slot = &ring->slots[ticket % slot_count(config)];
    slot->ticket = (uint8_t)ticket;
    slot->deaths = slot->killed = slot->failed = 0;
}

static void open_slot(const model_config *config, model_ring *ring) {
    ring->slots[ring->opened++ % slot_count(config)].state = SLOT_OPEN;
}

/* Issues tickets as long as this is allowed.  `wake` is the kind of the wake-up that follows. */
static void issue(transition *t, int wake) {
    me(t)->wake = (uint8_t)wake;
    bool more = wake != WAKE_URGENT && may_issue(t->config, my_ring(t));
    go(t, more && !mutated(t, MODEL_ISSUED_EARLY) ? C_OPEN : C_ISSUED);
}

static void open_next(transition *t) {
    int ticket = my_ring(t)->opened;
    if (!mutated(t, MODEL_OPEN_EARLY)) write_job(t->config, my_ring(t), ticket);
    open_slot(t->config, my_ring(t));
    if (mutated(t, MODEL_OPEN_EARLY))
        go(t, C_OPEN_JOB);
    else if (mutated(t, MODEL_ISSUED_EARLY))
        go(t, may_issue(t->config, my_ring(t)) ? C_OPEN : C_HINT);
    else
        issue(t, me(t)->wake);
}

static void open_job(transition *t) {
    write_job(t->config, my_ring(t), my_ring(t)->opened - 1);
    issue(t, me(t)->wake);
}

static void announce(transition *t) {
    model_ring ring = *my_ring(t);
    if (mutated(t, MODEL_ISSUED_EARLY) && me(t)->wake == WAKE_AHEAD && may_issue(t->config, &ring)) {
        while (may_issue(t->config, &ring)) ++ring.opened;
        my_ring(t)->issued = ring.opened;
        go(t, C_OPEN);
        return;
    }
    my_ring(t)->issued = ring.opened;
    go(t, C_HINT);
}

/* ---- leati_worker_table_wake ---- */

static void look(transition *t, int from) {
    me(t)->look = (uint8_t)from;
    go(t, C_LOOK_STOP);
}

static void woken(transition *t) {
    int wake = me(t)->wake;
    me(t)->next = me(t)->sleepers = me(t)->most = me(t)->wake = 0;
    if (wake == WAKE_AHEAD)
        choose_again(t);
    else if (wake == WAKE_URGENT)
        look(t, LOOK_AWAIT);
    else if (mutated(t, MODEL_CONSUMER_LOADS_LATE))
        go(t, C_AWAITED);
    else if (mutated(t, MODEL_CONSUMER_ANNOUNCES_LATE))
        go(t, C_LOAD_FUTEX);
    else
        go(t, C_AWAITED);
}

static void wake_most(transition *t, int most) {
    bool all = t->config->generator && most > 0;
    me(t)->most = (uint8_t)(all ? t->config->workers : most);
    if (most > 0)
        go(t, C_SLEEPING);
    else
        woken(t);
}

/* The number of workers that are woken for tickets issued ahead depends on the cost of a batch.  Here it is any
 * number. */
static void open_tickets(transition *t) {
    int issued = my_ring(t)->issued, hint = my_ring(t)->hint;
    int open = issued > hint ? issued - hint : 0;
    int least = me(t)->wake == WAKE_AHEAD ? 0 : me(t)->wake == WAKE_URGENT ? 1 : open;
    if (mutated(t, MODEL_NO_WAKE_BEFORE_SLEEP)) least = open = 0;
    model_state before = t->next;
    for (int most = least; most < open; ++most) {
        wake_most(t, most);
        t->next = before;
    }
    wake_most(t, open);
}

static void sleeping(transition *t) {
    me(t)->sleepers = (uint8_t)(me(t)->sleepers + (t->next.workers[me(t)->next].sleeping != 0));
    bool seen = ++me(t)->next == t->config->workers || me(t)->sleepers == me(t)->most;
    if (seen) me(t)->next = me(t)->most = 0;
    if (!seen)
        go(t, C_SLEEPING);
    else if (me(t)->sleepers)
        go(t, C_TABLE_FUTEX_ADD);
    else
        woken(t);
}

static void table_futex_add(transition *t) {
    model_change_table_futex(&t->next);
    go(t, C_TABLE_FUTEX_WAKE);
}

/* Sets the next step of the consumer before the workers are woken, because each choice of workers is one outcome. */
static void table_futex_wake(transition *t) {
    int count =
        t->config->generator && !mutated(t, MODEL_WAKE_COUNTED) ? t->config->workers : me(t)->sleepers;
    model_consumer then = {.at = C_CHOOSE};
    if (me(t)->wake != WAKE_AHEAD) {
        bool urgent = me(t)->wake == WAKE_URGENT;
        then = (model_consumer){.ring = me(t)->ring, .look = urgent ? LOOK_AWAIT : LOOK_FIRST};
        then.at = urgent ? C_LOOK_STOP : mutated(t, MODEL_CONSUMER_ANNOUNCES_LATE) ? C_LOAD_FUTEX : C_AWAITED;
    }
    t->next.consumer = then;
    model_wake_workers(t, count);
}

/* ---- delivery ---- */

static void take(transition *t) {
    model_ring *ring = my_ring(t);
    const model_slot *slot = slot_of(t, me(t)->ring, ring->delivered);
    if (slot->ticket != ring->delivered) t->next.mistake = WRONG_TICKET;
    if (!slot->failed && slot->content != slot->ticket + 1) t->next.mistake = WRONG_CONTENT;
    bool failed = slot->failed;
    int number = me(t)->ring;
    t->next.consumer = (model_consumer){.ring = (uint8_t)number};
    if (failed) { /* one outcome for policy `fail`, then one for policy `skip` */
        model_state before = t->next;
        ring->ended = 1;
        go(t, C_STOP);
        t->next = before;
    }
    ++ring->delivered;
    ring->in_use = !failed;
    issue(t, WAKE_AHEAD);
}

static void end_stream(transition *t) {
    int number = me(t)->ring;
    /* In the model a ring fails only if a generator dies; after that no batch becomes ready. */
    bool ready = slot_of(t, number, my_ring(t)->delivered)->state == SLOT_READY;
    if (me(t)->seen == SEEN_FAILED && ready) t->next.mistake = BATCH_LOST;
    t->next.consumer = (model_consumer){.ring = (uint8_t)number};
    my_ring(t)->ended = 1;
    go(t, C_STOP);
}

/* ---- leati_ring_await ---- */

static void conclude(transition *t) {
    int seen = me(t)->seen;
    if (seen == SEEN_READY)
        take(t);
    else if (seen != SEEN_TICK)
        end_stream(t);
    else {
        me(t)->seen = 0;
        if (t->config->processes)
            go(t, C_CHECK);
        else
            look(t, LOOK_AWAIT);
    }
}

static void looked(transition *t, int seen) {
    int from = me(t)->look;
    me(t)->look = 0;
    me(t)->seen = (uint8_t)seen;
    if (from == LOOK_WOKEN || (from == LOOK_SECOND && seen != SEEN_TICK)) {
        me(t)->futex_same = 0;
        go(t, C_AWAKE);
    } else if (from == LOOK_HELPER_GONE && seen == SEEN_TICK) {
        t->next.mistake = HELPER_REPORTED_WRONGLY;
        model_emit(t);
    } else if (from == LOOK_SECOND)
        go(t, mutated(t, MODEL_CONSUMER_LOADS_LATE)       ? C_LOAD_FUTEX_LATE
              : mutated(t, MODEL_CONSUMER_ANNOUNCES_LATE) ? C_AWAITED_LATE
                                                          : C_WAIT);
    else if (seen != SEEN_TICK)
        conclude(t);
    else if (from == LOOK_FIRST)
        issue(t, WAKE_URGENT);
    else {
        me(t)->wake = WAKE_SLEEP;
        go(t, C_HINT);
    }
}

static void look_stop(transition *t) {
    me(t)->seen = SEEN_TICK;
    if (my_ring(t)->stop)
        looked(t, SEEN_STOPPED);
    else
        go(t, may_fail(t->config) && !mutated(t, MODEL_FAILED_LATE) ? C_LOOK_FAILED : C_LOOK_STATE);
}

/* A failure is reported after the batches that were made before it. */
static void look_failed(transition *t) {
    me(t)->seen = my_ring(t)->failed == 2 ? SEEN_FAILED : SEEN_TICK;
    if (mutated(t, MODEL_FAILED_LATE))
        looked(t, me(t)->seen);
    else
        go(t, C_LOOK_STATE);
}

static void look_state(transition *t) {
    bool ready = slot_of(t, me(t)->ring, my_ring(t)->delivered)->state == SLOT_READY;
    if (!ready && mutated(t, MODEL_FAILED_LATE))
        go(t, C_LOOK_FAILED);
    else
        looked(t, ready ? SEEN_READY : me(t)->seen);
}

static void awaited(transition *t) {
    my_ring(t)->awaited = (uint8_t)(my_ring(t)->delivered + 1);
    if (mutated(t, MODEL_CONSUMER_LOADS_LATE))
        look(t, LOOK_SECOND);
    else
        go(t, C_LOAD_FUTEX);
}

static void load_futex(transition *t) {
    me(t)->futex_same = 1;
    if (mutated(t, MODEL_CONSUMER_LOOKS_ONCE))
        go(t, C_WAIT);
    else
        look(t, LOOK_SECOND);
}

static void awaited_late(transition *t) {
    my_ring(t)->awaited = (uint8_t)(my_ring(t)->delivered + 1);
    go(t, C_WAIT);
}

static void load_futex_late(transition *t) {
    me(t)->futex_same = 1;
    go(t, C_WAIT);
}

static void wait(transition *t) {
    bool same = me(t)->futex_same;
    me(t)->futex_same = 0;
    if (same)
        go(t, C_WAITING);
    else
        look(t, LOOK_WOKEN);
}

/* The futex wait returns without a reason, or after sleep_ns. */
static void waiting(transition *t) {
    if (!t->config->spurious) return;
    t->progress = false;
    look(t, LOOK_WOKEN);
}

static void awake(transition *t) {
    my_ring(t)->awaited = 0;
    conclude(t);
}

/* If the helper is gone, it may have exited on request since the last look, so the consumer looks again. */
static void check(transition *t) {
    bool gone = model_helper_is_gone(&t->next);
    if (gone && mutated(t, MODEL_HELPER_REPORTED_EARLY)) {
        t->next.mistake = HELPER_REPORTED_WRONGLY;
        model_emit(t);
        return;
    }
    look(t, gone ? LOOK_HELPER_GONE : LOOK_AWAIT);
}

/* ---- leat_feed_get, leat_feed_close ---- */

static bool is_finished(const model_config *config, const model_ring *ring) {
    return ring->ended || ring->delivered == config->tickets;
}

static bool hook_is_due(const model_config *config, const model_ring *ring) {
    return config->pass_length && ring->delivered == (ring->passes_ended + 1) * config->pass_length;
}

static void choose_ring(transition *t, int number) {
    model_ring *ring = &t->next.rings[number];
    *me(t) = (model_consumer){.ring = (uint8_t)number};
    ring->in_use = 0; /* leat_feed_release */
    if (is_finished(t->config, ring)) {
        t->name = "leat_feed_close";
        ring->closed = 1;
        go(t, C_STOP);
    } else if (hook_is_due(t->config, ring)) {
        t->name = "leat_feed_get: the pass is over";
        go(t, C_HOOK);
    } else {
        t->name = "leat_feed_get";
        look(t, LOOK_FIRST);
    }
}

static void choose(transition *t) {
    bool any = false;
    for (int r = 0; r < t->config->rings; ++r) {
        t->next = *t->from;
        if (t->next.rings[r].closed) continue;
        any = true;
        choose_ring(t, r);
    }
    if (any) return;
    t->name = "leati_group_destroy";
    go(t, C_RETIRE);
}

static void hook(transition *t) {
    for (int w = 0; w < t->config->workers; ++w)
        if (model_worker_writes(&t->next, w) && t->next.workers[w].ring == me(t)->ring)
            t->next.mistake = HOOK_OVERTAKEN;
    ++my_ring(t)->passes_ended;
    if (t->config->refork)
        go(t, C_RETIRE);
    else
        issue(t, WAKE_AHEAD);
}

static void stop(transition *t) {
    my_ring(t)->stop = 1;
    go(t, C_STOP_FUTEX_ADD);
}

static void stop_futex_add(transition *t) {
    model_change_table_futex(&t->next);
    go(t, C_STOP_FUTEX_WAKE);
}

/* In the code the consumer then wakes its own futex, too.  It does not sleep on it, so this is no step. */
static void stop_futex_wake(transition *t) {
    t->next.consumer = (model_consumer){.at = C_CHOOSE};
    model_wake_workers(t, t->config->workers);
}

/* ---- leati_worker_pool_stop ---- */

static void retire(transition *t) {
    t->next.retired = 1;
    go(t, mutated(t, MODEL_RETIRE_WITHOUT_WAKE) ? C_JOIN : C_RETIRE_FUTEX_ADD);
}

static void retire_futex_add(transition *t) {
    model_change_table_futex(&t->next);
    go(t, C_RETIRE_FUTEX_WAKE);
}

static void retire_futex_wake(transition *t) {
    me(t)->at = C_JOIN;
    model_wake_workers(t, t->config->workers);
}

static bool all_closed(const transition *t) {
    for (int r = 0; r < t->config->rings; ++r)
        if (!t->next.rings[r].closed) return false;
    return true;
}

/* Deaths of workers that were told to exit do not count on a batch. */
static void forget_kills(transition *t) {
    for (int r = 0; r < t->config->rings; ++r)
        for (int i = 0; i < slot_count(t->config); ++i)
            t->next.rings[r].slots[i].killed = t->next.rings[r].slots[i].deaths;
}

/* Waits until all workers are gone.  Then it frees everything, or, after a hook, starts new workers. */
static void join(transition *t) {
    for (int w = 0; w < t->config->workers; ++w)
        if (!model_worker_is_reaped(&t->next, w)) return;
    if (t->config->processes && !model_helper_is_gone(&t->next)) return;
    if (all_closed(t)) {
        t->next.consumer = (model_consumer){.at = C_GONE};
        model_emit(t);
        return;
    }
    t->next.retired = 0; /* the new workers belong to the present generation */
    forget_kills(t);
    for (int w = 0; w < t->config->workers; ++w) model_worker_start(&t->next, w);
    model_helper_start(&t->next);
    issue(t, WAKE_AHEAD);
}

static void gone(transition *t) {
    (void)t;
}

static const model_step steps[] = {
    [C_CHOOSE] = {"between two calls", choose},
    [C_LOOK_STOP] = {"leati_ring_look: load stop", look_stop},
    [C_LOOK_FAILED] = {"leati_ring_look: load failed", look_failed},
    [C_LOOK_STATE] = {"leati_ring_look: load state", look_state},
    [C_OPEN] = {"leati_ring_open_slot: store OPEN", open_next},
    [C_OPEN_JOB] = {"leati_ring_open_slot: write the job, late", open_job},
    [C_ISSUED] = {"leati_ring_announce: store issued", announce},
    [C_HINT] = {"open_tickets: load hint", open_tickets},
    [C_SLEEPING] = {"leati_worker_table_wake: load sleeping of the next worker", sleeping},
    [C_TABLE_FUTEX_ADD] = {"leati_worker_table_wake: wake_futex + 1", table_futex_add},
    [C_TABLE_FUTEX_WAKE] = {"leati_worker_table_wake: futex wake", table_futex_wake},
    [C_AWAITED] = {"sleep_for: store awaited", awaited},
    [C_LOAD_FUTEX] = {"sleep_for: load consumer_wake", load_futex},
    [C_AWAITED_LATE] = {"sleep_for: store awaited, late", awaited_late},
    [C_LOAD_FUTEX_LATE] = {"sleep_for: load consumer_wake, late", load_futex_late},
    [C_WAIT] = {"sleep_for: futex wait", wait},
    [C_WAITING] = {"asleep; the wait returns without a reason", waiting},
    [C_AWAKE] = {"sleep_for: awaited = 0", awake},
    [C_CHECK] = {"leati_worker_pool_check: the helper", check},
    [C_HOOK] = {"run_hook", hook},
    [C_STOP] = {"leati_ring_stop: stop = 1", stop},
    [C_STOP_FUTEX_ADD] = {"leati_worker_table_alarm: wake_futex + 1", stop_futex_add},
    [C_STOP_FUTEX_WAKE] = {"leati_worker_table_alarm: futex wake", stop_futex_wake},
    [C_RETIRE] = {"leati_worker_table_retire: generation + 1", retire},
    [C_RETIRE_FUTEX_ADD] = {"leati_worker_table_alarm: wake_futex + 1", retire_futex_add},
    [C_RETIRE_FUTEX_WAKE] = {"leati_worker_table_alarm: futex wake", retire_futex_wake},
    [C_JOIN] = {"leati_worker_pool_stop: all workers are gone", join},
    [C_GONE] = {"gone", gone},
};

/* leat_feed_open issues tickets before there are workers. */
void model_consumer_start(const model_config *config, model_state *state) {
    for (int r = 0; r < config->rings; ++r) {
        model_ring *ring = &state->rings[r];
        while (may_issue(config, ring)) {
            write_job(config, ring, ring->opened);
            open_slot(config, ring);
        }
        ring->issued = ring->opened;
    }
    state->consumer.at = C_CHOOSE;
}

void model_consumer_step(transition *t) {
    t->name = steps[me(t)->at].name;
    steps[me(t)->at].take(t);
}

bool model_consumer_waits(const model_state *state, int ring) {
    return state->consumer.at == C_WAITING && state->consumer.ring == ring;
}

void model_consumer_wake(model_state *state) {
    state->consumer.at = C_LOOK_STOP;
    state->consumer.look = LOOK_WOKEN;
}

bool model_consumer_is_gone(const model_state *state) {
    return state->consumer.at == C_GONE;
}

const char *model_consumer_name(const model_state *state) {
    return steps[state->consumer.at].name;
}
