/* SPDX-License-Identifier: Apache-2.0 */
/* How kernels name the element-wise functions of one variable: the numbers of leati_function
 * (engine/op_semantics/op.h), which device code cannot include.  ops/elementwise.c checks that they agree. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_FUNCTIONS_H
#define LEATI_BACKENDS_CUDA_KERNELS_FUNCTIONS_H

#include <stdint.h>

enum {
    LEATI_CUDA_RELU,
    LEATI_CUDA_ELU,
    LEATI_CUDA_SELU,
    LEATI_CUDA_SOFTPLUS,
    LEATI_CUDA_SOFTSIGN,
    LEATI_CUDA_TANH,
    LEATI_CUDA_SIGMOID,
    LEATI_CUDA_HARD_SIGMOID,
    LEATI_CUDA_EXP,
    LEATI_CUDA_LOG,
    LEATI_CUDA_SQRT,
    LEATI_CUDA_SQUARE,
    LEATI_CUDA_ABS,
    LEATI_CUDA_LINEAR,
    LEATI_CUDA_CLIP,
    LEATI_CUDA_POW,
    LEATI_CUDA_GELU,
    LEATI_CUDA_SILU,
    LEATI_CUDA_MISH,
    LEATI_CUDA_HARD_SWISH,
    LEATI_CUDA_SIN,
    LEATI_CUDA_COS,
    LEATI_CUDA_TAN,
    LEATI_CUDA_ASIN,
    LEATI_CUDA_ACOS,
    LEATI_CUDA_ATAN,
    LEATI_CUDA_SINH,
    LEATI_CUDA_COSH,
    LEATI_CUDA_ASINH,
    LEATI_CUDA_ACOSH,
    LEATI_CUDA_ATANH,
    LEATI_CUDA_ERF,
    LEATI_CUDA_LOG1P,
    LEATI_CUDA_EXPM1,
    LEATI_CUDA_GELU_TANH,
    LEATI_CUDA_FUNCTIONS
};

/* A leati_eltwise. */
typedef struct leati_cuda_function {
    int32_t function;
    float a, b, c;
} leati_cuda_function;

#endif
