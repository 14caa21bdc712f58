/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of the element-wise kernels.
 *
 * leati_cuda_program computes a program of element-wise steps.  Each thread has an accumulator for each of its
 * elements.  A step combines the accumulator with a source, which is an input or a value that an earlier step has
 * saved.  After the step, the accumulator may be saved, in shared memory, and stored, in an output.  A program of one
 * or two steps is an op; a longer one is a chain of ops. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_ELEMENTWISE_H
#define LEATI_BACKENDS_CUDA_KERNELS_ELEMENTWISE_H

#include <stdint.h>

#include "backends/cuda/kernels/functions.h"

enum {
    LEATI_CUDA_PROGRAM_STEPS = 16,
    LEATI_CUDA_PROGRAM_INPUTS = 8,
    LEATI_CUDA_PROGRAM_OUTPUTS = 4,
    LEATI_CUDA_PROGRAM_MAPS = 4,
    LEATI_CUDA_PROGRAM_SAVED = 4,
    LEATI_CUDA_PROGRAM_THREADS = 256,
    LEATI_CUDA_PROGRAM_QUADS = 2, /* of 4 consecutive elements for each thread */
    LEATI_CUDA_MOST_AXES = 8
};

/* The type of an element; the numbers of leat_dtype, and bf16. */
enum {
    LEATI_CUDA_F32 = 0,
    LEATI_CUDA_F64 = 1,
    LEATI_CUDA_I32 = 2,
    LEATI_CUDA_I64 = 3,
    LEATI_CUDA_U8 = 4,
    LEATI_CUDA_BOOL = 5,
    LEATI_CUDA_I8 = 6,
    LEATI_CUDA_I16 = 7,
    LEATI_CUDA_U16 = 8,
    LEATI_CUDA_U32 = 9,
    LEATI_CUDA_U64 = 10,
    LEATI_CUDA_F16 = 11,
    LEATI_CUDA_BF16 = 16
};

/* The element of an operand that belongs to element i of the program's shape: i; 0; i % inner; i / inner; or the sum of
 * stride times index over the axes of a map. */
enum { LEATI_CUDA_SAME, LEATI_CUDA_SCALAR, LEATI_CUDA_ROW, LEATI_CUDA_COLUMN, LEATI_CUDA_MAPPED };

typedef struct leati_cuda_axes {
    int64_t size[LEATI_CUDA_MOST_AXES], stride[LEATI_CUDA_MOST_AXES]; /* axis 0 is the outermost */
    int32_t count;
} leati_cuda_axes;

typedef struct leati_cuda_index {
    int32_t kind;
    int32_t map; /* MAPPED: its index in `maps` */
    int64_t inner;
} leati_cuda_index;

/* How four consecutive elements of the program, the first a multiple of 4, may be read or written: one by one, at once,
 * or as one element that belongs to all of them. */
enum { LEATI_CUDA_APART, LEATI_CUDA_AT_ONCE, LEATI_CUDA_EQUAL_QUADS };

typedef struct leati_cuda_source {
    const void *data;
    int32_t dtype;
    int32_t quads; /* LEATI_CUDA_APART, AT_ONCE or EQUAL_QUADS */
    leati_cuda_index at;
} leati_cuda_source;

typedef struct leati_cuda_target {
    void *data;
    int32_t dtype; /* f32 or bf16 */
    int32_t quads; /* LEATI_CUDA_APART or AT_ONCE */
} leati_cuda_target;

/* What a step does with the accumulator `acc` and its source `x`. */
enum {
    LEATI_CUDA_LOAD,           /* x */
    LEATI_CUDA_FUNCTION,       /* f(acc) */
    LEATI_CUDA_SLOPE,          /* acc f'(x) */
    LEATI_CUDA_SLOPE_FROM_DST, /* acc f'(y) where x = f(y) */
    LEATI_CUDA_DROPOUT,
    LEATI_CUDA_ADD, /* acc + x; and so on, in the order of leati_binary */
    LEATI_CUDA_SUB,
    LEATI_CUDA_MUL,
    LEATI_CUDA_DIV,
    LEATI_CUDA_MAX,
    LEATI_CUDA_MIN,
    LEATI_CUDA_EQUAL,
    LEATI_CUDA_GREATER,
    LEATI_CUDA_GREATER_EQUAL,
    LEATI_CUDA_SUB_FROM, /* x - acc; x / acc; acc < x; acc <= x */
    LEATI_CUDA_DIVIDE,
    LEATI_CUDA_LESS,
    LEATI_CUDA_LESS_EQUAL,
    LEATI_CUDA_KEEP /* acc */
};

