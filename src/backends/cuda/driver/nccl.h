/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of NCCL that the backend calls.  NCCL's header is not needed to build leat: its interface of version 2
 * is declared here, as far as the backend uses it.  The tests have an implementation of the table that adds up between
 * processes on one machine (tests/cuda/sim/nccl.cc). */
#ifndef LEATI_BACKENDS_CUDA_DRIVER_NCCL_H
#define LEATI_BACKENDS_CUDA_DRIVER_NCCL_H

#include <cuda.h>
#include <stddef.h>

#include "leat/error.h"

#ifdef __cplusplus /* the simulated device */
extern "C" {
#endif

typedef struct leati_nccl_comm leati_nccl_comm; /* ncclComm */

typedef struct leati_nccl_id { /* ncclUniqueId */
    char bytes[128];
} leati_nccl_id;

/* ncclConfig_t, as versions 2.14 and 2.17 have it.  `version` says which members count, so that newer libraries accept
 * it. */
typedef struct leati_nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking;
    int cga_cluster_size; /* unset: version 2.14 has no such member */
} leati_nccl_config;

enum {
    LEATI_NCCL_SUCCESS = 0,            /* ncclSuccess */
    LEATI_NCCL_IN_PROGRESS = 7,        /* ncclInProgress */
    LEATI_NCCL_FLOAT32 = 7,            /* ncclFloat32 */
    LEATI_NCCL_SUM = 0,                /* ncclSum */
    LEATI_NCCL_LEAST = 21400,          /* the version whose calls need not block: 2.14.0 */
    LEATI_NCCL_UNSET = -2147483647 - 1 /* NCCL_CONFIG_UNDEF_INT */
};
#define LEATI_NCCL_MAGIC 0xcafebeefu

/* X(result, member, arguments, NCCL's name) */
#define LEATI_NCCL_FUNCTIONS(X)                                                                              \
    X(int, get_version, (int *version), ncclGetVersion)                                                      \
    X(const char *, error_string, (int result), ncclGetErrorString)                                          \
    X(int, get_id, (leati_nccl_id * out), ncclGetUniqueId)                                                   \
    X(int, init, (leati_nccl_comm * *out, int size, leati_nccl_id id, int rank, leati_nccl_config *config),  \
      ncclCommInitRankConfig)                                                                                \
    X(int, state, (leati_nccl_comm * comm, int *result), ncclCommGetAsyncError)                              \
    X(int, all_reduce,                                                                                       \
      (const void *from, void *to, size_t count, int type, int op, leati_nccl_comm *comm, CUstream stream),  \
      ncclAllReduce)                                                                                         \
    X(int, finalize, (leati_nccl_comm * comm), ncclCommFinalize)                                             \
    X(int, destroy, (leati_nccl_comm * comm), ncclCommDestroy)                                               \
    X(int, abort, (leati_nccl_comm * comm), ncclCommAbort)

typedef struct leati_nccl_api {
#define LEATI_NCCL_MEMBER(result, member, arguments, function) result(*member) arguments;
    LEATI_NCCL_FUNCTIONS(LEATI_NCCL_MEMBER)
#undef LEATI_NCCL_MEMBER
} leati_nccl_api;

/* Opens NCCL.  Errors: LEAT_ENOTSUP the library is missing or too old; the message names it. */
leat_status leati_cuda_load_nccl(leati_nccl_api *api, leat_error *err);

#ifdef __cplusplus
}
#endif

#endif
