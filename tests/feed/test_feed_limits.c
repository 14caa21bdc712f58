/* SPDX-License-Identifier: Apache-2.0 */
/* The option `memory`; mappings, processes and threads that the system refuses; and signals that interrupt every
 * call. */
#define _GNU_SOURCE /* prlimit, syscall numbers */
#include "cmocka_all.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "feed/procs.h"
#include "feed/source.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

enum { no_filters = 77, unexpected = 100 };

static const feed_mode modes[] = {{0, false}, {2, false}, {2, true}};
static const feed_mode two_threads = {2, false}, two_processes = {2, true};

#define FOR_EACH_MODE(mode)                                                                                  \
    for (size_t m = 0; m < sizeof modes / sizeof *modes; ++m)                                                \
        for (feed_mode mode = modes[m], *once = &mode; once; once = NULL)

/* A source whose slots need a little more than 1 MiB: 64 * 4096 floats and 64 numbers. */
static void source_of_mebibytes(source *s) {
    source_init(s, 40, 64, 4096);
    s->borrowed = true; /* this test is not about filling the slots */
}

static void memory_says_how_many_slots(void **state) {
    (void)state;
    source s;
    source_of_mebibytes(&s);
    leat_sequence sequence = source_sequence(&s);
    static const size_t mebibyte = (size_t)1 << 20;
    for (size_t m = 1; m < sizeof modes / sizeof *modes; ++m) {
        for (size_t memory = 4 * mebibyte; memory <= 32 * mebibyte; memory *= 2) {
            leat_feed_options options = source_options(modes[m]);
            options.memory = memory;
            leat_feed *feed = source_open(&sequence, &options);
            leat_feed_stats stats = leat_feed_stats_get(feed);
            assert_true(stats.ring_bytes <= (int64_t)memory);
            int64_t slots = stats.max_queue_size + 1, slot = stats.ring_bytes / slots;
            assert_true(slot >= (int64_t)mebibyte);
            assert_true(stats.ring_bytes + slot + slot / 16 >
                        (int64_t)memory); /* one more slot would not fit */
            /* As many batches are made ahead as fit, and no more. */
            for (int tries = 0; tries < 30000 && leat_feed_ready_count(feed) < stats.max_queue_size; ++tries)
                sleep_us(1000);
            assert_int_equal(leat_feed_ready_count(feed), stats.max_queue_size);
            assert_int_equal(atomic_load(&s.counts->gets), stats.max_queue_size);
            atomic_store(&s.counts->gets, 0);
            leat_feed_close(&feed);
            atomic_store(&s.counts->gets, 0);
        }
    }
    source_fini(&s);
}

static void too_little_memory_is_an_error(void **state) {
    (void)state;
    source s;
    source_of_mebibytes(&s);
    leat_sequence sequence = source_sequence(&s);
    for (size_t m = 1; m < sizeof modes / sizeof *modes; ++m)
        for (size_t memory = 1; memory <= (size_t)2 << 20;
             memory *= 2) { /* one slot is in use, one batch is made ahead */
            leat_feed_options options = source_options(modes[m]);
            options.memory = memory;
            leat_feed *feed = NULL;
            leat_error err = {0};
            resources before = resources_now();
            assert_int_equal(leat_feed_open(&feed, &sequence, &options, &err), LEAT_EINVAL);
            char asked[32];
            snprintf(asked, sizeof asked, "%zu", memory);
            if (memory < 1024)
                assert_non_null(strstr(err.message, asked)); /* larger sizes may be given in KiB */
            assert_non_null(strstr(err.message, "memory"));
            resources_check(before);
        }
    source_fini(&s);
}

static int64_t minor_faults(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_minflt;
}

/* Pages are touched once, before the first pass: delivering and reading batches faults none in.  A kernel that samples
 * which pages are in use lets some of them fault again: the limit is half of the 4112 pages that are read. */
