/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms of durations, and the error of their percentiles. */
#include "cmocka_all.h"

#include <stdlib.h>
#include <string.h>

#include "feed/stats/histogram.h"

static leati_histogram histogram;

static int clear(void **state) {
    (void)state;
    memset(&histogram, 0, sizeof histogram);
    return 0;
}

static void assert_near(int64_t value, int64_t expected) {
    double difference = (double)(value - expected) / (double)expected;
    if (difference > 0.06 || difference < -0.06)
        fail_msg("%lld, expected %lld to 6 %%", (long long)value, (long long)expected);
}

static void nothing_is_all_zero(void **state) {
    (void)state;
    leat_percentiles p = leati_histogram_percentiles(&histogram);
    assert_true(p.p50 == 0 && p.p90 == 0 && p.p99 == 0 && p.max == 0);
    assert_int_equal(histogram.count, 0);
}

static void zeros_are_counted(void **state) {
    (void)state;
    for (int i = 0; i < 3; ++i) leati_histogram_add(&histogram, 0);
    leati_histogram_add(&histogram, 1000);
    leat_percentiles p = leati_histogram_percentiles(&histogram);
    assert_int_equal(histogram.count, 4);
    assert_true(p.p50 == 0);
    assert_near(p.p90, 1000);
    assert_int_equal(p.max, 1000);
}

/* Each value from 1 to 10^6, and each power of two with its neighbours, is its own percentile if the histogram has no
 * other value. */
static void a_value_alone_is_its_own_percentile(void **state) {
    (void)state;
    for (int64_t ns = 1; ns < 1000000; ++ns) {
        leati_histogram one = {0};
        leati_histogram_add(&one, ns);
        leati_histogram_add(&one, ns);
        leati_histogram_add(&one, INT64_MAX); /* so that the maximum does not limit the other percentiles */
        leat_percentiles p = leati_histogram_percentiles(&one);
        if (ns < 16) assert_int_equal(p.p50, ns);
        assert_near(p.p50, ns);
        if (ns > 100000) ns += 97;
    }
    for (int bit = 20; bit < 63; ++bit)
        for (int64_t off = -1; off <= 1; ++off) {
            int64_t ns = ((int64_t)1 << bit) + off;
            leati_histogram one = {0};
            leati_histogram_add(&one, ns);
            leati_histogram_add(&one, ns);
            leati_histogram_add(&one, INT64_MAX);
            assert_near(leati_histogram_percentiles(&one).p50, ns);
        }
}

static int compare(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Percentiles of durations over nine powers of ten, compared with a sorted list. */
static void percentiles_are_those_of_the_sorted_values(void **state) {
    (void)state;
    enum { count = 5000 };
    static int64_t values[count];
    uint64_t random = 1;
    for (int i = 0; i < count; ++i) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        values[i] = (int64_t)(random >> 33) % 1000 + 1;
        for (int tens = (int)((random >> 20) % 7); tens > 0; --tens) values[i] *= 10;
        leati_histogram_add(&histogram, values[i]);
    }
    qsort(values, count, sizeof *values, compare);
    leat_percentiles p = leati_histogram_percentiles(&histogram);
    assert_near(p.p50, values[count / 2 - 1]);
    assert_near(p.p90, values[count * 9 / 10 - 1]);
    assert_near(p.p99, values[count * 99 / 100 - 1]);
    assert_int_equal(p.max, values[count - 1]);
}

static void no_percentile_exceeds_the_maximum(void **state) {
    (void)state;
    for (int i = 0; i < 100; ++i)
        leati_histogram_add(&histogram, 1 << 20); /* the smallest value of its bin */
    leat_percentiles p = leati_histogram_percentiles(&histogram);
    assert_int_equal(p.p99, 1 << 20);
    assert_int_equal(p.max, 1 << 20);
}

static void the_largest_and_the_negative_have_a_place(void **state) {
    (void)state;
    leati_histogram_add(&histogram, INT64_MAX);
    leati_histogram_add(&histogram, INT64_MAX);
    leati_histogram_add(&histogram, -5); /* a clock that went back counts as 0 */
    leat_percentiles p = leati_histogram_percentiles(&histogram);
    assert_true(p.max == INT64_MAX);
    assert_near(p.p99, INT64_MAX);
    assert_int_equal(histogram.bins[0], 1);
    assert_int_equal(histogram.bins[LEATI_HISTOGRAM_BINS - 1], 2);
}

static void a_full_bin_stays_full(void **state) {
    (void)state;
    histogram = (leati_histogram){.count = UINT32_MAX, .max = 5};
    histogram.bins[5] = UINT32_MAX;
    leati_histogram_add(&histogram, 5);
    assert_true(histogram.bins[5] == UINT32_MAX);
    assert_true(histogram.count == (int64_t)UINT32_MAX + 1);
    assert_int_equal(leati_histogram_percentiles(&histogram).p99, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nothing_is_all_zero, clear),
        cmocka_unit_test_setup(zeros_are_counted, clear),
        cmocka_unit_test(a_value_alone_is_its_own_percentile),
        cmocka_unit_test_setup(percentiles_are_those_of_the_sorted_values, clear),
        cmocka_unit_test_setup(no_percentile_exceeds_the_maximum, clear),
        cmocka_unit_test_setup(the_largest_and_the_negative_have_a_place, clear),
        cmocka_unit_test_setup(a_full_bin_stays_full, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
