/* SPDX-License-Identifier: Apache-2.0 */
/* A feed that makes a part of each batch makes the bytes that the whole batch has there, for every source, order and
 * number of parts; sources whose samples depend on each other do not promise it. */
#include "cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/files.h"
#include "leat/feed.h"
#include "leat/npz.h"
#include "leat/source.h"

enum { PICTURES = 23, ROWS = 31, BATCH = 7, PASSES = 2, MOST_BATCHES = 20, SAMPLE = 12 * 10 * 3 };

static bytes file;

static const char *path_of(int i) {
    static char path[64];
    snprintf(path, sizeof path, "d/%c/%02d.ppm", 'a' + i % 2, i);
    return path;
}

static int write_rows(const char *path, float first) {
    static float x[ROWS * 2];
    static int64_t y[ROWS];
    for (int i = 0; i < ROWS; ++i) {
        x[2 * i] = first + (float)i;
        x[2 * i + 1] = -(float)i;
        y[i] = i % 5;
    }
    leat_tensor tensors[] = {leat_tensor_view(LEAT_F32, 2, (int64_t[]){ROWS, 2}, x),
                             leat_tensor_view(LEAT_I64, 1, (int64_t[]){ROWS}, y)};
    return leat_npz_write(path, (const char *[]){"x", "y"}, tensors, 2, NULL) == LEAT_OK ? 0 : -1;
}

static int enter(void **state) {
    if (files_enter(state) != 0 || mkdir("d", 0777) != 0 || mkdir("d/a", 0777) != 0 ||
        mkdir("d/b", 0777) != 0)
        return -1;
    for (int i = 0; i < PICTURES; ++i) {
        file.size = 0;
        bytes_add_text(&file, "P6 13 11 255\n");
        for (int k = 0; k < 13 * 11; ++k) {
            const unsigned char pixel[3] = {(unsigned char)(i * 5 + k % 13), (unsigned char)k,
                                            (unsigned char)(k * 7)};
            bytes_add(&file, pixel, 3);
        }
        bytes_write(&file, path_of(i));
    }
    return write_rows("a.npz", 100) || write_rows("b.npz", 200);
}

static int leave(void **state) {
    for (int i = 0; i < PICTURES; ++i) remove(path_of(i));
    rmdir("d/a");
    rmdir("d/b");
    rmdir("d");
    return files_leave(state);
}

static leat_sequence opened(const char *text) {
    leat_sequence s;
    leat_error err = {0};
    leat_source_options options = leat_source_options_default();
    options.batch_size = BATCH;
    if (leat_source_open(&s, sizeof s, text, &options, &err) != LEAT_OK)
        fail_msg("%s: %s", text, err.message);
    return s;
}

/* The samples of some batches: the first two tensors of each. */
typedef struct stream {
    int64_t batches, whole[MOST_BATCHES], first[MOST_BATCHES], count[MOST_BATCHES];
    unsigned char x[MOST_BATCHES][BATCH][SAMPLE * 4], y[MOST_BATCHES][BATCH][64];
    size_t x_bytes, y_bytes; /* of a sample */
} stream;

static void record(stream *out, const leat_sequence *sequence, const leat_feed_options *options) {
    leat_feed *feed = NULL;
    leat_error err = {0};
    memset(out, 0, sizeof *out);
    if (leat_feed_open(&feed, sequence, options, &err) != LEAT_OK) fail_msg("%s", err.message);
    const int64_t length = leat_feed_length(feed);
    for (int64_t i = 0; i < PASSES * length; ++i) {
        const leat_batch *batch = NULL;
        if (leat_feed_get(feed, &batch, &err) != LEAT_OK) fail_msg("%s", err.message);
        const int64_t at = out->batches++;
        assert_true(at < MOST_BATCHES);
        out->count[at] = batch->size;
        out->whole[at] = leat_feed_whole(feed, &out->first[at]);
        out->x_bytes = leat_tensor_bytes(&batch->tensors[0]) / (size_t)batch->size;
        out->y_bytes = leat_tensor_bytes(&batch->tensors[1]) / (size_t)batch->size;
        assert_true(out->x_bytes <= sizeof out->x[0][0] && out->y_bytes <= sizeof out->y[0][0]);
        for (int64_t s = 0; s < batch->size; ++s) {
            memcpy(out->x[at][s], (char *)batch->tensors[0].data + (size_t)s * out->x_bytes, out->x_bytes);
            memcpy(out->y[at][s], (char *)batch->tensors[1].data + (size_t)s * out->y_bytes, out->y_bytes);
        }
        leat_feed_release(feed);
    }
    leat_feed_close(&feed);
}

