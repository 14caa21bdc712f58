/* SPDX-License-Identifier: Apache-2.0 */
/* The batches and samples that a pass visits, and their order: shuffling by batches, by samples and by windows, and the
 * shares of several ranks. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "feed/source.h"

enum { most_samples = 512 };

static const feed_mode in_line = {0};
static const feed_mode modes[] = {{0, false}, {1, false}, {4, false}, {1, true}, {3, true}};

#define FOR_EACH_MODE(mode)                                                                                  \
    for (size_t m = 0; m < sizeof modes / sizeof *modes; ++m)                                                \
        for (feed_mode mode = modes[m], *once = &mode; once; once = NULL)

/* Takes the next `batches` batches and lists the numbers of their samples in order.  Returns how many samples. */
static int take_numbers(leat_feed *feed, int64_t batches, int64_t *out) {
    int count = 0;
    for (int64_t b = 0; b < batches; ++b) {
        const leat_batch *batch = NULL;
        leat_error err = {0};
        if (leat_feed_get(feed, &batch, &err) != LEAT_OK) fail_msg("%s", err.message);
        assert_true(count + batch->size <= most_samples);
        memcpy(out + count, batch->tensors[1].data, (size_t)batch->size * sizeof *out);
        count += (int)batch->size;
        leat_feed_release(feed);
    }
    return count;
}

static void check_permutation(const int64_t *numbers, int count) {
    bool seen[most_samples] = {false};
    for (int i = 0; i < count; ++i) {
        assert_true(numbers[i] >= 0 && numbers[i] < count);
        assert_false(seen[numbers[i]]);
        seen[numbers[i]] = true;
    }
}

static int fixed_points(const int64_t *numbers, int count) {
    int fixed = 0;
    for (int i = 0; i < count; ++i) fixed += numbers[i] == i;
    return fixed;
}

/* 203 samples in batches of 10; the last batch has three. */
static void samples_are_shuffled_across_all_batches(void **state) {
    (void)state;
    enum { samples = 203, batches = 21, passes = 3 };
    source s;
    source_init(&s, 0, 10, 2);
    leat_sequence sequence = source_sequence_of_samples(&s, samples);
    int64_t expected[passes][most_samples];
    FOR_EACH_MODE(mode) {
        leat_feed_options options = source_options(mode);
        options.shuffle = LEAT_SHUFFLE_SAMPLES;
        leat_feed *feed = source_open(&sequence, &options);
        for (int pass = 0; pass < passes; ++pass) {
            int64_t numbers[most_samples];
            assert_int_equal(leat_feed_length(feed), batches);
            assert_int_equal(take_numbers(feed, batches, numbers), samples);
            check_permutation(numbers, samples);
            assert_true(fixed_points(numbers, samples) < 12); /* about one is expected */
            int torn = 0; /* neighbours that are in different batches now, because single samples move */
            for (int i = 0; i + 1 < 200; ++i) torn += numbers[i] / 10 != numbers[i + 1] / 10;
            assert_true(torn > 150);
            if (mode.workers == 0) memcpy(expected[pass], numbers, sizeof numbers);
            assert_memory_equal(numbers, expected[pass], samples * sizeof *numbers);
            for (int before = 0; before < pass; ++before)
                assert_memory_not_equal(numbers, expected[before], samples * sizeof *numbers);
        }
        leat_feed_close(&feed);
    }
    leat_feed_options options = source_options(in_line);
    options.shuffle = LEAT_SHUFFLE_SAMPLES;
    options.seed += 1;
    leat_feed *feed = source_open(&sequence, &options);
    int64_t numbers[most_samples];
    take_numbers(feed, batches, numbers);
    assert_memory_not_equal(numbers, expected[0], samples * sizeof *numbers);
    leat_feed_close(&feed);
    source_fini(&s);
}

