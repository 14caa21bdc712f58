/* SPDX-License-Identifier: Apache-2.0 */
/* The plan from inside: what its passes hand to each other.  In order: need.c (which nodes run), narrow.c (what is
 * bf16), absorb.c (padding), choose.c (kernels, widen.c where they know no bf16) with fuse.c (what they take over) and
 * tune.c (which is fastest), fold.c (what is constant), alias.c (whose memory each value has),
 * pack.c (weights that stay packed), place.c (where in the arena), plan.c (arguments, running). */
#ifndef LEATI_ENGINE_PLAN_PLAN_PRIVATE_H
#define LEATI_ENGINE_PLAN_PLAN_PRIVATE_H

#include "base/text.h"
#include "engine/plan/tuning_cache.h"
#include "engine/graph/graph_private.h"
#include "engine/plan/plan.h"

typedef struct leati_memory {
    const unsigned char *data;
    size_t bytes;
} leati_memory;

/* What a kernel made of weights, kept while they stay as they are. */
typedef struct leati_prepacked {
    struct leati_prepacked *next;
    int users;             /* plans */
    uint64_t version;      /* of the weights that it was made of; 0: none */
    leati_memory from[32]; /* the weights, by input of the kernel; empty: another input */
    char key[64];
    size_t bytes;
    void *memory;
} leati_prepacked;

struct leati_prepacked_set {
    leati_prepacked *first;
    bool keeps; /* what no plan uses, too: for those to come */
};

struct leati_arena {
    unsigned char *memory;
    size_t bytes;
    leati_prepacked_set packs;
    uint64_t version;            /* of the weights; 0: not known */
    leati_thread_pool *pool;     /* NULL: no plan has more than one thread */
    leati_tuning_cache *choices; /* NULL: no plan has been tuned */
};

/* What is known of one node. */
typedef struct leati_work {
    bool needed;  /* its outputs or its writes are wanted */
    bool virtual; /* needed, but computes nothing: a view, or a store whose value is made in place */
    leati_kernel kernel;
    bool measured;       /* it was chosen by measuring */
    leati_text declined; /* "onednn: dilation > 1; ": who refused before the kernel was found */
    void **args;         /* into plan->args */
    size_t scratch_offset;
    struct leati_prepacked *pack;      /* shared with other plans; NULL: what the kernel packs is scratch */
    leati_prepacked_set *packs;        /* where it is */
    struct leati_prepacked *next_pack; /* of the weights that are being adopted */
    leati_prepacked_set *next_packs;
} leati_work;

/* What is known of one value. */
typedef struct leati_location {
    leati_value root;  /* whose memory this value has; itself where it has its own */
    int32_t readers;   /* needed nodes that read it */
    int32_t last_read; /* the last of them; node_count for an output of the graph; -1: nobody */
    int32_t dies;      /* of a root: the last node that touches anyone of its memory */
    size_t bytes;      /* of a root in the arena: what its kernel says, or its shape */
    size_t offset;     /* of a root in the arena */
} leati_location;

typedef struct leati_patch {
    void **arg;
    int32_t input; /* graph input */
    size_t offset; /* in the arena, or in the slab of weights */
} leati_patch;

