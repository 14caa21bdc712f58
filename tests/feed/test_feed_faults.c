/* SPDX-License-Identifier: Apache-2.0 */
/* Processes die, stop, and get signals: the stream does not change, or ends with an error, and nothing leaks. */
#define _GNU_SOURCE /* syscall numbers */
#include "cmocka_all.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "feed/procs.h"
#include "feed/source.h"

static const feed_mode two_processes = {2, true};
static const feed_mode in_line = {0, false};

static uint64_t expected_stream(const leat_sequence *sequence, int64_t batches) {
    leat_feed_options plain = source_options(in_line);
    plain.shuffle = LEAT_SHUFFLE_BATCHES;
    return source_stream(sequence, &plain, batches);
}

static void processes_have_names(void **state) {
    (void)state;
    source s;
    source_init(&s, 5, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    leat_feed_options options = source_options(two_processes);
    leat_feed *feed = source_open(&sequence, &options);
    pid_t workers[most_children];
    workers_of(helper_of(getpid()), 2, workers);
    for (int i = 0; i < 2; ++i) {
        char name[32], expected[32];
        snprintf(expected, sizeof expected, "leat-worker/%d", i);
        for (int tries = 0; tries < 30000;
             ++tries, sleep_us(1000)) { /* until the worker has reached this point */
            name_of(workers[i], name, sizeof name);
            if (strcmp(name, expected) == 0) break;
        }
        assert_string_equal(name, expected);
    }
    leat_feed_close(&feed);
    source_fini(&s);
}

typedef struct killer {
    source *s;
    _Atomic int stop, kills;
    int hit;
} killer;

static void *kill_workers(void *argument) {
    killer *k = argument;
    uint64_t random = 12345;
    int64_t gets = 0;
    while (!atomic_load(&k->stop)) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        sleep_us((int64_t)(random >> 33) % 4000);
        /* Three deaths on one batch would end the stream.  So the next kill waits until the batch of the last victim
         * was delivered, that is, until more batches were begun than the ring has slots. */
        if (atomic_load(&k->s->counts->gets) < gets + 12) continue;
        pid_t pid = (pid_t)atomic_load(&k->s->counts->last_pid);
        char name[32];
        if (pid > 0) name_of(pid, name, sizeof name);
        if (pid > 0 && strncmp(name, "leat-worker/", 12) == 0 && kill(pid, k->hit) == 0)
            atomic_fetch_add(&k->kills, 1);
        gets = atomic_load(&k->s->counts->gets);
    }
    return NULL;
}

static void killed_workers_change_no_byte(void **state) {
    (void)state;
    static const int64_t batches = 700;
    static source s; /* static, because the thread still reads it if this test fails and returns */
    static killer k;
    source_init(&s, 37, 8, 100);
    leat_sequence sequence = source_sequence_with_hook(&s, true);
    source_state fresh = s.state;
    uint64_t expected = expected_stream(&sequence, batches);
    s.delay_us = 1000;
    for (int workers = 1; workers <= 4; workers += 3) {
        s.state = fresh;
        atomic_store(&s.counts->hooks, 0);
        atomic_store(&s.counts->last_pid, 0);
        leat_feed_options options = source_options((feed_mode){workers, true});
        options.shuffle = LEAT_SHUFFLE_BATCHES;
        leat_feed *feed = source_open(&sequence, &options);
        k = (killer){.s = &s, .hit = SIGKILL};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, kill_workers, &k), 0);
        uint64_t seen = source_digest(feed, batches);
        atomic_store(&k.stop, 1);
        pthread_join(thread, NULL);
        assert_int_equal(seen, expected);
        assert_true(atomic_load(&k.kills) >
                    0); /* the number depends on the machine; storm.c counts the kills */
        assert_true(leat_feed_stats_get(feed).worker_deaths > 0);
        assert_int_equal(atomic_load(&s.counts->hook_overtaken), 0);
        leat_feed_close(&feed);
    }
    source_fini(&s);
}

