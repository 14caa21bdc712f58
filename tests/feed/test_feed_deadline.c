/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that hang: processes are killed and their batch is made again; threads are reported.  A batch that takes
 * long, a machine that is suspended and a group of processes that is stopped are no hangs. */
#include "cmocka_all.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os/clock.h"
#include "feed/workers/patience.h"
#include "feed/procs.h"
#include "feed/source.h"

enum { length = 8, most = 2 * length, deadline_ms = 600 };

static const feed_mode in_line = {0};

static leat_feed_options with_deadline(feed_mode mode, leat_bad_batch policy) {
    leat_feed_options options = source_options(mode);
    options.faults.deadline_ms = deadline_ms;
    options.faults.bad_batch = policy;
    options.passes = 2;
    return options;
}

static void record_clean(const leat_sequence *sequence, source_entry *out) {
    leat_feed_options options = source_options(in_line);
    options.passes = 2;
    leat_feed *feed = source_open(sequence, &options);
    leat_error end = {0};
    assert_int_equal(source_record(feed, out, most, &end), most);
    leat_feed_close(&feed);
}

static void hanging_process_is_killed_and_its_batch_made_again(void **state) {
    (void)state;
    source s;
    source_init(&s, length, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    source_entry expected[most], seen[most];
    record_clean(&sequence, expected);
    s.hang_at = 3;
    for (int workers = 1; workers <= 2; ++workers) {
        resources before = resources_now();
        memset(s.counts->gets_of, 0, sizeof s.counts->gets_of);
        atomic_store(&s.counts->hangs_left, 1);
        leat_feed_options options = with_deadline((feed_mode){workers, true}, LEAT_BAD_BATCH_FAIL);
        const int64_t start = leati_now_ns(); /* a worker may begin its batch before the feed is open */
        leat_feed *feed = source_open(&sequence, &options);
        leat_error end = {0};
        int64_t count = source_record(feed, seen, most, &end);
        if (count != most) fail_msg("%s", end.message);
        assert_true(leati_now_ns() - start >=
                    deadline_ms * INT64_C(1000000)); /* the batch is not given up earlier */
        source_compare(seen, expected, most);
        leat_feed_stats stats = leat_feed_stats_get(feed);
        assert_true(stats.timeouts >= 1); /* on a loaded machine a batch may be late a second time */
        assert_true(stats.worker_deaths >= stats.timeouts);
        assert_true(atomic_load(&s.counts->gets_of[3]) >= 3); /* it is made again in one of two passes */
        leat_feed_close(&feed);
        resources_check(before);
    }
    source_fini(&s);
}

static void batch_that_hangs_twice_is_bad(void **state) {
    (void)state;
    source s;
    source_init(&s, length, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    source_entry expected[most], seen[most];
    record_clean(&sequence, expected);
    memset(s.counts->gets_of, 0, sizeof s.counts->gets_of);
    s.hang_at = 3;
    atomic_store(&s.counts->hangs_left, 1000);
    leat_feed_options options = with_deadline((feed_mode){2, true}, LEAT_BAD_BATCH_FAIL);
    options.max_queue_size = 3; /* the batch of pass 1 is not begun before */
    leat_feed *feed = source_open(&sequence, &options);
    leat_error end = {0};
    assert_int_equal(source_record(feed, seen, most, &end), 3);
    source_compare(seen, expected, 3);
    assert_int_equal(end.code, LEAT_ETIMEOUT);
    assert_non_null(strstr(end.message, "batch 3 of pass 0: "));
    assert_non_null(strstr(end.message, "0.6 s"));
    assert_int_equal(atomic_load(&s.counts->gets_of[3]), 2); /* the batch is made again exactly once */
    assert_int_equal(leat_feed_close(&feed), 0);
    source_fini(&s);
}

static void batch_that_hangs_twice_is_skipped(void **state) {
    (void)state;
    source s;
    source_init(&s, length, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    source_entry expected[most], seen[most];
    record_clean(&sequence, expected);
    int64_t count = 0;
    for (int i = 0; i < most; ++i)
        if (expected[i].at.index != 3 || expected[i].at.pass == 1) expected[count++] = expected[i];
    memset(s.counts->gets_of, 0, sizeof s.counts->gets_of);
    s.hang_at = 3;
    atomic_store(&s.counts->hangs_left, 2); /* only in pass 0 */
    leat_feed_options options = with_deadline((feed_mode){2, true}, LEAT_BAD_BATCH_SKIP);
    options.max_queue_size = 3; /* pass 1 is not begun before */
    leat_feed *feed = source_open(&sequence, &options);
    leat_error end = {0};
    int64_t got = source_record(feed, seen, most, &end);
    if (end.code != LEAT_ENOTFOUND) fail_msg("%s", end.message);
    assert_int_equal(got, count);
    source_compare(seen, expected, count);
    leat_feed_stats stats = leat_feed_stats_get(feed);
    assert_int_equal(stats.skips, 1);
    assert_true(stats.timeouts >= 2);
    leat_feed_close(&feed);
    source_fini(&s);
}

/* Without a deadline the feed waits for a slow worker, and no batch is made twice. */
static void slow_worker_is_never_given_up(void **state) {
    (void)state;
    static const feed_mode modes[] = {{0, false}, {2, false}, {2, true}};
    for (size_t m = 0; m < 3; ++m) {
        source s;
        source_init(&s, 6, 2, 3);
        leat_sequence sequence = source_sequence(&s);
        leat_feed_options options = source_options(modes[m]);
        options.passes = 1;
        atomic_store(&s.counts->pause, modes[m].workers > 0);
        leat_feed *feed = source_open(&sequence, &options);
        if (modes[m].workers) wait_until(&s.counts->gets, 2);
        sleep_us(500000);
        atomic_store(&s.counts->pause, 0);
        source_digest(feed, 6);
        for (int i = 0; i < 6; ++i) assert_int_equal(atomic_load(&s.counts->gets_of[i]), 1);
        assert_int_equal(leat_feed_stats_get(feed).worker_deaths, 0);
        leat_feed_close(&feed);
        source_fini(&s);
    }
}

/* Each batch keeps the deadline, although all batches together take longer. */
static void deadline_is_per_batch(void **state) {
    (void)state;
    source s;
    source_init(&s, 12, 2, 3);
    s.slow_us = 100000;
    leat_sequence sequence = source_sequence(&s);
    leat_feed_options options = with_deadline((feed_mode){1, true}, LEAT_BAD_BATCH_FAIL);
    options.faults.deadline_ms = 1000;
    options.passes = 1;
    leat_feed *feed = source_open(&sequence, &options);
    source_digest(feed, 12);
    assert_int_equal(leat_feed_stats_get(feed).timeouts, 0);
    leat_feed_close(&feed);
    source_fini(&s);
}

/* A batch that is ready and waits for the trainer is not late, however long the trainer works. */
static void trainer_may_take_its_time(void **state) {
    (void)state;
    static const feed_mode modes[] = {{2, false}, {2, true}};
    for (size_t m = 0; m < 2; ++m) {
        source s;
        source_init(&s, 6, 2, 3);
        leat_sequence sequence = source_sequence(&s);
        leat_feed_options options = source_options(modes[m]);
        options.faults.deadline_ms = 300;
        options.passes = 1;
        leat_feed *feed = source_open(&sequence, &options);
        wait_until(&s.counts->gets, 6);
        sleep_us(500000);
        source_digest(feed, 6);
        assert_int_equal(leat_feed_stats_get(feed).timeouts, 0);
        leat_feed_close(&feed);
        source_fini(&s);
    }
}

static void stopped_worker_is_late(void **state) {
    (void)state;
    source s;
    source_init(&s, length, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    source_entry expected[most], seen[most];
    record_clean(&sequence, expected);
    leat_feed_options options = with_deadline((feed_mode){1, true}, LEAT_BAD_BATCH_FAIL);
    atomic_store(&s.counts->pause, 1);
    atomic_store(&s.counts->gets, 0);
    leat_feed *feed = source_open(&sequence, &options);
    pid_t worker[most_children];
    workers_of(helper_of(getpid()), 1, worker);
    wait_until(&s.counts->gets, 1); /* a worker is inside get */
    assert_int_equal(kill(worker[0], SIGSTOP), 0);
    atomic_store(&s.counts->pause, 0);
    leat_error end = {0};
    int64_t count = source_record(feed, seen, most, &end);
    if (count != most) fail_msg("%s", end.message);
    source_compare(seen, expected, most);
    assert_true(leat_feed_stats_get(feed).timeouts >= 1);
    leat_feed_close(&feed);
    source_fini(&s);
}

/* Forks a trainer in a new process group.  It exits with 0 if none of its four batches was late. */
static pid_t fork_trainer(const leat_sequence *sequence, int64_t milliseconds, bool processes) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) return pid;
    setpgid(0, 0);
    alarm(60);
    leat_feed_options options = source_options((feed_mode){2, processes});
    options.faults.deadline_ms = milliseconds;
    options.passes = 1;
    leat_feed *feed = NULL;
    leat_error err = {0};
    leat_status status = leat_feed_open(&feed, sequence, &options, &err);
    while (status == LEAT_OK) {
        const leat_batch *batch = NULL;
        status = leat_feed_get(feed, &batch, &err);
        leat_feed_release(feed);
    }
    leat_feed_stats stats = leat_feed_stats_get(feed);
    bool good = status == LEAT_ENOTFOUND && stats.batches == 4 && stats.timeouts == 0;
    leat_feed_close(&feed);
    _exit(good ? 0 : 1);
}

/* The times for which a trainer work, is stopped, and works again.  Their sum exceeds the deadline, so a watcher that
 * counted the pause would find the batches late. */
typedef struct standstill {
    bool processes;
    int64_t deadline_ms, before_ms, pause_ms, after_ms;
} standstill;

/* Stops a trainer whose two workers are inside get until they are released.  Returns true if a batch was late.
 * *awake_ns is at least the time for which the batches were being made while the trainer was not stopped. */
static bool stand_still(const standstill *still, int64_t *awake_ns) {
    source s;
    source_init(&s, 4, 2, 3);
    atomic_store(&s.counts->pause, 1);
    leat_sequence sequence = source_sequence(&s);
    int64_t begun = leati_now_ns();
    pid_t trainer = fork_trainer(&sequence, still->deadline_ms, still->processes);
    wait_until(&s.counts->gets, 2);
    sleep_us(still->before_ms * 1000);
    assert_int_equal(kill(-trainer, SIGSTOP), 0);
    int64_t stopped = leati_now_ns();
    sleep_us(still->pause_ms * 1000);
    int64_t continued = leati_now_ns();
    assert_int_equal(kill(-trainer, SIGCONT), 0);
    sleep_us(still->after_ms * 1000);
    atomic_store(&s.counts->pause, 0);
    int status = 0;
    assert_int_equal(waitpid(trainer, &status, 0), trainer);
    *awake_ns = stopped - begun + (leati_now_ns() - continued);
    assert_true(WIFEXITED(status));
    source_fini(&s);
    return WEXITSTATUS(status) != 0;
}

/* Time in which all stood still does not count.  On a loaded machine a batch may be late even without the pause; such a
 * trial proves nothing and is repeated. */
static void check_standstill(const standstill *still) {
    /* The part of a pause that counts: the planned sleep of the watcher, and LEATI_PAUSE_NS of its delay. */
    int64_t limit_ns = still->deadline_ms * 1000000 - LEATI_PATIENCE_TICK_NS - LEATI_PAUSE_NS;
    int64_t awake_ns = 0;
    int tries = 0;
    while (stand_still(still, &awake_ns)) {
        if (awake_ns < limit_ns)
            fail_msg("late after %.3f s, with a deadline of %.3f s", (double)awake_ns / 1e9,
                     (double)still->deadline_ms / 1e3);
        if (++tries == 10) skip_because("the machine is too busy for a deadline of one second");
    }
}

static void long_pause_of_threads_does_not_count(void **state) {
    (void)state;
    check_standstill(&(standstill){false, 1000, 0, 2000, 250});
}

static void long_pause_of_processes_does_not_count(void **state) {
    (void)state;
    check_standstill(&(standstill){true, 1000, 0, 2000, 250});
}

static void short_pause_of_threads_does_not_count(void **state) {
    (void)state;
    check_standstill(&(standstill){false, 1000, 250, 750, 250});
}

static void short_pause_of_processes_does_not_count(void **state) {
    (void)state;
    check_standstill(&(standstill){true, 1000, 250, 750, 250});
}

static int threads_now(void) {
    return resources_now().threads;
}

static void hanging_threads_are_told_of(void **state) {
    (void)state;
    for (int hanging = 1; hanging <= 2; ++hanging) {
        resources before = resources_now();
        source s;
        source_init(&s, length, 2, 3);
        leat_sequence sequence = source_sequence(&s);
        if (hanging == 2)
            atomic_store(&s.counts->pause, 1); /* all workers wait in get */
        else
            s.hang_at = 3;
        atomic_store(&s.counts->hangs_left, 1);
        leat_feed_options options = with_deadline((feed_mode){2, false}, LEAT_BAD_BATCH_SKIP);
        leat_feed *feed = source_open(&sequence, &options);
        source_entry seen[most];
        leat_error end = {0};
        int64_t count = source_record(feed, seen, most, &end);
        assert_int_equal(count, hanging == 2 ? 0 : 3);
        assert_int_equal(end.code, LEAT_ETIMEOUT);
        assert_non_null(strstr(end.message, hanging == 2 ? "batch 0 of pass 0: " : "batch 3 of pass 0: "));
        assert_non_null(strstr(end.message, "thread"));
        const leat_batch *batch = NULL;
        assert_int_equal(leat_feed_get(feed, &batch, &end), LEAT_ETIMEOUT);
        int left = leat_feed_close(&feed);
        assert_null(feed);
        assert_int_equal(left, hanging);
        assert_int_equal(threads_now(), before.threads + hanging);
        assert_int_equal(resources_now().mappings >= before.mappings, 1);
        atomic_store(&s.counts->released, 1);
        atomic_store(&s.counts->pause, 0);
        wait_until(&s.counts->finis, 2); /* worker_fini tells the program that the worker has ended */
        for (int tries = 0; tries < 30000 && threads_now() > before.threads; ++tries) sleep_us(1000);
        resources_check(before); /* the last thread has freed everything */
        source_fini(&s);
    }
}

/* A late thread that returns before the feed is closed leaks nothing. */
static void late_thread_that_returns_is_reclaimed(void **state) {
    (void)state;
    resources before = resources_now();
    source s;
    source_init(&s, length, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    s.hang_at = 3;
    atomic_store(&s.counts->hangs_left, 1);
    leat_feed_options options = with_deadline((feed_mode){2, false}, LEAT_BAD_BATCH_FAIL);
    leat_feed *feed = source_open(&sequence, &options);
    source_entry seen[most];
    leat_error end = {0};
    assert_int_equal(source_record(feed, seen, most, &end), 3);
    assert_int_equal(end.code, LEAT_ETIMEOUT);
    atomic_store(&s.counts->released, 1);
    for (int tries = 0; tries < 30000 && atomic_load(&s.counts->hanging) > 0; ++tries) sleep_us(1000);
    sleep_us(20000);
    assert_int_equal(leat_feed_close(&feed), 0);
    resources_check(before);
    source_fini(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(hanging_process_is_killed_and_its_batch_made_again, end_children),
        cmocka_unit_test_teardown(batch_that_hangs_twice_is_bad, end_children),
        cmocka_unit_test_teardown(batch_that_hangs_twice_is_skipped, end_children),
        cmocka_unit_test_teardown(slow_worker_is_never_given_up, end_children),
        cmocka_unit_test_teardown(deadline_is_per_batch, end_children),
        cmocka_unit_test_teardown(trainer_may_take_its_time, end_children),
        cmocka_unit_test_teardown(stopped_worker_is_late, end_children),
        cmocka_unit_test_teardown(long_pause_of_threads_does_not_count, end_children),
        cmocka_unit_test_teardown(long_pause_of_processes_does_not_count, end_children),
        cmocka_unit_test_teardown(short_pause_of_threads_does_not_count, end_children),
        cmocka_unit_test_teardown(short_pause_of_processes_does_not_count, end_children),
        cmocka_unit_test_teardown(hanging_threads_are_told_of, end_children),
        cmocka_unit_test_teardown(late_thread_that_returns_is_reclaimed, end_children),
    };
    return run_together(tests, sizeof tests / sizeof *tests);
}