typedef struct leati_cuda_step {
    int32_t what;
    int8_t input; /* the source: an input; -1: none, or a saved value */
    int8_t saved; /* the source: a saved value */
    int8_t save;  /* where the result is saved; -1: nowhere */
    int8_t store; /* the output in which the result is stored; -1: none */
    leati_cuda_function f;
} leati_cuda_step;

/* A draw of DROPOUT (engine/random.h).  A program has at most one. */
typedef struct leati_cuda_draw {
    uint64_t stream;
    const uint64_t *clock; /* the run's seed and step */
    uint32_t threshold;    /* a smaller word drops its element */
    float scale;           /* of a kept element */
    leati_cuda_index at;   /* the number of an element's draw */
} leati_cuda_draw;

typedef struct leati_cuda_program_args {
    int64_t count; /* of elements */
    int32_t step_count, input_count;
    int32_t wide; /* 1: indices need 64 bits */
    leati_cuda_step steps[LEATI_CUDA_PROGRAM_STEPS];
    leati_cuda_source inputs[LEATI_CUDA_PROGRAM_INPUTS];
    leati_cuda_target outputs[LEATI_CUDA_PROGRAM_OUTPUTS];
    leati_cuda_axes maps[LEATI_CUDA_PROGRAM_MAPS];
    leati_cuda_draw draw;
} leati_cuda_program_args;

/* A short program without saved values for a small tensor, with one element for each thread: such a launch takes as
 * long as its accesses of memory, one after the other, and the first of these are the ones of the parameter. */
enum {
    LEATI_CUDA_SMALL_STEPS = 6,
    LEATI_CUDA_SMALL_INPUTS = 4,
    LEATI_CUDA_SMALL_OUTPUTS = 2,
    LEATI_CUDA_SMALL_THREADS = 128
};

typedef struct leati_cuda_small_source {
    const void *data;
    int32_t bf16; /* 0: f32 */
    int32_t kind; /* of its index: any but MAPPED */
    int32_t inner;
} leati_cuda_small_source;

typedef struct leati_cuda_small_args {
    int32_t count, input_count, step_count;
    float scale; /* of DROPOUT, as in leati_cuda_draw */
    uint32_t threshold;
    leati_cuda_small_source inputs[LEATI_CUDA_SMALL_INPUTS];
    leati_cuda_step steps[LEATI_CUDA_SMALL_STEPS];
    void *outputs[LEATI_CUDA_SMALL_OUTPUTS];
    int32_t output_bf16[LEATI_CUDA_SMALL_OUTPUTS];
    uint64_t stream;
    const uint64_t *clock;
} leati_cuda_small_args;

/* CAST of any type to any type, and comparisons of any type. */
typedef struct leati_cuda_convert_args {
    const void *src;
    void *dst;
    int64_t count;
    int32_t from, to;
} leati_cuda_convert_args;

typedef struct leati_cuda_compare_args {
    const void *a, *b;
    void *dst; /* f32 or bf16 */
    int64_t count;
    int32_t dtype, to;
    int32_t kind; /* LEATI_CUDA_EQUAL, GREATER or GREATER_EQUAL */
    leati_cuda_axes axes[2];
} leati_cuda_compare_args;

typedef struct leati_cuda_normal_args {
    void *dst;
    int32_t dtype; /* f32 or bf16 */
    float mean, stddev;
    uint64_t stream;
    const uint64_t *clock;
    int64_t count;
} leati_cuda_normal_args;

/* MOVING_AVERAGE of several states: state = state momentum + (a value + b) (1 - momentum).  Row y of the grid's blocks
 * computes average y. */
enum { LEATI_CUDA_MOST_AVERAGES = 16 };

typedef struct leati_cuda_average {
    float *state;
    const void *value;
    int64_t count;
    int32_t dtype; /* of value: f32 or bf16 */
    float momentum, a, b;
} leati_cuda_average;

typedef struct leati_cuda_averages_args {
    leati_cuda_average averages[LEATI_CUDA_MOST_AVERAGES];
} leati_cuda_averages_args;

#endif
