/* SPDX-License-Identifier: Apache-2.0 */
/* An element-wise function that is fused into a kernel, as a part of the kernel's parameter. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_POST_H
#define LEATI_BACKENDS_CUDA_KERNELS_POST_H

#include <stdint.h>

/* In the order of LEATI_FUNCTION_LIST (engine/op_semantics/op.h), from 1. */
enum {
    LEATI_CUDA_POST_NONE,
    LEATI_CUDA_POST_RELU,
    LEATI_CUDA_POST_ELU,
    LEATI_CUDA_POST_SELU,
    LEATI_CUDA_POST_SOFTPLUS,
    LEATI_CUDA_POST_SOFTSIGN,
    LEATI_CUDA_POST_TANH,
    LEATI_CUDA_POST_SIGMOID,
    LEATI_CUDA_POST_HARD_SIGMOID,
    LEATI_CUDA_POST_EXP,
    LEATI_CUDA_POST_LOG,
    LEATI_CUDA_POST_SQRT,
    LEATI_CUDA_POST_SQUARE,
    LEATI_CUDA_POST_ABS,
    LEATI_CUDA_POST_LINEAR,
    LEATI_CUDA_POST_CLIP,
    LEATI_CUDA_POST_POW,
    LEATI_CUDA_POST_GELU,
    LEATI_CUDA_POST_SILU,
    LEATI_CUDA_POST_MISH,
    LEATI_CUDA_POST_HARD_SWISH,
    LEATI_CUDA_POST_COUNT
};

typedef struct leati_cuda_post {
    int32_t function; /* LEATI_CUDA_POST_* */
    float a, b, c;
} leati_cuda_post;

#endif
