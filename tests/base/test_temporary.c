/* SPDX-License-Identifier: Apache-2.0 */
/* leat_folder_clean removes the unfinished files of dead processes, and nothing else. */
#define _GNU_SOURCE /* mkdtemp */
#include "cmocka_all.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/file.h"
#include "base/os/temporary.h"
#include "leat/file.h"

static char folder[] = "/tmp/leat-clean-XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    return chdir("/") == 0 ? rmdir(folder) : -1;
}

static int files_here(void) {
    int count = 0;
    DIR *directory = opendir(".");
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(directory);
    return count;
}

static void make_file(const char *name) {
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    close(fd);
}

static void clean(void) {
    leat_error err = {0};
    if (leat_folder_clean(".", &err) != LEAT_OK) fail_msg("%s", err.message);
}

static const char *name_of_pid(pid_t pid) {
    static char name[64];
    snprintf(name, sizeof name, "model.h5.leat-%ld-0.tmp", (long)pid);
    return name;
}

/* A child that waits for a signal. */
static pid_t start_child(void) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    while (pid == 0) pause();
    return pid;
}

static void end_child(pid_t pid) {
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void what_a_killed_writer_leaves_is_removed(void **state) {
    (void)state;
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    make_file("model.h5");
    pid_t writer = fork();
    if (writer == 0) {
        leati_replacement file;
        if (leati_replace_begin(&file, "model.h5", NULL) != LEAT_OK || write(ready[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(files_here(), 2);
    clean();
    assert_int_equal(files_here(), 2); /* the writer is alive */
    end_child(writer);
    clean();
    assert_int_equal(files_here(), 1);
    assert_int_equal(unlink("model.h5"), 0);
    close(ready[0]);
    close(ready[1]);
}

/* The caller holds the folder's lock: a file with its own pid is that of a dead process. */
static void a_pid_that_was_used_before_does_not_protect(void **state) {
    (void)state;
    struct timespec long_ago[] = {{1000000000, 0}, {1000000000, 0}};
    pid_t child = start_child();
    make_file(name_of_pid(getpid()));
    clean();
    assert_int_equal(files_here(), 0);
    make_file(name_of_pid(child));
    clean();
    assert_int_equal(files_here(), 1);
    assert_int_equal(utimensat(AT_FDCWD, name_of_pid(child), long_ago, 0), 0); /* older than the child */
    clean();
    assert_int_equal(files_here(), 0);
    make_file(name_of_pid(child));
    kill(child, SIGKILL);
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0); /* dead, and not reaped */
    clean();
    assert_int_equal(files_here(), 0);
    end_child(child);
}

static void other_names_stay(void **state) {
    (void)state;
    pid_t dead = start_child();
    end_child(dead);
    static const char *formats[] = {
        "x.leat-%ld-0.tm",   ".leat-%ld-0.tmp",   "x.leat-0%ld-0.tmp",          "x.leat-%ld-100.tmp",
        "x.leat-%ld-00.tmp", "x.leat-%ld-.tmp",   "x.leat-%ld0000000000-0.tmp", "x.%ld-0.tmp",
        "x.leat-%ld-0.tmp~", "x.leat--%ld-0.tmp", "x.leat-%ld-0.tmp.h5"};
    enum { count = sizeof formats / sizeof *formats };
    char name[128];
    for (int i = 0; i < count; ++i) {
        snprintf(name, sizeof name, formats[i], (long)dead);
        assert_int_equal(leati_temporary_owner(name), 0);
        make_file(name);
    }
    make_file("x.leat-0-0.tmp");
    assert_int_equal(mkdir("folder.leat-1-0.tmp", 0700), 0);
    snprintf(name, sizeof name, "link.leat-%ld-0.tmp", (long)dead);
    assert_int_equal(symlink("target", name), 0);
    assert_int_equal(leati_temporary_owner(name), dead);
    clean();
    assert_int_equal(files_here(), count + 3);
    assert_int_equal(unlink(name), 0);
    assert_int_equal(rmdir("folder.leat-1-0.tmp"), 0);
    assert_int_equal(unlink("x.leat-0-0.tmp"), 0);
    for (int i = 0; i < count; ++i) {
        snprintf(name, sizeof name, formats[i], (long)dead);
        assert_int_equal(unlink(name), 0);
    }
}

static void names_are_recognised(void **state) {
    (void)state;
    char name[64 + LEATI_TEMPORARY_SUFFIX_BYTES];
    leati_temporary_name(name, "a.leat-1-1.tmp/b.h5", 19, LEATI_TEMPORARY_ATTEMPTS - 1);
    assert_int_equal(leati_temporary_owner(name), getpid());
    assert_int_equal(leati_temporary_owner("a.leat-5-1.tmp.leat-6-1.tmp"), 6);
    assert_int_equal(leati_temporary_owner("a.leat-5-1.tmp"), 5);
}

static void what_is_no_folder_is_refused(void **state) {
    (void)state;
    leat_error err = {0};
    assert_int_equal(leat_folder_clean("absent", &err), LEAT_ENOTFOUND);
    assert_non_null(strstr(err.message, "'absent'"));
    make_file("file");
    assert_int_equal(leat_folder_clean("file", &err), LEAT_EINVAL);
    assert_int_equal(unlink("file"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_killed_writer_leaves_is_removed),
        cmocka_unit_test(a_pid_that_was_used_before_does_not_protect),
        cmocka_unit_test(other_names_stay),
        cmocka_unit_test(names_are_recognised),
        cmocka_unit_test(what_is_no_folder_is_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
