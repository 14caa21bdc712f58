/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a graph node by node in program order with the ref backend, each value in its own memory.  A plan must compute
 * the same. */
#ifndef LEAT_TESTS_ENGINE_INTERPRET_H
#define LEAT_TESTS_ENGINE_INTERPRET_H

#include "engine/graph/graph.h"

/* values[v] receives the memory of value v, from leati_calloc_aligned.  The values of states are in the slabs after the
 * run, and values[v] of a state is NULL.  Like leati_plan_run with seed 1 and step 0. */
void interpret(const leati_graph *graph, const void *const *inputs, float *const *slabs, void **values);

#endif
