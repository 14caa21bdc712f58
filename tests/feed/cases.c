/* SPDX-License-Identifier: Apache-2.0 */
/* The feed's contract, for every kind and number of workers. */
#include "feed/cases.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define FOR_EACH_MODE(mode)                                                                                  \
    for (int m = 0; m < mode_count; ++m)                                                                     \
        for (feed_mode mode = modes[m], *once = &mode; once; once = NULL)

static const feed_mode in_line = {0};

void stream_is_the_same_for_all_workers(void **state) {
    (void)state;
    source s;
    source_init(&s, 13, 4, 10);
    leat_sequence sequence = source_sequence(&s);
    leat_feed_options plain = source_options(in_line);
    uint64_t expected = source_stream(&sequence, &plain, 60);
    s.delay_us = 800;
    FOR_EACH_MODE(mode) {
        leat_feed_options options = source_options(mode);
        assert_int_equal(source_stream(&sequence, &options, 60), expected);
        options.max_queue_size = 1;
        assert_int_equal(source_stream(&sequence, &options, 60), expected);
        options.max_queue_size = 40; /* several passes ahead */
        assert_int_equal(source_stream(&sequence, &options, 60), expected);
        options.seed = 78;
        assert_int_not_equal(source_stream(&sequence, &options, 60), expected);
    }
    source_fini(&s);
}

void shuffled_stream_is_the_same_for_all_workers(void **state) {
    (void)state;
    source s;
    source_init(&s, 13, 4, 10);
    leat_sequence sequence = source_sequence(&s);
    leat_feed_options plain = source_options(in_line);
    uint64_t in_order = source_stream(&sequence, &plain, 60);
    plain.shuffle = LEAT_SHUFFLE_BATCHES;
    uint64_t expected = source_stream(&sequence, &plain, 60);
    assert_int_not_equal(expected, in_order);
    s.delay_us = 800;
    FOR_EACH_MODE(mode) {
        leat_feed_options options = source_options(mode);
        options.shuffle = LEAT_SHUFFLE_BATCHES;
        assert_int_equal(source_stream(&sequence, &options, 60), expected);
    }
    source_fini(&s);
}

static leat_feed_position take(leat_feed *feed) {
    const leat_batch *batch = NULL;
    leat_error err = {0};
    if (leat_feed_get(feed, &batch, &err) != LEAT_OK) fail_msg("%s", err.message);
    leat_feed_position at = leat_feed_position_get(feed);
    assert_int_equal(((const int64_t *)batch->tensors[1].data)[0], at.index * 1000);
    leat_feed_release(feed);
    return at;
}

void each_pass_has_an_order_of_its_own(void **state) {
    (void)state;
    enum { length = 30, passes = 4 };
    source s;
    source_init(&s, length, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    FOR_EACH_MODE(mode) {
        leat_feed_options options = source_options(mode);
        options.shuffle = LEAT_SHUFFLE_BATCHES;
        leat_feed *feed = source_open(&sequence, &options);
        int64_t order[passes][length];
        for (int pass = 0; pass < passes; ++pass) {
            bool seen[length] = {false};
            for (int i = 0; i < length; ++i) {
                leat_feed_position at = take(feed);
                assert_int_equal(at.pass, pass);
                assert_int_equal(at.ordinal, i);
                assert_false(seen[at.index]);
                seen[at.index] = true;
                order[pass][i] = at.index;
            }
            for (int before = 0; before < pass; ++before)
                assert_memory_not_equal(order[pass], order[before], sizeof order[pass]);
        }
        leat_feed_close(&feed);
    }
    source_fini(&s);
}

void short_and_varying_batches_have_their_shapes(void **state) {
    (void)state;
    source s;
    source_init(&s, 5, 4, 6);
    s.short_last = s.varying = true;
    leat_sequence sequence = source_sequence(&s);
    FOR_EACH_MODE(mode) {
        leat_feed_options options = source_options(mode);
        leat_feed *feed = source_open(&sequence, &options);
        for (int i = 0; i < 10; ++i) {
            const leat_batch *batch = NULL;
            leat_error err = {0};
            assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_OK);
            int64_t index = i % 5, size = index == 4 ? 3 : 4;
            assert_int_equal(batch->size, size);
            assert_int_equal(batch->tensors[0].shape[0], size);
            assert_int_equal(batch->tensors[0].shape[1], 1 + index % 6);
            assert_int_equal(batch->tensors[1].shape[0], size);
            for (int t = 0; t < 2; ++t) assert_int_equal((uintptr_t)batch->tensors[t].data % 64, 0);
            leat_feed_release(feed);
        }
        leat_feed_close(&feed);
    }
    source_fini(&s);
}

