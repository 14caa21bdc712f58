/* SPDX-License-Identifier: Apache-2.0 */
/* A tensor as a kernel's parameter, whose type the kernel may not know when it is compiled. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_TENSOR_H
#define LEATI_BACKENDS_CUDA_KERNELS_TENSOR_H

#include <stdint.h>

typedef struct leati_cuda_tensor {
    void *at;     /* NULL: absent */
    int64_t bf16; /* 0: f32, 1: bf16 */
} leati_cuda_tensor;

#endif
