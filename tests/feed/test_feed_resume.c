/* SPDX-License-Identifier: Apache-2.0 */
/* A stream that was interrupted at any position continues from there with the same bytes, with any other workers. */
#include "cmocka_all.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "feed/source.h"

enum { longest = 160, tail = 30 };

static const feed_mode in_line = {0};
static const feed_mode thread_modes[] = {{1, false}, {2, false}, {4, false}};
static const feed_mode process_modes[] = {{1, true}, {2, true}, {4, true}};

/* One way to visit the data. */
typedef struct plan {
    leat_shuffle shuffle;
    int rank, world;
    leat_remainder remainder;
} plan;

static const plan plans[] = {
    {LEAT_SHUFFLE_NONE, 0, 1, LEAT_REMAINDER_UNEVEN},    {LEAT_SHUFFLE_NONE, 1, 2, LEAT_REMAINDER_UNEVEN},
    {LEAT_SHUFFLE_NONE, 3, 4, LEAT_REMAINDER_PAD},       {LEAT_SHUFFLE_BATCHES, 0, 1, LEAT_REMAINDER_UNEVEN},
    {LEAT_SHUFFLE_BATCHES, 0, 3, LEAT_REMAINDER_UNEVEN}, {LEAT_SHUFFLE_BATCHES, 2, 3, LEAT_REMAINDER_DROP},
    {LEAT_SHUFFLE_BATCHES, 2, 3, LEAT_REMAINDER_PAD},    {LEAT_SHUFFLE_SAMPLES, 0, 1, LEAT_REMAINDER_UNEVEN},
    {LEAT_SHUFFLE_SAMPLES, 1, 2, LEAT_REMAINDER_UNEVEN}, {LEAT_SHUFFLE_SAMPLES, 2, 3, LEAT_REMAINDER_DROP},
    {LEAT_SHUFFLE_WINDOW, 0, 1, LEAT_REMAINDER_UNEVEN},  {LEAT_SHUFFLE_WINDOW, 2, 4, LEAT_REMAINDER_PAD},
};
enum { plan_count = sizeof plans / sizeof *plans };

static leat_feed_options options_of(const plan *p, feed_mode mode) {
    leat_feed_options options = source_options(mode);
    options.shuffle = p->shuffle;
    options.shuffle_window = 9;
    options.rank = p->rank;
    options.world = p->world;
    options.remainder = p->remainder;
    return options;
}

static void record(const leat_sequence *sequence, const leat_feed_options *options, source_entry *out,
                   int64_t count) {
    leat_feed *feed = source_open(sequence, options);
    leat_error end = {0};
    if (source_record(feed, out, count, &end) != count) fail_msg("%s", end.message);
    leat_feed_close(&feed);
}

static leat_feed *resume(const leat_sequence *sequence, const leat_feed_options *options,
                         leat_feed_position at) {
    leat_feed *feed = NULL;
    leat_error err = {0};
    at.index = -99; /* the index of a position is ignored */
    if (leat_feed_open_at(&feed, sequence, options, &at, &err) != LEAT_OK) fail_msg("%s", err.message);
    return feed;
}

/* Checks that the stream continues after batch `from` like the recorded one. */
static void goes_on(const leat_sequence *sequence, const leat_feed_options *options,
                    const source_entry *recorded, int64_t from) {
    source_entry seen[tail];
    leat_error end = {0};
    leat_feed *feed = resume(sequence, options, recorded[from].next);
    if (source_record(feed, seen, tail, &end) != tail) fail_msg("%s", end.message);
    source_compare(seen, recorded + from + 1, tail);
    leat_feed_close(&feed);
}

/* 200 positions, each without workers, with threads and with processes. */
static void streams_go_on_from_anywhere(void **state) {
    (void)state;
    source s, samples;
    source_init(&s, 23, 3, 4);
    s.short_last = true;
    source_init(&samples, 0, 3, 4);
    leat_sequence by_batches = source_sequence(&s), by_samples = source_sequence_of_samples(&samples, 68);
    source_entry recorded[longest];
    uint64_t random = 4711;
    int ends_of_passes = 0;
    for (int i = 0, at_plan = -1; i < 200; ++i) {
        const plan *p = &plans[i * plan_count / 200];
        const leat_sequence *sequence =
            p->shuffle == LEAT_SHUFFLE_SAMPLES || i % 2 == 1 ? &by_samples : &by_batches;
        if (p->shuffle == LEAT_SHUFFLE_BATCHES) sequence = &by_batches;
        int recording = i * plan_count / 200 * 2 + (sequence == &by_samples);
        if (recording != at_plan) {
            leat_feed_options plain = options_of(p, in_line);
            record(sequence, &plain, recorded, longest);
            at_plan = recording;
        }
        random = random * 6364136223846793005u + 1442695040888963407u;
        int64_t from = (int64_t)(random >> 33) % (longest - tail - 1);
        ends_of_passes += recorded[from + 1].at.pass != recorded[from].at.pass;
        feed_mode modes[] = {in_line, thread_modes[i % 3], process_modes[i % 3]};
        for (int m = 0; m < 3; ++m) {
            leat_feed_options options = options_of(p, modes[m]);
            goes_on(sequence, &options, recorded, from);
        }
    }
    assert_true(ends_of_passes >= 5);
    source_fini(&s);
    source_fini(&samples);
}