static void check_displacements(const int64_t *numbers, int count, int64_t window) {
    int moved = 0;
    for (int i = 0; i < count; ++i) {
        assert_true(llabs(numbers[i] - i) < window);
        moved += numbers[i] != i;
    }
    if (window == 1) assert_int_equal(moved, 0);
    if (window >= 8) assert_true(moved > count / 2);
}

static void windows_bound_how_far_samples_move(void **state) {
    (void)state;
    static const int64_t windows[] = {1, 2, 8, 25, 203, 100000};
    enum { samples = 203, batches = 21 };
    source s;
    source_init(&s, 0, 10, 2);
    leat_sequence sequence = source_sequence_of_samples(&s, samples);
    for (int w = 0; w < 6; ++w) {
        int64_t expected[2][most_samples];
        FOR_EACH_MODE(mode) {
            leat_feed_options options = source_options(mode);
            options.shuffle = LEAT_SHUFFLE_WINDOW;
            options.shuffle_window = windows[w];
            leat_feed *feed = source_open(&sequence, &options);
            for (int pass = 0; pass < 2; ++pass) {
                int64_t numbers[most_samples];
                assert_int_equal(take_numbers(feed, batches, numbers), samples);
                check_permutation(numbers, samples);
                check_displacements(numbers, samples, windows[w]);
                if (mode.workers == 0) memcpy(expected[pass], numbers, sizeof numbers);
                assert_memory_equal(numbers, expected[pass], samples * sizeof *numbers);
            }
            if (windows[w] > 1)
                assert_memory_not_equal(expected[0], expected[1], samples * sizeof **expected);
            leat_feed_close(&feed);
        }
    }
    source_fini(&s);
}

/* The borders of the runs change from pass to pass, so that no two neighbours are always kept apart. */
static void windows_have_no_fixed_borders(void **state) {
    (void)state;
    enum { samples = 200, batches = 20, window = 10, passes = 60 };
    source s;
    source_init(&s, 0, 10, 2);
    leat_sequence sequence = source_sequence_of_samples(&s, samples);
    leat_feed_options options = source_options(in_line);
    options.shuffle = LEAT_SHUFFLE_WINDOW;
    options.shuffle_window = window;
    leat_feed *feed = source_open(&sequence, &options);
    bool swapped[samples - 1] = {false}; /* element i: in some pass, i + 1 came before i */
    for (int pass = 0; pass < passes; ++pass) {
        int64_t numbers[most_samples], place[samples];
        assert_int_equal(take_numbers(feed, batches, numbers), samples);
        for (int i = 0; i < samples; ++i) place[numbers[i]] = i;
        for (int i = 0; i + 1 < samples; ++i) swapped[i] = swapped[i] || place[i + 1] < place[i];
    }
    for (int i = 0; i + 1 < samples; ++i) assert_true(swapped[i]);
    leat_feed_close(&feed);
    source_fini(&s);
}

static void windows_of_batches_where_there_are_no_samples(void **state) {
    (void)state;
    enum { length = 40, window = 6 };
    source s;
    source_init(&s, length, 2, 2);
    leat_sequence sequence = source_sequence(&s);
    int64_t expected[length] = {0};
    FOR_EACH_MODE(mode) {
        leat_feed_options options = source_options(mode);
        options.shuffle = LEAT_SHUFFLE_WINDOW;
        options.shuffle_window = window;
        leat_feed *feed = source_open(&sequence, &options);
        source_entry seen[length];
        leat_error end = {0};
        assert_int_equal(source_record(feed, seen, length, &end), length);
        int64_t order[length];
        for (int i = 0; i < length; ++i) order[i] = seen[i].at.index;
        check_permutation(order, length);
        for (int i = 0; i < length; ++i) assert_true(llabs(order[i] - i) < window);
        assert_true(fixed_points(order, length) < length / 2);
        if (mode.workers == 0) memcpy(expected, order, sizeof order);
        assert_memory_equal(order, expected, sizeof order);
        leat_feed_close(&feed);
    }
    source_fini(&s);
}

