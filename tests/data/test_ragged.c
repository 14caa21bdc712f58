/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that vary in length: padding and cutting, compared with Keras's pad_sequences, and buckets. */
#include "cmocka_all.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "data/files.h"
#include "leat/feed.h"
#include "leat/npz.h"
#include "leat/source.h"

enum { MOST = 4096, LONG_SAMPLES = 60, BATCH = 8, PASSES = 2 };

/* Sample i of long.npz has (7 * i) % 23 time steps, each of them i; its target is i. */
static int long_length(int i) {
    return 7 * i % 23;
}

static int write_file(const char *path, const int32_t *values, int64_t value_count, const int64_t *offsets,
                      int64_t samples, const int32_t *targets) {
    leat_tensor tensors[] = {leat_tensor_view(LEAT_I32, 1, &value_count, (void *)(uintptr_t)values),
                             leat_tensor_view(LEAT_I64, 1, (int64_t[]){samples + 1},
                                              (void *)(uintptr_t)offsets),
                             leat_tensor_view(LEAT_I32, 1, &samples, (void *)(uintptr_t)targets)};
    return leat_npz_write(path, (const char *[]){"values", "offsets", "y"}, tensors, targets ? 3 : 2, NULL) ==
                   LEAT_OK
               ? 0
               : -1;
}

static int enter(void **state) {
    static int32_t values[MOST], targets[LONG_SAMPLES];
    int64_t offsets[LONG_SAMPLES + 1] = {0};
    if (files_enter(state) != 0) return -1;
    for (int i = 0; i < LONG_SAMPLES; ++i) {
        offsets[i + 1] = offsets[i] + long_length(i);
        for (int64_t k = offsets[i]; k < offsets[i + 1]; ++k) values[k] = i;
        targets[i] = i;
    }
    const int64_t wrong[] = {0, 5, 3};
    if (write_file("wrong.npz", values, 10, wrong, 2, NULL) != 0) return -1;
    return write_file("long.npz", values, offsets[LONG_SAMPLES], offsets, LONG_SAMPLES, targets);
}

static leat_sequence opened(const char *spec, int64_t batch_size) {
    leat_sequence s;
    leat_error err = {0};
    leat_source_options options = {.size = sizeof options, .batch_size = batch_size};
    if (leat_source_open(&s, sizeof s, spec, &options, &err) != LEAT_OK)
        fail_msg("%s: %s", spec, err.message);
    return s;
}

/* ---- Padding ---- */

static void write_sequences(json_t *sequences) {
    int32_t values[256];
    int64_t offsets[64] = {0};
    const size_t count = json_array_size(sequences);
    for (size_t i = 0; i < count; ++i) {
        json_t *sequence = json_array_get(sequences, i);
        const size_t length = json_array_size(sequence);
        for (size_t k = 0; k < length; ++k)
            values[offsets[i] + (int64_t)k] = (int32_t)json_integer_value(json_array_get(sequence, k));
        offsets[i + 1] = offsets[i] + (int64_t)length;
    }
    assert_int_equal(write_file("few.npz", values, offsets[count], offsets, (int64_t)count, NULL), 0);
}

static void compare_padding(json_t *padding, size_t samples) {
    char spec[256] = "ragged:few.npz?within=ordered";
    const char *key;
    json_t *value, *rows = json_object_get(padding, "padded");
    int32_t x[256];
    json_object_foreach(json_object_get(padding, "arguments"), key, value) {
        const size_t at = strlen(spec);
        if (json_is_string(value))
            snprintf(spec + at, sizeof spec - at, "&%s=%s", key, json_string_value(value));
        else
            snprintf(spec + at, sizeof spec - at, "&%s=%lld", key, (long long)json_integer_value(value));
    }
    leat_sequence s = opened(spec, 32);
    leat_batch batch = {.size = (int64_t)samples, .tensor_count = 1, .tensors = {{.data = x}}};
    leat_rng rng = leat_rng_for(0, 0, 0);
    leat_error err = {0};
    assert_int_equal(s.get(s.user, 0, &rng, &batch, &err), LEAT_OK);
    assert_int_equal(batch.size, samples);
    const size_t length = (size_t)s.spec.tensors[0].shape[0];
    assert_int_equal(length, json_array_size(json_array_get(rows, 0)));
    for (size_t i = 0; i < samples; ++i)
        for (size_t k = 0; k < length; ++k)
            if (x[i * length + k] != json_integer_value(json_array_get(json_array_get(rows, i), k)))
                fail_msg("%s: sample %zu, time step %zu: %d", spec, i, k, (int)x[i * length + k]);
    leat_sequence_destroy(&s);
}

static void padding_is_that_of_keras(void **state) {
    (void)state;
    static const char *const names[] = {"keras-2.3.1", "keras-3"};
    for (int n = 0; n < 2; ++n) {
        char path[512];
        json_error_t error;
        snprintf(path, sizeof path, LEAT_SOURCE_DIR "/tests/golden/timeseries/%s.json", names[n]);
        json_t *record = json_load_file(path, 0, &error), *paddings = json_object_get(record, "paddings");
        json_t *sequences = json_object_get(record, "sequences");
        assert_int_equal(json_array_size(paddings), 7);
        write_sequences(sequences);
        for (size_t i = 0; i < json_array_size(paddings); ++i)
            compare_padding(json_array_get(paddings, i), json_array_size(sequences));
        json_decref(record);
    }
}

/* ---- Buckets ---- */

typedef struct stream {
    int32_t targets[PASSES * LONG_SAMPLES], lengths[PASSES * LONG_SAMPLES];
} stream;

