/* SPDX-License-Identifier: Apache-2.0 */
/* The parameter of the kernels of the UPDATE ops. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_UPDATE_H
#define LEATI_BACKENDS_CUDA_KERNELS_UPDATE_H

#include <stdint.h>

enum { LEATI_CUDA_UPDATE_SLOTS = 3, LEATI_CUDA_UPDATE_THREADS = 256 };

/* The bits of `flags`: the members of attrs.update, and which tensors are bf16. */
enum {
    LEATI_CUDA_UPDATE_MOMENTUM = 1,
    LEATI_CUDA_UPDATE_NESTEROV = 2,
    LEATI_CUDA_UPDATE_AMSGRAD = 4,
    LEATI_CUDA_UPDATE_DECAY = 8,
    LEATI_CUDA_UPDATE_AS_KERAS3 = 16,
    LEATI_CUDA_UPDATE_ACCUMULATES = 32,
    LEATI_CUDA_UPDATE_CENTERED = 64,
    LEATI_CUDA_UPDATE_BF16_SCALARS = 128,
    LEATI_CUDA_UPDATE_BF16_GRADIENT = 256,
    LEATI_CUDA_UPDATE_BF16_POWERS = 512
};

typedef struct leati_cuda_update_args {
    const void *scalars, *g;
    const void *powers;                       /* NULL: those of g */
    float *p, *slot[LEATI_CUDA_UPDATE_SLOTS]; /* NULL: absent */
    int64_t count;
    int32_t scalars_count;
    uint32_t flags;
    int32_t quads; /* 1: four elements may be read and written at once */
} leati_cuda_update_args;

#endif
