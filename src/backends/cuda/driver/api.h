/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of NVIDIA's driver, of cuBLASLt and of cuDNN that the backend calls.  They are found at run time, so
 * that one build of leat runs on machines with and without a GPU.  The tests have an implementation of this table that
 * simulates a device (tests/cuda/sim). */
#ifndef LEATI_BACKENDS_CUDA_DRIVER_API_H
#define LEATI_BACKENDS_CUDA_DRIVER_API_H

#include <cublasLt.h>
#include <cuda.h>
#include <cudnn.h>

#include "leat/error.h"

#ifdef __cplusplus /* the simulated device */
extern "C" {
#endif

#define LEATI_CUDA_DRIVER_FUNCTIONS(X)                                                                       \
    X(cuInit)                                                                                                \
    X(cuDriverGetVersion)                                                                                    \
    X(cuGetErrorName)                                                                                        \
    X(cuGetErrorString)                                                                                      \
    X(cuDeviceGet)                                                                                           \
    X(cuDeviceGetCount)                                                                                      \
    X(cuDeviceGetName)                                                                                       \
    X(cuDeviceGetUuid)                                                                                       \
    X(cuDeviceGetAttribute)                                                                                  \
    X(cuDevicePrimaryCtxRetain)                                                                              \
    X(cuDevicePrimaryCtxRelease)                                                                             \
    X(cuDevicePrimaryCtxSetFlags)                                                                            \
    X(cuCtxSetCurrent)                                                                                       \
    X(cuMemGetInfo)                                                                                          \
    X(cuMemAlloc)                                                                                            \
    X(cuMemFree)                                                                                             \
    X(cuMemHostAlloc)                                                                                        \
    X(cuMemFreeHost)                                                                                         \
    X(cuMemHostRegister)                                                                                     \
    X(cuMemHostUnregister)                                                                                   \
    X(cuMemcpyHtoDAsync)                                                                                     \
    X(cuMemcpyDtoHAsync)                                                                                     \
    X(cuMemcpyDtoDAsync)                                                                                     \
    X(cuMemsetD8Async)                                                                                       \
    X(cuStreamCreate)                                                                                        \
    X(cuStreamDestroy)                                                                                       \
    X(cuStreamSynchronize)                                                                                   \
    X(cuStreamQuery)                                                                                         \
    X(cuStreamWaitEvent)                                                                                     \
    X(cuStreamBeginCapture)                                                                                  \
    X(cuStreamEndCapture)                                                                                    \
    X(cuLaunchHostFunc)                                                                                      \
    X(cuEventCreate)                                                                                         \
    X(cuEventDestroy)                                                                                        \
    X(cuEventRecord)                                                                                         \
    X(cuEventQuery)                                                                                          \
    X(cuEventSynchronize)                                                                                    \
    X(cuEventElapsedTime)                                                                                    \
    X(cuGraphInstantiate)                                                                                    \
    X(cuGraphUpload)                                                                                         \
    X(cuGraphLaunch)                                                                                         \
    X(cuGraphDestroy)                                                                                        \
    X(cuGraphExecDestroy)                                                                                    \
    X(cuModuleLoadData)                                                                                      \
    X(cuModuleUnload)                                                                                        \
    X(cuModuleGetFunction)                                                                                   \
    X(cuFuncGetAttribute)                                                                                    \
    X(cuFuncSetAttribute)                                                                                    \
    X(cuLaunchKernelEx)

#define LEATI_CUDA_BLAS_FUNCTIONS(X)                                                                         \
    X(cublasLtCreate)                                                                                        \
    X(cublasLtDestroy)                                                                                       \
    X(cublasLtGetVersion)                                                                                    \
    X(cublasLtMatmulDescCreate)                                                                              \
    X(cublasLtMatmulDescDestroy)                                                                             \
    X(cublasLtMatmulDescSetAttribute)                                                                        \
    X(cublasLtMatrixLayoutCreate)                                                                            \
    X(cublasLtMatrixLayoutDestroy)                                                                           \
    X(cublasLtMatrixLayoutSetAttribute)                                                                      \
    X(cublasLtMatmulPreferenceCreate)                                                                        \
    X(cublasLtMatmulPreferenceDestroy)                                                                       \
    X(cublasLtMatmulPreferenceSetAttribute)                                                                  \
    X(cublasLtMatmulAlgoGetHeuristic)                                                                        \
    X(cublasLtMatmul)

#define LEATI_CUDA_DNN_FUNCTIONS(X)                                                                          \
    X(cudnnGetVersion)                                                                                       \
    X(cudnnGetErrorString)                                                                                   \
    X(cudnnCreate)                                                                                           \
    X(cudnnDestroy)                                                                                          \
    X(cudnnSetStream)                                                                                        \
    X(cudnnCreateTensorDescriptor)                                                                           \
    X(cudnnSetTensorNdDescriptor)                                                                            \
    X(cudnnDestroyTensorDescriptor)                                                                          \
    X(cudnnCreateFilterDescriptor)                                                                           \
    X(cudnnSetFilterNdDescriptor)                                                                            \
    X(cudnnDestroyFilterDescriptor)                                                                          \
    X(cudnnCreateConvolutionDescriptor)                                                                      \
    X(cudnnSetConvolutionNdDescriptor)                                                                       \
    X(cudnnSetConvolutionGroupCount)                                                                         \
    X(cudnnSetConvolutionMathType)                                                                           \
    X(cudnnDestroyConvolutionDescriptor)                                                                     \
    X(cudnnGetConvolutionForwardAlgorithm_v7)                                                                \
    X(cudnnGetConvolutionBackwardDataAlgorithm_v7)                                                           \
    X(cudnnGetConvolutionBackwardFilterAlgorithm_v7)                                                         \
    X(cudnnGetConvolutionForwardWorkspaceSize)                                                               \
    X(cudnnGetConvolutionBackwardDataWorkspaceSize)                                                          \
    X(cudnnGetConvolutionBackwardFilterWorkspaceSize)                                                        \
    X(cudnnConvolutionForward)                                                                               \
    X(cudnnConvolutionBiasActivationForward)                                                                 \
    X(cudnnConvolutionBackwardData)                                                                          \
    X(cudnnConvolutionBackwardFilter)                                                                        \
    X(cudnnCreateActivationDescriptor)                                                                       \
    X(cudnnSetActivationDescriptor)                                                                          \
    X(cudnnDestroyActivationDescriptor)

typedef struct leati_cuda_api {
#define LEATI_CUDA_MEMBER(function) __typeof__(&function) function;
    LEATI_CUDA_DRIVER_FUNCTIONS(LEATI_CUDA_MEMBER)
    LEATI_CUDA_BLAS_FUNCTIONS(LEATI_CUDA_MEMBER)
    LEATI_CUDA_DNN_FUNCTIONS(LEATI_CUDA_MEMBER)
#undef LEATI_CUDA_MEMBER
} leati_cuda_api;

/* Opens the driver and fills its part of *api.  Errors: LEAT_ENOTSUP the driver is missing or too old; the message
 * names the library. */
leat_status leati_cuda_load_driver(leati_cuda_api *api, leat_error *err);
/* Like leati_cuda_load_driver, for cuBLASLt and cuDNN, when the first kernel needs them. */
leat_status leati_cuda_load_blas(leati_cuda_api *api, leat_error *err);
leat_status leati_cuda_load_dnn(leati_cuda_api *api, leat_error *err);

#ifdef __cplusplus
}
#endif

#endif
