/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of the first ops of a prediction that a plan computes for a group of samples at a time: its front
 * (docs/decisions/0138-predictions-in-groups-of-samples.md).  Room: engine. */
#ifndef LEATI_ENGINE_PLAN_CHOOSE_FRONT_H
#define LEATI_ENGINE_PLAN_CHOOSE_FRONT_H

#include "engine/plan/plan_private.h"

/* How a value depends on the samples of the batch. */
typedef enum leati_sample_kind {
    LEATI_MIXED = 0, /* in a way that is not known, or an op between the samples and it mixes them */
    LEATI_FIXED,     /* not at all */
    LEATI_SAMPLED /* the first axis longer than 1 has equal parts, of which part i depends on sample i only */
} leati_sample_kind;

typedef struct leati_split {
    const leati_plan *plan;
    const leati_graph *graph;
    int64_t batch, group;     /* number of samples */
    bool alone;               /* each thread computes whole groups alone */
    leati_sample_kind *kinds; /* by value */
    bool *in_front;           /* by node: the front has it, if it is before `end` */
    int32_t *readers;         /* by value: number of nodes that read it */
    /* By value: the last reader in the front; INT32_MAX: the rest of the graph reads it, or the caller. */
    int32_t *last_read;
    /* By node: the change, at this node, of the number of pairs of nodes that a front which ends here would part. */
    int32_t *parts;
    int32_t end; /* the front ends before this node; 0: there is no front */
} leati_split;

/* Returns the axis of the samples in a value that depends on them: the first that is longer than 1. */
int leati_sample_axis(const leati_desc *desc);

/* Chooses the front of the plan's graph for split->batch samples.  The caller frees the split, also after an error. */
leat_status leati_split_choose(leati_split *split, const leati_plan *plan, leat_error *err);

void leati_split_free(leati_split *split);

/* Returns true if the front computes the value, and the rest of the graph or the caller reads it. */
bool leati_split_hands(const leati_split *split, leati_value value);

#endif
