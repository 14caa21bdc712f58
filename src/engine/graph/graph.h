/* SPDX-License-Identifier: Apache-2.0 */
/* The graph: values with concrete shapes, and nodes that compute some from others, in program order.  It is built for
 * one batch size and mode, differentiated by adding nodes, and compiled into a plan.
 * The builder keeps its first failure: a function given LEATI_INVALID returns LEATI_INVALID, so that a lowering reads
 * as a formula, and leati_graph_check tells at the end.  Externally synchronised. */
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

/* The memory that outlives a run: one block each, laid out by the owner (nn/model/weights.h). */
typedef enum leati_slab {
    LEATI_SLAB_WEIGHTS = 0,
    LEATI_SLAB_STATES, /* what layers carry from batch to batch */
    LEATI_SLAB_GRADIENTS,
    LEATI_SLAB_SLOT0, /* of the optimizer */
    LEATI_SLAB_SLOT1,
    LEATI_SLAB_SLOT2,
    LEATI_SLAB_SLOT3,
    LEATI_SLAB_SCALARS, /* f32 numbers that the host writes before a run: learning rate, ... */
    LEATI_SLAB_COUNT
} leati_slab;

typedef enum leati_storage {
    LEATI_IN_ARENA = 0, /* made by a node, lives as long as the plan needs it */
    LEATI_IN_INPUT,     /* bound at each run: where.input */
    LEATI_IN_SLAB,      /* where.slab, where.offset_bytes */
    LEATI_IN_CONSTANT   /* owned by the graph: where.constant */
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
    int32_t producer; /* node, or -1 */
    bool output;      /* must be readable after the run */
    bool narrow;      /* f32 whose numbers the plan may keep as bf16 (engine/plan/bf16_storage.c) */
    bool exact;       /* f32 whose numbers bf16 may not have: whole ones, given as such */
} leati_value_info;

/* Whether both are states, with bytes in common. */
bool leati_states_overlap(const leati_value_info *a, const leati_value_info *b);

struct leati_node {
    leati_op op;
    leati_attrs attrs;
    int32_t input_count, output_count;
    leati_value inputs[LEATI_MAX_INPUTS]; /* LEATI_NONE where optional and absent */
    leati_value outputs[LEATI_MAX_OUTPUTS];
    int32_t forward;   /* the node whose gradient this one serves, or -1 */
    const char *label; /* of the layer that asked for it; owned by the graph */
};

leat_status leati_graph_create(leati_graph **out, leat_error *err);
void leati_graph_destroy(leati_graph **graph);

/* The first failure since creation, or LEAT_OK. */
leat_status leati_graph_check(const leati_graph *graph, leat_error *err);
/* Records a failure (if it is the first) and returns LEATI_INVALID, for lowerings that find one. */
leati_value leati_graph_fail(leati_graph *graph, leat_status code, const char *format, ...) LEAT_PRINTF(3, 4);

/* Nodes made from here on carry this label (copied; NULL for none). */
void leati_graph_label(leati_graph *graph, const char *label);

leati_value leati_graph_input(leati_graph *graph, int input, const leati_desc *desc);
/* The same (slab, offset) asked for again with the same shape is the same value. */
leati_value leati_graph_state(leati_graph *graph, leati_slab slab, size_t offset_bytes,
                              const leati_desc *desc);
leati_value leati_graph_constant(leati_graph *graph, const leati_desc *desc, const void *data);
/* While it is on, what ops make is narrow, and as long as that is so, so are gradients by it.  Views of what is narrow are,
 * always; rearrangements of exact values are exact.  Returns what it was. */
bool leati_graph_store_bf16(leati_graph *graph, bool on);
/* value as something narrow: itself where it is narrow or exact, else a copy. */
leati_value leati_graph_rounded_to_bf16(leati_graph *graph, leati_value value);
void leati_graph_set_exact(leati_graph *graph, leati_value value);

/* A node.  outputs (may be NULL) receives all of them; returns the first. */
leati_value leati_graph_node(leati_graph *graph, leati_op op, const leati_attrs *attrs, int input_count,
                             const leati_value *inputs, leati_value *outputs);
/* state = value, in program order.  The plan computes value in place of the state where it can. */
void leati_graph_store(leati_graph *graph, leati_value state, leati_value value);
void leati_graph_keep(leati_graph *graph, leati_value value); /* makes it an output */

const leati_desc *leati_graph_desc(const leati_graph *graph,
                                   leati_value value); /* never NULL: rank 0 if invalid */
const leati_value_info *leati_graph_value(const leati_graph *graph, leati_value value);
int32_t leati_graph_value_count(const leati_graph *graph);
const leati_node *leati_graph_node_at(const leati_graph *graph, int32_t node);
int32_t leati_graph_node_count(const leati_graph *graph);

/* Adds the nodes that compute d loss / d wrt[i], into gradient[i]: LEATI_NONE where loss does not depend on it.
 * loss is a scalar (rank 0).  Each gradient has the shape of its wrt. */
leat_status leati_graph_differentiate(leati_graph *graph, leati_value loss, int count, const leati_value *wrt,
                                      leati_value *gradient, leat_error *err);

/* Trades time for memory, between the differentiation of the first `forward_count` nodes and whatever is added next: what
 * gradients read of most of them is computed again before it is read, to the same numbers (engine/graph/recompute.c). */
leat_status leati_graph_recompute(leati_graph *graph, int32_t forward_count, leat_error *err);

#endif
