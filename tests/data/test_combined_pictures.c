/* SPDX-License-Identifier: Apache-2.0 */
/* Augmented pictures inside of combinations that are split for validation: the samples for validation are not
 * augmented, and are the same in each pass; statistics are those of the samples for training. */
#include "cmocka_all.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "data/files.h"
#include "leat/combine.h"
#include "leat/feed.h"
#include "leat/source.h"

enum { PICTURES = 36, BATCH = 5, SIDE = 6, VALUES = SIDE * SIDE * 3, PASSES = 3, MOST = 200 };

static bytes file;

static unsigned char value_of(int picture, int at) {
    return (unsigned char)(picture * 7 + at * 5 % 97);
}

static const char *path_of(int picture) {
    static char path[32];
    snprintf(path, sizeof path, "p%02d.ppm", picture);
    return path;
}

/* Three lists of the same form: a has the pictures 0 to 9, b those to 19, c the others; the label is the number. */
static int enter(void **state) {
    static bytes lists[3];
    if (files_enter(state) != 0) return -1;
    for (int k = 0; k < 3; ++k) bytes_add_text(&lists[k], "filename,number\n");
    for (int i = 0; i < PICTURES; ++i) {
        char row[64];
        file.size = 0;
        bytes_add_text(&file, "P6 6 6 255\n");
        for (int k = 0; k < VALUES; ++k) bytes_add(&file, (unsigned char[]){value_of(i, k)}, 1);
        bytes_write(&file, path_of(i));
        snprintf(row, sizeof row, "%s,%d\n", path_of(i), i);
        bytes_add_text(&lists[i < 10 ? 0 : i < 20 ? 1 : 2], row);
    }
    bytes_write(&lists[0], "a.csv");
    bytes_write(&lists[1], "b.csv");
    bytes_write(&lists[2], "c.csv");
    return 0;
}

static int leave(void **state) {
    for (int i = 0; i < PICTURES; ++i) remove(path_of(i));
    remove("a.csv");
    remove("b.csv");
    remove("c.csv");
    return files_leave(state);
}

#define PLAIN(name) "images:" name ".csv?size=6x6&labels=raw&y_col=number"
#define MOVED(name) PLAIN(name) "&augment=flip,rotate(60),brightness(0.5)"

static void open_parts(const char *spec, double share, leat_sequence *first, leat_sequence *last) {
    leat_sequence s;
    leat_error err = {0};
    leat_source_options options = leat_source_options_default();
    options.batch_size = BATCH;
    options.validation_split = share;
    if (leat_source_open(&s, sizeof s, spec, &options, &err) != LEAT_OK ||
        leat_sequence_split(&s, share, first, last, sizeof *first, &err) != LEAT_OK)
        fail_msg("%s: %s", spec, err.message);
}

/* The samples of all passes, in order: the last input and the first target of each. */
typedef struct stream {
    unsigned char pictures[PASSES * MOST][VALUES];
    int numbers[PASSES * MOST];
    int count;
} stream;

static void record(stream *out, const leat_sequence *s, int workers, bool processes) {
    leat_feed *feed;
    leat_error err = {0};
    leat_feed_options options = leat_feed_options_default();
    options.workers = workers;
    options.use_multiprocessing = processes;
    options.seed = 7;
    options.shuffle = LEAT_SHUFFLE_SAMPLES;
    options.passes = PASSES;
    memset(out, 0, sizeof *out);
    if (leat_feed_open(&feed, s, &options, &err) != LEAT_OK) fail_msg("%s", err.message);
    const leat_batch *batch;
    leat_status status;
    while ((status = leat_feed_get(feed, &batch, &err)) == LEAT_OK) {
        const int target = leat_batch_spec_first(&s->spec, LEAT_PART_TARGET);
        for (int64_t i = 0; i < batch->size; ++i, ++out->count) {
            memcpy(out->pictures[out->count],
                   (const unsigned char *)batch->tensors[target - 1].data + i * VALUES, VALUES);
            out->numbers[out->count] = (int)((const float *)batch->tensors[target].data)[i];
        }
        leat_feed_release(feed);
    }
    assert_int_equal(status, LEAT_ENOTFOUND); /* the end of the stream */
    leat_feed_close(&feed);
}

