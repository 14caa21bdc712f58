/* SPDX-License-Identifier: Apache-2.0 */
/* The queue on a GPU behind a leati_device: memory, copies, waiting, recording (CUDA graphs) and time stamps.
 * Room: backends/cuda. */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/cuda.h"
#include "base/error.h"
#include "base/memory.h"
#include "engine/device_group.h"

#define CHECK(cuda, call)                                                                                    \
    do {                                                                                                     \
        LEATI_TRY(leati_cuda_check(cuda, (cuda)->api->call, #call, err));                                    \
    } while (0)

/* Calls of the driver need the context, which each thread has to choose for itself.  The functions of a device that may
 * be the first ones that a thread calls choose it: work outside of a run, and the beginning of a run. */
#define ENTER(cuda) CHECK(cuda, cuCtxSetCurrent((cuda)->context))

leat_status leati_cuda_check(const leati_cuda *cuda, CUresult result, const char *what, leat_error *err) {
    if (result == CUDA_SUCCESS) return LEAT_OK;
    const char *text = NULL;
    cuda->api->cuGetErrorString(result, &text);
    int length = (int)strcspn(what, "(");
    return leati_fail(err, result == CUDA_ERROR_OUT_OF_MEMORY ? LEAT_ENOMEM : LEAT_EIO, "%s: %.*s: %s",
                      cuda->device.name, length, what, text ? text : "unknown failure");
}

static CUdeviceptr address(const void *memory) {
    return (CUdeviceptr)(uintptr_t)memory;
}

/* ---- Memory ---- */

static leat_status fill(leati_device *device, void *to, int byte, size_t bytes, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(device);
    if (bytes == 0) return LEAT_OK;
    ENTER(cuda);
    CHECK(cuda, cuMemsetD8Async(address(to), (unsigned char)byte, bytes, cuda->stream));
    return LEAT_OK;
}

static leat_status allocate(leati_device *device, size_t bytes, void **out, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(device);
    CUdeviceptr memory = 0;
    *out = NULL;
    ENTER(cuda);
    CUresult result = cuda->api->cuMemAlloc(&memory, bytes ? bytes : 1);
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        size_t free_bytes = 0, all = 0;
        cuda->api->cuMemGetInfo(&free_bytes, &all);
        return leati_fail(err, LEAT_ENOMEM,
                          "%s has no memory for %.1f MiB more: %.1f of %.1f MiB are free; "
                          "choose a smaller batch",
                          device->name, (double)bytes / 0x1p20, (double)free_bytes / 0x1p20,
                          (double)all / 0x1p20);
    }
    LEATI_TRY(leati_cuda_check(cuda, result, "cuMemAlloc", err));
    leat_status status = fill(device, (void *)(uintptr_t)memory, 0, bytes, err);
    if (status == LEAT_OK)
        *out = (void *)(uintptr_t)memory;
    else
        cuda->api->cuMemFree(memory);
    return status;
}

/* Waits until nothing uses the memory any more that the caller frees.  A failure was or will be reported elsewhere. */
static void settle(leati_cuda *cuda) {
    cuda->api->cuCtxSetCurrent(cuda->context);
    (void)leati_cuda_wait_for_peers(cuda, NULL);
    cuda->api->cuStreamSynchronize(cuda->copies);
    cuda->api->cuStreamSynchronize(cuda->stream);
}

static void release(leati_device *device, void *memory) {
    leati_cuda *cuda = leati_cuda_of(device);
    if (!memory) return;
    settle(cuda);
    cuda->api->cuMemFree(address(memory));
}

static leat_status allocate_host(leati_device *device, size_t bytes, void **out, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(device);
    *out = NULL;
    ENTER(cuda);
    CHECK(cuda, cuMemHostAlloc(out, bytes ? bytes : 1, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE));
    memset(*out, 0, bytes);
    return LEAT_OK;
}

static void release_host(leati_device *device, void *memory) {
    leati_cuda *cuda = leati_cuda_of(device);
    if (!memory) return;
    settle(cuda);
    cuda->api->cuMemFreeHost(memory);
}

/* ---- Work ---- */

static leat_status copy_in(leati_device *device, void *to, const void *from, size_t bytes, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(device);
    ENTER(cuda);
    if (bytes) CHECK(cuda, cuMemcpyHtoDAsync(address(to), from, bytes, cuda->stream));
    return LEAT_OK;
}

static leat_status copy_out(leati_device *device, void *to, const void *from, size_t bytes, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(device);
    ENTER(cuda);
    if (bytes) CHECK(cuda, cuMemcpyDtoHAsync(to, address(from), bytes, cuda->stream));
    return LEAT_OK;
}

static leat_status copy(leati_device *device, void *to, const void *from, size_t bytes, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(device);
    ENTER(cuda);
    if (bytes) CHECK(cuda, cuMemcpyDtoDAsync(address(to), address(from), bytes, cuda->stream));
    return LEAT_OK;
}

static leat_status call(leati_device *device, void (*function)(void *user), void *user, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(device);
    CHECK(cuda, cuLaunchHostFunc(cuda->stream, function, user));
    return LEAT_OK;
}

static leat_status stamp(leati_device *device, int index, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(device);
    if (index >= LEATI_CUDA_MOST_STAMPS) return LEAT_OK;
    if (!cuda->stamps[index]) CHECK(cuda, cuEventCreate(&cuda->stamps[index], CU_EVENT_DEFAULT));
    CHECK(cuda, cuEventRecord(cuda->stamps[index], cuda->stream));
    return LEAT_OK;
}

static leat_status copy_beside(leati_device *device, void *to, const void *from, size_t bytes,
                               leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(device);
    if (bytes == 0) return LEAT_OK;
    CHECK(cuda, cuMemcpyHtoDAsync(address(to), from, bytes, cuda->copies));
    cuda->beside = true;
    return LEAT_OK;
}

/* Once the host knows that the copies have ended, later work need not wait for them.  A failure is reported by join. */
static bool is_copying(leati_device *device) {
    leati_cuda *cuda = leati_cuda_of(device);
    cuda->api->cuCtxSetCurrent(cuda->context); /* the first call of a run */
    if (cuda->beside && cuda->api->cuStreamQuery(cuda->copies) == CUDA_SUCCESS) cuda->beside = false;
    return cuda->beside;
}

static leat_status join(leati_device *device, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(device);
    ENTER(cuda);
    if (!cuda->beside) return LEAT_OK;
    cuda->beside = false;
    CHECK(cuda, cuEventRecord(cuda->copied, cuda->copies));
    CHECK(cuda, cuStreamWaitEvent(cuda->stream, cuda->copied, 0));
    return LEAT_OK;
}

static leat_status pin(leati_device *device, void *memory, size_t bytes, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(device);
    ENTER(cuda);
    CHECK(cuda, cuMemHostRegister(memory, bytes, CU_MEMHOSTREGISTER_PORTABLE));
    return LEAT_OK;
}

static void unpin(leati_device *device, void *memory) {
    leati_cuda *cuda = leati_cuda_of(device);
    settle(cuda);
    cuda->api->cuMemHostUnregister(memory);
}

static bool is_idle(leati_device *device) {
    leati_cuda *cuda = leati_cuda_of(device);
    return cuda->api->cuStreamQuery(cuda->stream) != CUDA_ERROR_NOT_READY;
}

static leat_status wait(leati_device *device, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(device);
    ENTER(cuda);
    LEATI_TRY(leati_cuda_wait_for_peers(cuda, err));
    CHECK(cuda, cuStreamSynchronize(cuda->stream));
    return LEAT_OK;
}

static leat_status read_stamps(leati_device *device, int count, int64_t *ns, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(device);
    LEATI_TRY(wait(device, err));
    for (int i = 0; i + 1 < count; ++i) {
        float milliseconds = 0;
        ns[i] = 0;
        if (i + 1 >= LEATI_CUDA_MOST_STAMPS) continue;
        CHECK(cuda, cuEventElapsedTime(&milliseconds, cuda->stamps[i], cuda->stamps[i + 1]));
        ns[i] = (int64_t)((double)milliseconds * 1e6);
    }
    return LEAT_OK;
}

static leat_status mark(leati_device *device, leati_mark which, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(device);
    bool beside = which == LEATI_MARK_BESIDE_BEGIN || which == LEATI_MARK_BESIDE_END;
    if (!cuda->marks[which]) CHECK(cuda, cuEventCreate(&cuda->marks[which], CU_EVENT_DEFAULT));
    CHECK(cuda, cuEventRecord(cuda->marks[which], beside ? cuda->copies : cuda->stream));
    return LEAT_OK;
}

static leat_status between(leati_device *device, leati_mark from, leati_mark to, int64_t *ns,
                           leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(device);
    float milliseconds = 0;
    *ns = -1;
    if (!cuda->marks[from] || !cuda->marks[to]) return LEAT_OK;
    CUresult result = cuda->api->cuEventElapsedTime(&milliseconds, cuda->marks[from], cuda->marks[to]);
    if (result == CUDA_ERROR_NOT_READY) return LEAT_OK;
    LEATI_TRY(leati_cuda_check(cuda, result, "cuEventElapsedTime", err));
    *ns = milliseconds > 0 ? (int64_t)((double)milliseconds * 1e6) : 0;
    return LEAT_OK;
}

/* ---- Recordings ---- */

struct leati_recording {
    CUgraphExec graph;
};

static leat_status record(leati_device *device, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(device);
    CHECK(cuda, cuStreamBeginCapture(cuda->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    cuda->recording = true;
    return LEAT_OK;
}

static leat_status end_record(leati_device *device, leati_recording **out, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(device);
    CUgraph graph = NULL;
    *out = NULL;
    cuda->recording = false;
    CHECK(cuda, cuStreamEndCapture(cuda->stream, &graph));
    leati_recording *recording = leati_calloc(1, sizeof *recording);
    if (!recording) {
        cuda->api->cuGraphDestroy(graph);
        return leati_fail_memory(err, sizeof *recording, "a recording");
    }
    CUresult result = cuda->api->cuGraphInstantiate(&recording->graph, graph, 0);
    cuda->api->cuGraphDestroy(graph);
    if (result == CUDA_SUCCESS) result = cuda->api->cuGraphUpload(recording->graph, cuda->stream);
    if (result != CUDA_SUCCESS) {
        if (recording->graph) cuda->api->cuGraphExecDestroy(recording->graph);
        leati_free(recording);
        return leati_cuda_check(cuda, result, "cuGraphInstantiate", err);
    }
    *out = recording;
    return LEAT_OK;
}

static leat_status replay(leati_device *device, leati_recording *recording, leat_error *err) {
    leati_cuda *cuda = leati_cuda_of(device);
    CHECK(cuda, cuGraphLaunch(recording->graph, cuda->stream));
    return LEAT_OK;
}

static void destroy_recording(leati_device *device, leati_recording **recording) {
    leati_cuda *cuda = leati_cuda_of(device);
    if (!*recording) return;
    cuda->api->cuCtxSetCurrent(cuda->context);
    (void)leati_cuda_wait_for_peers(cuda, NULL);
    cuda->api->cuStreamSynchronize(cuda->stream);
    cuda->api->cuGraphExecDestroy((*recording)->graph);
    leati_free(*recording);
    *recording = NULL;
}

/* ---- Opening and closing ---- */

static void close_device(leati_device *device) {
    leati_cuda *cuda = leati_cuda_of(device);
    const leati_cuda_api *api = cuda->api;
    if (cuda->context) api->cuCtxSetCurrent(cuda->context);
    leati_cuda_groups.leave(device);
    if (cuda->stream) api->cuStreamSynchronize(cuda->stream);
    if (cuda->dnn) api->cudnnDestroy(cuda->dnn);
    if (cuda->blas) api->cublasLtDestroy(cuda->blas);
    for (int i = 0; i < LEATI_CUDA_MOST_STAMPS && cuda->stamps[i]; ++i) api->cuEventDestroy(cuda->stamps[i]);
    for (int i = 0; i < LEATI_CUDA_MODULE_COUNT; ++i)
        if (cuda->modules[i]) api->cuModuleUnload(cuda->modules[i]);
    for (int i = 0; i < LEATI_MARK_COUNT; ++i)
        if (cuda->marks[i]) api->cuEventDestroy(cuda->marks[i]);
    if (cuda->copied) api->cuEventDestroy(cuda->copied);
    if (cuda->copies) api->cuStreamDestroy(cuda->copies);
    if (cuda->stream) api->cuStreamDestroy(cuda->stream);
    if (cuda->context) api->cuDevicePrimaryCtxRelease(cuda->handle);
    leati_free(cuda->choices);
    leati_cuda_conv_forget(cuda);
    leati_free((void *)(uintptr_t)cuda->api);
    leati_free(cuda);
}

static const leati_device_class class = {
    .allocate = allocate,
    .release = release,
    .allocate_host = allocate_host,
    .release_host = release_host,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .copy = copy,
    .fill = fill,
    .call = call,
    .stamp = stamp,
    .copy_beside = copy_beside,
    .join = join,
    .is_copying = is_copying,
    .pin = pin,
    .unpin = unpin,
    .wait = wait,
    .is_idle = is_idle,
    .read_stamps = read_stamps,
    .mark = mark,
    .between = between,
    .record = record,
    .end_record = end_record,
    .replay = replay,
    .destroy_recording = destroy_recording,
    .close = close_device,
};

enum { least_capability = 75, tf32_from = 80, driver_of_cuda_13 = 13000 };

static leat_status find_gpu(leati_cuda *cuda, bool wraps, leat_error *err) {
    const leati_cuda_api *api = cuda->api;
    int version = 0, count = 0, major = 0, minor = 0;
    char name[64] = "";
    CUresult result = api->cuInit(0);
    if (result == CUDA_SUCCESS) result = api->cuDeviceGetCount(&count);
    if (result == CUDA_ERROR_NOT_INITIALIZED)
        return leati_fail(err, LEAT_ENOTSUP,
                          "this process was forked by a process that uses the GPU, and cannot "
                          "use it, too: start it as a new program");
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NO_DEVICE)
        return leati_cuda_check(cuda, result, "cuInit", err);
    if (count == 0) return leati_fail(err, LEAT_ENOTSUP, "NVIDIA's driver finds no GPU on this machine");
    if (wraps) cuda->ordinal %= count;
    if (cuda->ordinal >= count)
        return leati_fail(err, LEAT_ENOTSUP, "there is no GPU %d: NVIDIA's driver finds %d, numbered from 0",
                          cuda->ordinal, count);
    CHECK(cuda, cuDriverGetVersion(&version));
    if (version < driver_of_cuda_13)
        return leati_fail(err, LEAT_ENOTSUP,
                          "NVIDIA's driver supports CUDA %d.%d; leat needs a driver for CUDA 13",
                          version / 1000, version % 1000 / 10);
    CHECK(cuda, cuDeviceGet(&cuda->handle, cuda->ordinal));
    CHECK(cuda, cuDeviceGetName(name, sizeof name, cuda->handle));
    CHECK(cuda, cuDeviceGetUuid((CUuuid *)(void *)cuda->device.id, cuda->handle));
    CHECK(cuda, cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, cuda->handle));
    CHECK(cuda, cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, cuda->handle));
    CHECK(cuda, cuDeviceGetAttribute(&cuda->multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                                     cuda->handle));
    CHECK(cuda, cuDeviceGetAttribute(&cuda->threads, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
                                     cuda->handle));
    CHECK(cuda, cuDeviceGetAttribute(&cuda->shared_bytes,
                                     CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, cuda->handle));
    cuda->capability = 10 * major + minor;
    cuda->device.has_tf32 = cuda->capability >= tf32_from;
    if (cuda->capability < least_capability)
        return leati_fail(err, LEAT_ENOTSUP,
                          "%s is too old: it has compute capability %d.%d, and leat needs 7.5", name, major,
                          minor);
    snprintf(cuda->device.description, sizeof cuda->device.description, "%s, driver for CUDA %d.%d", name,
             version / 1000, version % 1000 / 10);
    return LEAT_OK;
}

