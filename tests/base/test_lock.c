/* SPDX-License-Identifier: Apache-2.0 */
/* One process at a time holds the lock of a folder, and a process that has died holds none. */
#define _GNU_SOURCE /* mkdtemp, SYS_fcntl */
#include "cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/process_stat.h"
#include "feed/procs.h"
#include "leat/file.h"
#include "leat/fork.h"

static char folder[] = "/tmp/leat-lock-XXXXXX";

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    unlink("lock");
    return chdir("/") == 0 ? rmdir(folder) : -1;
}

static leat_lock *lock_here(void) {
    leat_lock *lock = NULL;
    leat_error err = {0};
    if (leat_folder_lock(&lock, ".", &err) != LEAT_OK) fail_msg("%s", err.message);
    assert_non_null(lock);
    return lock;
}

static void expect_refused(const char *path, leat_status status, const char *says) {
    leat_lock *lock = (leat_lock *)folder;
    leat_error err = {0};
    leat_status received = leat_folder_lock(&lock, path, &err);
    if (received != status || !strstr(err.message, says))
        fail_msg("%s '%s', expected %s '%s'", leat_status_name(received), err.message,
                 leat_status_name(status), says);
    assert_null(lock);
}

/* ---- Other processes ---- */

/* A child process that runs one of the functions below, and reports and waits through pipes. */
typedef struct child {
    pid_t pid;
    int from, to;
} child;

static void start(child *out, int (*run)(int from, int to)) {
    int up[2], down[2];
    assert_int_equal(pipe(up), 0);
    assert_int_equal(pipe(down), 0);
    out->pid = fork();
    assert_true(out->pid >= 0);
    if (out->pid == 0) {
        close(up[0]);
        close(down[1]);
        _exit(run(down[0], up[1]));
    }
    close(up[1]);
    close(down[0]);
    out->from = up[0];
    out->to = down[1];
}

static char receive(int fd) {
    char byte = '?';
    while (read(fd, &byte, 1) < 0 && errno == EINTR) continue;
    return byte;
}

static void send_byte(int fd, char byte) {
    if (write(fd, &byte, 1) != 1) abort();
}

static int end(child *c) {
    int status = 0;
    close(c->from);
    close(c->to);
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR) continue;
    return status;
}

static char try_lock(leat_lock **lock) {
    leat_status status = leat_folder_lock(lock, ".", NULL);
    return status == LEAT_OK ? 'y' : status == LEAT_EBUSY ? 'b' : 'e';
}

/* Locks the folder, reports whether that succeeded, and waits until the parent sends a byte. */
static int hold(int from, int to) {
    leat_lock *lock;
    send_byte(to, try_lock(&lock));
    receive(from);
    leat_folder_unlock(&lock);
    return 0;
}

/* Runs `run` in a child and returns the byte that it reports. */
static char ask(int (*run)(int from, int to)) {
    child c;
    start(&c, run);
    char answer = receive(c.from);
    send_byte(c.to, '.');
    assert_int_equal(end(&c), 0);
    return answer;
}

static off_t lock_bytes(void) {
    struct stat info;
    assert_int_equal(stat("lock", &info), 0);
    return info.st_size;
}

/* ---- Tests ---- */

static void two_processes_exclude_each_other(void **state) {
    (void)state;
    child holder;
    char name[64];
    start(&holder, hold);
    assert_int_equal(receive(holder.from), 'y');
    snprintf(name, sizeof name, "process %ld on ", (long)holder.pid);
    expect_refused(".", LEAT_EBUSY, name);
    expect_refused(".", LEAT_EBUSY, " UTC holds its lock; wait until that process has ended");
    send_byte(holder.to, '.');
    assert_int_equal(end(&holder), 0);
    assert_int_equal(lock_bytes(), 0);
    leat_lock *lock = lock_here();
    assert_int_equal(ask(hold), 'b');
    leat_folder_unlock(&lock);
    assert_null(lock);
    assert_int_equal(ask(hold), 'y');
}

static void a_killed_process_holds_no_lock(void **state) {
    (void)state;
    child holder;
    start(&holder, hold);
    assert_int_equal(receive(holder.from), 'y');
    kill(holder.pid, SIGKILL);
    assert_true(WIFSIGNALED(end(&holder)));
    assert_true(lock_bytes() > 0);
    leat_lock *lock = lock_here();
    leat_folder_unlock(&lock);
}

