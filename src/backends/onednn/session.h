/* SPDX-License-Identifier: Apache-2.0 */
/* A session: the engine, memories and list of primitives that one kernel uses, made when the plan is made.  A run sets
 * the memories' addresses to the arguments and executes the list; it creates nothing and looks nothing up.  The list
 * consists of parts, each a task of the thread pool, which executes its calls in order. */
#ifndef LEATI_BACKENDS_ONEDNN_SESSION_H
#define LEATI_BACKENDS_ONEDNN_SESSION_H

#include <math.h>

#include "backends/onednn/onednn_compat.h"
#include "engine/backend.h"

#define LEATI_DNNL_ARGS 10

/* A place in the memory of a run: `offset` bytes into argument `arg` of the kernel, or where that is negative into the
 * scratch or into the packed weights. */
enum { LEATI_DNNL_SCRATCH = -1, LEATI_DNNL_PACK = -2 };
typedef struct leati_dnnl_place {
    int arg;
    size_t offset;
} leati_dnnl_place;

static inline leati_dnnl_place leati_dnnl_arg_at(int arg, size_t offset) {
    return (leati_dnnl_place){arg, offset};
}

typedef struct leati_dnnl_memory {
    dnnl_memory_t memory;
    leati_dnnl_place place;
    void *now; /* the address set last */
} leati_dnnl_memory;

/* The part of the calls that run before all others, and only when weights are packed. */
enum { LEATI_DNNL_PACKING = -1 };

typedef struct leati_dnnl_call {
    int part;
    dnnl_primitive_t primitive;
    int count;
    dnnl_exec_arg_t args[LEATI_DNNL_ARGS];
} leati_dnnl_call;

/* How the threads share the work of an op: the number of parts to divide it into, at least, and the number of OpenMP
 * threads that execute each.  One of the two is 1. */
typedef struct leati_dnnl_sharing {
    int parts, openmp;
} leati_dnnl_sharing;

typedef struct leati_session leati_session;
struct leati_session {
    dnnl_engine_t engine;
    /* attr: of the primitive, which uses leat's scratchpad; plain: of reorders */
    dnnl_primitive_attr_t attr, plain;
    leati_dnnl_sharing sharing;
    int memory_count, call_count;
    leati_dnnl_memory *memories;
    leati_dnnl_call *calls;
    int part_count;
    dnnl_stream_t *streams; /* of the parts; that of the first also packs */
    bool packing;           /* calls that are added now pack weights */
    bool indivisible;       /* oneDNN does not compute the parts of this op */
    size_t pack_bytes;
    /* What no primitive does, or NULL: `before` runs before the calls that pack, `after` after all parts.  `data` is
     * theirs, freed with leati_free(). */
    void (*before)(const leati_session *s, void *const *args, const leati_run *run, unsigned char *pack);
    void (*after)(const leati_session *s, void *const *args, const leati_run *run);
    void *data;
};

/* Begins another part: calls that are added from now on belong to it. */
leat_status leati_session_next_part(leati_session *s, leat_error *err);

/* Adds a memory at an argument of the kernel, or in the kernel's scratch, which grows.  *out is its index, for
 * leati_session_call(). */
leat_status leati_session_argument(leati_session *s, leati_md md, leati_dnnl_place place, int *out,
                                   leat_error *err);
leat_status leati_session_scratch(leati_session *s, leati_kernel *kernel, leati_md md, int *out,
                                  leat_error *err);
/* Adds a memory among the packed weights, which are kept until the weights change. */
leat_status leati_session_pack(leati_session *s, leati_md md, int *out, leat_error *err);
/* Adds a copy of memory `from_memory` in layout `to`, which is made when weights are packed; *out is from_memory
 * itself where the layouts are equal. */
leat_status leati_session_packed(leati_session *s, leati_kernel *kernel, leati_md from, int from_memory,
                                 leati_md to, int *out, leat_error *err);

/* Like leati_session_argument(), but where the primitive wants another layout than `plain`, adds a scratch memory
 * of that layout, and for an input a reorder from the argument.  For an output call leati_session_target() before
 * the primitive and leati_session_output() after it. */
leat_status leati_session_input(leati_session *s, leati_kernel *kernel, leati_md plain, leati_md wanted,
                                leati_dnnl_place place, int *out, leat_error *err);
leat_status leati_session_target(leati_session *s, leati_kernel *kernel, leati_md plain, leati_md wanted,
                                 leati_dnnl_place place, int *out, leat_error *err);
