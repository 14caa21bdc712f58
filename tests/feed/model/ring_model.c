/* SPDX-License-Identifier: Apache-2.0 */
/* Combines the actors into a model: the first state, the steps from a state, the errors in a state, and its text. */
#include "feed/model/ring_model.h"

#include <stddef.h>
#include <string.h>

#include "feed/model/protocol.h"

/* ---- shared functions of the actors ---- */

void model_emit(transition *t) {
    explorer_emit(t->sink, &t->next, t->progress, t->actor, t->name);
}

void model_change_table_futex(model_state *state) {
    for (int w = 0; w < MODEL_MAX_WORKERS; ++w) state->workers[w].futex_same = 0;
}

void model_change_consumer_futex(model_state *state, int ring) {
    if (state->consumer.ring == ring) state->consumer.futex_same = 0;
}

void model_wake_consumer(model_state *state, int ring) {
    if (model_consumer_waits(state, ring)) model_consumer_wake(state);
}

static void wake_among(transition *t, int first, int count) {
    int waiting = 0;
    for (int w = first; w < t->config->workers; ++w) waiting += model_worker_waits(&t->next, w);
    if (waiting == 0 || count == 0) {
        model_emit(t);
        return;
    }
    while (!model_worker_waits(&t->next, first)) ++first;
    if (waiting > count) wake_among(t, first + 1, count); /* worker `first` is not woken */
    model_state before = t->next;
    model_worker_wake(&t->next, first);
    wake_among(t, first + 1, count - 1);
    t->next = before;
}

void model_wake_workers(transition *t, int count) {
    wake_among(t, 0, count);
}

/* ---- the model ---- */

static size_t state_bytes(const model_config *config) {
    return offsetof(model_state, rings) + (size_t)config->rings * sizeof(model_ring);
}

static void start(const void *config, void *out) {
    const model_config *c = config;
    model_state state = {.deaths_left = (uint8_t)c->deaths, .stops_left = (uint8_t)c->stops};
    for (int w = 0; w < c->workers; ++w) model_worker_start(&state, w);
    model_consumer_start(c, &state);
    memcpy(out, &state, state_bytes(c));
}

static transition transition_of(const model_config *config, const model_state *from, explorer_sink *sink,
                                int actor) {
    return (transition){
        .config = config, .from = from, .sink = sink, .next = *from, .actor = actor, .progress = true};
}

static void expand(const void *config, const void *from, explorer_sink *sink) {
    const model_config *c = config;
    model_state state = {0};
    memcpy(&state, from, state_bytes(c));
    transition t = transition_of(c, &state, sink, ACTOR_CONSUMER);
    model_consumer_step(&t);
    t = transition_of(c, &state, sink, ACTOR_STOPPER);
    model_stopper_step(&t);
    t = transition_of(c, &state, sink, ACTOR_HELPER);
    if (c->processes) model_helper_step(&t);
    for (int w = 0; w < c->workers; ++w) {
        t = transition_of(c, &state, sink, ACTOR_WORKER + w);
        model_worker_step(&t);
        t = transition_of(c, &state, sink, ACTOR_WORKER + w);
        model_worker_disturb(&t);
    }
}

static const char *mistake_of_worker(const model_config *config, const model_state *state, int w) {
    const model_worker *worker = &state->workers[w];
    if (!model_worker_writes(state, w)) return NULL;
    const model_slot *slot = &state->rings[worker->ring].slots[worker->ticket % slot_count(config)];
    if (slot->state == SLOT_CLAIMED + w) return NULL;
    return "a worker writes to a slot that it has not claimed";
}

static const char *mistake_of_ring(const model_config *config, const model_ring *ring) {
    if (ring->opened > ring->delivered + config->queue)
        return "more than max_queue_size tickets are issued ahead";
    if (!ring->in_use) return NULL;
    const model_slot *slot = &ring->slots[(ring->delivered - 1) % slot_count(config)];
    if (slot->state == SLOT_READY && slot->content == ring->delivered) return NULL;
    return "the batch in use is changed";
}

static const char *mistake(const void *config, const void *from) {
    static const char *const texts[] = {NULL,
#define X(name, text) text,
                                        MODEL_MISTAKES(X)
#undef X
    };
    const model_config *c = config;
    const model_state *state = from;
    const char *found = texts[state->mistake];
    for (int w = 0; w < c->workers && !found; ++w) found = mistake_of_worker(c, state, w);
    for (int r = 0; r < c->rings && !found; ++r) found = mistake_of_ring(c, &state->rings[r]);
    return found;
}

static bool is_end(const void *config, const void *from) {
    const model_config *c = config;
    const model_state *state = from;
    for (int w = 0; w < c->workers; ++w)
        if (!model_worker_is_reaped(state, w)) return false;
    bool helper = c->processes && !model_helper_is_gone(state);
    return model_consumer_is_gone(state) && !helper && model_stopper_is_idle(state);
}

/* ---- printing ---- */

static void print_actor(const void *config, int actor, FILE *out) {
    static const char *const names[] = {"consumer", "helper", "another thread"};
    (void)config;
    if (actor < ACTOR_WORKER)
        fprintf(out, "%s", names[actor]);
    else
        fprintf(out, "worker %d", actor - ACTOR_WORKER);
}

static void print_slot(const model_slot *slot, int number, FILE *out) {
    static const char *const names[] = {"FREE", "OPEN", "READY"};
    fprintf(out, "        slot %d: ", number);
    if (slot->state < SLOT_CLAIMED)
        fprintf(out, "%s", names[slot->state]);
    else
        fprintf(out, "CLAIMED by worker %d", slot->state - SLOT_CLAIMED);
    fprintf(out, ", ticket %d%s\n", slot->ticket, slot->failed ? ", an error" : "");
}

static void print_state(const void *config, const void *from, FILE *out) {
    const model_config *c = config;
    const model_state *state = from;
    for (int r = 0; r < c->rings; ++r) {
        const model_ring *ring = &state->rings[r];
        fprintf(out, "      ring %d: issued %d, hint %d, delivered %d, awaited %d, stop %d, failed %d\n", r,
                ring->issued, ring->hint, ring->delivered, ring->awaited, ring->stop, ring->failed);
        for (int i = 0; i < slot_count(c); ++i) print_slot(&ring->slots[i], i, out);
    }
    fprintf(out, "      consumer, at ring %d: %s\n", state->consumer.ring, model_consumer_name(state));
    for (int w = 0; w < c->workers; ++w)
        fprintf(out, "      worker %d, sleeping %d: %s\n", w, state->workers[w].sleeping,
                model_worker_name(state, w));
    if (c->processes) fprintf(out, "      helper: %s\n", model_helper_name(state));
    if (c->stops) fprintf(out, "      another thread: %s\n", model_stopper_name(state));
}

explorer_model model_of(const model_config *config) {
    return (explorer_model){.config = config,
                            .state_bytes = state_bytes(config),
                            .start = start,
                            .expand = expand,
                            .mistake = mistake,
                            .is_end = is_end,
                            .print_actor = print_actor,
                            .print_state = print_state};
}
