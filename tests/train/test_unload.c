/* SPDX-License-Identifier: Apache-2.0 */
/* The last user of a library is unloaded, again and again: no thread is left whose code is gone, and none is added
 * by the next cycle.  setgid interrupts every thread of the process, and a forked child uses the library as its
 * parent did, although the library is in no global scope. */
#include "cmocka_all.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CYCLES = 10 };

static int count_threads(void) {
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    int count = 0;
    for (const struct dirent *entry; (entry = readdir(tasks));) count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

/* A thread that has been joined may stay in the kernel's list for a moment. */
static void expect_threads(int expected) {
    int threads = count_threads();
    for (int tries = 0; tries < 2000 && threads > expected; ++tries) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        threads = count_threads();
    }
    assert_int_equal(threads, expected);
}

/* Loads a user of the library, lets it run and unloads it.  Returns a message after a failure, otherwise NULL. */
static const char *use_once(const char *path) {
    static char failure[512];
    const char *(*use)(void) = NULL;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return dlerror();
    void *symbol = dlsym(library, "unload_use");
    if (!symbol) return dlerror();
    memcpy(&use, &symbol, sizeof use); /* POSIX's way to convert to a function pointer */
    const char *why = use();
    if (why) snprintf(failure, sizeof failure, "%s", why);
    if (dlclose(library) != 0) return dlerror();
    return why ? failure : NULL;
}

static void expect_use(const char *path) {
    const char *failure = use_once(path);
    if (failure) fail_msg("%s", failure);
}

static void use_again_and_again(const char *path) {
    expect_use(path);
    int threads = count_threads();
    for (int i = 1; i < CYCLES; ++i) expect_use(path);
    expect_threads(threads);
    assert_int_equal(setgid(getgid()), 0);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(use_once(path) ? 1 : 0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void the_whole_can_be_unloaded(void **state) {
    (void)state;
    use_again_and_again(LEAT_UNLOAD_TRAIN);
}

static void the_feed_can_be_unloaded(void **state) {
    (void)state;
    use_again_and_again(LEAT_UNLOAD_FEED);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_feed_can_be_unloaded),
                                       cmocka_unit_test(the_whole_can_be_unloaded)};
    alarm(120);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