static void delivery_faults_no_pages_in(void **state) {
    (void)state;
    if (SANITIZED) skip_because("a sanitizer's shadow pages would be counted as well");
    source s;
    source_init(&s, 40, 64, 4096);
    leat_sequence sequence = source_sequence(&s);
    for (size_t m = 1; m < sizeof modes / sizeof *modes; ++m) {
        leat_feed_options options = source_options(modes[m]);
        options.max_queue_size = 7;
        leat_feed *feed = source_open(&sequence, &options);
        const leat_batch *batch = NULL;
        leat_error err = {0};
        assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_OK);
        leat_feed_release(feed);
        int64_t before = minor_faults();
        source_digest(feed, 16); /* twice through all slots */
        int64_t faults = minor_faults() - before;
        leat_feed_close(&feed);
        if (faults > 2056) fail_msg("%lld faults in 16 batches of 257 pages", (long long)faults);
    }
    source_fini(&s);
}

static leat_status telling_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    (void)user;
    (void)rng;
    (void)err;
    memset(batch->tensors[0].data, (int)index, leat_tensor_bytes(&batch->tensors[0]));
    int64_t *y = batch->tensors[1].data;
    for (int64_t i = 0; i < batch->size; ++i) y[i] = (int64_t)(uintptr_t)batch->tensors[0].data;
    return LEAT_OK;
}

/* The trainer reads a batch at the address that get has written to, also in another process: it is not copied. */
static void batches_are_read_where_they_were_written(void **state) {
    (void)state;
    source s;
    source_init(&s, 9, 8, 1000);
    leat_sequence sequence = source_sequence(&s);
    sequence.get = telling_get;
    FOR_EACH_MODE(mode) {
        leat_feed_options options = source_options(mode);
        leat_feed *feed = source_open(&sequence, &options);
        for (int i = 0; i < 40; ++i) {
            const leat_batch *batch = NULL;
            leat_error err = {0};
            assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_OK);
            int64_t written_at = ((const int64_t *)batch->tensors[1].data)[0];
            assert_int_equal(written_at, (int64_t)(uintptr_t)batch->tensors[0].data);
            leat_feed_release(feed);
        }
        leat_feed_close(&feed);
    }
    source_fini(&s);
}