static void any_end_inside_get_is_made_good(void **state) {
    (void)state;
    static const int ends[] = {SIGKILL, SIGSEGV, SIGBUS, SIGABRT, SIGTERM, 0};
    source s;
    source_init(&s, 6, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    uint64_t expected = expected_stream(&sequence, 14);
    s.kill_at = 3;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; ++i) {
        s.kill_signal = ends[i];
        atomic_store(&s.counts->kills_left, 2);
        leat_feed_options options = source_options(two_processes);
        options.shuffle = LEAT_SHUFFLE_BATCHES;
        leat_feed *feed = source_open(&sequence, &options);
        assert_int_equal(source_digest(feed, 14), expected);
        assert_int_equal(leat_feed_stats_get(feed).worker_deaths, 2);
        leat_feed_close(&feed);
    }
    source_fini(&s);
}

static void third_death_on_a_batch_is_an_error(void **state) {
    (void)state;
    static const struct {
        int signal;
        const char *part;
    } ends[] = {{SIGKILL, "killed by signal 9 (SIGKILL: if nobody sent it, the kernel's OOM killer"},
                {SIGSEGV, "killed by signal 11 (SIGSEGV: a bug in get"},
                {SIGBUS, "killed by signal 7 (SIGBUS: a lack of memory"},
                {0, "exited with status 0: get must return"}};
    source s;
    source_init(&s, 6, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    s.kill_at = 3;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; ++i) {
        resources before = resources_now();
        s.kill_signal = ends[i].signal;
        atomic_store(&s.counts->kills_left, 100);
        leat_feed_options options = source_options(two_processes);
        leat_feed *feed = source_open(&sequence, &options);
        const leat_batch *batch = NULL;
        leat_error err = {0};
        for (int b = 0; b < 3; ++b) {
            assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_OK);
            leat_feed_release(feed);
        }
        assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_EWORKER);
        const char *expected = "batch 3 of pass 0: 3 worker processes died while making it; the last ";
        if (strncmp(err.message, expected, strlen(expected)) != 0 || !strstr(err.message, ends[i].part))
            fail_msg("%s", err.message);
        leat_feed_close(&feed);
        resources_check(before);
    }
    source_fini(&s);
}

static leat_status crash(void *user, int worker, leat_error *err) {
    (void)user;
    (void)worker;
    (void)err;
    abort();
}

static void worker_that_never_starts_is_an_error(void **state) {
    (void)state;
    source s;
    source_init(&s, 6, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    sequence.worker_init = crash;
    resources before = resources_now();
    leat_feed_options options = source_options(two_processes);
    leat_feed *feed = source_open(&sequence, &options);
    const leat_batch *batch = NULL;
    leat_error err = {0};
    assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_EWORKER);
    assert_non_null(
        strstr(err.message, "died 10 times before its first batch; the last time it was killed by signal 6"));
    leat_feed_close(&feed);
    resources_check(before);
    source_fini(&s);
}

static void dead_helper_is_an_error(void **state) {
    (void)state;
    source s;
    source_init(&s, 6, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    resources before = resources_now();
    leat_feed_options options = source_options(two_processes);
    atomic_store(&s.counts->pause, 1);
    leat_feed *feed = source_open(&sequence, &options);
    pid_t helper = helper_of(getpid()), workers[most_children];
    workers_of(helper, 2, workers);
    assert_int_equal(kill(helper, SIGKILL), 0);
    const leat_batch *batch = NULL;
    leat_error err = {0};
    assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_EWORKER);
    assert_non_null(strstr(err.message, "was killed by signal 9"));
    leat_feed_close(&feed);
    resources_check(before);
    for (int i = 0; i < 2; ++i) assert_int_not_equal(kill(workers[i], 0), 0);
    source_fini(&s);
}

