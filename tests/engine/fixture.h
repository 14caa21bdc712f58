/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of the engine tests: a graph that a test builds, its slabs, and the plan that is compiled from it. */
#ifndef LEAT_TESTS_ENGINE_FIXTURE_H
#define LEAT_TESTS_ENGINE_FIXTURE_H

#include "engine/graph/build.h"
#include "engine/plan/plan.h"

#define FIXTURE_SLAB_FLOATS 4096

typedef struct fixture {
    leati_graph *graph;
    leati_plan *plan;
    leati_arena *arena;
    float *slab[LEATI_SLAB_COUNT]; /* FIXTURE_SLAB_FLOATS each, zeroed */
} fixture;

void fixture_init(fixture *b);
void fixture_fini(fixture *b);

/* Compiles b->graph for the ref backend; the test fails if it does not compile. */
void fixture_compile(fixture *b);
/* Runs the plan with seed 1 and step 0.  The test fails if the run fails. */
void fixture_run(fixture *b, const void *const *inputs);
/* Returns the floats of an output. */
const float *fixture_output(const fixture *b, leati_value value);

/* fixture_input adds a matrix as input `index`; fixture_state adds a state of `count` floats at offset `offset` in
 * floats. */
leati_value fixture_input(fixture *b, int index, int64_t rows, int64_t columns);
leati_value fixture_state(fixture *b, leati_slab slab, int64_t offset, int64_t count);
/* Adds x + 0: a node that runs, and that is not fused. */
leati_value fixture_step(fixture *b, leati_value x);

#endif
