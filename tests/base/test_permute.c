/* SPDX-License-Identifier: Apache-2.0 */
/* A permutation without an array: every length is a bijection, every key another order. */
#include "cmocka_all.h"

#include <stdbool.h>
#include <string.h>

#include "base/permute.h"

static void every_small_length_is_a_bijection(void **state) {
    (void)state;
    for (uint64_t length = 1; length <= 300; ++length)
        for (uint64_t pass = 0; pass < 3; ++pass) {
            bool seen[300] = {false};
            for (uint64_t i = 0; i < length; ++i) {
                uint64_t to = leati_permute(9, pass, i, length);
                assert_true(to < length);
                assert_false(seen[to]);
                seen[to] = true;
            }
        }
}

static void all_orders_of_three_come_up_about_equally(void **state) {
    (void)state;
    int orders[27] = {0}, kinds = 0;
    for (uint64_t seed = 0; seed < 6000; ++seed) {
        uint64_t code = 0;
        for (uint64_t i = 0; i < 3; ++i) code = 3 * code + leati_permute(seed, 0, i, 3);
        ++orders[code];
    }
    for (int i = 0; i < 27; ++i) {
        if (orders[i] == 0) continue;
        ++kinds;
        assert_in_range(orders[i], 850, 1150);
    }
    assert_int_equal(kinds, 6);
}

/* Where element 0 of 60,000 lands is spread over the whole range. */
static void places_are_spread_evenly(void **state) {
    (void)state;
    enum { length = 60000, draws = 10000, bins = 10 };
    int counts[bins] = {0};
    for (uint64_t pass = 0; pass < draws; ++pass) ++counts[leati_permute(1, pass, 0, length) * bins / length];
    for (int i = 0; i < bins; ++i) assert_in_range(counts[i], 850, 1150);
}

/* Neighbours do not stay neighbours: a shuffle of a sorted data set must mix the classes. */
static void neighbours_part(void **state) {
    (void)state;
    enum { length = 60000 };
    int near = 0;
    for (uint64_t i = 0; i + 1 < length; ++i) {
        uint64_t a = leati_permute(3, 1, i, length), b = leati_permute(3, 1, i + 1, length);
        near += (a > b ? a - b : b - a) < 100;
    }
    assert_in_range(near, 100, 320); /* 200 expected of a random order */
}

static void the_stream_is_fixed(void **state) {
    (void)state;
    uint64_t first[4];
    for (uint64_t i = 0; i < 4; ++i) first[i] = leati_permute(0, 0, i, 1000);
    assert_int_equal(first[0], 518);
    assert_int_equal(first[1], 531);
    assert_int_equal(first[2], 334);
    assert_int_equal(first[3], 569);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_small_length_is_a_bijection),
        cmocka_unit_test(all_orders_of_three_come_up_about_equally),
        cmocka_unit_test(places_are_spread_evenly),
        cmocka_unit_test(neighbours_part),
        cmocka_unit_test(the_stream_is_fixed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
