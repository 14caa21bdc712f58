/* SPDX-License-Identifier: Apache-2.0 */
/* Several feeds on one pool: each keeps its data and order, whatever happens to the others; one helper and one set of
 * workers serve all feeds. */
#include "cmocka_all.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "feed/procs.h"
#include "feed/source.h"

enum { feeds = 5, taken = 40, generator = 4 };

static const feed_mode modes[] = {{0, false}, {1, false}, {3, false}, {1, true}, {3, true}};
static const feed_mode in_line = {0};

#define FOR_EACH_MODE(mode)                                                                                  \
    for (size_t m = 0; m < sizeof modes / sizeof *modes; ++m)                                                \
        for (feed_mode mode = modes[m], *once = &mode; once; once = NULL)

/* Five feeds: training with a hook, validation, two feeds with other shapes, and a generator. */
typedef struct family {
    source sources[feeds];
    leat_sequence sequences[feeds];
    source_entry expected[feeds][taken];
} family;

static leat_feed_options options_of(int which, feed_mode mode) {
    leat_feed_options options = source_options(mode);
    options.shuffle = which == 0 || which == 2 ? LEAT_SHUFFLE_BATCHES : LEAT_SHUFFLE_NONE;
    options.seed = 100 + (uint64_t)which;
    options.max_queue_size = 2 + which;
    return options;
}

static void rewind_sources(family *f) {
    for (int i = 0; i < feeds; ++i) {
        f->sources[i].state = (source_state){.scale = 1 + i};
        f->sources[i].made = 0;
        memset(f->sources[i].counts, 0, sizeof *f->sources[i].counts);
        atomic_store(&f->sources[i].counts->fails_left, INT64_MAX);
    }
}

static void family_init(family *f) {
    for (int i = 0; i < feeds; ++i) {
        source *s = &f->sources[i];
        source_init(s, 7 + 4 * i, 2 + i, 5 + i);
        s->length = i == generator ? -1 : s->length;
        f->sequences[i] = i == generator ? source_generator(s)
                          : i == 0       ? source_sequence_with_hook(s, true)
                                         : source_sequence(s);
    }
    rewind_sources(f);
    for (int i = 0; i < feeds; ++i) {
        leat_feed_options options = options_of(i, in_line);
        leat_feed *feed = source_open(&f->sequences[i], &options);
        leat_error end = {0};
        assert_int_equal(source_record(feed, f->expected[i], taken, &end), taken);
        leat_feed_close(&feed);
    }
    rewind_sources(f);
}

static void family_fini(family *f) {
    for (int i = 0; i < feeds; ++i) source_fini(&f->sources[i]);
}

/* Opens all feeds.  `change` may change their options. */
static void open_all(family *f, feed_mode mode, leat_feed **out, void (*change)(leat_feed_config *plans)) {
    leat_feed_config plans[feeds] = {0};
    leat_feed_options all_options[feeds];
    for (int i = 0; i < feeds; ++i) {
        all_options[i] = options_of(i, mode);
        plans[i] = (leat_feed_config){.sequence = &f->sequences[i], .options = &all_options[i]};
        if (i == 1 && mode.workers)
            all_options[i].workers = 1; /* the largest number of workers serves all feeds */
    }
    if (change) change(plans);
    leat_error err = {0};
    if (leat_feed_open_together(out, plans, feeds, &err) != LEAT_OK) fail_msg("%s", err.message);
}

static void take(const family *f, leat_feed *feed, int which, int from, int count) {
    source_entry seen[taken];
    leat_error end = {0};
    if (source_record(feed, seen, count, &end) != count) fail_msg("feed %d: %s", which, end.message);
    source_compare(seen, f->expected[which] + from, count);
}

static void check_crossings(const family *f) {
    for (int i = 0; i < feeds; ++i) {
        assert_int_equal(atomic_load(&f->sources[i].counts->hook_overtaken), 0);
        assert_int_equal(atomic_load(&f->sources[i].counts->crossed), 0);
    }
}

static void each_keeps_its_own_data(void **state) {
    (void)state;
    family f;
    family_init(&f);
    FOR_EACH_MODE(mode) {
        resources before = resources_now();
        leat_feed *feed[feeds];
        open_all(&f, mode, feed, NULL);
        for (int i = 0; i < feeds; ++i) take(&f, feed[i], i, 0, 10); /* one feed after the other */
        for (int b = 10; b < 30; ++b)
            for (int i = 0; i < feeds; ++i) take(&f, feed[i], i, b, 1); /* one batch of each feed */
        for (int i = feeds - 1; i >= 0; --i) take(&f, feed[i], i, 30, 10);
        for (int i = 0; i < feeds; ++i) {
            assert_int_equal(leat_feed_stats_get(feed[i]).batches, taken);
            assert_int_equal(leat_feed_close(&feed[i]), 0);
        }
        resources_check(before);
        check_crossings(&f);
        rewind_sources(&f);
    }
    family_fini(&f);
}

