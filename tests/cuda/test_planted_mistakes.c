/* SPDX-License-Identifier: Apache-2.0 */
/* Mistakes that a backend could make, each of which the simulated GPU must find: by a report that ends the process, or
 * by wrong numbers.  Each runs in a process of its own, beside the same work without the mistake. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/cuda/cuda.h"
#include "cuda/sim/sim.h"
#include "cuda/test_kernels.h"

enum { seeds = 40, count = 64, bytes = count * sizeof(float) };

typedef struct mistake {
    const char *name;
    /* Returns true if the result is right.  Without `mistaken` it does the same work without the mistake. */
    bool (*run)(bool mistaken);
    const char *report; /* what the process says when it ends; NULL: the result is wrong for some seed */
    bool twice;         /* with LEAT_SIM_TWICE */
} mistake;

/* ---- What the sequences of calls share ---- */

static leati_device *device;
static const leati_device_class *class;
static leati_cuda *cuda;
static unsigned char *memory, *other; /* of the device */
static float *pinned;

static void need(leat_status status, const leat_error *err) {
    if (status == LEAT_OK) return;
    fprintf(stderr, "%s\n", err->message);
    _exit(2);
}

#define NEED(call) need(class->call, &err)

static void prepare(void) {
    leat_error err = {0};
    void *out = NULL;
    if (leati_cuda_open(0, &device, &err) != LEAT_OK) need(LEAT_EIO, &err);
    class = device->class;
    cuda = leati_cuda_of(device);
    NEED(allocate(device, bytes, &out, &err));
    memory = out;
    NEED(allocate(device, bytes, &out, &err));
    other = out;
    NEED(allocate_host(device, bytes, &out, &err));
    pinned = out;
    for (int i = 0; i < count; ++i) pinned[i] = (float)i;
    NEED(copy_in(device, memory, pinned, bytes, &err));
    NEED(wait(device, &err));
}

static void finish(void) {
    class->release(device, memory);
    class->release(device, other);
    class->release_host(device, pinned);
    leati_device_close(&device);
}

static void launch_with(const char *kernel, unsigned blocks, unsigned threads, unsigned shared_bytes,
                        test_args args) {
    leat_error err = {0};
    leati_cuda_grid grid = {.x = blocks, .threads = threads, .shared_bytes = shared_bytes};
    need(leati_cuda_launch(cuda, sim_function(kernel), &grid, &args, &err), &err);
}

static test_args all_numbers(void) {
    return (test_args){.from = (const float *)(const void *)memory,
                       .to = (float *)(void *)other,
                       .count = count,
                       .scale = 2};
}

/* Copies `other` to the host, waits, and compares it with factor * i. */
static bool is_product(float factor) {
    leat_error err = {0};
    float result[count];
    NEED(copy_out(device, result, other, bytes, &err));
    NEED(wait(device, &err));
    for (int i = 0; i < count; ++i)
        if (result[i] != factor * (float)i) return false;
    return true;
}

/* ---- The host and the device's memory ---- */

static bool host_reads(bool mistaken) {
    float first = mistaken ? *(const float *)(const void *)memory : *pinned;
    return first == 0;
}

static bool host_writes(bool mistaken) {
    memset(mistaken ? (void *)memory : (void *)pinned, 0, 8);
    return true;
}

static void touch(void *user) {
    *(volatile unsigned char *)user = 1;
}

static bool host_function_writes(bool mistaken) {
    leat_error err = {0};
    NEED(call(device, touch, mistaken ? (void *)memory : (void *)pinned, &err));
    NEED(wait(device, &err));
    return true;
}

static bool kernel_gets_host_pointer(bool mistaken) {
    float local[count] = {0};
    test_args args = all_numbers();
    if (mistaken) args.from = local;
    launch_with("test_scale", 1, 32, 0, args);
    return is_product(2);
}

/* ---- Waiting, and the life of memory ---- */

