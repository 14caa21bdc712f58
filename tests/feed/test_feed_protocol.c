/* SPDX-License-Identifier: Apache-2.0 */
/* Regression tests for defects of the protocol that its model (tests/feed/model) or reading the code has found. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "leat/feed.h"

static struct rlimit descriptors; /* the limit before the test */

/* Shared with the workers: counts of calls, and faults to happen in them. */
typedef struct shared_words {
    _Atomic int calls;
    _Atomic int pid;        /* process whose call hangs */
    _Atomic int kills_left; /* number of processes that will end in a call */
} shared_words;

static shared_words *share_words(void) {
    shared_words *words =
        mmap(NULL, sizeof *words, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(words, MAP_FAILED);
    return words;
}

static leat_status end_process(shared_words *words) {
    if (atomic_fetch_sub(&words->kills_left, 1) > 0) kill(getpid(), SIGKILL);
    return LEAT_OK;
}

static leat_status hang(shared_words *words) {
    atomic_fetch_add(&words->calls, 1);
    atomic_store(&words->pid, (int)getpid());
    for (;;) pause();
    return LEAT_OK;
}

static leat_status next_or_die(void *user, leat_rng *rng, leat_batch *batch, leat_error *err) {
    shared_words *words = user;
    (void)rng;
    (void)batch;
    (void)err;
    return atomic_fetch_add(&words->calls, 1) >= 1 ? end_process(words) : LEAT_OK;
}

static leat_status next_or_hang(void *user, leat_rng *rng, leat_batch *batch, leat_error *err) {
    (void)rng;
    (void)batch;
    (void)err;
    return hang(user);
}

static int64_t four(void *user) {
    (void)user;
    return 4;
}

static leat_status get_index(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    (void)user;
    (void)rng;
    (void)err;
    *(float *)batch->tensors[0].data = (float)index;
    return LEAT_OK;
}

static leat_status get_or_die(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    if (index == 1 && atomic_load(&((shared_words *)user)->pid)) return end_process(user);
    return get_index(user, index, rng, batch, err);
}

static leat_status get_or_hang(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    (void)index;
    (void)rng;
    (void)batch;
    (void)err;
    return hang(user);
}

static leat_sequence numbers(leat_status (*get)(void *, int64_t, leat_rng *, leat_batch *, leat_error *),
                             shared_words *words) {
    leat_sequence sequence = leat_sequence_default();
    assert_int_equal(leat_batch_spec_add(&sequence.spec, LEAT_PART_INPUT, "x", LEAT_F32, 0, NULL, NULL),
                     LEAT_OK);
    sequence.spec.batch_size = 1;
    sequence.user = words;
    sequence.get = get;
    if (get) sequence.length = four;
    return sequence;
}

static leat_sequence generator_of(leat_status (*next)(void *, leat_rng *, leat_batch *, leat_error *),
                                  shared_words *words) {
    leat_sequence sequence = numbers(NULL, words);
    sequence.next = next;
    return sequence;
}

static leat_feed_options one_process(void) {
    leat_feed_options options = leat_feed_options_default();
    options.use_multiprocessing = true;
    options.passes = 1;
    return options;
}

static void open_two(leat_feed **feeds, const leat_sequence *first, const leat_sequence *second,
                     const leat_feed_options *options) {
    leat_feed_config plans[2] = {{.sequence = first, .options = options},
                                 {.sequence = second, .options = options}};
    leat_error err = {0};
    assert_int_equal(leat_feed_open_together(feeds, plans, 2, &err), LEAT_OK);
}

static void take(leat_feed *feed, int expected) {
    const leat_batch *batch = NULL;
    leat_error err = {0};
    assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_OK);
    assert_int_equal((int)*(const float *)batch->tensors[0].data, expected);
    leat_feed_release(feed);
}

/* The worker that replaces a generator's dead worker serves only the other feeds.  The defect: it found a batch of the
 * generator claimed by its number and called its own copy of the generator, although that feed had failed. */
