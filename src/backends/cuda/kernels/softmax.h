/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of the kernels in softmax.cu.  All tensors are seen as (outer, length, inner). */
#ifndef LEATI_BACKENDS_CUDA_KERNELS_SOFTMAX_H
#define LEATI_BACKENDS_CUDA_KERNELS_SOFTMAX_H

#include "backends/cuda/kernels/tensor.h"

typedef struct leati_cuda_softmax_args {
    int64_t outer, length, inner;
    int64_t logarithm; /* 1: the logarithm of the softmax */
    /* SOFTMAX: src -> dst.  SOFTMAX_BWD: src is the softmax, `other` is diff_dst, dst is diff_src.  SOFTMAX_XENT: src
     * has the logits, `other` the labels; dst is the gradient with respect to the logits, times an element
     * of `scale`, if there is one. */
    leati_cuda_tensor src, other, dst, loss, scale;
    int64_t scale_step; /* 1: `scale` has an element for each line, 0: for all */
    int64_t normalized; /* SOFTMAX_XENT: 1: the clipped probabilities are divided by their sum */
    float low, high;    /* SOFTMAX_XENT: limits of the probabilities; both 0: none */
} leati_cuda_softmax_args;

#endif
