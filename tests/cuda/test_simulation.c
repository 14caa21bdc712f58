/* SPDX-License-Identifier: Apache-2.0 */
/* The simulated GPU itself: order and waiting, events, captures, its errors, and how it runs kernels. */
#include "cmocka_all.h"

#include <string.h>

#include "backends/cuda/cuda.h"
#include "cuda/sim/sim.h"
#include "cuda/test_kernels.h"

enum { seeds = 60, count = 64, bytes = count * sizeof(float) };

static leati_device *device;
static const leati_cuda_api *api;
static CUstream stream;

static int open_device(void **state) {
    (void)state;
    leat_error err = {0};
    if (leati_cuda_open(0, &device, &err) != LEAT_OK) fail_msg("%s", err.message);
    api = leati_cuda_of(device)->api;
    stream = leati_cuda_of(device)->stream;
    return 0;
}

static int close_device(void **state) {
    (void)state;
    leati_device_close(&device);
    assert_int_equal(sim_live(), 0);
    return 0;
}

static void ok(CUresult result) {
    assert_int_equal(result, CUDA_SUCCESS);
}

static CUdeviceptr device_memory(size_t size) {
    CUdeviceptr memory = 0;
    ok(api->cuMemAlloc(&memory, size));
    return memory;
}

static float *pinned_memory(size_t size) {
    void *memory = NULL;
    ok(api->cuMemHostAlloc(&memory, size, 0));
    memset(memory, 0, size);
    return memory;
}

