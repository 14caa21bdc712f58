/* SPDX-License-Identifier: Apache-2.0 */
/* The tests of Keras 2.3.1 for its enqueuers (tests/keras/utils/data_utils_test.py), with the same names, including
 * those that Keras has disabled.  If leat promises more than Keras, the promise is checked: generators keep their order
 * with every kind of workers, and no batch is made twice. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "feed/source.h"

enum { count = 100, workers = 3, width = 8, get_us = 1000 };

/* Shared between processes: number of calls for each item. */
typedef struct tallies {
    _Atomic int32_t of[count];
    _Atomic int32_t inside, crossed;
} tallies;

/* DummySequence: item i is filled with i * inner; the hook multiplies inner by 5. */
typedef struct numbers {
    double inner;
    int64_t length;
    bool halves; /* the hook halves the length */
    int64_t faulty_at, slow_at;
    int slow_us;
    int64_t made; /* number of batches that a generator has made */
    bool finite;
    source shared; /* only for its memory that processes share */
    tallies *tallies;
} numbers;

static void numbers_init(numbers *n, double inner) {
    *n = (numbers){.inner = inner, .length = count, .faulty_at = -1, .slow_at = -1};
    source_init(&n->shared, count, 1, 1);
    n->tallies = (tallies *)(void *)
                     n->shared.counts->gets_of; /* zeroed memory that this test does not use otherwise */
}

static void numbers_fini(numbers *n) {
    source_fini(&n->shared);
}

static int64_t numbers_length(void *user) {
    return ((numbers *)user)->length;
}

static leat_status numbers_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    numbers *n = user;
    (void)rng;
    atomic_fetch_add(&n->tallies->of[index % count], 1);
    sleep_us(index == n->slow_at ? n->slow_us : get_us);
    if (index == n->faulty_at) return leat_error_set(err, LEAT_EUSER, "item %d is not present", (int)index);
    float *x = batch->tensors[0].data;
    for (int i = 0; i < 3 * width; ++i) x[i] = (float)((double)index * n->inner);
    return LEAT_OK;
}

static leat_status numbers_hook(void *user, int64_t pass, leat_error *err) {
    numbers *n = user;
    (void)pass;
    (void)err;
    n->inner *= 5;
    if (n->halves) n->length = (n->length + 1) / 2;
    return LEAT_OK;
}

/* The same numbers as a generator.  Its position is neither atomic nor locked; `crossed` counts calls that overlap. */
static leat_status numbers_next(void *user, leat_rng *rng, leat_batch *batch, leat_error *err) {
    numbers *n = user;
    if (atomic_fetch_add(&n->tallies->inside, 1) != 0) atomic_fetch_add(&n->tallies->crossed, 1);
    leat_status status = LEAT_OK;
    if (n->finite && n->made == n->length)
        batch->size = 0;
    else
        status = numbers_get(user, n->made++ % n->length, rng, batch, err);
    atomic_fetch_sub(&n->tallies->inside, 1);
    return status;
}

static leat_sequence numbers_sequence(numbers *n) {
    static const int64_t shape[] = {width};
    leat_sequence sequence = leat_sequence_default();
    leat_error err = {0};
    sequence.user = n;
    sequence.spec.batch_size = 3;
    assert_int_equal(leat_batch_spec_add(&sequence.spec, LEAT_PART_INPUT, "x", LEAT_F32, 1, shape, &err),
                     LEAT_OK);
    sequence.length = numbers_length;
    sequence.get = numbers_get;
    return sequence;
}

static leat_sequence numbers_with_hook(numbers *n) {
    leat_sequence sequence = numbers_sequence(n);
    sequence.on_epoch_end = numbers_hook;
    sequence.state = &n->inner;
    sequence.state_bytes = sizeof n->inner;
    return sequence;
}

static leat_sequence numbers_generator(numbers *n) {
    leat_sequence sequence = numbers_sequence(n);
    sequence.length = NULL;
    sequence.get = NULL;
    sequence.next = numbers_next;
    return sequence;
}