void borrowed_memory_is_delivered(void **state) {
    (void)state;
    source s;
    source_init(&s, 9, 3, 8);
    s.borrowed = true;
    s.short_last = true;
    leat_sequence sequence = source_sequence(&s);
    leat_feed_options plain = source_options(in_line);
    uint64_t expected = source_stream(&sequence, &plain, 30);
    FOR_EACH_MODE(mode) {
        leat_feed_options options = source_options(mode);
        assert_int_equal(source_stream(&sequence, &options, 30), expected);
        leat_feed *feed = source_open(&sequence, &options);
        const leat_batch *batch = NULL;
        leat_error err = {0};
        assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_OK);
        if (mode.processes)
            assert_ptr_not_equal(batch->tensors[0].data, s.own);
        else
            assert_ptr_equal(batch->tensors[0].data, s.own); /* the batch is not copied */
        leat_feed_close(&feed);
    }
    source_fini(&s);
}

/* Waits until get was called at least `least` times and no more calls follow.  Returns the number of calls.  If the
 * feed never makes so many calls, the wait ends after some seconds. */
static int64_t settled_gets(const source *s, int64_t least) {
    int64_t seen = -1, now = atomic_load(&s->counts->gets);
    for (int i = 0; i < 20000 && now < least; ++i) {
        sleep_us(1000);
        now = atomic_load(&s->counts->gets);
    }
    for (int quiet = 0; quiet < 20; quiet = seen == now ? quiet + 1 : 0) {
        seen = now;
        sleep_us(1000);
        now = atomic_load(&s->counts->gets);
    }
    return now;
}

void never_more_than_the_queue_is_made_ahead(void **state) {
    (void)state;
    source s;
    source_init(&s, 7, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    FOR_EACH_MODE(mode) {
        for (int variant = 0; variant < 4; ++variant) {
            int queue = variant % 2 ? 5 : 1;
            s.slow_us = variant / 2 * 200;
            atomic_store(&s.counts->gets, 0);
            leat_feed_options options = source_options(mode);
            options.max_queue_size = queue;
            leat_feed *feed = source_open(&sequence, &options);
            int ahead = mode.workers ? queue : 0;
            assert_int_equal(settled_gets(&s, ahead), ahead);
            for (int i = 1; i <= 12; ++i) {
                const leat_batch *batch = NULL;
                leat_error err = {0};
                assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_OK);
                /* If a batch costs less than a wake-up, workers may sleep until half of the queue is open. */
                int64_t least = i + (s.slow_us ? ahead : ahead / 2);
                int64_t begun = settled_gets(&s, least);
                assert_true(begun >= least);
                assert_true(begun <= i + ahead);
                leat_feed_release(feed);
            }
            leat_feed_close(&feed);
        }
    }
    source_fini(&s);
}

