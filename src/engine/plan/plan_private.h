/* SPDX-License-Identifier: Apache-2.0 */
/* The members of a plan and the functions of its compiler, for the files of engine/plan.  The stages of compilation,
 * in order: group_samples.c with choose_front.c (the first ops as a plan of their own), eliminate_dead_nodes.c,
 * merge_equal_nodes.c, bf16_storage.c (which values are bf16), fold_padding.c, choose_kernels.c with fuse.c, tune.c
 * (the fastest kernel), bf16_fallback.c (kernels without bf16) and host_fallback.c (ops that a device does not
 * serve), fold_constants.c, fuse_averages.c, fuse_products.c, fuse_elementwise.c and fuse_separable.c (several nodes
 * in one kernel), alias.c (which values share memory), prepack.c, arena_layout.c, on_device.c (the blocks of a plan of
 * a device), and plan.c (arguments; it also runs the plan). */
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

/* Weights that a kernel has packed, kept until the weights change. */
typedef struct leati_prepacked {
    struct leati_prepacked *next;
    int users;             /* number of users in plans; not counted in a set that `keeps` */
    uint64_t version;      /* of the weights that were packed; 0: nothing is packed */
    leati_memory from[32]; /* memory of the packed inputs, by input of the kernel; empty: not packed */
    char key[64];
    size_t bytes;
    void *memory;
} leati_prepacked;

struct leati_prepacked_set {
    leati_device *device; /* where the packed weights are; NULL: the host */
    leati_prepacked *first;
    bool keeps; /* entries stay when no plan uses them, for plans that are created later */
};

struct leati_arena {
    leati_device *device; /* NULL: the host */
    unsigned char *memory;
    size_t bytes;
    leati_prepacked_set packs;
    leati_prepacked_set *lent;   /* packs of another arena that this one uses; NULL: its own */
    uint64_t version;            /* of the weights; 0: not known */
    uint64_t unknown;            /* number of runs in groups with an unknown version */
    leati_thread_pool *pool;     /* NULL: no plan has more than one thread */
    leati_tuning_cache *choices; /* NULL: no plan has been tuned */
};

/* The plan's data about one node. */
typedef struct leati_work {
    bool needed; /* an output of the graph or a state depends on the node */
    bool virtual; /* needed, but runs nothing: a view, or a store whose value is computed in the state itself */
    leati_kernel kernel;
    bool measured;       /* the kernel was chosen by measuring */
    bool joined;         /* the kernel computes a leati_group, which this node stands for */
    uint32_t writes;     /* joined: bit i: the kernel writes input i */
    double operations;   /* joined: of two convolutions; 0 in other nodes */
    leati_text declined; /* implementations that refused before: "onednn: dilation > 1; " */
    void **args;         /* points into plan->args */
    size_t scratch_offset;
    struct leati_prepacked *pack; /* may be shared with other plans; NULL: the kernel packs into scratch */
    leati_prepacked_set *packs;   /* the set that contains `pack` */
    struct leati_prepacked *next_pack; /* like `pack`, for weights that are being adopted */
    leati_prepacked_set *next_packs;
} leati_work;

/* The plan's data about one value. */
typedef struct leati_location {
    leati_value root;  /* the value whose memory this value has; itself if it has its own */
    size_t shift;      /* bytes from the beginning of the root's memory; 0 of a root */
    int32_t readers;   /* number of needed nodes that read it */
    int32_t last_read; /* index of the last reader; node_count for an output of the graph; -1: no reader */
    int32_t born;      /* of a root: index of the first node that uses its memory */
    int32_t dies;      /* of a root: index of the last node that uses its memory */
    size_t bytes;      /* of a root in the arena: kernel.output_bytes, or the bytes of its shape */
    size_t offset;     /* of a root in the arena */
    bool is_result;    /* on a device: a root in the block of results, not in the arena; see on_device.c */
} leati_location;

/* An argument that is set again when the arena, an input or the weights move. */
typedef struct leati_patch {
    void **arg;
    int32_t input; /* index of the graph input */
    size_t offset; /* in the arena, in the slab of weights, or on a device in the block of parameters */
} leati_patch;

