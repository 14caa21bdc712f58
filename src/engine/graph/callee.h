/* SPDX-License-Identifier: Apache-2.0 */
/* What the op CALL calls: functions that come from outside of leat, on buffers.  The graph knows no more of them than shapes
 * and that they have a gradient. */
#ifndef LEATI_ENGINE_GRAPH_CALLEE_H
#define LEATI_ENGINE_GRAPH_CALLEE_H

#include "engine/graph/graph.h"
#include "leat/rng.h"

#define LEATI_CALLEE_MAX_INPUTS  20 /* with the outputs and what arrives at them, a node has room for all */
#define LEATI_CALLEE_MAX_OUTPUTS 6

/* One run, forward or backward.  All buffers are f32, row-major. */
typedef struct leati_callee_run {
    int input_count, output_count;
    const leati_desc *inputs, *outputs; /* inputs[i] describes args[i], outputs[i] describes results[i] */
    void *const *args, *const *results;
    bool training;
    leat_rng *rng; /* the same numbers in both directions */
    /* Backward alone: what arrives at each output; where the gradient by each input goes, NULL: nobody asks for it. */
    void *const *diff_results;
    void **diff_args;
} leati_callee_run;

struct leati_callee {
    int output_count;
    /* The shapes of the outputs, all f32. */
    leat_status (*infer)(const leati_callee *callee, int input_count, const leati_desc *inputs,
                         leati_desc *outputs, leat_error *err);
    /* Called by several threads at once, where several plans have it. */
    leat_status (*forward)(const leati_callee *callee, const leati_callee_run *run, leat_error *err);
    /* Fills diff_args.  NULL: it cannot be trained through. */
    leat_status (*backward)(const leati_callee *callee, const leati_callee_run *run, leat_error *err);
};

/* Adds the node; `stream` names its random numbers.  outputs receives callee->output_count values. */
void leati_call(leati_graph *g, const leati_callee *callee, bool training, uint64_t stream, int input_count,
                const leati_value *inputs, leati_value *outputs);

/* Where the gradient by input i lies in the vector of CALL_BWD, in elements; with i == input_count, how long it is. */
int64_t leati_callee_place(uint32_t wanted, const leati_desc *inputs, int i);

#endif
