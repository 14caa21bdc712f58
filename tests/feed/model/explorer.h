/* SPDX-License-Identifier: Apache-2.0 */
/* An explicit-state model checker.  It visits every state that a model can reach, breadth first, so that the trace to
 * the first mistake is a shortest one.  It stores complete states, not only hashes, so that it misses no state. */
#ifndef LEAT_TESTS_FEED_MODEL_EXPLORER_H
#define LEAT_TESTS_FEED_MODEL_EXPLORER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct explorer_sink explorer_sink;

/** Called by `expand` for each state that can follow.  `progress` is false for steps that need not happen: a kill, a
 *  spurious return, a call of stop.  `actor` and `name` appear in traces. */
void explorer_emit(explorer_sink *sink, const void *next, bool progress, int actor, const char *name);

typedef struct explorer_model {
    const void *config;
    size_t state_bytes; /* compared as bytes: no padding, and unused members have one fixed value */
    void (*start)(const void *config, void *state);
    /* Calls explorer_emit for each step. */
    void (*expand)(const void *config, const void *state, explorer_sink *sink);
    const char *(*mistake)(const void *config, const void *state); /* NULL: the state has no mistake */
    bool (*is_end)(const void *config, const void *state);         /* the state may be the last one */
    void (*print_actor)(const void *config, int actor, FILE *out);
    void (*print_state)(const void *config, const void *state, FILE *out);
} explorer_model;

typedef enum explorer_verdict {
    EXPLORER_RIGHT,
    EXPLORER_MISTAKE, /* `mistake` has found a mistake in a state */
    EXPLORER_STUCK,   /* no step makes progress, and the state is not an end */
    EXPLORER_ENDLESS, /* a cycle of steps that make progress: some schedule never ends */
    EXPLORER_TOO_LARGE
} explorer_verdict;

typedef struct explorer_result {
    explorer_verdict verdict;
    const char *why;
    uint64_t states, steps;
    uint32_t ends;  /* number of states that are ends */
    uint32_t depth; /* steps from the first state to the farthest one */
    uint32_t trace; /* number of steps of the counterexample */
} explorer_result;

/** Visits at most max_states states.  Prints the steps that lead to a mistake to `trace`, unless `trace` is NULL.
 *  EXPLORER_RIGHT means: no state has a mistake, each state in which no step makes progress is an end, and there is no
 *  cycle, so each schedule reaches an end, fair or not. */
explorer_result explorer_run(const explorer_model *model, uint32_t max_states, FILE *trace);

#endif