static bool results_without_waiting(bool mistaken) {
    leat_error err = {0};
    launch_with("test_scale", 1, 32, 0, all_numbers());
    NEED(copy_out(device, pinned, other, bytes, &err));
    if (!mistaken) NEED(wait(device, &err));
    bool right = pinned[3] == 6;
    NEED(wait(device, &err));
    return right;
}

static bool inputs_change_too_early(bool mistaken) {
    leat_error err = {0};
    NEED(copy_in(device, memory, pinned, bytes, &err));
    launch_with("test_scale", 1, 32, 0, all_numbers());
    if (!mistaken) NEED(wait(device, &err));
    pinned[5] = 77;
    return is_product(2);
}

static bool pageable_inputs_change_too_early(bool mistaken) {
    leat_error err = {0};
    float input[count];
    memcpy(input, pinned, bytes);
    NEED(copy_in(device, memory, input, bytes, &err));
    if (!mistaken) NEED(wait(device, &err));
    input[5] = 77;
    launch_with("test_scale", 1, 32, 0, all_numbers());
    return is_product(2);
}

static bool memory_is_freed_in_use(bool mistaken) {
    leat_error err = {0};
    void *fresh = NULL;
    NEED(allocate(device, bytes, &fresh, &err));
    NEED(copy(device, fresh, memory, bytes, &err));
    test_args args = all_numbers();
    args.from = fresh;
    launch_with("test_scale", 1, 32, 0, args);
    if (mistaken)
        cuda->api->cuMemFree((CUdeviceptr)(uintptr_t)fresh);
    else
        class->release(device, fresh);
    return is_product(2);
}

static bool pinned_memory_is_freed_in_use(bool mistaken) {
    leat_error err = {0};
    void *fresh = NULL;
    NEED(allocate_host(device, bytes, &fresh, &err));
    memcpy(fresh, pinned, bytes);
    NEED(copy_in(device, other, fresh, bytes, &err));
    if (mistaken)
        cuda->api->cuMemFreeHost(fresh);
    else
        class->release_host(device, fresh);
    return is_product(1);
}

static bool second_stream_without_event(bool mistaken) {
    const leati_cuda_api *api = cuda->api;
    CUstream second = NULL;
    CUevent event = NULL;
    leat_error err = {0};
    api->cuStreamCreate(&second, CU_STREAM_NON_BLOCKING);
    api->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    NEED(fill(device, memory, 0xff, bytes, &err));
    NEED(wait(device, &err));
    api->cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)memory, pinned, bytes, second);
    api->cuEventRecord(event, second);
    if (!mistaken) api->cuStreamWaitEvent(cuda->stream, event, 0);
    launch_with("test_scale", 1, 32, 0, all_numbers());
    bool right = is_product(2);
    api->cuStreamSynchronize(second);
    api->cuEventDestroy(event);
    api->cuStreamDestroy(second);
    return right;
}

/* ---- Copies ---- */

static bool copy_is_too_long(bool mistaken) {
    leat_error err = {0};
    NEED(copy(device, other, memory, mistaken ? bytes + 4 : bytes, &err));
    return is_product(1);
}

static bool copy_is_too_short(bool mistaken) {
    leat_error err = {0};
    NEED(copy(device, other, memory, mistaken ? count : bytes, &err));
    return is_product(1);
}

static bool copy_goes_the_wrong_way(bool mistaken) {
    leat_error err = {0};
    if (mistaken)
        NEED(copy_out(device, memory, pinned, bytes, &err));
    else
        NEED(copy_out(device, pinned, memory, bytes, &err));
    NEED(wait(device, &err));
    return true;
}

/* ---- Recordings ---- */

typedef void (*recorded)(bool mistaken, float factor, uint64_t step);

/* Records the work with factor 2 and step 2, repeats it with 3, and expects 3 * i or, for steps, 3. */
static leati_recording *record_of(recorded work, bool mistaken) {
    leat_error err = {0};
    leati_recording *recording = NULL;
    NEED(record(device, &err));
    work(mistaken, 2, 2);
    NEED(end_record(device, &recording, &err));
    return recording;
}

