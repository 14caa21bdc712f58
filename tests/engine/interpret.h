/* SPDX-License-Identifier: Apache-2.0 */
/* A graph run node by node in program order, on ref, every value in memory of its own: what a plan must equal. */
#ifndef LEAT_TESTS_ENGINE_INTERPRET_H
#define LEAT_TESTS_ENGINE_INTERPRET_H

#include "engine/graph/graph.h"

/* values[v] receives the memory of value v, from leati_calloc_aligned (states included: what they hold at the end is in
 * the slabs, values[v] of a state is NULL).  As in leati_plan_run, seed 1 and step 0. */
void interpret(const leati_graph *graph, const void *const *inputs, float *const *slabs, void **values);

#endif
