/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of a backend: for each op, its implementations in the order in which they should be tried.  The plan
 * asks the backends in order, `ref` last, and takes the first implementation that accepts the task.  A refusal says
 * why. */
#ifndef LEATI_ENGINE_BACKEND_H
#define LEATI_ENGINE_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/device.h"
#include "engine/op_semantics/op.h"
#include "base/threads/thread_pool.h"
#include "leat/error.h"

/* What a kernel may know about the current run of the plan. */
typedef struct leati_run {
    uint64_t seed; /* of dropout */
    uint64_t step; /* number of the training step; the masks of dropout depend on it */
    /* The number of earlier runs of the plan.  Some kernels alternate the direction in which they read memory, so that
     * they start with data that is still in the cache; the result does not depend on the direction. */
    uint64_t run_number;
    void *scratch; /* kernel->scratch_bytes, 64-byte aligned, contents undefined */
    /* Memory for what the kernel packs (kernel->pack_bytes).  NULL: the kernel packs into the last pack_bytes of
     * scratch. `packed` is true if the memory still holds what this kernel, or one with the same pack_key, packed from
     * the same inputs. */
    void *pack;
    bool packed;
    const struct leati_exchange *exchange; /* with other ranks (engine/exchange.h); NULL: there are none */
    leati_thread_pool *pool; /* for leati_thread_pool_share; NULL: the caller is the only thread */
    /* NULL: the plan runs on the host.  Otherwise `run` of a kernel adds work to the device's queue, and that work may
     * be repeated without another call of `run`; for this reason it reads the seed and the step in `clock`. */
    leati_device *device;
    const uint64_t *clock; /* in the device's memory: the seed, then the step */
    /* In the device's memory: where a kernel with `explain` reports a fault of its data; LEATI_NO_FAULT: none yet. */
    uint64_t *fault;
} leati_run;

/* A fault that a kernel of a device finds in its data is one number, and the lowest number is reported. */
#define LEATI_NO_FAULT UINT64_MAX

typedef struct leati_kernel leati_kernel;
struct leati_kernel {
    char implementation[64]; /* "ref", "onednn jit:avx2" */
    char layout[48]; /* its memory layouts, for reports: "nhwc weights Ohwi8o"; "": leat's own layouts */
    /* Computes the op.  args: the inputs, then the outputs; NULL for an absent input or an output that nobody reads.
     * The function allocates nothing and takes no lock. */
    leat_status (*run)(const leati_kernel *kernel, void *const *args, const leati_run *run, leat_error *err);
    void (*destroy)(void *state); /* may be NULL */
    void *state;
    size_t scratch_bytes;
    /* Bytes of scratch, included in scratch_bytes, for data that depends only on the inputs in pack_inputs (bit i:
     * input i), for example weights in the kernel's own layout.  The plan keeps the data as long as these inputs do not
     * change. Kernels with the same pack_key pack the same inputs to the same bytes. */
    size_t pack_bytes;
    uint32_t pack_inputs;
    char pack_key[64];
    /* For reports: the number of copies into another layout, per packing and per run, and the bytes that they write. */
    int pack_reorders, reorders;
    size_t pack_reorder_bytes, reorder_bytes;
    /* Kernels of a device: returns the error that the fault stands for.  NULL: the kernel reports no faults. */
    leat_status (*explain)(const leati_kernel *kernel, uint64_t fault, leat_error *err);
    int64_t narrow_weights; /* how many weights the kernel keeps in task->weights_format; f32: 0 */
    size_t output_bytes
        [LEATI_MAX_OUTPUTS]; /* 0: bytes of the output's shape; a kernel sets it for a workspace */
};

/* The number of parts into which a sum is cut if its result must not depend on the number of threads.  It is also the
 * largest number of threads that such a sum can use. */
#define LEATI_FIXED_PARTS 8

/* How a plan that only predicts keeps weights that do not change.  The kernels that know no other format than f32
 * keep f32. */
typedef enum leati_weights_format {
    LEATI_WEIGHTS_F32,
    LEATI_WEIGHTS_BF16,
    LEATI_WEIGHTS_INT8 /* one scale for each row, that is, for each output of the op */
} leati_weights_format;

/* A node of the graph, as a backend sees it. */
typedef struct leati_task {
    leati_op op;
    const leati_attrs *attrs;
    int input_count, output_count;
    const leati_desc *inputs; /* rank -1: absent */
    const leati_desc *outputs;
    uint32_t unused; /* bit i: nobody reads output i */
    int threads;     /* number of parts into which a kernel cuts its work, at every run */
    /* True if the result must depend on nothing but the task.  Then `threads` is LEATI_FIXED_PARTS, and `present` is
     * the real number of threads, which must not change the result.  Otherwise `present` has no meaning. */
    bool deterministic;
    int present;
    /* True if the caller measures the kernels: an implementation then refuses nothing, and leaves no thread idle,
     * because of a rule of thumb about speed.  On a device: the implementation itself may measure how it computes the
     * task.  Otherwise it chooses by rules, so that all processes compute the same bytes. */
    bool measured;
    /* The kernel of the forward node whose gradient this task computes, and whose workspace is an input; or NULL. */
    const leati_kernel *forward;
    leati_device *device; /* the device that runs the kernel; NULL: the host */
    /* How to keep the weights: other than f32 only for MATMUL and RNN, if the inputs with the weights do not change. */
    leati_weights_format weights_format;
    bool weights_stay; /* MATMUL: runs do not change the second input, so that it stays packed */
} leati_task;

