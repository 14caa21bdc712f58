/* SPDX-License-Identifier: Apache-2.0 */
/* Finds kernels in their modules and launches them; opens cuBLASLt and cuDNN.  Room: backends/cuda. */
#include "backends/cuda/cuda.h"
#include "base/error.h"
#include "base/memory.h"

#define MODULE_DECLARED(name) extern const unsigned char leati_cuda_image_##name[];
LEATI_CUDA_MODULE_LIST(MODULE_DECLARED)

static const unsigned char *const images[] = {
#define MODULE_IMAGE(name) leati_cuda_image_##name,
    LEATI_CUDA_MODULE_LIST(MODULE_IMAGE)};

/* Lets launches of a kernel ask for at least `bytes` of shared memory; other plans may have allowed more. */
static leat_status allow_shared(const leati_cuda *cuda, CUfunction function, size_t bytes, leat_error *err) {
    const CUfunction_attribute most = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    int allowed = 0;
    LEATI_TRY(leati_cuda_check(cuda, cuda->api->cuFuncGetAttribute(&allowed, most, function),
                               "cuFuncGetAttribute", err));
    if (bytes <= (size_t)allowed) return LEAT_OK;
    return leati_cuda_check(cuda, cuda->api->cuFuncSetAttribute(function, most, (int)bytes),
                            "cuFuncSetAttribute", err);
}

leat_status leati_cuda_kernel(leati_cuda *cuda, leati_cuda_module module, const char *name,
                              size_t shared_bytes, CUfunction *out, leat_error *err) {
    const leati_cuda_api *api = cuda->api;
    LEATI_TRY(leati_cuda_check(cuda, api->cuCtxSetCurrent(cuda->context), "cuCtxSetCurrent", err));
    if (!cuda->modules[module])
        LEATI_TRY(leati_cuda_check(cuda, api->cuModuleLoadData(&cuda->modules[module], images[module]),
                                   "cuModuleLoadData", err));
    LEATI_TRY(leati_cuda_check(cuda, api->cuModuleGetFunction(out, cuda->modules[module], name), name, err));
    return allow_shared(cuda, *out, shared_bytes, err);
}

static unsigned at_least_one(unsigned n) {
    return n ? n : 1;
}

/* From capability 9.0 on, a kernel may begin before the kernel before it has ended, and waits for it itself
 * (kernels/common.cuh). */
enum { begins_early_from = 90 };

leat_status leati_cuda_launch(leati_cuda *cuda, CUfunction function, const leati_cuda_grid *grid, void *args,
                              leat_error *err) {
    void *parameters[] = {args};
    CUlaunchAttribute early = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                               .value = {.programmaticStreamSerializationAllowed = 1}};
    const CUlaunchConfig config = {.gridDimX = at_least_one(grid->x),
                                   .gridDimY = at_least_one(grid->y),
                                   .gridDimZ = at_least_one(grid->z),
                                   .blockDimX = grid->threads,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .sharedMemBytes = grid->shared_bytes,
                                   .hStream = cuda->stream,
                                   .attrs = &early,
                                   .numAttrs = cuda->capability >= begins_early_from ? 1 : 0};
    return leati_cuda_check(cuda, cuda->api->cuLaunchKernelEx(&config, function, parameters, NULL),
                            "cuLaunchKernelEx", err);
}

leati_cuda_grid leati_cuda_grid_for(const leati_cuda *cuda, int64_t count) {
    enum { threads = 256, blocks_per_multiprocessor = 16 };
    int64_t blocks = (count + threads - 1) / threads;
    int64_t most = (int64_t)cuda->multiprocessors * blocks_per_multiprocessor;
    return (leati_cuda_grid){.x = (unsigned)(blocks < most ? blocks : most), .threads = threads};
}

void leati_cuda_free_state(void *state) {
    leati_free(state);
}

/* ---- Libraries ---- */

leat_status leati_cuda_check_blas(cublasStatus_t result, const char *what, leat_error *err) {
    if (result == CUBLAS_STATUS_SUCCESS) return LEAT_OK;
    return leati_fail(err, result == CUBLAS_STATUS_ALLOC_FAILED ? LEAT_ENOMEM : LEAT_EIO,
                      "cuBLASLt: %s failed with status %d", what, (int)result);
}

leat_status leati_cuda_check_dnn(const leati_cuda *cuda, cudnnStatus_t result, const char *what,
                                 leat_error *err) {
    if (result == CUDNN_STATUS_SUCCESS) return LEAT_OK;
    return leati_fail(err, result == CUDNN_STATUS_ALLOC_FAILED ? LEAT_ENOMEM : LEAT_EIO, "cuDNN: %s: %s",
                      what, cuda->api->cudnnGetErrorString(result));
}

/* The table of functions is const for kernels; only the device that loaded it fills it. */
static leati_cuda_api *table_of(const leati_cuda *cuda) {
    return (leati_cuda_api *)(uintptr_t)cuda->api;
}

leat_status leati_cuda_blas(leati_cuda *cuda, leat_error *err) {
    if (cuda->blas) return LEAT_OK;
    LEATI_TRY(leati_cuda_check(cuda, cuda->api->cuCtxSetCurrent(cuda->context), "cuCtxSetCurrent", err));
    LEATI_TRY(leati_cuda_load_blas(table_of(cuda), err));
    return leati_cuda_check_blas(cuda->api->cublasLtCreate(&cuda->blas), "cublasLtCreate", err);
}

leat_status leati_cuda_dnn(leati_cuda *cuda, leat_error *err) {
    if (cuda->dnn) return LEAT_OK;
    LEATI_TRY(leati_cuda_check(cuda, cuda->api->cuCtxSetCurrent(cuda->context), "cuCtxSetCurrent", err));
    LEATI_TRY(leati_cuda_load_dnn(table_of(cuda), err));
    LEATI_TRY(leati_cuda_check_dnn(cuda, cuda->api->cudnnCreate(&cuda->dnn), "cudnnCreate", err));
    return leati_cuda_check_dnn(cuda, cuda->api->cudnnSetStream(cuda->dnn, cuda->stream), "cudnnSetStream",
                                err);
}