/* Runs `body` in a child, which may lower its own limits.  Returns the exit status of the child. */
static int in_a_child(int (*body)(const leat_sequence *sequence, void *argument),
                      const leat_sequence *sequence, void *argument) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        _exit(body(sequence, argument));
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status)) fail_msg("ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

/* Opens a feed, takes 20 batches and closes the feed.  Returns the status, or `unexpected` if the stream is wrong or
 * something leaks. */
static int whole_life(const leat_sequence *sequence, feed_mode mode) {
    leat_feed_options options = source_options(mode);
    leat_feed *feed = NULL;
    leat_error err = {0};
    leat_status status = leat_feed_open(&feed, sequence, &options, &err);
    if ((status != LEAT_OK) != (feed == NULL)) return unexpected;
    for (int i = 0; i < 20 && status == LEAT_OK; ++i) {
        const leat_batch *batch = NULL;
        status = leat_feed_get(feed, &batch, &err);
        if (status == LEAT_OK && leat_feed_position_get(feed).index != i % 6) return unexpected;
        leat_feed_release(feed);
    }
    if (status != LEAT_OK && err.message[0] == '\0') return unexpected;
    if (leat_feed_close(&feed) != 0) return unexpected;
    pid_t left[most_children];
    return children_of(getpid(), left) == 0 ? (int)status : unexpected;
}

typedef struct denial {
    const char *name;
    unsigned number;
    int error, third_argument;
    feed_mode mode;
    int expected;
    bool old_kernel; /* MADV_POPULATE_WRITE (23) is denied, too, as before Linux 5.14 */
} denial;

static int denied_life(const leat_sequence *sequence, void *argument) {
    const denial *d = argument;
    if (d->old_kernel) deny(SYS_madvise, EINVAL, 23);
    deny(d->number, d->error, d->third_argument);
    return whole_life(sequence, d->mode);
}

static void refused_system_calls_are_told(void **state) {
    (void)state;
    denial denials[] = {
        {"mmap (threads)", SYS_mmap, ENOMEM, 3, two_threads, LEAT_ENOMEM, false},
        {"mmap (processes)", SYS_mmap, ENOMEM, 3, two_processes, LEAT_ENOMEM, false},
        {"mmap (in line)", SYS_mmap, ENOMEM, 3, {0, false}, LEAT_ENOMEM, false},
        {"fork", SYS_clone, EAGAIN, 0, two_processes, LEAT_EIO, false},
        {"threads", SYS_clone3, EAGAIN, 0, two_threads, LEAT_EIO, false},
        {"memfd_create, out of descriptors", SYS_memfd_create, ENFILE, 0, two_processes, LEAT_EIO, true},
        {"ftruncate, a full cgroup", SYS_ftruncate, ENOMEM, 0, two_processes, LEAT_ENOMEM, true},
#ifdef SYS_poll
        {"poll", SYS_poll, ENOMEM, 0, two_processes, LEAT_OK, false},
#else /* newer architectures have only this system call */
        {"poll", SYS_ppoll, ENOMEM, 0, two_processes, LEAT_OK, false},
#endif
        {"madvise", SYS_madvise, EINVAL, 0, two_processes, LEAT_OK, false},
        {"prctl (names)", SYS_prctl, EPERM, 0, two_threads, LEAT_OK, false},
        {"sched_getaffinity", SYS_sched_getaffinity, EPERM, 0, two_processes, LEAT_OK, false},
    };
    if (SANITIZED) skip_because("a sanitizer makes the same system calls");
    source s;
    source_init(&s, 6, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    for (size_t i = 0; i < sizeof denials / sizeof *denials; ++i) {
        int code = in_a_child(denied_life, &sequence, &denials[i]);
        if (code == no_filters) skip_because("no system call filters here");
        if (code != denials[i].expected)
            fail_msg("without %s: %d, expected %d", denials[i].name, code, denials[i].expected);
    }
    source_fini(&s);
}

/* Becomes a user without privileges, because RLIMIT_NPROC does not limit root.  No other process has this user. */
static bool become_nobody(void) {
    return getuid() != 0 || setresuid(54321, 54321, 54321) == 0;
}

static int life_without_processes(const leat_sequence *sequence, void *argument) {
    struct rlimit none = {0, 0};
    if (!become_nobody() || setrlimit(RLIMIT_NPROC, &none) != 0) return no_filters;
    return whole_life(sequence, *(feed_mode *)argument);
}

static void limit_of_processes_is_told(void **state) {
    (void)state;
    source s;
    source_init(&s, 6, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    for (size_t m = 0; m < sizeof modes / sizeof *modes; ++m) {
        feed_mode mode = modes[m];
        int code = in_a_child(life_without_processes, &sequence, &mode);
        if (code == no_filters) skip_because("this user cannot take on another one's limits");
        assert_int_equal(code, mode.workers ? LEAT_EIO : LEAT_OK);
    }
    source_fini(&s);
}

/* The helper cannot fork after a worker has died: get returns an error, and close leaks nothing. */
static int life_without_replacement(const leat_sequence *sequence, void *argument) {
    source *s = argument;
    if (!become_nobody()) return no_filters;
    leat_feed_options options = source_options(two_processes);
    leat_feed *feed = NULL;
    leat_error err = {0};
    if (leat_feed_open(&feed, sequence, &options, &err) != LEAT_OK) return unexpected;
    pid_t helper = helper_of(getpid()), workers[most_children];
    workers_of(helper, 2, workers);
    struct rlimit none = {0, 0};
    if (prlimit(helper, RLIMIT_NPROC, &none, NULL) != 0) return no_filters;
    s->counts->pause = 1;
    for (int i = 0; i < 2; ++i) kill(workers[i], SIGKILL);
    leat_status status = LEAT_OK;
    for (int i = 0; i < 50 && status == LEAT_OK; ++i) {
        const leat_batch *batch = NULL;
        status = leat_feed_get(feed, &batch, &err);
        leat_feed_release(feed);
    }
    bool told = strstr(err.message, "cannot start worker process") != NULL;
    leat_feed_close(&feed);
    pid_t left[most_children];
    return told && children_of(getpid(), left) == 0 ? (int)status : unexpected;
}

static void refused_replacement_is_told(void **state) {
    (void)state;
    source s;
    source_init(&s, 6, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    int code = in_a_child(life_without_replacement, &sequence, &s);
    if (code == no_filters) skip_because("this user cannot take on another one's limits");
    assert_int_equal(code, LEAT_EIO);
    source_fini(&s);
}

static int life_in_little_memory(const leat_sequence *sequence, void *argument) {
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long long pages = 0;
    if (!file || fscanf(file, "%llu", &pages) != 1) return unexpected;
    fclose(file);
    rlim_t now = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
    struct rlimit tight = {now + ((rlim_t)4 << 20), now + ((rlim_t)4 << 20)};
    if (setrlimit(RLIMIT_AS, &tight) != 0) return unexpected;
    return whole_life(sequence, *(feed_mode *)argument);
}

static void limit_of_memory_is_told(void **state) {
    (void)state;
    if (SANITIZED) skip_because("a sanitizer's own memory does not fit the limit");
    source s;
    source_of_mebibytes(&s); /* eleven slots of 1 MiB do not fit into 4 MiB */
    leat_sequence sequence = source_sequence(&s);
    for (size_t m = 1; m < sizeof modes / sizeof *modes; ++m) {
        feed_mode mode = modes[m];
        assert_int_equal(in_a_child(life_in_little_memory, &sequence, &mode), LEAT_ENOMEM);
    }
    source_fini(&s);
}

typedef struct file_limit {
    feed_mode mode;
    bool old_kernel; /* like `old_kernel` of a denial */
} file_limit;

static int life_with_small_files(const leat_sequence *sequence, void *argument) {
    const file_limit *limit = argument;
    struct rlimit small = {1 << 16, 1 << 16};
    if (limit->old_kernel) deny(SYS_madvise, EINVAL, 23);
    if (setrlimit(RLIMIT_FSIZE, &small) != 0) return unexpected;
    return whole_life(sequence, limit->mode);
}

/* RLIMIT_FSIZE limits files on a disk.  The ring is memory, and a program that exceeds the limit would die by
 * SIGXFSZ. */
static void limit_of_file_sizes_is_no_limit_of_the_ring(void **state) {
    (void)state;
    source s;
    source_init(&s, 6, 64, 4096);
    s.borrowed = true;
    leat_sequence sequence = source_sequence(&s);
    for (size_t m = 0; m < sizeof modes / sizeof *modes; ++m) {
        file_limit limit = {.mode = modes[m]};
        assert_int_equal(in_a_child(life_with_small_files, &sequence, &limit), LEAT_OK);
    }
    source_fini(&s);
}

static void limit_of_file_sizes_is_told_on_older_kernels(void **state) {
    (void)state;
    source s;
    source_init(&s, 6, 64, 4096);
    s.borrowed = true;
    leat_sequence sequence = source_sequence(&s);
    file_limit limit = {.mode = two_processes, .old_kernel = true};
    int code = in_a_child(life_with_small_files, &sequence, &limit);
    if (code == no_filters) skip_because("no system call filters here");
    assert_int_equal(code, LEAT_EIO);
    source_fini(&s);
}

static volatile sig_atomic_t interruptions;

static void on_alarm(int number) {
    (void)number;
    ++interruptions;
}

/* Sends a signal every 100 us; system calls are not restarted after it. */
static void storm(bool on) {
    static struct sigaction old;
    struct sigaction action = {.sa_handler = on_alarm};
    struct itimerval often = {.it_interval.tv_usec = 100, .it_value.tv_usec = 100}, never = {0};
    if (on) assert_int_equal(sigaction(SIGALRM, &action, &old), 0);
    assert_int_equal(setitimer(ITIMER_REAL, on ? &often : &never, NULL), 0);
    if (!on) assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
}

static void interrupted_calls_go_on(void **state) {
    (void)state;
    source s;
    source_init(&s, 7, 2, 3);
    leat_sequence sequence = source_sequence_with_hook(&s, false);
    source_state fresh = s.state;
    leat_feed_options plain = source_options(modes[0]);
    uint64_t expected = source_stream(&sequence, &plain, 60);
    s.delay_us = 3000; /* so slow that the trainer waits for most batches */
    FOR_EACH_MODE(mode) {
        s.state = fresh;
        atomic_store(&s.counts->hooks, 0);
        resources before = resources_now();
        interruptions = 0;
        storm(true);
        leat_feed_options options = source_options(mode);
        options.max_queue_size = 2;
        leat_feed *feed = source_open(&sequence, &options);
        uint64_t seen = source_digest(feed, 60);
        leat_feed_close(&feed);
        storm(false);
        assert_int_equal(seen, expected);
        assert_true(interruptions > 50);
        resources_check(before);
    }
    source_fini(&s);
}

/* The feed is closed while workers make batches and signals arrive. */
static void interrupted_close_leaves_nothing(void **state) {
    (void)state;
    source s;
    source_init(&s, 7, 2, 3);
    s.slow_us = 20000;
    leat_sequence sequence = source_sequence(&s);
    for (size_t m = 1; m < sizeof modes / sizeof *modes; ++m)
        for (int i = 0; i < 10; ++i) {
            resources before = resources_now();
            leat_feed_options options = source_options(modes[m]);
            atomic_store(&s.counts->gets, 0);
            leat_feed *feed = source_open(&sequence, &options);
            storm(true);
            wait_until(&s.counts->gets, 1);
            if (i % 2) leat_feed_stop(feed);
            assert_int_equal(leat_feed_close(&feed), 0);
            storm(false);
            resources_check(before);
        }
    source_fini(&s);
}

/* A signal handler calls leat_feed_stop while leat_feed_get waits. */
static leat_feed *to_stop;

static void stop_in_handler(int number) {
    (void)number;
    leat_feed_stop(to_stop);
}

static void handler_may_stop_a_feed(void **state) {
    (void)state;
    source s;
    source_init(&s, 7, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    for (size_t m = 1; m < sizeof modes / sizeof *modes; ++m) {
        resources before = resources_now();
        atomic_store(&s.counts->pause, 1);
        leat_feed_options options = source_options(modes[m]);
        to_stop = source_open(&sequence, &options);
        struct sigaction action = {.sa_handler = stop_in_handler}, old;
        assert_int_equal(sigaction(SIGALRM, &action, &old), 0);
        struct itimerval soon = {.it_value.tv_usec = 20000};
        assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
        const leat_batch *batch = NULL;
        leat_error err = {0};
        assert_int_equal(leat_feed_get(to_stop, &batch, &err), LEAT_ESTOPPED);
        assert_int_equal(sigaction(SIGALRM, &old, NULL), 0);
        atomic_store(&s.counts->pause, 0);
        leat_feed_close(&to_stop);
        resources_check(before);
    }
    source_fini(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_says_how_many_slots),
        cmocka_unit_test(too_little_memory_is_an_error),
        cmocka_unit_test(delivery_faults_no_pages_in),
        cmocka_unit_test(batches_are_read_where_they_were_written),
        cmocka_unit_test(refused_system_calls_are_told),
        cmocka_unit_test(limit_of_processes_is_told),
        cmocka_unit_test(refused_replacement_is_told),
        cmocka_unit_test(limit_of_memory_is_told),
        cmocka_unit_test(limit_of_file_sizes_is_no_limit_of_the_ring),
        cmocka_unit_test(limit_of_file_sizes_is_told_on_older_kernels),
        cmocka_unit_test(interrupted_calls_go_on),
        cmocka_unit_test(interrupted_close_leaves_nothing),
        cmocka_unit_test(handler_may_stop_a_feed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
