/* SPDX-License-Identifier: Apache-2.0 */
/* A plan: a graph compiled for one thread count.  Dead nodes are eliminated, each remaining node has a kernel, and all
 * activations lie in one arena, where values that do not live at the same time share memory.  A run allocates nothing.
 * Externally synchronised. */
#ifndef LEATI_ENGINE_PLAN_PLAN_H
#define LEATI_ENGINE_PLAN_PLAN_H

#include "base/text.h"
#include "engine/backend.h"
#include "engine/graph/graph.h"

/* Memory and threads that several plans of one model share.  They grow to what the largest plan needs, so that the plan
 * for the last, smaller batch needs no memory of its own.  Only one of the plans runs at a time.  The outputs of a run
 * are valid until one of the plans runs again or another plan is created. */
typedef struct leati_arena leati_arena;
leat_status leati_arena_create(leati_arena **out, leat_error *err);
/* Like leati_arena_create, but the memory is the device's, and all plans of the arena run there.  NULL: the host.  The
 * arena borrows the device, which must outlive it. */
leat_status leati_arena_create_on(leati_arena **out, leati_device *device, leat_error *err);
void leati_arena_destroy(leati_arena **arena);
size_t leati_arena_bytes(const leati_arena *arena);

/* Sets the version of the weights for the next runs.  The caller uses a new number whenever something other than the
 * arena's plans has changed the weights.  Kernels reuse packed weights while the version stays the same.  0, the
 * initial value, means that the version is unknown: the weights are packed at every run. */
void leati_arena_set_version(leati_arena *arena, uint64_t version);

/* The packed weights of one copy of the weights, for all plans that adopt this copy. */
typedef struct leati_prepacked_set leati_prepacked_set;
leat_status leati_prepacked_set_create(leati_prepacked_set **out, leat_error *err);
/* No plan may use the set any more. */
void leati_prepacked_set_destroy(leati_prepacked_set **packs);

typedef struct leati_plan leati_plan;

typedef struct leati_plan_options {
    int threads; /* >= 1 */
    /* NULL-terminated, best first.  A plan of a device asks the device's backends first; then these serve the other
     * ops, on the host between two copies (host_fallback.c). */
    const leati_backend *const *backends;
    leati_arena *arena;  /* borrowed, outlives the plan */
    bool unfused;        /* the plan fuses no ops */
    bool unfolded;       /* the plan folds no normalisations into packed weights */
    bool writes_nothing; /* states are not written: only what the outputs of the graph need is computed */
    bool deterministic;  /* the plan computes the same bytes with any number of threads */
    bool recalls;        /* the plan uses the kernels that the tuning cache names (tune.c) */
    bool measures;       /* with recalls: tasks without an entry in the tuning cache are measured */
    /* Number of samples that axis 0 of the graph's inputs has, of a prediction, in which the plan may compute the first
     * ops for groups of samples (group_samples.c); 0: it may not. */
    int64_t samples;
    leati_weights_format weights_format;
    /* Called with the progress of measuring, from 0 to 1; may be NULL. */
    void (*watch)(void *watcher, double share);
    void *watcher;
    /* Base addresses, 64-byte aligned; see leati_plan_adopt.  A plan of a device has them in the device's memory,
     * except the scalars, which each run copies from the host. */
    void *slabs[LEATI_SLAB_COUNT];
} leati_plan_options;

/* Compiles a graph.  On success and on failure it takes the graph over and sets *graph to NULL.
 * Errors: the graph's own first failure; LEAT_ENOTSUP if no backend serves an op; LEAT_ENOMEM. */
leat_status leati_plan_create(leati_plan **out, leati_graph **graph, const leati_plan_options *options,
                              leat_error *err);
void leati_plan_destroy(leati_plan **plan);

/* Runs all nodes in program order.  inputs[i] is the host's memory of graph input i; it is not copied, except to a
 * device. */
leat_status leati_plan_run(leati_plan *plan, const void *const *inputs, uint64_t seed, uint64_t step,
                           leat_error *err);

struct leati_exchange;

/* Someone who waits for the values of a slab during a run. */
typedef struct leati_slab_watch {
    leati_slab slab;
    /* Called by the running thread whenever more of the slab is final: from this offset to the end, the rest of the run
     * neither reads nor writes the slab.  The offset of the last call is 0. */
    void (*finished)(void *user, size_t from_bytes);
    void *user;
    const struct leati_exchange *exchange; /* for the kernels of the run; may be NULL */
} leati_slab_watch;

/* Like leati_plan_run, but tells `watch` which values are final, while the rest of the run goes on; not on a device.
 * Errors: also LEAT_ENOMEM. */
leat_status leati_plan_run_watched(leati_plan *plan, const void *const *inputs, uint64_t seed, uint64_t step,
                                   const leati_slab_watch *watch, leat_error *err);

/* leati_plan_run in two parts, so that the caller can do something else while a device computes; on the host the first
 * part does everything.  The inputs must stay until leati_plan_finish.  In between, leati_plan_stage may begin to copy
 * the inputs of the next run; they must stay until that run is finished.  staged: the inputs are those of the last
 * leati_plan_stage, unchanged. */
leat_status leati_plan_start(leati_plan *plan, const void *const *inputs, bool staged, uint64_t seed,
                             uint64_t step, leat_error *err);
