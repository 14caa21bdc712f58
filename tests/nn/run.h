/* SPDX-License-Identifier: Apache-2.0 */
/* Runs graphs in tests of nn: over bound arrays, compiled for a list of backends, and run once. */
#ifndef LEAT_TESTS_NN_RUN_H
#define LEAT_TESTS_NN_RUN_H

#include "engine/graph/build.h"
#include "engine/plan/plan.h"
#include "leat/model.h"

#define RUN_MAX_INPUTS 64

typedef struct run_backend {
    const char *name;
    const leati_backend *list[4]; /* NULL-terminated */
} run_backend;

/* First ref alone; then, if they are built, oneDNN before ref, and native before both; name NULL at the end.  Programs
 * with LEAT_TEST_DEVICE have one entry: the device that the environment names in LEAT_DEVICE. */
extern const run_backend run_backends[];

typedef struct run {
    leati_graph *graph;
    leati_arena *arena;
    leati_plan *plan;
    const run_backend *backend;
    int input_count;
    const void *inputs[RUN_MAX_INPUTS];
} run;

/* Returns the device of a program with LEAT_TEST_DEVICE, else NULL. */
leati_device *run_device(void);

/* The slabs of a model where the plans of run_device() find them. */
typedef struct run_slabs {
    struct leati_device_slabs *copy; /* NULL on the host */
    leat_model *model;
} run_slabs;
void run_slabs_open(run_slabs *s, leat_model *model);
/* Sets the addresses for a plan, after copying what is newer on the host. */
void run_slabs_bind(run_slabs *s, void *out[LEATI_SLAB_COUNT]);
/* Must be called after each run; the host's slabs then have the new values. */
void run_slabs_ran(run_slabs *s, bool trained);
void run_slabs_close(run_slabs *s);

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
