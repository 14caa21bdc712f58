/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated cuDNN: the functions that the backend uses, in plain C++.  Tensors are f32 or bf16, with the channels
 * last; f32 also with the channels first.  It is at least as strict as cuDNN, and like cuDNN it advises algorithms
 * that it then refuses. */
#include <math.h>
#include <string.h>

#include <vector>

#include "cuda/sim/work.h"
#include "backends/cuda/driver/api.h"
extern "C" {
#include "base/error.h"
}

struct cudnnContext {
    CUstream stream;
};
struct cudnnTensorStruct {
    cudnnDataType_t type;
    std::vector<int> dims, strides; /* n, c, spatial... */
    bool planes = false;            /* n, c, spatial; otherwise n, spatial, c */
};
struct cudnnFilterStruct {
    cudnnDataType_t type;
    std::vector<int> dims; /* k, c, spatial... */
    bool planes = false;
};
struct cudnnConvolutionStruct {
    std::vector<int> pad, stride, dilation;
    int groups = 1;
    cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};
struct cudnnActivationStruct {
    cudnnActivationMode_t mode;
};

/* ---- Descriptors ---- */

static size_t version(void) {
    return CUDNN_VERSION;
}
static const char *error_string(cudnnStatus_t) {
    return "simulated failure";
}
static cudnnStatus_t create(cudnnHandle_t *out) {
    *out = new cudnnContext{nullptr};
    return CUDNN_STATUS_SUCCESS;
}
static cudnnStatus_t destroy(cudnnHandle_t handle) {
    delete handle;
    return CUDNN_STATUS_SUCCESS;
}
static cudnnStatus_t set_stream(cudnnHandle_t handle, cudaStream_t stream) {
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}
template <typename T> static cudnnStatus_t create_descriptor(T **out) {
    *out = new T();
    return CUDNN_STATUS_SUCCESS;
}
template <typename T> static cudnnStatus_t destroy_descriptor(T *descriptor) {
    delete descriptor;
    return CUDNN_STATUS_SUCCESS;
}

static bool is_type(cudnnDataType_t type) {
    return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_BFLOAT16;
}
static bool all_at_least(int least, int count, const int *numbers) {
    for (int i = 0; i < count; ++i)
        if (numbers[i] < least) return false;
    return true;
}

/* Returns true if the strides are those of a tensor with the channels first, or last. */
static bool are_packed(int rank, const int *dims, const int *strides, bool planes) {
    int expected = planes ? 1 : dims[1];
    bool packed = planes || strides[1] == 1;
    for (int i = rank - 1; i >= 2; --i) {
        packed = packed && strides[i] == expected;
        expected *= dims[i];
    }
    if (!planes) return packed && strides[0] == expected;
    return packed && strides[1] == expected && strides[0] == expected * dims[1];
}

