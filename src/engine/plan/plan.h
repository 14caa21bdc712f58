/* SPDX-License-Identifier: Apache-2.0 */
/* A plan: a graph compiled for one thread count.  Nodes that nobody needs are dropped, kernels chosen, activations
 * placed in one arena by liveness.  A run allocates nothing.  Externally synchronised. */
#ifndef LEATI_ENGINE_PLAN_PLAN_H
#define LEATI_ENGINE_PLAN_PLAN_H

#include "base/text.h"
#include "engine/backend.h"
#include "engine/graph/graph.h"

/* Memory and threads that several plans of one model share: they grow to the largest, so that the plan of the last short
 * batch costs none.  Only one of them runs at a time; outputs are valid until one of them runs again or another is made. */
typedef struct leati_arena leati_arena;
leat_status leati_arena_create(leati_arena **out, leat_error *err);
void leati_arena_destroy(leati_arena **arena);
size_t leati_arena_bytes(const leati_arena *arena);

/* Says which weights the next runs see: another number, weights that something else than the arena's plans has changed.
 * What kernels have packed of them is used again while it stays the same.  0, as at first: nobody knows. */
void leati_arena_set_version(leati_arena *arena, uint64_t version);

/* What kernels packed of one copy of the weights, for all plans that adopt it. */
typedef struct leati_prepacked_set leati_prepacked_set;
leat_status leati_prepacked_set_create(leati_prepacked_set **out, leat_error *err);
void leati_prepacked_set_destroy(leati_prepacked_set **packs); /* when no plan uses it */

typedef struct leati_plan leati_plan;

typedef struct leati_plan_options {
    int threads;                          /* >= 1 */
    const leati_backend *const *backends; /* NULL-terminated, best first */
    leati_arena *arena;                   /* borrowed, outlives the plan */
    bool unfused;                         /* every op by itself */
    bool unfolded;                        /* normalisations do not become part of packed weights */
    bool deterministic;                   /* the same bytes for any number of threads */
    bool recalls;                         /* heavy ops have the kernels that were fastest once (tune.c) */
    bool measures;                        /* with recalls: finds out which, where that is not known */
    void (*watch)(void *watcher, double share); /* measuring is so far, from 0 to 1; NULL: nobody asks */
    void *watcher;
    void *slabs[LEATI_SLAB_COUNT]; /* base addresses, 64-byte aligned; see leati_plan_adopt */
} leati_plan_options;

/* Compiles a graph; takes it over whether it succeeds or fails (and sets *graph to NULL).
 * Errors: the graph's own first failure; LEAT_ENOTSUP names an op that no backend serves; LEAT_ENOMEM. */
leat_status leati_plan_create(leati_plan **out, leati_graph **graph, const leati_plan_options *options,
                              leat_error *err);
void leati_plan_destroy(leati_plan **plan);

/* Runs all nodes in program order.  inputs[i] is bound to graph input i, read in place. */
leat_status leati_plan_run(leati_plan *plan, const void *const *inputs, uint64_t seed, uint64_t step,
                           leat_error *err);

/* From now on the plan, which writes no weights and has its arena to itself, reads them at `weights`, where nobody writes
 * until it adopts others.  What its kernels pack of them lies in `packs`, and is made now where no other plan has made it
 * since that memory received this version (not 0): plans with the same `packs` adopt one at a time.  `inputs` are bound
 * while kernels pack: their values do not matter, states may be written.  After a failure the weights are as before, but
 * must be adopted anew. */
leat_status leati_plan_adopt(leati_plan *plan, void *weights, leati_prepacked_set *packs, uint64_t version,
                             const void *const *inputs, leat_error *err);

/* An output (leati_graph_keep) after a run: a view into the arena or a slab. */
leat_tensor leati_plan_output(const leati_plan *plan, leati_value value);

const leati_graph *leati_plan_graph(const leati_plan *plan);
size_t leati_plan_arena_bytes(const leati_plan *plan); /* activations and scratch */
size_t
leati_plan_bound_bytes(const leati_plan *plan); /* the most that is alive at once: no plan can have less */

/* One step of a plan, for people and for measurements. */
#define LEATI_STEP_NAME_BYTES 80
typedef struct leati_plan_step {
    const leati_node *node;         /* its values are those of leati_plan_graph */
    char op[LEATI_STEP_NAME_BYTES]; /* with what was fused into it: "conv+relu" */
    const char *implementation;     /* "onednn jit:avx2" */
    bool measured;                  /* chosen by measuring */
    const char *layout;             /* of what it works on: "nhwc", "nChw8c weights OIhw8i8o", "plain" */
    const char *declined;           /* "onednn: dilation > 1; ": who refused before; "" */
    double operations;              /* multiplications and additions; 0 where memory is the work */
    size_t bytes;                   /* of its inputs and outputs, each once: what it cannot help moving */
    size_t arena_bytes;   /* of the arena: its outputs that have memory of their own there, and scratch */
    int reorders;         /* copies from one layout into another, within each run */
    size_t reorder_bytes; /* that they write */
    size_t kept_bytes;    /* packed weights, made when the weights change */
} leati_plan_step;

int32_t leati_plan_step_count(const leati_plan *plan);
void leati_plan_step_get(const leati_plan *plan, int32_t step, leati_plan_step *out);

/* As leati_plan_run; step_ns[i] receives the time of step i. */
leat_status leati_plan_run_timed(leati_plan *plan, const void *const *inputs, uint64_t seed, uint64_t step,
                                 int64_t *step_ns, leat_error *err);

/* One line per node that runs: op, label, shapes, implementation, and why those before it declined. */
void leati_plan_describe(const leati_plan *plan, leati_text *text);

#endif