static leat_status open_queue(leati_cuda *cuda, bool wraps, leat_error *err) {
    LEATI_TRY(find_gpu(cuda, wraps, err));
    snprintf(cuda->device.name, sizeof cuda->device.name, "cuda:%d", cuda->ordinal);
    CHECK(cuda, cuDevicePrimaryCtxRetain(&cuda->context, cuda->handle));
    ENTER(cuda);
    CHECK(cuda, cuStreamCreate(&cuda->stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuda, cuStreamCreate(&cuda->copies, CU_STREAM_NON_BLOCKING));
    CHECK(cuda, cuEventCreate(&cuda->copied, CU_EVENT_DISABLE_TIMING));
    return LEAT_OK;
}

static leat_status open_device(int ordinal, bool wraps, leati_device **out, leat_error *err) {
    static const leati_backend *const backends[] = {&leati_backend_cuda, NULL};
    leati_cuda_api *api = leati_calloc(1, sizeof *api);
    leati_cuda *cuda = leati_calloc(1, sizeof *cuda);
    *out = NULL;
    if (!api || !cuda) {
        leati_free(api);
        leati_free(cuda);
        return leati_fail_memory(err, sizeof *cuda, "a device");
    }
    cuda->api = api;
    cuda->ordinal = ordinal;
    cuda->device.class = &class;
    cuda->device.backends = backends;
    cuda->device.groups = &leati_cuda_groups;
    snprintf(cuda->device.name, sizeof cuda->device.name, "cuda:%d", ordinal);
    leat_status status = leati_cuda_load_driver(api, err);
    if (status == LEAT_OK) status = open_queue(cuda, wraps, err);
    if (status != LEAT_OK)
        close_device(&cuda->device);
    else
        *out = &cuda->device;
    return status;
}

leat_status leati_cuda_open(int ordinal, leati_device **out, leat_error *err) {
    return open_device(ordinal, false, out, err);
}

leat_status leati_cuda_open_any(int place, leati_device **out, leat_error *err) {
    return open_device(place > 0 ? place : 0, true, out, err);
}