static leat_feed *start(const leat_sequence *sequence, bool processes, leat_shuffle shuffle) {
    leat_feed_options options = leat_feed_options_default();
    options.workers = workers;
    options.use_multiprocessing = processes;
    options.max_queue_size = 10;
    options.shuffle = shuffle;
    return source_open(sequence, &options);
}

static double take(leat_feed *feed) {
    const leat_batch *batch = NULL;
    leat_error err = {0};
    if (leat_feed_get(feed, &batch, &err) != LEAT_OK) fail_msg("%s", err.message);
    const float *x = batch->tensors[0].data;
    for (int i = 1; i < 3 * width; ++i) assert_true(x[i] == x[0]);
    double value = (double)x[0];
    leat_feed_release(feed);
    return value;
}

static void take_range(leat_feed *feed, int64_t first, int64_t end, double inner) {
    for (int64_t i = first; i < end; ++i) assert_true(take(feed) == (double)i * inner);
}

static void expect_end(leat_feed *feed, leat_status status, const char *part) {
    const leat_batch *batch = NULL;
    leat_error err = {0};
    assert_int_equal(leat_feed_get(feed, &batch, &err), status);
    if (!strstr(err.message, part)) fail_msg("expected '%s' in '%s'", part, err.message);
}

static void each_made_once(const numbers *n) {
    for (int i = 0; i < count; ++i) assert_int_equal(atomic_load(&n->tallies->of[i]), 1);
}

static void draw_from_generator(bool processes) {
    numbers n;
    numbers_init(&n, 1);
    leat_sequence sequence = numbers_generator(&n);
    leat_feed *feed = start(&sequence, processes, LEAT_SHUFFLE_NONE);
    take_range(feed, 0, count, 1);
    take_range(feed, 0, 10, 1); /* the stream has no end */
    leat_feed_close(&feed);
    assert_int_equal(atomic_load(&n.tallies->crossed), 0);
    numbers_fini(&n);
}

static void test_generator_enqueuer_threads(void **state) {
    (void)state;
    draw_from_generator(false);
}

static void test_generator_enqueuer_processes(void **state) {
    (void)state;
    draw_from_generator(true);
}

/* In Keras, an error says "thread-safe".  Here a generator is called by one worker only. */
static void test_generator_enqueuer_threadsafe(void **state) {
    (void)state;
    numbers n;
    numbers_init(&n, 1);
    n.finite = true;
    leat_sequence sequence = numbers_generator(&n);
    leat_feed *feed = start(&sequence, false, LEAT_SHUFFLE_NONE);
    take_range(feed, 0, count, 1);
    expect_end(feed, LEAT_ENOTFOUND, "");
    assert_int_equal(atomic_load(&n.tallies->crossed), 0);
    each_made_once(&n);
    leat_feed_close(&feed);
    numbers_fini(&n);
}

static void fail_in_generator(bool processes) {
    numbers n;
    numbers_init(&n, 1);
    n.faulty_at = 21;
    leat_sequence sequence = numbers_generator(&n);
    leat_feed *feed = start(&sequence, processes, LEAT_SHUFFLE_NONE);
    take_range(feed, 0, 21, 1);
    expect_end(feed, LEAT_EUSER, "item 21 is not present");
    leat_feed_close(&feed);
    numbers_fini(&n);
}

static void test_generator_enqueuer_fail_threads(void **state) {
    (void)state;
    fail_in_generator(false);
}

static void test_generator_enqueuer_fail_processes(void **state) {
    (void)state;
    fail_in_generator(true);
}

static void end_generator(bool processes) {
    numbers n;
    numbers_init(&n, 1);
    n.finite = true;
    leat_sequence sequence = numbers_generator(&n);
    leat_feed *feed = start(&sequence, processes, LEAT_SHUFFLE_NONE);
    take_range(feed, 0, count, 1);
    for (int i = 0; i < 2; ++i) expect_end(feed, LEAT_ENOTFOUND, "");
    each_made_once(&n);
    leat_feed_close(&feed);
    numbers_fini(&n);
}

