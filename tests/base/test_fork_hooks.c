/* SPDX-License-Identifier: Apache-2.0 */
/* leat_before_fork and leat_after_fork_*, called by fork()'s handlers, by a host's hooks, or both: the fork depth of
 * a child is one more than its parent's, however often they are called; and no thread is inside leati_fork_hold when
 * a process forks. */
#define _GNU_SOURCE /* _Fork */
#include "cmocka_all.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/os/fork.h"

enum { ALARM_S = 30 };

static void enter_and_leave(void) {
    leati_fork_hold();
    leati_fork_hold();
    leati_fork_release();
    leati_fork_release();
}

static void *in_a_thread(void *user) {
    enter_and_leave();
    return user;
}

/* Checks that the gate is open: this thread and another one can enter. */
static void pass_the_gate(void) {
    pthread_t thread;
    enter_and_leave();
    if (pthread_create(&thread, NULL, in_a_thread, NULL) == 0) pthread_join(thread, NULL);
}

/* Returns 0 if the child's fork depth was correct. */
static int wait_for(pid_t child) {
    int status = -1;
    return waitpid(child, &status, 0) == child ? status : -1;
}

static void end_child(uint32_t depth) {
    alarm(ALARM_S);
    pass_the_gate();
    _exit(leati_fork_depth() == depth ? 0 : 1);
}

static void fork_calls_the_handlers(void **state) {
    (void)state;
    uint32_t depth = leati_fork_depth();
    pid_t child = fork();
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0) end_child(depth + 2);
        if (wait_for(grandchild) != 0) _exit(2);
        end_child(depth + 1);
    }
    assert_int_equal(wait_for(child), 0);
    assert_int_equal(leati_fork_depth(), depth);
    pass_the_gate();
}

/* Calls the hooks as Python does: leat_before_fork, fork(), then the other two; a host may leave out some of them. */
static void a_hosts_hooks_beside_them_are_harmless(void **state) {
    (void)state;
    uint32_t depth = leati_fork_depth();
    for (int calls = 0; calls < 3; ++calls) {
        leat_before_fork();
        enter_and_leave(); /* another library's hook may use leat */
        pid_t child = fork();
        if (child == 0) {
            for (int i = 0; i < calls; ++i) leat_after_fork_child();
            pid_t grandchild = fork();
            if (grandchild == 0) end_child(depth + 2);
            if (wait_for(grandchild) != 0) _exit(2);
            end_child(depth + 1);
        }
        leat_after_fork_parent();
        assert_int_equal(wait_for(child), 0);
        pass_the_gate();
    }
    leat_after_fork_parent(); /* without leat_before_fork */
    leat_after_fork_child();  /* outside of a child */
    assert_int_equal(leati_fork_depth(), depth);
    pass_the_gate();
}

/* _Fork runs no handlers. */
static void a_hosts_hooks_in_their_place_suffice(void **state) {
    (void)state;
    uint32_t depth = leati_fork_depth();
    for (int before = 0; before < 2; ++before) {
        if (before) leat_before_fork();
        pid_t child = _Fork();
        if (child == 0) {
            leat_after_fork_child();
            leat_after_fork_child();
            end_child(depth + 1);
        }
        if (before) leat_after_fork_parent();
        assert_int_equal(wait_for(child), 0);
        pass_the_gate();
    }
    assert_int_equal(leati_fork_depth(), depth);
}

/* ---- Threads inside the gate ---- */

typedef struct pair {
    atomic_bool done;
    atomic_int entered;
    int first, second; /* equal outside leati_fork_hold */
} pair;

static void *change_both(void *user) {
    pair *p = user;
    while (!atomic_load(&p->done)) {
        leati_fork_hold();
        ++p->first;
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        ++p->second;
        leati_fork_release();
        atomic_fetch_add(&p->entered, 1);
    }
    return NULL;
}

static void a_fork_waits_for_the_others(void **state) {
    (void)state;
    pthread_t thread;
    pair p = {0};
    assert_int_equal(pthread_create(&thread, NULL, change_both, &p), 0);
    while (atomic_load(&p.entered) < 1) nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
    int torn = 0;
    for (int i = 0; i < 20; ++i) {
        pid_t child = fork();
        if (child == 0) _exit(p.first == p.second ? 0 : 1);
        torn += wait_for(child) != 0;
    }
    atomic_store(&p.done, true);
    pthread_join(thread, NULL);
    assert_int_equal(torn, 0);
}

/* A signal handler may fork at any point of its thread. */
static void a_fork_does_not_wait_for_its_own_thread(void **state) {
    (void)state;
    uint32_t depth = leati_fork_depth();
    alarm(ALARM_S);
    leati_fork_hold();
    pid_t child = fork();
    if (child == 0) {
        leati_fork_release();
        end_child(depth + 1);
    }
    leati_fork_release();
    assert_int_equal(wait_for(child), 0);
    pass_the_gate();
    alarm(0);
}

static volatile sig_atomic_t forks, in_child;

static void fork_here(int number) {
    (void)number;
    int kept = errno;
    pid_t child = fork();
    if (child == 0) {
        alarm(ALARM_S);
        in_child = 1;
    }
    forks += child > 0;
    errno = kept;
}

/* The child returns from the handler into the interrupted call and finishes it. */
static void end_child_of_handler(uint32_t depth) {
    pid_t grandchild = fork();
    if (grandchild == 0) end_child(depth + 1);
    if (wait_for(grandchild) != 0) _exit(2);
    end_child(depth);
}

/* A thread that only enters and leaves the gate, so that most signals interrupt it inside these functions. */
static void a_fork_may_interrupt_entering_and_leaving(void **state) {
    (void)state;
    enum { wanted = 200 };
    const struct itimerval often = {.it_interval = {.tv_usec = 1000}, .it_value = {.tv_usec = 1000}};
    const struct itimerval never = {.it_value = {0}};
    struct sigaction before, action = {.sa_handler = fork_here, .sa_flags = SA_RESTART};
    uint32_t depth = leati_fork_depth();
    alarm(2 * ALARM_S);
    assert_int_equal(sigaction(SIGVTALRM, &action, &before), 0);
    assert_int_equal(setitimer(ITIMER_VIRTUAL, &often, NULL), 0);
    while (forks < wanted && !in_child) {
        leati_fork_hold();
        leati_fork_release();
    }
    if (in_child) end_child_of_handler(depth + 1);
    setitimer(ITIMER_VIRTUAL, &never, NULL);
    sigaction(SIGVTALRM, &before, NULL);
    int bad = 0;
    for (int status = 0; wait(&status) > 0;) bad += status != 0;
    assert_int_equal(bad, 0);
    pass_the_gate();
    alarm(0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fork_calls_the_handlers),
        cmocka_unit_test(a_hosts_hooks_beside_them_are_harmless),
        cmocka_unit_test(a_hosts_hooks_in_their_place_suffice),
        cmocka_unit_test(a_fork_waits_for_the_others),
        cmocka_unit_test(a_fork_does_not_wait_for_its_own_thread),
        cmocka_unit_test(a_fork_may_interrupt_entering_and_leaving),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