/* Checks a batch of a bucket and appends its targets and lengths. */
static int64_t take(stream *out, int64_t at, const leat_batch *batch) {
    const int32_t *x = batch->tensors[0].data, *y = batch->tensors[1].data;
    const int64_t length = batch->tensors[0].shape[1];
    assert_true(length == 4 || length == 9 || length == 20);
    for (int64_t i = 0; i < batch->size; ++i, ++at) {
        const int present = long_length(y[i]), kept = present < length ? present : (int)length;
        assert_true(present <= length || length == 20);
        assert_true(length == 4 || present > (length == 9 ? 4 : 9)); /* no smaller bucket would do */
        for (int64_t k = 0; k < length; ++k) assert_int_equal(x[i * length + k], k < kept ? y[i] : -1);
        out->targets[at] = y[i];
        out->lengths[at] = (int32_t)length;
    }
    return at;
}

static void record(stream *out, const char *spec, int workers, bool processes, leat_shuffle shuffle) {
    leat_sequence s = opened(spec, BATCH);
    leat_feed_options options = leat_feed_options_default();
    leat_feed *feed;
    leat_error err = {0};
    int64_t at = 0;
    memset(out, 0, sizeof *out);
    options.workers = workers;
    options.use_multiprocessing = processes;
    options.shuffle = shuffle;
    options.passes = PASSES;
    options.seed = 3;
    if (leat_feed_open(&feed, &s, &options, &err) != LEAT_OK) fail_msg("%s", err.message);
    for (;;) {
        const leat_batch *batch;
        const leat_status status = leat_feed_get(feed, &batch, &err);
        if (status == LEAT_ENOTFOUND) break;
        if (status != LEAT_OK) fail_msg("%s", err.message);
        at = take(out, at, batch);
        leat_feed_release(feed);
    }
    assert_int_equal(at, PASSES * LONG_SAMPLES);
    leat_feed_close(&feed);
    leat_sequence_destroy(&s);
}

static void buckets_are_a_function_of_seed_and_pass(void **state) {
    (void)state;
    static stream first, now;
    const char *spec = "ragged:long.npz?buckets=4,9&maxlen=20&padding=post&truncating=post&value=-1";
    record(&first, spec, 0, false, LEAT_SHUFFLE_BATCHES);
    assert_memory_not_equal(first.targets, first.targets + LONG_SAMPLES, LONG_SAMPLES * sizeof(int32_t));
    for (int pass = 0; pass < PASSES; ++pass) {
        bool seen[LONG_SAMPLES] = {false};
        for (int i = 0; i < LONG_SAMPLES; ++i) {
            const int32_t sample = first.targets[pass * LONG_SAMPLES + i];
            assert_false(seen[sample]);
            seen[sample] = true;
        }
    }
    for (int workers = 1; workers <= 4; workers *= 2)
        for (int processes = 0; processes < 2; ++processes) {
            record(&now, spec, workers, processes, LEAT_SHUFFLE_BATCHES);
            assert_memory_equal(&first, &now, sizeof first);
        }
}

static void ordered_buckets_keep_the_order_of_the_data(void **state) {
    (void)state;
    static stream s;
    record(&s, "ragged:long.npz?buckets=4,9&maxlen=20&padding=post&truncating=post&value=-1&within=ordered",
           0, false, LEAT_SHUFFLE_NONE);
    assert_memory_equal(s.targets, s.targets + LONG_SAMPLES, LONG_SAMPLES * sizeof(int32_t));
    for (int i = 1; i < LONG_SAMPLES; ++i)
        assert_true(s.lengths[i] > s.lengths[i - 1] ||
                    (s.lengths[i] == s.lengths[i - 1] && s.targets[i] > s.targets[i - 1]));
}

/* ---- Mistakes ---- */

static void mistakes_are_explained(void **state) {
    (void)state;
    static const struct {
        const char *spec, *text;
        leat_status status;
    } cases[] = {
        {"ragged:long.npz?buckets=9,4", "ascending", LEAT_EINVAL},
        {"ragged:long.npz?buckets=", "ascending", LEAT_EINVAL},
        {"ragged:long.npz?padding=left", "pre or post", LEAT_EINVAL},
        {"ragged:long.npz?maxlen=0", "time steps", LEAT_EINVAL},
        {"ragged:long.npz?value=x", "a number", LEAT_EINVAL},
        {"ragged:long.npz?within=random", "shuffled or ordered", LEAT_EINVAL},
        {"ragged:wrong.npz", "offset 2 is 3", LEAT_EFORMAT},
        {"ragged:wrong.npz?values=x", "no array 'x'", LEAT_ENOTFOUND},
        {"ragged:long.npz?targets=values", "the offsets describe 60", LEAT_ESHAPE},
        {"take(ragged:long.npz?buckets=4; count=3)", "a sequence of batches alone", LEAT_ENOTSUP},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        leat_sequence s;
        leat_error err = {0};
        const leat_status status = leat_source_open(&s, sizeof s, cases[i].spec, NULL, &err);
        if (status != cases[i].status || !strstr(err.message, cases[i].text))
            fail_msg("%s: %d %s", cases[i].spec, (int)status, err.message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(padding_is_that_of_keras),
        cmocka_unit_test(buckets_are_a_function_of_seed_and_pass),
        cmocka_unit_test(ordered_buckets_keep_the_order_of_the_data),
        cmocka_unit_test(mistakes_are_explained),
    };
    return cmocka_run_group_tests(tests, enter, files_leave);
}
