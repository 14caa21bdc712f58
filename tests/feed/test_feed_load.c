/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads under load: many operations at once, so that the thread sanitizer can find races. */
#include "cmocka_all.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "feed/source.h"

enum { feeds = 4, generator = 3 };

/* Threads that compute at the same time, so that workers are preempted at any point. */
typedef struct burners {
    pthread_t threads[3];
    _Atomic int stop;
} burners;

static void *burn(void *argument) {
    burners *b = argument;
    volatile double x = 1;
    while (!atomic_load_explicit(&b->stop, memory_order_relaxed))
        for (int i = 0; i < 1000; ++i) x = x * 1.0000001 + 1e-9;
    return NULL;
}

static void burners_start(burners *b) {
    atomic_store(&b->stop, 0);
    for (int i = 0; i < 3; ++i) assert_int_equal(pthread_create(&b->threads[i], NULL, burn, b), 0);
}

static void burners_end(burners *b) {
    atomic_store(&b->stop, 1);
    for (int i = 0; i < 3; ++i) pthread_join(b->threads[i], NULL);
}

static uint64_t in_line_stream(const leat_sequence *sequence, leat_feed_options options, int64_t batches) {
    options.workers = 0;
    return source_stream(sequence, &options, batches);
}

/* Short and long queues, more workers than cores, batches that cost nothing and batches that vary in cost. */
static void many_threads_deliver_one_stream(void **state) {
    (void)state;
    static const int workers[] = {2, 3, 8, 16}, queues[] = {1, 2, 7, 64};
    burners b;
    burners_start(&b);
    for (int w = 0; w < 4; ++w)
        for (int q = 0; q < 4; ++q) {
            source s;
            source_init(&s, 17, 4, 8);
            leat_sequence sequence = source_sequence_with_hook(&s, true);
            source_state fresh = s.state;
            leat_feed_options options = source_options((feed_mode){workers[w], false});
            options.shuffle = LEAT_SHUFFLE_BATCHES;
            options.max_queue_size = queues[q];
            uint64_t expected = in_line_stream(&sequence, options, 150);
            s.state = fresh;
            atomic_store(&s.counts->hooks, 0);
            s.delay_us = q % 2 * 100;
            assert_int_equal(source_stream(&sequence, &options, 150), expected);
            assert_int_equal(atomic_load(&s.counts->hook_overtaken), 0);
            source_fini(&s);
        }
    burners_end(&b);
}

/* Threads that skip and retry batches of several feeds on one pool; one of the feeds has a generator. */
static void open_crew(source *s, leat_sequence *sequences, leat_feed **feed, int workers) {
    leat_feed_config plans[feeds];
    leat_feed_options all_options[feeds];
    for (int i = 0; i < feeds; ++i) {
        source_init(&s[i], 11 + i, 3, 6);
        if (i == generator) s[i].length = -1;
        if (i == 1) {
            s[i].fail_every = 4;
            s[i].fail_at = 2;
        }
        s[i].delay_us = 50;
        sequences[i] = i == generator ? source_generator(&s[i])
                       : i == 0       ? source_sequence_with_hook(&s[i], true)
                                      : source_sequence(&s[i]);
        leat_feed_options options = source_options((feed_mode){workers, false});
        options.shuffle = i == generator ? LEAT_SHUFFLE_NONE : LEAT_SHUFFLE_BATCHES;
        options.faults.bad_batch = LEAT_BAD_BATCH_SKIP;
        options.faults.retries = 1;
        options.faults.check_finite = true;
        options.max_queue_size = 1 + 3 * i;
        all_options[i] = options;
        plans[i] = (leat_feed_config){.sequence = &sequences[i], .options = &all_options[i]};
    }
    leat_error err = {0};
    if (leat_feed_open_together(feed, plans, feeds, &err) != LEAT_OK) fail_msg("%s", err.message);
}

