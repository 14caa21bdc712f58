/* SPDX-License-Identifier: Apache-2.0 */
/* One convolution of cuDNN: its descriptors, and the algorithms that may compute it.  Room: backends/cuda. */
#ifndef LEATI_BACKENDS_CUDA_OPS_CONV_DNN_H
#define LEATI_BACKENDS_CUDA_OPS_CONV_DNN_H

#include "backends/cuda/cuda.h"
#include "engine/op_semantics/geometry.h"

enum { LEATI_CUDA_DNN_ALGORITHMS = 8 };

typedef struct leati_cuda_dnn_conv {
    leati_op op; /* CONV, CONV_BWD_DATA or CONV_BWD_WEIGHTS */
    cudnnTensorDescriptor_t x, y, bias;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t conv;
    cudnnActivationDescriptor_t identity, relu;
    struct {
        int number; /* of the op's enumeration */
        cudnnMathType_t math;
    } algorithms[LEATI_CUDA_DNN_ALGORITHMS]; /* best first; all are deterministic */
    int count;                               /* 0: cuDNN does not serve this convolution */
    int first;                               /* the first algorithm that has not failed */
    bool no_bias;                            /* the algorithm has refused to add the bias */
    size_t workspace_bytes;
} leati_cuda_dnn_conv;

/* The tensors of a convolution: activations NHWC, filters (filters, taps, channels / groups); or with planes
 * activations NCHW, filters (filters, channels / groups, taps). */
typedef struct leati_cuda_dnn_data {
    void *x, *y, *w, *workspace;
    const void *bias; /* NULL: none */
    bool relu;        /* with a bias */
} leati_cuda_dnn_data;

/* What is asked of cuDNN. */
typedef struct leati_cuda_dnn_request {
    leati_op op;
    const leati_geometry *g; /* the forward convolution, whose padding is the same on both sides */
    bool bf16, planes;
    int only; /* the one algorithm to keep, as an index in cuDNN's order; -1: all */
} leati_cuda_dnn_request;

/* Makes the descriptors.  If cuDNN does not serve the convolution, or is missing, the count is 0 and `why` says why
 * (LEATI_REASON_BYTES).  leati_cuda_dnn_conv_fini is always due. */
leat_status leati_cuda_dnn_conv_init(leati_cuda_dnn_conv *out, leati_cuda *cuda,
                                     const leati_cuda_dnn_request *request, char *why, leat_error *err);

/* Returns "winograd", "implicit gemm" and so on, for the algorithm that is tried first. */
const char *leati_cuda_dnn_conv_algorithm(const leati_cuda_dnn_conv *conv);
void leati_cuda_dnn_conv_fini(leati_cuda_dnn_conv *conv, const leati_cuda *cuda);

/* Adds the convolution to the queue.  *fused is true afterwards if the bias and relu are computed, too.  What cuDNN
 * refuses is not tried again. */
leat_status leati_cuda_dnn_conv_run(leati_cuda_dnn_conv *conv, const leati_cuda *cuda,
                                    const leati_cuda_dnn_data *data, bool *fused, leat_error *err);

#endif
