/* SPDX-License-Identifier: Apache-2.0 */
/* Visits all states breadth first, then looks for cycles depth first along the steps that make progress.  Steps are not
 * stored: to print a trace, the explorer expands its states again. */
#include "feed/model/explorer.h"

#include <stdlib.h>
#include <string.h>

#define NONE  UINT32_MAX
#define EMPTY UINT64_MAX

typedef struct step {
    uint32_t to;
    bool progress;
    int actor;
    const char *name;
} step;

struct explorer_sink {
    const explorer_model *model;
    size_t bytes; /* bytes of a state, rounded up to whole words */
    uint64_t *states;
    uint32_t *parents; /* for each state, the state from which it was found first */
    uint64_t *table;   /* open addressing; an entry is the upper half of the hash and the index */
    uint32_t count, capacity, limit;
    uint32_t expanding; /* index of the state that is being expanded */
    uint64_t mask;
    uint64_t *scratch;  /* the state that is being looked up */
    uint64_t *expanded; /* copy of the state that is being expanded */
    step *steps;        /* steps of the state that is being expanded */
    size_t step_count, step_capacity;
    bool full;
};

static void *resize(void *memory, size_t count, size_t size) {
    void *grown = realloc(memory, count * size);
    if (!grown) {
        fprintf(stderr, "explorer: out of memory at %zu bytes\n", count * size);
        exit(2);
    }
    return grown;
}

static uint64_t *state_at(const explorer_sink *sink, uint32_t index) {
    return sink->states + (size_t)index * (sink->bytes / sizeof *sink->states);
}

static uint64_t hash_of(const uint64_t *state, size_t bytes) {
    uint64_t hash = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < bytes / sizeof *state; ++i) {
        hash = (hash ^ state[i]) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    return hash;
}

static uint64_t entry_of(uint64_t hash, uint32_t index) {
    return (hash & ~(uint64_t)UINT32_MAX) | index;
}

static void rehash(explorer_sink *sink) {
    sink->mask = sink->mask * 2 + 1;
    sink->table = resize(sink->table, (size_t)sink->mask + 1, sizeof *sink->table);
    memset(sink->table, 0xff, ((size_t)sink->mask + 1) * sizeof *sink->table);
    for (uint32_t i = 0; i < sink->count; ++i) {
        uint64_t hash = hash_of(state_at(sink, i), sink->bytes), at = hash & sink->mask;
        while (sink->table[at] != EMPTY) at = (at + 1) & sink->mask;
        sink->table[at] = entry_of(hash, i);
    }
}

static void grow(explorer_sink *sink) {
    sink->capacity = sink->capacity ? sink->capacity + sink->capacity / 2 : 1u << 16;
    sink->states = resize(sink->states, sink->capacity, sink->bytes);
    sink->parents = resize(sink->parents, sink->capacity, sizeof *sink->parents);
}

/* Returns the index of the state in `scratch`, and adds the state if it is new. */
static uint32_t intern(explorer_sink *sink) {
    uint64_t hash = hash_of(sink->scratch, sink->bytes), at = hash & sink->mask;
    for (; sink->table[at] != EMPTY; at = (at + 1) & sink->mask) {
        uint32_t index = (uint32_t)sink->table[at];
        if (sink->table[at] == entry_of(hash, index) &&
            memcmp(state_at(sink, index), sink->scratch, sink->bytes) == 0)
            return index;
    }
    if (sink->count == sink->limit) {
        sink->full = true;
        return NONE;
    }
    if (sink->count == sink->capacity) grow(sink);
    memcpy(state_at(sink, sink->count), sink->scratch, sink->bytes);
    sink->parents[sink->count] = sink->expanding;
    sink->table[at] = entry_of(hash, sink->count++);
    if ((uint64_t)sink->count * 2 > sink->mask) rehash(sink);
    return sink->count - 1;
}

void explorer_emit(explorer_sink *sink, const void *next, bool progress, int actor, const char *name) {
    memcpy(sink->scratch, next, sink->model->state_bytes);
    if (sink->step_count == sink->step_capacity) {
        sink->step_capacity = sink->step_capacity * 2 + 16;
        sink->steps = resize(sink->steps, sink->step_capacity, sizeof *sink->steps);
    }
    sink->steps[sink->step_count++] = (step){intern(sink), progress, actor, name};
}

static void expand(explorer_sink *sink, uint32_t index) {
    sink->step_count = 0;
    sink->expanding = index;
    /* Expand a copy, because the array of states may move while states are added. */
    memcpy(sink->expanded, state_at(sink, index), sink->bytes);
    sink->model->expand(sink->model->config, sink->expanded, sink);
}

/* ---- traces ---- */

static void print_step(explorer_sink *sink, uint32_t number, const step *taken, FILE *out) {
    fprintf(out, "%4u  ", number);
    sink->model->print_actor(sink->model->config, taken->actor, out);
    fprintf(out, ": %s\n", taken->name);
}

/* Prints the step that leads from state `from` to state `to`. */
static void print_edge(explorer_sink *sink, uint32_t number, uint32_t from, uint32_t to, FILE *out) {
    expand(sink, from);
    for (size_t i = 0; i < sink->step_count; ++i)
        if (sink->steps[i].to == to) {
            print_step(sink, number, &sink->steps[i], out);
            return;
        }
}

static void print_state(const explorer_sink *sink, uint32_t index, FILE *out) {
    sink->model->print_state(sink->model->config, state_at(sink, index), out);
}

