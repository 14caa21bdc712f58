/* SPDX-License-Identifier: Apache-2.0 */
/* Breadth first through all states, then depth first along the steps of progress for cycles.  Steps are not stored: a
 * trace is found again by expanding the states on its way. */
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
    size_t bytes; /* of a state, whole words */
    uint64_t *states;
    uint32_t *parents; /* of each state, the one from which it was found first */
    uint64_t *table;   /* open addressing by the state's hash; its upper half above the index */
    uint32_t count, capacity, limit;
    uint32_t expanding; /* the state whose steps these are */
    uint64_t mask;
    uint64_t *scratch;  /* a state that is looked up */
    uint64_t *expanded; /* a state whose steps are wanted */
    step *steps;        /* of the state that is being expanded */
    size_t step_count, step_capacity;
    bool full;
};

static void *enough(void *memory, size_t count, size_t size) {
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
    sink->table = enough(sink->table, (size_t)sink->mask + 1, sizeof *sink->table);
    memset(sink->table, 0xff, ((size_t)sink->mask + 1) * sizeof *sink->table);
    for (uint32_t i = 0; i < sink->count; ++i) {
        uint64_t hash = hash_of(state_at(sink, i), sink->bytes), at = hash & sink->mask;
        while (sink->table[at] != EMPTY) at = (at + 1) & sink->mask;
        sink->table[at] = entry_of(hash, i);
    }
}

static void grow(explorer_sink *sink) {
    sink->capacity = sink->capacity ? sink->capacity + sink->capacity / 2 : 1u << 16;
    sink->states = enough(sink->states, sink->capacity, sink->bytes);
    sink->parents = enough(sink->parents, sink->capacity, sizeof *sink->parents);
}

/* The index of the state in `scratch`, which is new if it was not seen before. */
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
        sink->steps = enough(sink->steps, sink->step_capacity, sizeof *sink->steps);
    }
    sink->steps[sink->step_count++] = (step){intern(sink), progress, actor, name};
}

static void expand(explorer_sink *sink, uint32_t index) {
    sink->step_count = 0;
    sink->expanding = index;
    /* A copy: the array of states may move while steps are added to it. */
    memcpy(sink->expanded, state_at(sink, index), sink->bytes);
    sink->model->expand(sink->model->config, sink->expanded, sink);
}

/* ---- traces ---- */

static void print_step(explorer_sink *sink, uint32_t number, const step *taken, FILE *out) {
    fprintf(out, "%4u  ", number);
    sink->model->print_actor(sink->model->config, taken->actor, out);
    fprintf(out, ": %s\n", taken->name);
}

/* Prints the step from one state to the next, of which there is one. */
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

/* The steps from the first state to that one; returns how many. */
static uint32_t print_way(explorer_sink *sink, uint32_t index, FILE *out) {
    uint32_t length = 0;
    for (uint32_t at = index; at != 0; at = sink->parents[at]) ++length;
    if (!out) return length;
    uint32_t *way = enough(NULL, (size_t)length + 1, sizeof *way);
    uint32_t at = index;
    for (uint32_t i = length; i > 0; --i, at = sink->parents[at]) way[i] = at;
    way[0] = 0;
    for (uint32_t i = 0; i < length; ++i) print_edge(sink, i + 1, way[i], way[i + 1], out);
    print_state(sink, index, out);
    free(way);
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
    result->trace = print_way(sink, index, trace);
}

/* False when the search is over. */
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
        result->why = "more states than were to be visited";
        return false;
    }
    bool end = model->is_end(model->config, state_at(sink, index));
    result->ends += end;
    if (end || any_progress(sink)) return true;
    end_with(sink, result, EXPLORER_STUCK, "nothing goes on, and this is no end", index, trace);
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

/* What the depth-first search has still to do: to enter a state, or, once that is on the path, to leave it. */
typedef struct path {
    uint32_t *states;
    size_t count, capacity;
    unsigned char *colors;
} path;

static void push(path *p, uint32_t index) {
    if (p->count == p->capacity) {
        p->capacity = p->capacity * 2 + 1024;
        p->states = enough(p->states, p->capacity, sizeof *p->states);
    }
    p->states[p->count++] = index;
}

/* The cycle that comes back to `head`: those of the stack that are on the path, from it on. */
static void print_cycle(explorer_sink *sink, const path *p, uint32_t head, FILE *out) {
    if (!out) return;
    fprintf(out, "      and from there round and round:\n");
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

/* Pushes what follows the state at the stack's top; the head of a cycle if there is one, otherwise NONE. */
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
    path p = {.colors = enough(NULL, (size_t)sink->count + 1, 1)};
    memset(p.colors, UNSEEN, sink->count);
    for (uint32_t root = 0; root < sink->count && result->verdict == EXPLORER_RIGHT; ++root) {
        if (p.colors[root] == UNSEEN) push(&p, root);
        while (p.count) {
            uint32_t at = p.states[p.count - 1];
            if (p.colors[at] != UNSEEN) { /* all that follows it was seen */
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
    sink.scratch = enough(NULL, 1, sink.bytes);
    sink.expanded = enough(NULL, 1, sink.bytes);
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
