/* SPDX-License-Identifier: Apache-2.0 */
/* Runs graphs in tests of nn: over bound arrays, compiled for a list of backends, and run once. */
#ifndef LEAT_TESTS_NN_RUN_H
#define LEAT_TESTS_NN_RUN_H

#include "engine/graph/build.h"
#include "engine/plan/plan.h"

#define RUN_MAX_INPUTS 64

typedef struct run_backend {
    const char *name;
    const leati_backend *list[4]; /* NULL-terminated */
} run_backend;

/* First ref alone; then, if they are built, oneDNN before ref, and native before both; name NULL at the end. */
extern const run_backend run_backends[];

typedef struct run {
    leati_graph *graph;
    leati_arena *arena;
    leati_plan *plan;
    const run_backend *backend;
    int input_count;
    const void *inputs[RUN_MAX_INPUTS];
} run;

void run_begin(run *r, const run_backend *backend);
/* Adds a graph input that is bound to the array's memory. */
leati_value run_input(run *r, const leat_tensor *array);
/* Compiles and runs the graph; a failure fails the test. */
void run_compute(run *r);
void run_end(run *r);

/* assert_int_equal(status, LEAT_OK), which shows the error's message. */
#define assert_ok(status, err)                                                                               \
    do {                                                                                                     \
        if ((status) != LEAT_OK) fail_msg("%s", (err)->message);                                             \
    } while (0)

#endif