void ready_counts_what_lies_ahead(void **state) {
    (void)state;
    source s;
    source_init(&s, 7, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    FOR_EACH_MODE(mode) {
        leat_feed_options options = source_options(mode);
        options.max_queue_size = 4;
        leat_feed *feed = source_open(&sequence, &options);
        for (int i = 0; i < 20000 && mode.workers && leat_feed_ready_count(feed) < 4; ++i) sleep_us(1000);
        assert_int_equal(leat_feed_ready_count(feed), mode.workers ? 4 : 0);
        atomic_store(&s.counts->pause, mode.workers > 0);
        take(feed);
        assert_int_equal(leat_feed_ready_count(feed), mode.workers ? 3 : 0);
        atomic_store(&s.counts->pause, 0);
        leat_feed_close(&feed);
    }
    source_fini(&s);
}

void limit_ends_the_stream(void **state) {
    (void)state;
    source s;
    source_init(&s, 6, 2, 3);
    leat_sequence sequence = source_sequence_with_hook(&s, true);
    FOR_EACH_MODE(mode) {
        for (int limit = 5; limit <= 12; limit += 7) {
            atomic_store(&s.counts->gets, 0);
            atomic_store(&s.counts->hooks, 0);
            s.state.pass = 0;
            leat_feed_options options = source_options(mode);
            options.limit = limit;
            leat_feed *feed = source_open(&sequence, &options);
            for (int i = 0; i < limit; ++i) take(feed);
            const leat_batch *batch = NULL;
            leat_error err = {0};
            assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_ENOTFOUND);
            assert_null(batch);
            assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_ENOTFOUND);
            assert_int_equal(settled_gets(&s, limit), limit);
            assert_int_equal(atomic_load(&s.counts->hooks), limit / 6);
            leat_feed_close(&feed);
        }
    }
    source_fini(&s);
}

static void hooked_passes(bool declares_state) {
    source s;
    source_init(&s, 6, 2, 3);
    source_state fresh = s.state;
    leat_sequence sequence = source_sequence_with_hook(&s, declares_state);
    leat_feed_options plain = source_options(in_line);
    uint64_t expected = source_stream(&sequence, &plain, 30);
    assert_int_equal(atomic_load(&s.counts->hooks), 4);
    s.delay_us = 500;
    FOR_EACH_MODE(mode) {
        s.state = fresh;
        atomic_store(&s.counts->hooks, 0);
        leat_feed_options options = source_options(mode);
        leat_feed *feed = source_open(&sequence, &options);
        assert_int_equal(source_digest(feed, 30), expected);
        assert_int_equal(atomic_load(&s.counts->hooks),
                         4); /* the fifth pass is delivered, but not ended yet */
        leat_error err = {0};
        assert_int_equal(leat_feed_end_pass(feed, &err), LEAT_OK);
        assert_int_equal(leat_feed_end_pass(feed, &err), LEAT_OK);
        assert_int_equal(atomic_load(&s.counts->hooks), 5);
        leat_feed_close(&feed);
        assert_int_equal(atomic_load(&s.counts->hook_overtaken), 0);
    }
    source_fini(&s);
}

void passes_end_the_stream(void **state) {
    (void)state;
    for (int hook = 0; hook < 3; ++hook) FOR_EACH_MODE(mode) {
            source s;
            source_init(&s, 4, 2, 3);
            leat_sequence sequence = hook ? source_sequence_with_hook(&s, hook == 1) : source_sequence(&s);
            leat_feed_options options = source_options(mode);
            options.passes = 2;
            leat_feed *feed = source_open(&sequence, &options);
            for (int i = 0; i < 8; ++i) take(feed);
            const leat_batch *batch = NULL;
            leat_error err = {0};
            assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_ENOTFOUND);
            assert_int_equal(settled_gets(&s, 8), 8);
            assert_int_equal(atomic_load(&s.counts->hooks), hook ? 2 : 0);
            leat_feed_close(&feed);
            source_fini(&s);
        }
}

void hook_runs_once_between_passes(void **state) {
    (void)state;
    hooked_passes(true);
}

void hook_without_state_reaches_all_workers(void **state) {
    (void)state;
    hooked_passes(false);
}