leat_status leati_plan_stage(leati_plan *plan, const void *const *inputs, leat_error *err);
/* Returns true if the plan has inputs that leati_plan_stage copies. */
bool leati_plan_can_stage(const leati_plan *plan);
leat_status leati_plan_finish(leati_plan *plan, leat_error *err);

/* Returns for how long the device waited in the last finished run for the copies of the inputs: 0 if they had been
 * staged in time, or if the plan runs on the host.  Small inputs, copied with the parameters, do not count. */
int64_t leati_plan_copy_wait_ns(const leati_plan *plan);

/* When a watched run of a plan of a device did what, in ns on the clock of leati_now_ns; 0: did not happen, or is not
 * known.  The moments of the device are placed by `given`, so all may be late by the time that a launch needs. */
typedef struct leati_plan_times {
    int64_t given_ns, launched_ns; /* the host began, and ended, to give the run to the device */
    int64_t copied_ns, ended_ns; /* the device had the inputs; it had computed and copied the results back */
    /* The copies of the inputs of the run that follows, if they began in this run.  They may come with a later call,
     * in the times of a run that was not watched. */
    int64_t staging_ns, staged_ns;
} leati_plan_times;

/* Watches the next run, which costs the host about five calls of the driver.  leati_plan_take_times gives what the
 * plan's finished runs have noted, and forgets it; returns false if there is nothing. */
void leati_plan_watch_next(leati_plan *plan);
bool leati_plan_take_times(leati_plan *plan, leati_plan_times *out);

/* Makes the plan read its weights at `weights` from now on.  The plan writes no weights and is the only plan of its
 * arena.  Nobody may write to `weights` until the plan adopts others.
 * The kernels' packed weights lie in `packs`.  This call packs the weights that no other plan has packed since
 * `weights` received this version (not 0).  Plans with the same `packs` adopt one at a time.
 * `inputs` are bound while the kernels pack; their values do not matter, but states may be written.
 * If finding memory fails, the plan keeps its weights; if packing fails, the plan must adopt weights again. */
leat_status leati_plan_adopt(leati_plan *plan, void *weights, leati_prepacked_set *packs, uint64_t version,
                             const void *const *inputs, leat_error *err);

/* Returns an output (leati_graph_keep) after a run, as a view into the arena or a slab; of a plan of a device, into the
 * host's copy of its outputs. */
leat_tensor leati_plan_output(const leati_plan *plan, leati_value value);

/* Returns the number of weights that the kernels keep in the format of the options, if that is not f32. */
int64_t leati_plan_narrow_weights(const leati_plan *plan);

const leati_graph *leati_plan_graph(const leati_plan *plan);
size_t leati_plan_arena_bytes(const leati_plan *plan); /* bytes of activations and scratch */
/* Returns the largest number of bytes that live at once: a lower bound of the bytes of any arena layout. */
size_t leati_plan_bound_bytes(const leati_plan *plan);

/* Gives range number `index` of the weights that the plan writes: its offset in the slab of weights.  Ranges may occur
 * more than once.  Returns false if there are no more ranges. */
bool leati_plan_written_get(const leati_plan *plan, int32_t index, size_t *offset_bytes, size_t *bytes);

/* Gives the number of doubles that exchange number `index` of a watched run gathers, and the label of the node that
 * makes the exchange.  Returns false if there are no more exchanges. */
bool leati_plan_exchange_get(const leati_plan *plan, int32_t index, int64_t *count, const char **label);

/* The description of one step of a plan, for reports and for measurements. */
#define LEATI_STEP_NAME_BYTES 80
typedef struct leati_plan_step {
    const leati_graph *graph;
    const leati_node *node;         /* its values belong to `graph` */
    int64_t runs;                   /* in each run of the plan: 1, or the number of groups of samples */
    char op[LEATI_STEP_NAME_BYTES]; /* with the ops fused into it: "conv+relu" */
    const char *implementation;     /* "onednn jit:avx2" */
    bool measured;                  /* the implementation was chosen by measuring */
    const char *layout;             /* memory layouts: "nhwc", "nChw8c weights OIhw8i8o", "plain" */
    const char *declined;           /* implementations that refused before: "onednn: dilation > 1; "; "" */
    double operations;              /* multiplications and additions; 0 if memory bandwidth is the limit */
    size_t bytes;                   /* of its inputs and outputs, each counted once in each of `runs` */
    size_t arena_bytes;             /* of the outputs that own memory in the arena, and of scratch */
    int reorders;                   /* copies from one layout into another in each run */
    size_t reorder_bytes;           /* bytes that these copies write */
    size_t kept_bytes;              /* packed weights, made again only when the weights change */
} leati_plan_step;

/* Returns the number of samples for which the first steps are computed together; 0: for all. */
int64_t leati_plan_group_size(const leati_plan *plan);

int32_t leati_plan_step_count(const leati_plan *plan);
void leati_plan_step_get(const leati_plan *plan, int32_t step, leati_plan_step *out);

/* Like leati_plan_run(), but step_ns[i] receives the time of step i. */
leat_status leati_plan_run_timed(leati_plan *plan, const void *const *inputs, uint64_t seed, uint64_t step,
                                 int64_t *step_ns, leat_error *err);

/* Adds one line for each node that runs: op, label, shapes, implementation, and why earlier implementations refused. */
void leati_plan_describe(const leati_plan *plan, leati_text *text);

#endif
