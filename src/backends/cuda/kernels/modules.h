/* SPDX-License-Identifier: Apache-2.0 */
/* The modules of kernels: one for each file kernels/<name>.cu.  A module is loaded when the first of its kernels is
 * needed. */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_MODULES_H
#define LEATI_BACKENDS_CUDA_KERNELS_MODULES_H

#define LEATI_CUDA_MODULE_LIST(X)                                                                            \
    X(elementwise)                                                                                           \
    X(moves)                                                                                                 \
    X(labels)                                                                                                \
    X(reduce)                                                                                                \
    X(softmax)                                                                                               \
    X(update)                                                                                                \
    X(pooling)                                                                                               \
    X(resample)                                                                                              \
    X(patches)                                                                                               \
    X(conv)                                                                                                  \
    X(norm)                                                                                                  \
    X(matmul)                                                                                                \
    X(rnn)

typedef enum leati_cuda_module {
#define LEATI_CUDA_MODULE_ENUM(name) LEATI_CUDA_##name,
    LEATI_CUDA_MODULE_LIST(LEATI_CUDA_MODULE_ENUM)
#undef LEATI_CUDA_MODULE_ENUM
        LEATI_CUDA_MODULE_COUNT
} leati_cuda_module;

#endif