void end_pass_does_what_get_would(void **state) {
    (void)state;
    source s;
    source_init(&s, 3, 2, 3);
    leat_sequence sequence = source_sequence_with_hook(&s, true);
    FOR_EACH_MODE(mode) {
        atomic_store(&s.counts->hooks, 0);
        s.state.pass = 0;
        leat_feed_options options = source_options(mode);
        leat_feed *feed = source_open(&sequence, &options);
        leat_error err = {0};
        assert_int_equal(leat_feed_end_pass(feed, &err),
                         LEAT_OK); /* nothing was delivered, so there is no pass to end */
        take(feed);
        assert_int_equal(leat_feed_end_pass(feed, &err), LEAT_OK);
        assert_int_equal(atomic_load(&s.counts->hooks), 0);
        take(feed);
        const leat_batch *batch = NULL;
        assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_OK);
        assert_int_equal(leat_feed_end_pass(feed, &err), LEAT_OK); /* the last batch is still in use */
        assert_int_equal(atomic_load(&s.counts->hooks), 0);
        leat_feed_release(feed);
        assert_int_equal(leat_feed_end_pass(feed, &err), LEAT_OK);
        assert_int_equal(atomic_load(&s.counts->hooks), 1);
        assert_int_equal(take(feed).pass, 1);
        assert_int_equal(atomic_load(&s.counts->hooks), 1);
        leat_feed_close(&feed);
    }
    source_fini(&s);
}

void length_follows_the_hook(void **state) {
    (void)state;
    FOR_EACH_MODE(mode) {
        source s;
        source_init(&s, 4, 2, 3);
        s.growth = -1;
        leat_sequence sequence = source_sequence_with_hook(&s, true);
        leat_feed_options options = source_options(mode);
        options.shuffle = LEAT_SHUFFLE_BATCHES;
        leat_feed *feed = source_open(&sequence, &options);
        for (int pass = 0; pass < 3; ++pass) {
            assert_int_equal(leat_feed_length(feed), 4 - pass);
            for (int i = 0; i < 4 - pass; ++i) assert_int_equal(take(feed).ordinal, i);
            leat_error err = {0};
            assert_int_equal(leat_feed_end_pass(feed, &err), LEAT_OK);
        }
        leat_feed_close(&feed);
        source_fini(&s);
    }
}

static void expect_error(leat_feed *feed, leat_status code, const char *part) {
    for (int again = 0; again < 2; ++again) { /* an error ends the stream: every further call returns it */
        const leat_batch *batch = NULL;
        leat_error err = {0};
        assert_int_equal(leat_feed_get(feed, &batch, &err), code);
        assert_int_equal(err.code, code);
        assert_null(batch);
        if (!strstr(err.message, part)) fail_msg("expected '%s' in '%s'", part, err.message);
    }
}

void hook_error_ends_the_stream(void **state) {
    (void)state;
    FOR_EACH_MODE(mode) {
        source s;
        source_init(&s, 3, 2, 3);
        s.hook_fails = true;
        leat_sequence sequence = source_sequence_with_hook(&s, mode.workers % 2 == 0);
        leat_feed_options options = source_options(mode);
        leat_feed *feed = source_open(&sequence, &options);
        for (int i = 0; i < 3; ++i) take(feed);
        expect_error(feed, LEAT_EUSER, "on_epoch_end of pass 0: the index file is gone");
        leat_feed_close(&feed);
        source_fini(&s);
    }
}

void error_comes_in_order_with_index_and_pass(void **state) {
    (void)state;
    source s;
    source_init(&s, 6, 2, 3);
    s.fail_at = 4;
    s.delay_us = 300;
    leat_sequence sequence = source_sequence(&s);
    FOR_EACH_MODE(mode) {
        leat_feed_options options = source_options(mode);
        leat_feed *feed = source_open(&sequence, &options);
        for (int i = 0; i < 4; ++i) assert_int_equal(take(feed).index, i);
        expect_error(feed, LEAT_EUSER, "batch 4 of pass 0: sample 41 of the file is damaged");
        leat_feed_close(&feed);
    }
    source_fini(&s);
}

