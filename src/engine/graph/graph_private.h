/* SPDX-License-Identifier: Apache-2.0 */
/* The members of the graph, for the files of this room that change them: those of engine/graph, and the plan, which
 * owns its graph.  Each value and each node is allocated separately, so that pointers to it stay valid when others are
 * added. */
#ifndef LEATI_ENGINE_GRAPH_GRAPH_PRIVATE_H
#define LEATI_ENGINE_GRAPH_GRAPH_PRIVATE_H

#include "engine/graph/graph.h"

/* A growing array of owned pointers. */
typedef struct leati_owned {
    void **items;
    int32_t count, capacity;
} leati_owned;

struct leati_graph {
    leat_error failure; /* the first one; code LEAT_OK: none */
    leati_owned values; /* leati_value_info * */
    leati_owned nodes;  /* leati_node * */
    leati_owned labels; /* char * */
    leati_owned constants;
    const char *label; /* for new nodes */
    int32_t forward;   /* for new nodes: index of the node that is being differentiated, or -1 */
    bool recomputed;   /* some nodes compute values again (leati_graph_recompute) */
    bool store_bf16;   /* the outputs of new nodes may be stored as bf16 (leati_graph_store_bf16) */
};

leati_node *leati_graph_node_mutable(leati_graph *graph, int32_t node);
leati_value_info *leati_graph_value_mutable(leati_graph *graph, leati_value value);

/* Sets may_be_bf16 of a value.  If the value is a view, this also sets it of the value that it is a view of. */
void leati_graph_mark_bf16(leati_graph *graph, leati_value value);

/* A SLICE and the gradient with respect to its output. */
typedef struct leati_sliced {
    const leati_attrs *attrs;
    leati_value diff;
} leati_sliced;

/* Returns the gradient with respect to the value from those of `count` slices of it, which this function sorts, or
 * LEATI_NONE, without a node, where a CONCAT cannot join them: they overlap, there is one, or they are too many. */
leati_value leati_graph_join_slices(leati_graph *graph, leati_value value, int count, leati_sliced *slices);

/* Returns zeroed memory for a constant, which the graph owns; NULL if memory is lacking. */
void *leati_graph_own_constant(leati_graph *graph, size_t bytes);

#endif
