/* SPDX-License-Identifier: Apache-2.0 */
/* Bad batches: fail, skip, retry, NaN and Inf, worker processes that die while they make a batch.  With every policy,
 * the bytes of all other batches do not change. */
#include "cmocka_all.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "feed/source.h"
#include "tensor/convert.h"

static const feed_mode modes[] = {{0, false}, {1, false}, {3, false}, {1, true}, {3, true}};
static const feed_mode in_line = {0};

#define FOR_EACH_MODE(mode)                                                                                  \
    for (size_t m = 0; m < sizeof modes / sizeof *modes; ++m)                                                \
        for (feed_mode mode = modes[m], *once = &mode; once; once = NULL)

enum { length = 12, passes = 3, most = length * passes };

/* Records the stream without faults, and drops the batches whose index is `bad`. */
static int64_t expected_without(const leat_sequence *sequence, leat_shuffle shuffle, bool (*bad)(int64_t),
                                source_entry *out) {
    leat_feed_options options = source_options(in_line);
    options.shuffle = shuffle;
    options.passes = passes;
    leat_feed *feed = source_open(sequence, &options);
    source_entry all[most];
    leat_error end = {0};
    assert_int_equal(source_record(feed, all, most, &end), most);
    leat_feed_close(&feed);
    int64_t count = 0;
    for (int i = 0; i < most; ++i)
        if (!bad(all[i].at.index)) out[count++] = all[i];
    return count;
}

static leat_feed_options skipping(feed_mode mode, leat_shuffle shuffle) {
    leat_feed_options options = source_options(mode);
    options.shuffle = shuffle;
    options.passes = passes;
    options.faults.bad_batch = LEAT_BAD_BATCH_SKIP;
    return options;
}

/* Checks that the whole stream equals `expected` and ends without an error.  Returns its figures. */
static leat_feed_stats deliver(const leat_sequence *sequence, const leat_feed_options *options,
                               const source_entry *expected, int64_t count) {
    resources before = resources_now();
    leat_feed *feed = source_open(sequence, options);
    source_entry seen[most];
    leat_error end = {0};
    int64_t got = source_record(feed, seen, most, &end);
    if (got < most && end.code != LEAT_ENOTFOUND) fail_msg("%s", end.message);
    assert_int_equal(got, count);
    source_compare(seen, expected, count);
    leat_feed_stats stats = leat_feed_stats_get(feed);
    assert_int_equal(stats.batches, count);
    assert_int_equal(leat_feed_close(&feed), 0);
    resources_check(before);
    return stats;
}

static bool none(int64_t index) {
    (void)index;
    return false;
}

static bool every_fifth(int64_t index) {
    return index % 5 == 1; /* 1, 6, 11; index 11 is the last of the pass */
}

static bool first(int64_t index) {
    return index == 0;
}

static bool fourth(int64_t index) {
    return index == 3;
}

static void skip_passes_over_what_fails(void **state) {
    (void)state;
    source s;
    source_init(&s, length, 3, 5);
    leat_sequence sequence = source_sequence(&s);
    for (leat_shuffle shuffle = LEAT_SHUFFLE_NONE; shuffle <= LEAT_SHUFFLE_BATCHES; ++shuffle) {
        s.fail_at = -1;
        s.fail_every = 0;
        source_entry expected[most];
        int64_t count = expected_without(&sequence, shuffle, every_fifth, expected);
        s.fail_at = 1;
        s.fail_every = 5;
        FOR_EACH_MODE(mode) {
            leat_feed_options options = skipping(mode, shuffle);
            leat_feed_stats stats = deliver(&sequence, &options, expected, count);
            assert_int_equal(stats.skips, most - count);
            assert_int_equal(stats.retries, 0);
        }
    }
    source_fini(&s);
}