/* Compares what a feed of some parts has made with those samples of whole batches, and counts them in `made`. */
static void compare(const char *text, const stream *whole, const stream *part,
                    const leat_feed_options *options, int64_t *made) {
    assert_int_equal(part->batches, whole->batches);
    for (int64_t b = 0; b < whole->batches; ++b) {
        const int64_t all = whole->count[b], first = options->first_part * all / options->parts,
                      end = options->end_part * all / options->parts;
        assert_int_equal(whole->whole[b], all);
        assert_int_equal(whole->first[b], 0);
        assert_int_equal(part->whole[b], all);
        assert_int_equal(part->count[b], end > first ? end - first : 1);
        if (end > first) assert_int_equal(part->first[b], first);
        made[b] += end - first;
        for (int64_t s = 0; s < part->count[b]; ++s) {
            const int64_t at = part->first[b] + s;
            if (memcmp(part->x[b][s], whole->x[b][at], whole->x_bytes) != 0 ||
                memcmp(part->y[b][s], whole->y[b][at], whole->y_bytes) != 0)
                fail_msg("%s: sample %lld of batch %lld differs", text, (long long)at, (long long)b);
        }
    }
}

/* Divides the parts among ranks as leat does, and compares all of them. */
static void check_world(const char *text, const leat_sequence *sequence, const leat_feed_options *base,
                        const stream *whole, int parts, int world) {
    static stream part;
    int64_t made[MOST_BATCHES] = {0};
    for (int rank = 0; rank < world; ++rank) {
        leat_feed_options options = *base;
        options.parts = parts;
        options.first_part = rank * parts / world;
        options.end_part = (rank + 1) * parts / world;
        record(&part, sequence, &options);
        compare(text, whole, &part, &options, made);
    }
    for (int64_t b = 0; b < whole->batches; ++b) assert_int_equal(made[b], whole->count[b]);
}

static const char *const divided[] = {
    "npz:a.npz",
    "images:d?size=12x10&augment=flip(both),rotate(40),brightness(0.4),RandomErasing(1)&labels=onehot",
    "images:d?size=12x10&augment=flip(both),zoom(0.3)&cache=memory",
    "concat(npz:a.npz; npz:b.npz)",
    "mix(npz:a.npz; npz:b.npz; weights=2,1)",
    "repeat(npz:a.npz; times=2)",
};

static void parts_are_the_whole(void **state) {
    static const leat_shuffle orders[] = {LEAT_SHUFFLE_NONE, LEAT_SHUFFLE_BATCHES, LEAT_SHUFFLE_SAMPLES,
                                          LEAT_SHUFFLE_WINDOW};
    static stream whole;
    (void)state;
    for (size_t i = 0; i < sizeof divided / sizeof *divided; ++i) {
        for (size_t k = 0; k < sizeof orders / sizeof *orders; ++k) {
            leat_sequence sequence = opened(divided[i]);
            leat_feed_options options = leat_feed_options_default();
            assert_true(sequence.independent_samples);
            options.shuffle = orders[k];
            options.shuffle_window = 10;
            options.seed = 5;
            options.workers = (int)k;
            options.use_multiprocessing = k == 2;
            record(&whole, &sequence, &options);
            check_world(divided[i], &sequence, &options, &whole, 2, 2);
            check_world(divided[i], &sequence, &options, &whole, 8, 3);
            check_world(divided[i], &sequence, &options, &whole, 20, 20);
            leat_sequence_destroy(&sequence);
        }
    }
}

