/* SPDX-License-Identifier: Apache-2.0 */
/* The n-th allocation in the life of a feed fails, for every n and in every mode.  Delivering batches allocates
 * nothing. */
#include "cmocka_all.h"

#include <string.h>

#include "feed/source.h"
#include "support/memory_failing.h"

static const feed_mode modes[] = {{0, false}, {2, false}, {2, true}};

static leat_status life(const leat_sequence *sequence, feed_mode mode, int batches, leat_error *err) {
    leat_feed_options options = source_options(mode);
    options.shuffle = LEAT_SHUFFLE_BATCHES;
    leat_feed *feed = NULL;
    leat_status status = leat_feed_open(&feed, sequence, &options, err);
    for (int i = 0; i < batches && status == LEAT_OK; ++i) {
        const leat_batch *batch = NULL;
        status = leat_feed_get(feed, &batch, err);
        leat_feed_release(feed);
    }
    leat_feed_close(&feed);
    return status;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    source s;
    source_init(&s, 5, 2, 3);
    for (size_t m = 0; m < sizeof modes / sizeof *modes; ++m)
        for (int declares_state = 0; declares_state < 2; ++declares_state) {
            leat_sequence sequence = source_sequence_with_hook(&s, declares_state);
            int64_t failures = 0, live = memory_live();
            for (bool more = true; more;) {
                resources before = resources_now();
                s.state.pass = 0;
                memory_fail_at(failures + 1);
                leat_error err = {0};
                leat_status status = life(&sequence, modes[m], 13, &err);
                more = memory_failed();
                assert_int_equal(status, more ? LEAT_ENOMEM : LEAT_OK);
                if (more) assert_non_null(strstr(err.message, "no memory for"));
                assert_int_equal(memory_live(), live);
                resources_check(before);
                failures += more;
            }
            assert_true(failures >= 1);
        }
    memory_fail_at(0);
    source_fini(&s);
}

/* Feeds that are opened together: shuffled samples, a generator, a feed with the option memory, a feed without
 * workers. */
enum { feeds = 4, samples = 0, generator = 1, budget = 2, in_line = 3 };

static void plan_all(source *s, leat_sequence *sequences, feed_mode mode, leat_feed_options *options,
                     leat_feed_config *plans) {
    sequences[samples] = source_sequence_of_samples(&s[samples], 17);
    sequences[generator] = source_generator(&s[generator]);
    sequences[budget] = source_sequence_with_hook(&s[budget], true);
    sequences[in_line] = source_sequence_of_samples(&s[in_line], 11);
    for (int i = 0; i < feeds; ++i) {
        options[i] = source_options(i == in_line ? (feed_mode){0} : mode);
        plans[i] = (leat_feed_config){.sequence = &sequences[i], .options = &options[i]};
    }
    options[samples].shuffle = LEAT_SHUFFLE_SAMPLES;
    options[in_line].shuffle = LEAT_SHUFFLE_WINDOW;
    options[in_line].shuffle_window = 4;
    plans[samples].at = (leat_feed_position){.pass = 2, .ordinal = 1};
    options[budget].memory = 64 << 10;
    options[budget].faults = (leat_faults){.bad_batch = LEAT_BAD_BATCH_SKIP, .max_deaths = 2};
}

static leat_status life_together(source *s, feed_mode mode, leat_error *err) {
    leat_sequence sequences[feeds];
    leat_feed_options options[feeds];
    leat_feed_config plans[feeds];
    leat_feed *feed[feeds];
    plan_all(s, sequences, mode, options, plans);
    leat_status status = leat_feed_open_together(feed, plans, feeds, err);
    for (int i = 0; i < 4 * feeds && status == LEAT_OK; ++i) {
        const leat_batch *batch = NULL;
        status = leat_feed_get(feed[i % feeds], &batch, err);
        leat_feed_release(feed[i % feeds]);
    }
    for (int i = 0; i < feeds; ++i) leat_feed_close(&feed[i]);
    return status;
}

static void rewind_sources(source *s) {
    for (int i = 0; i < feeds; ++i) {
        s[i].made = 0;
        s[i].state = (source_state){.scale = 1};
        atomic_store(&s[i].counts->hooks, 0);
        atomic_store(&s[i].counts->owner, 0);
    }
}

static void every_allocation_of_feeds_together_may_fail(void **state) {
    (void)state;
    source s[feeds];
    for (int i = 0; i < feeds; ++i) source_init(&s[i], 5, 2, 3);
    for (size_t m = 0; m < sizeof modes / sizeof *modes; ++m) {
        int64_t failures = 0, live = memory_live();
        for (bool more = true; more;) {
            resources before = resources_now();
            rewind_sources(s);
            memory_fail_at(failures + 1);
            leat_error err = {0};
            leat_status status = life_together(s, modes[m], &err);
            more = memory_failed();
            if (status != (more ? LEAT_ENOMEM : LEAT_OK))
                fail_msg("allocation %lld: %d, %s", (long long)failures + 1, (int)status, err.message);
            if (more) assert_non_null(strstr(err.message, "no memory for"));
            assert_int_equal(memory_live(), live);
            resources_check(before);
            failures += more;
        }
        assert_true(failures >= 6);
    }
    memory_fail_at(0);
    for (int i = 0; i < feeds; ++i) source_fini(&s[i]);
}

static void delivery_allocates_nothing(void **state) {
    (void)state;
    source s;
    source_init(&s, 5, 2, 3);
    leat_sequence sequence = source_sequence_with_hook(&s, true);
    for (size_t m = 0; m < sizeof modes / sizeof *modes; ++m) {
        leat_feed_options options = source_options(modes[m]);
        leat_feed *feed = source_open(&sequence, &options);
        memory_fail_at(0);
        source_digest(feed, 40);
        assert_int_equal(memory_calls(), 0);
        leat_feed_close(&feed);
        leat_sequence by_samples = source_sequence_of_samples(&s, 11);
        options.shuffle = LEAT_SHUFFLE_SAMPLES;
        feed = source_open(&by_samples, &options);
        memory_fail_at(0);
        source_digest(feed, 40);
        assert_int_equal(memory_calls(), 0);
        leat_feed_close(&feed);
    }
    source_fini(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(every_allocation_of_feeds_together_may_fail),
        cmocka_unit_test(delivery_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