/* A value that the front of a plan hands to the rest. */
typedef struct leati_handed {
    leati_value value; /* of the front's graph, for one group */
    size_t bytes;      /* of one group */
    unsigned char *memory;
} leati_handed;

/* A copy of the front for one thread.  The first one runs in the arena of the whole plan. */
typedef struct leati_lane {
    leati_plan *plan;
    leati_arena *arena;  /* of the other lanes; they use the first one's packed weights */
    const void **inputs; /* of a group */
    leat_status status;
    leat_error err;
    int64_t failed; /* the group that failed */
} leati_lane;

/* The first ops of a prediction, which run for one group of samples after the other (group_samples.c).  With several
 * lanes each thread computes the groups that it takes alone. */
typedef struct leati_front {
    leati_plan *plan; /* for one group: that of the first lane */
    leati_lane *lanes;
    int32_t lane_count;
    int64_t groups, samples; /* number of groups, and of samples in each */
    int32_t input_count, handed_count;
    size_t *input_bytes; /* by graph input: of one group; 0: all groups have the same */
    leati_handed *handed;
    const void **inputs; /* of the rest: the graph's inputs, then the memory of `handed` */
} leati_front;

struct leati_plan {
    leati_graph *graph;
    leati_plan_options options;
    int32_t node_count, value_count;
    leati_work *work;      /* by node */
    leati_location *place; /* by value */
    int32_t step_count;
    uint64_t runs;
    int32_t *steps; /* indices of the nodes that run, in order */
    void **args;
    int32_t arena_patch_count, input_patch_count, weight_patch_count;
    leati_patch *arena_patches, *weight_patches;
    leati_patch *input_patches;  /* on a device: by its block of parameters, the scalars included */
    unsigned char *resolved_for; /* the arena's memory into which args point */
    const void **bound;          /* memory of the graph inputs in the last run */
    int32_t input_count;
    size_t arena_bytes, bound_bytes;
    int32_t written_count;
    leati_memory *written; /* weights that the plan writes */
    size_t *final_from;    /* by step, of the slab that is watched (watch.c); NULL: none was */
    leati_slab final_slab;
    int64_t tuned_ns;            /* time spent on measuring */
    struct leati_blocks *blocks; /* NULL: the plan runs on the host */
    leati_front *front;          /* NULL: all ops run for the whole batch */
};

/* The parameters of one run: the seed and the step, the slab of scalars, the small inputs, which the run itself copies
 * from the host's block, then the large inputs, which are copied from where they are. */
typedef struct leati_parameters {
    unsigned char *memory, *host;      /* on the device; pinned, on the host, without the large inputs */
    leati_recording *recording;        /* of a whole run with these parameters; NULL: none yet */
    const unsigned char *recorded_for; /* the arena's memory during the recording */
} leati_parameters;

/* The memory of a plan of a device, beside the arena.  There are two blocks of parameters, so that the large inputs of
 * the next run can be copied during a run.  A run copies one block of results back: the faults of kernels
 * (leati_run.fault), and the graph's outputs. */
typedef struct leati_blocks {
    leati_parameters parameters[2];
    int current;  /* the block of the current or the last run, to which the kernels' arguments point */
    bool staged;  /* the other block has the large inputs of the next run */
    bool started; /* a run has started and has not been finished */
    bool waits;   /* the marks BEGIN and COPIED are around copies for which the run waits */
    bool watched,
        watching;         /* the current run is watched (leati_plan_watch_next), and the next one shall be */
    bool staging;         /* the copies whose times.staging_ns is known have not ended */
    int64_t copy_wait_ns; /* of the last finished run */
    leati_plan_times times;
    size_t parameter_bytes, small_bytes;
    size_t scalars_offset, scalars_bytes;
    int32_t input_count;
    size_t *input_offset, *input_bytes; /* by graph input */
    unsigned char *results, *results_host;
    size_t result_bytes; /* of faults and of outputs with memory of their own */
    size_t host_bytes;   /* of results_host: then come the outputs that lie elsewhere, in slabs for example */
    size_t *host_offset; /* by value, of outputs: in results_host */
    int32_t fault_count;
    int32_t *fault_of;        /* by node: number of its fault, or -1 */
    unsigned char *constants; /* on the device */
    size_t *constant_offset;  /* by value */
} leati_blocks;