/* Checks that the samples of each block are in one group of the order, which has `group` blocks and perhaps the shorter
 * block, and that they are not in their own order. */
static void check_groups(const int64_t *numbers, int count, int block, int group) {
    int first[most_samples], last[most_samples], in_order = 0;
    for (int b = 0; b <= count / block; ++b) first[b] = -1;
    for (int i = 0; i < count; ++i) {
        const int64_t b = numbers[i] / block;
        if (first[b] < 0) first[b] = i;
        last[b] = i;
        in_order += i > 0 && numbers[i] == numbers[i - 1] + 1;
    }
    for (int b = 0; b <= count / block; ++b)
        assert_true(first[b] < 0 || last[b] - first[b] < group * block + count % block);
    assert_true(in_order < count / 2 || count < 10);
}

static void blocks_stay_together(void **state) {
    (void)state;
    static const struct {
        int samples, block, group;
    } cases[] = {{203, 10, 3}, {200, 10, 3},  {203, 10, 1}, {203, 10, 1000},
                 {7, 10, 2},   {203, 203, 1}, {203, 2, 50}};
    for (int c = 0; c < 7; ++c) {
        const int samples = cases[c].samples, batches = (samples + 9) / 10;
        source s;
        source_init(&s, 0, 10, 2);
        leat_sequence sequence = source_sequence_of_samples(&s, samples);
        sequence.block_samples = cases[c].block;
        sequence.blocks_at_once = cases[c].group;
        int64_t expected[2][most_samples];
        FOR_EACH_MODE(mode) {
            leat_feed_options options = source_options(mode);
            options.shuffle = mode.workers == 1 ? LEAT_SHUFFLE_AUTO : LEAT_SHUFFLE_BLOCKS;
            leat_feed *feed = source_open(&sequence, &options);
            for (int pass = 0; pass < 2; ++pass) {
                int64_t numbers[most_samples];
                assert_int_equal(take_numbers(feed, batches, numbers), samples);
                check_permutation(numbers, samples);
                check_groups(numbers, samples, cases[c].block, cases[c].group);
                if (mode.workers == 0) memcpy(expected[pass], numbers, sizeof numbers);
                assert_memory_equal(numbers, expected[pass], (size_t)samples * sizeof *numbers);
            }
            assert_memory_not_equal(expected[0], expected[1], (size_t)samples * sizeof **expected);
            leat_feed_close(&feed);
        }
        source_fini(&s);
    }
}

/* The order of a pass needs no history: a stream that begins with pass 5 has the same order. */
static void order_is_a_function_of_seed_and_pass(void **state) {
    (void)state;
    enum { samples = 95, batches = 10 };
    static const leat_shuffle kinds[] = {LEAT_SHUFFLE_BATCHES, LEAT_SHUFFLE_SAMPLES, LEAT_SHUFFLE_WINDOW};
    source s;
    source_init(&s, 0, 10, 2);
    leat_sequence sequence = source_sequence_of_samples(&s, samples);
    for (int k = 0; k < 3; ++k) {
        leat_feed_options options = source_options(in_line);
        options.shuffle = kinds[k];
        options.shuffle_window = 20;
        leat_feed *feed = source_open(&sequence, &options);
        int64_t expected[most_samples], numbers[most_samples];
        for (int pass = 0; pass < 6; ++pass)
            take_numbers(feed, batches, expected); /* the numbers of pass 5 remain */
        leat_feed_close(&feed);
        leat_feed_position at = {.pass = 5};
        leat_error err = {0};
        assert_int_equal(leat_feed_open_at(&feed, &sequence, &options, &at, &err), LEAT_OK);
        take_numbers(feed, batches, numbers);
        assert_memory_equal(numbers, expected, samples * sizeof *numbers);
        leat_feed_close(&feed);
    }
    source_fini(&s);
}

