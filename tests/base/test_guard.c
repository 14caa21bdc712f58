/* SPDX-License-Identifier: Apache-2.0 */
/* A mapped file that is shortened while it is read gives zeros and an error instead of SIGBUS; other SIGBUS signals
 * still go to the program's handler. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "cmocka_all.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/file.h"

enum { handled = 42, wrong = 100 };

static char folder[] = "/tmp/leat-guard-XXXXXX";
static size_t page;

static int make_folder(void **state) {
    (void)state;
    page = (size_t)sysconf(_SC_PAGESIZE);
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    unlink("data");
    unlink("other");
    return chdir("/") == 0 ? rmdir(folder) : -1;
}

static void make_file(const char *path, size_t bytes) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_true(fd >= 0);
    for (size_t i = 0; i < bytes; ++i) assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
}

/* Restores leat's handler, which leat installs once per process: cmocka installs its own for each test. */
static void keep_handler(void) {
    static struct sigaction installed;
    if (installed.sa_flags)
        sigaction(SIGBUS, &installed, NULL);
    else
        sigaction(SIGBUS, NULL, &installed);
}

static leati_map open_guarded(size_t bytes) {
    leati_map map;
    leat_error err = {0};
    make_file("data", bytes);
    if (leati_map_open_guarded(&map, "data", &err) != LEAT_OK) fail_msg("%s", err.message);
    assert_int_equal(map.size, bytes);
    keep_handler();
    return map;
}

static void expect_shortened(const leati_map *map, size_t from, size_t bytes, const char *part) {
    leat_error err = {0};
    assert_int_equal(leati_map_check(map, map->data + from, bytes, &err), LEAT_EIO);
    if (!strstr(err.message, "'data'") || !strstr(err.message, part)) fail_msg("%s", err.message);
}

static void missing_pages_are_zeros_and_an_error(void **state) {
    (void)state;
    leati_map map = open_guarded(4 * page);
    assert_int_equal(leati_map_check(&map, map.data, map.size, NULL), LEAT_OK);
    assert_int_equal(truncate("data", (off_t)page), 0);
    volatile const unsigned char *data = map.data;
    assert_int_equal(data[0], 'x');
    assert_int_equal(leati_map_check(&map, map.data, page, NULL), LEAT_OK);
    assert_int_equal(data[2 * page], 0);
    assert_int_equal(data[4 * page - 1], 0);
    assert_int_equal(data[0], 'x');
    char part[64];
    snprintf(part, sizeof part, "shortened to %zu bytes", page);
    expect_shortened(&map, 0, page, part); /* every later check fails, too */
    snprintf(part, sizeof part, "had %zu", 4 * page);
    expect_shortened(&map, 0, page, part);
    unlink("data"); /* the file's length is now unknown */
    expect_shortened(&map, 0, page, "could not be read");
    leati_map_close(&map);
}

/* Missing bytes within the last page raise no signal. */
static void bytes_missing_in_the_last_page_are_an_error(void **state) {
    (void)state;
    leati_map map = open_guarded(page + 100);
    assert_int_equal(truncate("data", (off_t)page + 50), 0);
    assert_int_equal(leati_map_check(&map, map.data, page, NULL), LEAT_OK);
    expect_shortened(&map, page - 1, 2, "shortened to");
    leati_map_close(&map);
}

static void replaced_file_is_read_as_it_was(void **state) {
    (void)state;
    leati_map map = open_guarded(2 * page);
    make_file("other", 10);
    assert_int_equal(rename("other", "data"), 0);
    assert_int_equal(leati_map_check(&map, map.data, map.size, NULL), LEAT_OK);
    assert_int_equal(map.data[2 * page - 1], 'x');
    leati_map_close(&map);
}

typedef struct reader {
    const leati_map *map;
    size_t sum;
} reader;

static void *read_all(void *argument) {
    reader *r = argument;
    for (size_t i = 0; i < r->map->size; ++i) r->sum += r->map->data[i];
    return NULL;
}

