/* SPDX-License-Identifier: Apache-2.0 */
/* What a backend gives: for each op, implementations in the order in which they should be tried.  The plan asks every
 * backend in turn, `ref` last; the first implementation that accepts a task serves it, and a refusal says why. */
#ifndef LEATI_ENGINE_BACKEND_H
#define LEATI_ENGINE_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/op_semantics/op.h"
#include "base/threads/thread_pool.h"
#include "leat/error.h"

/* What a kernel may know of the run that it is part of. */
typedef struct leati_run {
    uint64_t seed; /* of dropout */
    uint64_t step; /* counts training steps: another step, other masks */
    uint64_t
        turn; /* counts the plan's runs: for kernels that read memory from either end in turn, to the same result */
    void *scratch; /* kernel->scratch_bytes, 64-byte aligned, contents undefined */
    /* Memory for what the kernel packs (kernel->pack_bytes), which then is not part of scratch; `packed`: it still holds
     * what this kernel, or one with the same pack_key, made of the same inputs.  NULL: the last pack_bytes of scratch. */
    void *pack;
    bool packed;
    leati_thread_pool *pool; /* to share work with (leati_thread_pool_share); NULL: the caller alone */
} leati_run;

typedef struct leati_kernel leati_kernel;
struct leati_kernel {
    char implementation[64]; /* "ref", "onednn jit:avx2" */
    char layout[48]; /* for people, what it works on: "nhwc weights Ohwi8o"; "": all as leat keeps it */
    /* args: the inputs, then the outputs; NULL for an absent input or an output that nobody reads.
     * Allocates nothing, takes no lock. */
    leat_status (*run)(const leati_kernel *kernel, void *const *args, const leati_run *run, leat_error *err);
    void (*destroy)(void *state); /* may be NULL */
    void *state;
    size_t scratch_bytes;
    /* The end of scratch: what the kernel makes of the inputs pack_inputs (bit i: input i) alone, such as weights in a
     * layout of its own.  The plan keeps it as long as those inputs stay as they are.  Kernels whose keys are the same
     * make the same of the same inputs. */
    size_t pack_bytes;
    uint32_t pack_inputs;
    char pack_key[64];
    /* For people: copies into another layout, of what is packed and of what each run must copy, and what they write. */
    int pack_reorders, reorders;
    size_t pack_reorder_bytes, reorder_bytes;
    size_t output_bytes
        [LEATI_MAX_OUTPUTS]; /* 0: what the shape says; a workspace is as large as its kernel says */
};

/* The parts of sums where results must not depend on the number of threads, and the most threads that such a sum can use. */
#define LEATI_FIXED_PARTS 8

/* One node, as a backend sees it. */
typedef struct leati_task {
    leati_op op;
    const leati_attrs *attrs;
    int input_count, output_count;
    const leati_desc *inputs; /* rank -1: absent */
    const leati_desc *outputs;
    uint32_t unused; /* bit i: nobody reads output i */
    int threads;     /* to compute with, now and at every run: a kernel cuts its work into so many parts */
    /* What comes out must depend on nothing but the task: `threads` is LEATI_FIXED_PARTS everywhere, and `present`, which
     * must not matter, says how many there are.  `present` has no meaning otherwise. */
    bool deterministic;
    int present;
    bool
        measured; /* who asks has measured, or will: rules of thumb refuse nothing, and leave no thread out */
    const leati_kernel *forward; /* that of the node whose gradient this is: its workspace is passed; NULL */
} leati_task;

/* What is worth a thread: some 30 us of one core.  (On two Zen 3 cores two threads need 10 us for 1 million operations where
 * one needs 12, 17 for 2 million where one needs 23, 110 for 17 million where one needs 180; and a sleeping thread takes
 * 50 us to wake.) */
#define LEATI_THREAD_OPERATIONS 3e6
static inline int leati_worthwhile_threads(const leati_task *task, double operations) {
    return operations < LEATI_THREAD_OPERATIONS && !task->measured ? 1 : task->threads;
}

/* The number of the op's own inputs: what is fused reads those after them. */
static inline int leati_op_inputs(const leati_task *task) {
    bool reads = task->attrs->post.kinds & (LEATI_POST_NORM | LEATI_POST_ADD);
    return task->input_count - (reads ? LEATI_POST_INPUTS : 0);
}

typedef struct leati_implementation {
    leati_op op;
    /* Fills *kernel (zeroed before); or leaves kernel->run NULL and writes into why (reason_bytes long) a few words:
     * "dilation > 1".  An error is for what should not happen: no memory, a library that failed. */
    leat_status (*prepare)(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err);
    uint32_t
        fuses; /* leati_post_kind that it looks at in attrs->post, and serves or refuses; is not asked for others */
    /* It looks at whether tensors are bf16, and serves or refuses; else it is asked as if all were f32 (engine/plan/bf16_fallback.c). */
    bool narrow;
} leati_implementation;

#define LEATI_REASON_BYTES 96

typedef struct leati_backend {
    const char *name;
    const leati_implementation *implementations; /* several for one op: in order of preference */
    size_t count;
    void (*name_version)(char *out,
                         size_t bytes); /* what its speed depends on beside the CPU; NULL: nothing */
} leati_backend;

/* The backends in order of preference, NULL at the end.  Defined by the composition root, src/leat.c; a test program
 * defines its own. */
extern const leati_backend *const leati_backends[];

#endif