static void scale_in_recording(bool mistaken, float factor, uint64_t step) {
    (void)step;
    leat_error err = {0};
    test_args args = all_numbers();
    /* Right: the host changes what the copy reads.  Wrong: the factor is an argument of the kernel. */
    args.scale = mistaken ? factor : 1;
    NEED(copy_in(device, memory, pinned, bytes, &err));
    launch_with("test_scale", 1, 32, 0, args);
}

static bool argument_is_stale(bool mistaken) {
    leat_error err = {0};
    leati_recording *recording = record_of(scale_in_recording, mistaken);
    for (int i = 0; i < count && !mistaken; ++i) pinned[i] = 3 * (float)i;
    NEED(replay(device, recording, &err));
    bool right = is_product(3);
    class->destroy_recording(device, &recording);
    return right;
}

/* The step is in the first bytes of `pinned`, as in the parameters of a plan. */
static void step_in_recording(bool mistaken, float factor, uint64_t step) {
    (void)factor;
    leat_error err = {0};
    const uint64_t clock[2] = {0, step};
    if (mistaken)
        NEED(fill(device, memory, (int)clock[1], 16, &err));
    else
        NEED(copy_in(device, memory, pinned, 16, &err));
    test_args args = all_numbers();
    args.clock = (const uint64_t *)(const void *)memory;
    launch_with("test_step", 1, 32, 0, args);
}

static bool seed_is_read_while_recording(bool mistaken) {
    leat_error err = {0};
    float result[count];
    const uint64_t clock[2] = {0, 3};
    leati_recording *recording = record_of(step_in_recording, mistaken);
    memcpy(pinned, clock, sizeof clock);
    NEED(replay(device, recording, &err));
    NEED(copy_out(device, result, other, bytes, &err));
    NEED(wait(device, &err));
    class->destroy_recording(device, &recording);
    return result[0] == 3;
}

static void scale_from_other_memory(bool mistaken, float factor, uint64_t step) {
    (void)mistaken;
    (void)factor;
    (void)step;
    launch_with("test_scale", 1, 32, 0, all_numbers());
}

/* The arena has moved: without the mistake the work is recorded again. */
static bool recording_of_freed_memory(bool mistaken) {
    leat_error err = {0};
    void *fresh = NULL;
    leati_recording *recording = record_of(scale_from_other_memory, mistaken);
    NEED(allocate(device, 2 * bytes, &fresh, &err));
    NEED(copy(device, fresh, memory, bytes, &err));
    class->release(device, memory);
    memory = fresh;
    if (!mistaken) {
        class->destroy_recording(device, &recording);
        recording = record_of(scale_from_other_memory, mistaken);
    }
    NEED(replay(device, recording, &err));
    bool right = is_product(2);
    class->destroy_recording(device, &recording);
    return right;
}

static bool waiting_while_recording(bool mistaken) {
    leat_error err = {0};
    leati_recording *recording = NULL;
    NEED(record(device, &err));
    launch_with("test_scale", 1, 32, 0, all_numbers());
    if (mistaken) class->wait(device, &err);
    NEED(end_record(device, &recording, &err));
    NEED(replay(device, recording, &err));
    bool right = is_product(2);
    class->destroy_recording(device, &recording);
    return right;
}

static bool allocating_while_recording(bool mistaken) {
    leat_error err = {0};
    leati_recording *recording = NULL;
    void *scratch = NULL;
    if (!mistaken) NEED(allocate(device, bytes, &scratch, &err));
    NEED(record(device, &err));
    if (mistaken) NEED(allocate(device, bytes, &scratch, &err));
    NEED(end_record(device, &recording, &err));
    class->destroy_recording(device, &recording);
    class->release(device, scratch);
    return true;
}

/* ---- Kernels ---- */

static bool run_kernel(const char *kernel, unsigned blocks, unsigned shared_bytes, test_args args) {
    leat_error err = {0};
    float result[count];
    launch_with(kernel, blocks, count, shared_bytes, args);
    NEED(copy_out(device, result, other, bytes, &err));
    NEED(wait(device, &err));
    for (int i = 0; i < count; ++i)
        if (!(result[i] == result[i])) return false;
    return true;
}

