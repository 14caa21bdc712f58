/* SPDX-License-Identifier: Apache-2.0 */
/* The graph from inside, for the files of this room that change it: graph.c, differentiate.c, and the plan, which owns
 * its graph.  Values and nodes are allocated one by one, so that a pointer to one survives the making of others. */
#ifndef LEATI_ENGINE_GRAPH_GRAPH_PRIVATE_H
#define LEATI_ENGINE_GRAPH_GRAPH_PRIVATE_H

#include "engine/graph/graph.h"

/* A growing array of pointers, each owned. */
typedef struct leati_owned {
    void **items;
    int32_t count, capacity;
} leati_owned;

struct leati_graph {
    leat_error failure; /* code LEAT_OK: none */
    leati_owned values; /* leati_value_info * */
    leati_owned nodes;  /* leati_node * */
    leati_owned labels; /* char * */
    leati_owned constants;
    const char *label; /* of the nodes to come */
    int32_t forward;   /* of the nodes to come: the node being differentiated, or -1 */
    bool narrow;       /* what nodes to come make */
};

leati_node *leati_graph_node_mutable(leati_graph *graph, int32_t node);
leati_value_info *leati_graph_value_mutable(leati_graph *graph, leati_value value);

/* Makes a value narrow, and what it is a view of. */
void leati_graph_mark_bf16(leati_graph *graph, leati_value value);

/* Zeroed memory that lives as long as the graph, for a constant; NULL when there is none. */
void *leati_graph_own_constant(leati_graph *graph, size_t bytes);

#endif
