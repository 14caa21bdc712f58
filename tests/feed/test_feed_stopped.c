/* SPDX-License-Identifier: Apache-2.0 */
/* A worker process or a helper process that is stopped (SIGSTOP) delays training until its deadline, and closing only a
 * little.  Closing does not wait for a `get` that never returns either. */
#include "cmocka_all.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/os/process_stat.h"
#include "feed/procs.h"
#include "feed/source.h"
#include "leat/log.h"

enum { length = 12, queue = 3, deadline_ms = 600 };

static leat_feed_options with_processes(int workers, int64_t deadline) {
    leat_feed_options options = source_options((feed_mode){workers, true});
    options.faults.deadline_ms = deadline;
    options.max_queue_size = queue;
    options.passes = 1;
    return options;
}

static void record_clean(const leat_sequence *sequence, source_entry *out) {
    leat_feed_options options = source_options((feed_mode){0});
    options.passes = 1;
    leat_feed *feed = source_open(sequence, &options);
    leat_error end = {0};
    assert_int_equal(source_record(feed, out, length, &end), length);
    leat_feed_close(&feed);
}

/* Waits until the queue is full, so that all workers are idle. */
static void wait_until_idle(leat_feed *feed) {
    for (int tries = 0; tries < 30000 && leat_feed_ready_count(feed) < queue; ++tries) sleep_us(1000);
    assert_int_equal(leat_feed_ready_count(feed), queue);
}

static void stop(pid_t pid) {
    leati_process_stat stat = {0};
    assert_int_equal(kill(pid, SIGSTOP), 0);
    for (int tries = 0; tries < 30000 && stat.state != 'T'; ++tries) {
        assert_true(leati_process_stat_read(&stat, pid));
        if (stat.state != 'T') sleep_us(1000);
    }
    assert_int_equal(stat.state, 'T');
}

/* A process that has ended and waits for its parent counts as gone. */
static void expect_gone(pid_t pid) {
    leati_process_stat stat;
    for (int tries = 0; tries < 30000; ++tries, sleep_us(1000))
        if (!leati_process_stat_read(&stat, pid) || stat.state == 'Z') return;
    fail_msg("process %d still exists", (int)pid);
}

static void record_and_compare(leat_feed *feed, const source_entry *expected) {
    source_entry seen[length];
    leat_error end = {0};
    int64_t count = source_record(feed, seen, length, &end);
    if (count != length) fail_msg("%s", end.message);
    source_compare(seen, expected, length);
}

/* ---- Training ---- */