/* A feed that has begun anywhere continues at another position with the same bytes. */
static void streams_seek(void **state) {
    (void)state;
    source s;
    source_init(&s, 23, 3, 4);
    leat_sequence sequence = source_sequence(&s);
    source_entry recorded[longest], seen[tail];
    plan p = plans[3];
    leat_feed_options options = options_of(&p, in_line);
    record(&sequence, &options, recorded, longest);
    const feed_mode modes[] = {in_line, thread_modes[0], thread_modes[2], process_modes[0], process_modes[2]};
    for (size_t m = 0; m < sizeof modes / sizeof *modes; ++m) {
        options = options_of(&p, modes[m]);
        leat_feed *feed = source_open(&sequence, &options);
        leat_error err = {0};
        for (int i = 0; i < 12; ++i) {
            int64_t from = (i * 37 + 5) % (longest - tail - 1), taken = i % 4 == 0 ? 0 : (i * 7) % tail;
            bool more = false;
            if (i % 3 == 0) assert_int_equal(leat_feed_await(feed, &more, &err), LEAT_OK);
            assert_int_equal(leat_feed_seek(feed, &recorded[from].next, &err), LEAT_OK);
            leat_feed_position next = leat_feed_next_position(feed);
            assert_int_equal(next.pass, recorded[from].next.pass);
            assert_int_equal(next.ordinal, recorded[from].next.ordinal);
            assert_int_equal(source_record(feed, seen, taken, &err), taken);
            source_compare(seen, recorded + from + 1, taken);
        }
        leat_feed_close(&feed);
    }
    source_fini(&s);
}

static void impossible_seeks_are_refused(void **state) {
    (void)state;
    source s;
    source_init(&s, 7, 3, 4);
    leat_sequence sequence = source_sequence(&s);
    plan p = plans[0];
    leat_feed_options options = options_of(&p, thread_modes[0]);
    leat_feed *feed = source_open(&sequence, &options);
    leat_feed_position at = {.pass = 1};
    const leat_batch *batch = NULL;
    leat_error err = {0};
    assert_int_equal(leat_feed_seek(NULL, &at, &err), LEAT_EINVAL);
    assert_int_equal(leat_feed_seek(feed, NULL, &err), LEAT_EINVAL);
    assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_OK);
    assert_int_equal(leat_feed_seek(feed, &at, &err), LEAT_EINVAL); /* a batch is in use */
    leat_feed_release(feed);
    at.ordinal = 8;
    assert_int_equal(leat_feed_seek(feed, &at, &err), LEAT_EINVAL);
    at.ordinal = 0;
    assert_int_equal(leat_feed_seek(feed, &at, &err), LEAT_EINVAL); /* the stream has ended with the error */
    leat_feed_close(&feed);
    source_fini(&s);
}

/* A resumed stream can be interrupted and resumed again. */
static void resumed_streams_tell_their_position(void **state) {
    (void)state;
    source s;
    source_init(&s, 7, 3, 4);
    leat_sequence sequence = source_sequence(&s);
    plan p = {LEAT_SHUFFLE_BATCHES, 0, 1, LEAT_REMAINDER_UNEVEN};
    leat_feed_options options = options_of(&p, in_line);
    source_entry recorded[longest];
    record(&sequence, &options, recorded, longest);
    leat_feed_position at = {0};
    for (int64_t i = 0; i < 60;) { /* three batches at a time, each time with other workers */
        feed_mode mode = i % 2 ? process_modes[i % 3] : thread_modes[i % 3];
        options = options_of(&p, mode);
        leat_feed *feed = resume(&sequence, &options, at);
        leat_feed_position first = leat_feed_next_position(feed);
        assert_int_equal(first.pass, at.pass);
        assert_int_equal(first.ordinal, at.ordinal);
        source_entry seen[3];
        leat_error end = {0};
        assert_int_equal(source_record(feed, seen, 3, &end), 3);
        source_compare(seen, recorded + i, 3);
        at = leat_feed_next_position(feed);
        leat_feed_close(&feed);
        i += 3;
    }
    source_fini(&s);
}

