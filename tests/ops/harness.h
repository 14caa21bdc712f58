/* SPDX-License-Identifier: Apache-2.0 */
/* Table-driven tests of ops: a case is an op, its attributes and the shapes of its inputs.  For every backend of the
 * test program the harness compares outputs and gradients with ref's, and gradients with finite differences of ref.
 *
 * To add cases, write a file cases_<family>.c with `const op_case cases_<family>[]`, ended by {0}, and add the
 * family to OP_FAMILY_LIST below and to CMakeLists.txt.  Choose small shapes: each input costs some hundred runs
 * of ref.  Where a function has corners or ties, choose a fill that avoids them: finite differences go up to 2 *
 * OP_STEP to either side.
 *
 *     {.name = "conv 3x3 same", .op = LEATI_OP_CONV, .attrs = {.conv = {...}}, .input_count = 3,
 *      .inputs = {OP_F32(2, 5, 5, 3), OP_F32(3, 3, 3, 4), OP_F32(4)}}, */
#ifndef LEAT_TESTS_OPS_HARNESS_H
#define LEAT_TESTS_OPS_HARNESS_H

#include <stddef.h>

#include "engine/backend.h"

#define OP_MAX_INPUTS 16
#define OP_STEP       0.03125 /* step size of the finite differences */

#define OP_FAMILY_LIST(X)                                                                                    \
    X(eltwise)                                                                                               \
    X(binary)                                                                                                \
    X(reduce)                                                                                                \
    X(softmax)                                                                                               \
    X(attention)                                                                                             \
    X(matmul)                                                                                                \
    X(conv)                                                                                                  \
    X(pooling)                                                                                               \
    X(resample)                                                                                              \
    X(batch_norm)                                                                                            \
    X(rnn)                                                                                                   \
    X(shape)                                                                                                 \
    X(labels)                                                                                                \
    X(update)

typedef enum op_fill {
    OP_UNIFORM = 0, /* in [low, high), or in [-1, 1) where both are 0 */
    OP_DISTINCT,    /* all different, evenly spread from low to high, in random order */
    OP_SIGNED,      /* of either sign, with an absolute value in [low, high) */
    OP_WHOLE,       /* integers from low to high, both included, of any data type */
    OP_ONE_HOT,     /* along the last axis */
    OP_CONSTANT     /* all equal to low */
} op_fill;

typedef struct op_input {
    leati_desc desc; /* rank -1: absent */
    op_fill fill;
    double low, high;
} op_input;

#define OP_DESC(type, ...)                                                                                   \
    .desc = {.dtype = (type),                                                                                \
             .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                                     \
             .shape = {__VA_ARGS__}}
#define OP_F32(...)                                                                                          \
    { OP_DESC(LEAT_F32, __VA_ARGS__) }
#define OP_FILLED(how, lo, hi, ...)                                                                          \
    { OP_DESC(LEAT_F32, __VA_ARGS__), .fill = (how), .low = (lo), .high = (hi) }
#define OP_TYPED(type, lo, hi, ...)                                                                          \
    { OP_DESC(type, __VA_ARGS__), .fill = OP_WHOLE, .low = (lo), .high = (hi) }
#define OP_SCALAR                                                                                            \
    {                                                                                                        \
        .desc = {.dtype = LEAT_F32, .rank = 0 }                                                              \
    }
#define OP_ABSENT                                                                                            \
    {                                                                                                        \
        .desc = {.rank = -1 }                                                                                \
    }

typedef struct op_case {
    const char *name; /* NULL ends the table */
    leati_op op;
    leati_attrs attrs;
    int input_count;
    op_input inputs[OP_MAX_INPUTS];
    /* a function applied to output 0, which a plan may fuse into the op; NULL: none */
    const leati_eltwise *then;
    bool bends;                /* the function may be not differentiable anywhere: no finite differences */
    uint32_t opaque;           /* bit i: output i is a workspace and is not compared */
    uint32_t constant;         /* bit i: the gradient with respect to input i is not tested */
    double tolerance;          /* of outputs against ref, relative to the largest element; 0: 1e-5 */
    double gradient_tolerance; /* of gradients against finite differences, likewise; 0: 1e-3 */
} op_case;

#define OP_FAMILY_DECLARED(family) extern const op_case cases_##family[];
OP_FAMILY_LIST(OP_FAMILY_DECLARED)
#undef OP_FAMILY_DECLARED

/* Fails the calling cmocka test unless `backend` agrees with ref and with finite differences; ref serves the ops
 * that `backend` declines.  threads: number of threads to compute with. */
void op_check(const op_case *c, const leati_backend *backend, int threads);
/* Like op_check(), but compares bf16, wherever the engine allows it, with ref in f32. */
/* Like op_check() without finite differences, on a device. */
void op_check_on(const op_case *c, leati_device *device, bool bf16);
void op_check_bf16(const op_case *c, const leati_backend *backend, int threads);

#endif
