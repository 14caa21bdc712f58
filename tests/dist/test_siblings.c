/* SPDX-License-Identifier: Apache-2.0 */
/* Processes with one parent watch each other. */
#include "cmocka_all.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "dist/siblings.h"

enum { LOOKS = 600 };

static void pause_ms(long ms) {
    const struct timespec pause = {.tv_nsec = ms * 1000000};
    (void)nanosleep(&pause, NULL);
}

static pid_t sleeper(void) {
    pid_t child = fork();
    if (child == 0) {
        for (;;) (void)pause();
    }
    return child;
}

/* In a child: looks until a sibling is found that is stopped, or LOOKS times.  Returns whether it is `expected`. */
static bool finds(pid_t expected, int looks) {
    leati_siblings siblings;
    leati_siblings_begin(&siblings);
    for (int i = 0; i < looks; ++i, pause_ms(50)) {
        pid_t found = leati_siblings_find_stopped(&siblings, 200000000);
        if (found) return found == expected;
    }
    return expected == 0;
}

static int outcome_of(pid_t child) {
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_stopped_sibling_is_found(void **state) {
    (void)state;
    pid_t other = sleeper();
    assert_true(other > 0);
    assert_int_equal(kill(other, SIGSTOP), 0);
    pid_t child = fork();
    if (child == 0) _exit(finds(other, LOOKS) ? 0 : 1);
    assert_int_equal(outcome_of(child), 0);
    assert_int_equal(kill(other, SIGCONT), 0);
    child = fork();
    if (child == 0) _exit(finds(0, 10) ? 0 : 1); /* runs again: none is stopped */
    assert_int_equal(outcome_of(child), 0);
    assert_int_equal(kill(other, SIGKILL), 0);
    assert_int_equal(outcome_of(other), -1);
}

/* A process whose parent ends sees that its launcher has ended. */
static void the_end_of_the_launcher_is_seen(void **state) {
    int told[2];
    char answer = 0;
    (void)state;
    assert_int_equal(pipe(told), 0);
    pid_t launcher = fork();
    if (launcher == 0) {
        int ready[2];
        if (pipe(ready) != 0) _exit(1);
        if (fork() == 0) {
            leati_siblings siblings;
            leati_siblings_begin(&siblings);
            bool early = leati_siblings_launcher_has_ended(&siblings);
            bool late = write(ready[1], "x", 1) != 1;
            for (int i = 0; i < LOOKS && !late; ++i, pause_ms(50))
                late = leati_siblings_launcher_has_ended(&siblings);
            _exit(write(told[1], early || !late ? "n" : "y", 1) == 1 ? 0 : 1);
        }
        _exit(read(ready[0], &answer, 1) == 1 ? 0 : 1);
    }
    assert_int_equal(outcome_of(launcher), 0);
    assert_int_equal(read(told[0], &answer, 1), 1);
    assert_int_equal(answer, 'y');
    close(told[0]);
    close(told[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stopped_sibling_is_found),
        cmocka_unit_test(the_end_of_the_launcher_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
