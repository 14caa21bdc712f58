/* SPDX-License-Identifier: Apache-2.0 */
/* A device: its memory, queue and recordings, and its errors.  tests/cuda/test_device_plans.c tests plans on it. */
#include "cmocka_all.h"

#include <string.h>

#include "backends/cuda/cuda.h"
#include "cuda/sim/sim.h"

enum { seeds = 30, count = 100, bytes = count * sizeof(float) };

static leati_device *device;
static const leati_device_class *class;

static int open_device(void **state) {
    (void)state;
    leat_error err = {0};
    if (leati_cuda_open(0, &device, &err) != LEAT_OK) fail_msg("%s", err.message);
    class = device->class;
    return 0;
}

static int close_device(void **state) {
    (void)state;
    leati_device_close(&device);
    assert_null(device);
    assert_int_equal(sim_live(), 0);
    return 0;
}

static leat_error problem; /* of the last OK(...) */

#define OK(call)                                                                                             \
    do {                                                                                                     \
        if (class->call != LEAT_OK) fail_msg("%s", problem.message);                                         \
    } while (0)

static void *device_memory(size_t size) {
    void *memory = NULL;
    OK(allocate(device, size, &memory, &problem));
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % LEATI_DEVICE_ALIGNMENT, 0);
    return memory;
}

static float *pinned_memory(size_t size) {
    void *memory = NULL;
    OK(allocate_host(device, size, &memory, &problem));
    assert_non_null(memory);
    return memory;
}

static void memory_is_zero(void **state) {
    (void)state;
    float *pinned = pinned_memory(bytes), result[count];
    void *memory = device_memory(bytes), *nothing = device_memory(0);
    for (int i = 0; i < count; ++i) assert_true(pinned[i] == 0);
    OK(copy_out(device, result, memory, bytes, &problem));
    OK(wait(device, &problem));
    for (int i = 0; i < count; ++i) assert_true(result[i] == 0);
    class->release(device, memory);
    class->release(device, nothing);
    class->release(device, NULL);
    class->release_host(device, pinned);
    class->release_host(device, NULL);
}

static void add_one(void *user) {
    for (int i = 0; i < count; ++i) ((float *)user)[i] += 1;
}

/* The queue keeps the order of copies, fills and calls. */
static void the_queue_keeps_the_order(void **state) {
    (void)state;
    float *pinned = pinned_memory(bytes), result[count];
    unsigned char *a = device_memory(bytes), *b = device_memory(bytes);
    for (uint64_t seed = 0; seed < seeds; ++seed) {
        sim_seed(seed);
        for (int i = 0; i < count; ++i) pinned[i] = (float)i;
        OK(copy_in(device, a, pinned, bytes, &problem));
        OK(call(device, add_one, pinned, &problem));
        OK(copy_in(device, b, pinned, bytes, &problem));
        OK(copy(device, a, b + 4, bytes - 4, &problem)); /* i + 2 */
        OK(fill(device, a + bytes - 4, 0, 4, &problem));
        OK(copy_out(device, result, a, bytes, &problem));
        OK(fill(device, a, 0xff, bytes, &problem));
        OK(copy_in(device, a, NULL, 0, &problem)); /* nothing */
        OK(wait(device, &problem));
        assert_true(class->is_idle(device));
        for (int i = 0; i < count - 1; ++i) assert_true(result[i] == (float)(i + 2));
        assert_true(result[count - 1] == 0);
    }
    class->release(device, a);
    class->release(device, b);
    class->release_host(device, pinned);
}

