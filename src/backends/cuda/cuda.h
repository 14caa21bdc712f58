/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the CUDA backend share: the device behind a leati_device, finding and launching kernels, and the
 * handles of the libraries.  Room: backends/cuda. */
#ifndef LEATI_BACKENDS_CUDA_CUDA_H
#define LEATI_BACKENDS_CUDA_CUDA_H

#include "backends/cuda/backend.h"
#include "backends/cuda/driver/api.h"
#include "backends/cuda/driver/nccl.h"
#include "backends/cuda/kernels/modules.h"
#include "engine/backend.h"
#include "engine/device.h"

enum { LEATI_CUDA_MOST_STAMPS = 4096 };

typedef struct leati_cuda_choices leati_cuda_choices; /* ops/matmul_choice.c; one block of memory */
typedef struct leati_cuda_peers leati_cuda_peers;     /* nccl.c */

typedef struct leati_cuda {
    leati_device device; /* first: a leati_device * of this class is a leati_cuda * */
    const leati_cuda_api *api;
    int ordinal;
    CUdevice handle;
    CUcontext context;
    CUstream stream;
    CUstream copies;                           /* of copy_beside */
    CUevent copied;                            /* the end of the last of these copies */
    bool beside;                               /* there are copies that `stream` does not wait for yet */
    CUmodule modules[LEATI_CUDA_MODULE_COUNT]; /* NULL: not loaded yet */
    int multiprocessors;
    int threads;           /* that a multiprocessor can hold at once */
    int shared_bytes;      /* the most shared memory of a block */
    int capability;        /* 90 for 9.0 */
    cublasLtHandle_t blas; /* NULL: not needed yet; see leati_cuda_blas */
    cudnnHandle_t dnn;
    leati_cuda_choices *choices; /* NULL: no large product has been prepared yet */
    bool recording;
    struct leati_cuda_conv_choices
        *conv_choices;                      /* what was measured (ops/conv_choice.c); NULL: nothing yet */
    int conv_way;                           /* leati_cuda_set_conv_way */
    CUevent stamps[LEATI_CUDA_MOST_STAMPS]; /* NULL: not needed yet */
    CUevent marks[LEATI_MARK_COUNT];        /* NULL: not needed yet */
    leati_nccl_api nccl;
    int nccl_version;        /* 0: NCCL is not open */
    leati_cuda_peers *peers; /* the other devices of a group; NULL: none */
} leati_cuda;

static inline leati_cuda *leati_cuda_of(leati_device *device) {
    return (leati_cuda *)device;
}

/* Return LEAT_OK, or LEAT_EIO with the library's name for the failure in the message: "cuMemAlloc: out of memory". */
leat_status leati_cuda_check(const leati_cuda *cuda, CUresult result, const char *what, leat_error *err);
leat_status leati_cuda_check_blas(cublasStatus_t result, const char *what, leat_error *err);
leat_status leati_cuda_check_dnn(const leati_cuda *cuda, cudnnStatus_t result, const char *what,
                                 leat_error *err);

/* Open cuBLASLt and cuDNN at the first call: afterwards cuda->blas and cuda->dnn are set. */
leat_status leati_cuda_blas(leati_cuda *cuda, leat_error *err);
leat_status leati_cuda_dnn(leati_cuda *cuda, leat_error *err);

/* Finds the kernel `name` of a module, for prepare.  shared_bytes: the largest dynamic shared memory that launches of
 * the kernel will ask for. */
leat_status leati_cuda_kernel(leati_cuda *cuda, leati_cuda_module module, const char *name,
                              size_t shared_bytes, CUfunction *out, leat_error *err);

typedef struct leati_cuda_grid {
    unsigned x, y, z; /* blocks; 0 counts as 1 */
    unsigned threads; /* in a block */
    unsigned shared_bytes;
} leati_cuda_grid;

/* Adds a launch to the queue.  args: the kernel's parameter, which is copied. */
leat_status leati_cuda_launch(leati_cuda *cuda, CUfunction function, const leati_cuda_grid *grid, void *args,
                              leat_error *err);

extern const struct leati_group_class leati_cuda_groups;

/* Waits until the sums with other devices have ended that were added to the queue.  Errors: another process is lost, or
 * NCCL has failed; then the sums are given up, so that the queue ends. */
leat_status leati_cuda_wait_for_peers(leati_cuda *cuda, leat_error *err);

/* Frees cuda->conv_choices. */
void leati_cuda_conv_forget(leati_cuda *cuda);

/* Returns a grid of blocks of 256 threads for a grid-stride loop over `count` elements, with at most 16 blocks per
 * multiprocessor. */
leati_cuda_grid leati_cuda_grid_for(const leati_cuda *cuda, int64_t count);

/* For kernels whose state is one block of leati_calloc memory without owned members: kernel->destroy. */
void leati_cuda_free_state(void *state);

#endif
