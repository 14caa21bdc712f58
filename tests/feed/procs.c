/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the kernel's lists of children, and installs filters of system calls. */
#define _GNU_SOURCE /* syscall numbers */
#include "feed/procs.h"

#include "cmocka_all.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "feed/source.h"

int children_of(pid_t parent, pid_t *out) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    FILE *file = fopen(path, "r");
    int count = 0, pid = 0;
    while (file && count < most_children && fscanf(file, "%d", &pid) == 1) out[count++] = pid;
    if (file) fclose(file);
    return count;
}

void name_of(pid_t pid, char *out, int bytes) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file || !fgets(out, bytes, file)) out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    if (file) fclose(file);
}

int children_named(pid_t parent, const char *prefix) {
    pid_t pids[most_children];
    int count = children_of(parent, pids), named = 0;
    for (int i = 0; i < count; ++i) {
        char name[32];
        name_of(pids[i], name, sizeof name);
        named += strncmp(name, prefix, strlen(prefix)) == 0;
    }
    return named;
}

pid_t helper_of(pid_t parent) {
    pid_t pids[most_children];
    for (int tries = 0; tries < 10000; ++tries, sleep_us(1000)) {
        int count = children_of(parent, pids);
        for (int i = 0; i < count; ++i) {
            char name[32];
            name_of(pids[i], name, sizeof name);
            if (strcmp(name, "leat-helper") == 0) return pids[i];
        }
    }
    fail_msg("no helper");
    return 0;
}

int workers_of(pid_t helper, int expected, pid_t *out) {
    int count = 0;
    for (int tries = 0; tries < 10000 && count < expected; ++tries, sleep_us(1000))
        count = children_of(helper, out);
    assert_int_equal(count, expected);
    return count;
}

int end_children(void **state) {
    (void)state;
    pid_t pids[most_children];
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    for (int count; (count = children_of(getpid(), pids)) > 0;)
        for (int i = 0; i < count; ++i) {
            kill(pids[i], SIGKILL);
            waitpid(pids[i], NULL, 0);
        }
    return 0;
}

int run_together(const struct CMUnitTest *tests, size_t count) {
    int failed = 0, status = 0;
    for (size_t i = 0; i < count; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            const struct CMUnitTest alone[] = {tests[i]};
            alarm(240);
            exit(cmocka_run_group_tests(alone, NULL, NULL) != 0);
        }
        failed += child < 0;
    }
    while (wait(&status) > 0) failed += status != 0;
    return failed;
}

void deny(unsigned number, int error, int third_argument) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)third_argument, 0, third_argument ? 1 : 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(77);
}

void skip_because(const char *reason) {
    printf("skipped: %s\n", reason);
    skip();
}
