/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a shuffled pass: a permutation, a function of (seed, pass, length), with uniform probability. */
#include "cmocka_all.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "base/shuffle.h"

static void every_length_is_permuted(void **state) {
    (void)state;
    static const uint64_t lengths[] = {1, 2, 3, 4, 5, 7, 8, 9, 64, 65, 1000, 4097, 100003};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; ++l) {
        uint64_t length = lengths[l];
        bool *seen = calloc(length, sizeof *seen);
        assert_non_null(seen);
        leati_shuffle shuffle;
        leati_shuffle_init(&shuffle, leati_mix(5, l), length);
        for (uint64_t i = 0; i < length; ++i) {
            uint64_t at = leati_shuffle_at(&shuffle, i);
            assert_true(at < length);
            assert_false(seen[at]);
            seen[at] = true;
        }
        free(seen);
    }
}

static void a_range_is_its_positions(void **state) {
    (void)state;
    uint64_t all[100];
    leati_shuffle shuffle;
    leati_shuffle_init(&shuffle, 11, 1000);
    for (uint64_t first = 0; first < 900; first += 37)
        for (int64_t count = 0; count <= 100; count += 9) {
            leati_shuffle_range(&shuffle, first, count, all);
            for (int64_t i = 0; i < count; ++i)
                assert_int_equal(all[i], leati_shuffle_at(&shuffle, first + (uint64_t)i));
        }
}

/* Counts the 24 orders of four batches over 24,000 passes: chi-square with 23 degrees of freedom. */
static void small_orders_are_equally_likely(void **state) {
    (void)state;
    int counts[256] = {0};
    for (uint64_t pass = 0; pass < 24000; ++pass) {
        leati_shuffle shuffle;
        leati_shuffle_init(&shuffle, leati_mix(1, pass), 4);
        unsigned code = 0;
        for (uint64_t i = 0; i < 4; ++i) code = code << 2 | (unsigned)leati_shuffle_at(&shuffle, i);
        ++counts[code];
    }
    double chi = 0;
    int kinds = 0;
    for (int i = 0; i < 256; ++i)
        if (counts[i]) {
            chi += (counts[i] - 1000.0) * (counts[i] - 1000.0) / 1000.0;
            ++kinds;
        }
    assert_int_equal(kinds, 24);
    assert_true(chi < 60); /* probability 1 in 30,000; the seed is fixed, so the result never changes */
}

static void places_are_equally_likely(void **state) {
    (void)state;
    enum { length = 50, passes = 20000 };
    int counts[length][length] = {{0}};
    for (uint64_t pass = 0; pass < passes; ++pass) {
        leati_shuffle shuffle;
        leati_shuffle_init(&shuffle, leati_mix(9, pass), length);
        for (uint64_t i = 0; i < length; ++i) ++counts[i][leati_shuffle_at(&shuffle, i)];
    }
    double expected = (double)passes / length, chi = 0;
    for (int i = 0; i < length; ++i)
        for (int j = 0; j < length; ++j)
            chi += (counts[i][j] - expected) * (counts[i][j] - expected) / expected;
    assert_true(chi > 2000 && chi < 2850); /* 49 * 49 = 2401 degrees of freedom, standard deviation 69 */
}

static void neighbours_do_not_stay_neighbours(void **state) {
    (void)state;
    enum { length = 1000, passes = 200 };
    int kept = 0;
    for (uint64_t pass = 0; pass < passes; ++pass) {
        leati_shuffle shuffle;
        leati_shuffle_init(&shuffle, leati_mix(3, pass), length);
        for (uint64_t i = 0; i + 1 < length; ++i)
            kept += leati_shuffle_at(&shuffle, i + 1) == leati_shuffle_at(&shuffle, i) + 1;
    }
    assert_true(kept > 120 && kept < 290); /* about one in each pass */
}

static void order_depends_on_seed_and_pass(void **state) {
    (void)state;
    leati_shuffle a, b, c, d;
    leati_shuffle_init(&a, leati_mix(1, 2), 1000);
    leati_shuffle_init(&b, leati_mix(1, 2), 1000);
    leati_shuffle_init(&c, leati_mix(1, 3), 1000);
    leati_shuffle_init(&d, leati_mix(2, 2), 1000);
    int same_pass = 0, same_seed = 0;
    for (uint64_t i = 0; i < 1000; ++i) {
        uint64_t at = leati_shuffle_at(&a, i);
        assert_int_equal(leati_shuffle_at(&b, i), at);
        same_pass += leati_shuffle_at(&c, i) == at;
        same_seed += leati_shuffle_at(&d, i) == at;
    }
    assert_true(same_pass < 10 && same_seed < 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_is_permuted),          cmocka_unit_test(a_range_is_its_positions),
        cmocka_unit_test(small_orders_are_equally_likely),   cmocka_unit_test(places_are_equally_likely),
        cmocka_unit_test(neighbours_do_not_stay_neighbours), cmocka_unit_test(order_depends_on_seed_and_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