static void a_process_locks_once(void **state) {
    (void)state;
    leat_lock *lock = lock_here();
    expect_refused(".", LEAT_EBUSY, "this process");
    expect_refused(folder, LEAT_EBUSY, "this process"); /* the same folder by another path */
    assert_int_equal(ask(hold), 'b');                   /* the refusals have not released the lock */
    leat_folder_unlock(&lock);
    lock = lock_here();
    leat_folder_unlock(&lock);
    leat_folder_unlock(&lock);
    leat_folder_unlock(NULL);
}

/* Locks in a child of a process that holds the lock: leat knows that the child is another process. */
static leat_lock *inherited;
static int unlock_inherited(int from, int to) {
    leat_folder_unlock(&inherited);
    send_byte(to, inherited ? 'e' : 'y');
    receive(from);
    return 0;
}

static void a_child_releases_nothing(void **state) {
    (void)state;
    inherited = lock_here();
    off_t bytes = lock_bytes();
    assert_int_equal(ask(unlock_inherited), 'y');
    assert_int_equal(lock_bytes(), bytes);
    assert_int_equal(ask(hold), 'b');
    leat_folder_unlock(&inherited);
}

/* Waits for the parent to unlock, then locks, frees the inherited object, and asks whether a process of its own is
 * refused. */
static int lock_after_parent(int from, int to) {
    leat_lock *lock;
    send_byte(to, try_lock(&lock)); /* 'b' */
    receive(from);
    char answer = try_lock(&lock);
    leat_folder_unlock(&inherited);
    if (answer == 'y' && ask(hold) == 'b') answer = 'k';
    send_byte(to, answer);
    leat_folder_unlock(&lock);
    return 0;
}

static void a_child_locks_after_its_parent(void **state) {
    (void)state;
    child c;
    inherited = lock_here();
    start(&c, lock_after_parent);
    assert_int_equal(receive(c.from), 'b');
    leat_folder_unlock(&inherited);
    send_byte(c.to, '.');
    assert_int_equal(receive(c.from), 'k');
    assert_int_equal(end(&c), 0);
}

/* The holder forks a child that outlives it. */
static int hold_and_fork(int from, int to) {
    leat_lock *lock;
    char answer = try_lock(&lock);
    pid_t orphan = fork();
    if (orphan == 0) {
        receive(from);
        _exit(0);
    }
    send_byte(to, answer);
    kill(getpid(), SIGKILL);
    return 0;
}

static void an_orphan_of_the_holder_holds_no_lock(void **state) {
    (void)state;
    child holder;
    int status = 0;
    start(&holder, hold_and_fork);
    assert_int_equal(receive(holder.from), 'y');
    assert_int_equal(waitpid(holder.pid, &status, 0), holder.pid);
    leat_lock *lock = lock_here(); /* the orphan lives: it waits for its pipe */
    leat_folder_unlock(&lock);
    close(holder.from);
    close(holder.to);
}

static void the_line_names_the_holder(void **state) {
    (void)state;
    char line[256] = "", expected[64];
    leati_process_stat self;
    assert_true(leati_process_stat_read(&self, getpid()));
    assert_int_equal(self.state, 'R');
    leat_lock *lock = lock_here();
    pid_t reader = fork(); /* in a process of its own: to close the file here would release the lock */
    if (reader == 0) {
        int fd = open("lock", O_RDONLY);
        if (read(fd, line, sizeof line - 1) <= 0) _exit(1);
        snprintf(expected, sizeof expected, "leat lock: process %ld on ", (long)getppid());
        if (strncmp(line, expected, strlen(expected)) != 0) _exit(2);
        snprintf(expected, sizeof expected, " UTC, start time %llu\n", (unsigned long long)self.started);
        _exit(strstr(line, expected) ? 0 : 3);
    }
    int status = 0;
    assert_int_equal(waitpid(reader, &status, 0), reader);
    assert_int_equal(status, 0);
    leat_folder_unlock(&lock);
}