static void crews_serve_feeds_with_bad_batches(void **state) {
    (void)state;
    burners b;
    burners_start(&b);
    uint64_t expected[feeds] = {0};
    for (int workers = 0; workers <= 6; workers += 3) {
        source s[feeds];
        leat_sequence sequences[feeds];
        leat_feed *feed[feeds];
        uint64_t seen[feeds] = {0};
        resources before = resources_now();
        open_crew(s, sequences, feed, workers);
        for (int round = 0; round < 25; ++round)
            for (int i = 0; i < feeds; ++i) seen[i] = seen[i] * 31 + source_digest(feed[i], 3);
        for (int i = 0; i < feeds; ++i) {
            if (workers == 0) expected[i] = seen[i];
            assert_int_equal(seen[i], expected[i]);
            leat_feed_stats stats = leat_feed_stats_get(feed[i]);
            assert_int_equal(stats.batches, 75);
            assert_int_equal(stats.skips > 0, i == 1);
            assert_int_equal(atomic_load(&s[i].counts->crossed), 0);
        }
        for (int i = 0; i < feeds; ++i) leat_feed_close(&feed[i]);
        resources_check(before);
        for (int i = 0; i < feeds; ++i) source_fini(&s[i]);
    }
    burners_end(&b);
}

typedef struct stopper {
    leat_feed *feed;
    int64_t after_us;
    int times;
} stopper;

static void *stop_later(void *argument) {
    const stopper *s = argument;
    sleep_us(s->after_us);
    for (int i = 0; i < s->times; ++i) leat_feed_stop(s->feed);
    return NULL;
}

/* Another thread stops feeds at any moment, while this thread takes batches, runs hooks and reads figures. */
static void other_threads_may_stop_at_any_moment(void **state) {
    (void)state;
    uint64_t random = 99;
    for (int i = 0; i < 60; ++i) {
        source s;
        source_init(&s, 5, 2, 3);
        s.delay_us = i % 3 * 100;
        leat_sequence sequence = i % 2 ? source_sequence_with_hook(&s, true) : source_sequence(&s);
        leat_feed_options options = source_options((feed_mode){1 + i % 4, false});
        options.max_queue_size = 1 + i % 5;
        resources before = resources_now();
        leat_feed *feed = source_open(&sequence, &options);
        random = random * 6364136223846793005u + 1442695040888963407u;
        stopper other = {.feed = feed, .after_us = (int64_t)(random >> 33) % 8000, .times = 1 + i % 2};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, stop_later, &other), 0);
        leat_status status = LEAT_OK;
        while (status == LEAT_OK) {
            const leat_batch *batch = NULL;
            leat_error err = {0};
            status = leat_feed_get(feed, &batch, &err);
            leat_feed_stats_get(feed);
            leat_feed_ready_count(feed);
            leat_feed_release(feed);
        }
        assert_int_equal(status, LEAT_ESTOPPED);
        pthread_join(thread, NULL);
        leat_feed_close(&feed);
        resources_check(before);
        source_fini(&s);
    }
}

/* Figures are read while workers write them. */
static void figures_may_be_read_at_any_time(void **state) {
    (void)state;
    source s;
    source_init(&s, 50, 2, 3);
    s.delay_us = 100;
    leat_sequence sequence = source_sequence(&s);
    leat_feed_options options = source_options((feed_mode){4, false});
    leat_feed *feed = source_open(&sequence, &options);
    leat_feed_depth depths[16];
    for (int i = 0; i < 300; ++i) {
        source_digest(feed, 1);
        leat_feed_stats stats = leat_feed_stats_get(feed);
        assert_int_equal(stats.batches, i + 1);
        for (int w = 0; w < stats.workers; ++w) {
            double busy = leat_feed_worker_busy(feed, w);
            assert_true(busy >= 0 && busy <= 1);
        }
        int count = leat_feed_depths(feed, depths, 16);
        assert_true(count >= 1 && count <= 16);
        for (int d = 1; d < count; ++d) assert_true(depths[d].time_ns >= depths[d - 1].time_ns);
    }
    leat_feed_close(&feed);
    source_fini(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_threads_deliver_one_stream),
        cmocka_unit_test(crews_serve_feeds_with_bad_batches),
        cmocka_unit_test(other_threads_may_stop_at_any_moment),
        cmocka_unit_test(figures_may_be_read_at_any_time),
    };
    alarm(280);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