/* Forks a trainer in a new process group, which takes batches for ever, and waits until it has taken some. */
static pid_t fork_trainer(const leat_sequence *sequence, void (*on_signal)(int)) {
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    close(ready[pid > 0]);
    if (pid > 0) {
        ssize_t count = read(ready[0], &byte, 1); /* 0 if the trainer has ended */
        close(ready[0]);
        assert_int_equal(count, 1);
        return pid;
    }
    setpgid(0, 0);
    for (int number = 1; number < 16; ++number)
        if (number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT)
            signal(number, on_signal);
    leat_feed_options options = source_options(two_processes);
    leat_feed *feed = NULL;
    leat_error err = {0};
    if (leat_feed_open(&feed, sequence, &options, &err) != LEAT_OK) _exit(3);
    for (int i = 0;; ++i) {
        const leat_batch *batch = NULL;
        if (leat_feed_get(feed, &batch, &err) != LEAT_OK) _exit(4);
        leat_feed_release(feed);
        if (i == 10 && write(ready[1], "x", 1) != 1) _exit(5);
        if (leat_feed_stats_get(feed).worker_deaths) _exit(6);
    }
}

static void dead_trainer_leaves_no_orphan(void **state) {
    (void)state;
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* this process adopts orphans, so that it can wait for them */
    source s;
    source_init(&s, 6, 2, 3);
    s.delay_us = 500;
    leat_sequence sequence = source_sequence(&s);
    resources before = resources_now();
    for (int paused = 0; paused < 2; ++paused) {
        pid_t trainer = fork_trainer(&sequence, SIG_DFL);
        pid_t helper = helper_of(trainer), workers[most_children];
        workers_of(helper, 2, workers);
        atomic_store(&s.counts->pause,
                     paused); /* workers wait inside get, where they do not look at the ring */
        sleep_us(5000);
        assert_int_equal(kill(trainer, SIGKILL), 0);
        int reaped = 0;
        while (reaped < 4 && waitpid(-1, NULL, 0) > 0)
            ++reaped; /* the trainer, the helper, and the workers that the helper has not reaped */
        for (int i = 0; i < 2; ++i) assert_int_not_equal(kill(workers[i], 0), 0);
        assert_int_not_equal(kill(helper, 0), 0);
        atomic_store(&s.counts->pause, 0);
    }
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    resources_check(before);
    source_fini(&s);
}

static void handle(int number) {
    (void)number;
}

static void hit_the_group_of_a_trainer(void (*on_signal)(int)) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    source s;
    source_init(&s, 6, 2, 3);
    s.delay_us = 500;
    leat_sequence sequence = source_sequence(&s);
    pid_t trainer = fork_trainer(&sequence, on_signal);
    pid_t helper = helper_of(trainer), before[most_children], after[most_children];
    workers_of(helper, 2, before);
    for (int i = 0; i < 4; ++i) assert_int_equal(kill(-trainer, signals[i]), 0);
    sleep_us(100000);
    wait_until(&s.counts->gets, atomic_load(&s.counts->gets) + 100);
    workers_of(helper, 2, after);
    assert_memory_equal(after, before, 2 * sizeof *after);
    assert_int_equal(kill(trainer, SIGKILL), 0);
    int status = 0;
    assert_int_equal(waitpid(trainer, &status, 0), trainer);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    source_fini(&s);
}

static void signals_to_the_group_are_the_trainers_business(void **state) {
    (void)state;
    hit_the_group_of_a_trainer(SIG_IGN);
    hit_the_group_of_a_trainer(handle);
}