static void several_threads_may_meet_the_end(void **state) {
    (void)state;
    enum { threads = 4 };
    leati_map map = open_guarded(16 * page), other;
    reader readers[threads];
    pthread_t ids[threads];
    assert_int_equal(truncate("data", (off_t)(4 * page)), 0);
    for (int i = 0; i < threads; ++i) {
        readers[i] = (reader){.map = &map};
        assert_int_equal(pthread_create(&ids[i], NULL, read_all, &readers[i]), 0);
    }
    for (int i = 0; i < 200; ++i) { /* maps and unmaps other files meanwhile */
        assert_int_equal(leati_map_open_guarded(&other, "data", NULL), LEAT_OK);
        leati_map_close(&other);
    }
    for (int i = 0; i < threads; ++i) {
        pthread_join(ids[i], NULL);
        assert_int_equal(readers[i].sum, 4 * page * 'x');
    }
    expect_shortened(&map, 0, 1, "shortened");
    leati_map_close(&map);
}

/* ---- Other SIGBUS signals ---- */

/* A fault in a file that leat has not mapped. */
static void fault_elsewhere(void) {
    make_file("other", page);
    int fd = open("other", O_RDONLY);
    volatile const char *data = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
    if (fd < 0 || data == MAP_FAILED || truncate("other", 0) != 0) _exit(wrong);
    if (data[0] == 0) _exit(wrong + 1);
}

static void guard_something(void) {
    leati_map map = open_guarded(page);
    leati_map kept = open_guarded(page); /* stays open */
    (void)kept;
    leati_map_close(&map);
}

/* Runs `body` in a child; returns its status from waitpid. */
static int end_of(void (*body)(void)) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        body();
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void fault_by_default(void) {
    signal(SIGBUS, SIG_DFL); /* a sanitizer has its own */
    guard_something();
    fault_elsewhere();
}

static void fault_ignored(void) {
    signal(SIGBUS, SIG_IGN);
    guard_something();
    raise(SIGBUS); /* a sent signal is ignored, but a fault cannot be */
    fault_elsewhere();
}

static void sent_by_default(void) {
    signal(SIGBUS, SIG_DFL);
    guard_something();
    raise(SIGBUS);
}

static void others_end_as_they_did(void **state) {
    (void)state;
    void (*const bodies[])(void) = {fault_by_default, fault_ignored, sent_by_default};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; ++i) {
        int status = end_of(bodies[i]);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGBUS)
            fail_msg("%zu: status %x", i, (unsigned)status);
    }
}

static void simple_handler(int number) {
    _exit(number == SIGBUS ? handled : wrong);
}

static void handler_with_address(int number, siginfo_t *info, void *context) {
    _exit(number == SIGBUS && info->si_code == BUS_ADRERR && info->si_addr && context ? handled : wrong);
}

static void fault_with_simple_handler(void) {
    signal(SIGBUS, simple_handler);
    guard_something();
    fault_elsewhere();
}

static void fault_with_handler(void) {
    struct sigaction action = {.sa_sigaction = handler_with_address, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
    guard_something();
    fault_elsewhere();
}

static void note(int number) {
    (void)number;
}

/* The program's handler handles one signal; then the fault recurs and ends the program. */
static void fault_with_handler_for_once(void) {
    struct sigaction action = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGBUS, &action, NULL);
    guard_something();
    fault_elsewhere();
}

static void handlers_of_the_program_run(void **state) {
    (void)state;
    int simple = end_of(fault_with_simple_handler), full = end_of(fault_with_handler);
    assert_true(WIFEXITED(simple) && WEXITSTATUS(simple) == handled);
    assert_true(WIFEXITED(full) && WEXITSTATUS(full) == handled);
    int once = end_of(fault_with_handler_for_once);
    assert_true(WIFSIGNALED(once) && WTERMSIG(once) == SIGBUS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            others_end_as_they_did), /* first, so that each child of this test installs the handler itself */
        cmocka_unit_test(handlers_of_the_program_run),
        cmocka_unit_test(missing_pages_are_zeros_and_an_error),
        cmocka_unit_test(bytes_missing_in_the_last_page_are_an_error),
        cmocka_unit_test(replaced_file_is_read_as_it_was),
        cmocka_unit_test(several_threads_may_meet_the_end),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