static void skip_at_the_beginning(void **state) {
    (void)state;
    source s;
    source_init(&s, length, 3, 5);
    leat_sequence sequence = source_sequence_with_hook(&s, true);
    source_state fresh = s.state;
    source_entry expected[most];
    int64_t count = expected_without(&sequence, LEAT_SHUFFLE_NONE, first, expected);
    s.fail_at = 0;
    FOR_EACH_MODE(mode) {
        s.state = fresh;
        atomic_store(&s.counts->hooks, 0);
        leat_feed_options options = skipping(mode, LEAT_SHUFFLE_NONE);
        assert_int_equal(deliver(&sequence, &options, expected, count).skips, passes);
        assert_int_equal(atomic_load(&s.counts->hooks), passes);
        assert_int_equal(atomic_load(&s.counts->hook_overtaken), 0);
    }
    source_fini(&s);
}

/* A batch that violates the specification is treated like a failure of get. */
static void skip_passes_over_wrong_shapes(void **state) {
    (void)state;
    source s;
    source_init(&s, length, 3, 5);
    leat_sequence sequence = source_sequence(&s);
    source_entry expected[most];
    int64_t count = expected_without(&sequence, LEAT_SHUFFLE_NONE, fourth, expected);
    s.wrong_at = 3;
    for (s.wrong = 0; s.wrong < 5; ++s.wrong) FOR_EACH_MODE(mode) {
            leat_feed_options options = skipping(mode, LEAT_SHUFFLE_NONE);
            assert_int_equal(deliver(&sequence, &options, expected, count).skips, passes);
        }
    source_fini(&s);
}

static void sequence_may_say_that_there_is_no_such_batch(void **state) {
    (void)state;
    source s;
    source_init(&s, length, 3, 5);
    leat_sequence sequence = source_sequence(&s);
    source_entry expected[most];
    int64_t count = expected_without(&sequence, LEAT_SHUFFLE_BATCHES, fourth, expected);
    s.skip_at = 3;
    FOR_EACH_MODE(mode) {
        memset(s.counts->gets_of, 0, sizeof s.counts->gets_of);
        leat_feed_options options = skipping(mode, LEAT_SHUFFLE_BATCHES);
        options.faults.bad_batch = LEAT_BAD_BATCH_FAIL;
        options.faults.retries = 3; /* not a failure of get, so get is not called again */
        leat_feed_stats stats = deliver(&sequence, &options, expected, count);
        assert_int_equal(stats.skips, passes);
        assert_int_equal(stats.retries, 0);
        assert_int_equal(atomic_load(&s.counts->gets_of[3]), passes);
    }
    source_fini(&s);
}

static void retry_makes_the_same_batch(void **state) {
    (void)state;
    source s;
    source_init(&s, length, 3, 5);
    leat_sequence sequence = source_sequence(&s);
    source_entry expected[most];
    expected_without(&sequence, LEAT_SHUFFLE_BATCHES, none, expected);
    s.fail_at = 3;
    FOR_EACH_MODE(mode) {
        atomic_store(&s.counts->fails_left, 2);
        leat_feed_options options = skipping(mode, LEAT_SHUFFLE_BATCHES);
        options.faults.bad_batch = LEAT_BAD_BATCH_FAIL;
        options.faults.retries = 2;
        leat_feed_stats stats = deliver(&sequence, &options, expected, most);
        assert_int_equal(stats.retries, 2);
        assert_int_equal(stats.skips, 0);
    }
    source_fini(&s);
}

static void retries_are_as_many_as_were_asked_for(void **state) {
    (void)state;
    source s;
    source_init(&s, length, 3, 5);
    leat_sequence sequence = source_sequence(&s);
    source_entry expected[most];
    int64_t count = expected_without(&sequence, LEAT_SHUFFLE_NONE, fourth, expected);
    s.fail_at = 3;
    FOR_EACH_MODE(mode) {
        memset(s.counts->gets_of, 0, sizeof s.counts->gets_of);
        leat_feed_options options = skipping(mode, LEAT_SHUFFLE_NONE);
        options.faults.retries = 2;
        leat_feed_stats stats = deliver(&sequence, &options, expected, count);
        assert_int_equal(stats.retries, 2 * passes);
        assert_int_equal(stats.skips, passes);
        assert_int_equal(atomic_load(&s.counts->gets_of[3]), 3 * passes);
        options.faults.bad_batch = LEAT_BAD_BATCH_FAIL;
        leat_feed *feed = source_open(&sequence, &options);
        source_entry seen[most];
        leat_error end = {0};
        assert_int_equal(source_record(feed, seen, most, &end), 3);
        source_compare(seen, expected, 3);
        assert_int_equal(end.code, LEAT_EUSER);
        assert_non_null(strstr(end.message, "batch 3 of pass 0: "));
        assert_non_null(strstr(end.message, "sample 41 of the file is damaged"));
        leat_feed_close(&feed);
    }
    source_fini(&s);
}

