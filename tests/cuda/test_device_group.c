/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of several processes that add up values (engine/device_group.h): each process is a child of the test, with a
 * simulated GPU and the simulated NCCL. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "cmocka_all.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/cuda/cuda.h"
#include "base/error.h"
#include "cuda/sim/sim.h"
#include "engine/device_group.h"

enum { most = 4, rounds = 30, small = 100, large = 40000, patience = 200, seconds = 20 };

/* What the processes share. */
static struct {
    leati_group_name name;
    _Atomic bool named, left; /* the group has a name; rank 1 has ended */
} * common;

static int rank, size;
static leati_device *device;
static const leati_device_class *class;
static const leati_group_class *groups;
static leat_error problem;

/* A child cannot use cmocka's assertions. */
static void require(bool right, const char *what, int line) {
    if (right) return;
    fprintf(stderr, "failed: rank %d: line %d: %s: %s\n", rank, line, what, problem.message);
    _exit(1);
}
#define REQUIRE(condition) require(condition, #condition, __LINE__)
#define OK(call)           require((call) == LEAT_OK, #call, __LINE__)

/* Opens the GPU; rank 0 names the group. */
static void open_gpu(int ordinal) {
    OK(leati_cuda_open(ordinal, &device, &problem));
    class = device->class;
    groups = device->groups;
    if (rank == 0) {
        OK(groups->make_name(device, &common->name, &problem));
        common->named = true;
    }
    while (!common->named) (void)sched_yield();
}

static int looks; /* of the process for a lost one */

static leat_status nobody_is_lost(void *user, leat_error *err) {
    (void)user;
    (void)err;
    return LEAT_OK;
}

static leat_status one_is_lost(void *user, leat_error *err) {
    return !common->left || ++looks < patience ? LEAT_OK
                                               : leati_fail(err, LEAT_EIO, "%s is lost", (const char *)user);
}

static char lost[] = "rank 1";

static void end_early(void) {
    common->left = true;
    _exit(0);
}

static leat_status join(leat_status (*check)(void *user, leat_error *err)) {
    const leati_group_options options = {
        .name = common->name, .rank = rank, .size = size, .check = check, .user = lost};
    return groups->join(device, &options, &problem);
}

static void close_gpu(void) {
    leati_device_close(&device);
    REQUIRE(sim_live() == 0);
}

static void *memory_of(size_t count, bool pinned) {
    void *memory = NULL;
    OK((pinned ? class->allocate_host : class->allocate)(device, count * sizeof(float), &memory, &problem));
    return memory;
}

/* Adds up `count` numbers, of which each process has others in each round, between two copies. */
static void add_up(int count) {
    const size_t bytes = (size_t)count * sizeof(float);
    float *mine = memory_of((size_t)count, true), *sums = memory_of((size_t)count, true),
          *there = memory_of((size_t)count, false);
    for (int round = 0; round < rounds; ++round) {
        for (int i = 0; i < count; ++i) mine[i] = (float)((i + 1) * (rank + 1) + round);
        OK(class->copy_in(device, there, mine, bytes, &problem));
        OK(groups->sum(device, there, (size_t)count, &problem));
        OK(class->copy_out(device, sums, there, bytes, &problem));
        OK(class->wait(device, &problem));
        for (int i = 0; i < count; ++i) {
            const int ranks = size * (size + 1) / 2; /* 1 + 2 + ... */
            REQUIRE(sums[i] == (float)((i + 1) * ranks + size * round));
        }
    }
    class->release(device, there);
    class->release_host(device, mine);
    class->release_host(device, sums);
}

static void sums_are_right(void) {
    int version = 0;
    open_gpu(rank);
    OK(groups->find(device, &version, &problem));
    REQUIRE(version >= 21400);
    OK(join(nobody_is_lost));
    add_up(small);
    add_up(large);
    groups->leave(device);
    groups->leave(device);
    close_gpu();
}

/* The device can do everything but sums afterwards. */
static void require_use(float *there, const char *message) {
    const float numbers[] = {1, 2, 3};
    float back[3] = {0};
    REQUIRE(strstr(problem.message, message) != NULL);
    OK(class->copy_in(device, there, numbers, sizeof numbers, &problem));
    OK(class->copy_out(device, back, there, sizeof back, &problem));
    OK(class->wait(device, &problem));
    REQUIRE(back[2] == 3);
    REQUIRE(groups->sum(device, there, 3, &problem) == LEAT_EIO);
    REQUIRE(strstr(problem.message, "given up") != NULL);
}