static void set_pass(source *s, int64_t pass) {
    s->state = (source_state){.scale = 1 + 2 * pass, .pass = pass};
    atomic_store(&s->counts->hooks, pass);
}

/* With a hook: the sequence has the state that it had.  If the pass was over but not ended, its hook runs first. */
static void end_of_a_pass_runs_the_hook_first(void **state) {
    (void)state;
    static const feed_mode modes[] = {{0, false}, {2, false}, {2, true}};
    source s;
    source_init(&s, 6, 3, 4);
    for (int declares_state = 0; declares_state < 2; ++declares_state) {
        leat_sequence sequence = source_sequence_with_hook(&s, declares_state);
        plan p = {LEAT_SHUFFLE_BATCHES, 0, 1, LEAT_REMAINDER_UNEVEN};
        leat_feed_options options = options_of(&p, in_line);
        source_entry recorded[longest];
        set_pass(&s, 0);
        record(&sequence, &options, recorded, 60);
        for (size_t m = 0; m < 3; ++m)
            for (int64_t from = 9; from < 14; ++from) { /* 11 is the last batch of pass 1 */
                int64_t pass = recorded[from].next.pass;
                options = options_of(&p, modes[m]);
                set_pass(&s, pass);
                leat_feed *feed = resume(&sequence, &options, recorded[from].next);
                source_entry seen[tail];
                leat_error end = {0};
                assert_int_equal(source_record(feed, seen, 1, &end), 1);
                bool at_end = recorded[from].next.ordinal == 6;
                assert_int_equal(at_end, from == 11);
                assert_int_equal(atomic_load(&s.counts->hooks), pass + at_end);
                if (at_end)
                    assert_int_equal(atomic_load(&s.counts->hook_thread), getpid()); /* the main thread */
                assert_int_equal(source_record(feed, seen + 1, tail - 1, &end), tail - 1);
                source_compare(seen, recorded + from + 1, tail);
                assert_int_equal(atomic_load(&s.counts->hook_overtaken), 0);
                leat_feed_close(&feed);
            }
    }
    source_fini(&s);
}

/* Passes of different lengths: 9, 7, 5, 3. */
static void lengths_may_differ_between_passes(void **state) {
    (void)state;
    static const feed_mode modes[] = {{0, false}, {2, false}, {2, true}};
    source s;
    source_init(&s, 9, 3, 4);
    s.growth = -2;
    leat_sequence sequence = source_sequence_with_hook(&s, true);
    plan p = {LEAT_SHUFFLE_BATCHES, 0, 1, LEAT_REMAINDER_UNEVEN};
    leat_feed_options options = options_of(&p, in_line);
    options.passes = 4;
    source_entry recorded[24], seen[24];
    leat_error end = {0};
    leat_feed *feed = source_open(&sequence, &options);
    assert_int_equal(source_record(feed, recorded, 24, &end), 24);
    leat_feed_close(&feed);
    for (size_t m = 0; m < 3; ++m)
        for (int64_t from = 0; from < 24; from += 2) {
            leat_feed_position at = recorded[from].next;
            options = options_of(&p, modes[m]);
            options.passes = 4; /* passes of the whole stream */
            set_pass(&s, at.pass);
            s.length = 9 - 2 * at.pass;
            feed = resume(&sequence, &options, at);
            int64_t count = source_record(feed, seen, 24, &end);
            assert_int_equal(count, 23 - from);
            assert_int_equal(end.code, LEAT_ENOTFOUND);
            source_compare(seen, recorded + from + 1, count);
            leat_feed_close(&feed);
        }
    source_fini(&s);
}

/* Bad batches that are skipped keep their ordinals, so a position means the same with and without them. */
static void positions_count_skipped_batches(void **state) {
    (void)state;
    source s;
    source_init(&s, 11, 3, 4);
    s.fail_at = 1;
    s.fail_every = 3;
    leat_sequence sequence = source_sequence(&s);
    plan p = {LEAT_SHUFFLE_BATCHES, 0, 1, LEAT_REMAINDER_UNEVEN};
    leat_feed_options options = options_of(&p, in_line);
    options.faults.bad_batch = LEAT_BAD_BATCH_SKIP;
    source_entry recorded[longest];
    record(&sequence, &options, recorded, longest);
    for (int64_t from = 0; from < 30; ++from) {
        options = options_of(&p, from % 2 ? thread_modes[from % 3] : process_modes[from % 3]);
        options.faults.bad_batch = LEAT_BAD_BATCH_SKIP;
        goes_on(&sequence, &options, recorded, from);
    }
    source_fini(&s);
}