static void what_depends_is_not_promised(void **state) {
    static const char *const whole[] = {
        "images:d?size=12x10&labels=onehot&mix=mixup",
        "images:d?size=12x10&bad=skip",
        "images:d?size=12x10&cache=records",
        "mix(images:d?size=12x10&bad=skip; images:d?size=12x10; weights=2,1)",
    };
    (void)state;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; ++i) {
        leat_feed *feed = NULL;
        leat_feed_options options = leat_feed_options_default();
        leat_error err = {0};
        leat_sequence sequence = opened(whole[i]);
        assert_false(sequence.independent_samples);
        options.parts = options.end_part = 2;
        assert_int_equal(leat_feed_open(&feed, &sequence, &options, &err), LEAT_ENOTSUP);
        assert_non_null(strstr(err.message, "promises independent_samples"));
        leat_sequence_destroy(&sequence);
    }
}

static void wrong_parts_are_refused(void **state) {
    const struct {
        int parts, first, end, world;
        leat_bad_batch bad;
        const char *message;
    } wrong[] = {
        {-1, 0, 0, 1, LEAT_BAD_BATCH_FAIL, "parts is -1"},
        {4, 4, 4, 1, LEAT_BAD_BATCH_FAIL, "first_part is 4, expected 0 to 3"},
        {4, 2, 1, 1, LEAT_BAD_BATCH_FAIL, "end_part is 1, expected 2 to 4"},
        {4, 0, 1, 2, LEAT_BAD_BATCH_FAIL, "parts is 4 and world is 2"},
        {4, 0, 1, 1, LEAT_BAD_BATCH_SKIP, "bad batches cannot be skipped"},
    };
    leat_sequence sequence = opened("npz:a.npz");
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
        leat_feed *feed = NULL;
        leat_error err = {0};
        leat_feed_options options = leat_feed_options_default();
        options.parts = wrong[i].parts;
        options.first_part = wrong[i].first;
        options.end_part = wrong[i].end;
        options.world = wrong[i].world;
        options.faults.bad_batch = wrong[i].bad;
        assert_int_not_equal(leat_feed_open(&feed, &sequence, &options, &err), LEAT_OK);
        if (!strstr(err.message, wrong[i].message)) fail_msg("%s: %s", wrong[i].message, err.message);
    }
    leat_sequence_destroy(&sequence);
}

/* The message of a bad sample names its number in the data, not in the part. */
static void a_bad_sample_is_named(void **state) {
    static float x[20];
    leat_array input = {.tensor = leat_tensor_view(LEAT_F32, 2, (int64_t[]){20, 1}, x)};
    const leat_arrays arrays = {.inputs = &input, .input_count = 1};
    leat_source_options source = leat_source_options_default();
    leat_feed_options options = leat_feed_options_default();
    leat_sequence sequence;
    leat_feed *feed = NULL;
    leat_error err = {0};
    const leat_batch *batch = NULL;
    (void)state;
    x[18] = x[0] / x[1]; /* NaN */
    source.batch_size = 10;
    options.parts = options.end_part = 4;
    options.first_part = 3;
    options.faults.check_finite = true;
    assert_int_equal(leat_arrays_open(&sequence, sizeof sequence, &arrays, &source, &err), LEAT_OK);
    assert_int_equal(leat_feed_open(&feed, &sequence, &options, &err), LEAT_OK);
    assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_OK);
    assert_int_equal(batch->size, 3);
    leat_feed_release(feed);
    assert_int_equal(leat_feed_get(feed, &batch, &err), LEAT_EUSER);
    if (!strstr(err.message, "sample 18 of the data")) fail_msg("%s", err.message);
    leat_feed_close(&feed);
    leat_sequence_destroy(&sequence);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_the_whole),
        cmocka_unit_test(what_depends_is_not_promised),
        cmocka_unit_test(wrong_parts_are_refused),
        cmocka_unit_test(a_bad_sample_is_named),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