/* Prints the steps from the first state to state `index`.  Returns their number. */
static uint32_t print_trace(explorer_sink *sink, uint32_t index, FILE *out) {
    uint32_t length = 0;
    for (uint32_t at = index; at != 0; at = sink->parents[at]) ++length;
    if (!out) return length;
    uint32_t *states = resize(NULL, (size_t)length + 1, sizeof *states);
    uint32_t at = index;
    for (uint32_t i = length; i > 0; --i, at = sink->parents[at]) states[i] = at;
    states[0] = 0;
    for (uint32_t i = 0; i < length; ++i) print_edge(sink, i + 1, states[i], states[i + 1], out);
    print_state(sink, index, out);
    free(states);
    return length;
}

/* ---- the search ---- */

static bool any_progress(const explorer_sink *sink) {
    for (size_t i = 0; i < sink->step_count; ++i)
        if (sink->steps[i].progress) return true;
    return false;
}

static void end_with(explorer_sink *sink, explorer_result *result, explorer_verdict verdict, const char *why,
                     uint32_t index, FILE *trace) {
    result->verdict = verdict;
    result->why = why;
    result->trace = print_trace(sink, index, trace);
}

/* Returns false if the search is over. */
static bool visit(explorer_sink *sink, uint32_t index, explorer_result *result, FILE *trace) {
    const explorer_model *model = sink->model;
    const char *mistake = model->mistake(model->config, state_at(sink, index));
    if (mistake) {
        end_with(sink, result, EXPLORER_MISTAKE, mistake, index, trace);
        return false;
    }
    expand(sink, index);
    result->steps += sink->step_count;
    if (sink->full) {
        result->verdict = EXPLORER_TOO_LARGE;
        result->why = "more states than max_states";
        return false;
    }
    bool end = model->is_end(model->config, state_at(sink, index));
    result->ends += end;
    if (end || any_progress(sink)) return true;
    end_with(sink, result, EXPLORER_STUCK, "no step makes progress, and the state is not an end", index,
             trace);
    return false;
}

static bool breadth_first(explorer_sink *sink, explorer_result *result, FILE *trace) {
    uint32_t level_end = sink->count;
    for (uint32_t i = 0; i < sink->count; ++i) {
        if (i == level_end) {
            ++result->depth;
            level_end = sink->count;
        }
        if (!visit(sink, i, result, trace)) return false;
    }
    return true;
}

/* ---- cycles ---- */

enum { UNSEEN, ON_PATH, DONE };

/* The stack of the depth-first search.  A state on it is to be entered, or, if it is on the path already, to be
 * left. */
typedef struct path {
    uint32_t *states;
    size_t count, capacity;
    unsigned char *colors;
} path;

static void push(path *p, uint32_t index) {
    if (p->count == p->capacity) {
        p->capacity = p->capacity * 2 + 1024;
        p->states = resize(p->states, p->capacity, sizeof *p->states);
    }
    p->states[p->count++] = index;
}

/* Prints the cycle that returns to `head`: the states of the stack from `head` on that are on the path. */
static void print_cycle(explorer_sink *sink, const path *p, uint32_t head, FILE *out) {
    if (!out) return;
    fprintf(out, "      and from there in a cycle:\n");
    uint32_t number = 0, from = NONE;
    for (size_t i = 0; i < p->count; ++i) {
        uint32_t at = p->states[i];
        bool repeated = i + 1 < p->count && p->colors[at] != ON_PATH;
        if (repeated || p->colors[at] != ON_PATH || (from == NONE && at != head)) continue;
        if (from != NONE && from != at) print_edge(sink, ++number, from, at, out);
        from = at;
    }
    print_edge(sink, ++number, from, head, out);
}

/* Pushes the states that follow state `index`.  Returns the head of a cycle if there is one, otherwise NONE. */
static uint32_t descend(explorer_sink *sink, path *p, uint32_t index) {
    p->colors[index] = ON_PATH;
    expand(sink, index);
    for (size_t i = 0; i < sink->step_count; ++i) {
        uint32_t to = sink->steps[i].to;
        if (!sink->steps[i].progress || p->colors[to] == DONE) continue;
        if (p->colors[to] == ON_PATH) return to;
        push(p, to);
    }
    return NONE;
}

static void look_for_cycles(explorer_sink *sink, explorer_result *result, FILE *trace) {
    path p = {.colors = resize(NULL, (size_t)sink->count + 1, 1)};
    memset(p.colors, UNSEEN, sink->count);
    for (uint32_t root = 0; root < sink->count && result->verdict == EXPLORER_RIGHT; ++root) {
        if (p.colors[root] == UNSEEN) push(&p, root);
        while (p.count) {
            uint32_t at = p.states[p.count - 1];
            if (p.colors[at] != UNSEEN) { /* all states that follow it were visited */
                p.colors[at] = DONE;
                --p.count;
                continue;
            }
            uint32_t head = descend(sink, &p, at);
            if (head == NONE) continue;
            end_with(sink, result, EXPLORER_ENDLESS, "a cycle of steps that make progress", head, trace);
            print_cycle(sink, &p, head, trace);
            break;
        }
    }
    free(p.states);
    free(p.colors);
}

explorer_result explorer_run(const explorer_model *model, uint32_t max_states, FILE *trace) {
    explorer_sink sink = {.model = model, .limit = max_states, .mask = (1u << 17) - 1};
    sink.bytes = (model->state_bytes + 7) / 8 * 8;
    sink.scratch = resize(NULL, 1, sink.bytes);
    sink.expanded = resize(NULL, 1, sink.bytes);
    memset(sink.scratch, 0, sink.bytes);
    rehash(&sink);
    model->start(model->config, sink.scratch);
    intern(&sink);
    explorer_result result = {.verdict = EXPLORER_RIGHT};
    if (breadth_first(&sink, &result, trace)) look_for_cycles(&sink, &result, trace);
    result.states = sink.count;
    free(sink.states);
    free(sink.parents);
    free(sink.table);
    free(sink.scratch);
    free(sink.expanded);
    free(sink.steps);
    return result;
}