static void pass_of_bad_batches_alone_is_an_error(void **state) {
    (void)state;
    FOR_EACH_MODE(mode) {
        for (int hook = 0; hook < 2; ++hook) {
            source s;
            source_init(&s, length, 3, 5);
            s.fail_at = 0;
            s.fail_every = 1;
            leat_sequence sequence = hook ? source_sequence_with_hook(&s, true) : source_sequence(&s);
            leat_feed_options options = skipping(mode, LEAT_SHUFFLE_BATCHES);
            options.passes = 0;
            leat_feed *feed = source_open(&sequence, &options);
            for (int again = 0; again < 2; ++again) {
                const leat_batch *batch = NULL;
                leat_error err = {0};
                assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_EINVAL);
                assert_non_null(strstr(err.message, "pass 0"));
            }
            leat_feed_close(&feed);
            source_fini(&s);
        }
    }
}

static void await_knows_what_is_left(void **state) {
    (void)state;
    source s;
    source_init(&s, 4, 3, 5);
    s.fail_at = 3; /* the last batch */
    leat_sequence sequence = source_sequence(&s);
    FOR_EACH_MODE(mode) {
        leat_feed_options options = skipping(mode, LEAT_SHUFFLE_NONE);
        options.passes = 2;
        leat_feed *feed = source_open(&sequence, &options);
        for (int pass = 0; pass < 2; ++pass) {
            bool more = false;
            leat_error err = {0};
            for (int i = 0; i < 3; ++i) {
                assert_int_equal(leat_feed_await(feed, &more, &err), LEAT_OK);
                assert_true(more);
                const leat_batch *batch = NULL;
                assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_OK);
                assert_int_equal(leat_feed_position_get(feed).index, i);
                leat_feed_release(feed);
            }
            for (int again = 0; again < 2; ++again) {
                assert_int_equal(leat_feed_await(feed, &more, &err), LEAT_OK);
                assert_false(more);
            }
            assert_int_equal(leat_feed_end_pass(feed, &err), LEAT_OK);
            assert_int_equal(leat_feed_await(feed, &more, &err), LEAT_OK);
            assert_int_equal(more, pass == 0);
        }
        assert_int_equal(leat_feed_stats_get(feed).skips, 2);
        leat_feed_close(&feed);
    }
    source_fini(&s);
}

static void await_tells_an_error(void **state) {
    (void)state;
    source s;
    source_init(&s, 4, 3, 5);
    s.fail_at = 2;
    leat_sequence sequence = source_sequence(&s);
    FOR_EACH_MODE(mode) {
        leat_feed_options options = source_options(mode);
        leat_feed *feed = source_open(&sequence, &options);
        source_digest(feed, 2);
        bool more = false;
        leat_error err = {0};
        assert_int_equal(leat_feed_await(feed, &more, &err), LEAT_EUSER);
        assert_non_null(strstr(err.message, "batch 2 of pass 0: "));
        const leat_batch *batch = NULL;
        assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_EUSER);
        leat_feed_close(&feed);
    }
    source_fini(&s);
}