static void test_finite_generator_enqueuer_threads(void **state) {
    (void)state;
    end_generator(false);
}

static void test_finite_generator_enqueuer_processes(void **state) {
    (void)state;
    end_generator(true);
}

static void draw_in_order(bool processes) {
    numbers n;
    numbers_init(&n, 1);
    leat_sequence sequence = numbers_sequence(&n);
    leat_feed *feed = start(&sequence, processes, LEAT_SHUFFLE_NONE);
    take_range(feed, 0, count, 1);
    leat_feed_close(&feed);
    numbers_fini(&n);
}

static void test_ordered_enqueuer_threads(void **state) {
    (void)state;
    draw_in_order(false);
}

static void test_ordered_enqueuer_processes(void **state) {
    (void)state;
    draw_in_order(true);
}

static void test_ordered_enqueuer_threads_not_ordered(void **state) {
    (void)state;
    numbers n;
    numbers_init(&n, 1);
    leat_sequence sequence = numbers_sequence(&n);
    leat_feed *feed = start(&sequence, false, LEAT_SHUFFLE_BATCHES);
    int moved = 0;
    bool seen[count] = {false};
    for (int i = 0; i < count; ++i) {
        int value = (int)take(feed);
        assert_true(value >= 0 && value < count && !seen[value]);
        seen[value] = true;
        moved += value != i;
    }
    assert_true(moved > count / 2);
    leat_feed_close(&feed);
    numbers_fini(&n);
}

static void fail_in_order(bool processes) {
    numbers n;
    numbers_init(&n, 1);
    n.faulty_at = 13;
    leat_sequence sequence = numbers_sequence(&n);
    leat_feed *feed = start(&sequence, processes, LEAT_SHUFFLE_NONE);
    take_range(feed, 0, 13, 1); /* earlier batches are not lost */
    expect_end(feed, LEAT_EUSER, "batch 13 of pass 0: item 13 is not present");
    leat_feed_close(&feed);
    numbers_fini(&n);
}

static void test_ordered_enqueuer_fail_threads(void **state) {
    (void)state;
    fail_in_order(false);
}

static void test_ordered_enqueuer_fail_processes(void **state) {
    (void)state;
    fail_in_order(true);
}

/* In Keras, an item takes 40 s, and after 30 s it is made again, with a warning.  Here the feed waits for the item. */
static void test_ordered_enqueuer_timeout_threads(void **state) {
    (void)state;
    numbers n;
    numbers_init(&n, 1);
    n.slow_at = 0;
    n.slow_us = 300000;
    leat_sequence sequence = numbers_sequence(&n);
    leat_feed *feed = start(&sequence, false, LEAT_SHUFFLE_NONE);
    for (int pass = 0; pass < 2; ++pass) take_range(feed, 0, count, 1);
    assert_int_equal(leat_feed_stats_get(feed).timeouts, 0);
    leat_feed_close(&feed);
    assert_int_equal(atomic_load(&n.tallies->of[count - 1]),
                     2);                              /* in two passes, each item is made once per pass */
    assert_true(atomic_load(&n.tallies->of[0]) <= 3); /* a third pass may have begun */
    numbers_fini(&n);
}

static void change_at_the_end_of_a_pass(bool processes) {
    numbers n;
    numbers_init(&n, 1);
    leat_sequence sequence = numbers_with_hook(&n);
    leat_feed *feed = start(&sequence, processes, LEAT_SHUFFLE_NONE);
    take_range(feed, 0, count, 1);
    take_range(feed, 0, count, 5);
    leat_feed_close(&feed);
    numbers_fini(&n);
}

static void test_on_epoch_end_threads(void **state) {
    (void)state;
    change_at_the_end_of_a_pass(false);
}

static void test_on_epoch_end_processes(void **state) {
    (void)state;
    change_at_the_end_of_a_pass(true);
}

