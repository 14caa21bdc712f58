/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated GPU: the functions of NVIDIA's driver that the backend uses.  They check their arguments and return the
 * driver's errors; what the driver would not notice, and would go wrong on a GPU, ends the process with a report. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/driver/api.h"
#include "cuda/sim/calls.h"
#include "cuda/sim/fibers.h"
#include "cuda/sim/memory.h"
#include "cuda/sim/queue.h"
#include "cuda/sim/sim.h"
#include "cuda/sim/work.h"
extern "C" {
#include "backends/cuda/kernels/modules.h"
}

namespace {

/* ---- State, and what each call does first ---- */

constexpr int most_gpus = 8;
struct {
    bool initialised;
    int context_references[most_gpus];
    size_t modules;
    bool failing; /* during the call that fails */
} driver;
thread_local int current = -1; /* the GPU whose context this thread uses; -1: none */
char context_place[most_gpus]; /* the addresses are the contexts */

/* A call that fails has its effect nevertheless: it waits or destroys, and reports an older failure. */
bool acts_when_failing(sim_function_number f) {
    static const std::set<sim_function_number> some = {
        number_cuStreamSynchronize, number_cuEventSynchronize,  number_cuStreamDestroy,
        number_cuEventDestroy,      number_cuMemFree,           number_cuMemFreeHost,
        number_cuModuleUnload,      number_cuMemHostUnregister, number_cuGraphDestroy,
        number_cuGraphExecDestroy,  number_cuStreamEndCapture,  number_cuDevicePrimaryCtxRelease};
    return some.count(f) == 1;
}

bool works_without_context(sim_function_number f) {
    static const std::set<sim_function_number> some = {number_cuInit,
                                                       number_cuDriverGetVersion,
                                                       number_cuGetErrorName,
                                                       number_cuGetErrorString,
                                                       number_cuDeviceGet,
                                                       number_cuDeviceGetCount,
                                                       number_cuDeviceGetName,
                                                       number_cuDeviceGetUuid,
                                                       number_cuDeviceGetAttribute,
                                                       number_cuDevicePrimaryCtxRetain,
                                                       number_cuCtxSetCurrent,
                                                       number_cuDevicePrimaryCtxRelease,
                                                       number_cuDevicePrimaryCtxSetFlags};
    return some.count(f) == 1;
}

CUresult enter(sim_function_number f) {
    if (sim_is_error_text(f)) return CUDA_SUCCESS;
    if (sim_in_host_function()) return CUDA_ERROR_NOT_PERMITTED;
    if (!driver.initialised && f != number_cuInit && f != number_cuDriverGetVersion)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (works_without_context(f)) return CUDA_SUCCESS;
    if (current < 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (driver.context_references[current] == 0) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return sim_broken();
}

/* A driver function in the table: `inside` with the checks around it. */
template <auto inside, sim_function_number f> struct guarded;
template <typename... A, CUresult (*inside)(A...), sim_function_number f> struct guarded<inside, f> {
    static CUresult call(A... a) {
        std::lock_guard<std::recursive_mutex> hold(sim_mutex());
        CUresult result = enter(f);
        bool fails = sim_call_fails(f);
        if (acts_when_failing(f) && (fails || result == sim_broken())) {
            driver.failing = fails;
            CUresult acted = inside(a...);
            driver.failing = false;
            return fails ? sim_failure() : result != CUDA_SUCCESS ? result : acted;
        }
        if (fails) return sim_failure();
        return result == CUDA_SUCCESS ? inside(a...) : result;
    }
};

/* ---- The device ---- */

CUresult init(unsigned) {
    driver.initialised = true;
    return CUDA_SUCCESS;
}
CUresult driver_version(int *version) {
    *version = 13000;
    return CUDA_SUCCESS;
}

struct error_text {
    CUresult result;
    const char *name, *text;
};
const error_text error_texts[] = {
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE",
     "the operation cannot be performed in the present state"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {CUDA_ERROR_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {CUDA_ERROR_STREAM_CAPTURE_MERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "merging of two captures"},
    {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "the capture was begun elsewhere"},
    {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
     "capturing stream has unjoined work"},
    {CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
    {CUDA_ERROR_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
     "attempt to terminate a thread-local capture sequence from another thread"},
    {CUDA_ERROR_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

CUresult error_name(CUresult result, const char **name) {
    *name = nullptr;
    for (const error_text &e : error_texts)
        if (e.result == result) *name = e.name;
    return *name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult error_string(CUresult result, const char **text) {
    *text = nullptr;
    for (const error_text &e : error_texts)
        if (e.result == result) *text = e.text;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* LEAT_SIM_GPUS=NUMBER is the number of GPUs; without it there is one. */
int gpus() {
    const char *text = getenv("LEAT_SIM_GPUS");
    const int count = text ? atoi(text) : 1;
    return count < 1 || count > most_gpus ? 1 : count;
}
CUresult device_get(CUdevice *device, int ordinal) {
    *device = ordinal;
    return ordinal >= 0 && ordinal < gpus() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult device_count(int *count) {
    *count = gpus();
    return CUDA_SUCCESS;
}
CUresult device_name(char *name, int bytes, CUdevice) {
    snprintf(name, static_cast<size_t>(bytes), "simulated GPU");
    return CUDA_SUCCESS;
}
CUresult device_uuid(CUuuid *out, CUdevice device) {
    *out = {};
    out->bytes[0] = static_cast<char>('A' + device);
    return CUDA_SUCCESS;
}
CUresult device_attribute(int *value, CUdevice_attribute attribute, CUdevice) {
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 4; break;
    /* so few that the test cases have tensors with more elements than the device has threads */
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *value = 8; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 227 * 1024; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult context_retain(CUcontext *context, CUdevice device) {
    if (device < 0 || device >= gpus()) return CUDA_ERROR_INVALID_DEVICE;
    *context = reinterpret_cast<CUcontext>(&context_place[device]);
    ++driver.context_references[device];
    return CUDA_SUCCESS;
}
CUresult context_release(CUdevice device) {
    if (driver.context_references[device] == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--driver.context_references[device] == 0) sim_repair();
    return CUDA_SUCCESS;
}
CUresult context_flags(CUdevice, unsigned) {
    return CUDA_SUCCESS;
}
CUresult context_set(CUcontext context) {
    int device = -1;
    if (context) {
        while (++device < most_gpus && context != reinterpret_cast<CUcontext>(&context_place[device])) {
        }
        if (device == most_gpus) return CUDA_ERROR_INVALID_CONTEXT;
    }
    current = device;
    return CUDA_SUCCESS;
}

/* ---- Memory ---- */

CUresult mem_info(size_t *free_bytes, size_t *all) {
    *all = sim_device_bytes;
    *free_bytes = sim_device_bytes - sim_bytes_in_use(sim_on_device);
    return CUDA_SUCCESS;
}

CUresult mem_alloc(CUdeviceptr *out, size_t bytes) {
    CUresult result = sim_capture_check_unsafe();
    if (result != CUDA_SUCCESS) return result;
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    const sim_allocation *a = sim_allocate(sim_on_device, bytes);
    if (!a) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = a->at;
    return CUDA_SUCCESS;
}

/* The driver may wait for pending work here, but does not promise it: the memory goes at once. */
CUresult mem_free(CUdeviceptr memory) {
    CUresult result = sim_capture_check_unsafe();
    if (result != CUDA_SUCCESS) return result;
    return sim_free(sim_on_device, memory) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult host_alloc(void **out, size_t bytes, unsigned) {
    CUresult result = sim_capture_check_unsafe();
    if (result != CUDA_SUCCESS) return result;
    const sim_allocation *a = bytes ? sim_allocate(sim_pinned, bytes) : nullptr;
    if (!a) return bytes ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    *out = reinterpret_cast<void *>(a->at);
    return CUDA_SUCCESS;
}

void check_unused(uintptr_t at, size_t bytes) {
    if (sim_is_in_use(at, bytes)) sim_report("the host frees pinned memory that pending work uses");
}

CUresult host_free(void *memory) {
    uintptr_t at = reinterpret_cast<uintptr_t>(memory);
    CUresult result = sim_capture_check_unsafe();
    if (result != CUDA_SUCCESS) return result;
    const sim_allocation *a = sim_find(at, 1);
    if (a) check_unused(at, a->bytes);
    return sim_free(sim_pinned, at) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult host_register(void *memory, size_t bytes, unsigned) {
    CUresult result = sim_capture_check_unsafe();
    if (result != CUDA_SUCCESS) return result;
    return sim_register(reinterpret_cast<uintptr_t>(memory), bytes)
               ? CUDA_SUCCESS
               : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

CUresult host_unregister(void *memory) {
    uintptr_t at = reinterpret_cast<uintptr_t>(memory);
    CUresult result = sim_capture_check_unsafe();
    if (result != CUDA_SUCCESS) return result;
    if (sim_is_pinned(at, 1)) check_unused(at, 1);
    return sim_unregister(at) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

/* ---- Copies ---- */

/* The driver notices addresses that are no device memory; nobody but a mistaken caller has them. */
void check_device_range(const char *what, CUdeviceptr at, size_t bytes) {
    const sim_allocation *a = sim_find(at, 1);
    if (a && a->kind == sim_on_device && sim_find(at, bytes)) return;
    if (a && a->kind == sim_pinned) sim_report("%s: the device's address is in pinned memory", what);
    if (a)
        sim_report("%s: %zu bytes from byte %zu on of an allocation of %zu bytes", what, bytes,
                   static_cast<size_t>(at - a->at), a->bytes);
    sim_report("%s: %#llx is no address of device memory", what, static_cast<unsigned long long>(at));
}

void check_host_range(const char *what, const void *memory) {
    const sim_allocation *a = sim_find(reinterpret_cast<uintptr_t>(memory), 1);
    if (a && a->kind == sim_on_device) sim_report("%s: the host's address is in device memory", what);
}

void *pointer(CUdeviceptr p) {
    return reinterpret_cast<void *>(static_cast<uintptr_t>(p));
}

sim_work work_of_copy(const char *what, const void *host, size_t bytes) {
    sim_work w;
    uintptr_t at = reinterpret_cast<uintptr_t>(host);
    w.what = what;
    if (host && sim_is_pinned(at, bytes)) {
        w.pinned = at;
        w.pinned_bytes = bytes;
    }
    return w;
}

struct {
    size_t bytes;
    int64_t ns;
} slow;

/* Lets the copy that is running take its time. */
void delay(size_t bytes) {
    timespec time = {static_cast<time_t>(slow.ns / 1000000000), static_cast<long>(slow.ns % 1000000000)};
    if (slow.ns > 0 && bytes >= slow.bytes)
        while (nanosleep(&time, &time) != 0) {
        }
}

/* CUDA may read pageable memory during the call or later; pinned memory is read later. */
CUresult copy_in(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    const char *what = "cuMemcpyHtoDAsync";
    check_device_range(what, to, bytes);
    check_host_range(what, from);
    sim_work w = work_of_copy(what, from, bytes);
    if (w.pinned_bytes == 0 && !sim_is_capturing(stream) && sim_below(2) == 0) {
        std::string now(static_cast<const char *>(from), bytes);
        w.run = [=] {
            delay(bytes);
            memcpy(pointer(to), now.data(), bytes);
        };
    } else {
        w.run = [=] {
            delay(bytes);
            memcpy(pointer(to), from, bytes);
        };
    }
    return sim_stream_add(stream, w);
}

/* CUDA may wait for the copy to pageable memory. */
CUresult copy_out(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    const char *what = "cuMemcpyDtoHAsync";
    check_device_range(what, from, bytes);
    check_host_range(what, to);
    sim_work w = work_of_copy(what, to, bytes);
    w.run = [=] { memcpy(to, pointer(from), bytes); };
    bool waits = w.pinned_bytes == 0 && !sim_is_capturing(stream) && sim_below(4) == 0;
    CUresult result = sim_stream_add(stream, w);
    return result == CUDA_SUCCESS && waits ? sim_stream_synchronize(stream) : result;
}

CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    sim_work w;
    w.what = "cuMemcpyDtoDAsync";
    check_device_range("cuMemcpyDtoDAsync", to, bytes);
    check_device_range("cuMemcpyDtoDAsync", from, bytes);
    w.run = [=] { memmove(pointer(to), pointer(from), bytes); };
    return sim_stream_add(stream, w);
}

CUresult fill(CUdeviceptr to, unsigned char byte, size_t bytes, CUstream stream) {
    sim_work w;
    w.what = "cuMemsetD8Async";
    check_device_range("cuMemsetD8Async", to, bytes);
    w.run = [=] { memset(pointer(to), byte, bytes); };
    return sim_stream_add(stream, w);
}

/* ---- Streams, events and graphs (queue.cc) ---- */

CUresult stream_create(CUstream *stream, unsigned) {
    return sim_stream_create(stream);
}
CUresult stream_wait_event(CUstream stream, CUevent event, unsigned) {
    return sim_stream_wait_event(stream, event);
}
/* A capture whose end fails leaves no graph. */
CUresult end_capture(CUstream stream, CUgraph *graph) {
    if (driver.failing || sim_broken() != CUDA_SUCCESS) sim_capture_invalidate(stream);
    return sim_capture_end(stream, graph);
}
CUresult host_function(CUstream stream, CUhostFn function, void *user) {
    sim_work w;
    w.what = "a function of the host";
    w.on_host = true;
    w.run = [=] { function(user); };
    return sim_stream_add(stream, w);
}
CUresult graph_instantiate(CUgraphExec *out, CUgraph graph, unsigned long long) {
    return sim_graph_instantiate(out, graph);
}
CUresult graph_upload(CUgraphExec graph, CUstream) {
    return sim_graph_exec_check(graph);
}

/* ---- Modules and kernels ---- */

/* A module's image is its name. */
struct module {
    std::string name;
    bool live;
};
std::vector<std::unique_ptr<module>> modules;

CUresult module_load(CUmodule *out, const void *image) {
    CUresult result = sim_capture_check_unsafe();
    if (result != CUDA_SUCCESS) return result;
    modules.push_back(std::make_unique<module>(module{static_cast<const char *>(image), true}));
    ++driver.modules;
    *out = reinterpret_cast<CUmodule>(modules.back().get());
    return CUDA_SUCCESS;
}

module *find_module(CUmodule handle) {
    for (const auto &m : modules)
        if (reinterpret_cast<CUmodule>(m.get()) == handle && m->live) return m.get();
    return nullptr;
}

CUresult module_unload(CUmodule handle) {
    module *m = find_module(handle);
    if (!m) return CUDA_ERROR_INVALID_HANDLE;
    m->live = false;
    --driver.modules;
    return CUDA_SUCCESS;
}

/* A kernel belongs to the module that has the name of its file. */
CUresult module_function(CUfunction *out, CUmodule handle, const char *name) {
    const module *m = find_module(handle);
    sim_kernel *kernel = sim_find_kernel(name);
    if (!m) return CUDA_ERROR_INVALID_HANDLE;
    if (!kernel) return CUDA_ERROR_NOT_FOUND;
    std::string file = kernel->file;
    file = file.substr(file.rfind('/') + 1);
    if (file.substr(0, file.find('.')) != m->name) return CUDA_ERROR_NOT_FOUND;
    *out = reinterpret_cast<CUfunction>(kernel);
    return CUDA_SUCCESS;
}

CUresult function_attribute(CUfunction function, CUfunction_attribute attribute, int value) {
    sim_kernel *kernel = reinterpret_cast<sim_kernel *>(function);
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;
    if (value < 0 || value > 227 * 1024) return CUDA_ERROR_INVALID_VALUE;
    kernel->dynamic_shared = static_cast<size_t>(value);
    return CUDA_SUCCESS;
}

CUresult get_function_attribute(int *value, CUfunction_attribute attribute, CUfunction function) {
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_ERROR_INVALID_VALUE;
    *value = static_cast<int>(reinterpret_cast<sim_kernel *>(function)->dynamic_shared);
    return CUDA_SUCCESS;
}

/* A kernel on a GPU cannot read the host's pageable memory. */
void check_parameter(const sim_kernel *kernel, const std::string &parameter) {
    for (size_t i = 0; i + sizeof(uintptr_t) <= parameter.size(); i += sizeof(uintptr_t)) {
        uintptr_t word;
        memcpy(&word, parameter.data() + i, sizeof word);
        if (sim_is_pageable(word))
            sim_report("kernel %s: byte %zu of its parameter is an address of the host's pageable memory, or "
                       "was not set",
                       kernel->name, i);
    }
}

CUresult launch(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
    const unsigned gx = config->gridDimX, gy = config->gridDimY, gz = config->gridDimZ,
                   bx = config->blockDimX, by = config->blockDimY, bz = config->blockDimZ,
                   shared = config->sharedMemBytes;
    const CUstream stream = config->hStream;
    const sim_kernel *kernel = reinterpret_cast<const sim_kernel *>(function);
    if (!kernel || extra || gx > 0x7fffffff || gy > 65535 || gz > 65535 || bz > 64)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t threads = static_cast<uint64_t>(bx) * by * bz;
    if (gx == 0 || gy == 0 || gz == 0 || threads == 0 || threads > 1024) return CUDA_ERROR_INVALID_VALUE;
    if (shared > kernel->dynamic_shared || kernel->bytes > 4096) return CUDA_ERROR_INVALID_VALUE;
    if (threads > kernel->threads) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    std::string parameter(static_cast<const char *>(parameters[0]), kernel->bytes);
    check_parameter(kernel, parameter);
    sim_work w;
    w.what = std::string("kernel ") + kernel->name;
    w.run = [=] {
        const unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
        alignas(64) unsigned char copy_of[4096];
        memcpy(copy_of, parameter.data(), kernel->bytes);
        sim_launch(kernel, grid, block, shared, copy_of);
    };
    return sim_stream_add(stream, w);
}

} // namespace

int sim_current_gpu(void) {
    return current;
}

CUresult sim_enqueue(CUstream stream, std::function<void()> item, const char *what) {
    sim_work w;
    w.what = what;
    w.run = std::move(item);
    return sim_stream_add(stream, w);
}

/* ---- For tests ---- */

size_t sim_live(void) {
    size_t references = 0;
    for (int count : driver.context_references) references += static_cast<size_t>(count);
    return sim_allocation_count(sim_on_device) + sim_allocation_count(sim_pinned) + sim_object_count() +
           driver.modules + references;
}

void sim_slow_copies(size_t bytes, int64_t ns) {
    slow = {bytes, ns};
}

CUfunction sim_function(const char *name) {
    return reinterpret_cast<CUfunction>(sim_find_kernel(name));
}

extern "C" {
#define IMAGE(name)                                                                                          \
    extern const unsigned char leati_cuda_image_##name[];                                                    \
    const unsigned char leati_cuda_image_##name[] = #name;
LEATI_CUDA_MODULE_LIST(IMAGE)
}

extern "C" leat_status leati_cuda_load_driver(leati_cuda_api *api, leat_error *) {
#define SET(name, inside) api->name = guarded<inside, number_##name>::call
    SET(cuInit, init);
    SET(cuDriverGetVersion, driver_version);
    SET(cuGetErrorName, error_name);
    SET(cuGetErrorString, error_string);
    SET(cuDeviceGet, device_get);
    SET(cuDeviceGetCount, device_count);
    SET(cuDeviceGetName, device_name);
    SET(cuDeviceGetUuid, device_uuid);
    SET(cuDeviceGetAttribute, device_attribute);
    SET(cuDevicePrimaryCtxRetain, context_retain);
    SET(cuDevicePrimaryCtxRelease, context_release);
    SET(cuDevicePrimaryCtxSetFlags, context_flags);
    SET(cuCtxSetCurrent, context_set);
    SET(cuMemGetInfo, mem_info);
    SET(cuMemAlloc, mem_alloc);
    SET(cuMemFree, mem_free);
    SET(cuMemHostAlloc, host_alloc);
    SET(cuMemFreeHost, host_free);
    SET(cuMemHostRegister, host_register);
    SET(cuMemHostUnregister, host_unregister);
    SET(cuMemcpyHtoDAsync, copy_in);
    SET(cuMemcpyDtoHAsync, copy_out);
    SET(cuMemcpyDtoDAsync, copy);
    SET(cuMemsetD8Async, fill);
    SET(cuStreamCreate, stream_create);
    SET(cuStreamDestroy, sim_stream_destroy);
    SET(cuStreamSynchronize, sim_stream_synchronize);
    SET(cuStreamQuery, sim_stream_query);
    SET(cuStreamWaitEvent, stream_wait_event);
    SET(cuStreamBeginCapture, sim_capture_begin);
    SET(cuStreamEndCapture, end_capture);
    SET(cuLaunchHostFunc, host_function);
    SET(cuEventCreate, sim_event_create);
    SET(cuEventDestroy, sim_event_destroy);
    SET(cuEventRecord, sim_event_record);
    SET(cuEventQuery, sim_event_query);
    SET(cuEventSynchronize, sim_event_synchronize);
    SET(cuEventElapsedTime, sim_event_elapsed);
    SET(cuGraphInstantiate, graph_instantiate);
    SET(cuGraphUpload, graph_upload);
    SET(cuGraphLaunch, sim_graph_launch);
    SET(cuGraphDestroy, sim_graph_destroy);
    SET(cuGraphExecDestroy, sim_graph_exec_destroy);
    SET(cuModuleLoadData, module_load);
    SET(cuModuleUnload, module_unload);
    SET(cuModuleGetFunction, module_function);
    SET(cuFuncGetAttribute, get_function_attribute);
    SET(cuFuncSetAttribute, function_attribute);
    SET(cuLaunchKernelEx, launch);
    return LEAT_OK;
}