/* Returns the number of threads for which kernels divide their work. */
static inline int leati_plan_threads(const leati_plan *plan) {
    return plan->options.deterministic ? LEATI_FIXED_PARTS : plan->options.threads;
}

static inline leati_device *leati_plan_device(const leati_plan *plan) {
    return plan->options.arena->device;
}

/* For plans of a device (on_device.c).  place: after the arena's layout is known which values are results; allocates
 * the blocks and copies the constants. */
void leati_plan_mark_results(leati_plan *plan);
leat_status leati_plan_place_blocks(leati_plan *plan, leat_error *err);
void leati_plan_free_blocks(leati_plan *plan);
/* Returns true if a value lies in the block of parameters, and gives its place there. */
bool leati_plan_is_parameter(const leati_plan *plan, leati_value root, size_t *offset);
/* Returns the address on the device of a value that is neither a parameter nor in the arena. */
void *leati_plan_address_on_device(const leati_plan *plan, leati_value root);
leat_status leati_plan_start_on_device(leati_plan *plan, const void *const *inputs, bool staged,
                                       uint64_t seed, uint64_t step, int64_t *step_ns, leat_error *err);
leat_status leati_plan_finish_on_device(leati_plan *plan, leat_error *err);
/* Notes when the run that has ended did what (run_times.c). */
leat_status leati_plan_note_times(leati_plan *plan, leat_error *err);
leat_status leati_plan_stage_on_device(leati_plan *plan, const void *const *inputs, leat_error *err);
/* Computes plan->final_from of a slab: after step s, no later step uses the slab from final_from[s] to its end. */
leat_status leati_plan_watch(leati_plan *plan, leati_slab slab, leat_error *err);
/* Runs one step of the plan; see plan.c. */
leat_status leati_plan_run_step(const leati_plan *plan, int32_t s, leati_run *run, leat_error *err);
void leati_plan_resolve_arena(leati_plan *plan);

/* Finds a kernel of the host's backends for the node: it folds constants, and host_fallback.c runs it for a device. */
leat_status leati_plan_host_kernel(const leati_plan *plan, int32_t n, leati_kernel *kernel, leat_error *err);
leat_status leati_plan_ask_host(const leati_plan *plan, const leati_task *task, leati_kernel *kernel,
                                leati_text *declined, leat_error *err);
/* Returns the host's kernel inside a kernel that leati_plan_make_host_fallback made; NULL for any other kernel. */
const leati_kernel *leati_kernel_on_host(const leati_kernel *kernel);
/* Returns the failure of the last run of such a kernel, and forgets it; LEAT_OK for any other kernel. */
leat_status leati_host_fallback_status(const leati_kernel *kernel, leat_error *err);
/* Wraps *kernel, which runs on the host, into a kernel of the plan's device: it copies the arguments to the host, runs
 * the kernel there, and copies the results back. */
leat_status leati_plan_make_host_fallback(const leati_plan *plan, const leati_task *task,
                                          leati_kernel *kernel, leat_error *err);

static inline const leati_node *leati_plan_node(const leati_plan *plan, int32_t n) {
    return plan->graph->nodes.items[n];
}
static inline const leati_value_info *leati_plan_value(const leati_plan *plan, leati_value value) {
    return plan->graph->values.items[value];
}
/* Returns the value whose memory `value` has. */
static inline leati_value leati_plan_root(const leati_plan *plan, leati_value value) {
    while (plan->place[value].root != value) value = plan->place[value].root;
    return value;
}
/* Returns the bytes from the beginning of that memory to the value. */
static inline size_t leati_plan_shift(const leati_plan *plan, leati_value value) {
    size_t shift = 0;
    for (; plan->place[value].root != value; value = plan->place[value].root)
        shift += plan->place[value].shift;
    return shift;
}

/* Returns true if the argument of an output is NULL: nobody reads the output, and its op has optional outputs. */
bool leati_plan_is_left_out(const leati_plan *plan, const leati_node *node, leati_value output);