static void a_lost_process_ends_the_wait(void) {
    open_gpu(rank);
    OK(join(one_is_lost));
    if (rank == 1) end_early();
    float *there = memory_of(small, false);
    OK(groups->sum(device, there, small, &problem));
    REQUIRE(class->wait(device, &problem) == LEAT_EIO);
    require_use(there, "rank 1 is lost");
    class->release(device, there);
    close_gpu();
}

static void memory_is_freed_without_a_lost_process(void) {
    open_gpu(rank);
    OK(join(one_is_lost));
    if (rank == 1) end_early();
    float *there = memory_of(small, false);
    OK(groups->sum(device, there, small, &problem));
    class->release(device, there);
    REQUIRE(looks >= patience);
    close_gpu();
}

static void a_sum_is_given_up(void) {
    open_gpu(rank);
    OK(join(nobody_is_lost));
    float *there = memory_of(small, false);
    if (rank == 0) OK(groups->sum(device, there, small, &problem)); /* rank 1 has failed */
    groups->give_up(device);
    snprintf(problem.message, sizeof problem.message, "none");
    require_use(there, "none");
    class->release(device, there);
    close_gpu();
}

static void a_process_that_never_joins_is_noticed(void) {
    open_gpu(rank);
    if (rank == 1) end_early();
    REQUIRE(join(one_is_lost) == LEAT_EIO);
    REQUIRE(strstr(problem.message, "rank 1 is lost") != NULL);
    close_gpu();
}

static void processes_on_one_gpu_are_refused(void) {
    open_gpu(0);
    REQUIRE(join(nobody_is_lost) == LEAT_EIO);
    REQUIRE(strstr(problem.message, "use one GPU") != NULL);
    close_gpu();
}

static void a_missing_library_is_named(void) {
    int version = 1;
    setenv("LEAT_SIM_NCCL", "none", 1);
    OK(leati_cuda_open(0, &device, &problem));
    groups = device->groups;
    REQUIRE(groups->find(device, &version, &problem) == LEAT_ENOTSUP && version == 0);
    REQUIRE(strstr(problem.message, "libnccl.so.2") != NULL);
    REQUIRE(join(nobody_is_lost) == LEAT_ENOTSUP);
    close_gpu();
}

static void run(void (*member)(void), int processes) {
    pid_t children[most] = {0};
    common->named = common->left = false;
    size = processes;
    for (rank = 0; rank < size; ++rank) {
        children[rank] = fork();
        assert_true(children[rank] >= 0);
        if (children[rank] > 0) continue;
        alarm(seconds); /* a process that waits forever fails */
        member();
        _exit(0);
    }
    bool fine = true;
    for (int i = 0; i < processes; ++i) {
        int status = 0;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        fine = fine && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    assert_true(fine);
}

#define TEST(member, processes)                                                                              \
    static void test_##member(void **state) {                                                                \
        (void)state;                                                                                         \
        run(member, processes);                                                                              \
    }
TEST(sums_are_right, 3)
TEST(a_lost_process_ends_the_wait, 2)
TEST(memory_is_freed_without_a_lost_process, 2)
TEST(a_sum_is_given_up, 2)
TEST(a_process_that_never_joins_is_noticed, 2)
TEST(processes_on_one_gpu_are_refused, 2)
TEST(a_missing_library_is_named, 1)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_are_right),
        cmocka_unit_test(test_a_lost_process_ends_the_wait),
        cmocka_unit_test(test_memory_is_freed_without_a_lost_process),
        cmocka_unit_test(test_a_sum_is_given_up),
        cmocka_unit_test(test_a_process_that_never_joins_is_noticed),
        cmocka_unit_test(test_processes_on_one_gpu_are_refused),
        cmocka_unit_test(test_a_missing_library_is_named),
    };
    setenv("LEAT_SIM_GPUS", "4", 1);
    common = mmap(NULL, sizeof *common, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (common == MAP_FAILED) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
