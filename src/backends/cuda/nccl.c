/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the GPUs of several processes by NCCL (engine/device_group.h).  No call of NCCL blocks, and the host does
 * not wait blindly for a queue with sums, because a lost process would stop both forever.  Room: backends/cuda. */
#include <string.h>
#include <time.h>

#include "backends/cuda/cuda.h"
#include "backends/cuda/driver/nccl.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/device_group.h"

struct leati_cuda_peers {
    leati_nccl_comm *comm; /* NULL: given up */
    bool pending;          /* the queue may have sums that have not ended */
    leat_status (*check)(void *user, leat_error *err);
    void *user;
};

static leat_status check_nccl(const leati_cuda *cuda, int result, const char *what, leat_error *err) {
    if (result == LEATI_NCCL_SUCCESS) return LEAT_OK;
    const char *text = cuda->nccl.error_string(result);
    return leati_fail(err, LEAT_EIO, "%s: NCCL: %s: %s", cuda->device.name, what,
                      text ? text : "unknown failure");
}

static void give_up(leati_device *device) {
    leati_cuda *cuda = leati_cuda_of(device);
    leati_cuda_peers *peers = cuda->peers;
    if (!peers || !peers->comm) return;
    cuda->api->cuCtxSetCurrent(cuda->context);
    (void)cuda->nccl.abort(peers->comm);
    peers->comm = NULL;
    peers->pending = false;
}

/* ---- Waiting ---- */

/* The first looks follow each other at once, since most sums are short; later ones leave the core to others. */
static void pause_after(int looks) {
    enum { eager = 2000, pause_ns = 20000 };
    const struct timespec pause = {.tv_nsec = pause_ns};
    if (looks > eager) (void)nanosleep(&pause, NULL);
}

/* Waits for a call that has not ended yet. */
static leat_status finish_call(leati_cuda *cuda, int result, const char *what, leat_error *err) {
    leati_cuda_peers *peers = cuda->peers;
    leat_status status = LEAT_OK;
    for (int looks = 0; result == LEATI_NCCL_IN_PROGRESS && status == LEAT_OK; ++looks) {
        pause_after(looks);
        status = peers->check(peers->user, err);
        if (status == LEAT_OK && cuda->nccl.state(peers->comm, &result) != LEATI_NCCL_SUCCESS)
            status = leati_fail(err, LEAT_EIO, "%s: NCCL: %s: no state", cuda->device.name, what);
    }
    if (status == LEAT_OK) status = check_nccl(cuda, result, what, err);
    if (status != LEAT_OK) give_up(&cuda->device);
    return status;
}

leat_status leati_cuda_wait_for_peers(leati_cuda *cuda, leat_error *err) {
    leati_cuda_peers *peers = cuda->peers;
    leat_status status = LEAT_OK;
    if (!peers || !peers->pending) return LEAT_OK;
    for (int looks = 0; cuda->api->cuStreamQuery(cuda->stream) == CUDA_ERROR_NOT_READY; ++looks) {
        int result = LEATI_NCCL_SUCCESS;
        pause_after(looks);
        status = peers->check(peers->user, err);
        if (status == LEAT_OK) (void)cuda->nccl.state(peers->comm, &result);
        if (status == LEAT_OK && result != LEATI_NCCL_IN_PROGRESS)
            status = check_nccl(cuda, result, "ncclAllReduce", err);
        if (status == LEAT_OK) continue;
        give_up(&cuda->device);
        return status;
    }
    peers->pending = false; /* a failure of other work is reported by the call that comes next */
    return LEAT_OK;
}

/* ---- Groups ---- */

/* Opens NCCL at the first call; afterwards cuda->nccl is set. */
static leat_status load(leati_cuda *cuda, leat_error *err) {
    int version = 0;
    if (cuda->nccl_version > 0) return LEAT_OK;
    LEATI_TRY(leati_cuda_load_nccl(&cuda->nccl, err));
    LEATI_TRY(check_nccl(cuda, cuda->nccl.get_version(&version), "ncclGetVersion", err));
    if (version < LEATI_NCCL_LEAST)
        return leati_fail(err, LEAT_ENOTSUP, "NCCL is too old: leat needs version 2.14");
    cuda->nccl_version = version;
    return LEAT_OK;
}

static leat_status find(leati_device *device, int *version, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(device);
    const leat_status status = load(cuda, err);
    *version = cuda->nccl_version;
    return status;
}

static leat_status make_name(leati_device *device, leati_group_name *out, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(device);
    leati_nccl_id id = {0};
    LEATI_TRY(load(cuda, err));
    LEATI_TRY(check_nccl(cuda, cuda->nccl.get_id(&id), "ncclGetUniqueId", err));
    memcpy(out->bytes, id.bytes, sizeof out->bytes);
    return LEAT_OK;
}

static void leave(leati_device *device) {
    leati_cuda *cuda = leati_cuda_of(device);
    leati_cuda_peers *peers = cuda->peers;
    if (!peers) return;
    cuda->api->cuCtxSetCurrent(cuda->context);
    (void)leati_cuda_wait_for_peers(cuda, NULL);
    if (peers->comm &&
        finish_call(cuda, cuda->nccl.finalize(peers->comm), "ncclCommFinalize", NULL) == LEAT_OK)
        (void)cuda->nccl.destroy(peers->comm);
    leati_free(peers);
    cuda->peers = NULL;
}

static leat_status join(leati_device *device, const leati_group_options *options, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(device);
    leati_nccl_config config = {.size = sizeof config,
                                .magic = LEATI_NCCL_MAGIC,
                                .version = LEATI_NCCL_LEAST,
                                .blocking = 0,
                                .cga_cluster_size = LEATI_NCCL_UNSET};
    leati_nccl_id id;
    leave(device);
    leati_cuda_peers *peers = leati_calloc(1, sizeof *peers);
    if (!peers) return leati_fail_memory(err, sizeof *peers, "a group of GPUs");
    cuda->peers = peers;
    peers->check = options->check;
    peers->user = options->user;
    memcpy(id.bytes, options->name.bytes, sizeof id.bytes);
    leat_status status =
        leati_cuda_check(cuda, cuda->api->cuCtxSetCurrent(cuda->context), "cuCtxSetCurrent", err);
    if (status == LEAT_OK) status = load(cuda, err);
    if (status == LEAT_OK) {
        int result = cuda->nccl.init(&peers->comm, options->size, id, options->rank, &config);
        status = finish_call(cuda, result, "ncclCommInitRankConfig", err);
    }
    if (status != LEAT_OK) leave(device);
    return status;
}

static leat_status sum(leati_device *device, float *values, size_t count, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(device);
    leati_cuda_peers *peers = cuda->peers;
    if (count == 0) return LEAT_OK;
    if (!peers || !peers->comm)
        return leati_fail(err, LEAT_EIO, "%s: the group of GPUs was given up", device->name);
    LEATI_TRY(leati_cuda_check(cuda, cuda->api->cuCtxSetCurrent(cuda->context), "cuCtxSetCurrent", err));
    peers->pending = true;
    return finish_call(cuda,
                       cuda->nccl.all_reduce(values, values, count, LEATI_NCCL_FLOAT32, LEATI_NCCL_SUM,
                                             peers->comm, cuda->stream),
                       "ncclAllReduce", err);
}

const leati_group_class leati_cuda_groups = {
    .find = find,
    .make_name = make_name,
    .join = join,
    .sum = sum,
    .give_up = give_up,
    .leave = leave,
};