/* The least number of operations for which more than one thread pays: about 30 us of one core.  On two Zen 3 cores, two
 * threads need 10 us for 1 million operations (one thread: 12 us), 17 us for 2 million (23 us) and 110 us for 17
 * million (180 us); a sleeping thread takes 50 us to wake. */
#define LEATI_THREAD_OPERATIONS 3e6
/* How many operations of products take as long as one of a depthwise convolution. */
#define LEATI_DEPTHWISE_OPERATIONS 5
static inline int leati_worthwhile_threads(const leati_task *task, double operations) {
    return operations < LEATI_THREAD_OPERATIONS && !task->measured ? 1 : task->threads;
}

/* Returns the number of the op's own inputs.  The inputs of the ops that are fused into it come after its own. */
static inline int leati_op_inputs(const leati_task *task) {
    bool reads = task->attrs->post.kinds & (LEATI_POST_NORM | LEATI_POST_ADD);
    return task->input_count - (reads ? LEATI_POST_INPUTS : 0);
}

typedef struct leati_implementation {
    leati_op op;
    /* Fills *kernel, which is zeroed before.  To refuse, it leaves kernel->run NULL and writes a short reason into
     * `why` (LEATI_REASON_BYTES), for example "dilation > 1".  It returns an error if memory is lacking or a library
     * fails. */
    leat_status (*prepare)(const leati_task *task, leati_kernel *kernel, char *why, leat_error *err);
    /* The leati_post_kind bits that `prepare` knows: it serves or refuses them.  It is not called for other kinds. */
    uint32_t fuses;
    /* True if `prepare` knows bf16 tensors: it serves or refuses them.  Otherwise it is called only for tasks with f32
     * in their place (engine/plan/bf16_fallback.c). */
    bool takes_bf16;
} leati_implementation;

#define LEATI_REASON_BYTES 96

/* Several nodes that one kernel computes.  There are five sorts; a plan of the host has no element-wise
 * ops and moving averages.
 * Element-wise ops of one shape (engine/plan/fuse_elementwise.c): ELTWISE, ELTWISE_BWD, BINARY of f32 or bf16, DROPOUT,
 * and CAST to f32 or bf16.  Their results have the shape of `whole`; the operands of BINARY may be broadcast to it.
 * Moving averages (engine/plan/fuse_averages.c): MOVING_AVERAGE, whose operands are its state and its value, and before
 * some of them the ELTWISE linear that computes the value.  No two states overlap.
 * Products (engine/plan/fuse_products.c): a MATMUL of inputs 0 and 1, of rank 2 or more, without bias; then ELTWISE_BWD
 * whose diff_dst is its result, which nobody else reads; or, before it, REDUCE of input 1, a sum over axis 0 of two.
 * Losses (the same file): SOFTMAX_XENT of inputs 0 and 1; then BINARY, which multiplies its gradient, which nobody else
 * reads, by input 2, a scalar or one number for each row.  Output 1 is the loss.
 * Separable convolutions (engine/plan/fuse_separable.c), of the host alone: CONV with one filter per channel, then
 * CONV, which alone reads its result, of the shape of `whole`; each with the ops that are fused into it.  Its inputs,
 * but for the source, follow one another from its second operand on; absent ones have rank -1.
 * The outputs do not share memory with an input. */
#define LEATI_GROUP_MOST    32 /* members */
#define LEATI_GROUP_INPUTS  32
#define LEATI_GROUP_OUTPUTS LEATI_MAX_OUTPUTS
#define LEATI_GROUP_NOTHING INT32_MAX

typedef struct leati_group_member {
    leati_op op;
    const leati_attrs *attrs;
    /* At least 0: the index of an input.  Negative: -1 - the index of an earlier member, whose result it is. */
    int32_t operands[2]; /* LEATI_GROUP_NOTHING: absent */
    int32_t output; /* index of the output that is the result; LEATI_GROUP_NOTHING: only members read it */
} leati_group_member;

typedef struct leati_group {
    int length, input_count, output_count;
    leati_group_member members[LEATI_GROUP_MOST]; /* in program order */
    leati_desc inputs[LEATI_GROUP_INPUTS];
    leati_desc outputs[LEATI_GROUP_OUTPUTS]; /* output 0 is the last member's result */
    leati_desc whole;                        /* of element-wise ops, and of separable convolutions */
    bool deterministic;                      /* as in leati_task; of products, like the number of threads */
    int threads;
    leati_device *device; /* NULL: the host */
} leati_group;

typedef struct leati_backend {
    const char *name;
    const leati_implementation *implementations; /* for each op, in order of preference */
    size_t count;
    /* Names the version on which the backend's speed depends; NULL: only the CPU and leat's version matter. */
    void (*name_version)(char *out, size_t bytes);
    /* Fills *kernel for a group, or refuses it, as leati_implementation.prepare does.  args: the group's inputs, then
     * its outputs.  Output 0 may have the memory of an input with the same type and number of elements, if the group
     * has element-wise ops.  NULL: it refuses all groups. */
    leat_status (*prepare_group)(const leati_group *group, leati_kernel *kernel, char *why, leat_error *err);
} leati_backend;

/* The backends in order of preference, with NULL at the end.  src/leat.c defines this table; a test program defines its
 * own. */
extern const leati_backend *const leati_backends[];

#endif