static uint64_t stream_of(const leat_sequence *sequence, leat_shuffle shuffle, int64_t batches) {
    leat_feed_options options = source_options((feed_mode){2, false});
    options.shuffle = shuffle;
    return source_stream(sequence, &options, batches);
}

static void auto_takes_the_best_that_there_is(void **state) {
    (void)state;
    source s;
    source_init(&s, 9, 4, 2);
    leat_sequence sequence = source_sequence(&s);
    assert_int_equal(stream_of(&sequence, LEAT_SHUFFLE_AUTO, 30),
                     stream_of(&sequence, LEAT_SHUFFLE_BATCHES, 30));
    leat_sequence samples = source_sequence_of_samples(&s, 35);
    assert_int_equal(stream_of(&samples, LEAT_SHUFFLE_AUTO, 30),
                     stream_of(&samples, LEAT_SHUFFLE_SAMPLES, 30));
    s.length = LEAT_LENGTH_INFINITE;
    assert_int_equal(stream_of(&sequence, LEAT_SHUFFLE_AUTO, 30),
                     stream_of(&sequence, LEAT_SHUFFLE_NONE, 30));
    s.length = -1;
    leat_sequence generator = source_generator(&s);
    uint64_t expected = stream_of(&generator, LEAT_SHUFFLE_NONE, 30);
    s.made = 0;
    atomic_store(&s.counts->owner, 0);
    assert_int_equal(stream_of(&generator, LEAT_SHUFFLE_AUTO, 30), expected);
    source_fini(&s);
}

/* The numbers of rng are the same for all workers, and different for each pass and index. */
static void random_numbers_belong_to_seed_pass_and_index(void **state) {
    (void)state;
    enum { length = 20, count = 60 };
    source s;
    source_init(&s, length, 1, 1);
    s.delay_us = 200;
    leat_sequence sequence = source_sequence(&s);
    float expected[count] = {0};
    FOR_EACH_MODE(mode) {
        leat_feed_options options = source_options(mode);
        leat_feed *feed = source_open(&sequence, &options);
        for (int i = 0; i < count; ++i) {
            const leat_batch *batch = NULL;
            leat_error err = {0};
            assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_OK);
            float number = ((const float *)batch->tensors[0].data)[0];
            if (mode.workers == 0) expected[i] = number;
            assert_true(number == expected[i]);
            for (int before = 0; before < i; ++before) assert_true(number != expected[before]);
            leat_feed_release(feed);
        }
        leat_feed_close(&feed);
    }
    source_fini(&s);
}

static void refuse(const leat_sequence *sequence, const leat_feed_options *options, leat_status code,
                   const char *part) {
    leat_feed *feed = (leat_feed *)(uintptr_t)1;
    leat_error err = {0};
    assert_int_equal(leat_feed_open(&feed, sequence, options, &err), code);
    assert_null(feed);
    if (!strstr(err.message, part)) fail_msg("expected '%s' in '%s'", part, err.message);
}

static void shuffles_that_cannot_be_are_refused(void **state) {
    (void)state;
    source s;
    source_init(&s, 9, 4, 2);
    leat_sequence sequence = source_sequence(&s), generator = source_generator(&s);
    leat_feed_options options = source_options(in_line);
    options.shuffle = LEAT_SHUFFLE_SAMPLES;
    refuse(&sequence, &options, LEAT_ENOTSUP, "get_samples");
    refuse(&generator, &options, LEAT_ENOTSUP, "generator");
    options.shuffle = LEAT_SHUFFLE_BATCHES;
    refuse(&generator, &options, LEAT_ENOTSUP, "generator");
    options.shuffle = LEAT_SHUFFLE_WINDOW;
    options.shuffle_window = 0;
    refuse(&sequence, &options, LEAT_EINVAL, "shuffle_window is 0");
    options.shuffle = LEAT_SHUFFLE_BLOCKS;
    refuse(&sequence, &options, LEAT_ENOTSUP, "do not lie in blocks");
    options.shuffle = LEAT_SHUFFLE_WINDOW;
    options.shuffle_window = 4;
    refuse(&generator, &options, LEAT_ENOTSUP, "generator");
    options.shuffle = LEAT_SHUFFLE_BATCHES;
    s.length = LEAT_LENGTH_INFINITE;
    refuse(&sequence, &options, LEAT_ENOTSUP, "infinite sequence");
    leat_sequence half = source_sequence_of_samples(&s, 33);
    half.get_samples = NULL;
    refuse(&half, &options, LEAT_EINVAL, "get_samples");
    source_fini(&s);
}

