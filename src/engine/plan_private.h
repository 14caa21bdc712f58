/* SPDX-License-Identifier: Apache-2.0 */
/* The plan from inside: what its passes hand to each other.  In order: need.c (which nodes run), choose.c (kernels,
 * fusion), fold.c (what is constant), alias.c (whose memory each value has), place.c (where in the arena), plan.c (arguments, running). */
#ifndef LEATI_ENGINE_PLAN_PRIVATE_H
#define LEATI_ENGINE_PLAN_PRIVATE_H

#include "base/text.h"
#include "engine/graph_private.h"
#include "engine/plan.h"

struct leati_arena {
    unsigned char *memory;
    size_t bytes;
};

/* What is known of one node. */
typedef struct leati_work {
    bool needed;  /* its outputs or its writes are wanted */
    bool virtual; /* needed, but computes nothing: a view, or a store whose value is made in place */
    leati_kernel kernel;
    leati_text declined; /* "onednn: dilation > 1; ": who refused before the kernel was found */
    void **args;         /* into plan->args */
    size_t scratch_offset;
} leati_work;

/* What is known of one value. */
typedef struct leati_place {
    leati_value root;  /* whose memory this value has; itself where it has its own */
    int32_t readers;   /* needed nodes that read it */
    int32_t last_read; /* the last of them; node_count for an output of the graph; -1: nobody */
    int32_t dies;      /* of a root: the last node that touches anyone of its memory */
    size_t bytes;      /* of a root in the arena: what its kernel says, or its shape */
    size_t offset;     /* of a root in the arena */
} leati_place;

typedef struct leati_patch {
    void **arg;
    int32_t input; /* graph input */
    size_t offset; /* in the arena */
} leati_patch;

struct leati_plan {
    leati_graph *graph;
    leati_plan_options options;
    int32_t node_count, value_count;
    leati_work *work;   /* by node */
    leati_place *place; /* by value */
    int32_t step_count;
    int32_t *steps; /* the nodes that run, in order */
    void **args;
    int32_t arena_patch_count, input_patch_count;
    leati_patch *arena_patches, *input_patches;
    unsigned char *resolved_for; /* the arena memory that args point into */
    const void **bound;          /* inputs of the last run, by graph input */
    int32_t input_count;
    size_t arena_bytes, bound_bytes;
};

static inline const leati_node *leati_plan_node(const leati_plan *plan, int32_t n) {
    return plan->graph->nodes.items[n];
}
static inline const leati_value_info *leati_plan_value(const leati_plan *plan, leati_value value) {
    return plan->graph->values.items[value];
}
/* The value whose memory `value` has. */
static inline leati_value leati_plan_root(const leati_plan *plan, leati_value value) {
    while (plan->place[value].root != value) value = plan->place[value].root;
    return value;
}

/* Whether the argument of an output is NULL: nobody reads it, and its op can do without. */
bool leati_plan_is_left_out(const leati_plan *plan, const leati_node *node, leati_value output);

/* Marks the nodes that outputs and writes need, and counts who reads what. */
void leati_plan_need(leati_plan *plan);
/* Counts again, after nodes were dropped. */
void leati_plan_count_readers(leati_plan *plan);

/* Finds a kernel for every needed node that is neither a view nor a store; fuses functions into the op before. */
leat_status leati_plan_choose(leati_plan *plan, leat_error *err);
/* Finds one for the views and stores that remain. */
leat_status leati_plan_choose_rest(leati_plan *plan, leat_error *err);

/* Computes at once what depends on constants alone, where it is small. */
leat_status leati_plan_fold(leati_plan *plan, leat_error *err);

/* Decides which values share memory: views, stores made in place of their state, ops that work in place. */
void leati_plan_alias(leati_plan *plan);

/* Intervals of memory in time, and where they go. */
typedef struct leati_block {
    int32_t first, last; /* nodes, both included */
    size_t bytes;        /* a multiple of the alignment */
    size_t offset;       /* set by leati_place_blocks */
} leati_block;

/* Greedy by size, each into the smallest gap that holds it (Pisarchyk and Lee, "Efficient memory management for deep
 * neural net inference", 2020).  *bound is the most that is alive at once; moments is node count + 1. */
leat_status leati_place_blocks(leati_block *blocks, int32_t count, int32_t moments, size_t *arena_bytes,
                               size_t *bound, leat_error *err);

#endif
