/* SPDX-License-Identifier: Apache-2.0 */
/* An explicit-state explorer: every state that a model can reach, breadth first, so that the way to the first mistake is
 * a shortest one.  States are kept whole, not as hashes alone: what it passes was seen to be right. */
#ifndef LEAT_TESTS_FEED_MODEL_EXPLORER_H
#define LEAT_TESTS_FEED_MODEL_EXPLORER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct explorer_sink explorer_sink;

/** What an expanded state may become.  `progress`: a step that its actor takes by itself, as against one that the world
 *  may or may not force on it (a kill, a spurious return, a call of stop).  `actor` and `name` are for traces. */
void explorer_emit(explorer_sink *sink, const void *next, bool progress, int actor, const char *name);

typedef struct explorer_model {
    const void *config;
    size_t state_bytes; /* compared as bytes: no padding, and dead variables at one value */
    void (*start)(const void *config, void *state);
    void (*expand)(const void *config, const void *state, explorer_sink *sink); /* emits each step */
    const char *(*mistake)(const void *config, const void *state);              /* NULL: none */
    bool (*is_end)(const void *config, const void *state);                      /* may stay so for ever */
    void (*print_actor)(const void *config, int actor, FILE *out);
    void (*print_state)(const void *config, const void *state, FILE *out);
} explorer_model;

typedef enum explorer_verdict {
    EXPLORER_RIGHT,
    EXPLORER_MISTAKE, /* a state of which `mistake` says why */
    EXPLORER_STUCK,   /* a state without a step that makes progress, and not an end */
    EXPLORER_ENDLESS, /* a cycle of such steps: some schedule never comes to an end */
    EXPLORER_TOO_LARGE
} explorer_verdict;

typedef struct explorer_result {
    explorer_verdict verdict;
    const char *why;
    uint64_t states, steps;
    uint32_t ends;  /* states that are proper ends */
    uint32_t depth; /* of the farthest state */
    uint32_t trace; /* steps of the counter-example */
} explorer_result;

/** Visits at most max_states states.  Prints the steps that lead to a mistake to `trace`, unless that is NULL.
 *  A result of EXPLORER_RIGHT says: no state is a mistake, each state in which nothing goes on is an end, and, there
 *  being no cycle, each schedule comes to one, fair or not. */
explorer_result explorer_run(const explorer_model *model, uint32_t max_states, FILE *trace);

#endif
