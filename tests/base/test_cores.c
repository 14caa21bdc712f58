/* SPDX-License-Identifier: Apache-2.0 */
/* The number of cores by affinity and control groups: with fake folders of /proc and /sys, and with a real group. */
#define _GNU_SOURCE /* sched_setaffinity */
#include "cmocka_all.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/cgroup.h"
#include "base/os/clock.h"

static char folder[] = "/tmp/leat-cores-XXXXXX";

/* ---- Fake /proc and /sys ---- */

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int clear(void **state) {
    (void)state;
    char line[100];
    snprintf(line, sizeof line, "rm -rf %s/*", folder);
    return system(line);
}

static int remove_folder(void **state) {
    return clear(state) == 0 ? rmdir(folder) : -1;
}

/* Writes a file below the fake root, and creates its folders. */
static void put(const char *path, const char *text) {
    char full[4096];
    snprintf(full, sizeof full, "%s%s", folder, path);
    for (char *slash = full + sizeof folder; (slash = strchr(slash, '/')); ++slash) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void expect_cpus(double cpus) {
    double found = leati_cgroup_cpus(folder);
    if (found < cpus || found > cpus) fail_msg("%g CPUs, expected %g", found, cpus);
}

#define V2_MOUNT "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1_MOUNT "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"

static void version_2(void **state) {
    (void)state;
    expect_cpus(0); /* no /proc */
    put("/proc/self/cgroup", "0::/\n");
    expect_cpus(0); /* no mounts */
    put("/proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n" V2_MOUNT);
    expect_cpus(0);                                   /* the root of the hierarchy has no cpu.max */
    put("/sys/fs/cgroup/cpu.max", "150000 100000\n"); /* the root of a container has one */
    expect_cpus(1.5);
    put("/sys/fs/cgroup/cpu.max", "max 100000\n");
    expect_cpus(0);
}

static void the_least_of_the_groups_above_counts(void **state) {
    (void)state;
    put("/proc/self/cgroup", "0::/a.slice/b.scope/c\n");
    put("/proc/self/mountinfo", V2_MOUNT);
    put("/sys/fs/cgroup/a.slice/b.scope/c/cpu.max", "max 100000\n");
    put("/sys/fs/cgroup/a.slice/other/cpu.max", "1000 100000\n");
    expect_cpus(0);
    put("/sys/fs/cgroup/a.slice/cpu.max", "200000 50000\n");
    expect_cpus(4);
    put("/sys/fs/cgroup/a.slice/b.scope/cpu.max", "300000 100000\n");
    expect_cpus(3);
    put("/sys/fs/cgroup/a.slice/b.scope/c/cpu.max", "800000 100000\n");
    expect_cpus(3);
}

static void version_1(void **state) {
    (void)state;
    put("/proc/self/cgroup", "5:cpuset:/x\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n");
    put("/proc/self/mountinfo", "33 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n" V1_MOUNT);
    put("/sys/fs/cgroup/cpuset/x/cpu.cfs_quota_us", "1000\n");
    put("/sys/fs/cgroup/cpuset/x/cpu.cfs_period_us", "1000\n");
    expect_cpus(0);
    put("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
    expect_cpus(0);
    put("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "250000\n");
    expect_cpus(2.5);
    put("/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us", "50000\n");
    expect_cpus(2.5); /* without its period */
    put("/sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us", "100000\n");
    expect_cpus(0.5);
}

/* In a container the mount's root is the container's group; /proc may show its path on the host, or not. */
static void the_root_of_a_mount_is_a_group(void **state) {
    (void)state;
    const char *groups[] = {"4:cpu:/docker/abc\n", "4:cpu:/\n", "4:cpu:/../other\n",
                            "4:cpu:/docker/abcdef\n"};
    put("/proc/self/mountinfo", "32 31 0:29 /docker/abc /mnt/a\\040b rw - cgroup cgroup rw,cpu\n");
    put("/mnt/a b/cpu.cfs_quota_us", "200000");
    put("/mnt/a b/cpu.cfs_period_us", "100000");
    put("/mnt/a b/sub/cpu.cfs_quota_us", "100000");
    put("/mnt/a b/sub/cpu.cfs_period_us", "100000");
    for (int i = 0; i < 4; ++i) {
        put("/proc/self/cgroup", groups[i]);
        expect_cpus(2);
    }
    put("/proc/self/cgroup", "4:cpu:/docker/abc/sub\n");
    expect_cpus(1);
}

static void both_versions(void **state) {
    (void)state;
    put("/proc/self/cgroup", "4:cpu:/a\n0::/b\n");
    put("/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
                                "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
                                "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "300000\n");
    put("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    expect_cpus(3);
    put("/sys/fs/cgroup/unified/b/cpu.max", "200000 100000\n");
    expect_cpus(2);
}

static void garbage_is_no_quota(void **state) {
    (void)state;
    const char *quotas[] = {"",          "\n",       "x",         "100000",  "100000 ", "0 100000",
                            "-5 100000", "100000 0", "100000 -1", "max max", "\x80\xff"};
    const char *mounts[] = {"",
                            " - ",
                            "1 2 3 - cgroup2",
                            "30 23 0:26 / /sys/fs/cgroup rw - cgroup2\n",
                            "30 23 0:26 / /nowhere rw - cgroup2 c rw\n",
                            "\n\n - - - - -\n"};
    const char *groups[] = {"", "0", "0:", "0::", "0::x", "::::", "1:cp:/\n2:cpux:/\n3:xcpu:/\n", "\n\n"};
    put("/proc/self/cgroup", "0::/\n");
    put("/proc/self/mountinfo", V2_MOUNT);
    for (size_t i = 0; i < sizeof quotas / sizeof quotas[0]; ++i) {
        put("/sys/fs/cgroup/cpu.max", quotas[i]);
        expect_cpus(0);
    }
    put("/sys/fs/cgroup/cpu.max", "100000 100000\n");
    expect_cpus(1);
    for (size_t i = 0; i < sizeof mounts / sizeof mounts[0]; ++i) {
        put("/proc/self/mountinfo", mounts[i]);
        expect_cpus(0);
    }
    put("/proc/self/mountinfo", V1_MOUNT V2_MOUNT);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; ++i) {
        put("/proc/self/cgroup", groups[i]);
        expect_cpus(0);
    }
}

static void long_lines_are_passed_over(void **state) {
    (void)state;
    static char text[20000];
    char *at = text + sprintf(text, "1 2 0:1 / / rw - overlay o lower=");
    memset(at, 'x', 9000);
    strcpy(at + 9000, "\n" V2_MOUNT);
    put("/proc/self/cgroup", "0::/\n");
    put("/proc/self/mountinfo", text);
    put("/sys/fs/cgroup/cpu.max", "700000 100000\n");
    expect_cpus(7);
    memset(text, 'y', 9000);
    memcpy(text, "0::/", 4);
    strcpy(text + 9000, "\n");
    put("/proc/self/cgroup", text);
    expect_cpus(0);
}

/* ---- Counting ---- */

static void a_part_of_a_core_counts_as_one(void **state) {
    (void)state;
    int all = leati_cores_within(0).affinity;
    assert_int_equal(leati_cores_within(0).count, all);
    assert_int_equal(leati_cores_within(1e9).count, all);
    assert_int_equal(leati_cores_within(0.01).count, 1);
    assert_int_equal(leati_cores_within(1).count, 1);
    assert_int_equal(leati_cores_within(1.001).count, all < 2 ? 1 : 2);
}

static void the_text_names_the_limit(void **state) {
    (void)state;
    char text[96];
    assert_string_equal(leati_cores_text(text, sizeof text, &(leati_cores){1, 1, 0}), "1 core");
    assert_string_equal(leati_cores_text(text, sizeof text, &(leati_cores){8, 8, 9.5}), "8 cores");
    assert_string_equal(leati_cores_text(text, sizeof text, &(leati_cores){2, 64, 1.5}),
                        "2 cores (of 64: the control group's quota is 1.5 CPUs)");
}

static void affinity_is_seen_at_once(void **state) {
    (void)state;
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (size_t core = 0; CPU_COUNT(&one) == 0; ++core)
        if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    int count = leati_core_count();
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_int_equal(count, 1);
}

/* ---- A real control group ---- */

static bool write_to(const char *group, const char *name, const char *text) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", group, name);
    FILE *file = fopen(path, "w");
    if (!file) return false;
    bool written = fputs(text, file) >= 0;
    return fclose(file) == 0 && written;
}

/* Gives the group a quota of half a CPU; returns false if that is not permitted. */
static bool limit(const char *group, bool second) {
    if (second) return write_to(group, "cpu.max", "50000 100000");
    return write_to(group, "cpu.cfs_period_us", "100000") && write_to(group, "cpu.cfs_quota_us", "50000");
}

/* Counts the cores in a process that has entered the group. */
static int count_in(const char *group) {
    int result = 0;
    pid_t child = fork();
    if (child == 0) {
        if (!write_to(group, "cgroup.procs", "0")) _exit(100);
        leati_cores cores = leati_cores_get();
        _exit(cores.quota > 0.49 && cores.quota < 0.51 ? cores.count : 50 + cores.count);
    }
    assert_true(child > 0 && waitpid(child, &result, 0) == child && WIFEXITED(result));
    return WEXITSTATUS(result);
}

static void a_quota_of_this_machine_counts(void **state) {
    (void)state;
    const char *places[] = {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup"};
    for (int i = 0; i < 3; ++i) {
        char group[200];
        snprintf(group, sizeof group, "%s/leat-test-%ld", places[i], (long)getpid());
        if (mkdir(group, 0755) != 0) continue;
        int count = limit(group, i == 2) ? count_in(group) : 100;
        assert_int_equal(rmdir(group), 0);
        if (count == 100) continue;
        assert_int_equal(count, 1);
        return;
    }
    LEAT_SKIP(
        "no control group with a CPU quota can be made here (as root, where /sys/fs/cgroup may be written)");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(version_2, clear),
        cmocka_unit_test_setup(the_least_of_the_groups_above_counts, clear),
        cmocka_unit_test_setup(version_1, clear),
        cmocka_unit_test_setup(the_root_of_a_mount_is_a_group, clear),
        cmocka_unit_test_setup(both_versions, clear),
        cmocka_unit_test_setup(garbage_is_no_quota, clear),
        cmocka_unit_test_setup(long_lines_are_passed_over, clear),
        cmocka_unit_test(a_part_of_a_core_counts_as_one),
        cmocka_unit_test(the_text_names_the_limit),
        cmocka_unit_test(affinity_is_seen_at_once),
        cmocka_unit_test(a_quota_of_this_machine_counts),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