static CUstream another_stream(void) {
    CUstream other = NULL;
    ok(api->cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    return other;
}

static CUevent event_of(unsigned flags) {
    CUevent event = NULL;
    ok(api->cuEventCreate(&event, flags));
    return event;
}

static CUresult launch(const char *name, unsigned blocks, unsigned threads, unsigned shared, CUstream to,
                       const test_args *args) {
    test_args copy = *args;
    void *parameters[] = {&copy};
    const CUlaunchConfig config = {.gridDimX = blocks,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = threads,
                                   .blockDimY = 1,
                                   .blockDimZ = 1,
                                   .sharedMemBytes = shared,
                                   .hStream = to};
    return api->cuLaunchKernelEx(&config, sim_function(name), parameters, NULL);
}

static float *at(CUdeviceptr memory) {
    return (float *)(uintptr_t)memory;
}

/* ---- Order ---- */

/* Returns in how many of the seeds the host reads a result that it has not waited for before it is there. */
static int count_early_reads(bool waits) {
    int wrong = 0;
    CUdeviceptr memory = device_memory(bytes);
    float *result = pinned_memory(bytes);
    for (uint64_t seed = 0; seed < seeds; ++seed) {
        sim_seed(seed);
        memset(result, 1, bytes);
        ok(api->cuMemsetD8Async(memory, 0, bytes, stream));
        ok(api->cuMemcpyDtoHAsync(result, memory, bytes, stream));
        if (waits) ok(api->cuStreamSynchronize(stream));
        wrong += *(unsigned char *)result != 0;
        ok(api->cuStreamSynchronize(stream));
    }
    ok(api->cuMemFree(memory));
    ok(api->cuMemFreeHost(result));
    return wrong;
}

static void work_runs_late(void **state) {
    (void)state;
    int wrong = count_early_reads(false);
    assert_true(wrong > seeds / 2 && wrong < seeds); /* now and then the work runs early */
    assert_int_equal(count_early_reads(true), 0);
}

/* Returns in how many of the seeds a second stream reads before the first one has written. */
static int count_wrong_orders(bool with_event) {
    int wrong = 0;
    CUdeviceptr from = device_memory(bytes), to = device_memory(bytes);
    CUstream other = another_stream();
    CUevent event = event_of(CU_EVENT_DISABLE_TIMING);
    float result[count];
    for (uint64_t seed = 0; seed < seeds; ++seed) {
        sim_seed(seed);
        ok(api->cuMemsetD8Async(from, 0xff, bytes, stream));
        ok(api->cuStreamSynchronize(stream));
        ok(api->cuMemsetD8Async(from, 0, bytes, stream));
        ok(api->cuEventRecord(event, stream));
        if (with_event) ok(api->cuStreamWaitEvent(other, event, 0));
        ok(api->cuMemcpyDtoDAsync(to, from, bytes, other));
        ok(api->cuMemcpyDtoHAsync(result, to, bytes, other));
        ok(api->cuStreamSynchronize(other));
        wrong += result[0] != 0;
        ok(api->cuStreamSynchronize(stream));
    }
    ok(api->cuEventDestroy(event));
    ok(api->cuStreamDestroy(other));
    ok(api->cuMemFree(from));
    ok(api->cuMemFree(to));
    return wrong;
}

static void streams_are_ordered_by_events_alone(void **state) {
    (void)state;
    int wrong = count_wrong_orders(false);
    assert_true(wrong > seeds / 10 && wrong < seeds);
    assert_int_equal(count_wrong_orders(true), 0);
}

static void events_tell_what_has_ended(void **state) {
    (void)state;
    CUdeviceptr memory = device_memory(bytes);
    CUevent first = event_of(CU_EVENT_DEFAULT), last = event_of(CU_EVENT_DEFAULT);
    CUevent untimed = event_of(CU_EVENT_DISABLE_TIMING);
    float milliseconds = -1;
    int tries = 0;
    ok(api->cuEventQuery(first)); /* never recorded */
    ok(api->cuEventSynchronize(first));
    assert_int_equal(api->cuEventElapsedTime(&milliseconds, first, last), CUDA_ERROR_INVALID_HANDLE);
    sim_seed(3);
    ok(api->cuEventRecord(first, stream));
    for (int i = 0; i < 20; ++i) ok(api->cuMemsetD8Async(memory, 1, bytes, stream));
    ok(api->cuEventRecord(last, stream));
    ok(api->cuEventRecord(untimed, stream));
    assert_int_equal(api->cuEventElapsedTime(&milliseconds, first, last), CUDA_ERROR_NOT_READY);
    assert_int_equal(api->cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    while (api->cuEventQuery(last) == CUDA_ERROR_NOT_READY) ++tries;
    assert_true(tries > 0);
    ok(api->cuEventSynchronize(untimed));
    ok(api->cuEventElapsedTime(&milliseconds, first, last));
    assert_true(milliseconds >= 0);
    assert_int_equal(api->cuEventElapsedTime(&milliseconds, first, untimed), CUDA_ERROR_INVALID_HANDLE);
    ok(api->cuEventDestroy(first));
    ok(api->cuEventDestroy(last));
    ok(api->cuEventDestroy(untimed));
    assert_int_equal(api->cuEventRecord(untimed, stream), CUDA_ERROR_INVALID_HANDLE);
    ok(api->cuMemFree(memory));
}

/* The work of a stream that is destroyed ends all the same. */
static void destroyed_streams_are_noticed(void **state) {
    (void)state;
    CUdeviceptr memory = device_memory(bytes);
    CUstream other = another_stream();
    CUevent event = event_of(CU_EVENT_DISABLE_TIMING);
    float result[count];
    ok(api->cuMemsetD8Async(memory, 0, bytes, other));
    ok(api->cuEventRecord(event, other));
    ok(api->cuStreamDestroy(other));
    ok(api->cuStreamWaitEvent(stream, event, 0));
    ok(api->cuMemcpyDtoHAsync(result, memory, bytes, stream));
    ok(api->cuStreamSynchronize(stream));
    assert_true(result[5] == 0);
    assert_int_equal(api->cuMemsetD8Async(memory, 0, bytes, other), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(api->cuStreamSynchronize(other), CUDA_ERROR_INVALID_HANDLE);
    assert_int_equal(api->cuStreamDestroy(other), CUDA_ERROR_INVALID_HANDLE);
    ok(api->cuEventDestroy(event));
    ok(api->cuMemFree(memory));
}

/* ---- Memory ---- */

static void memory_is_fresh_and_limited(void **state) {
    (void)state;
    CUdeviceptr memory = device_memory(100), none = 0;
    size_t before = 0, after = 0, all = 0;
    unsigned char result[100];
    assert_int_equal(memory % 256, 0);
    ok(api->cuMemcpyDtoHAsync(result, memory, sizeof result, stream));
    ok(api->cuStreamSynchronize(stream));
    for (size_t i = 0; i < sizeof result; ++i) assert_int_equal(result[i], 0xff);
    ok(api->cuMemGetInfo(&before, &all));
    assert_int_equal(api->cuMemAlloc(&none, all), CUDA_ERROR_OUT_OF_MEMORY);
    assert_int_equal(api->cuMemAlloc(&none, 0), CUDA_ERROR_INVALID_VALUE);
    ok(api->cuMemFree(memory));
    ok(api->cuMemGetInfo(&after, &all));
    assert_true(after > before);
    assert_int_equal(api->cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(api->cuMemFreeHost(result), CUDA_ERROR_INVALID_VALUE);
}

static void registered_memory_is_pinned(void **state) {
    (void)state;
    static float memory[count];
    ok(api->cuMemHostRegister(memory, bytes, 0));
    assert_int_equal(api->cuMemHostRegister(memory + 1, 4, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    test_args args = {.from = memory, .to = memory, .count = count, .scale = 2};
    for (int i = 0; i < count; ++i) memory[i] = (float)i;
    ok(launch("test_scale", 1, 32, 0, stream, &args));
    ok(api->cuStreamSynchronize(stream));
    for (int i = 0; i < count; ++i) assert_true(memory[i] == 2 * (float)i);
    ok(api->cuMemHostUnregister(memory));
    assert_int_equal(api->cuMemHostUnregister(memory), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

static void function_of_the_host(void *user) {
    *(CUresult *)user = api->cuStreamSynchronize(stream);
}

static void functions_of_the_host_may_not_use_the_device(void **state) {
    (void)state;
    CUresult result = CUDA_SUCCESS;
    ok(api->cuLaunchHostFunc(stream, function_of_the_host, &result));
    ok(api->cuStreamSynchronize(stream));
    assert_int_equal(result, CUDA_ERROR_NOT_PERMITTED);
}

/* ---- Captures ---- */

static void begin(CUstream of) {
    ok(api->cuStreamBeginCapture(of, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
}

static void expect_invalid_capture(void) {
    CUgraph graph = NULL;
    test_args none = {0};
    assert_int_equal(launch("test_scale", 1, 32, 0, stream, &none), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_int_equal(api->cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_null(graph);
    ok(api->cuStreamSynchronize(stream));
}

static void captures_forbid_what_cuda_forbids(void **state) {
    (void)state;
    CUdeviceptr memory = device_memory(4), none = 0;
    CUgraph graph = NULL;
    CUevent event = event_of(CU_EVENT_DISABLE_TIMING), before = event_of(CU_EVENT_DISABLE_TIMING);
    void *host = NULL;
    ok(api->cuEventRecord(before, stream));
    assert_int_equal(api->cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
    begin(stream);
    assert_int_equal(api->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED),
                     CUDA_ERROR_ILLEGAL_STATE);
    assert_int_equal(api->cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    expect_invalid_capture();
    begin(stream);
    assert_int_equal(api->cuMemAlloc(&none, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    expect_invalid_capture();
    begin(stream);
    assert_int_equal(api->cuMemFree(memory), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    expect_invalid_capture();
    begin(stream);
    assert_int_equal(api->cuMemHostAlloc(&host, 4, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    expect_invalid_capture();
    begin(stream);
    assert_int_equal(api->cuStreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    expect_invalid_capture();
    begin(stream);
    ok(api->cuEventRecord(event, stream));
    assert_int_equal(api->cuEventSynchronize(event), CUDA_ERROR_CAPTURED_EVENT);
    expect_invalid_capture();
    begin(stream);
    assert_int_equal(api->cuStreamWaitEvent(stream, before, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    expect_invalid_capture();
    ok(api->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    ok(api->cuMemAlloc(&none, 4));
    ok(api->cuStreamEndCapture(stream, &graph));
    ok(api->cuGraphDestroy(graph));
    ok(api->cuMemFree(none));
    ok(api->cuMemFree(memory));
    ok(api->cuEventDestroy(event));
    ok(api->cuEventDestroy(before));
}

static CUgraphExec end_and_instantiate(void) {
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    ok(api->cuStreamEndCapture(stream, &graph));
    ok(api->cuGraphInstantiate(&exec, graph, 0));
    ok(api->cuGraphDestroy(graph));
    ok(api->cuGraphUpload(exec, stream));
    return exec;
}

static void replays_use_what_was_captured(void **state) {
    (void)state;
    CUdeviceptr memory = device_memory(bytes);
    float *pinned = pinned_memory(bytes);
    test_args args = {.from = at(memory), .to = at(memory), .count = count, .scale = 3};
    begin(stream);
    ok(api->cuMemcpyHtoDAsync(memory, pinned, bytes, stream));
    ok(launch("test_scale", 1, 32, 0, stream, &args));
    args.scale = 100; /* too late */
    ok(api->cuMemcpyDtoHAsync(pinned, memory, bytes, stream));
    CUgraphExec exec = end_and_instantiate();
    assert_true(pinned[1] == 0); /* nothing has run */
    for (int i = 0; i < count; ++i) pinned[i] = (float)i;
    for (int run = 0; run < 4; ++run) ok(api->cuGraphLaunch(exec, stream));
    ok(api->cuGraphExecDestroy(exec)); /* its launches still end */
    ok(api->cuStreamSynchronize(stream));
    for (int i = 0; i < count; ++i) assert_true(pinned[i] == 81 * (float)i);
    assert_int_equal(api->cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_HANDLE);
    ok(api->cuMemFree(memory));
    ok(api->cuMemFreeHost(pinned));
}

/* Two streams in one capture: to = 2 from + 3 from, each product in a stream of its own. */
static void a_capture_joins_streams(void **state) {
    (void)state;
    CUdeviceptr memory = device_memory(3 * bytes);
    CUstream other = another_stream();
    CUevent fork = event_of(CU_EVENT_DISABLE_TIMING), join = event_of(CU_EVENT_DISABLE_TIMING);
    float result[3 * count], *from = at(memory);
    test_args twice = {.from = from, .to = from + count, .count = count, .scale = 2};
    test_args thrice = {.from = from, .to = from + 2 * count, .count = count, .scale = 3};
    CUgraph graph = NULL;
    for (int joined = 0; joined < 2; ++joined) {
        begin(stream);
        ok(api->cuMemsetD8Async(memory, 0x40, bytes, stream));
        ok(api->cuEventRecord(fork, stream));
        ok(api->cuStreamWaitEvent(other, fork, 0));
        ok(launch("test_scale", 1, 32, 0, stream, &twice));
        ok(launch("test_scale", 1, 32, 0, other, &thrice));
        assert_int_equal(api->cuStreamEndCapture(other, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
        if (joined) break;
        assert_int_equal(api->cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    }
    ok(api->cuEventRecord(join, other));
    ok(api->cuStreamWaitEvent(stream, join, 0));
    ok(api->cuMemcpyDtoHAsync(result, memory, sizeof result, stream));
    CUgraphExec exec = end_and_instantiate();
    for (uint64_t seed = 0; seed < seeds; ++seed) {
        sim_seed(seed);
        ok(api->cuMemsetD8Async(memory, 0xff, 3 * bytes, stream));
        ok(api->cuGraphLaunch(exec, stream));
        ok(api->cuStreamSynchronize(stream));
        for (int i = 0; i < count; ++i)
            assert_true(result[count + i] + result[2 * count + i] == 5 * result[i]);
    }
    ok(api->cuGraphExecDestroy(exec));
    ok(api->cuEventDestroy(fork));
    ok(api->cuEventDestroy(join));
    ok(api->cuStreamDestroy(other));
    ok(api->cuMemFree(memory));
}

/* ---- Kernels ---- */

static void kernels_compute_in_any_order(void **state) {
    (void)state;
    enum { blocks = 3 };
    float *numbers = pinned_memory(blocks * 256 * sizeof(float)),
          *result = pinned_memory(1024 * sizeof(float));
    test_args args = {.from = numbers, .to = result, .count = blocks * 256 - 5};
    for (int i = 0; i < blocks * 256; ++i) numbers[i] = (float)i;
    for (uint64_t seed = 0; seed < seeds; ++seed) {
        sim_seed(seed);
        memset(result, 0, bytes);
        ok(launch("test_block_sum", blocks, 256, 0, stream, &args));
        ok(api->cuStreamSynchronize(stream));
        assert_true(result[0] == 255 * 256 / 2 && result[1] == 255 * 256 / 2 + 256 * 256);
        ok(launch("test_reverse", 1, 100, 100 * sizeof(float), stream, &args));
        ok(api->cuStreamSynchronize(stream));
        for (int i = 0; i < 100; ++i) assert_true(result[i] == numbers[99 - i]);
        ok(launch("test_halves", 1, 64, 0, stream, &args));
        ok(api->cuStreamSynchronize(stream));
        for (int i = 0; i < 48; ++i)
            assert_true(result[i] == (float)(i % 32 < 16 ? i ^ 1 : i / 32 * 32 + 31));
    }
    ok(api->cuMemFreeHost(numbers));
    ok(api->cuMemFreeHost(result));
}

static void launches_are_checked(void **state) {
    (void)state;
    float *result = pinned_memory(bytes);
    test_args args = {.from = result, .to = result, .count = count};
    assert_int_equal(launch("test_scale", 0, 32, 0, stream, &args), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(launch("test_scale", 1, 0, 0, stream, &args), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(launch("test_scale", 1, 1025, 0, stream, &args), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(launch("test_reverse", 1, 32, 50000, stream, &args), CUDA_ERROR_INVALID_VALUE);
    CUfunction reverse = sim_function("test_reverse");
    ok(api->cuFuncSetAttribute(reverse, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 50000));
    ok(launch("test_reverse", 1, 32, 50000, stream, &args));
    assert_int_equal(launch("test_bounded", 1, 129, 0, stream, &args), CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    ok(launch("test_bounded", 1, 128, 0, stream, &args));
    ok(api->cuStreamSynchronize(stream));
    CUmodule module = NULL;
    CUfunction function = NULL;
    ok(api->cuModuleLoadData(&module, "moves"));
    assert_int_equal(api->cuModuleGetFunction(&function, module, "test_scale"), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(api->cuModuleGetFunction(&function, module, "no_kernel"), CUDA_ERROR_NOT_FOUND);
    ok(api->cuModuleUnload(module));
    ok(api->cuModuleLoadData(&module, "test_kernels"));
    ok(api->cuModuleGetFunction(&function, module, "test_scale"));
    ok(api->cuModuleUnload(module));
    assert_int_equal(api->cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
    ok(api->cuMemFreeHost(result));
}

/* ---- Failures on demand ---- */

static void calls_fail_on_demand(void **state) {
    (void)state;
    CUdeviceptr memory = 0;
    const char *name = NULL;
    sim_fail_at("cuMemAlloc", 2, CUDA_ERROR_OUT_OF_MEMORY);
    ok(api->cuMemAlloc(&memory, 4));
    assert_false(sim_failed(NULL));
    CUdeviceptr none = 0;
    assert_int_equal(api->cuMemAlloc(&none, 4), CUDA_ERROR_OUT_OF_MEMORY);
    assert_true(sim_failed(&name));
    assert_string_equal(name, "cuMemAlloc");
    assert_int_equal(sim_calls("cuMemAlloc"), 2);
    sim_fail_at("cuStreamSynchronize", 1, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(api->cuStreamSynchronize(stream), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(api->cuMemsetD8Async(memory, 0, 4, stream), CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(api->cuMemFree(memory), CUDA_ERROR_LAUNCH_FAILED); /* but the memory is free */
    sim_fail_at(NULL, 0, CUDA_SUCCESS);
    assert_int_equal(api->cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_runs_late),
        cmocka_unit_test(streams_are_ordered_by_events_alone),
        cmocka_unit_test(events_tell_what_has_ended),
        cmocka_unit_test(destroyed_streams_are_noticed),
        cmocka_unit_test(memory_is_fresh_and_limited),
        cmocka_unit_test(registered_memory_is_pinned),
        cmocka_unit_test(functions_of_the_host_may_not_use_the_device),
        cmocka_unit_test(captures_forbid_what_cuda_forbids),
        cmocka_unit_test(replays_use_what_was_captured),
        cmocka_unit_test(a_capture_joins_streams),
        cmocka_unit_test(kernels_compute_in_any_order),
        cmocka_unit_test(launches_are_checked),
        cmocka_unit_test(calls_fail_on_demand),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
