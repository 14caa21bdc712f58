/* SPDX-License-Identifier: Apache-2.0 */
/* Describes convolutions to cuDNN, and runs them.  cuDNN says only when it is called whether an algorithm really serves
 * a convolution, so several algorithms are kept, and the first that is accepted runs.  Room: backends/cuda. */
#include "backends/cuda/ops/conv_dnn.h"

#include <limits.h>
#include <stdio.h>

#include "base/error.h"

/* Algorithms that need more are not used. */
static const size_t most_workspace_bytes = (size_t)1 << 30;

static bool fits(int64_t n) {
    return n > 0 && n <= INT_MAX;
}

/* The first spatial axis of three that cuDNN sees: it wants two at least. */
static int first_axis(const leati_geometry *g) {
    bool flat = g->in[0] == 1 && g->kernel[0] == 1 && g->pad_before[0] == 0 && g->pad_after[0] == 0;
    return flat ? 1 : 0;
}

/* How all tensors of a convolution are stored. */
typedef struct storage {
    cudnnDataType_t type;
    int first;   /* axis */
    bool planes; /* NCHW */
} storage;

/* Describes (n, spatial..., channels), or with planes (n, channels, spatial...). */
static cudnnStatus_t describe_tensor(const leati_cuda *cuda, cudnnTensorDescriptor_t out,
                                     const storage *stored, int64_t n, const int64_t *size,
                                     int64_t channels) {
    int first = stored->first, dims[5] = {(int)n, (int)channels}, strides[5] = {0, 1}, rank = 5 - first;
    int64_t stride = stored->planes ? 1 : channels;
    for (int i = 2; i >= first; --i) {
        if (!fits(size[i]) || !fits(stride)) return CUDNN_STATUS_NOT_SUPPORTED;
        dims[2 + i - first] = (int)size[i];
        strides[2 + i - first] = (int)stride;
        stride *= size[i];
    }
    if (stored->planes) {
        if (!fits(stride) || !fits(channels)) return CUDNN_STATUS_NOT_SUPPORTED;
        strides[1] = (int)stride;
        stride *= channels;
    }
    if (!fits(n) || !fits(channels) || !fits(stride)) return CUDNN_STATUS_NOT_SUPPORTED;
    strides[0] = (int)stride;
    return cuda->api->cudnnSetTensorNdDescriptor(out, stored->type, rank, dims, strides);
}

static cudnnStatus_t describe_filter(const leati_cuda *cuda, cudnnFilterDescriptor_t out,
                                     const storage *stored, const leati_geometry *g) {
    int first = stored->first, dims[5] = {(int)g->filters, (int)(g->channels / g->groups)};
    for (int i = first; i < 3; ++i) dims[2 + i - first] = (int)g->kernel[i];
    return cuda->api->cudnnSetFilterNdDescriptor(out, stored->type,
                                                 stored->planes ? CUDNN_TENSOR_NCHW : CUDNN_TENSOR_NHWC,
                                                 5 - first, dims);
}