void wrong_shapes_are_named(void **state) {
    (void)state;
    static const char *const parts[] = {
        "batch 1 of pass 0: get set a size of 3 samples, the specification allows 1 to 2",
        "get set a size of 0 samples",
        "tensor 0 ('x') to shape (2, 4)",
        "rank 3",
        "get failed without a message: input or output failed",
        "get set the data of tensor 0 ('x') to NULL"};
    source s;
    source_init(&s, 6, 2, 3);
    s.wrong_at = 1;
    leat_sequence sequence = source_sequence(&s);
    FOR_EACH_MODE(mode) {
        for (s.wrong = 0; s.wrong < 6; ++s.wrong) {
            leat_feed_options options = source_options(mode);
            leat_feed *feed = source_open(&sequence, &options);
            take(feed);
            expect_error(feed, s.wrong == 4 ? LEAT_EIO : LEAT_ESHAPE, parts[s.wrong]);
            leat_feed_close(&feed);
        }
    }
    source_fini(&s);
}

void refused_worker_is_told(void **state) {
    (void)state;
    source s;
    source_init(&s, 6, 2, 3);
    s.init_fails = true;
    leat_sequence sequence = source_sequence(&s);
    FOR_EACH_MODE(mode) {
        leat_feed_options options = source_options(mode);
        leat_feed *feed = source_open(&sequence, &options);
        expect_error(feed, LEAT_EIO, ": the camera is not there");
        leat_feed_close(&feed);
    }
    source_fini(&s);
}

static void refuse_open(const leat_sequence *sequence, const leat_feed_options *options, leat_status code,
                        const char *part) {
    leat_feed *feed = (leat_feed *)(uintptr_t)1;
    leat_error err = {0};
    resources before = resources_now();
    assert_int_equal(leat_feed_open(&feed, sequence, options, &err), code);
    assert_null(feed);
    if (!strstr(err.message, part)) fail_msg("expected '%s' in '%s'", part, err.message);
    resources_check(before);
}