static bool is_plain(const stream *s, int at) {
    for (int k = 0; k < VALUES; ++k)
        if (s->pictures[at][k] != value_of(s->numbers[at], k)) return false;
    return true;
}

static const char *const combinations[] = {
    "concat(" MOVED("a") "; " MOVED("b") ")",
    "zip("
    "images:a.csv?size=6x6&labels=none; " MOVED("b") ")",
    "mix(" MOVED("a") "; " MOVED("c") "; weights=2,1)",
    "mix(" MOVED("a") "; mix(" MOVED("b") "; " MOVED("c") "); weights=1,2)",
    "take(" MOVED("c") "; count=12)",
    "skip(concat(" MOVED("a") "; " MOVED("b") "); count=3)",
    "shard(mix(" MOVED("a") "; " MOVED("b") "); rank=1; world=2)",
    "repeat(" MOVED("c") "; times=2)",
    "concat(cache(" PLAIN("a") "); " MOVED("b") ")",
};

static void validation_is_not_augmented(void **state) {
    (void)state;
    static stream training, validation;
    for (size_t i = 0; i < sizeof combinations / sizeof *combinations; ++i) {
        leat_sequence first, last;
        bool seen[2][PICTURES] = {{false}};
        int moved = 0;
        open_parts(combinations[i], 0.3, &first, &last);
        record(&training, &first, 2, false);
        record(&validation, &last, 0, false);
        for (int k = 0; k < validation.count; ++k) {
            if (!is_plain(&validation, k)) fail_msg("%s: sample %d", combinations[i], k);
            seen[1][validation.numbers[k]] = true;
        }
        for (int k = 0; k < training.count; ++k) {
            moved += !is_plain(&training, k);
            seen[0][training.numbers[k]] = true;
        }
        assert_true(moved > 0);
        for (int k = 0; k < PICTURES && !strstr(combinations[i], "repeat"); ++k)
            if (seen[0][k] && seen[1][k]) fail_msg("%s: picture %d is in both parts", combinations[i], k);
        leat_sequence_destroy(&first);
        leat_sequence_destroy(&last);
    }
}

static void streams_do_not_depend_on_the_workers(void **state) {
    (void)state;
    static stream expected[2], found;
    for (size_t i = 0; i < sizeof combinations / sizeof *combinations; ++i)
        for (int workers = 0; workers <= 4; workers += 2)
            for (int processes = 0; processes < 2 && (workers > 0 || !processes); ++processes) {
                leat_sequence parts[2];
                open_parts(combinations[i], 0.3, &parts[0], &parts[1]);
                for (int k = 0; k < 2; ++k) {
                    record(&found, &parts[k], workers, processes);
                    if (workers == 0) expected[k] = found;
                    if (memcmp(&expected[k], &found, sizeof found) != 0)
                        fail_msg("%s: part %d with %d workers", combinations[i], k, workers);
                    leat_sequence_destroy(&parts[k]);
                }
            }
}

/* A part of a split may be a part of a combination, which is split again. */
static void parts_of_splits_are_not_augmented_either(void **state) {
    (void)state;
    static stream found;
    leat_sequence parts[2], joined, first, last;
    leat_error err = {0};
    open_parts(MOVED("c"), 0.5, &parts[0], &parts[1]);
    leat_sequence *const turned[] = {&parts[1], &parts[0]};
    assert_int_equal(leat_sequence_concat(turned, 2, &joined, sizeof joined, &err), LEAT_OK);
    assert_int_equal(leat_sequence_split(&joined, 0.25, &first, &last, sizeof first, &err), LEAT_OK);
    record(&found, &last, 0, false);
    for (int k = 0; k < found.count; ++k) assert_true(is_plain(&found, k));
    leat_sequence_destroy(&first);
    leat_sequence_destroy(&last);
}