/* Returns how many of `length` batches a rank must get. */
static int64_t share(int64_t length, int rank, int world, leat_remainder remainder) {
    if (remainder == LEAT_REMAINDER_DROP) return length / world;
    if (remainder == LEAT_REMAINDER_PAD) return (length + world - 1) / world;
    return length / world + (rank < length % world);
}

static void take_share(const leat_sequence *sequence, leat_feed_options *options, const int64_t *whole,
                       int64_t length, int64_t *times) {
    enum { most = 64 };
    int64_t expected = share(length, options->rank, options->world, options->remainder);
    leat_feed *feed = source_open(sequence, options);
    assert_int_equal(leat_feed_length(feed), expected);
    for (int pass = 0; pass < 2; ++pass) {
        source_entry seen[most];
        leat_error end = {0};
        assert_int_equal(source_record(feed, seen, expected, &end), expected);
        for (int64_t i = 0; i < expected; ++i) {
            assert_int_equal(seen[i].at.pass, pass);
            assert_int_equal(seen[i].at.ordinal, i);
            int64_t place =
                (i * options->world + options->rank) % length; /* position in the pass of all ranks */
            assert_int_equal(seen[i].at.index, whole[pass * length + place]);
            if (pass == 0) ++times[seen[i].at.index];
        }
    }
    leat_feed_close(&feed);
}

/* Checks the shares of all ranks of a pass of `length` batches together. */
static void check_world(const leat_sequence *sequence, leat_feed_options options, int64_t length) {
    int64_t whole[64], times[32] = {0};
    source_entry all[64];
    leat_error end = {0};
    leat_feed_options plain = source_options(in_line);
    plain.shuffle = options.shuffle;
    leat_feed *feed = source_open(sequence, &plain);
    assert_int_equal(source_record(feed, all, 2 * length, &end), 2 * length);
    leat_feed_close(&feed);
    for (int64_t i = 0; i < 2 * length; ++i) whole[i] = all[i].at.index;
    for (options.rank = 0; options.rank < options.world; ++options.rank) {
        if (share(length, options.rank, options.world, options.remainder) == 0) {
            char text[32];
            snprintf(text, sizeof text, "rank %d of %d", options.rank, options.world);
            refuse(sequence, &options, LEAT_EINVAL, text);
            continue;
        }
        take_share(sequence, &options, whole, length, times);
    }
    int64_t left = length % options.world, padding = left ? options.world - left : 0;
    for (int64_t i = 0; i < length; ++i) {
        int64_t wanted = 1, index = whole[i];
        if (options.remainder == LEAT_REMAINDER_DROP && i >= length - left) wanted = 0;
        if (options.remainder == LEAT_REMAINDER_PAD)
            wanted += padding / length + (i < padding % length); /* padding repeats the first batches */
        assert_int_equal(times[index], wanted);
    }
}