static void generator_is_not_called_by_a_replacement(void **state) {
    (void)state;
    shared_words *words = share_words();
    atomic_store(&words->kills_left, 100);
    leat_sequence other = numbers(get_index, words), generator = generator_of(next_or_die, words);
    leat_feed_options options = one_process();
    leat_feed *feeds[2] = {NULL, NULL};
    open_two(feeds, &other, &generator, &options);
    for (int i = 0; i < 4; ++i) take(feeds[0], i);
    const leat_batch *batch = NULL;
    leat_error err = {0};
    leat_status status = leat_feed_get(feeds[1], &batch, &err);
    if (status == LEAT_OK) { /* the first batch, which the dead worker had made */
        leat_feed_release(feeds[1]);
        status = leat_feed_get(feeds[1], &batch, &err);
    }
    assert_int_equal(status, LEAT_EWORKER);
    assert_int_equal(atomic_load(&words->calls), 2);
    assert_int_equal(leat_feed_stats_get(feeds[0]).worker_deaths, 0);
    assert_int_equal(leat_feed_stats_get(feeds[1]).worker_deaths, 1);
    leat_feed_close(&feeds[0]);
    leat_feed_close(&feeds[1]);
    munmap(words, sizeof *words);
}

/* A batch that was claimed for a feed which then ended stays claimed: it is not made again, and deaths on later batches
 * of other feeds are not counted on it. */
static void claimed_batch_of_an_ended_feed_counts_no_deaths(void **state) {
    (void)state;
    shared_words *words = share_words();
    leat_sequence first = numbers(get_or_die, words), second = numbers(get_or_hang, words);
    leat_feed_options options = one_process();
    options.max_queue_size = 1;
    options.faults.max_deaths = 2;
    leat_feed *feeds[2] = {NULL, NULL};
    open_two(feeds, &first, &second, &options);
    while (atomic_load(&words->pid) == 0) usleep(1000);
    leat_feed_stop(feeds[1]);
    atomic_store(&words->kills_left, 100);
    kill((pid_t)atomic_load(&words->pid), SIGKILL);
    take(feeds[0], 0);
    const leat_batch *batch = NULL;
    leat_error err = {0};
    assert_int_equal(leat_feed_get(feeds[0], &batch, &err), LEAT_EWORKER);
    assert_int_equal(atomic_load(&words->calls), 1);
    assert_int_equal(atomic_load(&words->kills_left), 98);
    leat_feed_close(&feeds[0]);
    leat_feed_close(&feeds[1]);
    munmap(words, sizeof *words);
}

/* The defect: the error said that the kernel had killed the worker for lack of memory. */
static void late_generator_is_told_to_be_late(void **state) {
    (void)state;
    shared_words *words = share_words();
    leat_sequence generator = generator_of(next_or_hang, words);
    leat_feed_options options = one_process();
    options.faults.deadline_ms = 50;
    leat_feed *feed = NULL;
    leat_error err = {0};
    const leat_batch *batch = NULL;
    assert_int_equal(leat_feed_open(&feed, &generator, &options, &err), LEAT_OK);
    assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_ETIMEOUT);
    assert_non_null(strstr(err.message, "of a generator was late, more than 0.05 s"));
    assert_int_equal(leat_feed_stats_get(feed).timeouts, 1);
    leat_feed_close(&feed);
    munmap(words, sizeof *words);
}

static leat_status refuse_descriptors(void *user, int64_t pass, leat_error *err) {
    (void)user;
    (void)pass;
    (void)err;
    struct rlimit none = {0, descriptors.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    return LEAT_OK;
}

/* If new workers for one feed cannot be forked, the other feeds have none, either.  The defect: they waited for
 * ever. */
static void workers_that_are_not_renewed_are_told_to_all(void **state) {
    (void)state;
    leat_sequence first = numbers(get_index, NULL), second = numbers(get_index, NULL);
    first.on_epoch_end = refuse_descriptors;
    leat_feed_options options = one_process();
    options.passes = 0;
    options.max_queue_size = 1;
    leat_feed *feeds[2] = {NULL, NULL};
    open_two(feeds, &first, &second, &options);
    for (int i = 0; i < 4; ++i) take(feeds[0], i);
    const leat_batch *batch = NULL;
    leat_error err = {0}, other = {0};
    getrlimit(RLIMIT_NOFILE, &descriptors);
    leat_status status = leat_feed_get(feeds[0], &batch, &err);
    setrlimit(RLIMIT_NOFILE, &descriptors);
    assert_int_equal(status, LEAT_EIO);
    alarm(60);
    while ((status = leat_feed_get(feeds[1], &batch, &other)) == LEAT_OK) leat_feed_release(feeds[1]);
    alarm(0);
    assert_int_equal(status, LEAT_EIO);
    assert_string_equal(err.message, other.message);
    leat_feed_close(&feeds[0]);
    leat_feed_close(&feeds[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generator_is_not_called_by_a_replacement),
        cmocka_unit_test(claimed_batch_of_an_ended_feed_counts_no_deaths),
        cmocka_unit_test(late_generator_is_told_to_be_late),
        cmocka_unit_test(workers_that_are_not_renewed_are_told_to_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
