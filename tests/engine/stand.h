/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of the engine stand on: a graph being built, slabs, and the plan that comes of it. */
#ifndef LEAT_TESTS_ENGINE_STAND_H
#define LEAT_TESTS_ENGINE_STAND_H

#include "engine/graph/build.h"
#include "engine/plan/plan.h"

#define STAND_SLAB_FLOATS 4096

typedef struct stand {
    leati_graph *graph;
    leati_plan *plan;
    leati_arena *arena;
    float *slab[LEATI_SLAB_COUNT]; /* STAND_SLAB_FLOATS each, zeroed */
} stand;

void stand_init(stand *b);
void stand_fini(stand *b);

/* Compiles b->graph for the ref backend; the test fails if it does not compile. */
void stand_compile(stand *b);
/* Runs the plan, seed 1, step 0; the test fails if it does not run. */
void stand_run(stand *b, const void *const *inputs);
/* The floats of an output. */
const float *stand_output(const stand *b, leati_value value);

/* A matrix as input `index`, a state of `count` floats at `offset` floats. */
leati_value stand_input(stand *b, int index, int64_t rows, int64_t columns);
leati_value stand_state(stand *b, leati_slab slab, int64_t offset, int64_t count);
/* x + 0: a node that computes, and is not folded into anything. */
leati_value stand_step(stand *b, leati_value x);

#endif