static void copies_beside_the_queue_are_joined(void **state) {
    (void)state;
    static float input[count];
    float result[count];
    void *memory = device_memory(bytes);
    OK(pin(device, input, sizeof input, &problem));
    for (uint64_t seed = 0; seed < seeds; ++seed) {
        sim_seed(seed);
        for (int i = 0; i < count; ++i) input[i] = (float)(i + (int)seed);
        for (int i = 0; i < count; ++i) /* so many that a look at them does not end them */
            OK(copy_beside(device, (float *)memory + i, input + i, sizeof *input, &problem));
        if (seed % 2) (void)class->is_copying(device); /* a look changes nothing */
        OK(join(device, &problem));
        OK(join(device, &problem)); /* nothing more */
        OK(copy_out(device, result, memory, bytes, &problem));
        OK(wait(device, &problem));
        assert_memory_equal(result, input, bytes);
    }
    /* Memory that a copy beside the queue uses is released after the copy. */
    OK(copy_beside(device, memory, input, bytes, &problem));
    class->release(device, memory);
    class->unpin(device, input);
}

static void stamps_tell_times(void **state) {
    (void)state;
    int64_t ns[3] = {-1, -1, -1};
    void *memory = device_memory(bytes);
    for (int run = 0; run < 2; ++run) {
        for (int i = 0; i < 4; ++i) {
            OK(stamp(device, i, &problem));
            OK(fill(device, memory, i, bytes, &problem));
        }
        OK(read_stamps(device, 4, ns, &problem));
        for (int i = 0; i < 3; ++i) assert_true(ns[i] >= 0);
    }
    class->release(device, memory);
}

static void recordings_are_repeated(void **state) {
    (void)state;
    float *pinned = pinned_memory(bytes), *result = pinned_memory(bytes);
    void *memory = device_memory(bytes);
    leati_recording *recording = NULL;
    OK(record(device, &problem));
    OK(copy_in(device, memory, pinned, bytes, &problem));
    OK(copy_out(device, result, memory, bytes, &problem));
    OK(call(device, add_one, result, &problem));
    OK(end_record(device, &recording, &problem));
    for (uint64_t seed = 0; seed < seeds; ++seed) {
        sim_seed(seed);
        for (int i = 0; i < count; ++i) pinned[i] = (float)(i * (int)seed);
        OK(replay(device, recording, &problem));
        OK(wait(device, &problem));
        for (int i = 0; i < count; ++i) assert_true(result[i] == pinned[i] + 1);
    }
    class->destroy_recording(device, &recording);
    assert_null(recording);
    class->destroy_recording(device, &recording);
    class->release(device, memory);
    class->release_host(device, pinned);
    class->release_host(device, result);
}

/* ---- Errors ---- */

static void too_much_memory_is_refused(void **state) {
    (void)state;
    leat_error err = {0};
    void *memory = &err;
    assert_int_equal(class->allocate(device, (size_t)1 << 40, &memory, &err), LEAT_ENOMEM);
    assert_null(memory);
    assert_non_null(strstr(err.message, "cuda:0 has no memory for 1048576.0 MiB more"));
}