static void all_are_served_by_one_helper_and_its_workers(void **state) {
    (void)state;
    family f;
    family_init(&f);
    resources before = resources_now();
    leat_feed *feed[feeds];
    open_all(&f, (feed_mode){3, true}, feed, NULL);
    for (int i = 0; i < feeds; ++i) take(&f, feed[i], i, 0, 10);
    assert_int_equal(resources_now().children, before.children + 1);
    pid_t workers[most_children], helper = helper_of(getpid());
    workers_of(helper, 3, workers);
    assert_int_equal(children_named(getpid(), "leat-helper"), 1);
    for (int i = 0; i < 5000 && children_named(helper, "leat-worker/") < 3; ++i)
        sleep_us(1000); /* workers get their names when they start to run */
    assert_int_equal(children_named(helper, "leat-worker/"), 3);
    for (int i = 0; i < feeds; ++i) {
        assert_int_equal(leat_feed_stats_get(feed[i]).workers, 3);
        assert_int_equal(children_named(helper, "leat-worker/"),
                         3); /* the workers stay until the last feed is closed */
        leat_feed_close(&feed[i]);
    }
    resources_check(before);
    rewind_sources(&f);
    open_all(&f, (feed_mode){3, false}, feed, NULL);
    assert_int_equal(resources_now().threads, before.threads + 3);
    for (int i = 0; i < feeds; ++i) leat_feed_close(&feed[i]);
    resources_check(before);
    family_fini(&f);
}

static void feeds_may_be_closed_in_any_order(void **state) {
    (void)state;
    static const int orders[][feeds] = {
        {0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 0, 4, 1, 3}, {1, 4, 0, 3, 2}, {3, 1, 4, 2, 0}};
    family f;
    family_init(&f);
    FOR_EACH_MODE(mode) {
        for (size_t o = 0; o < sizeof orders / sizeof *orders; ++o) {
            resources before = resources_now();
            leat_feed *feed[feeds];
            open_all(&f, mode, feed, NULL);
            for (int closed = 0; closed < feeds; ++closed) {
                for (int i = closed; i < feeds; ++i)
                    take(&f, feed[orders[o][i]], orders[o][i], closed * 6, 6);
                leat_feed_close(&feed[orders[o][closed]]);
            }
            resources_check(before);
            check_crossings(&f);
            rewind_sources(&f);
        }
    }
    family_fini(&f);
}

static void *stop_soon(void *feed) {
    sleep_us(10000);
    leat_feed_stop(feed);
    return NULL;
}

static void stop_of_one_leaves_the_others_going(void **state) {
    (void)state;
    family f;
    family_init(&f);
    FOR_EACH_MODE(mode) {
        resources before = resources_now();
        leat_feed *feed[feeds];
        atomic_store(&f.sources[1].counts->pause,
                     mode.workers > 1); /* one worker waits in get of this feed */
        open_all(&f, mode, feed, NULL);
        pthread_t stopper;
        assert_int_equal(pthread_create(&stopper, NULL, stop_soon, feed[1]), 0);
        const leat_batch *batch = NULL;
        leat_error err = {0};
        leat_status status = LEAT_OK;
        while ((status = leat_feed_get(feed[1], &batch, &err)) == LEAT_OK) leat_feed_release(feed[1]);
        assert_int_equal(status, LEAT_ESTOPPED);
        pthread_join(stopper, NULL);
        atomic_store(&f.sources[1].counts->pause, 0);
        for (int i = 0; i < feeds; ++i)
            if (i != 1) take(&f, feed[i], i, 0, taken);
        assert_int_equal(leat_feed_get(feed[1], &batch, &err), LEAT_ESTOPPED);
        for (int i = 0; i < feeds; ++i) leat_feed_close(&feed[i]);
        resources_check(before);
        rewind_sources(&f);
    }
    family_fini(&f);
}