static void shares_of_the_ranks_are_the_pass(void **state) {
    (void)state;
    static const int worlds[] = {1, 2, 3, 5, 8, 20};
    for (int64_t length = 1; length <= 16; length += length < 9 ? 1 : 7) {
        source s;
        source_init(&s, length, 2, 2);
        leat_sequence sequence = source_sequence(&s);
        for (int w = 0; w < 6; ++w)
            for (int r = LEAT_REMAINDER_UNEVEN; r <= LEAT_REMAINDER_PAD; ++r) {
                leat_feed_options options = source_options(in_line);
                options.shuffle = LEAT_SHUFFLE_BATCHES;
                options.world = worlds[w];
                options.remainder = (leat_remainder)r;
                check_world(&sequence, options, length);
            }
        source_fini(&s);
    }
}

static void shares_are_the_same_for_all_workers(void **state) {
    (void)state;
    source s;
    source_init(&s, 7, 2, 2);
    leat_sequence sequence = source_sequence(&s);
    FOR_EACH_MODE(mode) {
        for (int r = LEAT_REMAINDER_UNEVEN; r <= LEAT_REMAINDER_PAD; ++r) {
            leat_feed_options options = source_options(mode);
            options.shuffle = LEAT_SHUFFLE_BATCHES;
            options.world = 3;
            options.remainder = (leat_remainder)r;
            check_world(&sequence, options, 7);
        }
    }
    source_fini(&s);
}

/* Samples are shuffled over all ranks: together the ranks get each sample once. */
static void ranks_share_shuffled_samples(void **state) {
    (void)state;
    enum { samples = 78, world = 3 }; /* 8 batches of 10; the last batch has 8 */
    source s;
    source_init(&s, 0, 10, 2);
    leat_sequence sequence = source_sequence_of_samples(&s, samples);
    int64_t all[most_samples];
    int count = 0;
    for (int rank = 0; rank < world; ++rank) {
        leat_feed_options options = source_options((feed_mode){2, rank % 2 == 1});
        options.shuffle = LEAT_SHUFFLE_SAMPLES;
        options.rank = rank;
        options.world = world;
        leat_feed *feed = source_open(&sequence, &options);
        count += take_numbers(feed, leat_feed_length(feed), all + count);
        leat_feed_close(&feed);
    }
    assert_int_equal(count, samples);
    check_permutation(all, samples);
    source_fini(&s);
}

static void impossible_ranks_are_refused(void **state) {
    (void)state;
    source s;
    source_init(&s, 9, 4, 2);
    leat_sequence sequence = source_sequence(&s), generator = source_generator(&s);
    leat_feed_options options = source_options(in_line);
    options.world = 0;
    refuse(&sequence, &options, LEAT_EINVAL, "world is 0");
    options.world = 2;
    options.rank = 2;
    refuse(&sequence, &options, LEAT_EINVAL, "rank is 2");
    options.rank = -1;
    refuse(&sequence, &options, LEAT_EINVAL, "rank is -1");
    options.rank = 0;
    options.remainder = (leat_remainder)5;
    refuse(&sequence, &options, LEAT_EINVAL, "remainder");
    options.remainder = LEAT_REMAINDER_UNEVEN;
    refuse(&generator, &options, LEAT_ENOTSUP, "generator");
    source_fini(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_shuffled_across_all_batches),
        cmocka_unit_test(windows_bound_how_far_samples_move),
        cmocka_unit_test(windows_have_no_fixed_borders),
        cmocka_unit_test(windows_of_batches_where_there_are_no_samples),
        cmocka_unit_test(blocks_stay_together),
        cmocka_unit_test(order_is_a_function_of_seed_and_pass),
        cmocka_unit_test(random_numbers_belong_to_seed_pass_and_index),
        cmocka_unit_test(auto_takes_the_best_that_there_is),
        cmocka_unit_test(shuffles_that_cannot_be_are_refused),
        cmocka_unit_test(shares_of_the_ranks_are_the_pass),
        cmocka_unit_test(shares_are_the_same_for_all_workers),
        cmocka_unit_test(ranks_share_shuffled_samples),
        cmocka_unit_test(impossible_ranks_are_refused),
    };
    alarm(240);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
