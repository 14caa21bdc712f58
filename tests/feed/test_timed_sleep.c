/* SPDX-License-Identifier: Apache-2.0 */
/* The timed sleep: the length that it learns, and when it gives up. */
#include "cmocka_all.h"

#include "feed/ring/timed_sleep.h"

static const int64_t ms = 1000000;

static void first_sleep_is_until_the_bell(void **state) {
    (void)state;
    leati_timed_sleep timed_sleep = {0};
    assert_int_equal(leati_timed_sleep_length(&timed_sleep), -1);
}

static void comes_for_as_many_as_are_wanted(void **state) {
    (void)state;
    leati_timed_sleep timed_sleep = {0};
    leati_timed_sleep_learn(&timed_sleep, 25 * ms, 5, 2); /* one ticket every 5 ms */
    assert_int_equal(leati_timed_sleep_length(&timed_sleep), 10 * ms);
    leati_timed_sleep_learn(&timed_sleep, 10 * ms, 4, 2); /* tickets are opened twice as fast now */
    assert_int_equal(leati_timed_sleep_length(&timed_sleep), 5 * ms);
}

static void what_is_soon_over_is_left_to_the_bell(void **state) {
    (void)state;
    leati_timed_sleep timed_sleep = {0};
    leati_timed_sleep_learn(&timed_sleep, LEATI_TIMED_SLEEP_SHORTEST_NS / 2, 1, 1);
    assert_int_equal(leati_timed_sleep_length(&timed_sleep), -1);
}

static void a_small_queue_is_left_to_the_bell(void **state) {
    (void)state;
    leati_timed_sleep timed_sleep = {0};
    leati_timed_sleep_learn(&timed_sleep, 25 * ms, 1, 0); /* wanted: a fourth of 3 slots */
    assert_int_equal(leati_timed_sleep_length(&timed_sleep), -1);
}

static void no_doze_is_long(void **state) {
    (void)state;
    leati_timed_sleep timed_sleep = {0};
    leati_timed_sleep_learn(&timed_sleep, 3600000 * ms, 1, 1);
    assert_int_equal(leati_timed_sleep_length(&timed_sleep), LEATI_TIMED_SLEEP_LONGEST_NS);
}

static void who_finds_nothing_gives_up(void **state) {
    (void)state;
    leati_timed_sleep timed_sleep = {0};
    leati_timed_sleep_learn(&timed_sleep, 10 * ms, 1, 1);
    for (int i = 1; i < LEATI_TIMED_SLEEP_FRUITLESS; ++i) {
        leati_timed_sleep_learn(&timed_sleep, 10 * ms, 0, 1);
        assert_int_equal(leati_timed_sleep_length(&timed_sleep), 10 * ms);
    }
    leati_timed_sleep_learn(&timed_sleep, 10 * ms, 0, 1);
    assert_int_equal(leati_timed_sleep_length(&timed_sleep), -1);
    leati_timed_sleep_learn(&timed_sleep, 20 * ms, 1, 1); /* the wake futex woke the worker */
    assert_int_equal(leati_timed_sleep_length(&timed_sleep), 20 * ms);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_sleep_is_until_the_bell),
        cmocka_unit_test(comes_for_as_many_as_are_wanted),
        cmocka_unit_test(what_is_soon_over_is_left_to_the_bell),
        cmocka_unit_test(a_small_queue_is_left_to_the_bell),
        cmocka_unit_test(no_doze_is_long),
        cmocka_unit_test(who_finds_nothing_gives_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