/* A batch is bad after max_deaths worker processes have died while they made it. */
static void deaths_count_up_to_the_bound(void **state) {
    (void)state;
    source s;
    source_init(&s, length, 3, 5);
    leat_sequence sequence = source_sequence(&s);
    source_entry all[most], fewer[most];
    expected_without(&sequence, LEAT_SHUFFLE_NONE, none, all);
    int64_t count = expected_without(&sequence, LEAT_SHUFFLE_NONE, fourth, fewer);
    s.kill_at = 3;
    s.kill_signal = SIGKILL;
    for (int bound = 1; bound <= 3; bound += 2)
        for (int workers = 1; workers <= 3; workers += 2) {
            leat_feed_options options = skipping((feed_mode){workers, true}, LEAT_SHUFFLE_NONE);
            options.faults.max_deaths = bound;
            atomic_store(&s.counts->kills_left, bound - 1);
            leat_feed_stats stats = deliver(&sequence, &options, all, most);
            assert_int_equal(stats.skips, 0);
            assert_int_equal(stats.worker_deaths, bound - 1);
            atomic_store(&s.counts->kills_left, 1000);
            stats = deliver(&sequence, &options, fewer, count);
            assert_int_equal(stats.skips, passes);
            assert_int_equal(stats.worker_deaths, bound * passes);
            atomic_store(&s.counts->kills_left, 1000);
            options.faults.bad_batch = LEAT_BAD_BATCH_FAIL;
            leat_feed *feed = source_open(&sequence, &options);
            source_digest(feed, 3);
            const leat_batch *batch = NULL;
            leat_error err = {0};
            assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_EWORKER);
            char part[64];
            snprintf(part, sizeof part, "batch 3 of pass 0: %d worker process", bound);
            assert_memory_equal(err.message, part, strlen(part));
            assert_non_null(strstr(err.message, "signal 9"));
            leat_feed_close(&feed);
        }
    source_fini(&s);
}

/* Batches of several types, with one number that is not finite. */
typedef struct gauge {
    leat_dtype dtype;
    double value; /* put into batch 2 */
    int tensor;   /* 0: the input of type dtype; 1: the weights, which are f32 */
    bool last;    /* at the end of the last sample; false: at the beginning of the first */
    bool borrowed;
    union {
        float f32[64];
        double f64[64];
        int64_t i64[64];
    } own;
} gauge;

static int64_t gauge_length(void *user) {
    (void)user;
    return 5;
}

static void put(leat_dtype dtype, void *data, int64_t at, double value) {
    leati_convert(dtype, (char *)data + (size_t)at * leat_dtype_bytes(dtype), LEAT_F64, &value, 1);
}

static leat_status gauge_get(void *user, int64_t index, leat_rng *rng, leat_batch *batch, leat_error *err) {
    gauge *g = user;
    (void)rng;
    (void)err;
    batch->size = 3; /* of 4: the old bytes of the fourth sample do not count */
    for (int t = 0; t < 2; ++t) {
        leat_tensor *tensor = &batch->tensors[t];
        int64_t width = t == 0 ? 5 : 1;
        leat_dtype dtype = t == 0 ? g->dtype : LEAT_F32;
        for (int64_t i = 0; i < 4 * width; ++i)
            put(dtype, tensor->data, i, i < 3 * width ? (double)(index + i) : (double)NAN);
        if (index == 2 && t == g->tensor) put(dtype, tensor->data, g->last ? 3 * width - 1 : 0, g->value);
    }
    if (g->borrowed && index == 2) {
        memcpy(&g->own, batch->tensors[0].data, 3 * 5 * leat_dtype_bytes(g->dtype));
        batch->tensors[0].data = &g->own;
    }
    return LEAT_OK;
}

static leat_sequence gauge_sequence(gauge *g) {
    static const int64_t shape[] = {5};
    leat_sequence sequence = leat_sequence_default();
    leat_error err = {0};
    sequence.user = g;
    sequence.spec.batch_size = 4;
    assert_int_equal(leat_batch_spec_add(&sequence.spec, LEAT_PART_INPUT, "x", g->dtype, 1, shape, &err), 0);
    assert_int_equal(leat_batch_spec_add(&sequence.spec, LEAT_PART_SAMPLE_WEIGHT, "w", LEAT_F32, 0, NULL,
                                         &err),
                     0);
    sequence.length = gauge_length;
    sequence.get = gauge_get;
    return sequence;
}