static void errors_name_the_call(void **state) {
    (void)state;
    leat_error err = {0};
    void *memory = device_memory(bytes);
    sim_fail_at("cuMemsetD8Async", 1, CUDA_ERROR_UNKNOWN);
    assert_int_equal(class->fill(device, memory, 0, bytes, &err), LEAT_EIO);
    assert_string_equal(err.message, "cuda:0: cuMemsetD8Async: unknown error");
    sim_fail_at("cuStreamSynchronize", 1, CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(class->wait(device, &err), LEAT_EIO);
    assert_string_equal(err.message, "cuda:0: cuStreamSynchronize: unspecified launch failure");
    assert_int_equal(class->fill(device, memory, 0, bytes, NULL), LEAT_EIO);
    sim_fail_at(NULL, 0, CUDA_SUCCESS);
    OK(wait(device, &problem));
    class->release(device, memory);
}

/* A failed recording leaves the queue as it was. */
static void a_recording_can_fail(void **state) {
    (void)state;
    leat_error err = {0};
    leati_recording *recording = NULL;
    float result[count];
    void *memory = device_memory(bytes);
    OK(record(device, &problem));
    assert_int_equal(class->record(device, &err), LEAT_EIO);
    assert_int_equal(class->wait(device, &err), LEAT_EIO);
    assert_int_equal(class->end_record(device, &recording, &err), LEAT_EIO);
    assert_null(recording);
    assert_int_equal(class->end_record(device, &recording, &err), LEAT_EIO);
    OK(fill(device, memory, 0, bytes, &problem));
    OK(copy_out(device, result, memory, bytes, &problem));
    OK(wait(device, &problem));
    assert_true(result[0] == 0);
    class->release(device, memory);
}

/* Returns whether opening succeeds while one call fails. */
static void opening_can_fail(void **state) {
    (void)state;
    size_t before = sim_live();
    bool failed = true;
    for (int64_t n = 1; failed; ++n) {
        leati_device *second = NULL;
        leat_error err = {0};
        const char *function = NULL;
        sim_fail_at(NULL, n, CUDA_ERROR_UNKNOWN);
        leat_status status = leati_cuda_open(0, &second, &err);
        failed = sim_failed(&function);
        sim_fail_at(NULL, 0, CUDA_SUCCESS);
        assert_int_equal(status, failed ? LEAT_EIO : LEAT_OK);
        assert_true((second == NULL) == failed);
        if (failed && !strstr(err.message, "unknown error")) fail_msg("%s: %s", function, err.message);
        leati_device_close(&second);
        assert_int_equal(sim_live(), before);
    }
    leat_error err = {0};
    leati_device *second = NULL;
    assert_int_equal(leati_cuda_open(7, &second, &err), LEAT_ENOTSUP);
    assert_string_equal(err.message, "there is no GPU 7: NVIDIA's driver finds 1, numbered from 0");
}

/* Whatever call fails: the work fails or its result is right, and nothing leaks. */
static void work_can_fail(void **state) {
    (void)state;
    static const CUresult results[] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_UNKNOWN,
                                       CUDA_ERROR_LAUNCH_FAILED};
    size_t before = sim_live();
    bool failed = true;
    for (int64_t n = 1; failed; ++n)
        for (int k = 0; k < 3; ++k) {
            leat_error err = {0};
            leati_recording *recording = NULL;
            void *memory = NULL, *pinned = NULL;
            float result[count] = {0};
            const char *function = NULL;
            sim_fail_at(NULL, n, results[k]);
            leat_status status = class->allocate(device, bytes, &memory, &err);
            if (status == LEAT_OK) status = class->allocate_host(device, bytes, &pinned, &err);
            if (status == LEAT_OK) add_one(pinned);
            if (status == LEAT_OK) status = class->record(device, &err);
            if (status == LEAT_OK) {
                status = class->copy_in(device, memory, pinned, bytes, &err);
                leat_status ended = class->end_record(device, &recording, status == LEAT_OK ? &err : NULL);
                if (status == LEAT_OK) status = ended;
            }
            if (status == LEAT_OK) status = class->replay(device, recording, &err);
            if (status == LEAT_OK) status = class->copy_out(device, result, memory, bytes, &err);
            if (status == LEAT_OK) status = class->wait(device, &err);
            failed = sim_failed(&function);
            class->destroy_recording(device, &recording);
            class->release(device, memory);
            class->release_host(device, pinned);
            sim_fail_at(NULL, 0, CUDA_SUCCESS);
            if (sim_live() != before) fail_msg("call %d, %s: something leaks", (int)n, function);
            assert_int_equal(err.code, status);
            if (status == LEAT_OK) assert_true(result[7] == 1);
            if (status != LEAT_OK && !strstr(err.message, "cuda:0"))
                fail_msg("%s: %s", function, err.message);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zero),
        cmocka_unit_test(the_queue_keeps_the_order),
        cmocka_unit_test(copies_beside_the_queue_are_joined),
        cmocka_unit_test(stamps_tell_times),
        cmocka_unit_test(recordings_are_repeated),
        cmocka_unit_test(too_much_memory_is_refused),
        cmocka_unit_test(errors_name_the_call),
        cmocka_unit_test(a_recording_can_fail),
        cmocka_unit_test(opening_can_fail),
        cmocka_unit_test(work_can_fail),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