leat_status leati_session_output(leati_session *s, leati_kernel *kernel, leati_md plain, leati_md made,
                                 int memory, leati_dnnl_place place, leat_error *err);

/* Returns the address of a memory in this run; pack: where this run's packed weights are. */
void *leati_session_at(const leati_session *s, int memory, void *const *args, const leati_run *run,
                       unsigned char *pack);

typedef struct leati_dnnl_arg {
    int arg; /* DNNL_ARG_... */
    int memory;
} leati_dnnl_arg;

/* Adds a primitive to the list, and its scratchpad to the kernel's scratch; `named`: the kernel is named after it. */
leat_status leati_session_call(leati_session *s, leati_kernel *kernel, dnnl_primitive_desc_t pd, int count,
                               const leati_dnnl_arg *args, bool named, leat_error *err);

/* kernel->run of every session. */
leat_status leati_session_run(const leati_kernel *kernel, void *const *args, const leati_run *run,
                              leat_error *err);

leat_status leati_dnnl_fail(leat_error *err, dnnl_status_t status, const char *action);

/* Returns the name of the oneDNN implementation that a descriptor stands for, such as "jit:avx2". */
const char *leati_dnnl_name(const_dnnl_primitive_desc_t pd);

/* Describes for people the layouts of the kernel's data and weights (NULL: none), for example "nChw8c weights
 * OIhw8i8o". */
void leati_session_layout(leati_kernel *kernel, leati_md data, leati_md weights);

static inline leati_md leati_pd_md(const_dnnl_primitive_desc_t pd, dnnl_query_t query) {
    return dnnl_primitive_desc_query_md(pd, query, 0);
}

/* The part of an implementation that runs within leati_session_prepare(): makes the descriptors, and either adds
 * calls or declines by writing the reason into why. */
typedef leat_status (*leati_session_describe)(leati_session *s, const leati_task *task, leati_kernel *kernel,
                                              char *why, leat_error *err);

/* Returns the sharing of `operations` operations: by parts, which one OpenMP thread computes, so that the result of a
 * deterministic task, which has a fixed number of parts, depends on no number of threads. */
#define LEATI_MANY INFINITY
leati_dnnl_sharing leati_share_parts(const leati_task *task, double operations);
/* The same by OpenMP threads, among which oneDNN divides sums, so that a deterministic task gets one thread. */
leati_dnnl_sharing leati_share_sums(const leati_task *task, double operations);

/* Returns oneDNN's type for a tensor: f32 or bf16. */
dnnl_data_type_t leati_dnnl_type(const leati_desc *desc);
/* True for a task without bf16, or one that oneDNN supports: the CPU multiplies bf16, the tensors of `must` (bit i:
 * argument i of the kernel) are bf16, those of `may` may be, no other is, and an addend has the type of output 0.
 * Otherwise writes the reason into why. */
bool leati_dnnl_takes(const leati_task *task, uint32_t must, uint32_t may, char *why);

/* Adds the fused addition (of a tensor like dst) and function of attrs->post to the session's attributes.  *fused
 * is false, with the reason in why, where oneDNN does not support the function. */
leat_status leati_session_fuse(leati_session *s, const leati_task *task, leati_md dst, bool *fused, char *why,
                               leat_error *err);
/* Adds the addend, if there is one, to a primitive's arguments; it begins `offset` bytes into its tensor. */
leat_status leati_session_addend(leati_session *s, const leati_task *task, leati_md dst, size_t offset,
                                 leati_dnnl_arg *args, int *count, leat_error *err);

/* Begins a session and calls `describe` with the number of OpenMP threads set; leaves *kernel zeroed unless the session
 * has calls.  If the op turns out to be indivisible, begins again with OpenMP threads in place of parts. */
leat_status leati_session_prepare(const leati_task *task, leati_dnnl_sharing sharing, leati_kernel *kernel,
                                  char *why, leat_error *err, leati_session_describe describe);

/* Checks the status of making a primitive descriptor.  Returns LEAT_OK with *pd NULL, and the reason in why, where
 * oneDNN has no implementation, or only its slow reference one. */
leat_status leati_session_accept(dnnl_status_t status, dnnl_primitive_desc_t *pd, char *why, leat_error *err);

#define LEATI_DNNL_TRY(call, query)                                                                          \
    do {                                                                                                     \
        dnnl_status_t leati_dnnl_status = (call);                                                            \
        if (leati_dnnl_status != dnnl_success) return leati_dnnl_fail(err, leati_dnnl_status, query);        \
    } while (0)

#endif
