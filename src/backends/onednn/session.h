/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel's use of oneDNN: an engine, memories and a short list of primitives, made when the plan is made.  A run
 * points the memories at the arguments and executes the list; nothing is made or looked up then. */
#ifndef LEATI_BACKENDS_ONEDNN_SESSION_H
#define LEATI_BACKENDS_ONEDNN_SESSION_H

#include <math.h>

#include "backends/onednn/onednn_compat.h"
#include "engine/backend.h"

#define LEATI_DNNL_MEMORIES 12
#define LEATI_DNNL_CALLS    4
#define LEATI_DNNL_ARGS     10

/* Where a memory lies at a run: args[arg], or at offset in the scratch or in what is packed. */
enum { LEATI_DNNL_SCRATCH = -1, LEATI_DNNL_PACK = -2 };

typedef struct leati_dnnl_memory {
    dnnl_memory_t memory;
    int arg;
    size_t offset;
    void *now; /* the handle set last */
} leati_dnnl_memory;

typedef struct leati_dnnl_call {
    bool packs; /* runs only where the pack is to be made */
    dnnl_primitive_t primitive;
    int count;
    dnnl_exec_arg_t args[LEATI_DNNL_ARGS];
} leati_dnnl_call;

typedef struct leati_session leati_session;
struct leati_session {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attr, plain; /* scratchpad from the user; of the primitive, of reorders */
    int threads, memory_count, call_count;
    leati_dnnl_memory memories[LEATI_DNNL_MEMORIES];
    leati_dnnl_call calls[LEATI_DNNL_CALLS];
    bool packing; /* what is added now packs */
    size_t pack_bytes;
    /* Where not NULL: before the calls that pack, what no primitive does; `own` is its numbers, freed with leati_free. */
    void (*before)(const leati_session *s, const leati_kernel *kernel, void *const *args,
                   const leati_run *run, unsigned char *pack);
    void *own;
};

/* A memory at an argument of the kernel, or in its scratch (which grows).  Returns through *out a number for
 * leati_session_call. */
leat_status leati_session_argument(leati_session *s, leati_md md, int arg, int *out, leat_error *err);
leat_status leati_session_scratch(leati_session *s, leati_kernel *kernel, leati_md md, int *out,
                                  leat_error *err);
/* A memory among what is packed: kept as long as the weights are. */
leat_status leati_session_pack(leati_session *s, leati_md md, int *out, leat_error *err);
/* A copy of memory `from` in layout `to` that is made when weights are packed; `from` itself where the layouts agree. */
leat_status leati_session_packed(leati_session *s, leati_kernel *kernel, leati_md from, int from_memory,
                                 leati_md to, int *out, leat_error *err);

/* As leati_session_argument; where the primitive wants another layout than `plain`, a scratch memory of that layout
 * and a reorder from (input) the argument.  For outputs call leati_session_output after the primitive. */
leat_status leati_session_input(leati_session *s, leati_kernel *kernel, leati_md plain, leati_md wanted,
                                int arg, int *out, leat_error *err);
leat_status leati_session_target(leati_session *s, leati_kernel *kernel, leati_md plain, leati_md wanted,
                                 int arg, int *out, leat_error *err);
leat_status leati_session_output(leati_session *s, leati_kernel *kernel, leati_md plain, leati_md made,
                                 int memory, int arg, leat_error *err);

/* Where memory `memory` lies at this run; pack: what a run packs into. */
void *leati_session_at(const leati_session *s, int memory, void *const *args, const leati_run *run,
                       unsigned char *pack);

typedef struct leati_dnnl_arg {
    int arg; /* DNNL_ARG_ */
    int memory;
} leati_dnnl_arg;

/* Adds a primitive to the list and its scratchpad to the kernel's scratch; names the kernel after it where `named`. */
leat_status leati_session_call(leati_session *s, leati_kernel *kernel, dnnl_primitive_desc_t pd, int count,
                               const leati_dnnl_arg *args, bool named, leat_error *err);

/* kernel->run of every session. */
leat_status leati_session_run(const leati_kernel *kernel, void *const *args, const leati_run *run,
                              leat_error *err);

leat_status leati_dnnl_fail(leat_error *err, dnnl_status_t status, const char *what);

/* "jit:avx2": which of oneDNN's implementations a descriptor means. */
const char *leati_dnnl_name(const_dnnl_primitive_desc_t pd);

/* For people: the kernel works on data, and weights (NULL: none), of these layouts: "nChw8c weights OIhw8i8o". */
void leati_session_layout(leati_kernel *kernel, leati_md data, leati_md weights);

static inline leati_md leati_pd_md(const_dnnl_primitive_desc_t pd, dnnl_query_t what) {
    return dnnl_primitive_desc_query_md(pd, what, 0);
}

/* What an implementation does inside `leati_session_prepare`: describes, and either adds calls or declines by writing
 * into why. */
typedef leat_status (*leati_session_describe)(leati_session *s, const leati_task *task, leati_kernel *kernel,
                                              char *why, leat_error *err);

/* How many of the task's threads a product of so many operations is worth.  `sums`: oneDNN cuts sums by threads, so that one alone may serve a deterministic task. */
#define LEATI_MANY INFINITY
int leati_threads_for(const leati_task *task, double operations, bool sums);

/* oneDNN's name for the type of a tensor: f32 or bf16. */
dnnl_data_type_t leati_dnnl_type(const leati_desc *desc);
/* Whether a task with bf16 is for oneDNN: this CPU multiplies it, the tensors of `must` (bit i: argument i of the kernel)
 * are bf16, those of `may` may be, no other is, and an addend is what output 0 is.  Says why not. */
bool leati_dnnl_takes(const leati_task *task, uint32_t must, uint32_t may, char *why);

/* Puts the addition (of a tensor like dst) and the function of attrs->post into the session's attributes; false, with the
 * reason, where oneDNN has no such function. */
leat_status leati_session_fuse(leati_session *s, const leati_task *task, leati_md dst, bool *fused, char *why,
                               leat_error *err);
/* Adds the addend to a primitive's arguments, where there is one. */
leat_status leati_session_addend(leati_session *s, const leati_task *task, leati_md dst, leati_dnnl_arg *args,
                                 int *count, leat_error *err);

/* Begins a session, describes it under this thread count, and leaves *kernel zeroed unless it has calls. */
leat_status leati_session_prepare(const leati_task *task, int threads, leati_kernel *kernel, char *why,
                                  leat_error *err, leati_session_describe describe);

/* Status of making a descriptor: LEAT_OK and *pd NULL, with the reason, where oneDNN has no such implementation, or
 * only its slow one. */
leat_status leati_session_accept(dnnl_status_t status, dnnl_primitive_desc_t *pd, char *why, leat_error *err);

#define LEATI_DNNL_TRY(call, what)                                                                           \
    do {                                                                                                     \
        dnnl_status_t leati_dnnl_status = (call);                                                            \
        if (leati_dnnl_status != dnnl_success) return leati_dnnl_fail(err, leati_dnnl_status, what);         \
    } while (0)

#endif