static void error_of_one_leaves_the_others_going(void **state) {
    (void)state;
    family f;
    family_init(&f);
    FOR_EACH_MODE(mode) {
        leat_feed *feed[feeds];
        f.sources[1].fail_at = 3;
        open_all(&f, mode, feed, NULL);
        take(&f, feed[1], 1, 0, 3);
        const leat_batch *batch = NULL;
        leat_error err = {0};
        assert_int_equal(leat_feed_get(feed[1], &batch, &err), LEAT_EUSER);
        for (int i = 0; i < feeds; ++i)
            if (i != 1) take(&f, feed[i], i, 0, taken);
        for (int i = 0; i < feeds; ++i) leat_feed_close(&feed[i]);
        f.sources[1].fail_at = -1;
        rewind_sources(&f);
    }
    family_fini(&f);
}

/* Workers die while they serve five feeds.  The generator's process is not killed, because its batches cannot be made
 * again. */
static void deaths_change_no_stream(void **state) {
    (void)state;
    family f;
    family_init(&f);
    leat_feed *feed[feeds];
    for (int i = 0; i < generator; ++i) {
        f.sources[i].kill_at = 2 + i;
        f.sources[i].kill_signal = SIGKILL;
        f.sources[i].delay_us = 300;
    }
    for (int workers = 2; workers <= 3; ++workers) {
        resources before = resources_now();
        for (int i = 0; i < generator; ++i) atomic_store(&f.sources[i].counts->kills_left, 2);
        leat_feed_config plans[generator];
        leat_feed_options all_options[generator];
        for (int i = 0; i < generator; ++i) {
            all_options[i] = options_of(i, (feed_mode){workers, true});
            plans[i] = (leat_feed_config){.sequence = &f.sequences[i], .options = &all_options[i]};
        }
        leat_error err = {0};
        if (leat_feed_open_together(feed, plans, generator, &err) != LEAT_OK) fail_msg("%s", err.message);
        for (int b = 0; b < taken; ++b)
            for (int i = 0; i < generator; ++i) take(&f, feed[i], i, b, 1);
        int64_t deaths = 0;
        for (int i = 0; i < generator; ++i) {
            assert_int_equal(leat_feed_stats_get(feed[i]).skips, 0);
            deaths += leat_feed_stats_get(feed[i]).worker_deaths;
        }
        assert_true(deaths >= 2 * generator);
        check_crossings(&f);
        for (int i = 0; i < generator; ++i) leat_feed_close(&feed[i]);
        resources_check(before);
        rewind_sources(&f);
    }
    family_fini(&f);
}

/* If the owner of a generator dies, the generator's stream ends with an error, and the others continue. */
static void death_of_a_generators_process_ends_it_alone(void **state) {
    (void)state;
    family f;
    family_init(&f);
    resources before = resources_now();
    f.sources[generator].kill_at = 12;
    f.sources[generator].kill_signal = SIGKILL;
    atomic_store(&f.sources[generator].counts->kills_left, 1);
    leat_feed *feed[feeds];
    open_all(&f, (feed_mode){3, true}, feed, NULL);
    take(&f, feed[generator], generator, 0, 12); /* batches that were made before are delivered */
    const leat_batch *batch = NULL;
    leat_error err = {0};
    assert_int_equal(leat_feed_get(feed[generator], &batch, &err), LEAT_EWORKER);
    assert_non_null(strstr(err.message, "generator"));
    assert_non_null(strstr(err.message, "signal 9"));
    for (int i = 0; i < generator; ++i) take(&f, feed[i], i, 0, taken);
    for (int i = 0; i < feeds; ++i) leat_feed_close(&feed[i]);
    resources_check(before);
    family_fini(&f);
}

/* Each generator is called by one worker only, and has one of its own if there are enough. */
static void generators_have_one_owner_each(void **state) {
    (void)state;
    FOR_EACH_MODE(mode) {
        source s[3];
        leat_sequence sequences[3];
        leat_feed_config plans[3];
        leat_feed_options all_options[3];
        leat_feed *feed[3];
        for (int i = 0; i < 3; ++i) {
            source_init(&s[i], 50, 2, 3);
            s[i].delay_us = 200;
            sequences[i] = source_generator(&s[i]);
            all_options[i] = source_options(mode);
            plans[i] = (leat_feed_config){.sequence = &sequences[i], .options = &all_options[i]};
        }
        leat_error err = {0};
        if (leat_feed_open_together(feed, plans, 3, &err) != LEAT_OK) fail_msg("%s", err.message);
        assert_int_equal(leat_feed_stats_get(feed[0]).workers, mode.workers < 3 ? mode.workers : 3);
        for (int b = 0; b < 50; ++b)
            for (int i = 0; i < 3; ++i) {
                const leat_batch *batch = NULL;
                if (leat_feed_get(feed[i], &batch, &err) != LEAT_OK) fail_msg("%s", err.message);
                assert_int_equal(((const int64_t *)batch->tensors[1].data)[0], b * 1000);
                leat_feed_release(feed[i]);
            }
        for (int i = 0; i < 3; ++i) {
            const leat_batch *batch = NULL;
            assert_int_equal(leat_feed_get(feed[i], &batch, &err), LEAT_ENOTFOUND);
            assert_int_equal(atomic_load(&s[i].counts->crossed), 0);
            assert_int_equal(atomic_load(&s[i].counts->gets), 50);
        }
        for (int i = 0; i < 3; ++i) leat_feed_close(&feed[i]);
        for (int i = 0; i < 3; ++i) source_fini(&s[i]);
    }
}