/* Without a split, a mixture has another order in each pass. */
static void only_splits_and_caches_fix_a_mixture(void **state) {
    (void)state;
    static const char *const specs[] = {"mix(" PLAIN("a") "; " PLAIN("b") ")",
                                        "cache(mix(" PLAIN("a") "; " PLAIN("b") "))"};
    for (int i = 0; i < 2; ++i) {
        leat_sequence s;
        leat_source_options options = leat_source_options_default();
        float numbers[2][BATCH];
        unsigned char pixels[BATCH * VALUES];
        options.batch_size = BATCH;
        assert_int_equal(leat_source_open(&s, sizeof s, specs[i], &options, NULL), LEAT_OK);
        for (int pass = 0; pass < 2; ++pass) {
            leat_batch batch = {.size = BATCH, .tensor_count = 2};
            leat_rng rng = leat_rng_for(1, (uint64_t)pass, 0);
            batch.tensors[0].data = pixels;
            batch.tensors[1].data = numbers[pass];
            assert_int_equal(s.get(s.user, pass, &rng, &batch, NULL), LEAT_OK);
            rng = leat_rng_for(1, (uint64_t)pass, 0);
            assert_int_equal(s.get(s.user, 0, &rng, &batch, NULL), LEAT_OK);
        }
        assert_true((memcmp(numbers[0], numbers[1], sizeof numbers[0]) == 0) == (i == 1));
        leat_sequence_destroy(&s);
    }
}

/* The name of a sample is the path of the picture that get_samples makes with the same random numbers. */
static void samples_have_the_names_of_their_pictures(void **state) {
    (void)state;
    static unsigned char pixels[2][VALUES];
    for (size_t i = 0; i < sizeof combinations / sizeof *combinations; ++i) {
        leat_sequence s;
        leat_error err = {0};
        const bool is_zip = strncmp(combinations[i], "zip", 3) == 0;
        if (leat_source_open(&s, sizeof s, combinations[i], NULL, &err) != LEAT_OK)
            fail_msg("%s", err.message);
        for (int64_t number = 0; number < s.samples(s.user); ++number) {
            leat_rng rng = leat_rng_for(3, 1, (uint64_t)number);
            const leat_rng same = rng;
            float label = 0;
            char *name = NULL, expected[32];
            leat_batch batch = {.size = 1, .tensor_count = s.spec.tensor_count};
            batch.tensors[0].data = pixels[0];
            batch.tensors[1].data = pixels[1];
            batch.tensors[s.spec.tensor_count - 1].data = &label;
            assert_int_equal(s.get_samples(s.user, &number, 1, &rng, &batch, NULL), LEAT_OK);
            assert_int_equal(leat_source_sample_name(&s, number, &same, &name, &err), LEAT_OK);
            snprintf(expected, sizeof expected, "%s", path_of((int)label - (is_zip ? 10 : 0)));
            if (strcmp(name, expected) != 0)
                fail_msg("%s: sample %d is %s, not %s", combinations[i], (int)number, expected, name);
            leati_free(name);
        }
        char *name = NULL;
        assert_int_equal(leat_source_sample_name(&s, s.samples(s.user), &(leat_rng){0}, &name, &err),
                         LEAT_EINVAL);
        assert_int_equal(leat_source_sample_name(&s, 0, NULL, &name, &err), LEAT_EINVAL);
        assert_null(name);
        leat_sequence_destroy(&s);
    }
}

/* ---- Statistics ---- */

#define STANDARD(name)                                                                                       \
    "images:" name                                                                                           \
    ".csv?size=6x6&labels=raw&y_col=number&statistics=s.npz&augment=featurewise_center,featurewise_std_"     \
    "normalization"