static bool kernel_reads_behind_the_end(bool mistaken) {
    test_args args = all_numbers();
    args.count = mistaken ? 2048 : count;
    return run_kernel("test_scale", 1, 0, args);
}

/* The count is right, but the address is not: the last numbers lie on the rest of the page. */
static bool kernel_writes_beside(bool mistaken) {
    leat_error err = {0};
    void *small[2] = {NULL, NULL};
    for (int k = 0; k < 2; ++k) NEED(allocate(device, 100, &small[k], &err));
    for (int k = 0; k < 2; ++k) {
        test_args args = all_numbers();
        args.to = small[k];
        args.count = mistaken ? 27 : 25;
        launch_with("test_scale", 1, 32, 0, args);
        NEED(wait(device, &err));
    }
    for (int k = 0; k < 2; ++k) class->release(device, small[k]);
    return true;
}

static bool missing_barrier(bool mistaken) {
    return run_kernel(mistaken ? "test_missing_barrier" : "test_reverse", 1, bytes, all_numbers());
}
static bool missing_second_barrier(bool mistaken) {
    return run_kernel(mistaken ? "test_missing_second_barrier" : "test_reverse", 1, bytes, all_numbers());
}
static bool divergent_barrier(bool mistaken) {
    return run_kernel(mistaken ? "test_divergent_barrier" : "test_reverse", 1, bytes, all_numbers());
}
static bool divergent_warp(bool mistaken) {
    return run_kernel(mistaken ? "test_divergent_warp" : "test_reverse", 1, bytes, all_numbers());
}
static bool wrong_mask(bool mistaken) {
    return run_kernel(mistaken ? "test_wrong_mask" : "test_halves", 1, 0, all_numbers());
}
static bool ended_lane(bool mistaken) {
    return run_kernel(mistaken ? "test_shuffle_with_ended_lane" : "test_halves", 1, 0, all_numbers());
}
static bool unset_shared(bool mistaken) {
    return run_kernel(mistaken ? "test_unset_shared" : "test_reverse", 1, bytes, all_numbers());
}
static bool race_of_blocks(bool mistaken) {
    test_args args = all_numbers();
    return run_kernel(mistaken ? "test_race_of_blocks" : "test_scale", 4, 0, args);
}
static bool long_shared(bool mistaken) {
    return run_kernel("test_long_shared", 1, mistaken ? bytes - 16 : bytes, all_numbers());
}
static bool deep_stack(bool mistaken) {
    test_args args = all_numbers();
    args.count = mistaken ? 1000 : 3;
    return run_kernel("test_deep_stack", 1, 0, args);
}

static bool unset_memory(bool mistaken) {
    leat_error err = {0};
    CUdeviceptr fresh = 0;
    cuda->api->cuMemAlloc(&fresh, bytes);
    test_args args = all_numbers();
    args.from = (const float *)(uintptr_t)fresh;
    if (!mistaken) NEED(fill(device, (void *)(uintptr_t)fresh, 0, bytes, &err));
    bool right = run_kernel("test_scale", 1, 0, args);
    cuda->api->cuMemFree(fresh);
    return right;
}

/* ---- The table, and the processes ---- */