static void idle_worker_that_is_stopped_is_replaced(void **state) {
    (void)state;
    source s;
    source_init(&s, length, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    source_entry expected[length];
    record_clean(&sequence, expected);
    resources before = resources_now();
    leat_feed_options options = with_processes(1, deadline_ms);
    leat_feed *feed = source_open(&sequence, &options);
    pid_t worker[most_children];
    workers_of(helper_of(getpid()), 1, worker);
    wait_until_idle(feed);
    stop(worker[0]);
    record_and_compare(feed, expected);
    assert_true(leat_feed_stats_get(feed).timeouts >= 1);
    leat_feed_close(&feed);
    resources_check(before);
    source_fini(&s);
}

/* Without a deadline the other worker makes all batches: no wake-up is lost to the one that is stopped. */
static void the_other_worker_goes_on(void **state) {
    (void)state;
    source s;
    source_init(&s, length, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    source_entry expected[length];
    record_clean(&sequence, expected);
    for (int stopped = 0; stopped < 2; ++stopped) {
        leat_feed_options options = with_processes(2, 0);
        leat_feed *feed = source_open(&sequence, &options);
        pid_t workers[most_children];
        workers_of(helper_of(getpid()), 2, workers);
        wait_until_idle(feed);
        stop(workers[stopped]);
        record_and_compare(feed, expected);
        assert_int_equal(leat_feed_stats_get(feed).worker_deaths, 0);
        leat_feed_close(&feed);
        expect_gone(workers[stopped]);
    }
    source_fini(&s);
}

static void generator_that_is_stopped_ends_the_stream(void **state) {
    (void)state;
    source s;
    source_init(&s, length, 2, 3);
    leat_sequence sequence = source_generator(&s);
    leat_feed_options options = with_processes(1, deadline_ms);
    leat_feed *feed = source_open(&sequence, &options);
    pid_t worker[most_children];
    workers_of(helper_of(getpid()), 1, worker);
    wait_until_idle(feed);
    stop(worker[0]);
    source_entry seen[length];
    leat_error end = {0};
    assert_true(source_record(feed, seen, length, &end) < length);
    assert_int_equal(end.code, LEAT_ETIMEOUT);
    assert_non_null(strstr(end.message, "was stopped for more than 0.6 s and was killed"));
    leat_feed_close(&feed);
    source_fini(&s);
}

/* A log function that continues a stopped process. */
typedef struct observer {
    pid_t pid;
    int messages;
    char text[512];
} observer;

static void continue_process(void *user, leat_log_level level, const char *message) {
    observer *o = user;
    assert_int_equal(level, LEAT_LOG_WARNING);
    ++o->messages;
    strncpy(o->text, message, sizeof o->text - 1);
    kill(o->pid, SIGCONT);
}

/* Without a deadline, training waits for a stopped worker, and says so once. */
static void waiting_for_a_stopped_process_is_told(void **state) {
    (void)state;
    source s;
    source_init(&s, length, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    source_entry expected[length];
    record_clean(&sequence, expected);
    leat_feed_options options = with_processes(1, 0);
    leat_feed *feed = source_open(&sequence, &options);
    pid_t worker[most_children];
    char name[64];
    workers_of(helper_of(getpid()), 1, worker);
    observer seen = {.pid = worker[0]};
    leat_set_log(continue_process, &seen);
    wait_until_idle(feed);
    stop(worker[0]);
    record_and_compare(feed, expected);
    leat_set_log(NULL, NULL);
    assert_int_equal(seen.messages, 1);
    snprintf(name, sizeof name, "worker process %d is stopped", (int)worker[0]);
    assert_non_null(strstr(seen.text, name));
    assert_non_null(strstr(seen.text, "SIGCONT"));
    assert_non_null(strstr(seen.text, "--batch-timeout"));
    leat_feed_close(&feed);
    source_fini(&s);
}

static void helper_that_is_stopped_ends_the_stream(void **state) {
    (void)state;
    source s;
    source_init(&s, length, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    resources before = resources_now();
    leat_feed_options options = with_processes(1, deadline_ms);
    leat_feed *feed = source_open(&sequence, &options);
    pid_t worker[most_children], helper = helper_of(getpid());
    workers_of(helper, 1, worker);
    wait_until_idle(feed);
    stop(helper);
    stop(worker[0]);
    source_entry seen[length];
    leat_error end = {0};
    assert_true(source_record(feed, seen, length, &end) < length);
    assert_int_equal(end.code, LEAT_ETIMEOUT);
    assert_non_null(strstr(end.message, "helper process"));
    leat_feed_close(&feed);
    resources_check(before);
    expect_gone(worker[0]);
    source_fini(&s);
}

/* ---- Closing ---- */

/* The states of the processes at the close. */
typedef enum close_case {
    WORKER_IDLE_STOPPED,
    WORKER_STOPPED_IN_GET,
    WORKER_HANGS,
    HELPER_STOPPED,
    HELPER_AND_WORKERS_STOPPED,
    HELPER_AND_WORKERS_STOPPED_EARLY /* before the workers have asked for a signal when the helper dies */
} close_case;

static leat_status forget_death_of_helper(void *user, int worker, leat_error *err) {
    (void)user, (void)worker, (void)err;
    prctl(PR_SET_PDEATHSIG, 0);
    return LEAT_OK;
}

static void close_in(close_case which) {
    source s;
    source_init(&s, length, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    if (which == HELPER_AND_WORKERS_STOPPED_EARLY) sequence.worker_init = forget_death_of_helper;
    bool all_stopped = which == HELPER_AND_WORKERS_STOPPED || which == HELPER_AND_WORKERS_STOPPED_EARLY;
    resources before = resources_now();
    bool in_get = which == WORKER_STOPPED_IN_GET || which == WORKER_HANGS;
    atomic_store(&s.counts->pause, in_get);
    leat_feed_options options = with_processes(2, 0);
    leat_feed *feed = source_open(&sequence, &options);
    pid_t workers[most_children], helper = helper_of(getpid());
    workers_of(helper, 2, workers);
    if (in_get)
        wait_until(&s.counts->gets, 2);
    else
        wait_until_idle(feed);
    if (which == WORKER_IDLE_STOPPED || which == WORKER_STOPPED_IN_GET) stop(workers[0]);
    if (which == WORKER_STOPPED_IN_GET) atomic_store(&s.counts->pause, 0);
    for (int i = 0; all_stopped && i < 2; ++i) stop(workers[i]);
    if (which == HELPER_STOPPED || all_stopped) stop(helper);
    assert_int_equal(leat_feed_close(&feed), 0);
    resources_check(before);
    expect_gone(helper);
    for (int i = 0; i < 2; ++i) expect_gone(workers[i]);
    if (which == WORKER_IDLE_STOPPED || which == WORKER_STOPPED_IN_GET)
        assert_int_equal(atomic_load(&s.counts->finis), 1); /* the other worker ends as always */
    source_fini(&s);
}

#define CLOSING(name, which)                                                                                 \
    static void name(void **state) {                                                                         \
        (void)state;                                                                                         \
        close_in(which);                                                                                     \
    }
CLOSING(closing_with_an_idle_worker_stopped, WORKER_IDLE_STOPPED)
CLOSING(closing_with_a_worker_stopped_in_get, WORKER_STOPPED_IN_GET)
CLOSING(closing_with_a_worker_that_hangs, WORKER_HANGS)
CLOSING(closing_with_the_helper_stopped, HELPER_STOPPED)
CLOSING(closing_with_all_stopped, HELPER_AND_WORKERS_STOPPED)
CLOSING(closing_with_all_stopped_early, HELPER_AND_WORKERS_STOPPED_EARLY)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(idle_worker_that_is_stopped_is_replaced, end_children),
        cmocka_unit_test_teardown(the_other_worker_goes_on, end_children),
        cmocka_unit_test_teardown(generator_that_is_stopped_ends_the_stream, end_children),
        cmocka_unit_test_teardown(waiting_for_a_stopped_process_is_told, end_children),
        cmocka_unit_test_teardown(helper_that_is_stopped_ends_the_stream, end_children),
        cmocka_unit_test_teardown(closing_with_an_idle_worker_stopped, end_children),
        cmocka_unit_test_teardown(closing_with_a_worker_stopped_in_get, end_children),
        cmocka_unit_test_teardown(closing_with_a_worker_that_hangs, end_children),
        cmocka_unit_test_teardown(closing_with_the_helper_stopped, end_children),
        cmocka_unit_test_teardown(closing_with_all_stopped, end_children),
        cmocka_unit_test_teardown(closing_with_all_stopped_early, end_children),
    };
    return run_together(tests, sizeof tests / sizeof *tests);
}