static void start_later(leat_feed_config *plans) {
    for (int i = 0; i < generator; ++i) plans[i].at = (leat_feed_position){.ordinal = 3};
}

static void plans_may_begin_anywhere(void **state) {
    (void)state;
    family f;
    family_init(&f);
    FOR_EACH_MODE(mode) {
        leat_feed *feed[feeds];
        open_all(&f, mode, feed, start_later);
        for (int i = 0; i < feeds; ++i) take(&f, feed[i], i, i == generator ? 0 : 3, 30);
        for (int i = 0; i < feeds; ++i) leat_feed_close(&feed[i]);
        rewind_sources(&f);
    }
    family_fini(&f);
}

/* Some feeds have no workers, the others are served by the pool. */
static void some_may_be_made_in_line(void **state) {
    (void)state;
    family f;
    family_init(&f);
    for (size_t m = 1; m < sizeof modes / sizeof *modes; ++m) {
        leat_feed_config plans[feeds] = {0};
        leat_feed_options all_options[feeds];
        leat_feed *feed[feeds];
        for (int i = 0; i < feeds; ++i) {
            all_options[i] = options_of(i, i % 2 ? in_line : modes[m]);
            plans[i] = (leat_feed_config){.sequence = &f.sequences[i], .options = &all_options[i]};
        }
        leat_error err = {0};
        if (leat_feed_open_together(feed, plans, feeds, &err) != LEAT_OK) fail_msg("%s", err.message);
        for (int i = 0; i < feeds; ++i) take(&f, feed[i], i, 0, taken);
        for (int i = 0; i < feeds; ++i) leat_feed_close(&feed[i]);
        rewind_sources(&f);
    }
    family_fini(&f);
}

static void wrong_plans_are_refused(void **state) {
    (void)state;
    family f;
    family_init(&f);
    for (int wrong = 0; wrong < 3; ++wrong) {
        resources before = resources_now();
        leat_feed_config plans[feeds] = {0};
        leat_feed_options all_options[feeds];
        leat_feed *feed[feeds];
        for (int i = 0; i < feeds; ++i) {
            all_options[i] = options_of(i, (feed_mode){2, true});
            plans[i] = (leat_feed_config){.sequence = &f.sequences[i], .options = &all_options[i]};
            feed[i] = (leat_feed *)(uintptr_t)1;
        }
        if (wrong == 0) all_options[2].use_multiprocessing = false;
        if (wrong == 1) all_options[feeds - 1].max_queue_size = 0;
        if (wrong == 2) plans[3].at.ordinal = 1000;
        leat_error err = {0};
        assert_int_equal(leat_feed_open_together(feed, plans, feeds, &err), LEAT_EINVAL);
        assert_true(err.message[0] != '\0');
        for (int i = 0; i < feeds; ++i) assert_null(feed[i]);
        resources_check(before);
    }
    family_fini(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_keeps_its_own_data),
        cmocka_unit_test(all_are_served_by_one_helper_and_its_workers),
        cmocka_unit_test(feeds_may_be_closed_in_any_order),
        cmocka_unit_test(stop_of_one_leaves_the_others_going),
        cmocka_unit_test(error_of_one_leaves_the_others_going),
        cmocka_unit_test(deaths_change_no_stream),
        cmocka_unit_test(death_of_a_generators_process_ends_it_alone),
        cmocka_unit_test(generators_have_one_owner_each),
        cmocka_unit_test(plans_may_begin_anywhere),
        cmocka_unit_test(some_may_be_made_in_line),
        cmocka_unit_test(wrong_plans_are_refused),
    };
    alarm(280);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
