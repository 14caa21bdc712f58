/* SPDX-License-Identifier: Apache-2.0 */
/* The graph: values with concrete shapes, and nodes that compute values from other values, in program order.  A graph
 * is built for one batch size and mode, differentiated by adding nodes, and compiled into a plan.
 * The graph keeps the first failure.  A function that is given LEATI_INVALID returns LEATI_INVALID, so that a lowering
 * needs no checks; leati_graph_check returns the failure at the end.  Externally synchronised. */
#ifndef LEATI_ENGINE_GRAPH_GRAPH_H
#define LEATI_ENGINE_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/op_semantics/op.h"
#include "leat/error.h"
#include "leat/tensor.h"

typedef int32_t leati_value;
#define LEATI_NONE    ((leati_value)-1) /* an optional input that is absent */
#define LEATI_INVALID ((leati_value)-2) /* what a failed call returns */

/* The memory that outlives a run: one block each, laid out by the owner (nn/weights/weights.h). */
typedef enum leati_slab {
    LEATI_SLAB_WEIGHTS = 0,
    LEATI_SLAB_STATES, /* states that layers keep from batch to batch */
    LEATI_SLAB_GRADIENTS,
    LEATI_SLAB_SLOT0, /* optimizer slots */
    LEATI_SLAB_SLOT1,
    LEATI_SLAB_SLOT2,
    LEATI_SLAB_SLOT3,
    LEATI_SLAB_SLOT4,
    LEATI_SLAB_SCALARS, /* f32 numbers that the caller writes before a run, for example the learning rate */
    LEATI_SLAB_ROWS,    /* sums over the rows of gradients, which parts of a batch add up beside gradients */
    LEATI_SLAB_COUNT
} leati_slab;

typedef enum leati_storage {
    LEATI_IN_ARENA = 0, /* computed by a node into the arena */
    LEATI_IN_INPUT,     /* a graph input, bound at each run: where.input */
    LEATI_IN_SLAB,      /* a state: where.slab, where.offset_bytes */
    LEATI_IN_CONSTANT   /* a constant that the graph owns: where.constant */
} leati_storage;

typedef struct leati_value_info {
    leati_desc desc;
    leati_storage storage;
    struct {
        int input;
        leati_slab slab;
        size_t offset_bytes;
        const void *constant;
    } where;
    int32_t producer; /* index of the node that computes it, or -1 */
    bool output;      /* must be readable after the run */
    bool may_be_bf16; /* an f32 value that the plan may store as bf16 (engine/plan/bf16_storage.c) */
    bool exact;       /* an f32 value with integers that bf16 may not represent: it is never stored as bf16 */
} leati_value_info;

/* Returns true if both values are states that share bytes. */
bool leati_states_overlap(const leati_value_info *a, const leati_value_info *b);

struct leati_node {
    leati_op op;
    leati_attrs attrs;
    int32_t input_count, output_count;
    leati_value inputs[LEATI_MAX_INPUTS]; /* LEATI_NONE where optional and absent */
    leati_value outputs[LEATI_MAX_OUTPUTS];
    int32_t forward;   /* index of the node whose gradient this node helps to compute, or -1 */
    const char *label; /* name of the layer that added the node; owned by the graph */
};

leat_status leati_graph_create(leati_graph **out, leat_error *err);
void leati_graph_destroy(leati_graph **graph);

/* Returns the first failure since the graph was created, or LEAT_OK. */
leat_status leati_graph_check(const leati_graph *graph, leat_error *err);
/* Records a failure if it is the first.  Returns LEATI_INVALID. */
leati_value leati_graph_fail(leati_graph *graph, leat_status code, const char *format, ...) LEAT_PRINTF(3, 4);

/* Sets the label of the nodes that are added from now on (copied; NULL for none). */
void leati_graph_label(leati_graph *graph, const char *label);

leati_value leati_graph_input(leati_graph *graph, int input, const leati_desc *desc);
/* Returns the value for a state.  A second call with the same slab, offset, type and shape returns the same value. */
leati_value leati_graph_state(leati_graph *graph, leati_slab slab, size_t offset_bytes,
                              const leati_desc *desc);
leati_value leati_graph_constant(leati_graph *graph, const leati_desc *desc, const void *data);
/* Switches whether the plan may store the outputs of new nodes as bf16 (may_be_bf16).  Independently of the switch,
 * differentiation sets may_be_bf16 of the gradients with respect to such values, and a view of such a value is one,
 * too.  An op that only moves the elements of exact values has an exact output.  Returns the previous setting. */
bool leati_graph_store_bf16(leati_graph *graph, bool on);
/* Returns a copy of `value` that the plan may store as bf16.  Returns `value` itself if it may be stored as bf16, is
 * exact, or is not f32. */
leati_value leati_graph_rounded_to_bf16(leati_graph *graph, leati_value value);
/* Marks `value` as exact. */
void leati_graph_set_exact(leati_graph *graph, leati_value value);

/* Adds a node.  `outputs` (may be NULL) receives all its outputs; the function returns the first. */
leati_value leati_graph_node(leati_graph *graph, leati_op op, const leati_attrs *attrs, int input_count,
                             const leati_value *inputs, leati_value *outputs);
/* Adds the assignment state = value, in program order.  Where possible, the plan computes the value directly in the
 * memory of the state. */
void leati_graph_store(leati_graph *graph, leati_value state, leati_value value);
void leati_graph_keep(leati_graph *graph, leati_value value); /* makes the value an output of the graph */

/* Returns the description of a value, or the description of a scalar if the value is invalid.  Never NULL. */
const leati_desc *leati_graph_desc(const leati_graph *graph, leati_value value);
const leati_value_info *leati_graph_value(const leati_graph *graph, leati_value value);
int32_t leati_graph_value_count(const leati_graph *graph);
const leati_node *leati_graph_node_at(const leati_graph *graph, int32_t node);
int32_t leati_graph_node_count(const leati_graph *graph);

/* Adds the nodes that compute d loss / d wrt[i] and sets gradient[i] to it, or to LEATI_NONE if the loss does not
 * depend on wrt[i].  loss is a scalar (rank 0).  gradient[i] has the shape of wrt[i]. */
leat_status leati_graph_differentiate(leati_graph *graph, leati_value loss, int count, const leati_value *wrt,
                                      leati_value *gradient, leat_error *err);

/* Trades time for memory (engine/graph/recompute.c): most values of the forward pass that the backward pass reads are
 * computed again, to the same numbers, shortly before they are read.  Call it after the first `forward_count` nodes
 * were differentiated and before more nodes are added. */
leat_status leati_graph_recompute(leati_graph *graph, int32_t forward_count, leat_error *err);

#endif