static void stopped_processes_go_on(void **state) {
    (void)state;
    source s;
    source_init(&s, 6, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    uint64_t expected = expected_stream(&sequence, 50);
    leat_feed_options options = source_options(two_processes);
    options.shuffle = LEAT_SHUFFLE_BATCHES;
    options.max_queue_size = 2;
    leat_feed *feed = source_open(&sequence, &options);
    pid_t helper = helper_of(getpid()), workers[most_children];
    workers_of(helper, 2, workers);
    if (fork() == 0) {
        kill(helper, SIGSTOP);
        for (int i = 0; i < 2; ++i) kill(workers[i], SIGSTOP);
        sleep_us(200000);
        for (int i = 0; i < 2; ++i) kill(workers[i], SIGCONT);
        kill(helper, SIGCONT);
        _exit(0);
    }
    sleep_us(20000);
    assert_int_equal(source_digest(feed, 50), expected);
    assert_int_equal(leat_feed_stats_get(feed).worker_deaths, 0);
    leat_feed_close(&feed);
    wait(NULL);
    source_fini(&s);
}

typedef struct opened {
    const leat_sequence *sequence;
    leat_feed *feed;
} opened;

static void *open_in_thread(void *argument) {
    opened *o = argument;
    leat_feed_options options = source_options(two_processes);
    leat_error err = {0};
    if (leat_feed_open(&o->feed, o->sequence, &options, &err) != LEAT_OK) o->feed = NULL;
    return NULL;
}

/* For the kernel, the "death of the parent" is the death of the thread that forked. */
static void thread_that_opened_may_end(void **state) {
    (void)state;
    source s;
    source_init(&s, 6, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    opened o = {.sequence = &sequence};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, open_in_thread, &o), 0);
    pthread_join(thread, NULL);
    assert_non_null(o.feed);
    sleep_us(50000);
    source_digest(o.feed, 30);
    assert_int_equal(leat_feed_stats_get(o.feed).worker_deaths, 0);
    leat_feed_close(&o.feed);
    source_fini(&s);
}

static void *allocate_for_ever(void *stop) {
    volatile size_t size = 1;
    while (!atomic_load((_Atomic int *)stop)) {
        void *memory = malloc(size = size * 7 % 5003 + 1);
        free(memory);
    }
    return NULL;
}

static leat_status allocating_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch,
                                  leat_error *err) {
    (void)rng;
    (void)err;
    source *s = user;
    char *text = malloc((size_t)index * 100 + 100);
    if (!text) return LEAT_ENOMEM;
    snprintf(text, 100, "%lld %s", (long long)index, "x");
    memset(batch->tensors[0].data, text[0], (size_t)(s->batch_size * s->width) * sizeof(float));
    for (int64_t i = 0; i < batch->size; ++i) ((int64_t *)batch->tensors[1].data)[i] = index;
    free(text);
    return LEAT_OK;
}

static void fork_beside_allocating_threads_does_not_hang(void **state) {
    (void)state;
#if defined(__SANITIZE_ADDRESS__) /* as in tests/train/test_fork.c: the worker's malloc waits for a lock */
    LEAT_SKIP("GCC 12's address sanitizer does not unlock its allocator in the child of a fork");
#endif
    source s;
    source_init(&s, 6, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    sequence.get = allocating_get;
    _Atomic int stop = 0;
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_for_ever, &stop), 0);
    for (int i = 0; i < 40; ++i) {
        leat_feed_options options = source_options(two_processes);
        source_stream(&sequence, &options, 12);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    source_fini(&s);
}

