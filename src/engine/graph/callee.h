/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that the op CALL calls: code from outside of leat, for custom layers, lookups of integers, and
 * functions of C's library.  The graph knows only the shapes of their outputs and whether they have a gradient. */
#ifndef LEATI_ENGINE_GRAPH_CALLEE_H
#define LEATI_ENGINE_GRAPH_CALLEE_H

#include "base/threads/thread_pool.h"
#include "engine/graph/graph.h"
#include "leat/rng.h"

#define LEATI_CALLEE_MAX_INPUTS  20 /* CALL_BWD has two more inputs for each output */
#define LEATI_CALLEE_MAX_OUTPUTS 6

/* The arguments of one call, forward or backward.  Buffers are row-major; results are f32,
 * and so are arguments unless the callee takes any types. */
typedef struct leati_callee_run {
    int input_count, output_count;
    const leati_desc *inputs, *outputs; /* inputs[i] describes args[i], outputs[i] describes results[i] */
    void *const *args, *const *results;
    bool training;
    leat_rng *rng;           /* gives the same numbers in the forward and the backward call */
    leati_thread_pool *pool; /* for leati_thread_pool_share; NULL: the caller is the only thread */
    /* Only backward.  diff_results: the gradient with respect to each output.  diff_args: buffers for the gradient with
     * respect to each input; NULL where it is not wanted. */
    void *const *diff_results;
    void **diff_args;
} leati_callee_run;

struct leati_callee {
    int output_count;
    bool any_types; /* inputs of other types than f32 are allowed */
    /* ONNX's op that computes the same from the same inputs ("Mod": with the attribute fmod = 1); NULL: none. */
    const char *onnx_op;
    /* Computes the shapes of the outputs, which are f32. */
    leat_status (*infer)(const leati_callee *callee, int input_count, const leati_desc *inputs,
                         leati_desc *outputs, leat_error *err);
    /* Fills results.  Several threads may call it at once, if several plans contain it. */
    leat_status (*forward)(const leati_callee *callee, const leati_callee_run *run, leat_error *err);
    /* Fills diff_args.  NULL: the function has no gradient. */
    leat_status (*backward)(const leati_callee *callee, const leati_callee_run *run, leat_error *err);
};

/* Adds a CALL node; `stream` selects its random numbers.  outputs receives callee->output_count values. */
void leati_graph_call(leati_graph *g, const leati_callee *callee, bool training, uint64_t stream,
                      int input_count, const leati_value *inputs, leati_value *outputs);

/* An infer of functions of single elements: one output of the shape of the first input. */
leat_status leati_callee_infer_like(const leati_callee *callee, int input_count, const leati_desc *inputs,
                                    leati_desc *outputs, leat_error *err);

/* Returns the offset, in elements, of the gradient with respect to input i in CALL_BWD's vector; with i == input_count,
 * the length of the vector. */
int64_t leati_callee_place(uint32_t wanted, const leati_desc *inputs, int i);

#endif