static void expect_finite(gauge *g, feed_mode mode, bool good) {
    leat_sequence sequence = gauge_sequence(g);
    leat_feed_options options = leat_feed_options_default();
    options.workers = mode.workers;
    options.use_multiprocessing = mode.processes;
    options.passes = 1;
    for (int check = 0; check < 3; ++check) { /* off; fail; skip */
        options.faults.check_finite = check > 0;
        options.faults.bad_batch = check == 2 ? LEAT_BAD_BATCH_SKIP : LEAT_BAD_BATCH_FAIL;
        leat_feed *feed = source_open(&sequence, &options);
        source_entry seen[8];
        leat_error end = {0};
        int64_t count = source_record(feed, seen, 8, &end);
        bool found = check > 0 && !good;
        assert_int_equal(count, !found ? 5 : check == 1 ? 2 : 4);
        assert_int_equal(end.code, found && check == 1 ? LEAT_EUSER : LEAT_ENOTFOUND);
        if (end.code == LEAT_EUSER) {
            assert_non_null(strstr(end.message, "batch 2 of pass 0: "));
            assert_non_null(strstr(end.message, g->tensor ? "'w'" : "'x'"));
        }
        assert_int_equal(leat_feed_stats_get(feed).skips, found && check == 2);
        leat_feed_close(&feed);
    }
}

static void numbers_that_are_not_finite_are_found(void **state) {
    (void)state;
    static const double values[] = {(double)NAN, (double)INFINITY, (double)-INFINITY, 3.4028234e38, -0.0};
    static const leat_dtype types[] = {LEAT_F32, LEAT_F64, LEAT_F16};
    FOR_EACH_MODE(mode) {
        for (int t = 0; t < 3; ++t)
            for (int v = 0; v < 5; ++v)
                for (int last = 0; last < 2; ++last) {
                    gauge g = {.dtype = types[t], .value = values[v], .last = last};
                    if (v == 3 && g.dtype == LEAT_F16) g.value = 65504; /* the largest f16 number */
                    expect_finite(&g, mode, v >= 3);
                }
        gauge weight = {.dtype = LEAT_F32, .tensor = 1, .value = (double)NAN, .last = true};
        expect_finite(&weight, mode, false);
        gauge borrowed = {.dtype = LEAT_F64, .borrowed = true, .value = (double)NAN, .last = true};
        expect_finite(&borrowed, mode, false);
    }
}

static void bad_policies_are_refused(void **state) {
    (void)state;
    source s;
    source_init(&s, 5, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    static const struct {
        leat_faults faults;
        const char *part;
    } wrong[] = {{{.bad_batch = (leat_bad_batch)7, .max_deaths = 3}, "bad_batch"},
                 {{.retries = -1, .max_deaths = 3}, "retries is -1"},
                 {{.max_deaths = 0}, "max_deaths is 0"},
                 {{.max_deaths = 3, .deadline_ms = -5}, "deadline_ms is -5"}};
    FOR_EACH_MODE(mode) {
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
            leat_feed_options options = source_options(mode);
            options.faults = wrong[i].faults;
            leat_feed *feed = NULL;
            leat_error err = {0};
            assert_int_equal(leat_feed_open(&feed, &sequence, &options, &err), LEAT_EINVAL);
            assert_null(feed);
            if (!strstr(err.message, wrong[i].part)) fail_msg("%s", err.message);
        }
    }
    source_fini(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(skip_passes_over_what_fails),
        cmocka_unit_test(skip_at_the_beginning),
        cmocka_unit_test(skip_passes_over_wrong_shapes),
        cmocka_unit_test(sequence_may_say_that_there_is_no_such_batch),
        cmocka_unit_test(retry_makes_the_same_batch),
        cmocka_unit_test(retries_are_as_many_as_were_asked_for),
        cmocka_unit_test(pass_of_bad_batches_alone_is_an_error),
        cmocka_unit_test(await_knows_what_is_left),
        cmocka_unit_test(await_tells_an_error),
        cmocka_unit_test(deaths_count_up_to_the_bound),
        cmocka_unit_test(numbers_that_are_not_finite_are_found),
        cmocka_unit_test(bad_policies_are_refused),
    };
    alarm(240);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