/* The option limit counts batches from the position on. */
static void limit_counts_from_the_position(void **state) {
    (void)state;
    static const feed_mode modes[] = {{0, false}, {2, false}, {2, true}};
    source s;
    source_init(&s, 6, 3, 4);
    leat_sequence sequence = source_sequence(&s);
    for (size_t m = 0; m < 3; ++m) {
        leat_feed_options options = source_options(modes[m]);
        options.limit = 9;
        leat_feed *feed = resume(&sequence, &options, (leat_feed_position){.pass = 5, .ordinal = 4});
        source_entry seen[20];
        leat_error end = {0};
        assert_int_equal(source_record(feed, seen, 20, &end), 9);
        assert_int_equal(end.code, LEAT_ENOTFOUND);
        assert_int_equal(seen[0].at.pass, 5);
        assert_int_equal(seen[8].at.pass, 7);
        assert_int_equal(seen[8].at.ordinal, 0);
        leat_feed_close(&feed);
    }
    source_fini(&s);
}

static void infinite_sequences_go_on(void **state) {
    (void)state;
    source s;
    source_init(&s, LEAT_LENGTH_INFINITE, 3, 4);
    leat_sequence sequence = source_sequence(&s);
    source_entry recorded[longest];
    leat_feed_options options = source_options(in_line);
    record(&sequence, &options, recorded, longest);
    for (int64_t i = 0; i < longest; ++i) assert_int_equal(recorded[i].at.index, i);
    for (int64_t from = 3; from < 100; from += 17) {
        options = source_options(from % 2 ? thread_modes[from % 3] : process_modes[from % 3]);
        goes_on(&sequence, &options, recorded, from);
    }
    leat_feed *feed = resume(&sequence, &options, (leat_feed_position){.ordinal = INT64_C(1) << 40});
    source_entry seen[3];
    leat_error end = {0};
    assert_int_equal(leat_feed_length(feed), LEAT_LENGTH_INFINITE);
    assert_int_equal(source_record(feed, seen, 3, &end), 3);
    assert_int_equal(seen[2].at.index, (INT64_C(1) << 40) + 2);
    leat_feed_close(&feed);
    source_fini(&s);
}

static void refuse(const leat_sequence *sequence, const leat_feed_options *options, int64_t pass,
                   int64_t ordinal, leat_status code, const char *part) {
    leat_feed *feed = (leat_feed *)(uintptr_t)1;
    leat_feed_position at = {.pass = pass, .ordinal = ordinal};
    leat_error err = {0};
    resources before = resources_now();
    assert_int_equal(leat_feed_open_at(&feed, sequence, options, &at, &err), code);
    assert_null(feed);
    if (!strstr(err.message, part)) fail_msg("expected '%s' in '%s'", part, err.message);
    resources_check(before);
}

static void impossible_positions_are_refused(void **state) {
    (void)state;
    static const feed_mode modes[] = {{0, false}, {2, false}, {2, true}};
    source s;
    source_init(&s, 6, 3, 4);
    leat_sequence sequence = source_sequence(&s);
    for (size_t m = 0; m < 3; ++m) {
        leat_feed_options options = source_options(modes[m]);
        refuse(&sequence, &options, INT64_MAX, 0, LEAT_EINVAL, "is not a position of a stream");
        refuse(&sequence, &options, 0, INT64_MAX, LEAT_EINVAL, "is not a position of a stream");
        refuse(&sequence, &options, -1, 0, LEAT_EINVAL, "pass -1");
        refuse(&sequence, &options, 0, -1, LEAT_EINVAL, "-1");
        refuse(&sequence, &options, 2, 7, LEAT_EINVAL, "7");
        options.world = 2;
        refuse(&sequence, &options, 2, 4, LEAT_EINVAL, "4");
        leat_sequence generator = source_generator(&s);
        options.world = 1;
        refuse(&generator, &options, 0, 3, LEAT_ENOTSUP, "generator");
    }
    source_fini(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_go_on_from_anywhere),
        cmocka_unit_test(streams_seek),
        cmocka_unit_test(impossible_seeks_are_refused),
        cmocka_unit_test(resumed_streams_tell_their_position),
        cmocka_unit_test(end_of_a_pass_runs_the_hook_first),
        cmocka_unit_test(lengths_may_differ_between_passes),
        cmocka_unit_test(positions_count_skipped_batches),
        cmocka_unit_test(limit_counts_from_the_position),
        cmocka_unit_test(infinite_sequences_go_on),
        cmocka_unit_test(impossible_positions_are_refused),
    };
    alarm(280);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
