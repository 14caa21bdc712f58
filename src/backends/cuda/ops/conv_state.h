/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a convolution's kernel, which ops/conv.c and ops/conv_direct.c share.  Room: backends/cuda. */
#ifndef LEATI_BACKENDS_CUDA_OPS_CONV_STATE_H
#define LEATI_BACKENDS_CUDA_OPS_CONV_STATE_H

#include "backends/cuda/kernels/conv.h"
#include "backends/cuda/kernels/conv_gemm.h"
#include "backends/cuda/ops/conv_dnn.h"
#include "backends/cuda/ops/window.h"

enum { LEATI_CUDA_CONV_TILE = 32 }; /* `tile` in kernels/conv.cu */

/* Who computes a convolution. */
typedef enum leati_cuda_conv_way {
    LEATI_CUDA_CONV_RULES, /* it depends on the sizes */
    LEATI_CUDA_CONV_GEMM,
    LEATI_CUDA_CONV_DNN,
    LEATI_CUDA_CONV_PLANES, /* cuDNN, from tensors NCHW in scratch */
    LEATI_CUDA_CONV_FOLDED  /* cuDNN, from a source with 2 x 2 pixels in one */
} leati_cuda_conv_way;

typedef struct leati_cuda_conv_choice {
    int way;       /* leati_cuda_conv_way */
    int algorithm; /* of cuDNN, as an index in the order of its advice; -1: all, one after the other */
} leati_cuda_conv_choice;

typedef struct leati_cuda_conv_state {
    leati_cuda *cuda;
    leati_op op;
    int own_inputs, inputs;
    leati_geometry g; /* the forward convolution */
    leati_geometry
        padded; /* the same as cuDNN computes it: more padding in the source, more channels, more filters */
    leati_cuda_dnn_conv dnn;
    leati_kernel product;        /* of a pointwise convolution's gradient with respect to the weights */
    bool bf16;                   /* the type of cuDNN's tensors */
    bool planes;                 /* cuDNN's tensors are NCHW */
    bool folded;                 /* cuDNN's source has 2 x 2 pixels in one */
    bool as_chosen;              /* the way that was asked for serves the convolution */
    bool frames_src, frames_dst; /* cuDNN's source or destination is in scratch */
    bool bias_in_dnn, is_relu;   /* cuDNN is asked to add the bias; and then no function but relu follows */
    bool finishes;               /* something follows the product and its bias, but not relu alone */
    bool by_vectors;             /* `vectors` serves aligned tensors */
    int elements;                /* that a thread of `vectors` computes */
    bool by_lines;    /* the kernel of the gradient of depthwise weights takes whole rows of the output */
    int line_filters; /* filters of a block of this kernel */
    CUfunction weights_kernel, vectors, scalars, frame_vectors, frame, pack, unpack, finish_vectors, finish,
        columns, sum, transpose, fold;
    leati_cuda_conv_direct direct;
    leati_cuda_conv_weights weights;
    leati_cuda_conv_frame src_frame, dst_frame; /* to cuDNN's tensors */
    leati_cuda_conv_packing packing;
    leati_cuda_conv_finish finishing;
    leati_cuda_conv_column_sums column_sums;
    size_t src_offset, dst_offset, workspace_offset, packed_offset, partial_offset;
    CUfunction gemm; /* a kernel of kernels/conv_gemm.cuh */
    leati_cuda_grid gemm_grid;
    bool gemm_needs_alignment;
    leati_cuda_conv_gemm pixels;
    leati_cuda_conv_gemm_weights gemm_weights;
} leati_cuda_conv_state;

/* Finds a kernel of kernels/conv.cu. */
leat_status leati_cuda_conv_find(leati_cuda_conv_state *s, const char *name, CUfunction *out,
                                 leat_error *err);

/* What follows the product: described without addresses, which fill_post adds. */
leati_cuda_conv_post leati_cuda_conv_describe_post(const leati_task *task);
void leati_cuda_conv_fill_post(leati_cuda_conv_post *post, const leati_cuda_conv_state *s, void *const *args);

/* Prepares a kernel that is not a matrix product; kernel->state becomes a leati_cuda_conv_state. */
leat_status leati_cuda_conv_prepare(const leati_task *task, leati_kernel *kernel,
                                    leati_cuda_conv_choice choice, char *why, leat_error *err);

/* Finds the fastest way, by a measurement where it is worth it. */
leat_status leati_cuda_conv_choose(const leati_task *task, const leati_geometry *g,
                                   leati_cuda_conv_choice *out, leat_error *err);

bool leati_cuda_conv_is_depthwise(const leati_geometry *g);

/* The kernels that compute a whole convolution: CONV and CONV_BWD_DATA, and CONV_BWD_WEIGHTS. */
leat_status leati_cuda_conv_prepare_direct(const leati_task *task, leati_cuda_conv_state *s,
                                           leati_kernel *kernel, leat_error *err);
leat_status leati_cuda_conv_prepare_direct_weights(const leati_task *task, leati_cuda_conv_state *s,
                                                   leati_kernel *kernel, leat_error *err);
leat_status leati_cuda_conv_run_direct(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                       leat_error *err);
leat_status leati_cuda_conv_run_direct_weights(const leati_kernel *kernel, void *const *args,
                                               const leati_run *run, leat_error *err);
/* Adds up `splits` parts of the gradient with respect to the weights and the bias, which lie in scratch. */
leat_status leati_cuda_conv_sum_weights(const leati_kernel *kernel, void *const *args, const leati_run *run,
                                        int splits, leat_error *err);

/* Products of matrices in f32 arithmetic, after leati_cuda_conv_prepare_direct or _direct_weights, whose kernels serve
 * tensors that are not aligned.  s->as_chosen is false afterwards if there is no kernel for the task, or, unless
 * `asked`, if there should be a faster one. */
leat_status leati_cuda_conv_prepare_gemm(const leati_task *task, leati_cuda_conv_state *s,
                                         leati_kernel *kernel, bool asked, leat_error *err);

#endif