/* The line of a dead process is not shown if another process holds the lock and has not written its own. */
static void an_old_line_is_not_believed(void **state) {
    (void)state;
    child holder;
    start(&holder, hold);
    assert_int_equal(receive(holder.from), 'y');
    FILE *file = fopen("lock", "w"); /* this process does not hold the lock */
    fputs("leat lock: process 1 on elsewhere since 1970", file);
    fclose(file);
    char name[64];
    snprintf(name, sizeof name, "process %ld holds its lock", (long)holder.pid);
    expect_refused(".", LEAT_EBUSY, name);
    send_byte(holder.to, '.');
    assert_int_equal(end(&holder), 0);
}

static void the_mode_follows_the_umask(void **state) {
    (void)state;
    struct stat info;
    unlink("lock");
    mode_t before = umask(026);
    leat_lock *lock = lock_here();
    umask(before);
    assert_int_equal(stat("lock", &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
    leat_folder_unlock(&lock);
}

static void what_cannot_be_locked_is_refused(void **state) {
    (void)state;
    expect_refused("absent", LEAT_ENOTFOUND, "'absent'");
    expect_refused("lock", LEAT_EINVAL, "'lock'");
    FILE *file = fopen("lock", "w");
    fputs("my notes", file);
    fclose(file);
    expect_refused(".", LEAT_EINVAL, "has other content");
    assert_int_equal(lock_bytes(), 8);
    unlink("lock");
    assert_int_equal(symlink("target", "lock"), 0);
    expect_refused(".", LEAT_EIO, "cannot be opened for writing");
    assert_int_not_equal(access("target", F_OK), 0);
    unlink("lock");
    assert_int_equal(mkfifo("lock", 0600), 0);
    expect_refused(".", LEAT_EINVAL, "is not a regular file");
    unlink("lock");
    assert_int_equal(mkdir("lock", 0700), 0);
    expect_refused(".", LEAT_EIO, "Is a directory");
    rmdir("lock");
}

/* A file system of a network may have no locks: fcntl then fails with ENOLCK. */
static void a_file_system_without_locks_is_refused(void **state) {
    (void)state;
    pid_t caller = fork();
    if (caller == 0) {
        leat_lock *lock = NULL;
        leat_error err = {0};
        deny(SYS_fcntl, ENOLCK, 0);
        leat_status status = leat_folder_lock(&lock, ".", &err);
        _exit(status == LEAT_ENOTSUP && !lock && strstr(err.message, "its file system gives no locks") ? 0
                                                                                                       : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(caller, &status, 0), caller);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) skip_because("the kernel has no filters of system calls");
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_removed_file_is_made_again(void **state) {
    (void)state;
    leat_lock *old = lock_here();
    unlink("lock");
    leat_lock *lock = lock_here(); /* a new file */
    leat_folder_unlock(&old);
    assert_int_equal(ask(hold), 'b');
    leat_folder_unlock(&lock);
}

static atomic_int inside;
static void *contend(void *user) {
    intptr_t *taken = user;
    for (int i = 0; i < 200; ++i) {
        leat_lock *lock;
        if (leat_folder_lock(&lock, ".", NULL) != LEAT_OK) continue;
        if (atomic_fetch_add(&inside, 1) != 0) *taken = INTPTR_MIN;
        ++*taken;
        atomic_fetch_sub(&inside, 1);
        leat_folder_unlock(&lock);
    }
    return NULL;
}

static void threads_exclude_each_other(void **state) {
    (void)state;
    pthread_t threads[4];
    intptr_t taken[4] = {0};
    for (int i = 0; i < 4; ++i) assert_int_equal(pthread_create(&threads[i], NULL, contend, &taken[i]), 0);
    for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
    for (int i = 0; i < 4; ++i) assert_true(taken[i] >= 0);
    assert_true(taken[0] + taken[1] + taken[2] + taken[3] > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_processes_exclude_each_other),
        cmocka_unit_test(a_killed_process_holds_no_lock),
        cmocka_unit_test(a_process_locks_once),
        cmocka_unit_test(a_child_releases_nothing),
        cmocka_unit_test(a_child_locks_after_its_parent),
        cmocka_unit_test(an_orphan_of_the_holder_holds_no_lock),
        cmocka_unit_test(the_line_names_the_holder),
        cmocka_unit_test(an_old_line_is_not_believed),
        cmocka_unit_test(the_mode_follows_the_umask),
        cmocka_unit_test(a_file_system_without_locks_is_refused),
        cmocka_unit_test(a_removed_file_is_made_again),
        cmocka_unit_test(threads_exclude_each_other),
        cmocka_unit_test(what_cannot_be_locked_is_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