struct leati_plan {
    leati_graph *graph;
    leati_plan_options options;
    int32_t node_count, value_count;
    leati_work *work;      /* by node */
    leati_location *place; /* by value */
    int32_t step_count;
    uint64_t runs;
    int32_t *steps; /* the nodes that run, in order */
    void **args;
    int32_t arena_patch_count, input_patch_count, weight_patch_count;
    leati_patch *arena_patches, *input_patches, *weight_patches;
    unsigned char *resolved_for; /* the arena memory that args point into */
    const void **bound;          /* inputs of the last run, by graph input */
    int32_t input_count;
    size_t arena_bytes, bound_bytes;
    int32_t written_count;
    leati_memory *written; /* weights that the plan writes */
    int64_t tuned_ns;      /* spent on measuring */
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
void leati_plan_eliminate_dead_nodes(leati_plan *plan);
/* Counts again, after nodes were dropped. */
void leati_plan_count_readers(leati_plan *plan);

/* Makes what is narrow bf16, where it is not to be read after the run. */
void leati_plan_store_bf16(leati_plan *plan);

/* Makes padding before and cutting after convolutions part of them. */
void leati_plan_fold_padding(leati_plan *plan);

/* Whether a needed node of [first, last] writes memory of this value, which lies in a slab. */
bool leati_plan_is_written(const leati_plan *plan, leati_value value, int32_t first, int32_t last);

/* Nodes that may be fused into the one before them, in their order. */
#define LEATI_CHAIN_MAX 3
typedef struct leati_chain {
    int length;
    int32_t nodes[LEATI_CHAIN_MAX];
} leati_chain;
void leati_plan_chain(const leati_plan *plan, int32_t n, leati_chain *chain);
/* What node n becomes with the first `length` of them; leati_plan_fuse makes it so. */
void leati_plan_fused(const leati_plan *plan, int32_t n, const leati_chain *chain, int length,
                      leati_node *out);
void leati_plan_fuse(leati_plan *plan, int32_t n, const leati_chain *chain, int length,
                     const leati_node *fused);

/* "norm+add+relu": what is fused; "". */
#define LEATI_POST_TEXT_BYTES 48
const char *leati_post_text(char out[LEATI_POST_TEXT_BYTES], const leati_attrs *attrs);

/* Finds a kernel for every needed node that is neither a view nor a store; fuses functions into the op before. */
leat_status leati_plan_choose(leati_plan *plan, leat_error *err);
/* Finds one for the views and stores that remain. */
leat_status leati_plan_choose_rest(leati_plan *plan, leat_error *err);

/* Whether a tensor of the task is bf16; the same task with f32 in their place. */
bool leati_task_has_bf16(const leati_task *task);
void leati_task_as_f32(const leati_task *task, leati_desc *inputs, leati_desc *outputs);
/* Makes of *kernel, which serves the widened task, one that serves the task: what is bf16 passes through scratch. */
leat_status leati_plan_make_f32_fallback(const leati_plan *plan, const leati_task *task, leati_kernel *kernel,
                                         leat_error *err);
/* The kernel inside of such a one; else itself. */
const leati_kernel *leati_kernel_inside(const leati_kernel *kernel);
/* Asks one backend.  kernel->run stays NULL where all of its implementations refuse. */
leat_status leati_plan_ask(const leati_backend *backend, const leati_task *task, leati_kernel *kernel,
                           leati_text *declined, leat_error *err);

/* Puts the kernel in place that is fastest for a heavy task, where the plan is tuned: found by measuring, now or once. */
void leati_plan_tune(leati_plan *plan, const leati_node *node, const leati_task *task, leati_work *work);
/* Multiplications and additions; 0 where memory is the work. */
double leati_plan_operations(const leati_plan *plan, const leati_node *node);

/* Computes at once what depends on constants alone, where it is small. */
leat_status leati_plan_fold(leati_plan *plan, leat_error *err);

/* Finds memory that outlives the run for what kernels pack, where that is made of weights which this plan leaves alone. */
leat_status leati_plan_prepack(leati_plan *plan, leat_error *err);
void leati_plan_release_prepacked(leati_plan *plan);
/* Before a run: what was packed of weights that this plan writes is of no use any more. */
void leati_plan_invalidate_prepacked(const leati_plan *plan);
/* Whether value is memory that only the owner of the weights changes, between runs. */
bool leati_plan_stays(const leati_plan *plan, leati_value value);
/* Bytes of scratch in the arena. */
size_t leati_plan_scratch_bytes(const leati_work *work);

/* Finds or makes, in `packs`, memory for what kernels pack of the weights that the options name now; then it takes the place
 * of what they had, or, after a failure, is let go of. */
leat_status leati_plan_find_prepacked(leati_plan *plan, leati_prepacked_set *packs, leat_error *err);
void leati_plan_take_prepacked(leati_plan *plan);
void leati_plan_drop_found_prepacked(leati_plan *plan);

/* Decides which values share memory: views, stores made in place of their state, ops that work in place. */
void leati_plan_alias(leati_plan *plan);

/* Intervals of memory in time, and where they go. */
typedef struct leati_block {
    int32_t first, last; /* nodes, both included */
    size_t bytes;        /* a multiple of the alignment */
    size_t offset;       /* set by leati_arena_lay_out */
} leati_block;

/* Greedy by size, each into the smallest gap that holds it (Pisarchyk and Lee, "Efficient memory management for deep
 * neural net inference", 2020).  *bound is the most that is alive at once; moments is node count + 1. */
leat_status leati_arena_lay_out(leati_block *blocks, int32_t count, int32_t moments, size_t *arena_bytes,
                                size_t *bound, leat_error *err);

#endif