/* If the plan is faster with it, takes the first nodes out of the graph into plan->front. */
leat_status leati_plan_group_samples(leati_plan *plan, leat_error *err);
void leati_plan_free_front(leati_plan *plan);
/* Runs the front for all groups.  step_ns (may be NULL) receives the times of its steps. */
leat_status leati_plan_run_front(leati_plan *plan, const void *const *inputs, uint64_t seed, uint64_t step,
                                 int64_t *step_ns, leat_error *err);
/* Returns the inputs of the rest: those of the graph, and what the front hands over. */
const void *const *leati_plan_rest_inputs(const leati_plan *plan, const void *const *inputs);

/* Marks the nodes on which outputs of the graph and writes to states depend, and counts the readers of each value. */
void leati_plan_eliminate_dead_nodes(leati_plan *plan);
/* Counts the readers of each value again, after nodes were dropped. */
void leati_plan_count_readers(leati_plan *plan);

/* Computes equal nodes once. */
leat_status leati_plan_merge(leati_plan *plan, leat_error *err);

/* Changes the type of the values with may_be_bf16 to bf16, except outputs of the graph. */
void leati_plan_store_bf16(leati_plan *plan);

/* Folds padding before convolutions, and slices after transposed convolutions, into their windows. */
void leati_plan_fold_padding(leati_plan *plan);

/* Returns true if `value` lies in a slab and a needed node of [first, last] writes its memory. */
bool leati_plan_is_written(const leati_plan *plan, leati_value value, int32_t first, int32_t last);

/* Nodes that may be fused into the node before them, in program order. */
#define LEATI_CHAIN_MAX 3
typedef struct leati_chain {
    int length;
    int32_t nodes[LEATI_CHAIN_MAX];
    leati_value reads[LEATI_CHAIN_MAX]; /* by node: the value before it in the chain, after reshapes */
} leati_chain;
void leati_plan_chain(const leati_plan *plan, int32_t n, leati_chain *chain);
/* Sets *out to node n with the first `length` nodes of the chain fused into it; the graph does not change. */
void leati_plan_fused(const leati_plan *plan, int32_t n, const leati_chain *chain, int length,
                      leati_node *out);
/* Replaces node n by `fused`, which leati_plan_fused has computed, and drops the fused nodes. */
void leati_plan_fuse(leati_plan *plan, int32_t n, const leati_chain *chain, int length,
                     const leati_node *fused);

/* Writes the names of the fused ops, such as "norm+add+relu" or "", into out.  Returns out. */
#define LEATI_POST_TEXT_BYTES 48
const char *leati_post_text(char out[LEATI_POST_TEXT_BYTES], const leati_attrs *attrs);

/* Finds a kernel for every needed node that is neither a view nor a store, and fuses nodes where a kernel allows it. */
leat_status leati_plan_choose(leati_plan *plan, leat_error *err);
/* Finds a kernel for each view and store that is not virtual. */
leat_status leati_plan_choose_rest(leati_plan *plan, leat_error *err);

/* Returns true if a tensor of the task is bf16. */
bool leati_task_has_bf16(const leati_task *task);
/* Copies the descriptions of the task's tensors, with f32 in place of bf16. */
void leati_task_as_f32(const leati_task *task, leati_desc *inputs, leati_desc *outputs);
/* Wraps *kernel, which serves the task with f32 in place of bf16, into a kernel that serves the task: bf16 tensors are
 * converted in scratch. */
leat_status leati_plan_make_f32_fallback(const leati_backend *const *backends, const leati_task *task,
                                         leati_kernel *kernel, leat_error *err);
/* Returns the kernel inside a fallback kernel; any other kernel itself. */
const leati_kernel *leati_kernel_inside(const leati_kernel *kernel);
/* Returns the backends whose kernels run where the plan's memory is. */
const leati_backend *const *leati_plan_backends(const leati_plan *plan);
/* Asks the implementations of one backend.  kernel->run stays NULL if all of them refuse. */
leat_status leati_plan_ask(const leati_backend *backend, const leati_task *task, leati_kernel *kernel,
                           leati_text *declined, leat_error *err);

/* For a heavy task of a plan with tuning, replaces work->kernel by the fastest kernel: by the tuning cache's choice, or
 * by measuring now. */
