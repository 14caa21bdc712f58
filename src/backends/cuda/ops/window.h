/* SPDX-License-Identifier: Apache-2.0 */
/* What the ops with windows share on the host's side.  Room: backends/cuda. */
#ifndef LEATI_BACKENDS_CUDA_OPS_WINDOW_H
#define LEATI_BACKENDS_CUDA_OPS_WINDOW_H

#include "backends/cuda/kernels/window.h"
#include "engine/op_semantics/geometry.h"
#include "tensor/bfloat16.h"

static inline bool leati_cuda_is_bf16(const leati_desc *desc) {
    return desc->dtype == LEATI_BF16;
}

static inline leati_cuda_array leati_cuda_array_of(const leati_desc *desc) {
    return (leati_cuda_array){.bf16 = leati_cuda_is_bf16(desc)};
}

/* Returns true if kernels can read the memory by 16 bytes. */
static inline bool leati_cuda_is_aligned(const void *p) {
    return (uintptr_t)p % 16 == 0;
}

/* Returns the elements in 16 bytes if both tensors have one type and `count` is a multiple of that; otherwise 1. */
static inline int leati_cuda_vector_of(const leati_desc *a, const leati_desc *b, int64_t count) {
    int elements = leati_cuda_is_bf16(a) ? 8 : 4;
    return a->dtype == b->dtype && count % elements == 0 ? elements : 1;
}

static inline leati_cuda_window_shape leati_cuda_shape_of(const leati_geometry *g) {
    leati_cuda_window_shape shape = {.in_pixels = g->batch * g->in[0] * g->in[1] * g->in[2],
                                     .out_pixels = g->out_pixels,
                                     .batch = (int32_t)g->batch,
                                     .channels = (int32_t)g->channels,
                                     .filters = (int32_t)g->filters,
                                     .group_channels = (int32_t)(g->channels / g->groups),
                                     .group_filters = (int32_t)(g->filters / g->groups),
                                     .taps = (int32_t)g->taps};
    for (int i = 0; i < 3; ++i) {
        shape.in[i] = (int32_t)g->in[i];
        shape.out[i] = (int32_t)g->out[i];
        shape.kernel[i] = (int32_t)g->kernel[i];
        shape.stride[i] = (int32_t)g->stride[i];
        shape.dilation[i] = (int32_t)g->dilation[i];
        shape.pad[i] = (int32_t)g->pad_before[i];
    }
    return shape;
}

#endif
