/* SPDX-License-Identifier: Apache-2.0 */
/* The communicator of one process, and errors of opening. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "dist/dist.h"
#include "dist/launcher.h"

static void one_process(void **state) {
    leat_dist *dist = NULL;
    leat_error err = {0};
    float values[3] = {1, 2, 3}, all[3] = {0};
    (void)state;
    unsetenv("OMPI_COMM_WORLD_SIZE");
    assert_false(leat_dist_is_launched());
    assert_int_equal(leat_dist_open(&dist, NULL, &err), LEAT_OK);
    assert_int_equal(leat_dist_rank(dist), 0);
    assert_int_equal(leat_dist_size(dist), 1);
    assert_non_null(leat_dist_host(dist, 0));
    assert_null(leat_dist_host(dist, 1));
    assert_true(leat_dist_cores(dist, 0) >= 1);
    assert_int_equal(leat_dist_sharers(dist, 0), 1);
    assert_int_equal(leat_dist_cores(dist, 1), 0);
    assert_int_equal(leat_dist_sharers(dist, -1), 0);
    assert_int_equal(leati_dist_all_reduce(dist, values, 3, &err), LEAT_OK);
    assert_true(values[2] == 3.0f);
    assert_int_equal(leati_dist_all_gather(dist, values, sizeof values, all, &err), LEAT_OK);
    assert_memory_equal(values, all, sizeof all);
    assert_int_equal(leati_dist_broadcast(dist, values, sizeof values, 0, &err), LEAT_OK);
    assert_int_equal(leati_dist_barrier(dist, &err), LEAT_OK);
    assert_int_equal(leati_dist_send(dist, values, sizeof values, 0, &err), LEAT_EINVAL);
    assert_false(leat_dist_is_broken(dist));
    leat_dist_abort(dist, 1);
    leat_dist_close(&dist);
    assert_null(dist);
    leat_dist_close(&dist);
}

static void without_a_communicator(void **state) {
    (void)state;
    assert_int_equal(leat_dist_rank(NULL), 0);
    assert_int_equal(leat_dist_size(NULL), 0);
    assert_null(leat_dist_host(NULL, 0));
    leat_dist_abort(NULL, 1);
    leat_dist_close(NULL);
}

static void a_launcher_is_recognized(void **state) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        setenv(names[i], "2", 1);
        assert_true(leat_dist_is_launched());
        unsetenv(names[i]);
        assert_false(leat_dist_is_launched());
    }
}

/* Slurm counts the processes of a step; a batch script is none of them. */
static void srun_is_recognized(void **state) {
    leat_dist *dist = NULL;
    leat_error err = {0};
    (void)state;
    setenv("SLURM_PROCID", "0", 1);
    setenv("SLURM_NTASKS", "2", 1);
    assert_false(leat_dist_is_launched());
    setenv("SLURM_STEP_NUM_TASKS", "1", 1);
    assert_false(leat_dist_is_launched());
    setenv("SLURM_STEP_NUM_TASKS", "2", 1);
    assert_true(leat_dist_is_launched());
    assert_int_equal(leati_launcher_ranks(), 2);
    assert_int_equal(leat_dist_open(&dist, NULL, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "srun has started 2 processes"));
    setenv("PMI_SIZE", "3", 1);
    assert_int_equal(leati_launcher_ranks(), 3);
    assert_true(leati_launcher_is_mpich());
    assert_int_equal(leati_launcher_check(&err), LEAT_OK);
    assert_int_equal(leati_launcher_check_ranks(3, "MPICH", &err), LEAT_OK);
    assert_int_equal(leati_launcher_check_ranks(1, "MPICH", &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "3 processes, but MPICH"));
    setenv("SLURM_CPUS_PER_TASK", "6", 1);
    assert_int_equal(leati_launcher_cores(), 6);
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    assert_int_equal(leati_launcher_ranks(), 4);
    assert_false(leati_launcher_is_mpich());
    assert_int_equal(leati_launcher_cores(), 0);
    static const char *const names[] = {"SLURM_PROCID", "SLURM_NTASKS",        "SLURM_STEP_NUM_TASKS",
                                        "PMI_SIZE",     "SLURM_CPUS_PER_TASK", "OMPI_COMM_WORLD_SIZE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) unsetenv(names[i]);
}

/* The place among the processes of a host decides which GPU a process takes. */
static void places_are_those_of_the_launcher(void **state) {
    static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"};
    leat_dist *dist = NULL;
    leat_error err = {0};
    leati_dist_peer peers[4] = {{.host = "a"}, {.host = "b"}, {.host = "a"}, {.host = "a"}};
    leat_dist known = {.rank = 3, .size = 4, .peers = peers};
    (void)state;
    assert_int_equal(leati_launcher_place(), 0);
    for (int i = 2; i >= 0; --i) { /* mpirun may have been started by srun, so its variable counts */
        setenv(names[i], i == 0 ? "5" : i == 1 ? "3" : "1", 1);
        assert_int_equal(leati_launcher_place(), i == 0 ? 5 : i == 1 ? 3 : 1);
    }
    for (int i = 0; i < 3; ++i) unsetenv(names[i]);
    assert_int_equal(leat_dist_open(&dist, NULL, &err), LEAT_OK);
    assert_int_equal(leati_dist_place(dist), 0);
    leat_dist_close(&dist);
    assert_int_equal(leati_dist_place(&known), 2);
    known.rank = 1;
    assert_int_equal(leati_dist_place(&known), 0);
}

static void errors(void **state) {
    leat_dist *dist = NULL;
    leat_error err = {0};
    (void)state;
    leat_dist_options options = leat_dist_options_default();
    options.kind = (leat_dist_kind)7;
    assert_int_equal(leat_dist_open(&dist, &options, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "kind"));
    options = leat_dist_options_default();
    options.timeout_ms = 10;
    assert_int_equal(leat_dist_open(&dist, &options, &err), LEAT_EINVAL);
    assert_non_null(strstr(err.message, "timeout_ms"));
    options = leat_dist_options_default();
    options.kind = LEAT_DIST_MPI;
    options.library = "libno-such-mpi.so.1";
    assert_int_equal(leat_dist_open(&dist, &options, &err), LEAT_ENOTFOUND);
    assert_non_null(strstr(err.message, "LEAT_MPI"));
    assert_null(dist);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_process),
        cmocka_unit_test(without_a_communicator),
        cmocka_unit_test(a_launcher_is_recognized),
        cmocka_unit_test(srun_is_recognized),
        cmocka_unit_test(places_are_those_of_the_launcher),
        cmocka_unit_test(errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