static void lack_of_descriptors_is_an_error(void **state) {
    (void)state;
    source s;
    source_init(&s, 6, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    resources before = resources_now();
    struct rlimit old, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    leat_status status = LEAT_EIO;
    int failures = 0;
    for (rlim_t limit = 0; status != LEAT_OK && limit < 100; ++limit) {
        few = (struct rlimit){.rlim_cur = limit, .rlim_max = old.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        leat_feed_options options = source_options(two_processes);
        leat_feed *feed = NULL;
        leat_error err = {0};
        status = leat_feed_open(&feed, &sequence, &options, &err);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
        if (status == LEAT_OK)
            source_digest(feed, 20);
        else
            assert_int_equal(status, LEAT_EIO);
        failures += status != LEAT_OK;
        leat_feed_close(&feed);
        resources_check(before);
    }
    assert_int_equal(status, LEAT_OK);
    assert_true(failures >= 2); /* at least the limits 0 and 1 are too low */
    source_fini(&s);
}

static void child_of_the_trainer_may_close_its_copy(void **state) {
    (void)state;
    source s;
    source_init(&s, 6, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    for (int m = 0; m < 3; ++m) {
        leat_feed_options options = source_options((feed_mode){m, m == 2});
        leat_feed *feed = source_open(&sequence, &options);
        pid_t child = fork();
        if (child == 0) {
            leat_feed_close(&feed);
            _exit(feed == NULL ? 7 : 1);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
        source_digest(feed, 20);
        leat_feed_close(&feed);
    }
    source_fini(&s);
}

/* Runs in a child of the test: delivers the stream while a worker dies. */
static void run_denied(source *s, const leat_sequence *sequence, uint64_t expected) {
    s->kill_at = 3;
    s->kill_signal = SIGKILL;
    atomic_store(&s->counts->kills_left, 2);
    leat_feed_options options = source_options(two_processes);
    options.shuffle = LEAT_SHUFFLE_BATCHES;
    leat_feed *feed = NULL;
    leat_error err = {0};
    leat_status status = leat_feed_open(&feed, sequence, &options, &err);
    if (status != LEAT_OK) _exit((int)status);
    uint64_t seen = source_digest(feed, 14);
    bool good = seen == expected && leat_feed_stats_get(feed).worker_deaths == 2;
    leat_feed_close(&feed);
    pid_t left[most_children];
    _exit(good && children_of(getpid(), left) == 0 ? 0 : 100);
}

static void older_kernels_and_sandboxes_are_survived_or_told(void **state) {
    (void)state;
    static const struct {
        const char *name;
        unsigned number;
        int error, third_argument, expected;
        bool old_kernel; /* MADV_POPULATE_WRITE (23) is denied, too, as before Linux 5.14 */
    } denied[] = {{"pidfd_open", SYS_pidfd_open, ENOSYS, 0, 0, false},
                  {"madvise(MADV_POPULATE_WRITE)", SYS_madvise, EINVAL, 23, 0, false},
                  {"memfd_create", SYS_memfd_create, EPERM, 0, 0, false},
                  {"memfd_create", SYS_memfd_create, EPERM, 0, LEAT_EIO, true},
                  {"fallocate", SYS_fallocate, ENOSPC, 0, LEAT_ENOMEM, true},
                  {"eventfd2", SYS_eventfd2, EMFILE, 0, LEAT_EIO, false}};
    source s;
    source_init(&s, 6, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    uint64_t expected = expected_stream(&sequence, 14);
    for (size_t i = 0; i < sizeof denied / sizeof *denied; ++i) {
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            if (denied[i].old_kernel) deny(SYS_madvise, EINVAL, 23);
            deny(denied[i].number, denied[i].error, denied[i].third_argument);
            run_denied(&s, &sequence, expected);
        }
        int status = 0;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77) skip_because("no system call filters here");
        if (!WIFEXITED(status) || WEXITSTATUS(status) != denied[i].expected)
            fail_msg("without %s: status %x", denied[i].name, (unsigned)status);
    }
    source_fini(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(processes_have_names, end_children),
        cmocka_unit_test_teardown(killed_workers_change_no_byte, end_children),
        cmocka_unit_test_teardown(any_end_inside_get_is_made_good, end_children),
        cmocka_unit_test_teardown(third_death_on_a_batch_is_an_error, end_children),
        cmocka_unit_test_teardown(worker_that_never_starts_is_an_error, end_children),
        cmocka_unit_test_teardown(dead_helper_is_an_error, end_children),
        cmocka_unit_test_teardown(dead_trainer_leaves_no_orphan, end_children),
        cmocka_unit_test_teardown(signals_to_the_group_are_the_trainers_business, end_children),
        cmocka_unit_test_teardown(stopped_processes_go_on, end_children),
        cmocka_unit_test_teardown(thread_that_opened_may_end, end_children),
        cmocka_unit_test_teardown(fork_beside_allocating_threads_does_not_hang, end_children),
        cmocka_unit_test_teardown(lack_of_descriptors_is_an_error, end_children),
        cmocka_unit_test_teardown(older_kernels_and_sandboxes_are_survived_or_told, end_children),
        cmocka_unit_test_teardown(child_of_the_trainer_may_close_its_copy, end_children),
    };
    alarm(240); /* ends the test if a fork hangs */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