static const mistake mistakes[] = {
    {"the host reads device memory", host_reads, "the host accessed device memory: byte 0 of allocation",
     false},
    {"the host writes device memory", host_writes, "the host accessed device memory: byte 0 of allocation",
     false},
    {"a function of the host writes device memory", host_function_writes,
     "a function of the host accessed device memory", false},
    {"a kernel gets a host pointer", kernel_gets_host_pointer, "kernel test_scale: byte 0 of its parameter",
     false},
    {"results are read without waiting", results_without_waiting, NULL, false},
    {"pinned inputs change before the copy", inputs_change_too_early, NULL, false},
    {"pageable inputs change before the copy", pageable_inputs_change_too_early, NULL, false},
    {"device memory is freed in use", memory_is_freed_in_use, "before it was freed", false},
    {"pinned memory is freed in use", pinned_memory_is_freed_in_use,
     "frees pinned memory that pending work uses", false},
    {"a second stream without an event", second_stream_without_event, NULL, false},
    {"a copy is too long", copy_is_too_long,
     "cuMemcpyDtoDAsync: 260 bytes from byte 0 on of an allocation of 256 bytes", false},
    {"a copy is too short", copy_is_too_short, NULL, false},
    {"a copy goes the wrong way", copy_goes_the_wrong_way, "the device's address is in pinned memory", false},
    {"a recording has a stale argument", argument_is_stale, NULL, false},
    {"the seed is read while recording", seed_is_read_while_recording, NULL, false},
    {"a recording uses freed memory", recording_of_freed_memory, "before it was freed", false},
    {"waiting while recording", waiting_while_recording,
     "operation failed due to a previous error during capture", false},
    {"allocating while recording", allocating_while_recording,
     "operation not permitted when stream is capturing", false},
    {"a kernel reads behind the end", kernel_reads_behind_the_end,
     "kernel test_scale, block (0, 0, 0), thread", false},
    {"a kernel writes beside an allocation", kernel_writes_beside, "byte 1", false},
    {"__syncthreads is missing", missing_barrier, "kernel test_missing_barrier has a race", true},
    {"__syncthreads is missing, one order", missing_barrier, NULL, false},
    {"the second __syncthreads is missing", missing_second_barrier,
     "kernel test_missing_second_barrier has a race", true},
    {"part of a warp waits for the block", divergent_barrier,
     "threads wait for ever: from thread 0 on at __syncthreads; from thread 16 on at __syncwarp", false},
    {"lanes call different warp functions", divergent_warp, "different warp functions", false},
    {"a mask lacks its own lane", wrong_mask, "mask lacks the lane", false},
    {"a lane reads from one that has ended", ended_lane, NULL, false},
    {"shared memory is not set", unset_shared, NULL, false},
    {"blocks read what other blocks write", race_of_blocks, "kernel test_race_of_blocks has a race", true},
    {"shared memory is too small", long_shared, "of 240 bytes of dynamic shared memory", false},
    {"a stack overflows", deep_stack, "the stack of a thread has overflowed", false},
    {"device memory is not set", unset_memory, NULL, false},
};

enum { right_result, wrong_result };

/* Runs in a process of its own, whose standard error goes to `text`.  Returns its exit status. */
static int run_apart(const mistake *m, bool mistaken, char *text, size_t size) {
    int ends[2], status = 0;
    size_t used = 0;
    ssize_t got = 0;
    assert_int_equal(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        if (m->twice) setenv("LEAT_SIM_TWICE", "1", 1);
        prepare();
        bool right = true;
        for (uint64_t seed = 1; seed <= seeds && right; ++seed) {
            sim_seed(seed);
            for (int i = 0; i < count; ++i) pinned[i] = (float)i;
            right = m->run(mistaken);
        }
        finish();
        _exit(right ? right_result : wrong_result);
    }
    close(ends[1]);
    while (used + 1 < size && (got = read(ends[0], text + used, size - 1 - used)) > 0) used += (size_t)got;
    text[used] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void is_found(void **state) {
    const mistake *m = *state;
    char text[4096];
    int status = run_apart(m, false, text, sizeof text);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != right_result)
        fail_msg("without the mistake: status %#x: %s", (unsigned)status, text);
    status = run_apart(m, true, text, sizeof text);
    if (!m->report && (!WIFEXITED(status) || WEXITSTATUS(status) != wrong_result))
        fail_msg("not found: status %#x: %s", (unsigned)status, text);
    if (m->report && (status == 0 || !strstr(text, m->report)))
        fail_msg("expected '%s', got status %#x: %s", m->report, (unsigned)status, text);
}

int main(void) {
    enum { mistake_count = sizeof mistakes / sizeof *mistakes };
    struct CMUnitTest tests[mistake_count];
    for (int i = 0; i < mistake_count; ++i)
        tests[i] = (struct CMUnitTest){.name = mistakes[i].name,
                                       .test_func = is_found,
                                       .initial_state = (void *)(uintptr_t)&mistakes[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