static void test_context_switch(void **state) {
    (void)state;
    numbers first, second;
    numbers_init(&first, 1);
    numbers_init(&second, 15);
    leat_sequence a = numbers_with_hook(&first), b = numbers_with_hook(&second);
    leat_feed *feed_a = start(&a, true, LEAT_SHUFFLE_NONE), *feed_b = start(&b, true, LEAT_SHUFFLE_NONE);
    take_range(feed_a, 0, 10, 1);
    take_range(feed_b, 0, 10, 15);
    take_range(feed_a, 10, count, 1);
    take_range(feed_a, 0, 10, 5); /* feed_a has ended its pass, feed_b has not */
    take_range(feed_b, 10, count, 15);
    take_range(feed_b, 0, 10, 75);
    take_range(feed_a, 10, count, 5);
    leat_feed_close(&feed_a);
    take_range(feed_b, 10, 20, 75);
    leat_feed_close(&feed_b);
    numbers_fini(&first);
    numbers_fini(&second);
}

static void test_on_epoch_end_threads_sequence_change_length(void **state) {
    (void)state;
    numbers n;
    numbers_init(&n, 1);
    n.halves = true;
    leat_sequence sequence = numbers_with_hook(&n);
    leat_feed *feed = start(&sequence, false, LEAT_SHUFFLE_NONE);
    take_range(feed, 0, count, 1);
    leat_error err = {0};
    assert_int_equal(leat_feed_end_pass(feed, &err), LEAT_OK); /* Keras's join_end_of_epoch */
    assert_int_equal(leat_feed_length(feed), count / 2);
    take_range(feed, 0, count / 2, 5);
    take_range(feed, 0, count / 4, 25);
    leat_feed_close(&feed);
    numbers_fini(&n);
}

/* In Keras, an item takes 120 s, is missed, and is made by the trainer.  Here its process hangs and is killed after the
 * deadline, and the item is made again. */
static void test_missing_inputs(void **state) {
    (void)state;
    source s;
    source_init(&s, 40, 1, 1);
    s.hang_at = 10;
    atomic_store(&s.counts->hangs_left, 1);
    leat_sequence sequence = source_sequence(&s);
    leat_feed_options options = source_options((feed_mode){workers, true});
    options.faults.deadline_ms = 1000;
    leat_feed *feed = source_open(&sequence, &options);
    for (int i = 0; i < 60; ++i) {
        const leat_batch *batch = NULL;
        leat_error err = {0};
        if (leat_feed_get(feed, &batch, &err) != LEAT_OK) fail_msg("%s", err.message);
        assert_int_equal(leat_feed_position_get(feed).index, i % 40);
        assert_int_equal(((const int64_t *)batch->tensors[1].data)[0], i % 40 * 1000);
        leat_feed_release(feed);
    }
    assert_true(leat_feed_stats_get(feed).timeouts >= 1);
    leat_feed_close(&feed);
    source_fini(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_generator_enqueuer_threads),
        cmocka_unit_test(test_generator_enqueuer_threadsafe),
        cmocka_unit_test(test_generator_enqueuer_fail_threads),
        cmocka_unit_test(test_finite_generator_enqueuer_threads),
        cmocka_unit_test(test_ordered_enqueuer_threads),
        cmocka_unit_test(test_ordered_enqueuer_processes),
        cmocka_unit_test(test_ordered_enqueuer_threads_not_ordered),
        cmocka_unit_test(test_ordered_enqueuer_fail_threads),
        cmocka_unit_test(test_ordered_enqueuer_fail_processes),
        cmocka_unit_test(test_ordered_enqueuer_timeout_threads),
        cmocka_unit_test(test_on_epoch_end_threads),
        cmocka_unit_test(test_on_epoch_end_processes),
        cmocka_unit_test(test_context_switch),
        cmocka_unit_test(test_on_epoch_end_threads_sequence_change_length),
        cmocka_unit_test(test_generator_enqueuer_processes),
        cmocka_unit_test(test_generator_enqueuer_fail_processes),
        cmocka_unit_test(test_finite_generator_enqueuer_processes),
        cmocka_unit_test(test_missing_inputs),
    };
    alarm(240);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