void empty_sequence_is_refused_at_once(void **state) {
    (void)state;
    source s;
    source_init(&s, 0, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    FOR_EACH_MODE(mode) {
        leat_feed_options options = source_options(mode);
        refuse_open(&sequence, &options, LEAT_EINVAL, "pass 0 has 0 batches");
    }
    source_fini(&s);
}

void sequence_that_runs_empty_is_told(void **state) {
    (void)state;
    FOR_EACH_MODE(mode) {
        source s;
        source_init(&s, 2, 2, 3);
        s.growth = -2;
        leat_sequence sequence = source_sequence_with_hook(&s, true);
        leat_feed_options options = source_options(mode);
        leat_feed *feed = source_open(&sequence, &options);
        take(feed);
        take(feed);
        expect_error(feed, LEAT_EINVAL, "pass 1 has 0 batches");
        leat_feed_close(&feed);
        source_fini(&s);
    }
}

void bad_options_are_refused(void **state) {
    (void)state;
    source s;
    source_init(&s, 5, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    FOR_EACH_MODE(mode) {
        leat_feed_options good = source_options(mode), bad = good;
        bad.workers = -1;
        refuse_open(&sequence, &bad, LEAT_EINVAL, "workers is -1");
        bad = good;
        bad.max_queue_size = 0;
        refuse_open(&sequence, &bad, LEAT_EINVAL, "max_queue_size is 0");
        bad = good;
        bad.limit = -3;
        refuse_open(&sequence, &bad, LEAT_EINVAL, "limit is -3");
        bad = good;
        bad.passes = -1;
        refuse_open(&sequence, &bad, LEAT_EINVAL, "passes is -1");
        bad = good;
        bad.shuffle = (leat_shuffle)9;
        refuse_open(&sequence, &bad, LEAT_EINVAL, "unknown shuffle 9");
        bad = good;
        bad.spin_us = -2;
        refuse_open(&sequence, &bad, LEAT_EINVAL, "spin_us is -2");
        leat_sequence wrong = sequence;
        wrong.size = 8;
        refuse_open(&wrong, &good, LEAT_EINVAL, "size is 8");
        wrong = sequence;
        wrong.get = NULL;
        refuse_open(&wrong, &good, LEAT_EINVAL, "length and get");
        wrong = sequence;
        wrong.state_bytes = 4;
        refuse_open(&wrong, &good, LEAT_EINVAL, "state at NULL");
        wrong = sequence;
        wrong.spec.batch_size = 0;
        refuse_open(&wrong, &good, LEAT_ESHAPE, "batch_size is 0");
        wrong = sequence;
        wrong.spec.tensors[0].shape[0] = INT64_MAX / 2;
        refuse_open(&wrong, &good, LEAT_ESHAPE, "address space");
        wrong.spec.tensors[0].shape[0] = (int64_t)1
                                         << 40; /* it fits into the address space, but not into any machine */
        refuse_open(&wrong, &good, LEAT_ENOMEM, "MiB are available");
    }
    source_fini(&s);
}

void get_twice_is_refused(void **state) {
    (void)state;
    source s;
    source_init(&s, 5, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    FOR_EACH_MODE(mode) {
        leat_feed_options options = source_options(mode);
        leat_feed *feed = source_open(&sequence, &options);
        const leat_batch *batch = NULL;
        leat_error err = {0};
        assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_OK);
        assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_EINVAL);
        assert_null(batch);
        leat_feed_release(feed);
        assert_int_equal(take(feed).index, 1); /* the refused call had no effect */
        leat_feed_close(&feed);
    }
    source_fini(&s);
}

void feeds_do_not_disturb_each_other(void **state) {
    (void)state;
    enum { feeds = 5 };
    source s[feeds];
    uint64_t expected[feeds];
    leat_sequence sequence[feeds];
    leat_feed_options plain = source_options(in_line);
    for (int i = 0; i < feeds; ++i) {
        source_init(&s[i], 4 + i, 2, 3 + i);
        sequence[i] = source_sequence_with_hook(&s[i], true);
        s[i].state.scale = i;
        expected[i] = source_stream(&sequence[i], &plain, 24);
    }
    FOR_EACH_MODE(mode) {
        resources before = resources_now();
        leat_feed *feed[feeds];
        for (int i = 0; i < feeds; ++i) {
            s[i].state = (source_state){.scale = i};
            atomic_store(&s[i].counts->hooks, 0);
            leat_feed_options options = source_options(mode);
            feed[i] = source_open(&sequence[i], &options);
        }
        leat_feed_close(
            &feed[1]); /* the workers of the other feeds, forked later, hold none of its resources */
        for (int i = 0; i < feeds; ++i)
            if (feed[i]) assert_int_equal(source_digest(feed[i], 24), expected[i]);
        for (int i = feeds - 1; i >= 0; --i) leat_feed_close(&feed[i]);
        resources_check(before);
    }
    for (int i = 0; i < feeds; ++i) source_fini(&s[i]);
}

static void *stop_soon(void *feed) {
    sleep_us(20000);
    leat_feed_stop(feed);
    return NULL;
}

void stop_wakes_a_waiting_get(void **state) {
    (void)state;
    source s;
    source_init(&s, 5, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    FOR_EACH_MODE(mode) {
        if (mode.workers == 0) continue; /* the caller is in get itself */
        resources before = resources_now();
        leat_feed_options options = source_options(mode);
        atomic_store(&s.counts->pause, 1);
        leat_feed *feed = source_open(&sequence, &options);
        pthread_t stopper;
        assert_int_equal(pthread_create(&stopper, NULL, stop_soon, feed), 0);
        expect_error(feed, LEAT_ESTOPPED, "stopped");
        pthread_join(stopper, NULL);
        atomic_store(&s.counts->pause, 0);
        leat_feed_stop(feed);
        leat_feed_close(&feed);
        resources_check(before);
    }
    source_fini(&s);
}

/* Closes a feed in every state that it can be in. */
static void close_in_state(const leat_sequence *sequence, feed_mode mode, int which) {
    leat_feed_options options = source_options(mode);
    leat_feed *feed = source_open(sequence, &options);
    const leat_batch *batch = NULL;
    leat_error err = {0};
    if (which >= 1) sleep_us(3000);
    if (which >= 2) take(feed);
    if (which >= 3)
        assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_OK); /* in use when the feed is closed */
    if (which >= 4) leat_feed_release(feed);
    if (which >= 5)
        for (int i = 0; i < 10; ++i) take(feed);
    if (which % 2) leat_feed_stop(feed);
    if (which == 5) leat_feed_stop(feed);
    leat_feed_close(&feed);
    assert_null(feed);
    leat_feed_close(&feed);
}

void close_leaves_nothing(void **state) {
    (void)state;
    source s;
    source_init(&s, 6, 2, 3);
    FOR_EACH_MODE(mode) {
        resources before = resources_now();
        for (int which = 0; which < 6; ++which)
            for (int hook = 0; hook < 3; ++hook) {
                s.state.pass = 0;
                atomic_store(&s.counts->hooks, 0);
                s.delay_us = which % 3 * 500;
                leat_sequence sequence =
                    hook ? source_sequence_with_hook(&s, hook == 1) : source_sequence(&s);
                close_in_state(&sequence, mode, which);
                resources_check(before);
            }
    }
    source_fini(&s);
}

static long address_space_mb(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    long pages = 0;
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld", &pages), 1);
    fclose(file);
    return pages / 256;
}

void memory_of_many_feeds_is_given_back(void **state) {
    (void)state;
    source s;
    source_init(&s, 6, 64, 4096); /* slots of 1 MiB */
    s.borrowed = true;
    leat_sequence sequence = source_sequence(&s);
    FOR_EACH_MODE(mode) {
        leat_feed_options options = source_options(mode);
        options.max_queue_size = 31;
        source_stream(&sequence, &options,
                      2); /* so that libc has allocated stacks and arenas of threads, which it keeps */
        long before = address_space_mb();
        for (int i = 0; i < 10; ++i) source_stream(&sequence, &options, 2);
        long added = address_space_mb() - before;
        if (added > 16) fail_msg("ten feeds of 32 MiB left %ld MiB", added);
    }
    source_fini(&s);
}

void workers_begin_and_end_once(void **state) {
    (void)state;
    source s;
    source_init(&s, 6, 2, 3);
    leat_sequence sequence = source_sequence(&s);
    FOR_EACH_MODE(mode) {
        atomic_store(&s.counts->inits, 0);
        atomic_store(&s.counts->finis, 0);
        leat_feed_options options = source_options(mode);
        leat_feed *feed = source_open(&sequence, &options);
        for (int i = 0; i < 15; ++i) take(feed);
        int workers = mode.workers ? mode.workers : 1;
        for (int tries = 0; tries < 1000 && atomic_load(&s.counts->inits) < workers; ++tries) sleep_us(1000);
        leat_feed_close(&feed);
        assert_int_equal(atomic_load(&s.counts->inits), workers);
        assert_int_equal(atomic_load(&s.counts->finis), workers);
    }
    source_fini(&s);
}

void figures_add_up(void **state) {
    (void)state;
    source s;
    source_init(&s, 6, 2, 3);
    s.delay_us = 1000;
    leat_sequence sequence = source_sequence(&s);
    FOR_EACH_MODE(mode) {
        leat_feed_options options = source_options(mode);
        leat_feed *feed = source_open(&sequence, &options);
        for (int i = 0; i < 15; ++i) take(feed);
        leat_feed_stats stats = leat_feed_stats_get(feed);
        assert_int_equal(stats.batches, 15);
        assert_int_equal(stats.bytes, 15 * 2 * (3 * 4 + 8));
        assert_true(stats.starved >= 1 && stats.starved <= 15);
        assert_true(stats.wait_ns > 0);
        assert_true(stats.get.max > 0 && stats.get_ns >= stats.get.max);
        assert_true(stats.get_ns <= 15 * stats.get.max);
        assert_int_equal(stats.worker_deaths, 0);
        assert_true(stats.ring_bytes >= 2 * (3 * 4 + 8) * (mode.workers ? 11 : 1));
        leat_feed_close(&feed);
    }
    source_fini(&s);
}