static cudnnStatus_t set_tensor(cudnnTensorDescriptor_t out, cudnnDataType_t type, int rank, const int *dims,
                                const int *strides) {
    if (!is_type(type) || rank < 4 || rank > 5) return CUDNN_STATUS_NOT_SUPPORTED;
    if (!all_at_least(1, rank, dims) || !all_at_least(1, rank, strides)) return CUDNN_STATUS_BAD_PARAM;
    bool planes = !are_packed(rank, dims, strides, false);
    if (planes && (type != CUDNN_DATA_FLOAT || !are_packed(rank, dims, strides, true)))
        return CUDNN_STATUS_NOT_SUPPORTED;
    out->planes = planes;
    out->type = type;
    out->dims.assign(dims, dims + rank);
    out->strides.assign(strides, strides + rank);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_filter(cudnnFilterDescriptor_t out, cudnnDataType_t type, cudnnTensorFormat_t format,
                                int rank, const int *dims) {
    bool planes = format == CUDNN_TENSOR_NCHW;
    if (!is_type(type) || (!planes && format != CUDNN_TENSOR_NHWC) || rank < 4 || rank > 5)
        return CUDNN_STATUS_NOT_SUPPORTED;
    if (!all_at_least(1, rank, dims)) return CUDNN_STATUS_BAD_PARAM;
    out->planes = planes;
    out->type = type;
    out->dims.assign(dims, dims + rank);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_convolution(cudnnConvolutionDescriptor_t out, int count, const int *pad,
                                     const int *stride, const int *dilation, cudnnConvolutionMode_t mode,
                                     cudnnDataType_t type) {
    if (count < 2 || count > 3 || mode != CUDNN_CROSS_CORRELATION || type != CUDNN_DATA_FLOAT)
        return CUDNN_STATUS_NOT_SUPPORTED;
    if (!all_at_least(0, count, pad) || !all_at_least(1, count, stride) || !all_at_least(1, count, dilation))
        return CUDNN_STATUS_BAD_PARAM;
    out->pad.assign(pad, pad + count);
    out->stride.assign(stride, stride + count);
    out->dilation.assign(dilation, dilation + count);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_groups(cudnnConvolutionDescriptor_t out, int groups) {
    if (groups < 1) return CUDNN_STATUS_BAD_PARAM;
    out->groups = groups;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_math(cudnnConvolutionDescriptor_t out, cudnnMathType_t math) {
    out->math = math;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_activation(cudnnActivationDescriptor_t out, cudnnActivationMode_t mode,
                                    cudnnNanPropagation_t, double) {
    out->mode = mode;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- Geometry ---- */

/* A convolution with copies of its sizes, because a descriptor may be gone before the work runs. */
struct problem {
    bool bf16, tf32, x_planes, y_planes, w_planes;
    int groups, n, c, k;
    int in[3], out[3], kernel[3], pad[3], stride[3], dilation[3];
};

static cudnnStatus_t make_problem(problem *p, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                                  cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t y) {
    if (!x || !w || !conv || !y) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    size_t rank = x->dims.size();
    if (rank == 0 || w->dims.size() != rank || y->dims.size() != rank || conv->pad.size() + 2 != rank)
        return CUDNN_STATUS_BAD_PARAM;
    if (x->type != w->type || x->type != y->type) return CUDNN_STATUS_BAD_PARAM;
    *p = problem{x->type == CUDNN_DATA_BFLOAT16,
                 x->type == CUDNN_DATA_FLOAT && conv->math != CUDNN_FMA_MATH,
                 x->planes,
                 y->planes,
                 w->planes,
                 conv->groups,
                 x->dims[0],
                 x->dims[1],
                 w->dims[0],
                 {1, 1, 1},
                 {1, 1, 1},
                 {1, 1, 1},
                 {0, 0, 0},
                 {1, 1, 1},
                 {1, 1, 1}};
    if (p->c != w->dims[1] * p->groups || p->k % p->groups || y->dims[0] != p->n || y->dims[1] != p->k)
        return CUDNN_STATUS_BAD_PARAM;
    for (size_t i = 2; i < rank; ++i) {
        size_t from = i - 2, to = from + 5 - rank;
        p->in[to] = x->dims[i];
        p->out[to] = y->dims[i];
        p->kernel[to] = w->dims[i];
        p->pad[to] = conv->pad[from];
        p->stride[to] = conv->stride[from];
        p->dilation[to] = conv->dilation[from];
        int free = p->in[to] + 2 * p->pad[to] - (p->kernel[to] - 1) * p->dilation[to] - 1;
        if (free < 0 || free / p->stride[to] + 1 != p->out[to]) return CUDNN_STATUS_BAD_PARAM;
    }
    if (p->bf16 && ((p->c / p->groups) % 8 || (p->k / p->groups) % 8)) return CUDNN_STATUS_NOT_SUPPORTED;
    return CUDNN_STATUS_SUCCESS;
}

static float load(const void *data, bool bf16, size_t i) {
    if (!bf16) return static_cast<const float *>(data)[i];
    uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t *>(data)[i]) << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* An element as it is multiplied. */
static double factor(const problem &p, const void *data, size_t i) {
    float x = load(data, p.bf16, i);
    return static_cast<double>(p.tf32 ? sim_tf32(x) : x);
}

static void store(void *data, bool bf16, size_t i, double value) {
    float x = static_cast<float>(value);
    if (!bf16) {
        static_cast<float *>(data)[i] = x;
        return;
    }
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bool nan = x != x;
    static_cast<uint16_t *>(data)[i] =
        static_cast<uint16_t>(nan ? (bits >> 16) | 0x40u : (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/* Returns the index of a channel of a pixel, which is counted over all samples. */
static size_t index_of(bool planes, size_t pixel, const int *size, int channels, int channel) {
    size_t all = static_cast<size_t>(channels), c = static_cast<size_t>(channel);
    size_t image = static_cast<size_t>(size[0]) * static_cast<size_t>(size[1]) * static_cast<size_t>(size[2]);
    return planes ? (pixel / image * all + c) * image + pixel % image : pixel * all + c;
}

/* Calls f(index in x, index in y, index in w) for every product of the convolution. */
template <typename F> static void for_each_product(const problem &p, F f) {
    int gc = p.c / p.groups, gk = p.k / p.groups;
    size_t pixel = 0;
    for (int n = 0; n < p.n; ++n)
        for (int o0 = 0; o0 < p.out[0]; ++o0)
            for (int o1 = 0; o1 < p.out[1]; ++o1)
                for (int o2 = 0; o2 < p.out[2]; ++o2, ++pixel) {
                    int tap = 0, taps = p.kernel[0] * p.kernel[1] * p.kernel[2];
                    for (int k0 = 0; k0 < p.kernel[0]; ++k0)
                        for (int k1 = 0; k1 < p.kernel[1]; ++k1)
                            for (int k2 = 0; k2 < p.kernel[2]; ++k2, ++tap) {
                                int at[3] = {o0 * p.stride[0] - p.pad[0] + k0 * p.dilation[0],
                                             o1 * p.stride[1] - p.pad[1] + k1 * p.dilation[1],
                                             o2 * p.stride[2] - p.pad[2] + k2 * p.dilation[2]};
                                bool inside = true;
                                size_t from = static_cast<size_t>(n);
                                for (int i = 0; i < 3; ++i) {
                                    inside = inside && at[i] >= 0 && at[i] < p.in[i];
                                    from = from * static_cast<size_t>(p.in[i]) + static_cast<size_t>(at[i]);
                                }
                                if (!inside) continue;
                                for (int k = 0; k < p.k; ++k)
                                    for (int c = 0; c < gc; ++c)
                                        f(index_of(p.x_planes, from, p.in, p.c, k / gk * gc + c),
                                          index_of(p.y_planes, pixel, p.out, p.k, k),
                                          static_cast<size_t>(p.w_planes ? (k * gc + c) * taps + tap
                                                                         : (k * taps + tap) * gc + c));
                            }
                }
}

static size_t x_count(const problem &p) {
    return static_cast<size_t>(p.n) * p.in[0] * p.in[1] * p.in[2] * p.c;
}
static size_t y_count(const problem &p) {
    return static_cast<size_t>(p.n) * p.out[0] * p.out[1] * p.out[2] * p.k;
}
static size_t w_count(const problem &p) {
    return static_cast<size_t>(p.k) * p.kernel[0] * p.kernel[1] * p.kernel[2] * (p.c / p.groups);
}

/* ---- Algorithms ---- */

/* The heuristics put one that is not deterministic first, and then one that is refused when it shall run. */
static cudnnStatus_t advise_forward(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                    const cudnnFilterDescriptor_t w, const cudnnConvolutionDescriptor_t conv,
                                    const cudnnTensorDescriptor_t y, const int wanted, int *count,
                                    cudnnConvolutionFwdAlgoPerf_t *out) {
    static const cudnnConvolutionFwdAlgo_t order[] = {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD,
                                                      CUDNN_CONVOLUTION_FWD_ALGO_FFT,
                                                      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
                                                      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM};
    problem p;
    cudnnStatus_t status = make_problem(&p, x, w, conv, y);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    for (*count = 0; *count < 4 && *count < wanted; ++*count)
        out[*count] = {order[*count],
                       CUDNN_STATUS_SUCCESS,
                       -1,
                       64,
                       *count == 0 ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC,
                       conv->math,
                       {0}};
    return CUDNN_STATUS_SUCCESS;
}
static cudnnStatus_t advise_data(cudnnHandle_t, const cudnnFilterDescriptor_t w,
                                 const cudnnTensorDescriptor_t y, const cudnnConvolutionDescriptor_t conv,
                                 const cudnnTensorDescriptor_t x, const int wanted, int *count,
                                 cudnnConvolutionBwdDataAlgoPerf_t *out) {
    static const cudnnConvolutionBwdDataAlgo_t order[] = {CUDNN_CONVOLUTION_BWD_DATA_ALGO_0,
                                                          CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT,
                                                          CUDNN_CONVOLUTION_BWD_DATA_ALGO_1};
    problem p;
    cudnnStatus_t status = make_problem(&p, x, w, conv, y);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    for (*count = 0; *count < 3 && *count < wanted; ++*count)
        out[*count] = {order[*count],
                       CUDNN_STATUS_SUCCESS,
                       -1,
                       64,
                       *count == 0 ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC,
                       conv->math,
                       {0}};
    return CUDNN_STATUS_SUCCESS;
}
static cudnnStatus_t advise_filter(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                   const cudnnTensorDescriptor_t y, const cudnnConvolutionDescriptor_t conv,
                                   const cudnnFilterDescriptor_t w, const int wanted, int *count,
                                   cudnnConvolutionBwdFilterAlgoPerf_t *out) {
    static const cudnnConvolutionBwdFilterAlgo_t order[] = {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0,
                                                            CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT,
                                                            CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1};
    problem p;
    cudnnStatus_t status = make_problem(&p, x, w, conv, y);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    for (*count = 0; *count < 3 && *count < wanted; ++*count)
        out[*count] = {order[*count],
                       CUDNN_STATUS_SUCCESS,
                       -1,
                       64,
                       *count == 0 ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC,
                       conv->math,
                       {0}};
    return CUDNN_STATUS_SUCCESS;
}

static size_t workspace_of(int algorithm) {
    return 64 + 8 * static_cast<size_t>(algorithm);
}
static cudnnStatus_t forward_workspace(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                       const cudnnFilterDescriptor_t w,
                                       const cudnnConvolutionDescriptor_t conv,
                                       const cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algorithm,
                                       size_t *bytes) {
    problem p;
    *bytes = workspace_of(algorithm);
    return make_problem(&p, x, w, conv, y);
}
static cudnnStatus_t data_workspace(cudnnHandle_t, const cudnnFilterDescriptor_t w,
                                    const cudnnTensorDescriptor_t y, const cudnnConvolutionDescriptor_t conv,
                                    const cudnnTensorDescriptor_t x, cudnnConvolutionBwdDataAlgo_t algorithm,
                                    size_t *bytes) {
    problem p;
    *bytes = workspace_of(algorithm);
    return make_problem(&p, x, w, conv, y);
}
static cudnnStatus_t filter_workspace(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                      const cudnnTensorDescriptor_t y,
                                      const cudnnConvolutionDescriptor_t conv,
                                      const cudnnFilterDescriptor_t w,
                                      cudnnConvolutionBwdFilterAlgo_t algorithm, size_t *bytes) {
    problem p;
    *bytes = workspace_of(algorithm);
    return make_problem(&p, x, w, conv, y);
}

/* ---- Runs ---- */

/* Checks what all runs have in common. */
static cudnnStatus_t check_run(const problem &p, int algorithm, const void *alpha, const void *beta,
                               const void *x, const void *w, const void *y, const void *workspace,
                               size_t bytes) {
    if (!alpha || !beta || !x || !w || !y) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if (*static_cast<const float *>(alpha) != 1 || *static_cast<const float *>(beta) != 0)
        return CUDNN_STATUS_NOT_SUPPORTED;
    if (!workspace || bytes < workspace_of(algorithm)) return CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
    uintptr_t all =
        reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(w) | reinterpret_cast<uintptr_t>(y);
    if (p.bf16 && all % 16) return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t forward_with(cudnnHandle_t handle, const problem &p, int algorithm, const void *x,
                                  const void *w, const void *bias, bool relu, void *y, void *workspace) {
    size_t image = p.y_planes ? static_cast<size_t>(p.out[0]) * static_cast<size_t>(p.out[1]) *
                                    static_cast<size_t>(p.out[2])
                              : 1;
    sim_enqueue(handle->stream, [=] {
        memset(workspace, 0xee, workspace_of(algorithm));
        std::vector<double> sum(y_count(p));
        for_each_product(p,
                         [&](size_t i, size_t j, size_t k) { sum[j] += factor(p, x, i) * factor(p, w, k); });
        for (size_t j = 0; j < sum.size(); ++j) {
            if (bias) sum[j] += static_cast<double>(load(bias, p.bf16, j / image % static_cast<size_t>(p.k)));
            store(y, p.bf16, j, relu && sum[j] < 0 ? 0 : sum[j]);
        }
    });
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t run_forward(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t xd,
                                 const void *x, const cudnnFilterDescriptor_t wd, const void *w,
                                 const cudnnConvolutionDescriptor_t conv, cudnnConvolutionFwdAlgo_t algorithm,
                                 void *workspace, size_t bytes, const void *beta,
                                 const cudnnTensorDescriptor_t yd, void *y) {
    problem p;
    cudnnStatus_t status = make_problem(&p, xd, wd, conv, yd);
    if (status == CUDNN_STATUS_SUCCESS)
        status = check_run(p, algorithm, alpha, beta, x, w, y, workspace, bytes);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (algorithm == CUDNN_CONVOLUTION_FWD_ALGO_FFT) return CUDNN_STATUS_NOT_SUPPORTED;
    return forward_with(handle, p, algorithm, x, w, nullptr, false, y, workspace);
}

static cudnnStatus_t
run_bias_activation(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t xd, const void *x,
                    const cudnnFilterDescriptor_t wd, const void *w, const cudnnConvolutionDescriptor_t conv,
                    cudnnConvolutionFwdAlgo_t algorithm, void *workspace, size_t bytes, const void *alpha2,
                    const cudnnTensorDescriptor_t zd, const void *z, const cudnnTensorDescriptor_t bd,
                    const void *bias, const cudnnActivationDescriptor_t activation,
                    const cudnnTensorDescriptor_t yd, void *y) {
    problem p;
    cudnnStatus_t status = make_problem(&p, xd, wd, conv, yd);
    if (status == CUDNN_STATUS_SUCCESS)
        status = check_run(p, algorithm, alpha, alpha2, x, w, y, workspace, bytes);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (algorithm == CUDNN_CONVOLUTION_FWD_ALGO_FFT) return CUDNN_STATUS_NOT_SUPPORTED;
    if (!bias || !z || zd->dims != yd->dims || bd->type != yd->type) return CUDNN_STATUS_BAD_PARAM;
    for (size_t i = 0; i < bd->dims.size(); ++i)
        if (bd->dims[i] != (i == 1 ? p.k : 1)) return CUDNN_STATUS_BAD_PARAM;
    bool relu = activation->mode == CUDNN_ACTIVATION_RELU;
    if (!relu && (activation->mode != CUDNN_ACTIVATION_IDENTITY ||
                  algorithm != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM))
        return CUDNN_STATUS_NOT_SUPPORTED;
    return forward_with(handle, p, algorithm, x, w, bias, relu, y, workspace);
}

static cudnnStatus_t run_data(cudnnHandle_t handle, const void *alpha, const cudnnFilterDescriptor_t wd,
                              const void *w, const cudnnTensorDescriptor_t yd, const void *y,
                              const cudnnConvolutionDescriptor_t conv,
                              cudnnConvolutionBwdDataAlgo_t algorithm, void *workspace, size_t bytes,
                              const void *beta, const cudnnTensorDescriptor_t xd, void *x) {
    problem p;
    cudnnStatus_t status = make_problem(&p, xd, wd, conv, yd);
    if (status == CUDNN_STATUS_SUCCESS)
        status = check_run(p, algorithm, alpha, beta, x, w, y, workspace, bytes);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT) return CUDNN_STATUS_NOT_SUPPORTED;
    sim_enqueue(handle->stream, [=] {
        memset(workspace, 0xee, workspace_of(algorithm));
        std::vector<double> sum(x_count(p));
        for_each_product(p,
                         [&](size_t i, size_t j, size_t k) { sum[i] += factor(p, y, j) * factor(p, w, k); });
        for (size_t i = 0; i < sum.size(); ++i) store(x, p.bf16, i, sum[i]);
    });
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t run_filter(cudnnHandle_t handle, const void *alpha, const cudnnTensorDescriptor_t xd,
                                const void *x, const cudnnTensorDescriptor_t yd, const void *y,
                                const cudnnConvolutionDescriptor_t conv,
                                cudnnConvolutionBwdFilterAlgo_t algorithm, void *workspace, size_t bytes,
                                const void *beta, const cudnnFilterDescriptor_t wd, void *w) {
    problem p;
    cudnnStatus_t status = make_problem(&p, xd, wd, conv, yd);
    if (status == CUDNN_STATUS_SUCCESS)
        status = check_run(p, algorithm, alpha, beta, x, w, y, workspace, bytes);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    if (algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT) return CUDNN_STATUS_NOT_SUPPORTED;
    sim_enqueue(handle->stream, [=] {
        memset(workspace, 0xee, workspace_of(algorithm));
        std::vector<double> sum(w_count(p));
        for_each_product(p,
                         [&](size_t i, size_t j, size_t k) { sum[k] += factor(p, x, i) * factor(p, y, j); });
        for (size_t k = 0; k < sum.size(); ++k) store(w, p.bf16, k, sum[k]);
    });
    return CUDNN_STATUS_SUCCESS;
}

extern "C" leat_status leati_cuda_load_dnn(leati_cuda_api *api, leat_error *) {
    api->cudnnGetVersion = version;
    api->cudnnGetErrorString = error_string;
    api->cudnnCreate = create;
    api->cudnnDestroy = destroy;
    api->cudnnSetStream = set_stream;
    api->cudnnCreateTensorDescriptor = create_descriptor;
    api->cudnnSetTensorNdDescriptor = set_tensor;
    api->cudnnDestroyTensorDescriptor = destroy_descriptor;
    api->cudnnCreateFilterDescriptor = create_descriptor;
    api->cudnnSetFilterNdDescriptor = set_filter;
    api->cudnnDestroyFilterDescriptor = destroy_descriptor;
    api->cudnnCreateConvolutionDescriptor = create_descriptor;
    api->cudnnSetConvolutionNdDescriptor = set_convolution;
    api->cudnnSetConvolutionGroupCount = set_groups;
    api->cudnnSetConvolutionMathType = set_math;
    api->cudnnDestroyConvolutionDescriptor = destroy_descriptor;
    api->cudnnGetConvolutionForwardAlgorithm_v7 = advise_forward;
    api->cudnnGetConvolutionBackwardDataAlgorithm_v7 = advise_data;
    api->cudnnGetConvolutionBackwardFilterAlgorithm_v7 = advise_filter;
    api->cudnnGetConvolutionForwardWorkspaceSize = forward_workspace;
    api->cudnnGetConvolutionBackwardDataWorkspaceSize = data_workspace;
    api->cudnnGetConvolutionBackwardFilterWorkspaceSize = filter_workspace;
    api->cudnnConvolutionForward = run_forward;
    api->cudnnConvolutionBiasActivationForward = run_bias_activation;
    api->cudnnConvolutionBackwardData = run_data;
    api->cudnnConvolutionBackwardFilter = run_filter;
    api->cudnnCreateActivationDescriptor = create_descriptor;
    api->cudnnSetActivationDescriptor = set_activation;
    api->cudnnDestroyActivationDescriptor = destroy_descriptor;
    sim_guard_dnn(api);
    return LEAT_OK;
}