static cudnnStatus_t describe_window(const leati_cuda *cuda, cudnnConvolutionDescriptor_t out,
                                     const leati_geometry *g, int first, cudnnMathType_t math) {
    int pad[3] = {0}, stride[3] = {0}, dilation[3] = {0};
    for (int i = first; i < 3; ++i) {
        pad[i - first] = (int)g->pad_before[i];
        stride[i - first] = (int)g->stride[i];
        dilation[i - first] = (int)g->dilation[i];
    }
    cudnnStatus_t status =
        cuda->api->cudnnSetConvolutionNdDescriptor(out, 3 - first, pad, stride, dilation,
                                                   CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
    if (status == CUDNN_STATUS_SUCCESS)
        status = cuda->api->cudnnSetConvolutionGroupCount(out, (int)g->groups);
    if (status == CUDNN_STATUS_SUCCESS) status = cuda->api->cudnnSetConvolutionMathType(out, math);
    return status;
}

static cudnnStatus_t create_descriptors(leati_cuda_dnn_conv *conv, const leati_cuda_api *api) {
    cudnnStatus_t status = api->cudnnCreateTensorDescriptor(&conv->x);
    if (status == CUDNN_STATUS_SUCCESS) status = api->cudnnCreateTensorDescriptor(&conv->y);
    if (status == CUDNN_STATUS_SUCCESS) status = api->cudnnCreateTensorDescriptor(&conv->bias);
    if (status == CUDNN_STATUS_SUCCESS) status = api->cudnnCreateFilterDescriptor(&conv->w);
    if (status == CUDNN_STATUS_SUCCESS) status = api->cudnnCreateConvolutionDescriptor(&conv->conv);
    if (status == CUDNN_STATUS_SUCCESS) status = api->cudnnCreateActivationDescriptor(&conv->identity);
    if (status == CUDNN_STATUS_SUCCESS) status = api->cudnnCreateActivationDescriptor(&conv->relu);
    if (status == CUDNN_STATUS_SUCCESS)
        status = api->cudnnSetActivationDescriptor(conv->identity, CUDNN_ACTIVATION_IDENTITY,
                                                   CUDNN_NOT_PROPAGATE_NAN, 0);
    if (status == CUDNN_STATUS_SUCCESS)
        status = api->cudnnSetActivationDescriptor(conv->relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0);
    return status;
}

static cudnnStatus_t describe(leati_cuda_dnn_conv *conv, const leati_cuda *cuda, const leati_geometry *g,
                              const storage *stored, cudnnMathType_t math) {
    static const int64_t one[3] = {1, 1, 1};
    cudnnStatus_t status = create_descriptors(conv, cuda->api);
    if (status == CUDNN_STATUS_SUCCESS)
        status = describe_tensor(cuda, conv->x, stored, g->batch, g->in, g->channels);
    if (status == CUDNN_STATUS_SUCCESS)
        status = describe_tensor(cuda, conv->y, stored, g->batch, g->out, g->filters);
    if (status == CUDNN_STATUS_SUCCESS)
        status = describe_tensor(cuda, conv->bias, stored, 1, one, g->filters);
    if (status == CUDNN_STATUS_SUCCESS) status = describe_filter(cuda, conv->w, stored, g);
    if (status == CUDNN_STATUS_SUCCESS) status = describe_window(cuda, conv->conv, g, stored->first, math);
    return status;
}

/* ---- Algorithms ---- */

/* What cuDNN says about an algorithm, whatever the op is. */
typedef struct advice {
    int number;
    cudnnStatus_t status;
    cudnnDeterminism_t determinism;
    cudnnMathType_t math;
} advice;

static cudnnStatus_t ask(const leati_cuda_dnn_conv *conv, const leati_cuda *cuda, advice *out, int *count) {
    enum { most = LEATI_CUDA_DNN_ALGORITHMS };
    cudnnConvolutionFwdAlgoPerf_t forward[most];
    cudnnConvolutionBwdDataAlgoPerf_t data[most];
    cudnnConvolutionBwdFilterAlgoPerf_t weights[most];
    cudnnStatus_t status;
#define ADVICE(list)                                                                                         \
    for (int i = 0; status == CUDNN_STATUS_SUCCESS && i < *count; ++i) out[i] = (advice) {                   \
            (int)list[i].algo, list[i].status, list[i].determinism, list[i].mathType                         \
        }
    if (conv->op == LEATI_OP_CONV) {
        status = cuda->api->cudnnGetConvolutionForwardAlgorithm_v7(cuda->dnn, conv->x, conv->w, conv->conv,
                                                                   conv->y, most, count, forward);
        ADVICE(forward);
    } else if (conv->op == LEATI_OP_CONV_BWD_DATA) {
        status =
            cuda->api->cudnnGetConvolutionBackwardDataAlgorithm_v7(cuda->dnn, conv->w, conv->y, conv->conv,
                                                                   conv->x, most, count, data);
        ADVICE(data);
    } else {
        status =
            cuda->api->cudnnGetConvolutionBackwardFilterAlgorithm_v7(cuda->dnn, conv->x, conv->y, conv->conv,
                                                                     conv->w, most, count, weights);
        ADVICE(weights);
    }
#undef ADVICE
    return status;
}

static cudnnStatus_t measure_workspace(const leati_cuda_dnn_conv *conv, const leati_cuda *cuda, int number,
                                       size_t *bytes) {
    const leati_cuda_api *api = cuda->api;
    if (conv->op == LEATI_OP_CONV)
        return api->cudnnGetConvolutionForwardWorkspaceSize(cuda->dnn, conv->x, conv->w, conv->conv, conv->y,
                                                            (cudnnConvolutionFwdAlgo_t)number, bytes);
    if (conv->op == LEATI_OP_CONV_BWD_DATA)
        return api->cudnnGetConvolutionBackwardDataWorkspaceSize(cuda->dnn, conv->w, conv->y, conv->conv,
                                                                 conv->x,
                                                                 (cudnnConvolutionBwdDataAlgo_t)number,
                                                                 bytes);
    return api->cudnnGetConvolutionBackwardFilterWorkspaceSize(cuda->dnn, conv->x, conv->y, conv->conv,
                                                               conv->w,
                                                               (cudnnConvolutionBwdFilterAlgo_t)number,
                                                               bytes);
}

/* Fourier transforms need much memory for kernels of usual sizes. */
static bool is_fourier(leati_op op, int number) {
    if (op == LEATI_OP_CONV)
        return number == (int)CUDNN_CONVOLUTION_FWD_ALGO_FFT ||
               number == (int)CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING;
    if (op == LEATI_OP_CONV_BWD_DATA)
        return number == (int)CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT ||
               number == (int)CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING;
    return number == (int)CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT ||
           number == (int)CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING;
}

/* Keeps the deterministic algorithms, or one of them.  `math` is the arithmetic that is asked for; products of f32 are
 * never computed from numbers that are rounded to f16. */
static cudnnStatus_t choose(leati_cuda_dnn_conv *conv, const leati_cuda *cuda, cudnnMathType_t math,
                            int only) {
    advice advised[LEATI_CUDA_DNN_ALGORITHMS];
    int count = 0, index = 0;
    cudnnStatus_t status = ask(conv, cuda, advised, &count);
    for (int i = 0; status == CUDNN_STATUS_SUCCESS && i < count; ++i) {
        size_t bytes = 0;
        bool exact = math == CUDNN_FMA_MATH || advised[i].math == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;
        cudnnMathType_t used = exact ? math : advised[i].math;
        if (advised[i].status != CUDNN_STATUS_SUCCESS || advised[i].determinism != CUDNN_DETERMINISTIC)
            continue;
        if (cuda->api->cudnnSetConvolutionMathType(conv->conv, used) != CUDNN_STATUS_SUCCESS) continue;
        if (measure_workspace(conv, cuda, advised[i].number, &bytes) != CUDNN_STATUS_SUCCESS) continue;
        if (bytes > most_workspace_bytes) continue;
        if (only >= 0 && (is_fourier(conv->op, advised[i].number) || index++ != only)) continue;
        if (bytes > conv->workspace_bytes) conv->workspace_bytes = bytes;
        conv->algorithms[conv->count].number = advised[i].number;
        conv->algorithms[conv->count++].math = used;
    }
    return status;
}

leat_status leati_cuda_dnn_conv_init(leati_cuda_dnn_conv *out, leati_cuda *cuda,
                                     const leati_cuda_dnn_request *request, char *why, leat_error *err) {
    bool bf16 = request->bf16;
    const storage stored = {bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT, first_axis(request->g),
                            request->planes};
    (void)err;
    *out = (leati_cuda_dnn_conv){.op = request->op};
    leat_error missing = {0};
    if (leati_cuda_dnn(cuda, &missing) != LEAT_OK) {
        snprintf(why, LEATI_REASON_BYTES, "%.80s", missing.message);
        return LEAT_OK;
    }
    cudnnMathType_t math = bf16                ? CUDNN_TENSOR_OP_MATH
                           : cuda->device.tf32 ? CUDNN_DEFAULT_MATH
                                               : CUDNN_FMA_MATH;
    cudnnStatus_t status = describe(out, cuda, request->g, &stored, math);
    if (status == CUDNN_STATUS_SUCCESS) status = choose(out, cuda, math, request->only);
    if (out->count == 0)
        snprintf(why, LEATI_REASON_BYTES, "cuDNN has no deterministic algorithm (%s)",
                 cuda->api->cudnnGetErrorString(status));
    return LEAT_OK;
}

const char *leati_cuda_dnn_conv_algorithm(const leati_cuda_dnn_conv *conv) {
    static const char *const forward[] = {"implicit gemm", "precomputed gemm",
                                          "gemm",          "direct",
                                          "fft",           "tiled fft",
                                          "winograd",      "winograd nonfused"};
    static const char *const data[] = {"algorithm 0", "algorithm 1", "fft",
                                       "tiled fft",   "winograd",    "winograd nonfused"};
    static const char *const weights[] = {"algorithm 0", "algorithm 1",       "fft",      "algorithm 3",
                                          "winograd",    "winograd nonfused", "tiled fft"};
    size_t number = conv->first < conv->count ? (size_t)conv->algorithms[conv->first].number : SIZE_MAX;
    if (conv->op == LEATI_OP_CONV) return number < sizeof forward / sizeof *forward ? forward[number] : "?";
    if (conv->op == LEATI_OP_CONV_BWD_DATA) return number < sizeof data / sizeof *data ? data[number] : "?";
    return number < sizeof weights / sizeof *weights ? weights[number] : "?";
}

void leati_cuda_dnn_conv_fini(leati_cuda_dnn_conv *conv, const leati_cuda *cuda) {
    const leati_cuda_api *api = cuda->api;
    if (conv->x) (void)api->cudnnDestroyTensorDescriptor(conv->x);
    if (conv->y) (void)api->cudnnDestroyTensorDescriptor(conv->y);
    if (conv->bias) (void)api->cudnnDestroyTensorDescriptor(conv->bias);
    if (conv->w) (void)api->cudnnDestroyFilterDescriptor(conv->w);
    if (conv->conv) (void)api->cudnnDestroyConvolutionDescriptor(conv->conv);
    if (conv->identity) (void)api->cudnnDestroyActivationDescriptor(conv->identity);
    if (conv->relu) (void)api->cudnnDestroyActivationDescriptor(conv->relu);
    *conv = (leati_cuda_dnn_conv){0};
}

/* ---- Runs ---- */

static const float one = 1, zero = 0;

/* Without relu, cuDNN adds a bias with one algorithm only. */
static cudnnStatus_t run_with_bias(const leati_cuda_dnn_conv *conv, const leati_cuda *cuda, int number,
                                   const leati_cuda_dnn_data *d) {
    if (!d->relu && number != (int)CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM)
        return CUDNN_STATUS_NOT_SUPPORTED;
    return cuda->api->cudnnConvolutionBiasActivationForward(cuda->dnn, &one, conv->x, d->x, conv->w, d->w,
                                                            conv->conv, (cudnnConvolutionFwdAlgo_t)number,
                                                            d->workspace, conv->workspace_bytes, &zero,
                                                            conv->y, d->y, conv->bias, d->bias,
                                                            d->relu ? conv->relu : conv->identity, conv->y,
                                                            d->y);
}

static cudnnStatus_t run_algorithm(const leati_cuda_dnn_conv *conv, const leati_cuda *cuda, int number,
                                   const leati_cuda_dnn_data *d) {
    const leati_cuda_api *api = cuda->api;
    size_t bytes = conv->workspace_bytes;
    if (conv->op == LEATI_OP_CONV)
        return api->cudnnConvolutionForward(cuda->dnn, &one, conv->x, d->x, conv->w, d->w, conv->conv,
                                            (cudnnConvolutionFwdAlgo_t)number, d->workspace, bytes, &zero,
                                            conv->y, d->y);
    if (conv->op == LEATI_OP_CONV_BWD_DATA)
        return api->cudnnConvolutionBackwardData(cuda->dnn, &one, conv->w, d->w, conv->y, d->y, conv->conv,
                                                 (cudnnConvolutionBwdDataAlgo_t)number, d->workspace, bytes,
                                                 &zero, conv->x, d->x);
    return api->cudnnConvolutionBackwardFilter(cuda->dnn, &one, conv->x, d->x, conv->y, d->y, conv->conv,
                                               (cudnnConvolutionBwdFilterAlgo_t)number, d->workspace, bytes,
                                               &zero, conv->w, d->w);
}

leat_status leati_cuda_dnn_conv_run(leati_cuda_dnn_conv *conv, const leati_cuda *cuda,
                                    const leati_cuda_dnn_data *data, bool *fused, leat_error *err) {
    cudnnStatus_t status = CUDNN_STATUS_NOT_SUPPORTED;
    *fused = false;
    for (; conv->first < conv->count; ++conv->first, conv->no_bias = false) {
        int number = conv->algorithms[conv->first].number;
        status = cuda->api->cudnnSetConvolutionMathType(conv->conv, conv->algorithms[conv->first].math);
        if (status != CUDNN_STATUS_SUCCESS) continue;
        if (data->bias && !conv->no_bias) {
            *fused = run_with_bias(conv, cuda, number, data) == CUDNN_STATUS_SUCCESS;
            if (*fused) return LEAT_OK;
            conv->no_bias = true;
        }
        status = run_algorithm(conv, cuda, number, data);
        if (status == CUDNN_STATUS_SUCCESS) return LEAT_OK;
    }
    return leati_cuda_check_dnn(cuda, status, "convolution", err);
}