/* Reads all samples of one channel and returns their mean and standard deviation. */
static void describe(const leat_sequence *s, double *mean, double *deviation) {
    static float pixels[MOST * VALUES], numbers[MOST];
    double sum = 0, square = 0;
    int count = 0;
    for (int64_t b = 0; b < s->length(s->user); ++b) {
        leat_batch batch = {.size = s->spec.batch_size, .tensor_count = 2};
        leat_rng rng = leat_rng_for(1, 0, (uint64_t)b);
        batch.tensors[0].data = pixels;
        batch.tensors[1].data = numbers;
        assert_int_equal(s->get(s->user, b, &rng, &batch, NULL), LEAT_OK);
        for (int64_t i = 0; i < batch.size * VALUES; i += 3, ++count) {
            sum += (double)pixels[i];
            square += (double)pixels[i] * (double)pixels[i];
        }
    }
    *mean = sum / count;
    *deviation = sqrt(square / count - *mean * *mean);
}

/* In each combination only one source is standardized, and all its samples for training come from it. */
static void statistics_are_of_the_samples_for_training(void **state) {
    (void)state;
    static const char *const specs[] = {
        "concat(" STANDARD("c") ")",         "take(" STANDARD("c") "; count=11)",
        "skip(" STANDARD("c") "; count=5)",  "shard(skip(" STANDARD("c") "; count=1); rank=1; world=3)",
        "mix(" STANDARD("c") "; samples=9)",
    };
    for (size_t i = 0; i < sizeof specs / sizeof *specs; ++i) {
        leat_sequence first, last;
        double mean = 0, deviation = 0;
        open_parts(specs[i], 0.3, &first, &last);
        describe(&first, &mean, &deviation);
        if (!(fabs(mean) < 1e-3 && fabs(deviation - 1) < 1e-3))
            fail_msg("%s: mean %g, standard deviation %g", specs[i], mean, deviation);
        describe(&last, &mean, &deviation);
        assert_true(fabs(mean) > 1e-2);
        leat_sequence_destroy(&first);
        leat_sequence_destroy(&last);
        assert_int_equal(remove("s.npz"), 0);
    }
}

/* The second source has no sample for training: the first one's numbers count. */
static void a_source_for_validation_alone_has_the_numbers_of_the_first(void **state) {
    (void)state;
    leat_sequence first, last, s;
    leat_error err = {0};
    leat_source_options options = leat_source_options_default();
    double mean = 0, deviation = 0;
    open_parts("concat(" STANDARD("a") "; " STANDARD("b") ")", 0.5, &first, &last);
    describe(&first, &mean, &deviation);
    assert_true(fabs(mean) < 1e-3 && fabs(deviation - 1) < 1e-3);
    describe(&last, &mean, &deviation);
    assert_true(fabs(mean) > 1e-2);
    leat_sequence_destroy(&first);
    leat_sequence_destroy(&last);
    assert_int_equal(remove("s.npz"), 0);
    options.validation_split = 0.5;
    assert_int_equal(leat_source_open(&s, sizeof s,
                                      "concat(" PLAIN("a") "&augment=featurewise_center; " PLAIN(
                                          "b") "&augment=featurewise_center)",
                                      &options, &err),
                     LEAT_EINVAL);
    assert_non_null(strstr(err.message, "statistics="));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validation_is_not_augmented),
        cmocka_unit_test(streams_do_not_depend_on_the_workers),
        cmocka_unit_test(parts_of_splits_are_not_augmented_either),
        cmocka_unit_test(samples_have_the_names_of_their_pictures),
        cmocka_unit_test(only_splits_and_caches_fix_a_mixture),
        cmocka_unit_test(statistics_are_of_the_samples_for_training),
        cmocka_unit_test(a_source_for_validation_alone_has_the_numbers_of_the_first),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