void leati_plan_tune(leati_plan *plan, const leati_node *node, const leati_task *task, leati_work *work);
/* Returns the number of multiplications and additions; 0 if memory bandwidth is the limit. */
double leati_plan_operations(const leati_plan *plan, const leati_node *node);

/* Runs nodes that depend only on constants now, if their outputs are small, and makes the outputs constants. */
leat_status leati_plan_fold(leati_plan *plan, leat_error *err);

/* Join nodes, where backends can compute several in one kernel: in a plan of a device element-wise nodes of one shape,
 * and moving averages; in all plans the products of a backward pass with their neighbours; in a plan of the host
 * depthwise convolutions with the convolutions that read them. */
leat_status leati_plan_fuse_elementwise(leati_plan *plan, leat_error *err);
leat_status leati_plan_fuse_averages(leati_plan *plan, leat_error *err);
leat_status leati_plan_fuse_products(leati_plan *plan, leat_error *err);
leat_status leati_plan_fuse_separable(leati_plan *plan, leat_error *err);

/* A group with the values that are its inputs and outputs. */
typedef struct leati_joined {
    leati_group group;
    leati_value inputs[LEATI_GROUP_INPUTS], outputs[LEATI_GROUP_OUTPUTS];
} leati_joined;

/* Returns the index of the group's input; -1: the group has too many. */
int32_t leati_joined_input(const leati_plan *plan, leati_joined *joined, leati_value value);
/* Asks the backends for a kernel for the group.  If one accepts, the last of the nodes becomes the group, and the
 * others are dropped; otherwise *accepted is false.  writes: bit i: the group writes its input i. */
leat_status leati_plan_join(leati_plan *plan, const leati_joined *joined, int count, const int32_t *nodes,
                            uint32_t writes, bool *accepted, leat_error *err);

/* Returns which inputs a node writes: bit i: input i. */
static inline uint32_t leati_plan_writes(const leati_plan *plan, int32_t n) {
    const leati_work *work = &plan->work[n];
    const leati_node *node = plan->graph->nodes.items[n];
    return work->joined ? work->writes : leati_op_descriptor_of(node->op)->writes;
}

/* Finds memory for the packed weights of each kernel, which outlives the run, if this plan does not write the
 * weights. */
leat_status leati_plan_prepack(leati_plan *plan, leat_error *err);
void leati_plan_release_prepacked(leati_plan *plan);
/* Invalidates, before a run, what was packed from weights that this plan writes. */
void leati_plan_invalidate_prepacked(const leati_plan *plan);
/* Returns true if `value` is a constant, or weights that this plan does not write. */
bool leati_plan_stays(const leati_plan *plan, leati_value value);
/* Returns the bytes of scratch that a node needs in the arena. */
static inline size_t leati_plan_scratch_bytes(const leati_work *work) {
    return work->kernel.scratch_bytes - (work->pack ? work->kernel.pack_bytes : 0);
}

/* Finds or allocates, in `packs`, memory for what the kernels pack from the weights at options.slabs.  Then either
 * leati_plan_take_prepacked puts it in the place of the previous packs, or, after a failure,
 * leati_plan_drop_found_prepacked releases it. */
leat_status leati_plan_find_prepacked(leati_plan *plan, leati_prepacked_set *packs, leat_error *err);
void leati_plan_take_prepacked(leati_plan *plan);
void leati_plan_drop_found_prepacked(leati_plan *plan);

/* Decides which values share memory: views, parts of larger values, values computed directly in a state, outputs that
 * overwrite an input. */
void leati_plan_alias(leati_plan *plan);

/* A block of memory in the arena and the time during which it is in use. */
typedef struct leati_block {
    int32_t first, last; /* indices of the first and the last node that use it */
    size_t bytes;        /* a multiple of the alignment */
    size_t offset;       /* set by leati_arena_lay_out */
} leati_block;

/* Computes the arena layout: the blocks in order of size, each in the smallest gap that holds it (Pisarchyk and Lee,
 * "Efficient memory management for deep neural net inference", 2020).  *bound is the largest number of bytes that live
 * at once; moments is the node count + 1. */
leat_status leati_arena_lay_out(leati_block *blocks, int32_t count, int32_t moments, size_t *arena_bytes,
                                size_t *bound, leat_error *err);

#endif
